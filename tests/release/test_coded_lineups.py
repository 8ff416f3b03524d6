"""Releases whose line-ups are large: rows show codes, a table beside them says what codes stand for, and all works."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.learn import NaiveBayesClassifier
from deniable.mechanisms import Lineup
from deniable.tables.storage import digest_of

VALUES = [f"job {number:02d}" for number in range(50)]
BY_BLOCKS = dn.Privacy(rho1="1/13", rho2="1/6", adversary="any-prior")
BY_ARCS = dn.Privacy(rho1="1/13", rho2="1/6")


def table(missing: bool = False, n: int = 3000) -> pa.Table:
    rng = np.random.default_rng(5)
    jobs = [VALUES[place] for place in rng.choice(50, n, p=np.arange(1, 51) / 1275)]
    gone = rng.random(n) < (0.1 if missing else 0)
    return pa.table({"sex": rng.choice(["F", "M"], n), "job": pa.array(jobs, mask=gone)})


def published(size: int = 20, missing: str = "value", privacy: dn.Privacy = BY_BLOCKS, key: bytes = bytes(32), **given):
    return dn.publish(
        table(missing == "exempt"), sensitive="job", privacy=privacy, mechanism=Lineup(size=size), domain=VALUES,
        missing=missing, key=key, **given,
    )  # fmt: skip


def members(release, code: int) -> list[str]:
    """The set that a code stands for, as the page about line-ups says that it is read."""
    listed = release.lineups.to_pydict()
    if "first" in listed:
        rows = zip(*(listed[name] for name in ("value", "first", "last")), strict=True)
        return [value for value, first, last in rows if first <= code <= last]
    rows = zip(listed["block"], listed["place"], strict=True)
    return [VALUES[number] for number in sorted((code + place) % 50 for block, place in rows if block == code // 50)]


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("missing", ["value", "exempt"])
@pytest.mark.parametrize("privacy", [BY_BLOCKS, BY_ARCS], ids=["blocks", "arcs"])
def test_rows_show_codes_and_the_table_says_which_values_they_stand_for(tmp_path, form, missing, privacy):
    release = published(missing=missing, privacy=privacy, out=tmp_path / "r", format=form)
    design = release.manifest.parts[0].lineups
    assert release.table.schema.field("job").type == pa.int32()
    assert release.table["job"].null_count == (table(True)["job"].null_count if missing == "exempt" else 0)
    file = tmp_path / "r" / f"lineups.{form}"
    stored = pq.read_table(file) if form == "parquet" else pyarrow.csv.read_csv(file)
    assert stored.to_pydict() == release.lineups.to_pydict()
    sets = {tuple(VALUES[place] for place in row) for row in design.sets.members}
    for code in release.table["job"].drop_null().unique().to_pylist()[:40]:
        assert len(members(release, code)) == 20
        assert tuple(members(release, code)) in sets
    assert dn.verify(tmp_path / "r").holds
    again = dn.open_release(tmp_path / "r")
    assert again.table.equals(release.table)
    memory = published(missing=missing, privacy=privacy)
    assert memory.table.equals(release.table)
    where = {"sex": "F", "job": VALUES[40:]}
    assert again.count(where).value == memory.count(where).value
    known = pa.compute.and_(
        pa.compute.equal(table()["sex"], "F"), pa.compute.is_in(table()["job"], pa.array(VALUES[40:]))
    )
    spread = 5.2 * memory.count(where).stderr
    if missing == "value":
        assert memory.count(where).value == pytest.approx(pa.compute.sum(known).as_py(), abs=spread)
    saved = memory.save(tmp_path / "again", format=form)
    assert digest_of(tmp_path / "again" / f"lineups.{form}") == digest_of(file)
    assert saved.manifest.lineups is not None
    text = (tmp_path / "r" / "README.md").read_text()
    assert f"`lineups.{form}`" in text
    assert "A set is\nshown by a number" in text


@pytest.mark.parametrize("privacy", [BY_BLOCKS, BY_ARCS], ids=["blocks", "arcs"])
def test_lists_and_codes_of_one_design_give_the_same_answers(monkeypatch, privacy):
    coded = published(privacy=privacy)
    monkeypatch.setattr("deniable.core.designs.MOST_LISTED", 50)
    listed = published(privacy=privacy)
    assert pa.types.is_list(listed.table.schema.field("job").type)
    for place in range(100):
        assert members(coded, coded.table["job"][place].as_py()) == listed.table["job"][place].as_py()
    question = "SELECT sex, job, COUNT(*) AS n FROM release GROUP BY sex, job"
    assert coded.sql(question).equals(listed.sql(question))
    assert np.array_equal(coded.weights({"job": VALUES[3]}), listed.weights({"job": VALUES[3]}))
    for method in ("mle", "shrunk"):
        one, other = (release.count({"sex": "F", "job": VALUES[3]}, method=method) for release in (coded, listed))
        assert one.value == other.value
    learnt = [NaiveBayesClassifier().fit(release, target="sex", columns=["job"]) for release in (coded, listed)]
    jobs = pa.table({"job": VALUES})
    assert np.array_equal(*(model.predict_proba(jobs) for model in learnt))
    with pytest.raises(dn.DeniableError, match="no table of them"):
        _ = listed.lineups


def rewritten(folder, change) -> None:
    """A release whose manifest is made to fit a changed table of line-ups, or changed rows."""
    raw = json.loads((folder / "manifest.json").read_text())
    change(folder, raw)
    for what in ("data", "lineups"):
        if what in raw and raw[what] is not None:
            raw[what]["sha256"] = digest_of(folder / raw[what]["file"])
    (folder / "manifest.json").write_text(json.dumps(raw))


def _other_number(folder, raw) -> None:
    stored = pq.read_table(folder / "lineups.parquet").to_pydict()
    next(reversed(stored.values()))[7] += 1
    pq.write_table(pa.table(stored, schema=pq.read_schema(folder / "lineups.parquet")), folder / "lineups.parquet")


def _gone(folder, raw) -> None:
    (folder / "lineups.parquet").unlink()
    del raw["lineups"]


def _other_code(folder, raw) -> None:
    stored = pq.read_table(folder / "data.parquet")
    codes = pa.array([10**6] * len(stored), pa.int32())
    pq.write_table(stored.set_column(1, stored.schema.field(1), codes), folder / "data.parquet")


def _other_type(folder, raw) -> None:
    stored = pq.read_table(folder / "lineups.parquet")
    name = stored.column_names[1]
    pq.write_table(stored.set_column(1, name, stored[name].cast(pa.int64())), folder / "lineups.parquet")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_other_number, "something else than the design"),
        (_gone, "line-ups"),
        (_other_code, "does not list"),
        (_other_type, "its columns are not"),
    ],
)
@pytest.mark.parametrize("privacy", [BY_BLOCKS, BY_ARCS], ids=["blocks", "arcs"])
def test_a_table_that_does_not_fit_is_found(tmp_path, change, words, privacy):
    published(privacy=privacy, out=tmp_path / "r")
    rewritten(tmp_path / "r", change)
    with pytest.raises(dn.VerificationError, match=words):
        dn.verify(tmp_path / "r")


def test_a_changed_table_is_found_and_one_without_codes_refused(tmp_path):
    published(out=tmp_path / "r")
    with (tmp_path / "r" / "lineups.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(dn.VerificationError, match=r"lineups.parquet was changed"):
        dn.verify(tmp_path / "r")
    published(size=10, out=tmp_path / "lists")
    published(out=tmp_path / "codes")
    shutil.copy(tmp_path / "codes" / "lineups.parquet", tmp_path / "lists")

    def named(folder, raw):
        raw["lineups"] = {"file": "lineups.parquet", "format": "parquet", "sha256": ""}

    rewritten(tmp_path / "lists", named)
    with pytest.raises(dn.VerificationError, match="rows without codes"):
        dn.verify(tmp_path / "lists")


def test_codes_of_one_design_are_pooled_and_saved(tmp_path):
    releases = [published(), published(key=bytes([1]) * 32)]
    both, question = dn.pool(releases), {"sex": "F", "job": VALUES[:9]}
    assert both.count(question).value == pytest.approx(sum(release.count(question).value for release in releases))
    saved = both.save(tmp_path / "both")
    assert dn.verify(tmp_path / "both").holds
    assert saved.lineups.equals(published().lineups)


def test_the_release_is_overwritten_and_signed_with_its_table(tmp_path):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    for _ in range(2):
        published(out=tmp_path / "r", overwrite=True, sign=key)
    assert "lineups.parquet" in json.loads((tmp_path / "r" / "signature.json").read_text())["files"]
    assert dn.verify(tmp_path / "r", signed_by=key.public_key()).holds
