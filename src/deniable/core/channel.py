"""A channel: keep a value with its coin, else draw a replacement (mathematics 1).

    P = diag(p) + r (1 - p)^T,    P[j][i] = Pr[x_i is published as y_j]

A channel *is* the integers that the sampler compares random numbers with: coin i keeps its value when a 32-bit random
number is below ``keep[i]``, and replacement j owns ``replace[j]`` of the 2^32 numbers of a second one. Everything else,
the guarantee included, is computed from these integers, so nothing is promised of a channel that was never used.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Counts, Floats
from deniable.core.errors import InternalError, OptionError
from deniable.core.exact import SCALE, amplification

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
