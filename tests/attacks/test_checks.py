"""Plans are made from noisy counts and checked against the exact ones: what that tells is said (mathematics 13.4).

Played by whoever holds the noisy histogram and computes the release of every table that may stand behind it.
"""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.core import lineups as lineup_exact
from deniable.core.histogram import Histogram
from deniable.core.manifest import guarantee_dict
from deniable.core.part import Marginal, part_dict
from deniable.core.sentence import sentence_of
from deniable.mechanisms import (
    Decoys,
    Designed,
    FineGrain,
    Identity,
    Lineup,
    Mechanism,
    Pram,
    Redraw,
    SmallDomain,
    Uniform,
    tolerance,
)
from deniable.mechanisms.base import Scanned
from deniable.mechanisms.lineup import by_frequency
from deniable.mechanisms.requirement import SHARES
from deniable.publishing import parts
from deniable.publishing.parts import Prepared
from deniable.tables.base import Dataset

ROWS = Histogram(tuple("abcdef"), np.array([66, 61, 60, 45, 41, 27]))  # of 300 rows: rho1 = 1/5 is 60 of them
SHOWN = Histogram(ROWS.domain, np.array([67, 60, 60, 46, 40, 27]))  # off by a row at most: no margin is crossed
OWN = dn.Privacy(per_value={"b": ("1/5", "1/2"), "c": ("1/5", "2/5"), "d": ("3/20", "1/3"), "f": ("1/4", "1/2")})
REQUIRED = {
    "rho2": dn.Privacy(rho2="1/2"),
    "rho1": dn.Privacy("1/5", "2/5"),
    "exempt": dn.Privacy(rho2="1/3", exempt=["a"]),
    "rho1 and exempt": dn.Privacy("1/5", "1/2", exempt=["a"]),
    "own": OWN,
    "theta": tolerance(ROWS, 3),
}
MECHANISMS: dict[str, Mechanism] = {
    "uniform": Uniform(),
    "small-domain": SmallDomain(),
    "small-domain, bound": SmallDomain(cost="bound"),
    "small-domain, fine-grain": SmallDomain(channels="fine-grain"),
    "fine-grain": FineGrain(),
    "designed": Designed(),
    "identity": Identity(),
    "lineup": Lineup(),
    "lineup, size": Lineup(size=2),
    "lineup, truth": Lineup(truth="1/4"),
    "pram": Pram(),
    "pram, coin": Pram(coin=0.1),
    "redraw": Redraw(),
}
# Where no check against the exact counts is near its edge here; the others may be lowered by one, and say so.
BY_NOISE_ALONE = [
    *((name, "rho1") for name in ("uniform", "redraw", "pram, coin", "fine-grain", "identity")),
    *((name, "rho1 and exempt") for name in ("uniform", "redraw", "pram, coin", "fine-grain")),
    *((name, "own") for name in ("lineup, size", "redraw", "pram, coin", "pram", "identity", "fine-grain")),
    *((name, "theta") for name in ("designed", "identity", "lineup", "redraw", "fine-grain")),
]
SAID = "computed from the histogram with noise"


def near(rows: Histogram, most: int = 3) -> list[Histogram]:
    """Every table that differs from one by a few rows of two values."""
    moves = [(i, j, k) for i in range(rows.m) for j in range(rows.m) for k in range(1, most + 1) if i != j]
    tables = []
    for i, j, moved in moves:
        counts = rows.counts.copy()
        counts[i], counts[j] = counts[i] - moved, counts[j] + moved
        tables.append(Histogram(rows.domain, counts))
    return tables


def published(mechanism: Mechanism, rows: Histogram, privacy: dn.Privacy | None) -> dict[str, Any] | None:
    """What a manifest says of a table whose noisy histogram is ``SHOWN``; None where it is refused."""
    try:
        plan = mechanism.plan_scanned([Scanned(("v",), rows.rows, rows, public=SHOWN)], privacy)
    except dn.DeniableError:
        return None
    jobs: Any = [SimpleNamespace(part=part, encoder=SimpleNamespace(types=["string"])) for part in plan.parts]
    dataset: Any = SimpleNamespace(bins={}, items={})
    shown = Marginal(tuple(SHOWN.counts.tolist()), 0.5, 7.8)
    release = Prepared(plan, dataset, tuple(jobs), (shown,)).published("value")
    said = guarantee_dict(plan.guarantee)
    return {
        "options": dict(plan.options),
        "parts": [part_dict(part) for part in release],
        "guarantee": {**said, "sentence": sentence_of(release, said["adversary"])},
    }


@pytest.fixture(autouse=True)
def no_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    def items_of(dataset: Dataset) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(parts, "items_of", items_of)


def without_shares(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest but for the sentence that stated requirements are shares of the rows, which says it of itself."""
    lines = [line for line in manifest["guarantee"]["not_protected"] if line != SHARES]
    return {**manifest, "guarantee": {**manifest["guarantee"], "not_protected": lines}}


@pytest.mark.parametrize(("name", "required"), BY_NOISE_ALONE)
def test_a_value_near_its_rho1_is_not_told_by_a_row(name: str, required: str) -> None:
    """One row more or less of any value, across rho1 for some: while no margin is crossed, nothing is different."""
    made = [published(MECHANISMS[name], table, REQUIRED[required]) for table in [ROWS, *near(ROWS, 1)]]
    released = [without_shares(one) for one in made if one is not None]
    assert len(released) > 5
    assert all(one == released[0] for one in released)


@pytest.mark.parametrize("required", REQUIRED)
@pytest.mark.parametrize("name", MECHANISMS)
def test_whatever_depends_on_exact_counts_is_said(name: str, required: str) -> None:
    made = [published(MECHANISMS[name], table, REQUIRED[required]) for table in [ROWS, *near(ROWS)[::4]]]
    released = [one for one in made if one is not None]
    different = [one for one in released if without_shares(one) != without_shares(released[0])]
    for one in different:
        assert any(SAID in line for line in one["guarantee"]["not_protected"])
    if required not in ("own", "theta"):
        assert released


def test_the_sentence_names_the_margins_that_are_used() -> None:
    rows = Histogram(tuple("abc"), np.array([4000, 3000, 2000]))
    said = {
        name: next(line for line in _plan(MECHANISMS[name], rows).guarantee.not_protected if SAID in line)
        for name in ("uniform", "small-domain")
    }
    assert "8, 32, 128, .. rows" in said["uniform"]
    assert "2, 8, 32, .. rows" in said["small-domain"]
    assert not any(SAID in line for line in Uniform().plan(rows, dn.Privacy(rho2="3/5")).guarantee.not_protected)


def _plan(mechanism: Mechanism, rows: Histogram) -> Any:
    return mechanism.plan(rows, dn.Privacy(rho2="3/5"), public=rows)


@pytest.mark.parametrize("required", ["rho1", "exempt", "rho1 and exempt", "own", "theta"])
@pytest.mark.parametrize("name", ["uniform", "fine-grain", "designed", "identity", "lineup, size", "pram", "redraw"])
def test_brute_force_leaves_several_counts_of_every_value(name: str, required: str) -> None:
    """Of a value with a requirement of its own, too; by how many rows ``near`` tables differ, 9 counts are possible."""
    manifest = published(MECHANISMS[name], ROWS, REQUIRED[required])
    if manifest is None:
        assert (name, required) == ("uniform", "own") or required == "theta"
        return
    left = [table for table in near(ROWS, 4) if _same(name, table, required, manifest)]
    for place in range(ROWS.m):
        candidates = {int(table.counts[place]) for table in left} | {int(ROWS.counts[place])}
        assert len(candidates) >= (2 if required == "theta" else 3), (place, candidates)


def _same(name: str, table: Histogram, required: str, manifest: dict[str, Any]) -> bool:
    other = published(MECHANISMS[name], table, REQUIRED[required])
    return other is not None and without_shares(other) == without_shares(manifest)


def test_line_ups_follow_from_noisy_counts_unless_these_break_the_promise() -> None:
    """A design that passes is taken: another one was where some third, with its truth lowered, had a larger error."""
    rows = Histogram(tuple("abcdefgh"), np.array([58, 18, 77, 28, 29, 5, 27, 20]))
    shown = Histogram(rows.domain, np.array([59, 16, 74, 28, 28, 7, 27, 20]))
    privacy = dn.Privacy(rho2="1/2", exempt=["c"])
    limits = [None if value == "c" else privacy.rho2 for value in rows.domain]
    unchecked = by_frequency(np.zeros(rows.m, np.int64), shown.counts, limits, None, None, Fraction(1, 2))
    assert unchecked is not None
    passing = [table for table in near(rows)[::6] if lineup_exact.keeps(unchecked, table.counts, limits)]
    assert len(passing) > 10
    for table in passing:
        design = Lineup().plan(table, privacy, public=shown).parts[0].lineups
        assert design is not None
        assert design.integers() == unchecked.integers()


def test_the_size_of_decoy_groups_tells_no_count() -> None:
    privacy = dn.Privacy(per_value={"b": ("1/5", "1/4"), "c": ("1/5", "1/3"), "f": ("1/4", "1/2")})
    sizes = {Decoys().size(table, privacy, SHOWN) for table in near(ROWS, 1)}
    assert sizes == {4}


def test_a_group_size_that_counts_decide_about_is_said_and_one_that_was_given_is_not() -> None:
    """Whose own rho2 counts, and so c, follows from how frequent they are."""

    def said(mechanism: Mechanism, privacy: dn.Privacy) -> bool:
        plan = mechanism.plan(ROWS, privacy, public=SHOWN)
        return any(SAID in words for words in plan.guarantee.not_protected)

    own = dn.Privacy(per_value={"c": ("1/5", "2/5"), "f": ("1/4", "1/2")})
    assert said(Decoys(leftovers="drop"), own)
    assert not said(Decoys(c=3, leftovers="drop"), own)
    assert not said(Decoys(leftovers="drop"), dn.Privacy(rho2="1/3"))
