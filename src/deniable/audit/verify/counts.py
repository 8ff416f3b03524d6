"""Published counts against the noisy histogram f~ = f + z, value by value, and against counts that some table can have.

A row of value v adds g(y) to a sum, with mean h_v = E[g(y) | v]. Whatever g is, and whatever f,

    D = sum over rows of g(y)  -  sum_v h_v f~_v  =  (independent draws of mean 0)  -  sum_v h_v z_v

and both are bounded (``chance``): draws with the variance sum_v f_v Var[g | v], noise by |h| |z|. Of each value the
sums are its published count, its estimate P^-1 o (in line-ups by inclusion counts; in published cells the sum of all
cells'), and one sum more of all values that is off where coins are not those that were tossed. Counts of all values
together are held to an average over alternatives, exp(u o - e (e^u - 1)) with e = P f, which is at most 1 in
expectation for independent rows (mathematics 13.15). It has no power where P f = f, as for replacements drawn like the
column itself: that rows were really perturbed can be shown only with the key.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from deniable.audit.verify.chance import RARELY, Noise, by_chance
from deniable.audit.verify.checks import FULL, Check
from deniable.audit.verify.inclusion import inclusion_sums
from deniable.core.channels import Channel
from deniable.core.part import Part
from deniable.core.values import Floats

REGULAR = 1e6  # condition numbers of matrices that are inverted
TANGENTS = 4
TOGETHER = 4096  # values, or bundles of them, that are looked at together
AT_ONCE = 2**22  # weights that are held at a time
SINGLY = 256  # values that have a sum each; more are bundled, in two ways, so that every two come apart in one
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
SCALES = 2.0 ** np.arange(-1, 5)  # alternatives: so many variances away
ALIKE = "NOT CHECKED: rows of a person are published alike, and how many rows each person has is not"


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


def counts_check(part: Part, shown: Floats, *, by_person: bool, often: float = RARELY) -> Check | None:
    """Whether published counts, by value or by cell and value or by set, can come from the noisy histogram; None where
    none is known. An honest release fails once in e^often.

    Rows that are drawn ``by_person`` are published alike, so counts are off by whole people.
    """
    if part.marginal is None or part.m < 2:
        return None
    counts, rows = np.array(part.marginal.counts, dtype=np.float64), float(shown.sum())
    left_out = 0 if part.groups is None else part.groups.c  # rows that could not be grouped
    noise = Noise.of(part.marginal, often + math.log(3), left_out)
    together = float(counts.sum())
    if abs(together - rows) > noise.total:
        room = f"noise explains {noise.total:,.0f} rows at most"
        return Check("published counts", False, f"the noisy histogram counts {together:,.0f} rows in all, and {room}")
    if by_person:
        return Check("published counts", True, ALIKE)
    even = counts + (rows - together) / part.m  # the rows are known, and so is what the noise adds up to
    known = Known(even, np.clip(counts, 0, rows) + noise.single, noise)
    rare, furthest, number = often + math.log(3 * len(noise.shells)), 0.0, 0
    apart = math.log(4 * (part.m + 1 if part.m <= SINGLY else 2 * _bundles(part.m) + 1))
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
        return Check("published counts", False, f"{how} what chance explains: the noisy histogram is of other rows")
    if not number:
        return Check("published counts", True, "as many rows in all as the noisy histogram counts, up to its noise")
    detail = f"{number} sums of rows, the furthest off by {furthest:.2f} of what chance explains once in 10^9"
    return Check("published counts", True, detail)


def possible_check(part: Part, shown: Floats, often: float = RARELY) -> Check | None:
    """Whether the counts that published rows stand for can be those of a table, in which no value has less than no row;
    None where channels do not tell."""
    if part.swapped is not None or not part.channels or not all(map(_inverts, part.channels)):
        return None
    short = 0.0
    for channel, o in cells_shown(part, shown):
        estimates, squares, width = estimate(channel, o)
        room = by_chance(squares, width, often + math.log(4 * len(shown)), seen=True)
        short = max(short, float((-estimates / room).max()))
    detail = f"counts of values are estimated at {short:.2f} of what chance takes below 0 once in 10^9"
    wrong = f"counts of values are estimated below 0 by {short:.3g} times what chance explains: no table has such"
    return Check("possible counts", short <= 1, detail if short <= 1 else wrong)


def estimate(channel: Channel, o: Floats) -> tuple[Floats, Floats, Floats]:
    """P^-1 o, the sum of squares of what rows add to each count, and how much a row can change it:

    P^-1[x][y] = [x = y] / p_x - r_x (1-p_y) / (p_x p_y c),   c = 1 + sum_y r_y (1-p_y) / p_y
    """
    if len(o) == 1:
        return o, np.zeros(1), np.zeros(1)
    p, r = channel.keep / FULL, channel.replace / FULL
    odds = (1 - p) / p
    common = r / p / (1 + float(r @ odds))
    squares = common**2 * float(o @ odds**2) + o * ((1 / p - common * odds) ** 2 - (common * odds) ** 2)
    return o / p - common * float(o @ odds), squares, 1 / p + common * odds.max()


def _inverts(channel: Channel) -> bool:
    return len(channel.keep) == 1 or bool(channel.keep.min() > 0)


def cells_shown(part: Part, shown: Floats) -> Iterator[tuple[Channel, Floats]]:
    """Each cell's channel with its published counts, in the order of its values."""
    if not part.cells_published:
        yield part.channels[0], shown[part.cell_positions[0]]
        return
    edges = np.cumsum([len(places) for places in part.cell_positions])
    yield from zip(part.channels, np.split(shown[: edges[-1]], edges[:-1]), strict=True)


def _sums(part: Part, weights: Floats, shown: Floats, known: Known) -> Iterator[Sums]:
    """Every sum that the rows of a part are held to, by the values that it is of."""
    if part.lineups is not None:
        for sums in inclusion_sums(part.lineups.integers(), weights, shown, known.counts, known.most):
            yield Sums(*sums)
    elif part.cells_published:
        if all(map(_inverts, part.channels)):
            yield _of_cells(part, weights, shown, known)
    elif (whole := _whole(part)) is not None:
        yield _of_rows(weights, whole.forward(weights), whole, shown, known)
        if (back := whole.backward(weights)) is not None:
            yield _of_rows(back, weights, whole, shown, known)


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


def _whole(part: Part) -> Whole | None:
    """The channel that serves all rows; None without one."""
    kept = Whole(np.ones(part.m), np.full(part.m, 1 / part.m), spread=0.0 if part.groups is None else 1.0)
    if part.groups is not None or part.swapped is not None:  # groups: c rows show each of c values once, on average
        return kept
    if part.mixture is not None:
        return Whole(kept.keep, kept.replace, np.array(part.mixture))
    if len(part.channels) != 1:
        return None
    places, (channel,) = part.cell_positions[0], part.channels
    keep, replace = np.ones(part.m), np.zeros(part.m)
    keep[places], replace[places] = channel.keep / FULL, channel.replace / FULL
    return Whole(keep, replace)


def _of_rows(weights: Floats, means: Floats, whole: Whole, shown: Floats, known: Known) -> Sums:
    """Sums of published counts, their variance by the noisy histogram."""
    squares = weights**2 @ whole.apply(known.most)
    variance = squares - means**2 @ known.most if whole.spread is None else whole.spread * squares
    width = np.ptp(weights, axis=1) * (whole.spread != 0)
    return Sums(weights @ shown - means @ known.counts, np.maximum(variance, 0), width, _carried(means))


def _of_cells(part: Part, weights: Floats, shown: Floats, known: Known) -> Sums:
    """Sums of the estimates of all cells. How many rows f_xi of a value a cell took is not published; they add up to
    the cell's rows N_i and to the value's f_x. So with c_xi the variance that a row has there and any a_i <= c_xi

        sum f_xi c_xi <= sum_i a_i N_i + sum_x f_x max_i (c_xi - a_i),    and also <= sum_i N_i max_x c_xi
    """
    total, least, most, width = (np.zeros(len(weights)) for _ in range(4))
    above = np.zeros_like(weights)
    for places, (channel, o) in zip(part.cell_positions, cells_shown(part, shown), strict=True):
        cell, rows = Whole(channel.keep / FULL, channel.replace / FULL), float(o.sum())
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


def _together(part: Part, shown: Floats, known: Known, rare: float) -> bool:
    """Whether the average over alternatives is too large, whatever the noise: its logarithm is above L once in e^L.
    Nothing is said of line-ups, cells and swapped values."""
    whole = None if part.lineups is not None or part.cells_published else _whole(part)
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
