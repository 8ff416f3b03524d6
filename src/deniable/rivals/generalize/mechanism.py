"""Generalization: groups of k rows that look alike, with l-diverse values (k-anonymity; l-diversity; Mondrian).

Public values are published as ranges and sets, coarse enough that at least k rows share each combination; the true
sensitive values stand beside them. k-anonymity alone says nothing about the values: a group that agrees gives
everybody in it away. "l different values" is little better, since one of them may have nearly all rows. What bounds
the attacker is the largest share in a group, so that is what l means here:

    Pr[x | group] = (rows of x in the group) / |group| <= 1/l

Where groups are cut depends on rows; an engine does it (Mondrian). This is what depends on the histogram alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from deniable.core.errors import OptionError, TableError
from deniable.core.grouped_sentence import box_sentence
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Counts, Histogram
from deniable.core.manifest import Form
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.core.promise import Groups
from deniable.engines.request import Request
from deniable.mechanisms.requirement import DISTRIBUTION, DOMAIN
from deniable.rivals.base import Rival, RivalRelease
from deniable.rivals.diversity import check_requirement, group_size, grouped_guarantee, rows_to_suppress
from deniable.rivals.generalize.publish import published_boxes

LIMITS = (
    DOMAIN,
    DISTRIBUTION,
    "Public columns are published as ranges and sets: they say who may have taken part, and a narrow range says nearly "
    "as much as the value.",
    "The true values of a group are published: they can be of one kind, which everybody in the group then shares.",
    "Where groups are cut depends on the values themselves, so whoever knows the algorithm learns from cuts that were "
    "not made.",
    "A second release of the same rows, with other options or columns, makes other groups: together they can single a "
    "person out.",
    "The exact count of every value is published, in all and in every group.",
)


@dataclass(frozen=True)
class Generalize(Rival):
    """Groups of at least k rows that look alike, in which no value has more than 1/l of the rows (Mondrian).

    Attributes:
        k: how many rows a group has at least.
        l: a value has at most 1/l of a group's rows; 1 is plain k-anonymity. Published by its name alone, as many as
            rho2 asks for.

    >>> import deniable as dn
    >>> from deniable.mechanisms import Generalize
    >>> Generalize(k=2, l=2).suppressed(dn.Histogram.of({"flu": 9, "gout": 3, "hiv": 2})).tolist()
    [4, 0, 0]
    """

    k: int = 10
    l: int = 6
    name: ClassVar[str] = "generalize"
    reveals: ClassVar[str] = "the exact values of a row's group; public columns only as ranges"
    form: ClassVar[Form] = "boxes"

    def __post_init__(self) -> None:
        for name, value, what, fix in (("k", self.k, "row", 10), ("l", self.l, "value", 6)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise OptionError(
                    f"{name} = {value!r} is not allowed: a group has 1 {what} or more. Fix: {name}={fix}."
                )

    def fitted(self, privacy: Privacy | None) -> Generalize:
        """With as many values in a group as ``privacy`` asks for, and no fewer rows."""
        if privacy is None:
            return self
        return Generalize(max(self.k, group_size(privacy)), group_size(privacy))

    def suppressed(self, histogram: Histogram) -> Counts:
        """How many rows of each value of ``histogram`` cannot be published: the fewest, of the most frequent values."""
        cut = rows_to_suppress(histogram, self.l)
        left = histogram.rows - int(cut.sum())
        if left < self.k:
            raise TableError(
                f"k = {self.k} is larger than the table: {left} rows can be published with l = {self.l}. "
                f"Fix: k={max(left, 1)} or less."
            )
        return cut

    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Guarantee:
        """What groups promise; refused when a requirement asks for more.

        Args:
            histogram: how many rows hold each value.
            privacy: the requirement; None where nothing is required.
        """
        check_requirement(self.name, self.l, 1, histogram, privacy)
        self.suppressed(histogram)
        sure, promise = percent(Fraction(1, self.l)), Groups(self.l, self.k)
        if self.l == 1:
            more = "Whoever knows which group a person is in knows the person's value where the group agrees."
        else:
            more = (
                "Whoever can rule out some values of a group, or knows the values of others in the group, becomes "
                f"surer than {sure}."
            )
        return grouped_guarantee(privacy, histogram, promise, box_sentence(promise), [*LIMITS, more])

    def published(self, request: Request) -> RivalRelease:
        """The rows and their boxes that ``publish`` makes of a ``request``."""
        return published_boxes(self, request)
