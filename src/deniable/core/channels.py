"""Channels: the integers that a sampler compares random numbers with, over values or over the points of a range
(mathematics 1, 6).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from deniable.core.errors import InternalError, ManifestError, OptionError, did_you_mean
from deniable.core.exact import SCALE, amplification, requirement
from deniable.core.privacy import Adversary, Privacy
from deniable.core.values import Counts, Floats, Ints, Probability, as_written

# -- A channel: keep a value with its coin, else draw a replacement (mathematics 1) ------------------------------------
#     P = diag(p) + r (1 - p)^T,    P[j][i] = Pr[x_i is published as y_j]
#
# A channel *is* the integers that the sampler compares random numbers with: coin i keeps its value when a 32-bit random
# number is below ``keep[i]``, and replacement j owns ``replace[j]`` of the 2^32 numbers of a second one. Everything
# else, the guarantee included, is computed from these integers, so nothing is promised of a channel that was never
# used.


COARSE_BITS = 10  # coins that depend on the data are rounded down to 10 significant bits, about three digits
LARGEST_DOMAIN = 2**22


@dataclass(frozen=True, eq=False)
class Channel:
    """Coins and a replacing distribution over a (sub-)domain, as integers out of 2^32.

    Attributes:
        values: the domain, in the order of ``matrix()``.
        keep: p_i * 2^32, a whole number from 0 to 2^32 for each value.
        replace: r_j * 2^32, whole numbers that add up to 2^32.

    >>> import deniable as dn
    >>> channel = dn.Channel.of(["flu", "cold", "hiv"], coins=0.1)
    >>> channel.matrix().round(3).tolist()
    [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]
    """

    values: tuple[Hashable, ...]
    keep: Counts
    replace: Counts

    def __post_init__(self) -> None:
        for name in ("keep", "replace"):
            array = np.array(getattr(self, name), dtype=np.int64)
            if array.shape != (len(self.values),):
                raise InternalError(f"a channel over {len(self.values)} values has {array.size} numbers in {name!r}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not self.values or ((self.keep < 0) | (self.keep > SCALE)).any():
            raise InternalError("coins must lie between 0 and 1")
        if (self.replace < 0).any() or int(self.replace.sum()) != SCALE:
            raise InternalError("a replacing distribution must add up to 1")

    def __reduce__(self) -> tuple[type[Channel], tuple[tuple[Hashable, ...], Counts, Counts]]:
        return Channel, (self.values, self.keep, self.replace)  # made anew, so that a copy cannot be written to either

    # -- making one ------------------------------------------------------------------------------------------------

    @classmethod
    def uniform(cls, values: Sequence[Hashable], *, gamma: Fraction, coarse: bool = False) -> Channel:
        """Uniform perturbation at an amplification of at most gamma (mathematics 3): p = (gamma-1)/(m-1+gamma).

        The replacing distribution is uniform up to one part in 2^32; the coin is the largest integer for which even
        the least likely replacement keeps the ratio at or below gamma.

        Args:
            values: the domain.
            gamma: the largest amplification that is allowed.
            coarse: round the coin down to a few digits, for a gamma that depends on the data (mathematics 11.6).
        """
        replace = uniform_weights(len(values))
        keep = largest_keep(gamma, int(replace.min()))
        coins = np.full(len(values), coarsened(keep) if coarse else keep, dtype=np.int64)
        return cls(tuple(values), coins, replace)

    @classmethod
    def of(
        cls,
        values: Sequence[Hashable],
        coins: Sequence[float] | Floats | float,
        replacing: Sequence[float] | Floats | None = None,
        *,
        coarse: bool = False,
    ) -> Channel:
        """A channel from probabilities.

        Args:
            values: the domain.
            coins: p, one for all values or one for each; they are rounded down to whole numbers out of 2^32.
            replacing: r, up to a factor; left out: uniform.
            coarse: round coins down to a few digits, where they depend on the data (mathematics 11.6).
        """
        p = np.broadcast_to(np.asarray(coins, dtype=np.float64), (len(values),))
        if not ((p >= 0) & (p <= 1)).all():
            raise OptionError(f"A coin must lie between 0 and 1; got {p.min():g} to {p.max():g}.")
        keep = np.floor(p * SCALE).astype(np.int64)
        replace = uniform_weights(len(values)) if replacing is None else weights_of(np.asarray(replacing, np.float64))
        return cls(tuple(values), coarsened(keep) if coarse else keep, replace)

    # -- what it is, as floating-point numbers -----------------------------------------------------------------------

    @property
    def m(self) -> int:
        """The size of the domain."""
        return len(self.values)

    @cached_property
    def coins(self) -> Floats:
        """p, the probability that a value is kept by its coin (it may also be drawn as its own replacement)."""
        return self.keep / SCALE

    @cached_property
    def replacing(self) -> Floats:
        """r, the distribution that replacements are drawn from."""
        return self.replace / SCALE

    @cached_property
    def diagonal(self) -> Floats:
        """P[i][i] = p_i + (1-p_i) r_i, the probability that a value is published as it is."""
        return self.coins + (1 - self.coins) * self.replacing

    def matrix(self) -> Floats:
        """P as a dense m x m array; everything else here works without it."""
        return np.diag(self.coins) + np.outer(self.replacing, 1 - self.coins)

    @property
    def is_uniform(self) -> bool:
        """Whether there is one coin for all values and replacements are uniform."""
        return bool((self.keep == self.keep[0]).all() and np.array_equal(self.replace, uniform_weights(self.m)))

    # -- the guarantee, exactly ------------------------------------------------------------------------------------

    @cached_property
    def exact_gamma(self) -> Fraction | None:
        """max P[y][x] / P[y][x'] over all y, x, x', exactly; None when it is unbounded."""
        return amplification(self.keep, self.replace)

    @property
    def gamma(self) -> float:
        """The amplification as a float; infinite when unbounded."""
        return float("inf") if self.exact_gamma is None else float(self.exact_gamma)

    # -- applying and inverting it, O(m) -----------------------------------------------------------------------------

    def apply(self, counts: npt.ArrayLike) -> Floats:
        """P f: what ``counts`` f are published as, in expectation. Works on the last axis."""
        f = np.asarray(counts, dtype=np.float64)
        replaced = (f * (1 - self.coins)).sum(-1, keepdims=True)
        result: Floats = f * self.coins + replaced * self.replacing
        return result

    def expected(self, scores: npt.ArrayLike) -> Floats:
        """What each value scores in expectation, for ``scores`` z of published values.

            E[z(y) | x] = p_x z_x + (1-p_x) sum_y r_y z_y

        Works on the last axis.
        """
        z = np.asarray(scores, dtype=np.float64)
        drawn = (z * self.replacing).sum(-1, keepdims=True)
        result: Floats = z * self.coins + (1 - self.coins) * drawn
        return result

    @cached_property
    def invertible(self) -> bool:
        """Whether published counts determine the original ones: at most one coin is zero (and that value is drawn)."""
        zero = self.keep == 0
        return int(zero.sum()) == 0 or (int(zero.sum()) == 1 and bool(self.replace[zero][0] > 0))

    def invert(self, observed: npt.ArrayLike) -> Floats:
        """P^-1 o for ``observed`` counts o, by Sherman-Morrison (mathematics 8).

            f_i = (o_i - r_i t) / p_i,   t = sum_k (1-p_k) f_k, the number of replaced rows

        Works on the last axis.
        """
        o = np.asarray(observed, dtype=np.float64)
        self._require_invertible()
        p, r = self.coins, self.replacing
        zero = self.keep == 0
        safe = np.where(zero, 1.0, p)
        if zero.any():  # the value without a coin shows replacements only, so it tells how many there were
            replaced = o[..., zero] / r[zero]
        else:
            replaced = (o * ((1 - p) / p)).sum(-1, keepdims=True) / (1 + (r * (1 - p) / p).sum())
        f: Floats = (o - replaced * r) / safe
        if zero.any():
            f[..., zero] = o.sum(-1, keepdims=True) - np.where(zero, 0.0, f).sum(-1, keepdims=True)
        return f

    def squares(self, observed: npt.ArrayLike) -> Floats:
        """sum_y P^-1[x][y]^2 o_y for every x, o the ``observed`` counts: the second moment of each value's weights.

            P^-1[x][y] = 1[x = y] / p_x - (r_x / p_x) q_y,   q_y = ((1-p_y) / p_y) / (1 + sum r (1-p)/p)

        Works on the last axis, in O(m).
        """
        o = np.asarray(observed, dtype=np.float64)
        self._require_invertible()
        if not self.keep.all():  # the closed form divides by every coin
            inverse = self.weights(np.eye(self.m))
            dense: Floats = o @ (inverse**2).T
            return dense
        p, r = self.coins, self.replacing
        q = (1 - p) / p / (1 + (r * (1 - p) / p).sum())
        off = (r / p) ** 2
        every = (o * q**2).sum(-1, keepdims=True)
        result: Floats = off * (every - o * q**2) + ((1 - r * q) / p) ** 2 * o
        return result

    def weights(self, chosen: npt.ArrayLike) -> Floats:
        """w(y) = sum over x in S of P^-1[x][y]: what a row counts for in the ``chosen`` value set S (mathematics 8).

            w_y = (1[y in S] - (1-p_y) s) / p_y,   s = sum_y r_y w_y = (sum over S of r/p) / (1 + sum r (1-p)/p)

        Sets are given as indicators, one for each value, on the last axis.
        """
        inside = np.asarray(chosen, dtype=np.float64)
        self._require_invertible()
        p, r = self.coins, self.replacing
        zero = self.keep == 0
        safe = np.where(zero, 1.0, p)
        if zero.any():
            s = inside[..., zero]
        else:
            s = (inside * (r / p)).sum(-1, keepdims=True) / (1 + (r * (1 - p) / p).sum())
        w: Floats = (inside - (1 - p) * s) / safe
        if zero.any():
            others = np.where(zero, 0.0, w * r).sum(-1, keepdims=True)
            w[..., zero] = (s - others) / r[zero]
        return w

    def _require_invertible(self) -> None:
        if not self.invertible:
            raise OptionError("This channel cannot be inverted: two or more of its values are always replaced.")


def largest_keep(gamma: Fraction, least: int) -> int:
    """The largest threshold K with K S + (S-K) W <= gamma (S-K) W, W = ``least`` being the rarest replacement's."""
    return int((gamma - 1) * SCALE * least / (SCALE + (gamma - 1) * least))


def uniform_weights(m: int) -> Counts:
    """How many 32-bit numbers u have floor(u m / 2^32) = j: the uniform distribution that the sampler draws.

    >>> uniform_weights(3).tolist()
    [1431655766, 1431655765, 1431655765]
    """
    if not 1 <= m <= LARGEST_DOMAIN:
        raise OptionError(
            f"A sensitive column of {m:,} values cannot be perturbed: the limit is {LARGEST_DOMAIN:,}. "
            "Fix: group rare values, bin numbers, or perturb columns independently."
        )
    edges = -((-np.arange(m + 1, dtype=np.int64) * SCALE) // m)
    weights: Counts = np.diff(edges)
    return weights


def weights_of(distribution: Floats) -> Counts:
    """Whole numbers that add up to 2^32, nearest to a distribution (largest remainders); what is positive stays so."""
    if (distribution < 0).any() or not np.isfinite(distribution).all() or distribution.sum() <= 0:
        raise OptionError("A replacing distribution needs non-negative weights, at least one of them positive.")
    share = distribution / distribution.sum() * SCALE
    whole = np.floor(share).astype(np.int64)
    whole[(whole == 0) & (distribution > 0)] = 1
    missing = SCALE - int(whole.sum())
    if missing > 0:
        order = np.argsort(-(share - whole), kind="stable")
        whole[order[np.arange(missing) % len(order)]] += 1 if missing <= len(order) else 0
        whole[int(np.argmax(whole))] += SCALE - int(whole.sum())
    elif missing < 0:
        whole[int(np.argmax(whole))] += missing
    return whole


def coarsened(keep: int | Counts) -> Counts:
    """Thresholds rounded down to a few significant bits, so that no exact count can be read off them
    (mathematics 11.6).

    >>> float(coarsened(2**32 // 3) / 2**32)
    0.3330078125
    """
    array = np.asarray(keep, dtype=np.int64)
    length = np.frexp(array.astype(np.float64))[1]  # exact: thresholds are below 2^53
    step = np.left_shift(np.int64(1), np.maximum(length - COARSE_BITS, 0).astype(np.int64))
    rounded: Counts = array // step * step
    return rounded


# -- Retention replacement of one column: keep with a coin, else replace (mathematics 6; OLAP 3) -----------------------
# ``Replace`` is what the owner asks for; ``NumberRange`` is what a numeric column becomes: a grid of points from low to
# high, on which every published value lies. A grid is not a nicety: a replacement off the decimals that the originals
# have, or an original off the grid of the replacements, would tell kept and replaced values apart at sight.


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
