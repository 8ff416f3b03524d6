"""Invariant PRAM, the post-randomisation that statistical offices know, in the form of coins (SPEC 9).

    r_y = (1-p_y) f_y / sum_k (1-p_k) f_k    gives    (P f)_y = p_y f_y + r_y sum_k (1-p_k) f_k = f_y

so the published counts of a column estimate the true ones without any reconstruction. Counts in a part of the table do
need it: P f_R = f_R only for parts with the distribution of the whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from deniable.core.channel import Channel
from deniable.core.errors import OptionError, did_you_mean, listing
from deniable.core.histogram import Counts, Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.probability import Probability, probability
from deniable.mechanisms.base import PlansFromPublic
from deniable.mechanisms.baselines.one_cell import limits_of, plan_of_channel
from deniable.mechanisms.requirement import check_histogram

EXACT_COUNTS = (
    "The replacing distribution gives the exact count of every value away. Publish the noisy histogram (marginals), "
    "and it is made from that instead."
)
APPROXIMATE = (
    "The channel is invariant for the noisy histogram that is published, so up to its noise for the true counts."
)


@dataclass(frozen=True)
class Pram(PlansFromPublic):
    """Invariant PRAM.

    Attributes:
        coin: the probability that a value is kept, before replacements that happen to be the same.
        coins: other coins for some values.

    >>> plan = Pram(coin=0.5).plan(Histogram.of({"flu": 700, "gout": 200, "hiv": 100}), None)
    >>> plan.cells[0].channel.apply([700, 200, 100]).round(5).tolist()
    [700.0, 200.0, 100.0]
    """

    coin: Probability = 0.8
    coins: Mapping[Hashable, Probability] = field(default_factory=dict)
    name: ClassVar[str] = "pram"

    def __post_init__(self) -> None:
        probability(self.coin, "coin")
        for value, coin in self.coins.items():
            probability(coin, f"coin of {value!r}")

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """The plan; invariant for ``public``, a noisy histogram that will be published, where it is given."""
        check_histogram(histogram)
        counts: Counts = histogram.counts if public is None else np.maximum(public.counts, 1)
        coins = self._coins(histogram)
        channel = Channel.of(histogram.domain, coins, (1 - coins) * counts)
        options: dict[str, Any] = {"coin": str(probability(self.coin, "coin"))}
        if self.coins:
            options["coins"] = coins.tolist()
        return plan_of_channel(
            self.name,
            histogram,
            privacy,
            channel,
            fix=_fix(histogram, privacy),
            options=options,
            not_hidden=(EXACT_COUNTS if public is None else APPROXIMATE,),
        )

    def _coins(self, histogram: Histogram) -> np.ndarray[Any, np.dtype[np.float64]]:
        unknown = [value for value in self.coins if value not in histogram]
        if unknown:
            raise OptionError(
                f"coins names {listing(unknown)}, which is not a value of the sensitive column."
                + did_you_mean(unknown[0], histogram.domain)
            )
        coins = np.full(histogram.m, float(probability(self.coin, "coin")))
        for value, coin in self.coins.items():
            coins[histogram.position(value)] = float(probability(coin, "coin"))
        return coins


def _fix(histogram: Histogram, privacy: Privacy | None) -> str:
    """The largest single coin that keeps every posterior p + (1-p) f_x/n at its limit (SPEC 5, identity)."""
    if privacy is None:
        return ""
    shares = [Fraction(f, histogram.rows) for f in histogram.counts.tolist()]
    rooms = [
        (limit - share) / (1 - share)
        for share, limit in zip(shares, limits_of(histogram, privacy), strict=True)
        if limit is not None
    ]
    largest = Fraction(int(min(rooms) * 1000), 1000)
    if privacy.adversary == "any-prior" or largest <= 0:
        return "Fix: lower coin, or choose mechanism='uniform'."
    return f"Fix: coin={float(largest):g} for all values, the largest that works here, or mechanism='designed'."
