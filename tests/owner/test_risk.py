"""Who stands out: by brute force on small tables; local suppression reaches its k and touches only what it must."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.core.errors import ColumnError, OptionError
from deniable.owner.public import Exposure, combined

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40)


@given(ROWS)
def test_figures_are_those_of_a_count_by_hand(rows: list[tuple[int, int, int]]) -> None:
    a, b, s = (np.array(column) for column in zip(*rows, strict=True))
    found = Exposure.of({"a": a, "b": b}, s)
    groups = defaultdict(list)
    for x, y, value in rows:
        groups[x, y].append(value)
    sizes = {key: len(values) for key, values in groups.items()}
    assert (found.rows, found.groups, found.k) == (len(rows), len(groups), min(sizes.values()))
    assert found.unique == sum(size == 1 for size in sizes.values())
    assert found.below[3] == sum(size for size in sizes.values() if size < 3)
    assert found.l == min(len(set(values)) for values in groups.values())
    assert found.alike == sum(len(v) for v in groups.values() if len(v) > 1 and len(set(v)) == 1)
    assert found.alone_without["b"] == sum(count == 1 for count in Counter(a.tolist()).values())


def test_combinations_beyond_any_array_are_told_apart() -> None:
    columns = [np.arange(300) * 2**28 % (2**30 + seed) for seed in range(3)]
    assert combined(columns, 300).max() + 1 == len(set(zip(*(c.tolist() for c in columns), strict=True)))


@given(ROWS, st.integers(2, 6))
def test_suppression_reaches_k_and_leaves_rows_alone_that_have_it(rows: list[tuple[int, int, int]], k: int) -> None:
    table = pa.table(
        {name: [f"{v}" for v in column] for name, column in zip("abs", zip(*rows, strict=True), strict=True)}
    )
    if len(rows) < k:
        with pytest.raises(OptionError, match="cannot be made alike"):
            dn.risk(table, ["a", "b", "s"], suppress_to_k=k)
        return
    found = dn.risk(table, ["a", "b", "s"], suppress_to_k=k)
    made = found.table()
    counts = Counter(zip(*(made[name].to_pylist() for name in "abs"), strict=True))
    assert min(counts.values()) >= k == found.suppression.k
    assert found.after.k >= k
    before = Counter(rows)
    enough = sum(size < k for size in before.values()) == 0
    assert (sum(found.suppression.cells.values()) == 0) == enough
    for name in "abs":
        pairs = list(zip(table[name].to_pylist(), made[name].to_pylist(), strict=True))
        assert all(now in (was, None) for was, now in pairs)
        assert sum(now is None for _, now in pairs) == found.suppression.cells[name]


def test_suppression_blanks_the_column_that_helps() -> None:
    table = pa.table({"sex": ["F"] * 6 + ["M"] * 6, "zip": ["1"] * 5 + ["2"] + ["3"] * 5 + ["4"]})
    found = dn.risk(table, ["sex", "zip"], suppress_to_k=2)
    assert (found.before.unique, found.after.unique) == (2, 0)
    assert sum(found.suppression.cells.values()) <= 4


def test_before_and_after_a_recoding() -> None:
    people = pa.table({"age": list(range(20, 80)), "disease": ["flu", "flu", "flu"] * 20})
    found = dn.risk(people, "age", sensitive="disease", recode={"age": dn.bands(20)})
    assert (found.before.k, found.before.unique, found.before.l) == (1, 60, 1)
    assert (found.after.k, found.after.unique, found.after.l, found.after.alike) == (20, 0, 1, 60)
    assert "60 of 60 rows (100 %) are alone" in str(found)
    assert "Afterwards:" in str(found)
    assert found.to_dict()["after"]["below"]["5"] == 0
    assert found.table()["age"][0].as_py() == "[20, 40)"


def test_columns_that_are_not_there_are_refused() -> None:
    people = pa.table({"age": [1], "sex": ["F"]})
    for columns, sensitive in (("aeg", None), (["age", "age"], None), ("age", "age"), ([], None)):
        with pytest.raises(ColumnError):
            dn.risk(people, columns, sensitive=sensitive)
