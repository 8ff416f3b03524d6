"""Published counts against the noisy histogram f~ = f + z, value by value, and against what some table can have.

A row of value v adds g(y) to a sum, with mean h_v = E[g(y) | v]. Whatever g is, and whatever f,

    D = sum over rows of g(y)  -  sum_v h_v f~_v  =  (independent draws of mean 0)  -  sum_v h_v z_v

and both are bounded: draws with the variance sum_v f_v Var[g | v], noise by |h| |z|. Of each value the sums are its
published count, its estimate P^-1 o (in line-ups by inclusion counts; in published cells the sum of all cells'), and
one sum more of all values that is off where coins are not those that were tossed. Counts of all values together are
held to an average over alternatives, exp(u o - e (e^u - 1)) with e = P f, which is at most 1 in expectation for
independent rows (mathematics 13.15). It has no power where P f = f, as for replacements drawn like the column itself.

Rows are drawn independently, and a row changes a sum by at most b. With V the variance of the sum, Bernstein's
inequality and its form for a variance that is estimated from the rows themselves (Maurer & Pontil 2009) give

    |sum - mean| <= sqrt(2 V L) + b L / 3,     |sum - mean| <= sqrt(2 V' L) + 7 b L / 3      but for one case in e^L

The noise of a histogram is discrete Laplace: with q = e^-epsilon it has E e^(t z) = (1-q)^2 / ((1-q e^t)(1-q e^-t)),
and Markov's inequality bounds sums of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable_verify import lineups
from deniable_verify.checks import Check
from deniable_verify.coverage import surest_at_least
from deniable_verify.numbers import FULL, Json
from deniable_verify.promises import promise_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

REGULAR = 1e6  # condition numbers of matrices that are inverted
TANGENTS = 4
TOGETHER = 4096  # values, or bundles of them, that are looked at together
AT_ONCE = 2**22  # weights that are held at a time
SINGLY = 256  # values that have a sum each; more are bundled, in two ways, so that every two come apart in one
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
SCALES = 2.0 ** np.arange(-1, 5)  # alternatives: so many variances away
ALIKE = "rows of a person are published alike, and how many rows each person has is not told"
RARELY = math.log(1e9)  # an honest release fails once in so many
STEPS = np.arange(1, 200) / 200
SHELLS = 8


def by_chance(variance: Any, width: Any, often: float, *, seen: bool = False) -> Floats:
    """How far sums are off, but for one case in e^often: ``variance`` of the sum, ``width`` of what a row adds to it.

    ``seen``: the variance is the sum of squares that the rows themselves show.
    """
    reach: Floats = np.sqrt(2 * np.asarray(variance) * often) + np.asarray(width) * often * (7 if seen else 1) / 3
    return reach


@dataclass(frozen=True)
class Noise:
    """What the noise z of a histogram of m counts comes to at most.

    Attributes:
        single: |z_x|, of every count.
        total: |sum z_x|.
        shells: (rarity, length): the noise is longer than that of the shell before, sqrt(sum z_x^2) <= length, once in
            e^rarity. Lengths are bounded at once for all weights, so that |sum h_x z_x| <= |h| length holds also for
            weights that follow the histogram, as the integers of a plan do. Rows are drawn independently of the noise:
            where it was that rare, they need not be as rare again.
    """

    single: float
    total: float
    shells: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, marginal: Json, often: float, more: float = 0.0) -> Noise:
        """But for one case in e^often; rows that were left out make it longer by ``more``."""
        pooled = max(round(marginal["variance"] / _variance(marginal["epsilon"])), 1)
        return _noise(len(marginal["counts"]), marginal["epsilon"], pooled, often, more)


@lru_cache(maxsize=64)
def _noise(m: int, epsilon: float, pooled: int, often: float, more: float) -> Noise:
    apart = often + math.log(2)
    rarities = np.linspace(0, apart, SHELLS + 1)
    reaches = [_single(m, pooled, epsilon, rarity + math.log(2)) for rarity in rarities[1:]]
    lengths = [
        _length(m, pooled, epsilon, single, rarity + math.log(2)) + more
        for single, rarity in zip(reaches, rarities[1:], strict=True)
    ]
    total = _reached(m * pooled, epsilon, apart + math.log(2)) + more
    return Noise(reaches[-1], total, tuple(zip(rarities[:-1].tolist(), lengths, strict=True)))


def _single(m: int, pooled: int, epsilon: float, often: float) -> int:
    """No count of m is further off, but for one case in e^often."""
    return math.floor(_reached(pooled, epsilon, often + math.log(2 * m))) + 1


def _variance(epsilon: float) -> float:
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


def _reached(count: int, epsilon: float, often: float) -> float:
    """A sum of so many draws is above (count log E e^(t z) + often) / t once in e^often, whatever t is."""
    t, q = epsilon * STEPS, math.exp(-epsilon)
    moments = 2 * math.log1p(-q) - np.log1p(-q * np.exp(t)) - np.log1p(-q * np.exp(-t))
    return float(((count * moments + often) / t).min())


def _length(m: int, pooled: int, epsilon: float, single: int, often: float) -> float:
    """The same for sum z^2, with z no larger than ``single``: (m log E e^(s z^2) + often) / s, whatever s is."""
    z = np.arange(-single, single + 1)
    one = math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(z))
    chances = one
    for _ in range(pooled - 1):
        chances = np.convolve(chances, one, mode="same")
    s = epsilon / single * STEPS[:, None]
    logarithms = np.log(chances) + s * z.astype(np.float64) ** 2
    top = logarithms.max(axis=1, keepdims=True)
    moments = np.maximum(top[:, 0] + np.log(np.exp(logarithms - top).sum(axis=1)), 0.0)
    return math.sqrt(float(((m * moments + often) / s[:, 0]).min()))


# -- Sums of rows ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sums:
    """Sums over rows, each beside what the noisy histogram says of it.

    Attributes:
        off: seen less expected.
        variance: of the rows' part.
        width: by how much a row can change it.
        carries: |h|, by which it carries the noise.
    """

    off: Floats
    variance: Floats
    width: Floats
    carries: Floats


@dataclass(frozen=True)
class Known:
    """What a noisy histogram tells: counts that add up to the rows, the largest that they can be, and its noise."""

    counts: Floats
    most: Floats
    noise: Noise


@dataclass(frozen=True)
class Channel:
    """Coins p and replacing distribution r over some values, by their places in the domain."""

    places: Ints
    keep: Floats
    replace: Floats

    @property
    def inverts(self) -> bool:
        """Whether every coin keeps something."""
        return len(self.keep) == 1 or bool(self.keep.min() > 0)


def channels_of(part: Json) -> list[Channel]:
    """The channels of a part's cells."""
    return [
        Channel(np.array(cell["values"]), np.array(cell["keep"]) / FULL, np.array(cell["replace"]) / FULL)
        for cell in part["cells"]
    ]


def counts_check(part: Json, shown: Floats, *, by_person: bool, often: float = RARELY) -> list[Check]:
    """Whether published counts, by value or by cell and value or by set, can come from the noisy histogram; nothing
    where none is known. An honest release fails once in e^often.

    Rows that are drawn ``by_person`` are published alike, so counts are off by whole people.
    """
    m = len(part["domain"])
    if part["marginal"] is None or m < 2:
        return []
    counts, rows = np.array(part["marginal"]["counts"], dtype=np.float64), float(shown.sum())
    left_out = 0 if part["groups"] is None else part["groups"]["c"]  # rows that could not be grouped
    noise = Noise.of(part["marginal"], often + math.log(3), left_out)
    together = float(counts.sum())
    if abs(together - rows) > noise.total:
        room = f"noise explains {noise.total:,.0f} rows at most"
        return [Check("published counts", False, f"the noisy histogram counts {together:,.0f} rows in all, and {room}")]
    if by_person:
        return [Check("published counts", None, ALIKE)]
    even = counts + (rows - together) / m  # the rows are known, and so is what the noise adds up to
    known = Known(even, np.clip(counts, 0, rows) + noise.single, noise)
    rare, furthest, number = often + math.log(3 * len(noise.shells)), 0.0, 0
    apart = math.log(4 * (m + 1 if m <= SINGLY else 2 * _bundles(m) + 1))
    for weights in _weights(known.counts):
        for sums in _sums(part, weights, shown, known):
            number += len(sums.off)
            furthest = max(furthest, _furthest(sums, noise, rare, apart))
    if furthest > 1 or _together(part, shown, known, rare):
        how = (
            f"a sum of rows is off by {furthest:.3g} times"
            if furthest > 1
            else "all values together are off by more than"
        )
        return [Check("published counts", False, f"{how} what chance explains: the noisy histogram is of other rows")]
    if not number:
        return [Check("published counts", True, "as many rows in all as the noisy histogram counts, up to its noise")]
    detail = f"{number} sums of rows, the furthest off by {furthest:.2f} of what chance explains once in 10^9"
    return [Check("published counts", True, detail)]


def possible_check(part: Json, shown: Floats, often: float = RARELY) -> list[Check]:
    """Whether the counts that published rows stand for can be those of a table, in which no value has less than no row;
    nothing where channels do not tell."""
    channels = channels_of(part)
    if part["swapped"] is not None or not channels or not all(channel.inverts for channel in channels):
        return []
    short = 0.0
    for channel, o in cells_shown(part, shown):
        estimates, squares, width = estimate(channel, o)
        room = by_chance(squares, width, often + math.log(4 * len(shown)), seen=True)
        short = max(short, float((-estimates / room).max()))
    detail = f"counts of values are estimated at {short:.2f} of what chance takes below 0 once in 10^9"
    wrong = f"counts of values are estimated below 0 by {short:.3g} times what chance explains: no table has such"
    return [Check("possible counts", short <= 1, detail if short <= 1 else wrong)]


def estimate(channel: Channel, o: Floats) -> tuple[Floats, Floats, Floats]:
    """P^-1 o, the sum of squares of what rows add to each count, and how much a row can change it:

    P^-1[x][y] = [x = y] / p_x - r_x (1-p_y) / (p_x p_y c),   c = 1 + sum_y r_y (1-p_y) / p_y
    """
    if len(o) == 1:
        return o, np.zeros(1), np.ones(1)
    p, r = channel.keep, channel.replace
    odds = (1 - p) / p
    common = r / p / (1 + float(r @ odds))
    squares = common**2 * float(o @ odds**2) + o * ((1 / p - common * odds) ** 2 - (common * odds) ** 2)
    return o / p - common * float(o @ odds), squares, 1 / p + common * odds.max()


def cells_shown(part: Json, shown: Floats) -> Iterator[tuple[Channel, Floats]]:
    """Each cell's channel with its published counts, in the order of its values."""
    channels = channels_of(part)
    if not part["cells_published"]:
        yield channels[0], shown[channels[0].places]
        return
    edges = np.cumsum([len(channel.places) for channel in channels])
    yield from zip(channels, np.split(shown[: edges[-1]], edges[:-1]), strict=True)


def _sums(part: Json, weights: Floats, shown: Floats, known: Known) -> Iterator[Sums]:
    """Every sum that the rows of a part are held to, by the values that it is of."""
    if part.get("lineups") is not None:
        yield from _of_sets(part["lineups"], weights, shown, known)
    elif part["cells_published"]:
        if all(channel.inverts for channel in channels_of(part)):
            yield _of_cells(part, weights, shown, known)
    elif (every := _whole(part)) is not None:
        yield _of_rows(weights, every.forward(weights), every, shown, known)
        if (back := every.backward(weights)) is not None:
            yield _of_rows(back, weights, every, shown, known)


def _of_sets(design: Json, weights: Floats, shown: Floats, known: Known) -> Iterator[Sums]:
    """Sums of inclusion counts, and of estimates B^-1 c where every value has a sum of its own."""
    m, tried = weights.shape[1], weights
    for _ in range(2):
        seen, means, variance, width = lineups.sums(design, tried, shown, known.counts, known.most)
        yield Sums(seen - means @ known.counts, variance, width, _carried(means))
        if tried is not weights or len(weights) != m + 1 or np.linalg.cond(means[:m]) >= REGULAR:
            return
        tried = weights @ np.linalg.inv(means[:m]).astype(np.float64)


def _weights(counts: Floats) -> Iterator[Floats]:
    """Which values a sum is of, some sums at a time: one each, or bundles; and last how far each is from the average,
    for coins."""
    m = len(counts)
    uneven = (counts - counts.mean())[None]
    if m <= SINGLY:
        yield np.vstack([np.eye(m), uneven])
        return
    number, places = _bundles(m), np.arange(m)
    for kind in (places * number // m, places % number):
        for block in np.array_split(np.arange(number), -(-number * m // AT_ONCE)):
            if len(block):
                yield (kind == block[:, None]).astype(np.float64)
    yield uneven


def _bundles(m: int) -> int:
    """How many bundles a kind has: every two of up to 65,536 values come apart in one of two kinds."""
    return max(min(SINGLY, 2**24 // m), 16)


@dataclass(frozen=True)
class Whole:
    """A channel of the whole table: diag(p) + r (1-p)^T, or a matrix; ``spread`` the share of a count that is variance
    where rows show their group's values, and the mean of every count is the count itself."""

    keep: Floats
    replace: Floats
    matrix: Floats | None = None
    spread: float | None = None

    def apply(self, counts: Floats) -> Floats:
        if self.matrix is not None:
            return self.matrix @ counts
        return self.keep * counts + self.replace * float((1 - self.keep) @ counts)

    def forward(self, weights: Floats) -> Floats:
        """Weights of published values as weights of true ones, W P."""
        if self.matrix is not None:
            return weights @ self.matrix
        return weights * self.keep + np.multiply.outer(weights @ self.replace, 1 - self.keep)

    def backward(self, weights: Floats) -> Floats | None:
        """W P^-1; None where there is none."""
        if self.matrix is not None:
            regular = len(self.matrix) <= SINGLY and np.linalg.cond(self.matrix) < REGULAR
            return weights @ np.linalg.inv(self.matrix).astype(np.float64) if regular else None
        if len(self.keep) == 1 or self.spread is not None:
            return weights if self.spread is None else None
        if not self.keep.min() > 0:
            return None
        odds = (1 - self.keep) / self.keep
        common = self.replace / self.keep / (1 + float(self.replace @ odds))
        return weights / self.keep - np.multiply.outer(weights @ common, odds)


def _whole(part: Json) -> Whole | None:
    """The channel that serves all rows; None without one."""
    m, channels = len(part["domain"]), channels_of(part)
    kept = Whole(np.ones(m), np.full(m, 1 / m), spread=0.0 if part["groups"] is None else 1.0)
    if part["groups"] is not None or part["swapped"] is not None:  # c rows show each of c values once, on average
        return kept
    if part["mixture"] is not None:
        return Whole(kept.keep, kept.replace, np.array(part["mixture"]))
    if len(channels) != 1:
        return None
    keep, replace = np.ones(m), np.zeros(m)
    keep[channels[0].places], replace[channels[0].places] = channels[0].keep, channels[0].replace
    return Whole(keep, replace)


def _of_rows(weights: Floats, means: Floats, whole: Whole, shown: Floats, known: Known) -> Sums:
    """Sums of published counts, their variance by the noisy histogram."""
    squares = weights**2 @ whole.apply(known.most)
    variance = squares - means**2 @ known.most if whole.spread is None else whole.spread * squares
    width = np.ptp(weights, axis=1) * (whole.spread != 0)
    return Sums(weights @ shown - means @ known.counts, np.maximum(variance, 0), width, _carried(means))


def _of_cells(part: Json, weights: Floats, shown: Floats, known: Known) -> Sums:
    """Sums of the estimates of all cells. How many rows f_xi of a value a cell took is not published; they add up to
    the cell's rows N_i and to the value's f_x. So with c_xi the variance that a row has there and any a_i <= c_xi

        sum f_xi c_xi <= sum_i a_i N_i + sum_x f_x max_i (c_xi - a_i),    and also <= sum_i N_i max_x c_xi
    """
    total, least, most, width = (np.zeros(len(weights)) for _ in range(4))
    above = np.zeros_like(weights)
    for channel, o in cells_shown(part, shown):
        places, cell, rows = channel.places, Whole(channel.keep, channel.replace), float(o.sum())
        back = cell.backward(weights[:, places])
        assert back is not None
        own = np.maximum(cell.forward(back**2) - weights[:, places] ** 2, 0)
        low = own.min(axis=1)
        total, least, most = total + back @ o, least + rows * low, most + rows * own.max(axis=1)
        above[:, places] = np.maximum(above[:, places], own - low[:, None])
        width = np.maximum(width, np.ptp(back, axis=1))
    variance = np.minimum(least + above @ known.most, most)
    return Sums(total - weights @ known.counts, variance, width, _carried(weights))


def _carried(means: Floats) -> Floats:
    """|h| without its average, which meets the sum of the noise, and that is known."""
    length: Floats = np.linalg.norm(means - means.mean(axis=1, keepdims=True), axis=1)
    return length


def _furthest(sums: Sums, noise: Noise, rare: float, apart: float) -> float:
    """How far the furthest sum is off, in parts of what rows and noise explain together once in e^rare, all sums of
    which there are e^apart taken together."""
    allowed = np.full(len(sums.off), 1e-6)
    for rarity, length in noise.shells:
        often = max(rare - rarity, 0) + apart
        rows = by_chance(sums.variance, sums.width, often)
        allowed = np.maximum(allowed, rows + sums.carries * length)
    return float((np.abs(sums.off) / allowed).max())


def _together(part: Json, shown: Floats, known: Known, rare: float) -> bool:
    """Whether the average over alternatives is too large, whatever the noise: its logarithm is above L once in e^L.
    Nothing is said of line-ups, cells and swapped values."""
    whole = None if part.get("lineups") is not None or part["cells_published"] else _whole(part)
    if whole is None or whole.spread == 0:
        return False
    return all(_least(whole, shown, known.counts, length) > rare - rarity for rarity, length in known.noise.shells)


def _least(whole: Whole, shown: Floats, counts: Floats, length: float) -> float:
    """The logarithm of the average over alternatives at the least, with noise up to this length: it is convex in e, so
    it is at least what its tangents say."""
    m = len(counts)
    bundle = np.arange(m) * min(m, TOGETHER) // m
    rows, expected = (np.bincount(bundle, one).astype(np.float64) for one in (shown, whole.apply(counts)))
    u = np.sqrt(SCALES[:, None, None] / np.maximum(expected, 1)[:, None]) * NODES  # [scales, bundles, nodes]
    grown, chances, least, point = np.expm1(u), np.log(WEIGHTS / WEIGHTS.sum()), -math.inf, expected
    for _ in range(TANGENTS):
        terms = chances + u * rows[:, None] - grown * point[:, None]
        by_value = logsumexp(terms, axis=2, keepdims=True)
        by_scale = by_value.sum(axis=(1, 2))
        value = float(logsumexp(by_scale))
        slope = -np.einsum("s,svn,svn->v", np.exp(by_scale - value), np.exp(terms - by_value), grown)
        pulls = whole.forward(slope[bundle][None])[0]
        pulls -= pulls.mean()
        size = float(np.linalg.norm(pulls))
        least = max(least, value - math.log(len(SCALES)) + float(slope @ (expected - point)) - length * size)
        point = expected - np.bincount(bundle, whole.apply(pulls)) * (length / max(size, 1e-12))
    return least


def logsumexp(numbers: Floats, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """log sum e^x, whatever the size of x."""
    top = numbers.max(axis=axis, keepdims=True)
    total = np.log(np.exp(numbers - top).sum(axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis=axis)


# -- How frequent values are by the published rows themselves, where no noisy histogram tells it -----------------------

LOOKED_AT = {"amplification": ("left out",), "frequency": ("posterior", "left out")}


def frequencies_check(part: Json, shown: Floats, manifest: Json) -> list[Check]:
    """What a part promises to who knows the frequencies, by the rows that show each value: f = P^-1 o, off by no more
    than chance; nothing where they do not tell."""
    try:
        promise, kind = promise_of(part["promise"], part)
    except ValueError:  # it fails by itself
        return []
    if promise.kind == "cells":
        return _in_cells(part, promise, shown)
    channels = channels_of(part)
    one = len(channels) == 1 and not part["cells_published"] and part["swapped"] is None
    if promise.kind not in LOOKED_AT or not one or part["marginal"] is not None:
        return []
    counts, slack = counts_by_rows(part, shown)
    if not slack < shown.sum():
        return []
    seen = {"counts": counts.tolist(), "epsilon": 14 / slack}  # as noise that takes counts as far from the true ones
    checks = kind.recheck(promise, {**part, "marginal": seen}, manifest)
    wrong = [check.detail for check in checks if check.what in LOOKED_AT[promise.kind] and check.holds is False]
    detail = f"counts of values are known to {slack:,.0f} rows, and none is believed at more than is promised"
    said = wrong[0].replace("noisy histogram", "published rows") if wrong else detail
    return [Check("published frequencies", not wrong, said)]


def _in_cells(part: Json, promise: Any, shown: Floats) -> list[Check]:
    """Pr[x | cell, y = x] of covered values, in cells of which rows tell how frequent values are."""
    covered = {*range(len(part["domain"]))} - {*promise.exempt, *promise.above}
    cells, wrong, number, far = list(cells_shown(part, shown)), 0, 0, 0.0
    for (channel, o), raw in zip(cells, part["cells"], strict=True):
        if len(o) < 2:  # its rows say what the cell says, which the promise is held to by itself
            number += 1
            continue
        counts, slack = _counted(channel, o, len(shown))
        if not slack < o.sum():
            continue
        seen = {"counts": dict(zip(channel.places.tolist(), counts.tolist(), strict=True)), "epsilon": 14 / slack}
        beliefs = surest_at_least({"cells": [raw], "marginal": seen})
        wrong += sum(beliefs[place] > promise.rho2 for place in covered & {*beliefs})
        number, far = number + 1, max(far, slack)
    detail = "how frequent values are in a cell; it is not published, and rows tell it of "
    if number < len(cells) and not wrong:
        return [
            Check("frequencies in cells", None, f"{detail}{number} of {len(cells)} cells. `deniable audit` checks it")
        ]
    known = f"in {number} of {len(cells)} cells rows tell counts of values to {far:,.0f} rows"
    said = f"{wrong} values are believed at more than rho2" if wrong else "none is surely believed at more than rho2"
    return [Check("frequencies in cells", not wrong, f"{known}: {said}")]


def counts_by_rows(part: Json, shown: Floats) -> tuple[Ints, float]:
    """How many rows have each value, and how far any of these counts may be off."""
    (channel,) = channels_of(part)
    counts = np.zeros(len(part["domain"]), np.int64)
    counts[channel.places], slack = _counted(channel, shown[channel.places], len(counts))
    return counts, slack


def _counted(channel: Channel, o: Floats, states: int) -> tuple[Ints, float]:
    """The same of one channel; infinitely far where it keeps nothing."""
    if not channel.keep.min() > 0:
        return np.zeros(len(o), np.int64), math.inf
    estimates, squares, width = estimate(channel, o)
    off = by_chance(squares, width, RARELY + math.log(4 * states), seen=True)
    return np.rint(estimates).astype(np.int64), float(off.max()) + 1
