"""The made-up census has the shape that its docstring promises."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deniable.core.errors import OptionError
from deniable.lab import made_up

DOMAINS = {
    "age": 77,
    "gender": 2,
    "education": 14,
    "marital": 6,
    "race": 9,
    "workclass": 7,
    "country": 70,
    "occupation": 50,
}


@pytest.fixture(scope="module")
def people() -> pa.Table:
    return made_up.census()


def share(table: pa.Table, column: str, value: str) -> float:
    return pc.mean(pc.equal(table[column], value).cast(pa.float64())).as_py()


def test_every_column_shows_its_whole_domain(people: pa.Table) -> None:
    assert {name: len(people[name].unique()) for name in people.column_names} == DOMAINS
    assert people.num_rows == 50_000
    assert sum(column.null_count for column in people.columns) == 0


def test_the_most_frequent_occupation_is_seven_percent_and_below_one_in_thirteen(people: pa.Table) -> None:
    counts = sorted((row["counts"] for row in people["occupation"].value_counts().to_pylist()), reverse=True)
    assert 0.065 < counts[0] / people.num_rows < 1 / 13
    assert counts[-1] > 200
    assert made_up.occupation_shares()[0] == pytest.approx(0.07, abs=0.001)


def test_the_same_seed_gives_the_same_table_and_another_does_not() -> None:
    assert made_up.census(500, seed=3).equals(made_up.census(500, seed=3))
    assert not made_up.census(500, seed=3).equals(made_up.census(500, seed=4))


def test_questions_find_the_correlations(people: pa.Table) -> None:
    nurses = people.filter(pc.equal(people["occupation"], "Registered nurse"))
    lawyers = people.filter(pc.equal(people["occupation"], "Lawyer"))
    young = people.filter(pc.less(people["age"], 25))
    old = people.filter(pc.greater(people["age"], 75))
    teachers = people.filter(pc.equal(people["occupation"], "School teacher"))
    assert share(nurses, "gender", "Female") > 0.8
    assert share(lawyers, "education", "Master's degree") > 3 * share(people, "education", "Master's degree")
    assert share(young, "marital", "Never married") > 0.6
    assert share(old, "marital", "Never married") < 0.2
    assert share(old, "marital", "Widowed") > 0.15
    assert share(teachers, "workclass", "Local government") > 0.4


def test_a_table_needs_a_row() -> None:
    with pytest.raises(OptionError, match="rows = 0 is not allowed"):
        made_up.census(0)
