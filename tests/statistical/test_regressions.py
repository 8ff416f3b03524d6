"""Coefficients over fresh perturbations of one table: how often their intervals hold what the originals give.

240 releases of each mechanism, 8 numbers each, of which about 5 are independent: some 8,000 in all. The mean of
((estimate - truth) / stderr)^2 is 1 with a standard error of about 0.016: 0.09 is more than 5 of them, and errors
off by 5 % change it by 0.1. Within one mechanism coverage of 1,200 numbers has a standard error of 0.0063 at 95 %.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

import deniable as dn
from deniable import mechanisms

RELEASES, ROWS = 240, 6_000
PRIVACY = dn.Privacy(rho1="2/5", rho2="3/5")
STATE: dict[str, Any] = {"sensitive": "state", "privacy": PRIVACY}
MADE: dict[str, dict[str, Any]] = {
    "uniform": {**STATE, "mechanism": "uniform"},
    "small-domain": {**STATE, "mechanism": "small-domain"},
    "fine-grain": {
        **STATE,
        "privacy": dn.Privacy(per_value={"ill": ("2/5", "4/5"), "odd": ("1/5", "3/5")}),
        "mechanism": "fine-grain",
    },
    "designed": {**STATE, "mechanism": "designed"},
    "line-ups": {**STATE, "mechanism": "lineup"},
    "decoys": {"sensitive": "state", "mechanism": mechanisms.Decoys(c=2)},
    "retention": {
        "mechanism": mechanisms.Retention({"state": dn.Replace(coin=0.5), "sex": dn.Replace(coin=0.7)}),
    },
    "swapped": {"mechanism": mechanisms.Retention({"state": dn.Replace(coin=0.5, replacing="swapping")})},
}


def people(seed: int = 3, effect: float = 0.5) -> pa.Table:
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 80, ROWS), rng.choice(["F", "M"], ROWS)
    ill = rng.random(ROWS) < expit(-1 + 0.02 * (age - 50) + effect * (sex == "M"))
    state = np.where(ill, "ill", rng.choice(["well", "tired", "odd"], ROWS, p=[0.5, 0.3, 0.2]))
    kilos = np.round(60 + 0.1 * (age - 50) + 3 * ill + rng.normal(0, 4, ROWS)).astype(int)
    return pa.table({"age": age, "sex": sex, "state": state, "kilos": kilos})


def asked(release: dn.Release) -> list[dn.Estimate]:
    """Outcome perturbed; regressors perturbed; a correlation."""
    logit = release.logit({"state": "ill"}, ["age", "sex"])
    linear = release.linear("kilos", ["age", {"state": "ill"}, {"state": "odd"}])
    return [*logit.values(), *linear.values(), release.correlation("kilos", {"state": "ill"})]


def errors(name: str) -> tuple[Any, Any]:
    """(estimate - truth) / stderr [releases, numbers], and whether the interval holds the truth."""
    table = people()
    exact = dn.publish(table, mechanism=mechanisms.Retention({"state": dn.Replace(coin=1.0)}), key=bytes(32))
    truth = [one.value for one in asked(exact)]
    off, held = [], []
    for number in range(RELEASES):
        release = dn.publish(
            table, **{"mechanism": "uniform", **MADE[name]}, key=number.to_bytes(32, "big"), shuffle=False
        )
        pairs = list(zip(asked(release), truth, strict=True))
        off.append([(one.value - true) / one.stderr for one, true in pairs])
        held.append([one.low <= true <= one.high for one, true in pairs])
    return np.array(off), np.array(held)


@pytest.mark.long
def test_coefficients_are_covered_as_often_as_they_say():
    squares = {}
    for name in MADE:
        off, held = errors(name)
        assert 0.93 < held.mean() < 0.97, name
        assert np.abs(off.mean(axis=0)).max() < 5.5 / np.sqrt(RELEASES), name
        squares[name] = float((off**2).mean())
    # Rows of a decoy group take what others leave: the errors that are stated for independent rows are a little wide.
    independent = [square for name, square in squares.items() if name != "decoys"]
    assert abs(np.mean(independent) - 1) < 0.09
    assert 0.8 < squares["decoys"] < 1.1


@pytest.mark.long
def test_independent_columns_are_found_dependent_as_often_as_chance_has_it():
    """Fresh tables and fresh draws: the statistic has mean 3 with a standard error of sqrt(6 / 240) = 0.16."""
    found = []
    for number in range(240):
        table = people(number, effect=0.0).slice(0, 2000)
        release = dn.publish(
            table, **{"mechanism": "uniform", **MADE["uniform"]}, key=number.to_bytes(32, "big"), shuffle=False
        )
        found.append(release.chi_square("sex", "state"))
    assert abs(np.mean([one.statistic for one in found]) - 3) < 0.8
    assert 0.004 < np.mean([one.p_value < 0.05 for one in found]) < 0.13
    dependent = dn.publish(people(effect=2.0), **{"mechanism": "uniform", **MADE["uniform"]}, key=bytes(32)).chi_square(
        "sex", "state"
    )
    assert dependent.p_value < 1e-9
