"""What a plan promises: against whom, in numbers, and in one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from deniable.core.privacy import Adversary
from deniable.core.probability import percent

Basis = Literal["amplification", "frequency", "per-value", "cells", "other"]


@dataclass(frozen=True)
class Guarantee:
    """A promise about every protected value, computed from the integers that the sampler uses.

    Attributes:
        basis: what the promise rests on, and so what ``verify`` recomputes: ``"amplification"`` (of the whole channel),
            ``"frequency"`` (posteriors under the table's distribution), ``"per-value"`` (each value's own
            amplification), ``"cells"`` (amplification inside each published cell), or ``"other"``.
        adversary: who it holds against.
        rho1: the strongest belief beforehand that is covered (None: each value's own frequency, or per value).
        rho2: how sure an attacker can become (None: per value).
        worst: the largest posterior of a protected value, computed for the adversary; at most rho2.
        gamma: the amplification of the whole release; None when it is unbounded.
        cell_gammas: the amplification inside each published cell, where there are several.
        also: stronger or additional promises, in words.
        not_protected: what the release gives away or does not promise, in words.
    """

    adversary: Adversary
    rho1: Fraction | None
    rho2: Fraction | None
    worst: Fraction
    gamma: Fraction | None
    cell_gammas: tuple[Fraction | None, ...] = ()
    also: tuple[str, ...] = ()
    not_protected: tuple[str, ...] = ()
    basis: Basis = "other"
    sentence: str = field(default="")

    @property
    def epsilon(self) -> float:
        """ln gamma; infinite when the amplification is unbounded."""
        return math.inf if self.gamma is None else math.log(self.gamma)

    def __str__(self) -> str:
        return self.sentence or self._sentence()

    def _sentence(self) -> str:
        sure = percent(self.worst if self.rho2 is None else self.rho2)
        if self.adversary == "any-prior":
            before = "" if self.rho1 is None else f" who believed a value at up to {percent(self.rho1)} beforehand"
            return f"No attacker{before} becomes surer of it than {sure}."
        return (
            f"An attacker who knows how frequent each value is, and nothing more about a person, becomes at most "
            f"{sure} sure of that person's value."
        )
