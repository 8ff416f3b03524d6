"""What an owner requires: how sure an attacker may become, and which attacker is meant (mathematics 2)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, get_args

from deniable.core.errors import RequirementError, did_you_mean, listing, option, shortened
from deniable.core.probability import Probability, percent, probability
from deniable.core.sums import LargeSums, SmallSums

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
        theta: the rule that per_value was made by (``deniable.mechanisms.tolerance``): nobody may become more than
            theta times as sure of a value as its share of the rows.

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
    ) -> None:
        problems: list[str] = []

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


def as_privacy(given: Privacy | Probability | None) -> Privacy | None:
    """A requirement, or rho2 alone: how sure an attacker may become.

    >>> as_privacy("1/3").rho2
    Fraction(1, 3)
    """
    return given if given is None or isinstance(given, Privacy) else Privacy(rho2=probability(given, "privacy"))
