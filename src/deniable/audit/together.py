"""Rows together: what someone concludes who knows exactly how many rows hold each value, and sees all published rows
(mathematics 13.5).

A promise is about one row: to its attacker rows are independent draws. Whoever knows the counts f of this table also
knows that values shown too rarely, or too often, must have been replaced. Coins and a replacing distribution make that
computable. Let k_x rows of x be kept by their coin, K = sum k_x. The others are redrawn, whatever they hold, so that

    Pr[k | f, g] ~ (n - K)! prod_x  p_x^k_x (1-p_x)^(f_x-k_x) r_x^(g_x-k_x) / (k_x! (f_x-k_x)! (g_x-k_x)!)

g being how many rows show each value. Only K ties the values together: its distribution is a convolution, computed by
Fourier transforms, once without each kind of value. Of the g_x rows that show x then

    E[k_x + (f_x-k_x)(g_x-k_x) / (n-K)]

hold it, on average over all tables that the rows can have come from: exact, up to rounding (six digits and more), for
any number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import gammaln, xlogy

from deniable.audit.breaches import Limits, protects
from deniable.audit.findings import Finding, Name
from deniable.core.arrays import Counts, Floats
from deniable.core.channel import Channel
from deniable.core.exact import SCALE
from deniable.core.part import Part
from deniable.core.probability import percent

Complex = npt.NDArray[np.complex128]
RARE = 1000
NEGLIGIBLE = 1e-18  # of the likeliest number of kept rows
ROUNDING = 1e-13  # of the likeliest K
TENTH = 1.1  # of a promise: more is said aloud
TILTS = 40  # halvings
WIDTH = 16  # standard deviations on either side that are summed over


@dataclass(frozen=True)
class Kind:
    """Values that cannot be told apart: the same counts, coin and share of replacements.

    Attributes:
        held, shown: how many rows hold, and show, each of them.
        kept: the numbers of kept rows that matter, and ``logs``: ln of their likelihood, K apart.
    """

    held: int
    shown: int
    members: Counts
    kept: Floats
    logs: Floats

    def tilted(self, log_z: float) -> Floats:
        """The probabilities of ``kept`` where every kept row has the weight z."""
        logs = self.logs + self.kept * log_z
        weights: Floats = np.exp(logs - logs.max())
        return weights / weights.sum()


def true_among_shown(channel: Channel, held: Counts, shown: Counts, rare: int = RARE) -> Floats:
    """For each value, the expected share of the rows that show it which hold it.

    0 where no row shows it, and for values of more than ``rare`` rows: of these, counts tell hardly more than a row.

    Args:
        channel: coins and replacing distribution of one cell.
        held, shown: how many rows of the cell hold, and show, each value.
        rare: values of more rows are left out.
    """
    rows = int(held.sum())
    kinds = _kinds(channel, held, shown)
    if any(np.isneginf(kind.logs.max()) for kind in kinds):  # no table can have given these rows
        return np.zeros(len(held))
    log_z = _tilt(kinds, rows)
    chances = [kind.tilted(log_z) for kind in kinds]
    centre = sum(float(q @ kind.kept) * len(kind.members) for kind, q in zip(kinds, chances, strict=True))
    spread = sum(
        float(q @ (kind.kept - q @ kind.kept) ** 2) * len(kind.members) for kind, q in zip(kinds, chances, strict=True)
    )
    size = 1 << int(np.ceil(np.log2(2 * WIDTH * np.sqrt(spread) + 64)))
    transforms = [_transform(kind.kept, q, size) for kind, q in zip(kinds, chances, strict=True)]
    without = _without_one([(one, len(kind.members)) for one, kind in zip(transforms, kinds, strict=True)])
    share = np.zeros(len(held))
    for kind, q, product in zip(kinds, chances, without, strict=True):
        if kind.shown and kind.held <= rare:
            window = round(centre - float(q @ kind.kept)) - size // 2 + np.arange(size)
            others = np.fft.irfft(product, size)[window % size]  # a transform knows K up to its size
            there = others > ROUNDING * others.max()  # (n - K)! would make mountains of what is only rounding
            reach = slice(*np.flatnonzero(there)[[0, -1]] + (0, 1))
            expected = _expected(kind, q, np.where(there, others, 0.0)[reach], window[reach], rows, log_z)
            share[kind.members] = expected / kind.shown
    return share


def _kinds(channel: Channel, held: Counts, shown: Counts) -> list[Kind]:
    features = np.stack([held, shown, channel.keep, channel.replace], axis=1)
    distinct, inverse = np.unique(features, axis=0, return_inverse=True)
    made = []
    for number, (f, g, keep, replace) in enumerate(distinct.tolist()):
        kept = np.arange(min(f, g) + 1, dtype=np.float64)
        terms = ((kept, keep / SCALE), (f - kept, 1 - keep / SCALE), (g - kept, replace / SCALE))
        logs = sum(xlogy(count, chance) - gammaln(count + 1) for count, chance in terms)
        made.append(Kind(f, g, np.flatnonzero(inverse.reshape(-1) == number), kept, np.asarray(logs)))
    return made


def _tilt(kinds: Sequence[Kind], rows: int) -> float:
    """ln z with z (n - mean K) = 1: near the middle of K's distribution, (n - K)! falls by that for each kept row.

    It need only be near: any z gives the same answer but for rounding.
    """
    lengths = np.array([len(kind.kept) for kind in kinds])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    kept, logs = (np.concatenate([getattr(kind, name) for kind in kinds]) for name in ("kept", "logs"))
    times = np.array([len(kind.members) for kind in kinds])
    low, high = -np.log(rows + 1.0), 0.0
    for _ in range(TILTS):
        log_z = (low + high) / 2
        tilted = logs + kept * log_z
        weights = np.exp(tilted - np.repeat(np.maximum.reduceat(tilted, starts), lengths))
        mean = times @ (np.add.reduceat(weights * kept, starts) / np.add.reduceat(weights, starts))
        low, high = (log_z, high) if np.exp(log_z) * (rows - mean + 1) < 1 else (low, log_z)
    return float(low + high) / 2


def _transform(kept: Floats, chances: Floats, size: int) -> Complex:
    folded = np.zeros(size)
    np.add.at(folded, kept.astype(np.int64) % size, chances)
    return np.fft.rfft(folded)


def _without_one(transforms: Sequence[tuple[Complex, int]]) -> list[Complex]:
    """For each kind, the product of all transforms, each as often as its kind has values, but for one value of it."""
    before = [np.ones_like(transforms[0][0])]
    after = [np.ones_like(transforms[0][0])]
    for one, times in transforms:
        before.append(before[-1] * one**times)
    for one, times in reversed(transforms):
        after.append(after[-1] * one**times)
    return [
        before[place] * one ** (times - 1) * after[len(transforms) - 1 - place]
        for place, (one, times) in enumerate(transforms)
    ]


def _expected(kind: Kind, q: Floats, others: Floats, window: Counts, rows: int, log_z: float) -> float:
    """E[k + (f-k)(g-k) / (n-K)] of one value of a kind, K being its k and what the others keep.

    ``others`` are the chances of ``window``, whole numbers that follow each other.
    """
    matter = np.flatnonzero(q > NEGLIGIBLE * q.max())
    kept, chance = kind.kept[matter], q[matter]
    total = np.arange(window[0] + int(kept[0]), window[-1] + int(kept[-1]) + 1)
    left = np.maximum(rows - total, 0)
    middle = float(others @ window / others.sum())
    base = gammaln(rows + 1 - middle) - middle * log_z
    falls = np.where((total >= 0) & (total <= rows), np.exp(gammaln(left + 1) - total * log_z - base), 0.0)
    places = matter - matter[0]
    weight, by_left = (
        chance * (sliding_window_view(row, len(window)) @ others)[places]
        for row in (falls, falls / np.maximum(left, 1))
    )
    above = weight @ kept + by_left @ ((kind.held - kept) * (kind.shown - kept))
    return float(above / weight.sum()) if weight.any() else 0.0


@dataclass(frozen=True)
class Surest:
    """The protected value that rows together give away most.

    Attributes:
        position: which value, by its place in the domain.
        share: of the rows that show it, how many hold it: how sure one may be of each of them.
        shown: these rows.
        allowed: what is promised of a row alone.
    """

    position: int
    share: float
    shown: int
    allowed: Fraction

    @property
    def beyond(self) -> bool:
        """Whether it is more than a tenth above the promise."""
        return self.share > TENTH * self.allowed

    def in_words(self, name: Name) -> str:
        """What someone becomes sure of, and why the promise does not say so."""
        rows = "the row that shows" if self.shown == 1 else f"each of the {self.shown:,} rows that show"
        return (
            f"whoever knows exactly how many rows hold each value, and weighs all rows against each other, becomes "
            f"{percent(self.share)} sure of {rows} {name(self.position)}; the promise of {percent(self.allowed)} is "
            "about someone to whom rows are independent draws."
        )


def surest(part: Part, limits: Limits, cells: Sequence[tuple[Counts, Counts]], rare: int = RARE) -> Surest | None:
    """What rows together say most about a protected value; None where none is shown, or nothing is required.

    Args:
        part: with a channel for each cell, whose rows are drawn independently.
        limits: (rho1, rho2) of each value, None where it is exempt.
        cells: for each cell how many of its rows hold, and show, each of its values.
        rare: values of more rows are left out.
    """
    rows = max(sum(int(held.sum()) for held, _ in cells), 1)
    whole = np.zeros(len(part.domain), dtype=np.int64)
    for places, (held, _) in zip(part.cell_positions, cells, strict=True):
        whole[places] += held
    worst: Surest | None = None
    for channel, places, (held, shown) in zip(part.channels, part.cell_positions, cells, strict=True):
        if int(held.sum()) != int(shown.sum()):  # rows of another table, or a cell that was estimated
            return None
        shares = true_among_shown(channel, held, shown, rare)
        for place, share, count in zip(places.tolist(), shares.tolist(), shown.tolist(), strict=True):
            limit = limits[place]
            if limit is None or not protects(limit, Fraction(int(whole[place]), rows)):
                continue
            if share and (worst is None or share * worst.allowed > worst.share * limit[1]):
                worst = Surest(place, share, count, limit[1])
    return worst


def about_rows_together(gained: Surest | None, name: Name) -> list[Finding]:
    """The finding of an audit."""
    if gained is None:
        return []
    advice = "Lower rho2, or join rare values, if someone may know the exact counts." if gained.beyond else ""
    return [Finding("caution" if gained.beyond else "info", "rows together", gained.in_words(name), advice)]
