"""Laplace: the owner keeps the table and answers counts with noise, until a budget is spent. For comparison only.

Tables are neighbours when they differ in one person's sensitive value: public columns and n are public. A count then
differs by 1 at most, and k answers with discrete Laplace noise, P(z) ~ e^(-epsilon |z| / k), change the odds of any
belief about one person's value by a factor of at most

    gamma = e^epsilon,   so   r <= rho1  becomes at most  r gamma / (1 + r (gamma-1)) <= rho2  iff
    epsilon <= ln( rho2 (1-rho1) / (rho1 (1-rho2)) )                                          (THESIS Thm 1, Eq. 6)

It holds against someone who knows the exact histogram too: exchanging two people's values moves a count by 1 at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

from deniable.core.errors import OptionError, RequirementError, option
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.manifest import Form
from deniable.core.privacy import Privacy, amplification_limit, worst_posterior
from deniable.core.probability import percent
from deniable.core.promise import NoisyAnswers, NoisySums
from deniable.engines.request import Request
from deniable.mechanisms.one_cell import Limits, allowed_amplification, limits_of, pairs_of
from deniable.mechanisms.posterior import rounded_up
from deniable.mechanisms.requirement import DOMAIN, check_histogram, in_its_words, shares_told
from deniable.mechanisms.view import checks_tell, too_close, upper_counts
from deniable.rivals.base import Rival, RivalRelease
from deniable.rivals.laplace.answerer import published_answers
from deniable.rivals.laplace.sums import (
    WHOLE_TABLE,
    least_for_sums,
    most_for_sums,
    require_sums,
    sums_in_words,
    without_sums,
)

EPSILON = 1.0  # where nothing is required
LEAST, MOST = 1e-4, 20.0  # epsilon of one question: what the noise is exact for
MOST_QUESTIONS = 1_000_000
MOST_BUDGET = 500.0  # beyond it gamma has hundreds of digits, and nothing is promised

KEPT = (
    "It holds only as long as the owner keeps the original table and answers every question: there are no rows to hand "
    "over, and whoever gets the table gets everything."
)
PUBLIC = (
    "Public columns and the number of rows are not protected: questions may name them, and they are taken as known."
)
AGAIN = (
    "The budget is counted by the object that answers. Publishing the same table once more starts another budget, and "
    "what both give away adds up."
)
OTHERS = "What is known to go with a person's value in other rows, such as those of a family, is not counted."


@dataclass(frozen=True)
class Laplace(Rival):
    """Counts with discrete Laplace noise, P(z) ~ e^(-epsilon |z| / k), until a budget of k questions is spent.

    Attributes:
        epsilon: the whole budget. Left out: the largest that the requirement allows, the smallest that keeps large
            sums accurate where nothing else is required, or 1 without a requirement.
        questions: how many questions share it, in equal parts.

    >>> import deniable as dn
    >>> from deniable.mechanisms import Laplace
    >>> round(Laplace().budget(dn.Histogram.of({"flu": 9, "hiv": 3}), dn.Privacy(rho1="1/2", rho2="3/4")), 4)
    1.0986
    """

    epsilon: float | None = None
    questions: int = 100
    name: ClassVar[str] = "laplace"
    reveals: ClassVar[str] = "no rows: its owner answers questions until the budget is spent"
    form: ClassVar[Form] = "answers"

    def __post_init__(self) -> None:
        number = self.questions
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST_QUESTIONS:
            raise OptionError(
                f"questions = {number!r} is not allowed: choose a whole number from 1 to {MOST_QUESTIONS:,}. Fix: 100."
            )
        given = self.epsilon
        if given is None:
            return
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= MOST_BUDGET:
            raise OptionError(
                f"epsilon = {given!r} is not allowed: a budget is a number above 0, up to {MOST_BUDGET:g}. "
                "Fix: epsilon=1."
            )
        self._check_share(float(given))

    def budget(self, histogram: Histogram, privacy: Privacy | None, public: Histogram | None = None) -> float:
        """Epsilon of all questions together: as given, if the requirement allows it, or else the largest it allows.

        Args:
            histogram: how many rows hold each value.
            privacy: the requirement; None where nothing is required.
            public: the histogram with noise: the budget is published, and would tell the count that limits it.
        """
        check_histogram(histogram, privacy)
        beliefs = in_its_words(histogram, without_sums(privacy))
        if beliefs is None:
            budget = self._for_sums(privacy) if self.epsilon is None else float(self.epsilon)
            require_sums(privacy, budget, self.questions)
            self._check_share(budget)
            return budget
        limit, coarse = _allowed(histogram, beliefs, public)
        if self.epsilon is None:
            budget = min(self._largest(limit, coarse), most_for_sums(privacy))
            require_sums(privacy, budget, self.questions)
            self._check_share(budget)
            return budget
        require_sums(privacy, float(self.epsilon), self.questions)
        if self.amplification(float(self.epsilon)) > limit:
            raise RequirementError(
                f"epsilon = {self.epsilon:g} is more than the requirement allows: the odds of a belief may grow by a "
                f"factor of {float(limit):.4g} only. Fix: epsilon={self._shown(limit):g}, the largest that works, or "
                "leave it out."
            )
        return float(self.epsilon)

    def _for_sums(self, privacy: Privacy | None) -> float:
        """Where nothing is required of beliefs: the largest budget that keeps small sums uncertain, else the smallest
        that keeps large ones accurate, else 1."""
        if privacy is None:
            return EPSILON
        most = most_for_sums(privacy)
        return most if most < math.inf else least_for_sums(privacy, self.questions)

    def share(self, budget: float) -> float:
        """Epsilon of one question, of a ``budget`` for all."""
        return budget / self.questions

    def amplification(self, budget: float) -> Fraction:
        """gamma = e^epsilon for a ``budget`` over all questions, as they are spent, rounded up in the tenth digit."""
        with localcontext() as context:
            context.prec = 40
            spent = Fraction(self.share(budget)) * self.questions
            grown = (Decimal(spent.numerator) / Decimal(spent.denominator)).exp()
        scale = 10 ** max(9 - grown.adjusted(), 0)
        return Fraction(math.ceil(Fraction(grown) * scale), scale)

    def guarantee(self, histogram: Histogram, privacy: Privacy | None, public: Histogram | None = None) -> Guarantee:
        """What all answers together promise; refused when a requirement asks for more.

        Args:
            histogram, privacy, public: as for ``budget``.
        """
        budget, beliefs = self.budget(histogram, privacy, public), in_its_words(histogram, without_sums(privacy))
        gamma = self.amplification(budget)
        worst = _worst(histogram, beliefs, gamma, public)
        known = "" if beliefs is None else _in_words(beliefs, worst)
        promise = NoisyAnswers(budget, self.questions)
        if privacy is not None and privacy.sums:
            promise = NoisySums(budget, self.questions, privacy.small_sums, privacy.large_sums)
        return Guarantee(
            promises=(promise,),
            adversary="any-prior" if privacy is None else privacy.adversary,
            rho1=None if privacy is None else privacy.rho1,
            rho2=None if privacy is None else privacy.rho2,
            worst=worst,
            gamma=gamma,
            also=sums_in_words(privacy, budget, self.questions),
            not_protected=(
                *((WHOLE_TABLE,) if privacy is not None and privacy.small_sums is not None else ()),
                KEPT,
                self._budget_in_words(budget),
                AGAIN,
                PUBLIC,
                DOMAIN,
                OTHERS,
                *shares_told(histogram, beliefs),
                *(() if beliefs is None else checks_tell(histogram, public)),
                self._cut_in_words(budget),
            ),
            sentence=(
                f"The answers to all {self.questions:,} questions together let the odds of any belief about one "
                f"person's value grow by a factor of at most {_rounded_up(gamma)}.{known}"
            ),
        )

    def published(self, request: Request) -> RivalRelease:
        """Who answers questions about the table of a ``request``; no rows are published."""
        return published_answers(self, request)

    def _largest(self, limit: Fraction, coarse: bool) -> float:
        """ln(limit), so that e^epsilon does not exceed it; three digits where the limit depends on the counts."""
        budget = min(math.log(limit), MOST * self.questions, MOST_BUDGET)
        if coarse:  # mathematics 11.6: no exact count can be read off it
            step = 10.0 ** (math.floor(math.log10(budget)) - 2)
            budget = math.floor(budget / step) * step
        if budget < 0.01:  # nine decimals of gamma are many steps of the loop below, or more than all of the budget
            budget = min(budget, math.log1p(math.floor((limit - 1) * 10**9) / 10**9))
        while self.amplification(budget) > limit:
            budget *= 1 - 1e-11
        return budget

    def _shown(self, limit: Fraction) -> float:
        """The largest budget in the three digits of a message."""
        return float(f"{self._largest(limit, True):.3g}")

    def _check_share(self, budget: float) -> None:
        share = self.share(budget)
        if LEAST <= share <= MOST:
            return
        fewer = int(budget / LEAST)
        if share > MOST:
            fix = f"Fix: epsilon={self.questions:g}."
        elif fewer:
            fix = f"Fix: questions={fewer:,} or fewer."
        else:
            fix = f"Fix: epsilon={LEAST * self.questions:g} or more."
        raise OptionError(
            f"epsilon = {budget:.4g} over {self.questions:,} questions is {share:.3g} for each: allowed are {LEAST:g} "
            f"to {MOST:g}. {fix}"
        )

    def _budget_in_words(self, budget: float) -> str:
        return (
            f"The budget of epsilon {budget:.4g} is for {self.questions:,} questions, and each costs as much however "
            "often it was asked before: without a budget the average of many answers would be the true count."
        )

    def _cut_in_words(self, budget: float) -> str:
        """Noise is made of 64-bit words: within 90/epsilon 2^-64 of the discrete Laplace law for each answer."""
        gone = 180 / self.share(budget) * self.questions * 2.0**-64
        return f"Noise is made of 64-bit random numbers: this holds up to a chance of about {gone:.0e}."


def _rounded_up(gamma: Fraction) -> str:
    """A factor for people: four digits, to the safe side."""
    if gamma > 10**6:
        return f"e^{math.ceil(math.log(gamma))}"
    digits = 10 ** max(3 - math.floor(math.log10(gamma)), 0)
    return f"{math.ceil(gamma * digits) / digits:,.7g}"


def _allowed(histogram: Histogram, privacy: Privacy, public: Histogram | None) -> tuple[Fraction, bool]:
    """The largest amplification that the requirement allows, and whether it depends on the counts."""
    if privacy.adversary == "any-prior":
        return allowed_amplification(privacy), False
    alike: dict[tuple[int, int, int], tuple[Fraction, Fraction, bool]] = {}  # values with the same count and limit
    limits = limits_of(histogram, privacy, public)
    counted = zip(histogram.domain, upper_counts(histogram, public).tolist(), limits, strict=True)
    for value, rows, limit in counted:
        if limit is not None and rows:
            stated, most = privacy.per_value.get(value, (privacy.rho1, limit))
            if (rows, id(most), id(stated)) not in alike:
                prior = Fraction(rows, histogram.rows) if stated is None else stated
                if prior >= most:
                    raise too_close(value, most)
                alike[rows, id(most), id(stated)] = prior, most, stated is None
    if not alike:
        raise RequirementError(
            f"No value that occurs is protected. Fix: raise rho1, or name fewer values in {option('exempt', '')}."
        )
    return min((amplification_limit(prior, limit), coarse) for prior, limit, coarse in alike.values())


def _worst(histogram: Histogram, privacy: Privacy | None, gamma: Fraction, public: Histogram | None) -> Fraction:
    """The largest posterior of a protected value; four digits, rounded up."""
    if privacy is not None and privacy.adversary == "any-prior":
        protected = pairs_of(privacy)
    else:
        limits: Limits = [Fraction(1)] * histogram.m if privacy is None else limits_of(histogram, privacy, public)
        counted = zip(upper_counts(histogram, public).tolist(), limits, strict=True)
        alike = {(rows, id(limit)): (rows, limit) for rows, limit in counted if limit is not None}
        protected = [(Fraction(rows, histogram.rows), limit) for rows, limit in alike.values()]
    posterior = max(worst_posterior(prior, gamma) for prior, _ in protected)
    return min(rounded_up(posterior), max(limit for _, limit in protected))


def _in_words(privacy: Privacy, worst: Fraction) -> str:
    sure = percent(worst if privacy.rho2 is None else privacy.rho2)
    if privacy.rho1 is not None:
        return (
            f" Whoever believed a value at up to {percent(privacy.rho1)} beforehand becomes at most {sure} sure of it."
        )
    return f" Whoever knows only how frequent each value is becomes at most {sure} sure of a protected value."
