"""What an attacker who knows how frequent each value is concludes from what a row shows, in exact fractions
(mathematics 2).

A row shows a view: a published value y and, where cells are published, its cell c. With N_c[x] rows of x in cell c,

    Pr[x | c, y] = N_c[x] P_c[y][x] / sum_k N_c[k] P_c[y][k]

so the cell counts as evidence. Where cells are not published both sums also run over the cells. Every entry of a
channel is a whole number out of 2^64, so nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse

from deniable.audit.extremes import CellRows, Extremes, View, cell_extremes
from deniable.audit.repeats import least_likely
from deniable.core.arrays import Counts, Floats, Ints
from deniable.core.channel import Channel
from deniable.core.errors import InternalError
from deniable.core.exact import posterior_of_sets


@dataclass(frozen=True)
class Belief:
    """How sure the attacker is of one value before, and at most and at least after, seeing a row.

    Attributes:
        position: which value, by its place in the domain.
        prior: its relative frequency.
        highest, most_telling: the largest posterior, and the view that leads to it.
        lowest, least_telling: the smallest posterior, and the view that leads to it.
        cell_only: the largest belief on seeing a row's cell alone, before its value.
    """

    position: int
    prior: Fraction
    highest: Fraction
    most_telling: View
    lowest: Fraction
    least_telling: View
    cell_only: Fraction

    def at_prior(self, prior: Fraction) -> Fraction:
        """The largest posterior of an attacker who believed the value at ``prior``, the others in proportion.

            b L / (1 - b + b L),   L = (h / (1 - h)) / (f / (1 - f))

        L is the largest likelihood ratio that any view has; the posterior h at the frequency f determines it.
        """
        return revised(prior, self.prior, self.highest)


def revised(prior: Fraction, frequency: Fraction, posterior: Fraction) -> Fraction:
    """The posterior at another prior, by the likelihood ratio that turned ``frequency`` into ``posterior``.

    >>> revised(Fraction(1, 5), Fraction(1, 10), Fraction(1, 4))
    Fraction(3, 7)

    Of the only value that there is nobody learns anything: a belief in it stays as it was.
    """
    if frequency == 1:
        return prior
    mine = prior * posterior * (1 - frequency)
    others = (1 - prior) * (1 - posterior) * frequency
    return mine / (mine + others) if mine + others else Fraction(0)


class Posteriors:
    """Every posterior of a release, for the attacker whose prior is the frequency of each value.

    Args:
        cells: the cells, with the rows of each value in each. One common scale; whole numbers.
        published: whether a row shows its cell.
    """

    def __init__(self, cells: Sequence[CellRows], *, published: bool) -> None:
        if any(len(cell.positions) != len(cell.rows) or len(cell.rows) != cell.channel.m for cell in cells):
            raise InternalError("a cell needs one position and one number of rows for each value of its channel")
        self.cells = tuple(cells)
        self._apart = published or len(cells) == 1  # cells can be looked at one by one
        self.shows_cell = published
        self._shares: dict[int, Fraction] = {}
        totals: dict[int, int] = {}
        for cell in cells:
            for place, rows in zip(cell.positions, cell.rows, strict=True):
                totals[place] = totals.get(place, 0) + rows
        self.totals = totals
        self.rows = sum(totals.values())

    def given(self, y: int, cell: int | None = None) -> dict[int, Fraction]:
        """Pr[x | view] for each value x that is possible, by position; empty when the view never occurs."""
        weights: dict[int, int] = {}
        for index, one in enumerate(self.cells):
            if y in one.positions and (not self._apart or len(self.cells) == 1 or index == cell):
                place = one.positions.index(y)
                for x, position in enumerate(one.positions):
                    weights[position] = weights.get(position, 0) + one.joint(place, x)
        seen = sum(weights.values())
        return {x: Fraction(weight, seen) for x, weight in weights.items() if weight} if seen else {}

    def views(self) -> Iterator[View]:
        """Everything that a row can show."""
        if not self.shows_cell:
            yield from ((None, y) for y in sorted(self.totals))
            return
        for index, cell in enumerate(self.cells):
            yield from ((index, y) for y in cell.positions)

    @cached_property
    def held(self) -> Ints:
        """The rows of each value, by position."""
        return np.array([self.totals.get(x, 0) for x in range(max(self.totals, default=-1) + 1)], dtype=np.int64)

    def against(self, x: int) -> Floats:
        """Of every value, how rarely it shows what a row of x can show (``repeats``)."""
        if not self._apart:
            shown = self._hidden[self._hidden[:, [x]].nonzero()[0]]
            return least_likely(shown, shown[:, [x]].toarray()[:, 0])
        rows, own = zip(*(cell.as_shown(x) for cell in self.cells if cell.takes(x)), strict=True)
        places = np.concatenate([cell.positions for cell in self.cells if cell.takes(x)])
        per_row = np.concatenate(rows) / np.maximum(self.held[places], 1)
        ends = np.cumsum([0, *map(len, rows)])
        shown = sparse.csr_array((per_row, places, ends), shape=(len(rows), len(self.held)))
        return least_likely(shown, np.array(own) / self.held[x])

    def chances(self, y: Ints, x: Ints) -> Floats:
        """Pr[y | x] for places of published and true values, where no cell is seen."""
        if len(self.cells) > 1:
            hidden: Floats = self._hidden[y][:, x].toarray()
            return hidden
        coins, replacing = self.cells[0].channel.coins[x], self.cells[0].channel.replacing[y]
        return replacing[:, None] * (1 - coins) + (y[:, None] == x) * coins

    @cached_property
    def _hidden(self) -> sparse.csr_array:
        """Pr[y | x], [views, values], where nobody sees the cells."""
        entries = [
            (y, x, weight / self.totals[x]) for y, row in self._mixture.items() for x, weight in row.items() if weight
        ]
        y, x, shares = (np.array(column) for column in zip(*entries, strict=True))
        return sparse.csr_array((shares, (y, x)), shape=(len(self.held), len(self.held)))

    @cached_property
    def beliefs(self) -> tuple[Belief, ...]:
        """The extremes for every value that has rows, in the order of the domain."""
        if not self._apart:
            return self._mixed_beliefs()
        extremes_of: dict[int, list[Extremes]] = {}
        for index, cell in enumerate(self.cells):
            for x, extremes in cell_extremes(cell, index if self.shows_cell else None).items():
                extremes_of.setdefault(x, []).append(extremes)
        return tuple(self._belief(x, extremes_of[x]) for x in sorted(extremes_of))

    def _share(self, rows: int) -> Fraction:
        """Of the table; the same object for as many rows."""
        if rows not in self._shares:
            self._shares[rows] = Fraction(rows, self.rows)
        return self._shares[rows]

    def _belief(self, x: int, cells: Sequence[Extremes]) -> Belief:
        """The extremes over all cells; a published cell without the value rules it out."""
        top = low = cells[0]
        if len(cells) > 1:
            top = max(cells, key=lambda cell: cell.highest)
            low = min(cells, key=lambda cell: cell.lowest)
        lowest, least_telling = low.lowest, low.least_telling
        without = next((i for i, cell in enumerate(self.cells) if cell.size and not cell.takes(x)), None)
        if without is not None and lowest.numerator > 0:
            other = self.cells[without]
            shown = next(position for y, position in enumerate(other.positions) if other.seen(y))
            lowest, least_telling = Fraction(0), (without, shown)
        prior = self._share(self.totals[x])
        alone = max(cell.cell_only for cell in cells) if self.shows_cell else prior
        return Belief(x, prior, top.highest, top.most_telling, lowest, least_telling, alone)

    def of_sets(self, sets: Counts) -> list[Fraction]:
        """The largest Pr[x in set | view] of each set of a partition: ``sets[x]`` is the set of the value at x."""
        sure = [Fraction(0)] * (int(sets.max()) + 1)
        for number, belief in self._sets_by_cell(sets) if self._apart else self._sets_by_view(sets):
            sure[number] = max(sure[number], belief)
        return sure

    def _sets_by_cell(self, sets: Counts) -> Iterator[tuple[int, Fraction]]:
        for cell in self.cells:
            if cell.size:
                numbers, within = np.unique(sets[list(cell.positions)], return_inverse=True)
                rows = np.array(cell.rows, dtype=np.int64)
                beliefs = posterior_of_sets(cell.channel.keep, cell.channel.replace, rows, within)
                yield from zip(numbers.tolist(), beliefs, strict=True)

    def _sets_by_view(self, sets: Counts) -> Iterator[tuple[int, Fraction]]:
        for seen in self._seen_rows():
            weights: dict[int, int] = {}
            for x, weight in seen.items():
                weights[int(sets[x])] = weights.get(int(sets[x]), 0) + weight
            total = sum(weights.values())
            yield from ((number, Fraction(weight, total)) for number, weight in weights.items())

    @cached_property
    def amplification(self) -> Fraction | None:
        """max over views v and values x, x' of Pr[v | x] / Pr[v | x'], the cell included; None when unbounded.

        Pr[c, y | x] = (N_c[x] / N[x]) P_c[y][x]: exactly the epsilon of the release, as ln of it (mathematics 2).
        """
        if len(self.cells) == 1:
            return self.cells[0].channel.exact_gamma
        occurring = sum(1 for rows in self.totals.values() if rows)
        worst = Fraction(1)
        for seen in self._seen_rows():
            if len(seen) < occurring:
                return None
            likelihoods = [Fraction(weight, self.totals[x]) for x, weight in seen.items()]
            worst = max(worst, max(likelihoods) / min(likelihoods))
        return worst

    def _seen_rows(self) -> Iterator[dict[int, int]]:
        """For each view that occurs: value -> how many rows of it show the view, in one scale."""
        if not self._apart:
            rows: Iterable[dict[int, int]] = self._mixture.values()
        else:
            rows = (
                {position: cell.joint(y, x) for x, position in enumerate(cell.positions)}
                for cell in self.cells
                for y in range(len(cell.positions))
            )
        for row in rows:
            if seen := {x: weight for x, weight in row.items() if weight}:
                yield seen

    @cached_property
    def _mixture(self) -> dict[int, dict[int, int]]:
        """Published value -> value -> rows, summed over cells that nobody sees."""
        joint: dict[int, dict[int, int]] = {}
        for cell in self.cells:
            for y, seen in enumerate(cell.positions):
                row = joint.setdefault(seen, {})
                for x, position in enumerate(cell.positions):
                    row[position] = row.get(position, 0) + cell.joint(y, x)
        return joint

    def _mixed_beliefs(self) -> tuple[Belief, ...]:
        """The extremes when a value is dealt to cells that nobody sees: the joint table, published value by value."""
        joint = self._mixture
        shown = {y: total for y, row in sorted(joint.items()) if (total := sum(row.values()))}
        options: dict[int, list[tuple[Fraction, int]]] = {}
        for y, total in shown.items():
            for x, weight in joint[y].items():
                if weight:
                    options.setdefault(x, []).append((Fraction(weight, total), y))
        beliefs = []
        for x in sorted(options):
            high, at = max(options[x], key=lambda option: option[0])
            low, low_at = min(options[x], key=lambda option: option[0])
            if len(options[x]) < len(shown):
                possible = {y for _, y in options[x]}
                low, low_at = Fraction(0), next(y for y in shown if y not in possible)
            prior = Fraction(self.totals[x], self.rows)
            beliefs.append(Belief(x, prior, high, (None, at), low, (None, low_at), prior))
        return tuple(beliefs)


def cells_from(channels: Sequence[Channel], positions: Sequence[Counts], rows: Sequence[Counts]) -> list[CellRows]:
    """Cells from a manifest's channels and positions, and the rows of each cell's values."""
    return [
        CellRows(tuple(int(p) for p in place), channel, tuple(int(n) for n in counts))
        for channel, place, counts in zip(channels, positions, rows, strict=True)
    ]
