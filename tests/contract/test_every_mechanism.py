"""One suite that every mechanism passes on every engine: what a user may rely on whatever they choose."""

import json

import jsonschema
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable import mechanisms
from deniable.core.manifest import Manifest, schema

KEY = bytes(range(32))
N = 20_000
VALUES = np.array(list("abcdefghij"))
PRIVACY = dn.Privacy(rho1="1/4", rho2="1/3")
PER_VALUE = dn.Privacy(per_value=dict.fromkeys("fghij", ("1/10", "1/4")))

MADE = {
    "uniform": lambda: (mechanisms.Uniform(), PRIVACY),
    "small-domain": lambda: (mechanisms.SmallDomain(), PRIVACY),
    "small-domain, fine-grain": lambda: (mechanisms.SmallDomain(channels="fine-grain"), PRIVACY),
    "fine-grain": lambda: (mechanisms.FineGrain(), PER_VALUE),
    "identity": lambda: (mechanisms.Identity(), PRIVACY),
    "designed": lambda: (mechanisms.Designed(), PRIVACY),
    "pram": lambda: (mechanisms.Pram(), None),
    "pram, fitted": lambda: (mechanisms.Pram(), PRIVACY),
    "pram, strata": lambda: (mechanisms.Pram(strata="sex"), PRIVACY),
    "redraw": lambda: (mechanisms.Redraw(), None),
    "decoys": lambda: (mechanisms.Decoys(c=4), None),
    "anatomy": lambda: (mechanisms.Anatomy(l=4), None),
    "generalize": lambda: (mechanisms.Generalize(k=10, l=4), None),
}
# No rows are handed over: the owner answers, until a budget is spent.
ANSWERED = {"laplace": lambda: (mechanisms.Laplace(questions=50), PRIVACY)}
UNBIASED = [name for name in MADE if name not in ("redraw", "anatomy", "generalize", "decoys")]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    disease = rng.choice(VALUES, N, p=np.arange(10, 0, -1) / 55)
    sex = np.where(rng.random(N) < np.where(disease < "d", 0.7, 0.4), "F", "M")
    return pa.table({"sex": sex, "age": rng.integers(18, 90, N), "disease": disease})


def publish(table, name, **options):
    mechanism, privacy = {**MADE, **ANSWERED}[name]()
    return dn.publish(table, sensitive="disease", privacy=privacy, mechanism=mechanism, key=KEY, **options)


def test_every_registered_mechanism_is_in_this_suite():
    assert set(mechanisms.MECHANISMS) - {"retention", "auto"} <= {
        made()[0].name for made in (*MADE.values(), *ANSWERED.values())
    }


@pytest.mark.parametrize("name", MADE)
def test_rows_and_public_columns_are_kept(table, name):
    release = publish(table, name)
    assert release.table.num_rows == release.manifest.rows == N
    if name == "generalize":  # public columns become boxes: every original row lies in one, and none is empty
        cells = release.cells_of(table)
        assert np.array_equal(np.bincount(cells), np.bincount(release.table["cell"].to_numpy()))
        return
    assert sorted(zip(*(release.table[c].to_pylist() for c in ("sex", "age")), strict=True)) == sorted(
        zip(*(table[c].to_pylist() for c in ("sex", "age")), strict=True)
    )


@pytest.mark.parametrize("name", MADE)
def test_the_same_key_gives_the_same_release_and_threads_do_not_matter(table, name):
    first, second = publish(table, name, threads=1), publish(table, name, threads=4, batch_rows=777)
    assert first.table.equals(second.table)
    assert first.manifest.to_json() == second.manifest.to_json()


@pytest.mark.parametrize("name", MADE)
def test_a_release_is_saved_verified_and_opened(table, name, tmp_path):
    release = publish(table, name, out=tmp_path / "r")
    assert dn.verify(tmp_path / "r").holds
    raw = json.loads((tmp_path / "r" / "manifest.json").read_text())
    jsonschema.validate(raw, schema())
    assert Manifest.from_dict(raw).to_dict() == raw
    assert dn.open_release(tmp_path / "r").table.equals(release.table)


@pytest.mark.parametrize("name", [*MADE, *ANSWERED])
def test_the_guarantee_speaks_and_the_limits_are_said(table, name):
    guarantee = publish(table, name).manifest.guarantee
    assert len(guarantee["sentence"]) > 20
    assert len(guarantee["not_protected"]) >= 2


@pytest.mark.parametrize("name", [*MADE, *ANSWERED])
def test_no_exact_count_is_in_the_manifest(table, name):
    raw = json.loads(publish(table, name).manifest.to_json())
    for part in raw["sensitive"]:
        part.pop("marginal")
    text = json.dumps(raw)
    for separator in ',:[]{}"':
        text = text.replace(separator, " ")
    counts = {str(c) for c in np.unique(table["disease"].to_numpy(zero_copy_only=False), return_counts=True)[1]}
    assert not counts & set(text.split())


@pytest.mark.parametrize("name", [*MADE, *ANSWERED])
def test_counts_are_answered_with_an_interval(table, name):
    estimate = publish(table, name).count(where={"sex": "F", "disease": ["a", "b"]})
    assert estimate.low <= estimate.value <= estimate.high


@pytest.mark.parametrize("name", UNBIASED)
def test_counts_are_within_six_standard_errors_of_the_truth(table, name):
    release = publish(table, name)
    frame = table.to_pandas()
    for sex in "FM":
        for value in VALUES:
            estimate = release.count(where={"sex": sex, "disease": value})
            truth = int(((frame["sex"] == sex) & (frame["disease"] == value)).sum())
            assert abs(estimate.value - truth) < 6 * estimate.stderr


@pytest.mark.parametrize("name", MADE)
def test_a_file_and_a_table_give_the_same_release(table, name, tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(table, tmp_path / "t.parquet")
    assert publish(tmp_path / "t.parquet", name, out=tmp_path / "r").table.equals(publish(table, name).table)


@pytest.mark.parametrize("name", ANSWERED)
def test_answers_are_the_same_under_one_key_and_nothing_else_is_handed_over(table, name, tmp_path):
    questions = [{"sex": "F", "disease": "a"}, {"disease": ["b", "c"]}, None]
    first, second = publish(table, name), publish(table, name, threads=4, batch_rows=777)
    assert [first.count(where) for where in questions] == [second.count(where) for where in questions]
    for use in (
        lambda: first.table,
        lambda: first.save(tmp_path / "r"),
        lambda: publish(table, name, out=tmp_path / "r"),
        first.verify,
        lambda: first.sql("SELECT count(*) FROM release"),
    ):
        with pytest.raises(dn.DeniableError, match="Fix:"):
            use()
    assert not (tmp_path / "r").exists()
