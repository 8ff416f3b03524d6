"""Anatomy: groups of rows with l different values, published without saying who has which (mathematics 9; SDR 6.3).

Anatomy perturbs nothing, so it is not a plan of channels: it publishes which group each row is in, and how often each
value occurs in each group. A group has at least l rows and each value at most once, so

    Pr[x | group] = 1 / |group| <= 1/l

Which rows form a group depends on rows and chance; an engine does it. This is what depends on the histogram alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from deniable.core.errors import OptionError
from deniable.core.grouped_sentence import bucket_sentence
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Counts, Histogram
from deniable.core.manifest import Form
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.core.promise import Groups
from deniable.engines.request import Request
from deniable.mechanisms.requirement import EVERY_RELEASE
from deniable.rivals.anatomy.publish import published_groups
from deniable.rivals.base import Rival, RivalRelease
from deniable.rivals.diversity import check_requirement, group_size, grouped_guarantee, rows_to_suppress


@dataclass(frozen=True)
class Anatomy(Rival):
    """Groups with at least l different values, each once: Pr[x | group] <= 1/l (mathematics 9; SDR 6.3).

    Attributes:
        l: how many values a group has at least. Published by its name alone, as many as rho2 asks for.

    >>> import deniable as dn
    >>> from deniable.mechanisms import Anatomy
    >>> Anatomy(l=2).suppressed(dn.Histogram.of({"flu": 9, "gout": 3, "hiv": 2})).tolist()
    [4, 0, 0]
    """

    l: int = 6
    name: ClassVar[str] = "anatomy"
    reveals: ClassVar[str] = "the few values of a row's group, and the exact histogram"
    form: ClassVar[Form] = "buckets"

    def __post_init__(self) -> None:
        if isinstance(self.l, bool) or not isinstance(self.l, int) or self.l < 2:
            raise OptionError(f"l = {self.l!r} is not allowed: a group has 2 values or more. Fix: l=6.")

    def fitted(self, privacy: Privacy | None) -> Anatomy:
        """With as many values in a group as ``privacy`` asks for."""
        return self if privacy is None else Anatomy(group_size(privacy))

    def suppressed(self, histogram: Histogram) -> Counts:
        """How many rows of each value of ``histogram`` cannot be published: the fewest, of the most frequent values."""
        return rows_to_suppress(histogram, self.l)

    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Guarantee:
        """What the two tables promise; refused when a requirement asks for more.

        Args:
            histogram: how many rows hold each value.
            privacy: the requirement; None where nothing is required.
        """
        check_requirement(self.name, self.l, 2, histogram, privacy)
        sure = percent(Fraction(1, self.l))
        not_protected = [
            *EVERY_RELEASE,
            f"A row's value is one of the {self.l} or a few more values of its group, which are published: whoever can "
            f"rule some of them out, or knows the values of others in the group, becomes surer than {sure}.",
            "The exact count of every value is published.",
        ]
        promise = Groups(self.l, self.l)
        return grouped_guarantee(privacy, histogram, promise, bucket_sentence(promise), not_protected)

    def published(self, request: Request) -> RivalRelease:
        """The two tables that ``publish`` makes of a ``request``."""
        return published_groups(self, request)
