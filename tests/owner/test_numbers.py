"""Single numbers of a range that is audited in intervals: what someone concludes who knows how often each occurs."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import NumberRange, Replace, Requirement
from deniable.mechanisms.retention import Retention
from deniable.owner.findings import Finding
from deniable.owner.parts import about_numbers, surest_numbers

POINTS = 151
S = 2**32
HOW = Replace(coin=0.25, low=0, high=POINTS - 1)


def enumerated(counts: np.ndarray, keep: int, missing: int = 0) -> list[Fraction]:
    """The largest Pr[x | y] of every number over all that can be published, from the integers of the sampler."""
    points = len(counts) + (missing > 0)
    weights = [-(-(y + 1) * S // points) + (-y * S // points) for y in range(points)]
    rows = [*counts.tolist(), *([missing] if missing else [])]
    surest = [Fraction(0)] * points
    for y, weight in enumerate(weights):
        joint = [f * ((S - keep) * weight + (keep * S if x == y else 0)) for x, f in enumerate(rows)]
        surest = [max(old, Fraction(one, sum(joint))) for old, one in zip(surest, joint, strict=True)]
    return surest[: len(counts)]


def finding(table: pa.Table) -> Finding:
    release = dn.publish(table, mechanism=Retention({"pay": HOW}))
    (found,) = [one for one in dn.audit(table, release).findings if one.what == "single numbers"]
    return found


@pytest.mark.parametrize("missing", [0, 30])
def test_the_figure_is_the_largest_of_all_numbers(missing: int) -> None:
    rng = np.random.default_rng(1)
    pay = rng.permutation(POINTS)[:60].tolist() + [77] * 5
    table = pa.table({"pay": pa.array(pay + [None] * missing, pa.int64())})
    found = finding(table)
    surest = max(enumerated(np.bincount(pay, minlength=POINTS), S // 4, missing))
    (said,) = re.findall(r"up to ([\d.]+) % sure", found.detail)
    assert float(said) / 100 == pytest.approx(float(surest), abs=6e-4)
    assert found.grade == "caution"
    (part,) = dn.audit(table, dn.publish(table, mechanism=Retention({"pay": HOW}))).parts
    intervals = max(one.highest for one in part.beliefs if part.domain[one.position] is not None)
    assert intervals < surest - Fraction(1, 10)  # they say far less


def test_a_requirement_holds_for_single_numbers_and_a_larger_coin_breaks_it() -> None:
    counts = np.zeros(POINTS, np.int64)
    counts[:50], counts[50] = 2, 100
    required = Requirement(Fraction(1, 10), Fraction(1, 2))
    for coin, grade in ((0.2, "caution"), (0.6, "serious")):
        grid = NumberRange("integer", 0, POINTS - 1, 1, keep=int(coin * S))
        every, protected = surest_numbers(counts, grid, required)
        exact = enumerated(counts, grid.keep)
        assert float(every.posterior) == pytest.approx(float(max(exact)), abs=1e-9)
        assert float(protected.posterior) == pytest.approx(float(max(exact[:50])), abs=1e-9)
        (found,) = about_numbers("pay", [every, protected])
        assert found.grade == grade
    narrow = Requirement(Fraction(1, 10), Fraction(1, 2), s=Fraction(1, 2))
    assert surest_numbers(counts, grid, narrow)[1].posterior == 0  # numbers that occur are likelier than half


def test_ranges_of_few_points_are_listed_point_by_point() -> None:
    table = pa.table({"pay": list(range(100)) * 3})
    release = dn.publish(table, mechanism=Retention({"pay": Replace(coin=0.5, low=0, high=99)}))
    assert "single numbers" not in {one.what for one in dn.audit(table, release).findings}
