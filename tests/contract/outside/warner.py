"""Warner's coin, as a package outside brings it: a mechanism, its promise, and a command.

heads, with probability 1/2: the truth;  tails: a value drawn uniformly, so that P[y][x] / P[y][x'] <= m + 1
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from deniable.extend import Channel, Guarantee, Histogram, Mechanism, Part, Plan, Privacy, RequirementError


@dataclass(frozen=True)
class FairCoinOdds:
    """P[y][x] / P[y][x'] <= gamma by a coin of 1/2, whatever was believed."""

    kind: ClassVar[str] = "fair-coin"

    gamma: Fraction

    def sentence(self, part: Part, adversary: str) -> str:
        """In words."""
        which = part.columns[0] if part.columns else "the column"  # a plan may be of no column yet
        return (
            f"A fair coin decides whether a row of {which} tells the truth: it multiplies the odds of any "
            f"statement about a person by at most {float(self.gamma):.4g}."
        )


@dataclass(frozen=True)
class FairCoin(Mechanism):
    """A fair coin for every row.

    Attributes:
        shift: what the coin is off by; the promise is that of a fair one, so that anything but 0 is to be found out.
    """

    shift: float = 0.0

    name: ClassVar[str] = "fair-coin"
    reveals: ClassVar[str] = "nothing beyond the columns"

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Any = None) -> Plan:
        """One cell with all values."""
        if privacy is not None:
            raise RequirementError("mechanism 'fair-coin' takes no requirement: its coin is fair. Fix: leave rho2 out.")
        fair = Channel.of(histogram.domain, 0.5).exact_gamma
        assert fair is not None
        guarantee = Guarantee(
            promises=(FairCoinOdds(fair),),  # type: ignore[arg-type]
            adversary="any-prior",
            rho1=None,
            rho2=None,
            worst=Fraction(1),
            gamma=fair,
            not_protected=("Public columns are published as they are.",),
        )
        channel = Channel.of(histogram.domain, 0.5 + self.shift)
        return Plan.of_channel(self.name, histogram, channel, guarantee, privacy=privacy, options=self.options)


def command() -> None:
    """Say how many values a fair coin is thrown for.

    Example: deniable warner
    """
    print("as many as there are rows")
