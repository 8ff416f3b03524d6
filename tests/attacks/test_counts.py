"""Nothing exact in a manifest: counts cannot be recovered from it by brute force (mathematics 13.4).

The attacker knows the software, the options, the number of rows and the noisy histogram, and tries every table near the
true one: which of them would have been published with this manifest? Of each value several counts must remain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, Plan
from deniable.core.promise import to_dict
from deniable.mechanisms import MECHANISMS, Lineup

NEAR = 4  # rows that are moved from one value to another
LONG = pytest.mark.long
MECHANISM_NAMES = ["uniform", "small-domain", "fine-grain", "designed", "identity", "lineup", "pram", "redraw"]


def told(plan: Plan) -> str:
    """All that a manifest says of a plan."""
    parts = [
        (
            [
                (plan.positions(cell).tolist(), cell.channel.keep.tolist(), cell.channel.replace.tolist())
                for cell in part.cells
            ],
            repr(part.lineups and (part.lineups.size, part.lineups.truth, part.lineups.arcs.tolist())),
        )
        for part in plan.parts
    ]
    stated: Any = plan.guarantee
    said = [stated.gamma, stated.rho1, stated.rho2, stated.also, stated.not_protected]
    return repr((parts, [to_dict(promise) for promise in stated.promises], said))


def _channel(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    return cell.channel.keep, cell.channel.replace


def tables_near(rows: Histogram) -> list[Histogram]:
    """Every table that differs from one by a few rows of two values."""
    found = []
    for i in range(rows.m):
        for j in range(rows.m):
            for moved in range(1, NEAR + 1):
                counts = rows.counts.copy()
                counts[i] -= moved
                counts[j] += moved
                if i != j and counts.min() > 0:
                    found.append(Histogram(rows.domain, counts))
    return found


def noisy(rows: Histogram, seed: int) -> Histogram:
    rng = np.random.default_rng(seed)
    q = np.exp(-0.5)
    noise = rng.geometric(1 - q, rows.m) - rng.geometric(1 - q, rows.m)
    return Histogram(rows.domain, np.maximum(rows.counts + noise, 1))


@pytest.mark.parametrize("n", [pytest.param(30, marks=LONG), 300, pytest.param(10_000, marks=LONG)])
@pytest.mark.parametrize("name", MECHANISM_NAMES)
def test_brute_force_leaves_several_counts_of_every_value(name: str, n: int) -> None:
    shares = np.array([0.28, 0.22, 0.2, 0.18, 0.12])
    rows = Histogram(tuple("abcde"), np.rint(shares * n).astype(np.int64))
    privacy = dn.Privacy(rho2="3/5") if n > 30 else dn.Privacy(rho2="4/5")
    mechanism = Lineup(size=2) if name == "lineup" else MECHANISMS[name]()
    published = 0
    for seed in range(3):
        public = noisy(rows, seed)
        try:
            manifest = told(mechanism.plan(rows, privacy, public=public))
        except dn.DeniableError:
            continue  # noise left no room, and nothing is published
        published += 1
        left = [table for table in tables_near(rows) if _same(mechanism, table, privacy, public, manifest)]
        for place in range(rows.m):
            candidates = {int(table.counts[place]) for table in left} | {int(rows.counts[place])}
            assert len(candidates) >= 3, (name, n, seed, place, candidates)
    assert published >= 2


def _same(mechanism: Any, table: Histogram, privacy: dn.Privacy, public: Histogram, manifest: str) -> bool:
    try:
        return told(mechanism.plan(table, privacy, public=public)) == manifest
    except dn.DeniableError:
        return False


@pytest.mark.parametrize("name", ["uniform", "small-domain", "designed", "pram"])
def test_the_attack_reads_counts_off_a_plan_that_was_made_from_them(name: str) -> None:
    """The attack has teeth: without a noisy histogram the most frequent value's count is pinned down."""
    rows = Histogram(tuple("abcde"), np.array([41, 20, 14, 13, 12]))
    privacy = dn.Privacy(rho2="3/5")
    mechanism = MECHANISMS[name]()
    manifest = told(mechanism.plan(rows, privacy))
    left = []
    for table in tables_near(rows):
        try:
            if told(mechanism.plan(table, privacy)) == manifest:
                left.append(int(table.counts[0]))
        except dn.DeniableError:
            continue
    assert set(left) <= {41}


def test_a_release_plans_from_noisy_counts_whether_or_not_it_publishes_them() -> None:
    table = pa.table({"d": ["a"] * 400 + ["b"] * 350 + ["c"] * 250})
    for marginals in (None, False):
        coins = {
            dn.publish(
                table,
                sensitive="d",
                privacy=dn.Privacy(rho2="3/5"),
                key=bytes([k] * 32),
                marginals=marginals,
                mechanism="uniform",
            )
            .manifest.parts[0]
            .coin
            for k in range(8)
        }
        assert len(coins) > 1  # the same table, other noise, other coins
