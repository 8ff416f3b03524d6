"""A promise says what it is worth to whoever knows or believes anything, in numbers that can be recomputed."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.sentence import odds_grow

ROWS = {"flu": 400, "cold": 350, "gout": 120, "tb": 90, "hiv": 40}
BELIEFS = (0.01, 0.1, 0.5)
ONE_CELL = ("uniform", "fine-grain", "identity", "designed", "lineup")


def stated(sentence: str) -> tuple[float, list[float]]:
    """Epsilon, and what beliefs of 1, 10 and 50 % become."""
    numbers = re.search(
        r"\(epsilon (\S+)\): a belief of 1 % becomes at most (\S+) %, 10 % (\S+) %, 50 % (\S+) %", sentence
    )
    assert numbers, sentence
    epsilon, *grown = map(float, numbers.groups())
    return epsilon, [number / 100 for number in grown]


@pytest.mark.parametrize("mechanism", ONE_CELL)
def test_beliefs_grow_no_further_than_the_sentence_says_and_the_worst_of_them_just_as_far(mechanism: str) -> None:
    plan = dn.plan(ROWS, dn.Privacy(rho1="1/2", rho2="3/5"), mechanism)
    epsilon, grown = stated(plan.guarantee.sentence)
    design = plan.parts[0].lineups
    gamma = float(plan.guarantee.gamma)
    if design is None:
        shown = plan.cells[0].channel.matrix()
        gamma = float((shown[:, :, None] / shown[:, None, :]).max())
    assert epsilon == pytest.approx(math.log(gamma), rel=0.006)
    for before, after in zip(BELIEFS, grown, strict=True):
        worst = before * gamma / (1 - before + before * gamma)
        assert worst - 1e-12 <= after <= worst * 1.01


def test_noisy_counts_that_are_published_are_part_of_the_factor() -> None:
    table = pa.table({"ill": [value for value, rows in ROWS.items() for _ in range(rows)]})
    asked = {"sensitive": "ill", "privacy": dn.Privacy(rho2="3/5"), "mechanism": "uniform", "key": bytes(32)}
    with_counts, without = (dn.publish(table, **asked, marginals=marginals) for marginals in (True, False))
    (more, _), (rows, _) = (stated(one.manifest.guarantee["sentence"]) for one in (with_counts, without))
    cost = with_counts.manifest.parts[0].marginal.cost
    assert more == pytest.approx(with_counts.manifest.guarantee["epsilon"] + cost, rel=0.006)
    assert rows == pytest.approx(without.manifest.guarantee["epsilon"], rel=0.006)


@pytest.mark.parametrize("mechanism", ["small-domain", "decoys:c=2"])
def test_what_rules_values_out_is_said_to_be_unbounded(mechanism: str) -> None:
    plan = dn.plan(ROWS, None if mechanism.startswith("decoys") else dn.Privacy(rho2="3/5"), mechanism)
    assert plan.guarantee.gamma is None
    assert "epsilon unbounded" in plan.guarantee.sentence
    assert "not of sets of values" in plan.guarantee.sentence


def test_sets_of_values_are_promised_where_the_factor_bounds_them_and_nowhere_else() -> None:
    """Of 20 equal values 4 are cancers: a coin that keeps each below 1/3 lets "a cancer" go beyond it."""
    rows = {f"v{number}": 1000 for number in range(20)}
    for required, mechanism, covered in (
        (dn.Privacy(rho2="1/3"), "identity", False),
        (dn.Privacy("1/5", "1/3", adversary="any-prior"), "uniform", True),
    ):
        plan = dn.plan(rows, required, mechanism)
        joint = plan.cells[0].channel.matrix() * plan.cells[0].rows.counts
        of_set = float((joint[:, :4].sum(1) / joint.sum(1)).max())
        assert (of_set <= 1 / 3 + 1e-9) is covered
        assert ("not of sets of values" not in plan.guarantee.sentence) is covered


def test_who_knows_frequencies_knows_not_even_the_public_columns() -> None:
    sentence = dn.plan(ROWS, dn.Privacy(rho2="3/5"), "uniform").guarantee.sentence
    assert "nothing else, not even the public columns of this file" in sentence


@pytest.mark.parametrize("gamma", [Fraction(1), Fraction(12, 5), Fraction(99_999), Fraction(999_999)])
def test_what_beliefs_become_is_rounded_up_and_never_to_certainty(gamma: Fraction) -> None:
    _, grown = stated(odds_grow("It multiplies the odds", gamma))
    for before, after in zip(BELIEFS, grown, strict=True):
        worst = Fraction(str(before)) * gamma / (1 + Fraction(str(before)) * (gamma - 1))
        assert worst <= Fraction(str(after)) + Fraction(1, 10**12)
        assert after < 1
        assert np.isclose(float(worst), after, rtol=0.01)


def test_what_no_digits_tell_from_certainty_is_almost_certain() -> None:
    assert odds_grow("It multiplies the odds", Fraction(10) ** 60).endswith("50 % almost 100 %.")
