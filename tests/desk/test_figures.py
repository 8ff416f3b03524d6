"""Live figures of the desk beside the same computed by brute force."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.desk import figures as live
from deniable.desk.figures import Figures
from deniable.tables import engine_named
from deniable.tables.base import no_progress


def read(table: pa.Table) -> Figures:
    dataset = engine_named("local").open(table)
    figures = Figures.begun(dataset, no_progress)
    figures.read(dataset, table.column_names, no_progress)
    return figures


def alone(figures: Figures, recodes: dict[str, str]) -> live.Alone:
    return figures.alone({name: figures.coarse(name, how).codes for name, how in recodes.items()})


def table_of(rows: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    ages = rng.integers(18, 90, rows).tolist()
    zips = [None if i % 97 == 0 else f"8{place}" for i, place in enumerate(rng.integers(100, 140, rows))]
    return pa.table({"age": ages, "zip": zips, "sex": rng.choice(["F", "M"], rows)})


@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 15, None]), st.sampled_from(["ab", "ac", None])), min_size=1, max_size=60)
)
@settings(max_examples=60, deadline=None)
def test_of_a_small_table_everyone_is_looked_for(rows: list[tuple[int | None, str | None]]) -> None:
    table = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.int64()), "b": pa.array([b for _, b in rows], pa.string())}
    )
    figures = read(table)
    for how, coarse in (("", lambda b: b), ("prefix:1", lambda b: None if b is None else b[:1])):
        counts = Counter((a, coarse(b)) for a, b in rows)
        seen = alone(figures, {"a": "", "b": how})
        assert seen.error == 0
        assert seen.share == pytest.approx(sum(n for n in counts.values() if n == 1) / len(rows))
        assert seen.few == pytest.approx(sum(n for n in counts.values() if n < 5) / len(rows))
        for name, place in (("a", 1), ("b", 0)):
            without = Counter((a, coarse(b))[place] for a, b in rows)
            assert seen.without[name] == pytest.approx(sum(n for n in without.values() if n == 1) / len(rows))


def test_they_are_those_of_risk() -> None:
    table = table_of(5000)
    figures = read(table)
    recodes = {"age": "bands:10", "zip": "prefix:2"}
    for seen, exposure in (
        (alone(figures, dict.fromkeys(table.column_names, "")), dn.risk(table, table.column_names).before),
        (alone(figures, {**recodes, "sex": ""}), dn.risk(table, table.column_names, recode=recodes).after),
    ):
        assert exposure is not None
        assert seen.share == pytest.approx(exposure.unique / exposure.rows)
        assert seen.few == pytest.approx(exposure.below[5] / exposure.rows)
        assert dict(seen.without) == pytest.approx({k: n / exposure.rows for k, n in exposure.alone_without.items()})


def test_of_a_large_table_the_stated_error_holds() -> None:
    """The sample is of people, who are looked for among all rows: the exact share is inside of four standard errors."""
    figures = read(table_of(60_000, seed=5))
    recodes = {"age": "bands:2", "zip": "", "sex": ""}
    whole = Counter(
        zip(*(figures.coarse(n, how).codes[figures.columns[n].codes] for n, how in recodes.items()), strict=True)
    )
    for name in ("age", "zip"):
        few = Counter(
            zip(
                *(figures.coarse(n, how).codes[figures.columns[n].codes] for n, how in recodes.items() if n != name),
                strict=True,
            )
        )
        assert sum(few.values()) == 60_000
    exact = sum(n for n in whole.values() if n < 5) / 60_000
    seen = alone(figures, recodes)
    assert seen.error > 0
    assert abs(seen.few - exact) < 4 * (exact * (1 - exact) / live.PEOPLE) ** 0.5 + 1e-9


def test_while_a_sample_is_taken_it_is_said_how_far_it_is() -> None:
    said: list[tuple[int, int | None]] = []
    dataset = engine_named("local").open(table_of(300_000))
    Figures.begun(dataset, lambda done, total, what: said.append((done, total)))
    assert 0 < said[0][0] < said[-1][0] == 300_000
    assert {total for _, total in said} == {300_000}


def test_of_a_table_that_is_too_large_runs_of_rows_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CELLS", 30_000)
    figures = read(table_of(20_000))
    assert not figures.complete
    assert 0 < figures.held <= 14_096  # one run more, at the most
    assert figures.rows == 20_000


def test_values_that_few_have_are_one_value_then() -> None:
    figures = read(pa.table({"job": ["a"] * 50 + ["b"] * 3 + ["c"] * 2 + [None] * 2, "age": list(range(57))}))
    before, after = figures.bars("job", rare=5)
    assert [(bar.label, bar.rows) for bar in before] == [("a", 50), ("b", 3), ("c", 2), ("?", 2)]
    assert sorted(bar.rows for bar in after) == [2, 5, 50]
    numbers, _ = figures.bars("age")
    assert sum(bar.rows for bar in numbers) == 57
    assert len(numbers) <= live.BARS + 1
