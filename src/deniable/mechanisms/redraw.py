"""DBR: every value is redrawn from the column's own distribution (mathematics 9; SPLU 6).

    p = 0, r = f/n:   P[y][x] = f_y / n

The column keeps its distribution and loses everything else: published values are independent of the original ones,
so an attacker learns nothing about a person beyond the frequencies, and an analyst nothing about groups of people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from deniable.core.channels import Channel
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.values import Counts
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.one_cell import plan_of_channel, refuse_any_prior
from deniable.mechanisms.requirement import check_histogram, coarse_counts, in_its_words

NOT_USEFUL = "Nothing about groups of rows can be estimated: published values are independent of the original ones."


@dataclass(frozen=True)
class Redraw(Mechanism):
    """Every value redrawn from the coarse histogram, or from the noisy one where that is published (mathematics 9).

        p = 0,    r = f/n

    >>> import deniable as dn
    >>> from deniable.mechanisms import Redraw
    >>> plan = dn.plan({"flu": 700, "gout": 200, "hiv": 100}, mechanism=Redraw())
    >>> plan.guarantee.worst, plan.guarantee.gamma
    (Fraction(7, 10), Fraction(1, 1))
    """

    name: ClassVar[str] = "redraw"
    reveals: ClassVar[str] = "nothing, and nothing can be learned about groups of people"

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """The plan; ``public`` is a noisy histogram that will be published."""
        refuse_any_prior(self.name, privacy)
        check_histogram(histogram, privacy)
        privacy = in_its_words(histogram, privacy)
        weights: Counts = coarse_counts(histogram.counts) if public is None else np.maximum(public.counts, 1)
        channel = Channel.of(histogram.domain, 0.0, weights.astype(np.float64))
        return plan_of_channel(
            self.name,
            histogram,
            privacy,
            channel,
            public=public,
            fix="No channel can do better: it is as frequent as that.",
            options={},
            not_hidden=(NOT_USEFUL,),
        )
