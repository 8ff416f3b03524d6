"""Problems that the papers leave open, each with what is here for it, measured (THESIS 4.5, 6.2, 6.3)."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import deniable as dn
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms import SmallDomain
from deniable.mechanisms.partitioning import Sums, error_bound
from deniable.planning.pools import CodedTable
from reproduction.five_pools import RHO2
from reproduction.growing import a_growing_table
from reproduction.items import Item, census_table, per_cent
from reproduction.running import Paper, Step
from reproduction.small_domain_series import DELTA
from reproduction.two_columns import two_columns

TITLE = "Open problems of the papers"
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def paper(data: str | Path | None = None, *, draws: int = 0) -> Paper:
    """All of them; how many draws each takes is its own."""
    census = census_table(data)
    steps = (
        Step(lambda: better_partitions(census), 10),
        Step(related_people, 10),
        Step(lambda: two_columns(census), 60),
        Step(lambda: a_growing_table(census), 40),
    )
    return Paper("open-problems", TITLE, steps)


# -- Better partitions than balancing (THESIS 4.5) ---------------------------------------------------------------------

MOVES = 400_000
SPARE = 3  # empty cells that rows may move to


def bound_of_cells(cells: Floats, rows: int, rho2: float) -> Floats:
    """The paper's cost (SDR Eq. 12) of each cell, from its rows by value; 0 of an empty one."""
    size = cells.sum(1)
    values = (cells > 0).sum(1).astype(np.float64)
    sums = Sums(np.maximum(size, 1), np.maximum(cells.max(1), 1), values, size, np.zeros(len(cells)))
    price: Floats = np.where(size > 0, error_bound(sums, rho2, rows, DELTA), 0.0)
    return price


def descended(cells: Floats, rows: int, rho2: float, *, moves: int = MOVES, seed: int = 1) -> Floats:
    """Rows of one value moved from cell to cell, for as long as the sum of the cells' costs falls.

    A move takes all of a value's rows in a cell, as many as make it as frequent as the other cell's most frequent
    value, what it has above its own cell's second most frequent one, or some; so rows are not dealt in balanced groups.
    """
    rng = np.random.default_rng(seed)
    cells = np.concatenate([cells, np.zeros((SPARE, cells.shape[1]))])
    price = bound_of_cells(cells, rows, rho2)
    for value, source, target, kind, share in zip(
        *(rng.integers(most, size=moves) for most in (cells.shape[1], len(cells), len(cells), 4)),
        rng.random(moves),
        strict=True,
    ):
        held = cells[source, value]
        if source == target or held == 0:
            continue
        above = held - np.sort(cells[source])[-2] if held == cells[source].max() else 1.0
        room = cells[target].max() - cells[target, value]
        moved = min(held, (held, max(1.0, math.floor(held * share)), room, above)[kind])
        if moved <= 0:
            continue
        pair = cells[[source, target]]
        pair[:, value] += (-moved, moved)
        new = bound_of_cells(pair, rows, rho2)
        if new.sum() < price[source] + price[target] - 1e-12:
            cells[[source, target]], price[source], price[target] = pair, *new
    return cells[cells.sum(1) > 0]


def no_partition_below(histogram: Histogram, rho2: float) -> float:
    """A number that no partition whatsoever is below.

    Of a cell of share w, m values and largest share r, m r >= 1, the cost is at least a sqrt(w/n) h(r) with
    h(r) = (1-rho2)/(rho2-r) + 1. The most frequent value needs sum w r >= f_max/n, sqrt(w) >= w, and h is convex and
    rises, so that the sum is at least a/sqrt(n) h(f_max/n).
    """
    largest, rows = float(histogram.counts.max()) / histogram.rows, histogram.rows
    return 2 * math.sqrt(math.log(2 / DELTA) / rows) * ((1 - rho2) / (rho2 - largest) + 1)


def better_partitions(census: pa.Table) -> Item:
    """Small-domain's cells, cells after a descent that balances nothing, and what no partition is below."""
    rho2, rows, gained = float(RHO2), [], []
    for number in (2_000, 10_000, 100_000):
        histogram = CodedTable.of(census.slice(0, number), "occupation").histogram
        plan = SmallDomain(cost="bound").plan(histogram, Privacy(None, RHO2))
        place = {value: at for at, value in enumerate(histogram.domain)}
        cells = np.zeros((len(plan.cells), histogram.m))
        for at, cell in enumerate(plan.cells):
            cells[at, [place[value] for value in cell.rows.domain]] = cell.rows.counts
        after = descended(cells, number, rho2)
        ours, best = (float(bound_of_cells(some, number, rho2).sum()) for some in (cells, after))
        gained.append(1 - best / ours)
        least = no_partition_below(histogram, rho2)
        rows.append((f"{number:,}", str(len(cells)), f"{ours:.4f}", str(len(after)), f"{best:.4f}", f"{least:.4f}"))
    return Item(
        "Better partitions than balancing (THESIS 4.5)",
        "The paper's error bound, OCC, rho2 = 1/6: of small-domain's cells; after a descent that moves rows of "
        f"one value from cell to cell while the bound falls, {MOVES:,} tries; and a number that no partition of the "
        "rows is below (from the most frequent value alone).",
        ("rows", "cells", "bound", "cells after the descent", "bound", "no partition is below"),
        tuple(rows),
        None,
        "The thesis asks for optimal solutions. Cells whose rows are not dealt in balanced groups are better by "
        f"{per_cent(min(gained))} to {per_cent(max(gained))}: balancing is not optimal, and little is lost by it. How "
        "far from the best these are remains open: the lower number leaves room, and nobody has a sharper one. The "
        "descent looks at exact counts many times, so that its cells tell them: it is no mechanism.",
    )


# -- Related people (THESIS 6.3, tuple correlations) -------------------------------------------------------------------

TOGETHER = 4
ALIKE = 0.8  # how often a member has the household's value; otherwise one of the table's
SHARES = np.array([0.24, 0.22, 0.2, 0.18, 0.16])
HOUSEHOLDS = 2_000
RELATED = Privacy("1/4", "1/2")
KEYS = 3


def households(seed: int) -> tuple[pa.Table, Ints]:
    """Households whose members mostly have one value, with two public columns; and values by household."""
    rng = np.random.default_rng(seed)
    own = rng.choice(len(SHARES), size=HOUSEHOLDS, p=SHARES)
    others = rng.choice(len(SHARES), size=(HOUSEHOLDS, TOGETHER), p=SHARES)
    values = np.where(rng.random((HOUSEHOLDS, TOGETHER)) < ALIKE, own[:, None], others)
    columns = {
        "household": np.repeat(np.arange(HOUSEHOLDS), TOGETHER),
        "town": np.repeat(rng.integers(6, size=HOUSEHOLDS), TOGETHER),
        "age": rng.integers(4, size=HOUSEHOLDS * TOGETHER),
        "value": np.array(list("abcde"))[values.ravel()],
    }
    return pa.table(columns), values


def prior_of_households() -> tuple[Ints, Floats]:
    """All values that four members can have, and how likely they are together."""
    every = np.array(list(itertools.product(range(len(SHARES)), repeat=TOGETHER)))
    given = ALIKE * np.eye(len(SHARES)) + (1 - ALIKE) * SHARES  # [household's value, member's value]
    likely = np.einsum("h,hi->i", SHARES, np.prod(given[:, every], axis=2))
    return every, likely


def beliefs(likelihood: Floats, every: Ints, prior: Floats) -> Floats:
    """Beliefs in each member's values [households, members, values] from likelihoods [households, assignments]."""
    joint = likelihood * prior
    joint /= joint.sum(1, keepdims=True)
    return np.stack([joint @ (every[:, [place]] == np.arange(len(SHARES))) for place in range(TOGETHER)], axis=1)


def _options(mechanism: str, seed: int, **more: Any) -> dict[str, Any]:
    return {
        "sensitive": "value",
        "domain": list("abcde"),
        "privacy": RELATED,
        "mechanism": mechanism,
        "seed": seed,
    } | more


def seen_by_rows(seed: int) -> Floats:
    """What someone believes who sees the four published values of every household, each perturbed by itself."""
    table, _ = households(seed)
    plan = dn.publish(table, **_options("uniform", seed, shuffle=False, drop=["household"]))
    channel = plan.manifest.parts[0].channels[0].matrix()
    shown = np.array([["abcde".index(value) for value in plan.table["value"].to_pylist()]]).reshape(-1, TOGETHER)
    every, prior = prior_of_households()
    likelihood = np.prod([channel[shown[:, [place]], every[:, place]] for place in range(TOGETHER)], axis=0)
    return beliefs(likelihood, every, prior)


def seen_by_tables(seed: int, *, grouped: bool) -> Floats:
    """What someone believes who knows all other households, and sees the noisy tables of a learned release.

    Rows and parameters follow from the tables and from draws that depend on no value.
    """
    table, values = households(seed)
    household = {"group": "household"} if grouped else {"drop": ["household"]}
    release = dn.publish(table, **_options("synthetic", seed, **household))
    learned = release.manifest.parts[0].learned
    assert learned is not None
    levels = _levels_of(table, learned)
    every, prior = prior_of_households()
    shift = (every[:, :, None] == np.arange(len(SHARES))).astype(np.int64)  # [assignments, members, values]
    truth = np.eye(len(SHARES), dtype=np.int64)[values]  # [households, members, values]
    logged = np.zeros((HOUSEHOLDS, len(every)))
    for one, level in zip(learned.measured, levels, strict=True):
        assert one.counts is not None
        assert one.epsilon is not None
        exact = np.zeros_like(one.counts)
        np.add.at(exact, (level.ravel(), values.ravel()), 1)
        noise = one.counts - exact
        for house in range(HOUSEHOLDS):
            there = level[house]
            for at in np.unique(there):
                members = there == at
                change = shift[:, members].sum(1) - truth[house, members].sum(0)  # [assignments, values]
                logged[house] -= float(one.epsilon) / 2 * np.abs(noise[at] - change).sum(1)
    return beliefs(np.exp(logged - logged.max(1, keepdims=True)), every, prior)


def _levels_of(table: pa.Table, learned: Any) -> list[Ints]:
    """The level of every person [households, members] in each noisy table."""
    codes = []
    for coding in learned.codings:
        column = table[coding.column].to_numpy()
        if coding.ordered:
            codes.append(np.searchsorted(np.array(coding.marks), column, side="right"))
        else:
            codes.append(
                np.array([coding.marks.index(one) if one in coding.marks else len(coding.marks) for one in column])
            )
    stacked = np.stack(codes, axis=1)
    return [one.levels(stacked, learned.sizes).reshape(-1, TOGETHER) for one in learned.measured]


def related_people() -> Item:
    """How many people are believed above what was promised, by someone who knows how households agree."""
    assert RELATED.rho2 is not None
    ways: dict[str, Callable[[int], Floats]] = {
        "uniform, each row by itself": seen_by_rows,
        "learned, each row by itself": lambda seed: seen_by_tables(seed, grouped=False),
        'learned, group="household"': lambda seed: seen_by_tables(seed, grouped=True),
    }
    rows, above = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, seen in ways.items():
            surest = np.concatenate([seen(seed).max(2).ravel() for seed in range(1, KEYS + 1)])
            above[name] = float((surest > float(RELATED.rho2)).mean())
            rows.append((name, per_cent(above[name]), per_cent(float(surest.mean())), per_cent(float(surest.max()))))
    *alone, (_, together) = above.items()
    return Item(
        "Related people (THESIS 6.3)",
        f"Households of {TOGETHER} with the household's value in four of five cases; five values, at most "
        f"{per_cent(float(SHARES.max()), 0)} of the rows each; {HOUSEHOLDS:,} households, {KEYS} keys. Everyone is "
        "promised that no belief of up to 1/4 becomes more than 1/2. Beliefs are those of someone who knows how "
        "households agree; of learned releases also all other households, and the noisy tables.",
        ("release", "people believed above 1/2", "belief in the likeliest value, mean", "largest"),
        tuple(rows),
        None,
        "The thesis calls for it immediately, and quotes that no algorithm can achieve both where correlations are "
        "arbitrary. A promise for a row is none for people whose values follow from each other: "
        f"{', '.join(f'{per_cent(share)} ({name})' for name, share in alone)} are above it. Where a column names who "
        f"belongs together, the budget is the group's: {per_cent(together)}. Correlations that no column names stay "
        "open.",
        draws=KEYS,
    )
