"""How often an attack is right, with an interval, beside the guess that needs no release."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from deniable.core.arrays import Bools, Codes
from deniable.core.probability import percent

CONFIDENCE = 0.95


@dataclass(frozen=True)
class AttackResult:
    """The outcome of an attack.

    Attributes:
        name: which attack.
        success: the share of its guesses that are right.
        low, high: a 95 % interval for it (Clopper-Pearson); 0 to 1 when there was nothing to guess.
        baseline: the share of right guesses without the release: the most frequent value for everyone.
        trials: how many guesses it made.
        note: what else to know.
    """

    name: str
    success: float
    low: float
    high: float
    baseline: float
    trials: int
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def row(self) -> tuple[str | int, ...]:
        """For a table: its name, how often it is right, the interval, without the release, guesses, note."""
        shares = [percent(share) if self.trials else "" for share in (self.success, self.low, self.high, self.baseline)]
        return (self.name, *shares, self.trials, self.note)

    def __str__(self) -> str:
        if not self.trials:
            return f"{self.name}: nobody to claim" + (f"; {self.note}" if self.note else "")
        return (
            f"{self.name}: right in {percent(self.success)} of {self.trials:,} guess{'es' * (self.trials != 1)} "
            f"({percent(self.low)} to {percent(self.high)}), {percent(self.baseline)} without the release"
            + (f"; {self.note}" if self.note else "")
        )


def judged(name: str, right: Bools, baseline: float, note: str = "") -> AttackResult:
    """The result of guesses that were right or wrong."""
    trials, hits = len(right), int(right.sum())
    low, high = interval(hits, trials)
    return AttackResult(name, hits / trials if trials else 0.0, low, high, baseline, trials, note)


def interval(hits: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of Clopper and Pearson: exact, never too narrow.

    >>> [round(end, 3) for end in interval(5, 10)]
    [0.187, 0.813]
    """
    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - tail))
    return low, high


def blind_guess(original: Codes) -> float:
    """How often "the most frequent value" is right."""
    return float(np.bincount(original).max() / len(original)) if len(original) else 0.0
