"""Invariant PRAM, the post-randomisation that statistical offices know, in the form of coins (mathematics 9).

    r_y = (1-p_y) f_y / sum_k (1-p_k) f_k    gives    (P f)_y = p_y f_y + r_y sum_k (1-p_k) f_k = f_y

so the published counts of a column estimate the true ones without any reconstruction. Counts in a part of the table do
need it: P f_R = f_R only for parts with the distribution of the whole.

The largest coin that keeps a limit L of value x there is (W, K out of S = 2^32; mathematics 2)

    f (K S + (S-K) W) (1-L) <= L W (S-K) (n-f)   <=>   K <= S W (L n - f) / (f (1-L) (S-W) + L W (n-f))

What is published as another value speaks for x by at most f/n, which is below L already.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from deniable.core.channels import Channel, coarsened, weights_of
from deniable.core.errors import RequirementError, option
from deniable.core.exact import SCALE, distinct
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.values import Counts, Probability, probability
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.one_cell import Limits, limits_of, plan_of_channel, refuse_any_prior
from deniable.mechanisms.requirement import (
    OWN_MARGINS,
    check_histogram,
    in_its_words,
    is_sparse,
    require_values,
    upper_counts,
)

COIN = 0.8  # where nothing is required
EXACT_COUNTS = (
    "The replacing distribution gives the exact count of every value away. Publish the noisy histogram (marginals), "
    "and it is made from that instead."
)
APPROXIMATE = (
    "The channel is invariant for the noisy histogram that is published, so up to its noise for the true counts."
)


@dataclass(frozen=True)
class Pram(Mechanism):
    """Invariant PRAM: published counts estimate the true ones as they are (mathematics 9).

        r_y = (1-p_y) f_y / sum_k (1-p_k) f_k,    so that  P f = f

    Attributes:
        coin: the probability that a value is kept, before replacements that happen to be the same. Left out: the
            largest that meets the requirement; 0.8 where nothing is required or ``coins`` are given.
        coins: other coins for some values.

    >>> import deniable as dn
    >>> from deniable.mechanisms import Pram
    >>> plan = dn.plan({"flu": 700, "gout": 200, "hiv": 100}, mechanism=Pram(coin=0.5))
    >>> plan.cells[0].channel.apply([700, 200, 100]).round(5).tolist()
    [700.0, 200.0, 100.0]
    >>> plan = dn.plan({"flu": 700, "gout": 200, "hiv": 100}, dn.Privacy(rho2="3/4"), Pram())
    >>> plan.cells[0].channel.coins.round(3).tolist()
    [0.167, 0.167, 0.167]
    """

    coin: Probability | None = None
    coins: Mapping[Hashable, Probability] = field(default_factory=dict)
    name: ClassVar[str] = "pram"
    reveals: ClassVar[str] = "rarer values speak louder to those who know more than frequencies"

    def __post_init__(self) -> None:
        if self.coin is not None:
            probability(self.coin, "coin")
        for value, coin in self.coins.items():
            probability(coin, f"coin of {value!r}")

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """The plan; invariant for ``public``, a noisy histogram that will be published, where it is given."""
        refuse_any_prior(self.name, privacy)
        check_histogram(histogram, privacy)
        privacy = in_its_words(histogram, privacy)
        require_values("coins", self.coins, histogram)
        counts: Counts = histogram.counts if public is None else np.maximum(public.counts, 1)
        if public is not None and is_sparse(histogram):
            counts = counts + OWN_MARGINS[0]  # a rare value is replaced a little too often rather than too rarely
        largest = None if privacy is None else _largest(histogram, privacy, counts, public)
        channel = self._channel(histogram, counts, largest)
        options: dict[str, Any] = {"coin": str(Fraction(self._coin(largest)))}
        if self.coins:
            options["coins"] = channel.coins.tolist()
        said = APPROXIMATE if public is not None else EXACT_COUNTS
        return plan_of_channel(
            self.name,
            histogram,
            privacy,
            channel,
            public=public,
            fix=_fix(largest),
            options=options,
            not_hidden=(said,),
            invariant=counts,
        )

    def _channel(self, histogram: Histogram, counts: Counts, largest: Fraction | None) -> Channel:
        """The channel that is invariant for these counts."""
        coins = np.full(histogram.m, float(self._coin(largest)))
        for value, coin in self.coins.items():
            if value in histogram:
                coins[histogram.position(value)] = float(probability(coin, "coin"))
        return Channel.of(histogram.domain, coins, (1 - coins) * counts)

    def _coin(self, largest: Fraction | None) -> Fraction:
        """The coin of most values: as given, or the largest that works."""
        if self.coin is not None:
            return probability(self.coin, "coin")
        if largest is None or self.coins:
            return probability(COIN, "coin")
        if largest == 0:
            raise RequirementError(
                "mechanism 'pram' has no coin that meets the requirement: a value is as frequent as it may become "
                "believed. Fix: raise rho2, or exempt that value."
            )
        return largest


def largest_coin(counts: Counts, n: int, replace: Counts, limits: Limits) -> Fraction:
    """The largest single coin that keeps every posterior at its limit, exactly, for counts up to these of n rows.

    It depends on the data, so it is rounded down to ten bits (mathematics 11.6).

    >>> half = np.array([2**31, 2**31])
    >>> float(largest_coin(np.array([50, 50]), 100, half, [Fraction(3, 4)] * 2))
    0.5
    """
    keep = SCALE - 1
    # Limits by identity, since many values share one; values that are alike are looked at once.
    known = {id(limit): limit for limit in limits}
    shared = np.fromiter(map(id, limits), dtype=np.int64, count=len(limits))
    for f, w, key in distinct(counts, replace, shared).rows:
        limit = known[key]
        if limit is not None and f >= limit * n:
            keep = 0
        elif limit is not None and f > 0:
            room = SCALE * w * (limit * n - f) / (f * (1 - limit) * (SCALE - w) + limit * w * (n - f))
            keep = min(keep, max(int(room), 0))
    return Fraction(int(coarsened(keep)), SCALE)


def _largest(histogram: Histogram, privacy: Privacy, counts: Counts, public: Histogram | None) -> Fraction:
    """The largest single coin that meets the requirement."""
    weights, limits = weights_of(counts.astype(np.float64)), limits_of(histogram, privacy, public)
    return largest_coin(upper_counts(histogram, public), histogram.rows, weights, limits)


def _fix(largest: Fraction | None) -> str:
    if largest is None:
        return ""
    shown = Fraction(int(largest * 1000), 1000)
    if not shown:
        return f"Fix: raise rho2, or choose {option('mechanism', 'designed')}."
    return (
        f"Fix: coin={float(shown):g} for all values, the largest that works here, or {option('mechanism', 'designed')}."
    )
