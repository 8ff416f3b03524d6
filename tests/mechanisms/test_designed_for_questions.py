"""Designed channels for an owner's own questions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.histogram import Histogram, QuestionProfile
from deniable.core.privacy import Privacy
from deniable.mechanisms import Designed, Identity
from deniable.mechanisms.one_cell import pool_error
from deniable.planning.prediction import pool_variance, predicted_error, predicted_relative_error

PRIVACY = Privacy(rho2="1/5")
ROWS = Histogram(tuple(f"v{i:02}" for i in range(30)), np.round(30_000 * 0.9 ** np.arange(30) / 9.576).astype(int))


def about(values: list[int], conditions: int = 40, seed: int = 3) -> QuestionProfile:
    """Questions about single values, in conditions that take a random share of each value's rows."""
    rng = np.random.default_rng(seed)
    by_value = rng.binomial(ROWS.counts, rng.uniform(0.05, 0.9, (conditions, ROWS.m))).astype(float)
    sets = np.eye(ROWS.m, dtype=bool)[values]
    condition, chosen = np.divmod(np.arange(conditions * len(values)), len(values))
    return QuestionProfile(ROWS.domain, by_value, sets, condition, chosen)


def error(mechanism: Designed, profile: QuestionProfile) -> float:
    """The mean predicted relative error, from the plan's own integers."""
    there = profile.truth > 0
    found = predicted_error(pool_variance(mechanism.plan(ROWS, PRIVACY), profile, marginal_variance=0.0))
    return float((found[there] / profile.truth[there]).mean())


@pytest.mark.parametrize("values", [[0, 1, 2], [25, 27, 29]], ids=["frequent", "rare"])
def test_a_channel_for_questions_answers_them_at_least_as_well(values: list[int]) -> None:
    profile = about(values)
    assert error(Designed(profile=profile), profile) <= error(Designed(), profile) * 1.005  # coins are on a grid


def test_questions_about_rare_values_are_worth_asking_for() -> None:
    profile = about([25, 27, 29])
    assert error(Designed(profile=profile), profile) < 0.97 * error(Designed(), profile)


def test_the_error_that_is_minimised_is_the_predicted_one() -> None:
    profile = about(list(range(30)))
    channel = Designed().plan(ROWS, PRIVACY).cells[0].channel
    there = profile.truth > 0
    found = predicted_error(pool_variance(Designed().plan(ROWS, PRIVACY), profile, marginal_variance=0.0))
    relative, n = found[there] / profile.truth[there], ROWS.rows
    means = [relative[profile.truth[there] >= share * n].mean() for share in (0.001, 0.005, 0.01)]
    ours = pool_error(channel.coins, channel.replacing, ROWS.counts.astype(float), profile)
    assert ours == pytest.approx(float(np.exp(np.mean(np.log(means)))), rel=1e-9)


def test_the_requirement_is_met_whatever_is_asked() -> None:
    for values in ([0], [29], list(range(30))):
        plan = Designed(profile=about(values)).plan(ROWS, PRIVACY)
        joint = plan.cells[0].channel.matrix() * ROWS.relative
        assert (joint / joint.sum(1, keepdims=True)).max() <= 0.2
        assert plan.guarantee.worst <= Fraction(1, 5)
        assert any("owner's own questions" in said for said in plan.guarantee.not_protected)


def test_the_release_says_how_many_questions_and_nothing_of_them() -> None:
    values = np.repeat(ROWS.domain, ROWS.counts)
    table = pa.table({"sex": np.where(np.arange(len(values)) % 3 == 0, "F", "M"), "disease": values})
    profile = dn.question_profile(table, sensitive="disease", questions="sdr")
    release = dn.publish(
        table, sensitive="disease", privacy=PRIVACY, mechanism=Designed(profile=profile), key=bytes(32)
    )
    assert release.manifest.options["profile"] == f"{len(profile):,} questions of the owner"
    assert release.manifest.options["replacing"] == "optimised"


def test_the_error_falls_all_the_way_as_rho2_grows() -> None:
    """Coins are capped at max(1/2, rho2): a cap at 1/2 made the error flat above rho2 = 0.6."""
    errors = [
        predicted_relative_error(Designed().plan(ROWS, Privacy(rho2=rho2)), ROWS, (0.01,))[0]
        for rho2 in ("0.2", "0.4", "0.6", "0.8", "0.9")
    ]
    assert all(later < 0.95 * earlier for earlier, later in pairwise(errors))


@pytest.mark.parametrize("rho2", ["0.15", "0.3", "0.6", "0.95"])
def test_identity_perturbation_is_a_member_of_the_family(rho2: str) -> None:
    """So it is never ahead of the designed channel, up to the grid of coins."""
    designed, identity = (
        predicted_relative_error(mechanism.plan(ROWS, Privacy(rho2=rho2)), ROWS)
        for mechanism in (Designed(), Identity())
    )
    assert np.exp(np.log(designed).mean()) <= 1.005 * np.exp(np.log(identity).mean())
