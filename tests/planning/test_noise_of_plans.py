"""Predicted errors are means over the noise that plans are made from: in columns of rare values it decides the coin."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.core.histogram import Histogram
from deniable.core.part import COUNT_EPSILON
from deniable.core.privacy import Privacy
from deniable.mechanisms import Identity, Mechanism, Pram, SmallDomain, Uniform
from deniable.planning.candidates import MANY_PLANS, candidate, drawn_plans, errors_of
from deniable.planning.prediction import BySelectivity
from deniable.tables.keys import Keystream, Secret, discrete_laplace

# Ninety values, from half of the rows to three of them; and few values, one of which five rows have.
MANY = Histogram(tuple(range(90)), np.maximum((12_000 / (1 + np.arange(90)) ** 1.9).astype(np.int64), 3))
FEW = Histogram(tuple("abcdefgh"), np.array([9_000, 7_000, 6_000, 5_000, 4_000, 3_000, 900, 5]))
PRIVACY = Privacy("1/3", "1/2")
SOME = 60  # draws of the noise


def measured(mechanism: Mechanism, counts: Histogram, privacy: Privacy = PRIVACY) -> tuple[np.ndarray, np.ndarray]:
    """The errors of plans from fresh noise: their mean, and its standard error."""
    stream, profile = Keystream(Secret.from_key(bytes([9] * 32)), "noise"), BySelectivity(counts)
    errors = []
    for draw in range(SOME):
        noise = discrete_laplace(stream.subkey(str(draw)), counts.m, COUNT_EPSILON)
        public = Histogram(counts.domain, np.maximum(counts.counts + noise, 1))
        errors.append(errors_of(mechanism.plan(counts, privacy, public=public), profile, calibrated=True))
    return np.mean(errors, axis=0), np.std(errors, axis=0) / SOME**0.5


@pytest.mark.parametrize(("mechanism", "counts"), [(Identity(), MANY), (Pram(), MANY), (Pram(), FEW)])
def test_errors_are_means_over_the_noise(mechanism: Mechanism, counts: Histogram) -> None:
    predicted = np.array(candidate(mechanism, counts, PRIVACY, BySelectivity(counts)).errors)
    mean, error = measured(mechanism, counts)
    assert len(drawn_plans(mechanism, counts, PRIVACY)) == MANY_PLANS
    assert np.all(np.abs(predicted - mean) <= 0.1 * mean + 5 * error)
    exact = np.array(errors_of(mechanism.plan(counts, PRIVACY), BySelectivity(counts), calibrated=True))
    assert np.all(exact < 0.8 * mean), "the test would miss plans from exact counts"


def test_one_plan_is_enough_where_the_noise_hardly_matters() -> None:
    assert len(drawn_plans(Uniform(), MANY, PRIVACY)) == 1
    assert len(drawn_plans(Identity(), Histogram(("a", "b", "c"), np.array([4000, 3000, 2500])), PRIVACY)) == 1


def test_cells_are_others_for_every_draw_and_so_are_their_errors() -> None:
    """Thirty values of 700 to 23 rows: some draws of the noise have three times the error of others."""
    counts = Histogram(tuple(range(30)), 700 // (1 + np.arange(30)))
    privacy = Privacy(rho2="1/3")
    predicted = np.array(candidate(SmallDomain(), counts, privacy, BySelectivity(counts)).errors)
    mean, error = measured(SmallDomain(), counts, privacy)
    assert np.all(np.abs(predicted - mean) <= 0.1 * mean + 5 * error)
