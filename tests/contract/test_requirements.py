"""Every mechanism and rival honours what a requirement says, or refuses it: names of values, and the tolerance rule."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core import exact
from deniable.core import lineups as lineup_exact
from deniable.core.errors import RequirementError
from deniable.core.histogram import Histogram
from deniable.mechanisms import MECHANISMS, Decoys, Designed, Identity, Lineup, Mechanism, Pram, Redraw, tolerance

VALUES = list("abcdefgh")
ROWS = Histogram(tuple(VALUES), np.array([60, 58, 55, 52, 50, 48, 40, 37]))
TABLE = pa.table({"v": np.repeat(VALUES, ROWS.counts), "age": np.arange(ROWS.rows) % 40})
NAMES = [name for name in MECHANISMS if name != "items"]  # its values are lists
OWN = {"a": ("1/5", "1/2"), "b": ("1/5", "1/2")}
MISSPELT = {
    "exempt": dn.Privacy("1/5", "1/2", exempt=["aa"]),
    "exempt, any prior": dn.Privacy("1/5", "1/2", exempt=["aa"], adversary="any-prior"),
    "own": dn.Privacy(per_value={**OWN, "bb": ("1/5", "1/2")}),
    "own, any prior": dn.Privacy(per_value={**OWN, "bb": ("1/5", "1/2")}, adversary="any-prior"),
    "exempt beside own": dn.Privacy(per_value=OWN, exempt=["cc"]),
    "exempt beside own, any prior": dn.Privacy(per_value=OWN, exempt=["cc"], adversary="any-prior"),
}
BY_SHARES: dict[str, Mechanism] = {
    "designed": Designed(),
    "identity": Identity(),
    "lineup": Lineup(),
    "pram": Pram(),
    "redraw": Redraw(),
}


def published(name: str, privacy: dn.Privacy) -> Any:
    mechanism = Decoys(leftovers="drop") if name == "decoys" else MECHANISMS[name]()
    return dn.publish(TABLE, sensitive="v", mechanism=mechanism, privacy=privacy, key=bytes(32), domain=VALUES)


@pytest.mark.parametrize("misspelt", MISSPELT)
@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_no_value_is_refused(name: str, misspelt: str) -> None:
    """Or the mechanism refuses such a requirement altogether; it is never passed over."""
    privacy = MISSPELT[misspelt]
    with pytest.raises(dn.DeniableError) as refused:
        published(name, privacy)
    right = dn.Privacy(
        privacy.rho1,
        privacy.rho2,
        adversary=privacy.adversary,
        per_value={value: pair for value, pair in privacy.per_value.items() if value != "bb"},
        exempt=["d"] if privacy.exempt else [],
    )
    try:
        published(name, right)
    except dn.DeniableError:
        return  # such requirements are refused
    assert "is not a value of the sensitive column. Did you mean" in str(refused.value)


def test_a_range_has_no_values_that_could_be_exempt() -> None:
    replace = dn.Replace(low=0, high=50, privacy=dn.Privacy("1/5", "1/2", exempt=[3]))
    with pytest.raises(RequirementError, match="exempt names values"):
        dn.publish(TABLE, mechanism=MECHANISMS["retention"]({"age": replace}))  # type: ignore[call-arg]


def test_theta_is_nothing_without_the_requirements_that_it_made() -> None:
    with pytest.raises(RequirementError, match="theta = 2"):
        dn.Privacy("1/5", "1/2", theta=Fraction(2))


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("theta", ["3/2", 2, 3])
@pytest.mark.parametrize("name", BY_SHARES)
def test_nobody_becomes_more_than_theta_times_as_sure(name: str, theta: Any, noisy: bool) -> None:
    """It was the stated rho2 that some kept, which is the share rounded up, times theta."""
    privacy = tolerance(ROWS, theta)
    public = Histogram(ROWS.domain, ROWS.counts + np.array([1, -1, 0, 1, -1, 0, 1, -1])) if noisy else None
    (part,) = BY_SHARES[name].plan(ROWS, privacy, public=public).parts
    if part.lineups is not None:
        sure = lineup_exact.surest_in_lineups(part.lineups, ROWS.counts)
    else:
        sure = exact.surest(part.cells[0].channel.keep, part.cells[0].channel.replace, ROWS.counts)
    for value, belief in zip(ROWS.domain, sure, strict=True):
        assert belief <= privacy.theta * ROWS.frequency(value)


def test_groups_are_as_large_as_theta_asks() -> None:
    """A value of 37 of 400 rows may be believed at 3.6 x 36 / 400 at most: 1/3, which its rho2 allows, is too much."""
    privacy = tolerance(ROWS, "18/5")
    assert min(map(privacy.own_limit, VALUES)) < Fraction(1, 3) < privacy.per_value["h"][1]
    assert Decoys().size(ROWS, privacy) == 4


@pytest.mark.parametrize("name", BY_SHARES)
def test_theta_for_another_table_is_refused(name: str) -> None:
    other = Histogram(ROWS.domain, ROWS.counts + np.array([9, 9, 9, 9, 9, 9, 9, -20]))
    with pytest.raises(RequirementError, match=r"'h' is less frequent here"):
        BY_SHARES[name].plan(other, tolerance(ROWS, 3), public=other)


def test_pram_stays_invariant_where_coins_are_lowered_for_single_columns() -> None:
    """Coins were halved and replacements were not: published counts were off by 137 of 300 rows."""
    pairs = tuple((first, second) for first in "xy" for second in "12345")
    rows = Histogram(pairs, np.array([300, 40, 40, 40, 40, 30, 60, 60, 60, 60]))
    mechanism = Pram(coin=0.6, coins={("x", "1"): 0.1})
    channel = mechanism.plan(rows, dn.Privacy(rho2="2/3")).cells[0].channel
    assert channel.coins.max() < 0.1  # lowered
    np.testing.assert_allclose(channel.apply(rows.counts), rows.counts, atol=1e-4)
