"""Floors: line-ups and designed channels that keep an epsilon against any attacker, recomputed from their integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.core.histogram import Histogram
from deniable.core.lineups import COIN, LineUpDesign
from deniable.core.plan import Plan
from deniable.mechanisms import Designed, Lineup
from deniable.planning.prediction import predicted_relative_error

SKEWED = Histogram.of({f"v{rank}": int(20_000 / rank) for rank in range(1, 41)})
PRIVACY = dn.Privacy("1/10", "1/5")


def largest_ratio(plan: Plan) -> Fraction:
    """max Pr[view | x] / Pr[view | x'] over all views and values, from the numbers that rows are drawn by."""
    design = plan.parts[0].lineups
    return _of_sets(design) if design is not None else _of_channel(plan)


def _of_channel(plan: Plan) -> Fraction:
    (cell,) = plan.cells
    keep, replace = ([int(one) for one in numbers] for numbers in (cell.channel.keep, cell.channel.replace))
    whole = sum(replace)
    scale = 2**32
    worst = Fraction(0)
    for y, weight in enumerate(replace):
        shown = [(keep[x] * whole if x == y else 0) + (scale - keep[x]) * weight for x in range(len(keep))]
        worst = max(worst, Fraction(max(shown), min(shown)))
    return worst


def _of_sets(design: LineUpDesign) -> Fraction:
    worst = Fraction(0)
    for hits, length in zip(design.sets.hits.tolist(), design.sets.lengths.tolist(), strict=True):
        outside = (COIN - design.coin) * length
        worst = max(worst, Fraction(design.coin * max(hits) + outside, outside))
    return worst


@pytest.mark.parametrize("epsilon", ["1", "2", "3"])
@pytest.mark.parametrize("kind", [Lineup, Designed])
def test_no_likelihood_is_more_than_e_to_the_epsilon_times_another(kind: type, epsilon: str) -> None:
    plan = kind(epsilon=epsilon).plan(SKEWED, PRIVACY, public=SKEWED)
    assert largest_ratio(plan) == plan.guarantee.gamma
    assert math.log(largest_ratio(plan)) <= float(epsilon)
    assert math.log(largest_ratio(kind().plan(SKEWED, PRIVACY, public=SKEWED))) > 3.3, "without a floor it is more"
    assert plan.options["epsilon"] == epsilon
    assert plan.guarantee.worst <= Fraction(1, 5), "and what is required is kept as before"


@given(
    st.lists(st.integers(1, 5000), min_size=6, max_size=25).filter(lambda rows: max(rows) <= sum(rows) / 5),
    st.sampled_from(["0.7", "1.5", "3"]),
)
@settings(max_examples=30, deadline=None)
def test_any_counts_keep_it(rows: list[int], epsilon: str) -> None:
    counts = Histogram.of({f"v{place}": count for place, count in enumerate(rows)})
    for mechanism in (Lineup(epsilon=epsilon), Designed(epsilon=epsilon)):
        try:
            plan = mechanism.plan(counts, dn.Privacy(rho2="1/2"), public=counts)
        except dn.DeniableError:
            continue
        assert largest_ratio(plan) <= Fraction(math.exp(float(epsilon)))


def test_a_floor_costs_rare_values_little() -> None:
    """As measured on OCC: line-ups of 5 at gamma 151 and 23 have errors of .135 and .156."""
    for kind in (Lineup, Designed):
        free, floored = (
            predicted_relative_error(one.plan(SKEWED, PRIVACY, public=SKEWED), SKEWED)
            for one in (kind(), kind(epsilon=3))
        )
        assert np.all(floored < 1.6 * free)
        tight = predicted_relative_error(kind(epsilon=1).plan(SKEWED, PRIVACY, public=SKEWED), SKEWED)
        assert np.all(tight > floored)


def test_against_any_prior_the_smaller_of_both_is_kept() -> None:
    required = dn.Privacy("1/10", "1/2", adversary="any-prior")  # gamma 9
    loose, tight = (Lineup(epsilon=one).plan(SKEWED, required).guarantee.gamma for one in (5, 1))
    assert loose is not None
    assert tight is not None
    assert Fraction(4) < loose <= 9
    assert math.log(tight) <= 1


def test_a_floor_at_a_terminal_and_what_is_no_epsilon() -> None:
    assert dn.plan(SKEWED, PRIVACY, "lineup:epsilon=3").guarantee.epsilon <= 3
    assert dn.plan(SKEWED, PRIVACY, "designed:epsilon=2.5").guarantee.epsilon <= 2.5
    for wrong in ("none at all", 0, -1, 99):
        with pytest.raises(dn.DeniableError, match="epsilon"):
            Lineup(epsilon=wrong)
        with pytest.raises(dn.DeniableError, match="epsilon"):
            Designed(epsilon=wrong)
