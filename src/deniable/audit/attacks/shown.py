"""What a row shows, drawn and weighed row by row, without a table of all views by all values.

An attacker needs two things of a mechanism: what the row of a person with value x would show, and how likely that is
under every value, up to a factor that is the same for all values:

    channels    cell c, then y:  s_cx (r_y (1 - p_x) + [y = x] p_x)
    line-ups    a set S:         t D(S) [x in S] / pi_x + (1-t) D(S)

Both are one number for all values of a cell, and more for the few that are shown: what someone believes afterwards
takes one look at their beliefs, however many rows are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from deniable.audit.attacks.evidence import shares_of
from deniable.core.arrays import Bools, Floats, Ints
from deniable.core.channel import Channel
from deniable.core.lineup import COIN, POINTS, LineUpDesign


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
