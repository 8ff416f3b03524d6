"""Rows that people perturbed themselves become a release that answers questions."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Replace
from deniable.mechanisms.retention import Retention

COLUMNS = {"age": Replace(coin=0.6, low=0, high=99), "ill": Replace(coin=0.6)}


def pilot(columns=COLUMNS, ill=("no", "yes") * 5, **options):
    """Made-up rows: with ranges and values declared, nothing of them enters the thresholds."""
    n = len(ill) // 2
    rows = pa.table({"city": ["Ulm", "Bonn"] * n, "age": [1, 2] * n, "ill": list(ill)})
    return dn.publish(
        rows, mechanism=Retention(columns), key=bytes(32), **{"domain": {"ill": ["no", "yes"]}, **options}
    )


def people(n=3000):
    rng = np.random.default_rng(4)
    age = rng.integers(0, 100, n)
    ill = np.where(rng.random(n) < age / 120, "yes", "no")
    return [{"city": "Ulm", "age": int(a), "ill": str(i)} for a, i in zip(age, ill, strict=True)]


def responses(rows, release):
    """Each row by its own draws; fixed ones, so that the test is the same every time."""
    words = np.random.default_rng(5)
    draw = lambda: int(words.integers(0, 2**64, dtype=np.uint64))  # noqa: E731
    return [dn.respond(row, release, draw=draw) for row in rows]


@pytest.mark.parametrize("form", ["rows", "table"])
def test_collected_rows_are_asked_about_as_published_ones_are(tmp_path, form):
    survey = pilot()
    rows = people()
    sent = responses(rows, survey)
    release = dn.collect(sent if form == "rows" else pa.Table.from_pylist(sent), survey.manifest)
    assert release.manifest.rows == 3000
    where = {"age": dn.between(60, 99), "ill": "yes"}
    true = sum(row["age"] >= 60 and row["ill"] == "yes" for row in rows)
    found = release.count(where)
    assert abs(found.value - true) < 0.05 * true  # the draws are fixed
    naive = sum(row["age"] >= 60 and row["ill"] == "yes" for row in sent)
    assert abs(naive - true) > 0.1 * true  # counted as they are, the rows are off
    saved = release.save(tmp_path / "r")
    assert saved.verify().holds
    assert saved.manifest.guarantee["epsilon"] == survey.manifest.guarantee["epsilon"]
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["rows"] == 3000
    assert dn.pool([release, dn.collect(sent[:100], survey)]).manifest.rows == 3100


def test_the_order_in_which_rows_came_is_not_published():
    survey = pilot()
    sent = [{"city": f"{i:04d}", "age": 3, "ill": "no"} for i in range(500)]
    names = dn.collect(sent, survey).table["city"].to_pylist()
    assert sorted(names) == [row["city"] for row in sent]
    order = np.array([int(name) for name in names])
    assert abs(np.corrcoef(order, np.arange(500))[0, 1]) < 6 / math.sqrt(500)


def test_a_noisy_histogram_of_the_pilot_is_not_taken_for_one_of_the_rows():
    survey = pilot(marginals=True)
    release = dn.collect(responses(people(50), survey), survey)
    assert all(part.marginal is None for part in release.manifest.parts)
    assert not any("noisy histograms" in line for line in release.manifest.guarantee["also"])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "nothing was collected"),
        ([{"city": "Ulm", "age": 200, "ill": "no"}], "'age' holds values that no row can have"),
        ([{"city": "Ulm", "age": 3, "ill": "maybe"}], "'ill' holds values that no row can have"),
        ([{"city": "Ulm", "age": None, "ill": "no"}], "'age' has missing values"),
        ([{"city": "Ulm", "age": "old", "ill": "no"}], "types of the release"),
        ([{"city": "Ulm", "age": 3}], "differ in 'ill'"),
        ([{"city": "Ulm", "age": 3, "ill": "no", "name": "Eva"}], "differ in 'name'"),
        ([3], "mappings"),
    ],
)
def test_rows_that_cannot_be_collected_are_refused_in_words(rows, words):
    with pytest.raises(dn.DeniableError, match=words):
        dn.collect(rows, pilot())


def test_only_uniform_replacements_protect_people_who_are_not_in_the_pilot():
    survey = pilot({**COLUMNS, "ill": Replace(coin=0.6, replacing="identity")}, ill=["no", "no", "yes"] * 100)
    with pytest.raises(dn.DeniableError, match="'ill' is replaced by values as frequent as in the release"):
        dn.collect(people(5), survey)
    with pytest.raises(dn.DeniableError, match="swapped"):
        dn.collect(people(5), pilot({"ill": Replace(coin=0.6, replacing="swapping")}, drop="age"))
