"""Quantiles of perturbed numbers; where a coin keeps everything there is nothing but their order to get wrong."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn

SHARES = (0.1, 0.25, 0.3, 0.5, 0.7, 0.75, 0.9)


def kept(numbers: np.ndarray, high: int) -> dn.Release:
    how = dn.mechanisms.Retention({"pay": dn.Replace(coin=1, low=0, high=high)})
    return dn.publish(pa.table({"pay": numbers}), mechanism=how, key=bytes(32))


def quantile(release: dn.Release, share: float) -> tuple[float, float, float]:
    (row,) = release.sql(f"SELECT QUANTILE_DISC(pay, {share}) AS q FROM release").to_pylist()
    return row["q"], row["q_low"], row["q_high"]


@pytest.mark.parametrize("share", SHARES)
def test_a_share_that_is_reached_exactly_is_not_missed_by_rounding(share: float) -> None:
    """Nine of ten rows are .9 of them, though 9 - .9 * 10 is less than 0 in sums of weights."""
    numbers = np.arange(20)
    exact = float(np.quantile(numbers, share, method="inverted_cdf"))
    value, low, high = quantile(kept(numbers, 30), share)
    assert (value, low) == (exact, exact)
    assert high in (exact, exact + 1)  # a median lies between the two


@pytest.mark.parametrize("share", SHARES)
def test_intervals_hold_the_numbers_between_two_places_that_are_looked_at(share: float) -> None:
    """A thousand numbers are looked at in 200 places."""
    numbers = np.random.default_rng(4).integers(0, 1000, 3_001)
    exact = float(np.quantile(numbers, share, method="inverted_cdf"))
    value, low, high = quantile(kept(numbers, 999), share)
    assert low <= exact <= high
    assert low <= value <= high <= low + 15


def test_groups_that_no_number_can_be_in_have_no_quantile() -> None:
    how = dn.mechanisms.Retention({"pay": dn.Replace(coin=0.5, low=0, high=9)})
    table = pa.table({"town": ["Basel", "Chur"] * 50, "pay": np.arange(100) % 10})
    release = dn.publish(table, mechanism=how, key=bytes(32))
    rows = release.sql("SELECT town, MEDIAN(pay) AS m FROM release WHERE pay > 99 GROUP BY town ORDER BY town")
    assert rows.to_pylist() == [{"town": town, "m": None, "m_low": None, "m_high": None} for town in ("Basel", "Chur")]
