"""Anatomy: groups of rows with l different values, published without saying who has which (SPEC 9; SDR 6.3).

Anatomy perturbs nothing, so it is not a plan of channels: it publishes which group each row is in, and how often each
value occurs in each group. A group has at least l rows and each value at most once, so

    Pr[x | group] = 1 / |group| <= 1/l

Which rows form a group depends on rows and chance; an engine does it. This is what depends on the histogram alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from deniable.core.errors import OptionError, RequirementError
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Counts, Histogram
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.mechanisms.base import WithoutChannels
from deniable.mechanisms.decoy_planning import cut_to_fit
from deniable.mechanisms.requirement import EVERY_RELEASE, check_histogram, protected_values


@dataclass(frozen=True)
class Anatomy(WithoutChannels):
    """Groups with at least l different values, each once.

    >>> Anatomy(l=2).suppressed(Histogram.of({"flu": 9, "gout": 3, "hiv": 2})).tolist()
    [4, 0, 0]
    """

    l: int = 6
    name: ClassVar[str] = "anatomy"

    def __post_init__(self) -> None:
        if isinstance(self.l, bool) or not isinstance(self.l, int) or self.l < 2:
            raise OptionError(f"l = {self.l!r} is not allowed: a group has 2 values or more. Fix: l=6.")

    def suppressed(self, histogram: Histogram) -> Counts:
        """How many rows of each value cannot be published: the fewest, of the most frequent values (SDR 6.3)."""
        check_histogram(histogram)
        counts = histogram.counts
        values = int((counts > 0).sum())
        if values < self.l:
            raise RequirementError(
                f"l = {self.l} is too large: the sensitive column has {values} different values. "
                f"Fix: l={max(values, 2)}."
            )
        cut: Counts = counts - cut_to_fit(counts, self.l)
        return cut

    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Guarantee:
        """What the two tables promise; refused when a requirement asks for more."""
        self._check(histogram, privacy)
        sure = percent(Fraction(1, self.l))
        lost = int(self.suppressed(histogram).sum())
        not_protected = [
            *EVERY_RELEASE,
            f"A row's value is one of the {self.l} or a few more values of its group, which are published: whoever can "
            f"rule some of them out, or knows the values of others in the group, becomes surer than {sure}.",
            "The exact count of every value is published.",
        ]
        if lost:
            share = percent(Fraction(lost, histogram.rows), 2)
            not_protected.append(f"{share} of the rows are left out; they have one of the most frequent values.")
        return Guarantee(
            adversary="frequency",
            rho1=None if privacy is None else privacy.rho1,
            rho2=None if privacy is None else privacy.rho2,
            worst=Fraction(1, self.l),
            gamma=None,
            not_protected=tuple(not_protected),
            sentence=(
                f"An attacker who knows how frequent each value is, and nothing more about a person, becomes at most "
                f"{sure} sure of that person's value: a group has at least {self.l} values, each once."
            ),
        )

    def _check(self, histogram: Histogram, privacy: Privacy | None) -> None:
        if privacy is None:
            return
        if privacy.adversary == "any-prior":
            raise RequirementError(
                "mechanism 'anatomy' cannot withstand adversary 'any-prior': in a group other values are impossible. "
                "Fix: adversary='frequency', or mechanism='uniform'."
            )
        limits = [rho2 for _, rho2 in privacy.per_value.values()]
        if privacy.rho2 is not None and protected_values(histogram, privacy).any():
            limits.append(privacy.rho2)
        needed = max([2, *(-(-limit.denominator // limit.numerator) for limit in limits)])
        if self.l < needed:
            raise RequirementError(
                f"l = {self.l} lets an attacker become {percent(Fraction(1, self.l))} sure, more than rho2 allows. "
                f"Fix: l={needed}."
            )
