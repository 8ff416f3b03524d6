"""Laplace: the owner keeps the table and answers counts with noise, until a budget is spent.

Tables are neighbours when they differ in one person's sensitive value: public columns and n are public. A count then
differs by 1 at most, and k answers with discrete Laplace noise, P(z) ~ e^(-epsilon |z| / k), change the odds of any
belief about one person's value by a factor of at most

    gamma = e^epsilon,   so   r <= rho1  becomes at most  r gamma / (1 + r (gamma-1)) <= rho2  iff
    epsilon <= ln( rho2 (1-rho1) / (rho1 (1-rho2)) )                                          (THESIS Thm 1, Eq. 6)

It holds against someone who knows the exact histogram too: exchanging two people's values moves a count by 1 at most.

Small sums private, large sums accurate (mathematics 7; SPLU Def. 1, 2): with b = e^(-epsilon/k), large sums are about
one answer,

    Pr[|z| >= h] = 2 b^h / (1 + b),   h = ceil(e f),   which falls as f grows

and small sums about all k together: whoever asks the same count again and again averages the noise out. Let T be any
whole number that is estimated for a count f from all answers by a rule that prefers no count: T - f is as likely to be
anything whatever f is, as for a mean or a median, rounded. A count that is d larger makes no event more than
e^(epsilon d) times as likely. So if T is within w of f with probability q, it is within w of each of f + (2w+1) j with
q a^|j| or more, a = e^(-epsilon (2w+1)); these never happen together, sum_j q a^|j| <= 1, and

    Pr[|T - f| > w] >= 2a / (1 + a),   w = floor(e f)

For a single answer and w = 0 this is what the noise does, exactly: 2/3 at epsilon = ln 2.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

from deniable.core.errors import OptionError, RequirementError
from deniable.core.histogram import Histogram
from deniable.core.privacy import LargeSums, Privacy, SmallSums, amplification_limit, worst_posterior
from deniable.core.promise import Guarantee
from deniable.core.values import percent
from deniable.lab.rival import Answered, Bound, Rival, Setting, generator
from deniable.mechanisms.one_cell import Limits, allowed_amplification, limits_of, pairs_of, rounded_up
from deniable.mechanisms.requirement import check_histogram, in_its_words, too_close
from deniable.planning.pools import QuestionPool
from deniable.planning.prediction import ByPool, Errors, Profile
from deniable.tables.keys import Keystream

EPSILON = 1.0  # where nothing is required
LEAST, MOST = 1e-4, 20.0  # epsilon of one question: what the noise is exact for
MOST_QUESTIONS = 1_000_000
MOST_BUDGET = 500.0  # beyond it gamma has hundreds of digits, and nothing is promised
DIGITS = Decimal(1).scaleb(-12)  # that a tail is rounded to, to the safe side
CLOSER = 1e-12  # by which an epsilon is moved until it holds


@dataclass(frozen=True)
class Laplace(Rival):
    """Counts with discrete Laplace noise, P(z) ~ e^(-epsilon |z| / k), until a budget of k questions is spent.

    Attributes:
        epsilon: the whole budget. Left out: the largest that the requirement allows, the smallest that keeps large
            sums accurate where nothing else is required, or 1 without a requirement.
        questions: how many questions share it, in equal parts.

    >>> import deniable as dn
    >>> from deniable.lab import Laplace
    >>> round(Laplace().budget(dn.Histogram.of({"flu": 9, "hiv": 3}), dn.Privacy(rho1="1/2", rho2="3/4")), 4)
    1.0986
    """

    epsilon: float | None = None
    questions: int = 100
    name: ClassVar[str] = "laplace"
    reveals: ClassVar[str] = "no rows: its owner answers questions until the budget is spent"

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

    def budget(self, histogram: Histogram, privacy: Privacy | None) -> float:
        """Epsilon of all questions together: as given, if the requirement allows it, or else the largest it allows.

        Args:
            histogram: how many rows hold each value.
            privacy: the requirement; None where nothing is required.
        """
        check_histogram(histogram, privacy)
        beliefs = in_its_words(histogram, without_sums(privacy))
        if beliefs is None:
            budget = self._for_sums(privacy) if self.epsilon is None else float(self.epsilon)
            require_sums(privacy, budget, self.questions)
            self._check_share(budget)
            return budget
        limit, coarse = _allowed(histogram, beliefs)
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

    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Bound:
        """What all answers together bound; refused when a requirement asks for more."""
        budget, beliefs = self.budget(histogram, privacy), in_its_words(histogram, without_sums(privacy))
        gamma = self.amplification(budget)
        worst = _worst(histogram, beliefs, gamma)
        known = "" if beliefs is None else _in_words(beliefs, worst)
        return Bound(
            adversary="any-prior" if privacy is None else privacy.adversary,
            rho1=None if privacy is None else privacy.rho1,
            rho2=None if privacy is None else privacy.rho2,
            worst=worst,
            gamma=gamma,
            sentence=(
                f"The answers to all {self.questions:,} questions together let the odds of any belief about one "
                f"person's value grow by a factor of at most {_rounded_up(gamma)}.{known}"
            ),
        )

    def setting(self, label: str, privacy: Privacy) -> Setting:
        return NoisyAnswers(self, privacy, label)

    def errors(self, profile: Profile, privacy: Privacy, bound: Guarantee) -> Errors:
        """E|Z| = 2t / (1 - t^2), t = e^-epsilon, of discrete Laplace noise; the budget is for all questions of a
        profile."""
        t = math.exp(-bound.epsilon / profile.questions)
        return profile.noise(2 * t / (1 - t**2))

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


def _rounded_up(gamma: Fraction) -> str:
    """A factor for people: four digits, to the safe side."""
    if gamma > 10**6:
        return f"e^{math.ceil(math.log(gamma))}"
    digits = 10 ** max(3 - math.floor(math.log10(gamma)), 0)
    return f"{math.ceil(gamma * digits) / digits:,.7g}"


def _allowed(histogram: Histogram, privacy: Privacy) -> tuple[Fraction, bool]:
    """The largest amplification that the requirement allows, and whether it depends on the counts."""
    if privacy.adversary == "any-prior":
        return allowed_amplification(privacy), False
    alike: dict[tuple[int, int, int], tuple[Fraction, Fraction, bool]] = {}  # values with the same count and limit
    limits = limits_of(histogram, privacy, None)
    counted = zip(histogram.domain, histogram.counts.tolist(), limits, strict=True)
    for value, rows, limit in counted:
        if limit is not None and rows:
            stated, most = privacy.per_value.get(value, (privacy.rho1, limit))
            if (rows, id(most), id(stated)) not in alike:
                prior = Fraction(rows, histogram.rows) if stated is None else stated
                if prior >= most:
                    raise too_close(value, most)
                alike[rows, id(most), id(stated)] = prior, most, stated is None
    if not alike:
        raise RequirementError("No value that occurs is protected. Fix: raise rho1, or name fewer values in exempt=.")
    return min((amplification_limit(prior, limit), coarse) for prior, limit, coarse in alike.values())


def _worst(histogram: Histogram, privacy: Privacy | None, gamma: Fraction) -> Fraction:
    """The largest posterior of a protected value; four digits, rounded up."""
    if privacy is not None and privacy.adversary == "any-prior":
        protected = pairs_of(privacy)
    else:
        limits: Limits = [Fraction(1)] * histogram.m if privacy is None else limits_of(histogram, privacy, None)
        counted = zip(histogram.counts.tolist(), limits, strict=True)
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


# -- in an experiment --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noisy(Setting):
    """Laplace's mechanism: true answers with noise of scale 1/epsilon, each question paid for anew (mathematics 9)."""

    epsilon: float
    label: str = "laplace"

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        rng = generator(stream)
        true = pool.true_answers
        begin = time.perf_counter()
        answers = true + rng.laplace(scale=1 / self.epsilon, size=true.shape)
        counts = pool.table.histogram.counts
        histogram = counts + rng.laplace(scale=1 / self.epsilon, size=counts.shape)
        return Answered({"": answers}, {"": histogram}, None, (0.0, time.perf_counter() - begin))

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {"": profile.noise(1 / self.epsilon)}


@dataclass(frozen=True)
class NoisyAnswers(Setting):
    """Laplace's mechanism with the budget that a requirement allows: spent on each question anew, as in SPLU 6, and
    shared by all questions of the pool, as whoever answers them must (mathematics 9)."""

    mechanism: Laplace
    privacy: Privacy
    label: str = "laplace"

    def epsilons(self, pool: QuestionPool) -> dict[str, float]:
        """The epsilon of one question, either way."""
        budget = self.mechanism.budget(pool.table.histogram, self.privacy)
        return {"budget for each": budget, "budget shared": budget / max(len(pool), 1)}

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        either = {name: Noisy(epsilon).run(pool, stream.subkey(name)) for name, epsilon in self.epsilons(pool).items()}
        answers = {name: noisy.answers[""] for name, noisy in either.items()}
        histogram = {name: noisy.histogram[""] for name, noisy in either.items()}
        return Answered(answers, histogram, None, (0.0, sum(noisy.seconds[1] for noisy in either.values())))

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {name: profile.noise(1 / epsilon) for name, epsilon in self.epsilons(profile.pool).items()}


# -- sums --------------------------------------------------------------------------------------------------------------


def without_sums(privacy: Privacy | None) -> Privacy | None:
    """What a requirement says of beliefs; None where it is about sums alone."""
    if privacy is None or not privacy.sums:
        return privacy
    if privacy.rho2 is None and not privacy.per_value:
        return None
    return Privacy(
        privacy.rho1,
        privacy.rho2,
        adversary=privacy.adversary,
        per_value=dict(privacy.per_value),
        exempt=privacy.exempt,
        theta=privacy.theta,
    )


def most_for_sums(privacy: Privacy | None) -> float:
    """The largest budget that keeps small sums uncertain; without them there is no limit."""
    small = None if privacy is None else privacy.small_sums
    return math.inf if small is None else largest_epsilon(small)


def least_for_sums(privacy: Privacy | None, questions: int) -> float:
    """The smallest budget for so many questions that keeps large sums accurate."""
    large = None if privacy is None else privacy.large_sums
    return 0.0 if large is None else smallest_epsilon(large) * questions


def require_sums(privacy: Privacy | None, budget: float, questions: int) -> None:
    """Refuse a budget that breaks what is required of sums."""
    if privacy is None:
        return
    small, large = privacy.small_sums, privacy.large_sums
    if small is not None and (reached := small_reached(small, budget)) < small.at_least:
        raise RequirementError(
            f"epsilon = {budget:.4g} does not keep small sums uncertain: from all answers together they could be told "
            f"so that they are off with probability {float(reached):.3g} only; {float(small.at_least):.3g} is "
            f"required. Fix: epsilon={math.floor(1000 * largest_epsilon(small)) / 1000:g} or less, or leave it out."
        )
    if large is not None and (off := large_reached(large, budget / questions)) > large.at_most:
        fewer = int(budget / smallest_epsilon(large))
        raise RequirementError(
            f"epsilon = {budget:.4g} over {questions:,} questions does not keep large sums accurate: a count of "
            f"{large.above:,} rows is off by {percent(large.error)} with probability {float(off):.3g}; "
            f"{float(large.at_most):.3g} is allowed. Fix: "
            + (f"questions={fewer:,} or fewer, or " if fewer else "")
            + "raise above, error or at_most of large_sums."
        )


def small_reached(sums: SmallSums, epsilon: float) -> Fraction:
    """What every estimate from all answers is off by more than the error with, at the least; rounded down.

    >>> round(float(small_reached(SmallSums(error="0.3", below=3, at_least="0.5"), math.log(2))), 4)
    0.6667
    """
    width = math.floor(sums.error * sums.below)  # the widest of f = 1..alpha, which has the smallest bound
    with localcontext() as context:
        context.prec = 40
        a = (-Decimal(epsilon) * (2 * width + 1)).exp()
        return Fraction((2 * a / (1 + a)).quantize(DIGITS, ROUND_FLOOR))


def large_reached(sums: LargeSums, epsilon: float) -> Fraction:
    """How likely one answer with noise of this epsilon is off by the error, at the threshold; rounded up."""
    with localcontext() as context:
        context.prec = 40
        b = (-Decimal(epsilon)).exp()
        return Fraction((2 * b ** math.ceil(sums.error * sums.above) / (1 + b)).quantize(DIGITS, ROUND_CEILING))


def largest_epsilon(sums: SmallSums) -> float:
    """The largest epsilon of all answers together that keeps small sums uncertain."""
    width = math.floor(sums.error * sums.below)
    epsilon = math.log((2 - sums.at_least) / sums.at_least) / (2 * width + 1)
    while small_reached(sums, epsilon) < sums.at_least:
        epsilon *= 1 - CLOSER
    return epsilon


def smallest_epsilon(sums: LargeSums) -> float:
    """The smallest epsilon of one answer that keeps large sums accurate, by halving: the tail falls with epsilon."""
    low, high = 0.0, 1.0
    while large_reached(sums, high) > sums.at_most:
        low, high = high, 2 * high
    while high - low > CLOSER * high:
        middle = (low + high) / 2
        low, high = (middle, high) if large_reached(sums, middle) > sums.at_most else (low, middle)
    return high
