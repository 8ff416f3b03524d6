"""Several rows of one person: nobody becomes surer than the audit says, by any rows that this person can have."""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Channel
from deniable.mechanisms import Lineup
from deniable.planning.posteriors import CellRows, Posteriors, surest_after

Views = dict[object, np.ndarray]  # what a row shows -> Pr[it | value]


def enumerated(views: Views, held: np.ndarray, rows: int) -> np.ndarray:
    """The largest belief in each value over everything that so many rows can show."""
    surest = np.zeros(len(held))
    for shown in itertools.combinations_with_replacement(views.values(), rows):
        joint = held * np.prod(shown, axis=0)
        if joint.any():
            surest = np.maximum(surest, joint / joint.sum())
    return surest


def random_cells(rng: np.random.Generator, cells: int) -> list[CellRows]:
    made = []
    for _ in range(cells):
        size = int(rng.integers(2, 5))
        places = tuple(sorted(rng.choice(4, size, replace=False).tolist()))
        coins = np.where(rng.random(size) < 0.2, rng.integers(0, 2, size), rng.random(size))
        replacing = np.where(rng.random(size) < 0.2, 0, rng.random(size))
        replacing[0] += 0.1
        made.append(CellRows(places, Channel.of(places, coins, replacing), tuple(rng.integers(1, 6, size).tolist())))
    return made


def views_of(cells: list[CellRows], held: np.ndarray, *, published: bool) -> Views:
    views: Views = defaultdict(lambda: np.zeros(len(held)))
    for number, cell in enumerate(cells):
        for y, shown in enumerate(cell.positions):
            for x, value in enumerate(cell.positions):
                rows = cell.rows[x] * cell.channel.matrix()[y, x]
                views[number if published else None, shown][value] += rows / held[value]
    return views


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(("cells", "published"), [(1, False), (2, True), (3, True), (3, False)])
def test_no_rows_make_surer_and_of_one_channel_some_make_as_sure(cells: int, published: bool, rows: int) -> None:
    rng = np.random.default_rng(cells)
    for _ in range(40):
        made = random_cells(rng, cells)
        posteriors = Posteriors(made, published=published)
        held = np.array([posteriors.totals.get(x, 0) for x in range(4)])
        reached = enumerated(views_of(made, np.maximum(held, 1), published=published), held, rows)
        for x in np.flatnonzero(held):
            surest = surest_after(posteriors, {int(x): rows})
            assert surest >= reached[x] - 1e-9
            if cells == 1 and made[0].seen(made[0].positions.index(x)):
                assert surest == pytest.approx(reached[x], abs=1e-9)


def people(rows: int) -> pa.Table:
    values = np.repeat(np.arange(400) % 8, rows)
    return pa.table({"name": np.repeat(np.arange(400), rows), "value": [f"v{value}" for value in values]})


def test_two_line_ups_that_share_one_value_give_it_away_and_the_owner_is_told() -> None:
    """Of two rows of a person, each with three values of which one is true, most have only the true one in common."""
    table = people(2)
    release = dn.publish(
        table,
        sensitive="value",
        privacy=dn.Privacy("1/8", "1/2"),
        mechanism=Lineup(size=3, truth=1),
        key=bytes(32),
        shuffle=False,
    )
    shown = [set(row) for row in release.table["value"].to_pylist()]
    given_away = [one & other for one, other in zip(shown[::2], shown[1::2], strict=True) if len(one & other) == 1]
    assert len(given_away) > 100
    found = dn.audit(table, release)
    assert found.rows is not None
    assert found.rows.repeated_posterior == 1
    (finding,) = [one for one in found.findings if one.what == "repeated rows"]
    assert finding.grade == "caution"
    assert "100 % sure" in finding.detail


@pytest.mark.parametrize("truth", ["1/2", "1"])
def test_line_ups_make_nobody_surer_than_said(truth: str) -> None:
    rng = np.random.default_rng(4)
    values = rng.choice(4, 200, p=[0.6, 0.2, 0.1, 0.1])
    table = pa.table({"name": np.repeat(np.arange(200), 2), "value": [f"v{value}" for value in np.repeat(values, 2)]})
    release = dn.publish(
        table, sensitive="value", privacy=dn.Privacy("1/4", "9/10"), mechanism=Lineup(size=2, truth=truth)
    )
    (part,) = dn.audit(table, release).parts
    design = release.manifest.parts[0].lineups
    assert design is not None
    reached = enumerated(_sets(design.integers()), 2 * np.bincount(values, minlength=4), 2)
    for x in range(4):
        assert reached[x] - 1e-6 <= surest_after(part.posteriors, {x: 2}) <= 1
    assert truth == "1" or surest_after(part.posteriors, {3: 2}) < 1


def _sets(design: dict[str, Any]) -> Views:
    """Every set of arcs, and how likely each value shows it, from the public seed."""
    arcs = np.array(design["arcs"]) / 2**32
    truth, number = design["truth"] / 2**32, design["orders"]
    views: Views = defaultdict(lambda: np.zeros(len(arcs)))
    for order in range(number):
        stream = hashlib.shake_256(f"deniable line-ups {design['seed']} {order}".encode()).digest(8 * len(arcs))
        words = [int.from_bytes(stream[8 * x : 8 * x + 8], "little") for x in range(len(arcs))]
        line = sorted(range(len(arcs)), key=lambda x: (words[x], x))
        ends = np.cumsum(arcs[line])
        cuts = np.unique(np.append(np.round(ends % 1, 12) % 1, [0, 1]))
        for low, high in itertools.pairwise(cuts):
            hit = [line[int(np.searchsorted(ends, (low + high) / 2 + turn))] for turn in range(round(ends[-1]))]
            views[tuple(sorted(hit))] += (1 - truth) * (high - low) / number
            views[tuple(sorted(hit))][hit] += truth * (high - low) / arcs[hit] / number
    return views
