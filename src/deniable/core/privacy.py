"""What an owner requires: how sure an attacker may become, which attacker is meant, and which sums stay private
(mathematics 2, 7).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from deniable.core.errors import RequirementError, did_you_mean, listing, option, shortened
from deniable.core.values import Floats, Probability, percent, probability

# -- Small sums private, large sums accurate: what decoy groups of size c promise of counts (mathematics 2, 7; SPLU Def.
# 1, 2).
#
# A value with f rows is published by f' ~ Binomial(c f, 1/c) rows, exactly, so both promises are binomial tails:
#
#     small:  Pr[|f' - f| >  e f] >= T_P  for every f = 1..alpha       (SPLU Lemma 2)
#     large:  Pr[|f' - f| >= e f] <= T_E  for every f >= T_f
#
# A deviation of exactly e f counts against the promise in both, so they hold whichever way the definitions are read.


LARGEST_SMALL_SUM = 1000
SMALLEST_ERROR = Fraction(1, 100)
EXACT_TRIALS = 4000  # binomials of up to this many trials are summed in whole numbers
MARGIN = 1e-9  # beyond, floating-point tails must clear a limit by this much; their own error is below 1e-10


@dataclass(frozen=True, init=False)
class SmallSums:
    """Counts of a few rows must stay uncertain: Pr[|f' - f| > e f] >= T_P for every f = 1..alpha (SPLU Def. 1).

    Attributes:
        error: e, the share that a count must be off by.
        below: alpha, the largest small count, in rows.
        at_least: T_P, the probability that it is off by more.

    >>> import deniable as dn
    >>> promise = dn.SmallSums(error=0.3, below=3, at_least=0.6)
    >>> promise.holds(c=10), float(round(promise.reached(c=10), 4))
    (True, 0.6126)
    """

    error: Fraction
    below: int
    at_least: Fraction

    def __init__(self, error: Probability = "0.3", below: int = 3, at_least: Probability = "0.6") -> None:
        if isinstance(below, bool) or not isinstance(below, int) or not 1 <= below <= LARGEST_SMALL_SUM:
            raise RequirementError(
                f"below = {below!r} is not allowed: the largest small sum is a whole number from 1 to "
                f"{LARGEST_SMALL_SUM:,}. Fix: below=3."
            )
        object.__setattr__(self, "error", probability(error, "error"))
        object.__setattr__(self, "below", below)
        object.__setattr__(self, "at_least", probability(at_least, "at_least"))

    def reached(self, c: int) -> Fraction:
        """min over f = 1..alpha of Pr[|f' - f| > e f], for decoy groups of size ``c`` (SPLU Lemma 2)."""
        return min(miss(f, c, self.error, strictly=True) for f in range(1, self.below + 1))

    def holds(self, c: int) -> bool:
        """Whether decoy groups of size ``c`` keep the promise; stops at the first count that breaks it."""
        return all(
            miss(f, c, self.error, strictly=True) >= self.at_least + _margin(f, c) for f in range(1, self.below + 1)
        )

    def __str__(self) -> str:
        return (
            f"a sum of 1 to {self.below} rows is off by more than {percent(self.error)} with probability "
            f"{percent(self.at_least)} or more"
        )

    def sentence(self, c: int) -> str:
        """The promise as it is kept at group size ``c``, with the exact tail."""
        return (
            f"The published number of rows of a value that 1 to {self.below} rows have is off by more than "
            f"{percent(self.error)} with probability at least {_down(self.reached(c))} (exact binomial tail)."
        )

    def to_dict(self) -> dict[str, object]:
        """As the manifest has it."""
        return {"error": str(self.error), "below": self.below, "at_least": str(self.at_least)}


@dataclass(frozen=True, init=False)
class LargeSums:
    """Counts of many rows must stay accurate: Pr[|f' - f| >= e f] <= T_E for every f >= T_f (SPLU Def. 2).

    Attributes:
        error: e, the share that a count may not be off by.
        above: T_f, the smallest large count, in rows.
        at_most: T_E, the probability that it is off by as much.

    >>> import deniable as dn
    >>> dn.LargeSums(error=0.1, above=1000, at_most=0.05).holds(c=5)
    True
    """

    error: Fraction
    above: int
    at_most: Fraction

    def __init__(self, error: Probability = "0.1", above: int = 1000, at_most: Probability = "0.05") -> None:
        exact = probability(error, "error")
        if exact < SMALLEST_ERROR:
            raise RequirementError(
                f"error = {error} is not allowed for large sums: the smallest is {float(SMALLEST_ERROR)}. "
                "Fix: ask for a larger error, or publish with a mechanism that has error bars."
            )
        if isinstance(above, bool) or not isinstance(above, int) or above < 1:
            raise RequirementError(f"above = {above!r} is not a whole number of rows, 1 or more. Fix: above=1000.")
        object.__setattr__(self, "error", exact)
        object.__setattr__(self, "above", above)
        object.__setattr__(self, "at_most", probability(at_most, "at_most"))

    def reached(self, c: int) -> Fraction:
        """Pr[|f' - f| >= e f] at the threshold itself, f = T_f, for decoy groups of size ``c``."""
        return miss(self.above, c, self.error, strictly=False)

    def holds(self, c: int) -> bool:
        """Whether every f >= T_f keeps the promise in decoy groups of size ``c``.

        From some f* on, Chernoff's bound, which only falls, is below the limit; up to there each tail is summed.
        """
        last = max(self.above, _chernoff_from(c, self.error, self.at_most))
        counts = range(self.above, last + 1)
        return all(miss(f, c, self.error, strictly=False) <= self.at_most - _margin(f, c) for f in counts)

    def __str__(self) -> str:
        return (
            f"a sum of {self.above:,} rows or more is off by {percent(self.error)} or more with probability "
            f"{percent(self.at_most)} or less"
        )

    def sentence(self, c: int) -> str:
        """The promise as it is kept at group size ``c``, with the exact tail and its explanation."""
        return (
            f"The published number of rows of a value that {self.above:,} rows or more have is off by "
            f"{percent(self.error)} or more with probability at most {percent(self.at_most)} (exact binomial tail; at "
            f"{self.above:,} rows {_up(self.reached(c))}, by Chebyshev's inequality at most "
            f"{_up(chebyshev(self.above, c, self.error))})."
        )

    def to_dict(self) -> dict[str, object]:
        """As the manifest has it."""
        return {"error": str(self.error), "above": self.above, "at_most": str(self.at_most)}


def miss(f: int, c: int, error: Fraction, *, strictly: bool) -> Fraction:
    """Pr[|f' - f| >= e f], or > where ``strictly``, for f' ~ Binomial(c f, 1/c).

    In whole numbers up to c f = 4000; beyond in floating point, given as the fraction that the float is.

    >>> float(round(miss(5, 10, Fraction(3, 10), strictly=True), 2))
    0.48
    """
    away = error * f
    width = math.floor(away) if strictly else math.ceil(away) - 1  # |f' - f| <= width is no miss
    low, high = max(f - width, 0), min(f + width, c * f)
    if low > high:
        return Fraction(1)
    return 1 - _within(f, c, low, high) if c * f <= EXACT_TRIALS else Fraction(1 - _within_float(f, c, low, high))


def chebyshev(f: int, c: int, error: Fraction) -> Fraction:
    """Chebyshev's bound on Pr[|f' - f| >= e f]: (1 - 1/c) / (e^2 f), at most 1 (mathematics 11.1).

    SPLU Theorem 3 and Lemma 1 say 1 / (c e^2 f^2): they divide by the number of trials twice.
    """
    return min(Fraction(1), (1 - Fraction(1, c)) / (error * error * f))


@lru_cache(maxsize=4096)
def _within(f: int, c: int, low: int, high: int) -> Fraction:
    """Pr[low <= f' <= high] in whole numbers: C(N, x) (c-1)^(N-x) out of c^N, N = c f."""
    trials = c * f
    term = math.comb(trials, low) * (c - 1) ** (trials - low)
    total = 0
    for x in range(low, high + 1):
        total += term
        term = term * (trials - x) // ((x + 1) * (c - 1))
    return Fraction(total, c**trials)


def _within_float(f: int, c: int, low: int, high: int) -> float:
    """The same by logarithms: the largest term by lgamma, the others relative to it."""
    trials = c * f
    x = np.arange(low, high)
    steps = np.log((trials - x) / ((x + 1.0) * (c - 1)))
    logs: Floats = np.concatenate(([0.0], np.cumsum(steps))) - float(steps[: f - low].sum())
    return min(1.0, math.exp(_log_at_mean(f, c)) * float(np.exp(logs).sum()))


def _log_at_mean(f: int, c: int) -> float:
    """ln Pr[f' = f], by Stirling's series of the three factorials: lgamma itself would lose digits at large c f.

    ln N! = N ln N - N + ln(2 pi N)/2 + s(N); the first terms cancel at the mean.
    """
    trials, rest = c * f, (c - 1) * f
    return (
        0.5 * math.log(trials / (2 * math.pi * f * rest))
        + _stirling_rest(trials)
        - _stirling_rest(f)
        - _stirling_rest(rest)
    )


def _stirling_rest(n: int) -> float:
    """s(n) = ln n! - (n ln n - n + ln(2 pi n)/2); exactly for small n, else 1/12n - 1/360n^3 + 1/1260n^5."""
    if n < 64:
        return math.lgamma(n + 1) - (n * math.log(n) - n + 0.5 * math.log(2 * math.pi * n))
    return 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5)


def _chernoff_from(c: int, error: Fraction, limit: Fraction) -> int:
    """The first f from which Chernoff's bound of both tails stays at or below ``limit``.

    Pr[f' >= (1+e) f] <= exp(-c f D((1+e)/c || 1/c)), and likewise below; both exponents are linear in f.
    """
    e = float(error)
    rates = [rate for rate in (_divergence((1 + e) / c, 1 / c), _divergence((1 - e) / c, 1 / c)) if rate < math.inf]
    slowest = c * min(rates)
    return math.ceil(math.log(2 / float(limit)) / slowest) + 1


def _divergence(a: float, b: float) -> float:
    """Kullback-Leibler divergence of two coins; infinite where a is impossible."""
    if a > 1:
        return math.inf
    return sum(x * math.log(x / y) for x, y in ((a, b), (1 - a, 1 - b)) if x > 0)


def _margin(f: int, c: int) -> Fraction:
    return Fraction(0) if c * f <= EXACT_TRIALS else Fraction(MARGIN)


def _down(value: Fraction) -> str:
    """Three digits of a percentage, rounded down."""
    return f"{math.floor(value * 1000) / 10:g} %"


def _up(value: Fraction) -> str:
    """Two significant digits of a percentage, rounded up."""
    digits = max(0, 1 - math.floor(math.log10(100 * value))) if value > 0 else 0
    return f"{math.ceil(100 * value * 10**digits) / 10**digits:g} %"


# -- What an owner requires: how sure an attacker may become, and which attacker is meant (mathematics 2) --------------


Adversary = Literal["frequency", "any-prior"]
ADVERSARIES: tuple[Adversary, ...] = get_args(Adversary)


@lru_cache(maxsize=4096, typed=True)  # of many values few are different
def amplification_limit(rho1: Fraction, rho2: Fraction) -> Fraction:
    """The largest amplification gamma that keeps (rho1, rho2)-privacy (THESIS Thm 1, Eq. 6).

        gamma = rho2 (1 - rho1) / (rho1 (1 - rho2))

    >>> amplification_limit(Fraction(1, 5), Fraction(1, 4))
    Fraction(4, 3)
    """
    return rho2 * (1 - rho1) / (rho1 * (1 - rho2))


@lru_cache(maxsize=4096, typed=True)  # of many values few are different
def worst_posterior(prior: Fraction, gamma: Fraction) -> Fraction:
    """What a belief of ``prior`` can grow to at an amplification of at most gamma: r gamma / (1 + r (gamma - 1)).

    >>> worst_posterior(Fraction(1, 5), Fraction(4, 3))
    Fraction(1, 4)
    """
    return prior * gamma / (1 + prior * (gamma - 1))


def largest_prior(rho2: Fraction, gamma: Fraction) -> Fraction:
    """The strongest prior belief that an amplification of gamma keeps at or below rho2; inverse of ``worst_posterior``.

    >>> largest_prior(Fraction(1, 4), Fraction(4, 3))
    Fraction(1, 5)
    """
    return rho2 / (rho2 + gamma * (1 - rho2))


@dataclass(frozen=True, init=False, repr=False)
class Privacy:
    """How sure an attacker may become of one person's value.

    Attributes:
        rho1: beliefs up to rho1 are protected. Left out: every value of the table is protected, and rho1 is the
            largest relative frequency of a protected value.
        rho2: how sure an attacker may become of a protected value after seeing the release.
        adversary: ``"frequency"``: the attacker's prior of a value is its relative frequency in the table (the papers'
            model). ``"any-prior"``: whatever the attacker believed, up to rho1.
        per_value: for fine-grain requirements: value -> (rho1, rho2). Values that are not named are exempt.
        exempt: values that need no protection, whatever their frequency.
        small_sums: which counts must be uncertain, and how much (SPLU Def. 1). Decoy groups promise that, and answers
            with noise (``laplace``).
        large_sums: which counts must be accurate, and how much (SPLU Def. 2); likewise.
        theta: the rule that per_value was made by (``deniable.mechanisms.designed``): nobody may become more than
            theta times as sure of a value as its share of the rows.
        epsilon: instead of rho1 and rho2, against any prior: the odds of no statement about a person grow by more than
            e^epsilon. rho1 is then 10 %, and rho2 what such odds make of it.

    >>> import deniable as dn
    >>> privacy = dn.Privacy(rho1="1/13", rho2="1/6")
    >>> privacy, privacy.gamma
    (Privacy(rho1='1/13', rho2='1/6'), Fraction(12, 5))
    >>> print(privacy)
    an attacker who knows the distribution and believes a value at up to 7.69 % may not become surer than 16.7 %
    >>> sorted(dn.Privacy(per_value={"hiv": ("1/100", "1/50"), "flu": (0.3, 0.6)}).per_value)
    ['flu', 'hiv']
    """

    rho1: Fraction | None
    rho2: Fraction | None
    adversary: Adversary
    per_value: Mapping[Hashable, tuple[Fraction, Fraction]]
    exempt: frozenset[Hashable] = field(default_factory=frozenset)
    small_sums: SmallSums | None = None
    large_sums: LargeSums | None = None
    theta: Fraction | None = None
    budget: ClassVar[Fraction | None] = None  # of the object, beside its fields: rho1 and rho2 say the same

    def __init__(
        self,
        rho1: Probability | None = None,
        rho2: Probability | None = None,
        *,
        adversary: Adversary = "frequency",
        per_value: Mapping[Hashable, tuple[Probability, Probability]] | None = None,
        exempt: Iterable[Hashable] = (),
        small_sums: SmallSums | None = None,
        large_sums: LargeSums | None = None,
        theta: Fraction | None = None,
        epsilon: Probability | None = None,
    ) -> None:
        problems: list[str] = []
        budget = None
        if epsilon is not None:
            budget = _budget(epsilon, given=[one for one in (rho1, rho2, per_value, small_sums, large_sums) if one])
            rho1, rho2, adversary = USUAL_BELIEF, worst_posterior(USUAL_BELIEF, gamma_below(budget)), "any-prior"

        def read(value: Probability, name: str) -> Fraction | None:
            try:
                return probability(value, name)
            except RequirementError as problem:
                problems.append(str(problem))
                return None

        first = None if rho1 is None else read(rho1, "rho1")
        second = None if rho2 is None else read(rho2, "rho2")
        if first is not None and second is not None and first >= second:
            problems.append(_not_below("rho1", rho1, "rho2", rho2))
        if rho2 is None and not per_value and (rho1 is not None or (small_sums is None and large_sums is None)):
            problems.append(
                f"rho2 is missing: say how sure an attacker may become, for example {option('rho2', '1/6')}."
            )
        problems += _not_sums(small_sums, large_sums)
        if theta is not None and not per_value:
            problems.append(
                f"{option('theta')} = {theta} is the rule that per_value was made by, and there is none. Fix: "
                "privacy=tolerance(counts, theta), or leave theta out."
            )
        if per_value and (rho1 is not None or rho2 is not None):
            problems.append(
                "per_value excludes rho1 and rho2: it says what each value needs, and a value that it does not name is "
                "exempt. Fix: name every value that must be protected in per_value, or leave per_value out."
            )
        if adversary not in ADVERSARIES:
            known = " or ".join(repr(name) for name in ADVERSARIES)
            problems.append(
                f"adversary = {adversary!r} is not known: choose {known}.{did_you_mean(adversary, ADVERSARIES)}"
            )
        if isinstance(exempt, str):
            exempt = [exempt]
        fine: dict[Hashable, tuple[Fraction, Fraction]] = {}
        for value, pair in (per_value or {}).items():
            low, high = read(pair[0], f"rho1 of {shortened(value)}"), read(pair[1], f"rho2 of {shortened(value)}")
            if low is not None and high is not None and low >= high:
                problems.append(_not_below(f"rho1 of {shortened(value)}", pair[0], "its rho2", pair[1]))
            elif low is not None and high is not None:
                fine[value] = (low, high)
        both = [value for value in fine if value in frozenset(exempt)]
        if both:
            problems.append(f"{listing(both)}: exempt, and in per_value as well. Fix: leave it out of one of them.")
        if problems:
            raise RequirementError("\n".join(problems))
        object.__setattr__(self, "rho1", first)
        object.__setattr__(self, "rho2", second)
        object.__setattr__(self, "adversary", adversary)
        object.__setattr__(self, "per_value", MappingProxyType(fine))
        object.__setattr__(self, "exempt", frozenset(exempt))
        object.__setattr__(self, "small_sums", small_sums)
        object.__setattr__(self, "large_sums", large_sums)
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "budget", budget)

    def own_limit(self, value: Hashable) -> Fraction:
        """How sure who knows the frequencies may become of a ``value`` of per_value: rho2, or theta times its share.

        The share is the one that the tolerance rule made the pair from, gamma = theta (1 - share) / (1 - theta share):
        a function of what was required, and of no count.
        """
        rho1, rho2 = self.per_value[value]
        if self.theta is None:
            return rho2
        gamma = amplification_limit(rho1, rho2)
        return min(rho2, (gamma - self.theta) / (gamma - 1))

    def __getstate__(self) -> dict[str, object]:
        # A read-only view of a mapping can be neither pickled nor copied.
        return {**self.__dict__, "per_value": dict(self.per_value)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, per_value=MappingProxyType(state["per_value"]))

    @property
    def sums(self) -> tuple[SmallSums | LargeSums, ...]:
        """What is required of sums, if anything is."""
        return tuple(sums for sums in (self.small_sums, self.large_sums) if sums is not None)

    @property
    def gamma(self) -> Fraction | None:
        """The amplification limit, where rho1 and rho2 alone decide it."""
        if self.rho1 is None or self.rho2 is None:
            return None
        return amplification_limit(self.rho1, self.rho2)

    @property
    def epsilon(self) -> float | None:
        """ln gamma: (rho1, rho2)-privacy through amplification is exactly epsilon-local differential privacy."""
        return None if self.gamma is None else math.log(self.gamma)

    def __repr__(self) -> str:
        """What was required, as one would write it; what was left out is left out."""
        if self.budget is not None:
            return f"Privacy(epsilon={str(self.budget)!r})"
        required: dict[str, object] = {
            "rho1": None if self.rho1 is None else str(self.rho1),
            "rho2": None if self.rho2 is None else str(self.rho2),
            "adversary": None if self.adversary == "frequency" else self.adversary,
            "per_value": {value: tuple(map(str, pair)) for value, pair in self.per_value.items()},
            "exempt": sorted(self.exempt, key=repr),
            "small_sums": self.small_sums,
            "large_sums": self.large_sums,
            "theta": self.theta,
        }
        return f"Privacy({', '.join(f'{name}={value!r}' for name, value in required.items() if value)})"

    def __str__(self) -> str:
        said = [str(sums) for sums in self.sums]
        if self.per_value:
            said.insert(0, f"per-value requirements for {len(self.per_value):,} values, adversary {self.adversary!r}")
        elif self.rho2 is not None:
            belief = "its share of the rows" if self.rho1 is None else f"up to {percent(self.rho1)}"
            who = "an attacker who knows the distribution" if self.adversary == "frequency" else "any attacker"
            said.insert(0, f"{who} and believes a value at {belief} may not become surer than {percent(self.rho2)}")
        return "; ".join(said)


def _not_sums(small: object, large: object) -> list[str]:
    fields = (
        ("small_sums", small, SmallSums, "error=0.3, below=3, at_least=0.6"),
        ("large_sums", large, LargeSums, "error=0.1, above=1000, at_most=0.05"),
    )
    return [
        f"{name} = {value!r} is not allowed. Fix: {name}={kind.__name__}({options})."
        for name, value, kind, options in fields
        if value is not None and not isinstance(value, kind)
    ]


def _not_below(low_name: str, low: object, high_name: str, high: object) -> str:
    return (
        f"{low_name} = {low} must be smaller than {high_name} = {high}: rho1 is what an attacker may believe before, "
        f"rho2 how sure they may become. Fix: lower {low_name} or raise {high_name}."
    )


USUAL_BELIEF = Fraction(1, 10)  # that an epsilon is read for
LARGEST_EPSILON = 20
_DIGITS = 10**9  # of e^epsilon, rounded down


def _budget(epsilon: Probability, given: list[object]) -> Fraction:
    budget = exact_epsilon(epsilon)
    if given:
        raise RequirementError(
            "epsilon excludes rho1, rho2, per_value and requirements of sums: it bounds what odds grow by, whatever "
            "was believed. Fix: give the one or the others."
        )
    return budget


EPSILON_LIMIT = Fraction(3)  # what is taken without being named keeps epsilon at or below this against any attacker


def exact_epsilon(epsilon: Probability, name: str = "epsilon") -> Fraction:
    """A number that odds may grow by e to the power of, exactly; refused where it is none that could be meant."""
    try:
        budget = Fraction(str(epsilon)) if isinstance(epsilon, float) else Fraction(epsilon)
    except (TypeError, ValueError, ZeroDivisionError):
        raise RequirementError(f"{name} = {epsilon!r} is no number. Fix: {option(name, '1')}.") from None
    if not Fraction(1, 1000) <= budget <= LARGEST_EPSILON:
        raise RequirementError(
            f"{name} = {epsilon} is not allowed: choose a number from 0.001 to {LARGEST_EPSILON}; at 1 a belief of "
            f"10 % becomes at most 23.2 %. Fix: {option(name, '1')}."
        )
    return budget


def gamma_below(epsilon: Fraction) -> Fraction:
    """A fraction a little below e^epsilon."""
    return Fraction(math.floor(math.exp(epsilon) * _DIGITS * (1 - 1e-12)) - 1, _DIGITS)


def as_privacy(given: Privacy | Probability | None) -> Privacy | None:
    """A requirement, or rho2 alone: how sure an attacker may become.

    >>> as_privacy("1/3").rho2
    Fraction(1, 3)
    """
    return given if given is None or isinstance(given, Privacy) else Privacy(rho2=probability(given, "privacy"))
