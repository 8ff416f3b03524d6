"""The audit of line-ups: posteriors over all sets, against brute force, and findings that see a broken design."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core import lineups as lineup_exact
from deniable.core.histogram import Histogram
from deniable.core.lineups import LineUpDesign
from deniable.core.manifest import Manifest
from deniable.mechanisms import Lineup
from deniable.owner.parts import LineUpPosteriors

COUNTS = {"a": 400, "b": 300, "c": 200, "d": 100, "e": 60, "f": 40, "g": 10}


def design_of(privacy: dn.Privacy) -> LineUpDesign:
    design = Lineup().plan(Histogram.of(COUNTS), privacy).parts[0].lineups
    assert design is not None
    return design


def table(rows: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(3)
    shares = np.array(list(COUNTS.values())) / sum(COUNTS.values())
    return pa.table(
        {"age": rng.integers(0, 90, rows), "job": rng.choice(list(COUNTS), rows, p=shares)},
    )


def posteriors(design: LineUpDesign, counts: list[int]) -> list[dict[int, Fraction]]:
    """Pr[x | S] for every set and every value, one by one."""
    every = []
    for state in range(len(design.sets.members)):
        inside, other = lineup_exact.likelihoods(design, state)
        given = dict.fromkeys(range(len(counts)), other)
        given |= dict(zip(design.sets.members[state].tolist(), inside, strict=True))
        seen = sum(counts[x] * weight for x, weight in given.items())
        every.append({x: Fraction(counts[x] * weight, seen) for x, weight in given.items()})
    return every


@pytest.mark.parametrize(
    "privacy", [dn.Privacy(rho2="1/2"), dn.Privacy("1/8", "1/2", adversary="any-prior")], ids=["frequency", "any prior"]
)
def test_beliefs_are_the_extremes_over_all_sets(privacy: dn.Privacy) -> None:
    design, counts = design_of(privacy), list(COUNTS.values())
    every = posteriors(design, counts)
    found = LineUpPosteriors(design.integers(), np.array(counts))
    assert [belief.position for belief in found.beliefs] == list(range(len(counts)))
    for x, belief in enumerate(found.beliefs):
        assert belief.prior == Fraction(counts[x], sum(counts))
        assert belief.highest == max(one[x] for one in every)
        assert belief.lowest == min(one[x] for one in every)
    assert found.amplification == lineup_exact.lineup_amplification(design)


def test_an_audit_lists_what_line_ups_let_people_believe() -> None:
    data = table()
    release = dn.publish(data, sensitive="job", privacy=dn.Privacy(rho2="1/2"), mechanism="lineup", key=bytes(32))
    found = dn.audit(data, release)
    assert found.serious == ()
    assert Fraction(2, 5) < found.parts[0].worst_protected <= Fraction(1, 2)
    assert found.rows is not None
    assert "the line-up" in str(found)
    shown = found.to_dict()["parts"][0]
    assert {one["value"] for one in shown["values"]} == set(COUNTS)


def test_sets_that_are_made_around_5_percent_more_rows_are_a_serious_finding() -> None:
    data = table()
    release = dn.publish(data, sensitive="job", privacy=dn.Privacy(rho2="2/5"), mechanism="lineup", key=bytes(32))
    raw: dict[str, Any] = release.manifest.to_dict()
    design = raw["parts"][0]["lineups"]
    design["truth"] = design["truth"] * 105 // 100 >> 14 << 14
    bolder = dn.Release(Manifest.from_dict(raw), table=release.table)
    (finding,) = dn.audit(data, bolder).serious
    assert finding.what == "upward breach"
    assert "the line-up" in finding.detail


def test_attacks_that_are_not_played_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(2_000)
    release = dn.publish(data, sensitive="job", privacy=dn.Privacy(rho2="1/2"), mechanism="lineup", key=bytes(32))
    monkeypatch.setattr("deniable.owner.scenes.BELIEFS_AT_ONCE", 100)
    found = dn.audit(data, release, attacks=True)
    assert found.attacks == ()
    assert any(finding.what == "attacks" and "none was played" in finding.detail for finding in found.findings)
