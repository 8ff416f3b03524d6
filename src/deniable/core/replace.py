"""Retention replacement of one column: keep with a coin, else replace (mathematics 6; OLAP 3).

``Replace`` is what the owner asks for; ``NumberRange`` is what a numeric column becomes: a grid of points from low to
high, on which every published value lies. A grid is not a nicety: a replacement off the decimals that the originals
have, or an original off the grid of the replacements, would tell kept and replaced values apart at sight.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Floats, Ints
from deniable.core.breach import requirement
from deniable.core.channel import LARGEST_DOMAIN
from deniable.core.errors import ManifestError, OptionError, did_you_mean
from deniable.core.exact import SCALE
from deniable.core.numbers import as_written
from deniable.core.privacy import Adversary, Privacy
from deniable.core.probability import Probability

Replacing = Literal["uniform", "identity", "swapping"]
REPLACING: tuple[Replacing, ...] = ("uniform", "identity", "swapping")
Kind = Literal["integer", "number", "date"]
End = int | float | datetime.date
Breach = tuple[Fraction, Fraction, Fraction]


@dataclass(frozen=True)
class Requirement:
    """What was required of one column: beliefs of up to rho1 stay at rho2; with s, of values less than s times likelier
    than their replacements, and sets of them (OLAP Def. 5)."""

    rho1: Fraction
    rho2: Fraction
    adversary: Adversary = "frequency"
    s: Fraction | None = None


@dataclass(frozen=True, init=False)
class Replace:
    """How one column is perturbed.

    Attributes:
        coin: the probability p that a value is kept; 1 leaves the column as it is. Without a coin and a requirement the
            column has its share of the budget of ``Retention``.
        low, high: the ends of a range of numbers or dates; without them the values are categories.
        replacing: ``"uniform"``; ``"identity"``: drawn from the column's own (noisy) distribution; ``"swapping"``: the
            replaced values are permuted among themselves, which needs the whole table and publishes the column's
            exact histogram.
        privacy: instead of a coin: (s, rho1, rho2), the breach to avoid, or a ``Privacy``; the coin follows from it.
        step: the grid of a range. Default: 1 for whole numbers and days; for other numbers the decimals of the data.

    >>> import deniable as dn
    >>> dn.Replace(coin=0.5, low=17, high=90)
    Replace(coin=0.5, low=17, high=90)
    >>> print(dn.Replace(privacy=dn.Privacy(rho1="1/13", rho2="1/6")).requirement.rho2)
    1/6
    """

    coin: float | None
    low: End | None
    high: End | None
    replacing: Replacing
    privacy: Breach | Privacy | None
    step: float | None

    def __init__(
        self,
        coin: float | None = None,
        low: End | None = None,
        high: End | None = None,
        replacing: Replacing = "uniform",
        privacy: tuple[float | Fraction, Probability, Probability] | Privacy | None = None,
        *,
        step: float | None = None,
    ) -> None:
        coin, low, high, step = (_plain(number) for number in (coin, low, high, step))
        problems = []
        if coin is not None and privacy is not None:
            problems.append("give either a coin (coin=0.5) or a requirement (privacy=(s, rho1, rho2)), and not both.")
        if coin is not None and (isinstance(coin, bool) or not isinstance(coin, int | float) or not 0 < coin <= 1):
            problems.append(
                f"coin = {coin!r} is not allowed: it is a probability above 0 and up to 1 (1: not perturbed). "
                "Fix: coin=0.5."
            )
        elif coin is not None and coin * SCALE < 1:
            problems.append(f"coin = {coin!r} is not allowed: draws are made in steps of 2^-32, and it would be 0.")
        if replacing not in REPLACING:
            problems.append(
                f"replacing = {replacing!r} is not known: choose one of {', '.join(REPLACING)}."
                f"{did_you_mean(replacing, REPLACING)}"
            )
        problems += _range_problems(low, high, step, replacing)
        if problems:
            raise OptionError("Replace: " + "\nReplace: ".join(problems))
        exact: Breach | Privacy | None
        if privacy is None or isinstance(privacy, Privacy):
            exact = privacy
        else:
            if not isinstance(privacy, tuple | list) or len(privacy) != 3:
                raise OptionError(
                    "Replace: privacy is a tuple (s, rho1, rho2), for example (68, 0.1, 0.95), or a Privacy."
                )
            exact = requirement(*privacy)
        for name, value in (
            ("coin", None if coin is None else float(coin)),
            ("low", low),
            ("high", high),
            ("replacing", replacing),
            ("privacy", exact),
            ("step", step),
        ):
            object.__setattr__(self, name, value)

    @property
    def is_range(self) -> bool:
        """Whether it replaces numbers or dates of a range."""
        return self.low is not None

    @property
    def requirement(self) -> Requirement | None:
        """What is required of the column, where its coin follows from that."""
        if isinstance(self.privacy, Privacy):
            rho1, rho2 = self.privacy.rho1, self.privacy.rho2
            return None if rho1 is None or rho2 is None else Requirement(rho1, rho2, self.privacy.adversary)
        return None if self.privacy is None else Requirement(*self.privacy[1:], s=self.privacy[0])

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        result: dict[str, Any] = {"replacing": self.replacing}
        if self.coin is not None:
            result["coin"] = self.coin
        if isinstance(self.privacy, tuple):
            result["breach"] = [str(number) for number in self.privacy]
        elif self.privacy is not None:
            result["privacy"] = {
                "rho1": str(self.privacy.rho1),
                "rho2": str(self.privacy.rho2),
                "adversary": self.privacy.adversary,
            }
        return result

    def __repr__(self) -> str:
        fields = {name: getattr(self, name) for name in ("coin", "low", "high", "privacy", "step")}
        shown = [f"{name}={value!r}" for name, value in fields.items() if value is not None]
        shown += [f"replacing={self.replacing!r}"] if self.replacing != "uniform" else []
        return f"Replace({', '.join(shown)})"


def _plain(number: Any) -> Any:
    """Numbers of NumPy, fractions and decimals as those of Python; anything else as it is."""
    if isinstance(number, np.generic):
        number = number.item()
    if isinstance(number, Fraction | Decimal):
        return int(number) if number == int(number) else float(number)
    return number


def _range_problems(low: Any, high: Any, step: Any, replacing: str) -> list[str]:
    if (low is None) != (high is None):
        return ["low and high belong together: give both ends of the range, or neither for categories."]
    if low is None:
        return [] if step is None else ["step is the grid of a range: give low and high, too."]
    if replacing != "uniform":
        return [f"low and high go with replacing='uniform'; {replacing!r} draws from the values that occur."]
    for name, end in (("low", low), ("high", high)):
        if isinstance(end, datetime.datetime):
            return [f"{name} = {end} is a time: ranges hold whole days. Fix: convert the column to dates."]
        number = isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end)
        if not number and not isinstance(end, datetime.date):
            return [f"{name} = {end!r} is not allowed: the ends of a range are finite numbers or dates."]
    if isinstance(low, datetime.date) != isinstance(high, datetime.date):
        return [f"low = {low} and high = {high} are a number and a date: give two of a kind."]
    if low >= high:
        swap = f" Fix: low={high}, high={low}." if low > high else " Fix: a range holds two points or more."
        return [f"low = {low} is not below high = {high}.{swap}"]
    if step is not None and (isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < math.inf):
        return [f"step = {step!r} is not allowed: it is a number above 0."]
    width = (high - low).days if isinstance(low, datetime.date) else high - low
    if step is not None and step > width:
        return [f"step = {step!r} is longer than the range from {low} to {high}. Fix: a step of at most {width}."]
    return []


@dataclass(frozen=True)
class NumberRange:
    """A grid low, low + step, ..: a value is kept with the coin keep / 2^32, else replaced by a uniform grid point.

    Attributes:
        kind: what the column holds.
        low, high: the declared ends.
        step: between points; days for dates.
        keep: the coin out of 2^32.
        missing: whether "missing" is one more point, after the last.

    >>> r = NumberRange("integer", 0, 99, 1, keep=2**31)
    >>> r.grid, r.share(30, 44)
    (100, 0.15)
    """

    kind: Kind
    low: End
    high: End
    step: float
    keep: int
    missing: bool = False

    def __post_init__(self) -> None:
        if self.points > LARGEST_DOMAIN:
            raise OptionError(
                f"The range {self.low} to {self.high} in steps of {self.step:g} has {self.points:,} points; the limit "
                f"is {LARGEST_DOMAIN:,}. Fix: a larger step=."
            )

    @property
    def _origin(self) -> float:
        return self.low.toordinal() if isinstance(self.low, datetime.date) else self.low

    @cached_property
    def grid(self) -> int:
        """How many points the range has, both ends in."""
        end = self.high.toordinal() if isinstance(self.high, datetime.date) else self.high
        width = Fraction(repr(float(end))) - Fraction(repr(float(self._origin)))
        steps = width / Fraction(repr(float(self.step)))
        return math.floor(steps + Fraction(1, 10**6)) + 1  # a step of width / 2^16 need not divide exactly

    @property
    def points(self) -> int:
        """The points that replacements are drawn from: the grid, and missing where it is a value."""
        return self.grid + int(self.missing)

    @property
    def coin(self) -> float:
        return self.keep / SCALE

    @property
    def rounds_to(self) -> float | None:
        """The step that values were rounded to; None where every value is a point of the grid by itself."""
        return self.step if self.kind == "number" or self.step != 1 else None

    @property
    def exact_gamma(self) -> Fraction | None:
        """(K + (S-K) w / S) / ((S-K) w / S) for the least likely point; None when nothing is ever replaced."""
        return range_amplification(self.keep, self.points)

    def weights(self) -> Floats:
        """The replacing mass of every point: how many of the 2^32 numbers u have floor(u points / 2^32) = j."""
        edges = -((-np.arange(self.points + 1, dtype=np.int64) * SCALE) // self.points)
        mass: Floats = np.diff(edges) / SCALE
        return mass

    def share(self, first: int, last: int) -> float:
        """The replacing mass b of the points first..last."""
        edge = [-(-place * SCALE // self.points) for place in (first, last + 1)]
        return round((edge[1] - edge[0]) / SCALE, 9)

    def position(self, numbers: npt.NDArray[Any]) -> Ints:
        """The nearest grid point of each number (of dates: of its ordinal)."""
        if self.kind == "number":
            places = np.rint((numbers.astype(np.float64) - self._origin) / self.step).astype(np.int64)
        else:
            step = int(self.step)
            places = (numbers.astype(np.int64) - int(self._origin) + step // 2) // step
        result: Ints = np.minimum(places, self.grid - 1)
        return result

    def numbers(self, places: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The number (of dates: the ordinal) at grid points; decimals as people write them."""
        if self.kind != "number":
            return places.astype(np.int64) * int(self.step) + int(self._origin)
        return as_written(self._origin + places.astype(np.float64) * self.step, self._origin, self.step)

    def to_dict(self) -> dict[str, Any]:
        ends = [end.isoformat() if isinstance(end, datetime.date) else end for end in (self.low, self.high)]
        return {
            "kind": self.kind,
            "low": ends[0],
            "high": ends[1],
            "keep": self.keep,
            "step": self.step,
            "missing": self.missing,
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> NumberRange:
        """A range from a manifest."""
        try:
            ends = [datetime.date.fromisoformat(raw[e]) if raw["kind"] == "date" else raw[e] for e in ("low", "high")]
            return cls(raw["kind"], ends[0], ends[1], raw.get("step", 1), raw["keep"], raw.get("missing", False))
        except (TypeError, ValueError, KeyError):
            raise ManifestError("manifest.json is damaged: a range of numbers cannot be read.") from None


def range_amplification(keep: int, points: int) -> Fraction | None:
    """max P[y][x] / P[y][x'] of a coin and a uniform replacement among ``points``, in whole numbers."""
    if keep >= SCALE:
        return None
    least = SCALE // points
    return Fraction(keep * SCALE + (SCALE - keep) * least, (SCALE - keep) * least)
