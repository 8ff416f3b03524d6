"""The search for how coarse columns must be: against brute force on small lattices, on rows counted by hand."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.owner.project import Project
from deniable.owner.proposals import Lattice, Level, Proposal, coarser, proposal
from deniable.owner.roles import Columns


def proposed(table: pa.Table, wanted: float) -> Proposal:
    columns = Columns(table)
    roles = {one.column: one for one in columns.roles(("s",))}
    return proposal(columns, [name for name in table.column_names if name != "s"], roles, wanted, table.num_rows)


def alone(table: pa.Table, names: list[str]) -> float:
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    counts = Counter(rows)
    return sum(counts[row] == 1 for row in rows) / len(rows)


def people(rows: int = 3_000) -> pa.Table:
    draw = np.random.default_rng(4)
    return pa.table(
        {
            "age": draw.integers(0, 95, rows),
            "zip": [f"{number:05}" for number in draw.integers(80_000, 80_900, rows)],
            "born": pa.array(np.datetime64("1980-01-01") + draw.integers(0, 3_000, rows)),
            "sex": draw.choice(["F", "M"], rows),
            "s": draw.choice(list("abcd"), rows),
        }
    )


@pytest.mark.parametrize("wanted", [0.3, 0.05, 0.0])
def test_what_is_proposed_reaches_what_is_wanted_in_the_table_that_is_published(wanted: float) -> None:
    table = people()
    made = proposed(table, wanted)
    assert made.before == alone(table, ["age", "zip", "born", "sex"])
    drop = [*made.left_out]
    release = dn.publish(
        table, sensitive="s", privacy=dn.Privacy(rho2="1/2"), mechanism="uniform", drop=drop, recode=dict(made.recodes)
    )
    names = [name for name in release.table.column_names if name != "s"]
    assert alone(release.table, names) == pytest.approx(made.after) if names else made.after == 0
    assert made.after <= wanted


def lattice(seed: int) -> Lattice:
    draw = np.random.default_rng(seed)
    levels = []
    for size in draw.integers(3, 60, 4):
        codes = draw.choice(size, 400, p=draw.dirichlet(np.full(size, 0.7)))
        of_column = [Level(None, np.zeros(400, np.int64), 0.0)]
        of_column += [
            Level(f"bands:{width}", codes // width, 0.0) for width in (int(size) // 2, int(size) // 6) if width
        ]
        of_column.append(Level("", codes, 0.0))
        kept = np.linspace(0, 1, len(of_column)) ** draw.uniform(0.3, 3)
        levels.append([Level(one.recode, one.codes, float(part)) for one, part in zip(of_column, kept, strict=True)])
    return Lattice(levels)


def best(made: Lattice, wanted: float) -> float:
    every = product(*(range(len(of_column)) for of_column in made.levels))
    return max(made.worth(node) for node in every if made.alone(node) <= wanted)


def test_an_owners_categories_are_taken_at_any_of_their_levels(tmp_path: Path) -> None:
    """A place that is told by its county is too fine, by its country too coarse."""
    places = [f"{country}{county}{town}" for country in "AB" for county in range(6) for town in range(40)]
    lines = [f"{place},{place[:2]},{place[0]},Earth" for place in places]
    (tmp_path / "places.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    draw = np.random.default_rng(2)
    table = pa.table(
        {"place": draw.choice(places, 900), "age": draw.integers(20, 30, 900), "s": draw.choice(list("abcd"), 900)}
    )
    named = f"hierarchy:{tmp_path / 'places.csv'}"
    for level in ("", ":3"):  # which one the owner named is no matter
        project = Project.proposed(table, ("s",)).with_role("place", "public", named + level)
        changed, made = coarser(table, project, 0.05)
        assert made.recodes["place"] == f"{named}:1"
        assert made.after <= 0.05
        assert next(one for one in changed.columns if one.column == "place").recode == f"{named}:1"


def test_the_search_comes_near_the_best_of_all_nodes() -> None:
    near = []
    for seed in range(25):
        made = lattice(seed)
        for wanted in (0.02, 0.1, 0.4):
            node = made.searched(wanted)
            assert made.alone(node) <= wanted
            near.append(made.worth(node) / max(best(made, wanted), 1e-9))
    assert min(near) > 0.7
    assert np.mean(near) > 0.97


def test_rows_alone_are_counted_as_by_hand() -> None:
    made = lattice(1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        node = [int(rng.integers(len(of_column))) for of_column in made.levels]
        codes: Any = zip(
            *(of_column[level].codes.tolist() for of_column, level in zip(made.levels, node, strict=True)), strict=True
        )
        rows = list(codes)
        counts = Counter(rows)
        assert made.alone(node) == sum(counts[row] == 1 for row in rows) / len(rows)
