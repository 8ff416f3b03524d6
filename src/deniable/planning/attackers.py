"""Attackers who know public columns: what a published row shows them, and how often they are right beside a guess that
needs no release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from deniable.core.channels import Channel
from deniable.core.lineups import COIN, POINTS, LineUpDesign
from deniable.core.values import Bools, Codes, Floats, Ints, percent

# -- How often an attack is right, with an interval, beside the guess that needs no release ----------------------------


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


# -- A classifier as attacker: someone who learns from the whole release and predicts a person from public values alone.
# Cormode's point: what a release teaches about the population it also teaches about everyone in it, protected or not.
# The classifier is naive Bayes; its counts are reconstructed from the published rows with the channel's inverse
# weights, and what they say about a value is shrunk by as much of it as is noise (James and Stein):
#
#     Pr[k | x] = s_k + max(0, 1 - sum_k V_xk / sum_k (c_xk - c_x s_k)^2) (c_xk / c_x - s_k)
#
# with c the counts, V their variance and s the shares of all rows. It needs no row of the person. Where it succeeds the
# fault is not the mechanism's: that is what the data say.


SMOOTHING = 1.0


def classifier(
    published: Sequence[Codes],
    views: Codes,
    weights: Floats,
    prior: Floats,
    people: Sequence[Codes],
    original: Codes,
) -> AttackResult:
    """Train on the published rows, predict every person.

    Args:
        published: the public columns of the release, coded 0, 1, ...
        views: for each published row, what it shows.
        weights: views x values; how much a view counts for each value: ``Evidence.weights``, or for a group of Anatomy
            the shares of its values.
        prior: the frequencies.
        people: the public columns of the people, coded as in ``published``.
        original: for each person, their true value.
    """
    seen = seen_together(published, views, len(weights), people)
    with np.errstate(divide="ignore"):
        score = np.log(prior / prior.sum()) + column_scores(seen, weights, prior, people)
    return judged("classifier", score.argmax(1) == original, blind_guess(original), f"{len(published)} public columns")


def seen_together(published: Sequence[Codes], views: Codes, number: int, people: Sequence[Codes] = ()) -> list[Floats]:
    """For each public column, in how many rows each of ``number`` views goes with each of its values: [views, values].

    Values that only people have are there too.
    """
    own = people or [column[:0] for column in published]
    sizes = [int(max(one.max(initial=0), other.max(initial=0))) + 1 for one, other in zip(published, own, strict=True)]
    return [
        np.bincount(views.astype(np.int64) * size + column, minlength=number * size).reshape(number, size).astype(float)
        for column, size in zip(published, sizes, strict=True)
    ]


def column_scores(seen: Sequence[Floats], weights: Floats, prior: Floats, people: Sequence[Codes]) -> Floats:
    """log Pr[public columns | value], each column by itself, of every person: [people, values].

    ``seen`` is what ``seen_together`` says of the rows that are learnt from.
    """
    score = np.zeros((len(people[0]) if people else 0, len(prior)))
    for rows, own in zip(seen, people, strict=True):
        share = rows.sum(0) / max(rows.sum(), 1.0)
        learnt = _conditional(weights.T @ rows, (weights**2).T @ rows, share, prior / prior.sum())
        score += np.log(learnt).T[own]
    return score


def _conditional(counts: Floats, variance: Floats, share: Floats, prior: Floats) -> Floats:
    """Pr[category | value], values x categories, from noisy counts; how frequent values are is known."""
    total = np.maximum(prior * share.sum() * counts.sum(), 1.0)[:, None]
    apart = counts - counts.sum(1, keepdims=True) * share
    signal, noise = (apart**2).sum(1, keepdims=True), variance.sum(1, keepdims=True)
    kept = np.divide(np.maximum(signal - noise, 0.0), signal, out=np.zeros_like(signal), where=signal > 0)
    fitted = np.maximum(share + kept * apart / total, 0.0)
    smooth: Floats = (total * fitted + SMOOTHING * (share + 1e-12)) / (total * fitted.sum(1, keepdims=True) + SMOOTHING)
    return smooth


# -- What a published row says: Pr[what it shows | its true value], which every attacker reads off the manifest --------


@dataclass(frozen=True, eq=False)
class Evidence:
    """A channel from values to views, and what was believed before.

    Attributes:
        likelihood: one row per view, one column per value: Pr[view | value].
        prior: the attacker's belief in each value; the frequencies, unless they know more.
    """

    likelihood: Floats
    prior: Floats

    @classmethod
    def as_published(cls, prior: npt.ArrayLike) -> Evidence:
        """Values that are published as they are: the view is the value. Anatomy, generalization, no protection."""
        belief = np.asarray(prior, dtype=np.float64)
        return cls(np.eye(len(belief)), belief / belief.sum())

    @classmethod
    def of_channels(
        cls,
        prior: npt.ArrayLike,
        channels: Sequence[Channel],
        positions: Sequence[Codes],
        dealt: Sequence[npt.ArrayLike] | None = None,
        *,
        cells_shown: bool = True,
    ) -> Evidence:
        """A manifest's channels. View number: cell * m + position of the published value (``views_of``); where rows do
        not show their cells the view is the published value, and the channel their mixture.

        ``dealt`` holds, for each cell, how many rows of each of its values it took (in proportion); with several cells
        they are needed, because the cell is evidence too.
        """
        belief = np.asarray(prior, dtype=np.float64)
        m = len(belief)
        share = shares_of(positions, dealt, m)
        likelihood = np.zeros(((len(channels) if cells_shown else 1) * m, m))
        for cell, (channel, place) in enumerate(zip(channels, positions, strict=True)):
            views = np.asarray(place) + (cell * m if cells_shown else 0)
            likelihood[np.ix_(views, place)] += channel.matrix() * share[cell, place]
        return cls(likelihood, belief / belief.sum())

    @property
    def exact(self) -> bool:
        """Whether rows show their true values."""
        square = self.likelihood.shape == (len(self.prior), len(self.prior))
        return square and bool((self.likelihood == np.eye(len(self.prior))).all())

    @cached_property
    def posterior(self) -> Floats:
        """Pr[value | view], one row per view; the prior where a view never occurs."""
        joint = self.likelihood * self.prior
        seen = joint.sum(1, keepdims=True)
        result: Floats = np.where(seen > 0, joint / np.where(seen > 0, seen, 1.0), self.prior)
        return result

    @cached_property
    def weights(self) -> Floats:
        """One row per view, one column per value: E[weight of x | value k] = 1[x = k] where the channel allows it."""
        possible = self.likelihood.any(axis=1)
        weights = np.zeros_like(self.likelihood)
        weights[possible] = np.linalg.pinv(self.likelihood[possible]).T
        return weights


def shares_of(positions: Sequence[Codes], dealt: Sequence[npt.ArrayLike] | None, m: int) -> Floats:
    """Of each value's rows the share that each cell took, cells x values."""
    share = np.zeros((len(positions), m))
    for cell, place in enumerate(positions):
        share[cell, place] = 1.0 if dealt is None else np.asarray(dealt[cell], dtype=np.float64)
    total = share.sum(0)
    return np.divide(share, total, out=np.zeros_like(share), where=total > 0)


def views_of(published: Codes, m: int, cells: Codes | None = None) -> Codes:
    """The view that each row shows: its value, or its cell and its value."""
    return published if cells is None else cells.astype(np.int64) * m + published


# -- What a row shows, drawn and weighed row by row, without a table of all views by all values ------------------------
# An attacker needs two things of a mechanism: what the row of a person with value x would show, and how likely that is
# under every value, up to a factor that is the same for all values:
#
#     channels    cell c, then y:  s_cx (r_y (1 - p_x) + [y = x] p_x)
#     line-ups    a set S:         t D(S) [x in S] / pi_x + (1-t) D(S)
#
# Both are one number for all values of a cell, and more for the few that are shown: what someone believes afterwards
# takes one look at their beliefs, however many rows are drawn.


class Shown(Protocol):
    """What rows of a release show."""

    def draw(self, original: Ints, rng: np.random.Generator) -> Ints:
        """The view of a row for each true value."""
        ...

    def judged(self, beliefs: Floats, people: Ints, views: Ints, original: Ints) -> tuple[Floats, Bools]:
        """For each view of one of the people, whose value is ``original``: how much the truth is believed afterwards,
        and whether nothing is believed more. ``beliefs`` are those before, [people, values]."""
        ...


def judged_by_likelihood(likelihood: Floats, beliefs: Floats, people: Ints, original: Ints) -> tuple[Floats, Bools]:
    """``Shown.judged`` from Pr[view | value] of each view, [views, values], each row up to a factor."""
    before = beliefs[people]
    joint = before * likelihood
    total = joint.sum(1, keepdims=True)
    after = np.where(total > 0, joint / np.where(total > 0, total, 1.0), before)
    return after[np.arange(len(original)), original], after.argmax(1) == original


@dataclass(frozen=True)
class NothingShown:
    """No release at all."""

    m: int

    def draw(self, original: Ints, rng: np.random.Generator) -> Ints:
        return np.zeros_like(original)

    def judged(self, beliefs: Floats, people: Ints, views: Ints, original: Ints) -> tuple[Floats, Bools]:
        return beliefs[people, original], beliefs.argmax(1)[people] == original


@dataclass(frozen=True, eq=False)
class Views:
    """The table of all views by all values, where there is one: Pr[view | value].

    Rows of a value that no view shows were left out of the release: they show nothing, which is the view -1.
    """

    chances: Floats

    def draw(self, original: Ints, rng: np.random.Generator) -> Ints:
        views = np.full(len(original), -1, np.int64)
        for value in np.unique(original):
            chance, own = self.chances[:, value], original == value
            if chance.any():
                views[own] = rng.choice(len(chance), size=int(own.sum()), p=chance / chance.sum())
        return views

    def judged(self, beliefs: Floats, people: Ints, views: Ints, original: Ints) -> tuple[Floats, Bools]:
        likelihood = np.where(views[:, None] < 0, 1.0, self.chances[views])
        return judged_by_likelihood(likelihood, beliefs, people, original)


@dataclass(frozen=True, eq=False)
class ChannelRows:
    """Rows that show a value, and their cell where there are several: the view is cell * m + published value.

    Attributes:
        shares: of each value's rows the share that each cell took, [cells, m].
        coins, replacing: of each cell over all values, [cells, m]; 0 where a cell does not hold a value.
        cells_shown: whether a row shows its cell; otherwise what it shows is weighed over all cells.
    """

    shares: Floats
    coins: Floats
    replacing: Floats
    cells_shown: bool

    @classmethod
    def of(
        cls,
        m: int,
        channels: Sequence[Channel],
        positions: Sequence[Ints],
        dealt: Sequence[npt.ArrayLike],
        *,
        cells_shown: bool,
    ) -> ChannelRows:
        """From channels, the values that each takes, and how many rows of each."""
        coins, replacing = np.zeros((len(channels), m)), np.zeros((len(channels), m))
        for cell, (channel, places) in enumerate(zip(channels, positions, strict=True)):
            coins[cell, places], replacing[cell, places] = channel.coins, channel.replacing
        return cls(shares_of(positions, dealt, m), coins, replacing, cells_shown)

    def draw(self, original: Ints, rng: np.random.Generator) -> Ints:
        m = self.shares.shape[1]
        ends = np.cumsum(self.shares, axis=0)
        cells = np.minimum((rng.random(len(original)) * ends[-1, original] >= ends[:, original]).sum(0), len(ends) - 1)
        published = original.copy()
        redrawn = rng.random(len(original)) >= self.coins[cells, original]
        for cell in np.unique(cells[redrawn]):
            rows = np.flatnonzero(redrawn & (cells == cell))
            published[rows] = rng.choice(m, len(rows), p=self.replacing[cell] / self.replacing[cell].sum())
        return cells * m + published

    def _over_cells(self, published: Ints) -> Floats:
        """Pr[published value | value] of rows that do not show their cells."""
        used, place = np.unique(published, return_inverse=True)
        kept = self.coins * self.shares
        over_cells = self.replacing[:, used].T @ (self.shares - kept)
        over_cells[np.arange(len(used)), used] += kept.sum(0)[used]
        weighed: Floats = over_cells[place]
        return weighed

    def judged(self, beliefs: Floats, people: Ints, views: Ints, original: Ints) -> tuple[Floats, Bools]:
        cells, published = np.divmod(views, self.shares.shape[1])
        if not self.cells_shown and len(self.shares) > 1:
            return judged_by_likelihood(self._over_cells(published), beliefs, people, original)
        own, right = np.empty(len(views)), np.empty(len(views), dtype=bool)
        for cell in np.unique(cells):
            rows = np.flatnonzero(cells == cell)
            own[rows], right[rows] = self._judged_in(cell, beliefs, people[rows], published[rows], original[rows])
        return own, right

    def _judged_in(
        self, cell: int, beliefs: Floats, people: Ints, published: Ints, original: Ints
    ) -> tuple[Floats, Bools]:
        """In one cell: r_y times the belief that was replaced, and more for the value y that is shown."""
        places = np.flatnonzero(self.shares[cell])
        lost, kept = (1 - self.coins[cell]) * self.shares[cell], self.coins[cell] * self.shares[cell]
        replaced = beliefs[:, places] * lost[places]
        first, height = places[replaced.argmax(1)][people], replaced.max(1)[people]
        r, more = self.replacing[cell, published], beliefs[people, published] * kept[published]
        total = r * replaced.sum(1)[people] + more
        own = r * beliefs[people, original] * lost[original] + np.where(published == original, more, 0.0)
        guess = np.where(r * beliefs[people, published] * lost[published] + more > r * height, published, first)
        known = total > 0  # a belief of 0 in all that can show this: nothing is learnt
        own = np.where(known, own / np.where(known, total, 1.0), beliefs[people, original])
        return own, np.where(known, guess, beliefs.argmax(1)[people]) == original


@dataclass(frozen=True, eq=False)
class LineUpRows:
    """Rows that show a set of values; the view is the number of the set."""

    design: LineUpDesign

    @cached_property
    def _holding(self) -> tuple[Ints, Ints, Floats]:
        """For each value the sets that hold it, one value after another: where each value begins, the sets, and how
        many of the value's draws have come before the end of each, all values added up."""
        sets = self.design.sets
        order = np.argsort(sets.members, axis=None, kind="stable")
        starts = np.searchsorted(sets.members.ravel()[order], np.arange(self.design.m + 1))
        return starts, order // self.design.size, np.cumsum(sets.hits.ravel()[order].astype(np.float64))

    def draw(self, original: Ints, rng: np.random.Generator) -> Ints:
        starts, holding, ends = self._holding
        lengths = np.cumsum(self.design.sets.lengths)
        views = np.searchsorted(lengths, rng.integers(0, lengths[-1], len(original)), "right")
        around = rng.random(len(original)) < self.design.share_true
        own = original[around]
        before = np.where(starts[own] > 0, ends[starts[own] - 1], 0.0)
        point = before + rng.random(len(own)) * (ends[starts[own + 1] - 1] - before)
        views[around] = holding[np.clip(np.searchsorted(ends, point, "right"), starts[own], starts[own + 1] - 1)]
        return views

    def likelihood(self, views: Ints) -> Floats:
        """Pr[view | value], [views, values]."""
        sets, coin = self.design.sets, float(self.design.coin)  # a product of whole numbers can pass 2^63
        blind = (COIN - coin) * sets.lengths[views].astype(np.float64)
        chance = np.repeat(blind[:, None], self.design.m, axis=1)
        around = coin * sets.hits[views].astype(np.float64)  # whole numbers would overflow in sets of one
        np.put_along_axis(chance, sets.members[views], around + blind[:, None], axis=1)
        return chance / (float(COIN) * self.design.orders * POINTS)

    def judged(self, beliefs: Floats, people: Ints, views: Ints, original: Ints) -> tuple[Floats, Bools]:
        sets, coin = self.design.sets, float(self.design.coin)
        blind = (COIN - coin) * sets.lengths[views].astype(np.float64)
        around, members = coin * sets.hits[views].astype(np.float64), sets.members[views]
        inside = beliefs[people[:, None], members]
        first, height = beliefs.argmax(1)[people], beliefs.max(1)[people]
        raised = inside * (around + blind[:, None])
        total = blind * beliefs.sum(1)[people] + (inside * around).sum(1)
        before = beliefs[people, original]
        own = before * (blind + np.where(members == original[:, None], around, 0.0).sum(1))
        largest = raised.argmax(1)[:, None]
        rises = np.take_along_axis(raised, largest, 1)[:, 0] > blind * height
        guess = np.where(rises, np.take_along_axis(members, largest, 1)[:, 0], first)
        known = total > 0
        return np.where(known, own / np.where(known, total, 1.0), before), np.where(known, guess, first) == original
