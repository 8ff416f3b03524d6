"""What an attacker who knows how frequent each value is concludes from what a row shows, in exact fractions."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from deniable.core import values
from deniable.core.channels import Channel
from deniable.core.errors import InternalError
from deniable.core.exact import SCALE, Distinct, distinct, posterior_of_sets
from deniable.core.values import Counts, Floats, Ints

# -- One cell as the attacker sees it: the largest and the smallest posterior of each of its values --------------------


# The cell (None: not published) and the position of the published value; positions where it is a set of values; None
# where the row shows none, only its group.
View = tuple[int | None, int | tuple[int, ...] | None]


class Extremes(NamedTuple):
    """The largest and smallest posterior of one value inside one cell, and its share of the cell."""

    highest: Fraction
    most_telling: View
    lowest: Fraction
    least_telling: View
    cell_only: Fraction


@dataclass(frozen=True)
class CellRows:
    """One cell as the attacker models it: where its values stand, its channel, and (in proportion) its rows."""

    positions: tuple[int, ...]
    channel: Channel
    rows: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return sum(self.rows)

    @cached_property
    def keep(self) -> list[int]:
        return [int(k) for k in self.channel.keep]

    @cached_property
    def replace(self) -> list[int]:
        return [int(w) for w in self.channel.replace]

    @cached_property
    def replaced(self) -> int:
        """T = sum_k N_k (S - K_k), the rows that are redrawn, times S."""
        return sum(n * (SCALE - k) for n, k in zip(self.rows, self.keep, strict=True))

    def takes(self, position: int) -> bool:
        """Whether the cell holds rows of a value."""
        return position in self._taken

    @cached_property
    def _taken(self) -> frozenset[int]:
        return frozenset(place for place, rows in zip(self.positions, self.rows, strict=True) if rows)

    def joint(self, y: int, x: int) -> int:
        """N_x P[y][x] S^2, for places y and x inside the cell."""
        drawn = self.rows[x] * (SCALE - self.keep[x]) * self.replace[y]
        return drawn + (self.rows[x] * self.keep[x] * SCALE if x == y else 0)

    def seen(self, y: int) -> int:
        """The rows that show y, times S^2."""
        return self.rows[y] * self.keep[y] * SCALE + self.replace[y] * self.replaced

    def as_shown(self, position: int) -> tuple[Floats, float]:
        """How many rows of each value show the value at a position, and how many of its own: of all that a row can
        show, this is what rows of other values show least, next to its own. Where no row shows it, what any other
        replacement comes to."""
        x = self.positions.index(position)
        kept, drawn = self.rows[x] * self.channel.coins[x], self._drawn
        share = self.channel.replacing[x] if kept or self.replace[x] else 1.0
        return drawn * share, float(kept + drawn[x] * share)

    @cached_property
    def _drawn(self) -> Floats:
        return np.array(self.rows) * (1 - self.channel.coins)


Side = list[tuple[Fraction, int]]  # the two smallest, or the two largest N_y K_y / W_y, each with its y


class _Reached(NamedTuple):
    """Extremes of a value, and the places where they are reached; None: where the value itself is published."""

    high: Fraction
    high_at: int | None
    low: Fraction
    low_at: int | None
    share: Fraction


def cell_extremes(cell: CellRows, index: int | None) -> dict[int, Extremes]:
    """The largest and smallest posterior of each value inside one cell, O(m).

        Pr[x | y] = N_x (S - K_x) / (N_y K_y S / W_y + T)  for y != x

    so among y != x only the smallest and the largest N_y K_y / W_y matter; y = x is looked at by itself.
    """
    alike = distinct(np.array(cell.rows, dtype=np.int64), cell.channel.keep, cell.channel.replace)
    ends, certain = _ends(cell, alike)
    apart = {*certain, *(y for side in ends for _, y in side)}  # for all others the same y are the extremes
    known: dict[int, _Reached] = {}
    extremes = {}
    for x, (position, kind) in enumerate(zip(cell.positions, alike.of, strict=True)):
        if not cell.rows[x]:
            continue
        if x in apart:
            reached = _extremes_of(cell, x, ends, certain)
        else:
            if kind not in known:
                known[kind] = _extremes_of(cell, x, ends, certain)
            reached = known[kind]
        most, least = (position if y is None else cell.positions[y] for y in (reached.high_at, reached.low_at))
        extremes[position] = Extremes(reached.high, (index, most), reached.low, (index, least), reached.share)
    return extremes


def _ends(cell: CellRows, alike: Distinct) -> tuple[tuple[Side, Side], list[int]]:
    """The two smallest and the two largest N_y K_y / W_y, each with its y; and the first two y that are published and
    never a replacement: such a value rules all others out."""
    members: list[list[int]] = [[] for _ in alike.rows]
    for y, kind in enumerate(alike.of):
        members[kind].append(y)
    ratio: Side = []
    certain: list[int] = []
    for (n, k, w), ys in zip(alike.rows, members, strict=True):
        if w and (cell.replaced or n * k):
            own = Fraction(n * k * SCALE, w)
            ratio += [(own, y) for y in {*ys[:2], *ys[-2:]}]
        elif n * k:
            certain += ys[:2]
    return (heapq.nsmallest(2, ratio), heapq.nlargest(2, ratio)), sorted(certain)[:2]


def _extremes_of(cell: CellRows, x: int, ends: tuple[Side, Side], certain: Sequence[int]) -> _Reached:
    """The largest and the smallest posterior of a value, and where; None: where it is published itself."""
    drawn = cell.rows[x] * (SCALE - cell.keep[x])
    options: list[tuple[Fraction, int | None]] = []
    if cell.seen(x):
        options.append((Fraction(cell.joint(x, x), cell.seen(x)), None))
    for side in ends:
        other = next(((r, y) for r, y in side if y != x), None)
        if other is not None and other[0] + cell.replaced:
            options.append((Fraction(drawn) / (other[0] + cell.replaced), other[1]))
    options += [(Fraction(0), y) for y in certain if y != x][:1]
    high, high_y = max(options, key=lambda option: option[0])
    low, low_y = min(options, key=lambda option: option[0])
    return _Reached(high, high_y, low, low_y, Fraction(cell.rows[x], cell.size))


# -- Several rows of one person, who holds the same value in all of them (mathematics 13.9) ----------------------------
# Against each other value z a view v speaks for x by Pr[v | x] / Pr[v | z], and views of several rows multiply:
#
#     Pr[x | v_1 .. v_k] <= f_x / (f_x + sum over z != x of f_z l_z^k),    l_z = min over v of Pr[v | z] / Pr[v | x]
#
# over all views that a row of x can have. One channel of coins reaches it: there x itself speaks most against every z.
# Cells, groups and line-ups rule values out, each of them others, so that few rows may leave a single one.


class Views(Protocol):
    """What rows can show."""

    @property
    def held(self) -> Ints:
        """The rows of each value."""
        ...

    def against(self, x: int) -> Floats:
        """l_z of every value z, for rows of the value x."""
        ...


def least_likely(likelihood: sparse.csr_array, own: Floats, outside: float = 0.0) -> Floats:
    """l_z of every value z.

    Args:
        likelihood: Pr[view | z] of the views that a row of x can show, [views, values]; values may be left out of one.
        own: Pr[view | x] of each.
        outside: the least Pr[view | z] / Pr[view | x] of values that are left out.
    """
    m = likelihood.shape[1]
    ratio = likelihood.data / np.repeat(own, np.diff(likelihood.indptr))
    least = np.full(m, np.inf)
    np.minimum.at(least, likelihood.indices, ratio)
    everywhere = np.bincount(likelihood.indices, minlength=m) == len(own)
    return np.where(everywhere, least, np.minimum(least, outside))


def surest_after(views: Views, rows: Mapping[int, int]) -> float:
    """How sure one can become, at most, of a value that so many rows of a person hold; over all these values."""
    surest = 0.0
    for x, number in rows.items():
        if x < len(views.held) and views.held[x]:  # exempt ones come after the last
            others = views.held * views.against(x) ** number
            surest = max(surest, float(views.held[x] / (views.held[x] + others.sum() - others[x])))
    return surest


# -- What an attacker who knows how frequent each value is concludes from what a row shows, in exact fractions ---------
# (mathematics 2).
#
# A row shows a view: a published value y and, where cells are published, its cell c. With N_c[x] rows of x in cell c,
#
#     Pr[x | c, y] = N_c[x] P_c[y][x] / sum_k N_c[k] P_c[y][k]
#
# so the cell counts as evidence. Where cells are not published both sums also run over the cells. Every entry of a
# channel is a whole number out of 2^64, so nothing is rounded.


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


# -- The stated requirement against the posteriors: who is protected, what breaks, and what stronger beliefs grow to.


FACTORS = (1, 2, 5, 10)
TENTH = Fraction(1, 10)
Limit = tuple[Fraction | None, Fraction] | None
Limits = tuple[Limit, ...]


@dataclass(frozen=True)
class Breach:
    """A belief that changes more than the requirement allows.

    Attributes:
        position: the value's place in the domain.
        prior, posterior: before and after seeing ``view``.
        allowed: the bound that is crossed: rho2 (upward) or rho1 (downward).
    """

    position: int
    prior: Fraction
    posterior: Fraction
    allowed: Fraction
    view: View


@dataclass(frozen=True)
class CurvePoint:
    """The worst that a belief stronger than the frequency can grow to.

    Attributes:
        label: which belief: ``"2x"`` is twice the value's frequency, ``"10 %"`` one in ten, ``"rho1"`` the
            requirement's own.
        position: the value for which it is worst.
        prior, posterior: that belief, before and after.
    """

    label: str
    position: int
    prior: Fraction
    posterior: Fraction


def limits_of(privacy: Mapping[str, Any] | None, domain: Sequence[Hashable]) -> Limits:
    """For each value its (rho1, rho2) as the manifest states them, rho1 None for "its frequency"; None: exempt."""
    if privacy is None:
        return (None,) * len(domain)
    exempt = {_key(value) for value in privacy["exempt"]}
    fine = {_key(value): (Fraction(low), Fraction(high)) for value, low, high in privacy["per_value"]}
    rho1 = None if privacy["rho1"] is None else Fraction(privacy["rho1"])
    common = None if privacy["rho2"] is None or fine else (rho1, Fraction(privacy["rho2"]))
    keys = [_key(values.to_json(value)) for value in domain]
    return tuple(None if key in exempt else fine.get(key, common) for key in keys)


def upward(beliefs: Sequence[Belief], limits: Limits) -> tuple[Breach, ...]:
    """Values believed at most at rho1 beforehand that can be believed above rho2 afterwards, worst first."""
    breaches = [
        Breach(belief.position, belief.prior, belief.highest, limit[1], belief.most_telling)
        for belief in beliefs
        if (limit := limits[belief.position]) is not None
        and protects(limit, belief.prior)
        and belief.highest > limit[1]
    ]
    return tuple(sorted(breaches, key=lambda breach: breach.allowed - breach.posterior))


def downward(beliefs: Sequence[Belief], limits: Limits) -> tuple[Breach, ...]:
    """Values believed at least at rho2 beforehand that can be believed below rho1 afterwards, worst first."""
    breaches = []
    for belief in beliefs:
        limit = limits[belief.position]
        if limit is not None and limit[0] is not None and belief.prior >= limit[1] and belief.lowest < limit[0]:
            breaches.append(Breach(belief.position, belief.prior, belief.lowest, limit[0], belief.least_telling))
    return tuple(sorted(breaches, key=lambda breach: breach.posterior - breach.allowed))


def protects(limit: Limit, share: Fraction | float) -> bool:
    """Whether a requirement speaks of a value: its share of the rows is at most rho1 (mathematics 2, "Protected
    values")."""
    return limit is not None and (limit[0] is None or share <= limit[0])


def curve(beliefs: Sequence[Belief], limits: Limits) -> tuple[CurvePoint, ...]:
    """The worst posterior over all values in question for beliefs at 1, 2, 5 and 10 times the frequency, at 10 % (which
    shows how a rare value fares) and at rho1.

    In question are the protected values, or all of them where nothing is required. Beliefs stop at 1/2: whoever starts
    above it already knows.
    """
    required = any(limit is not None for limit in limits)
    chosen = []
    for belief in beliefs:
        limit = limits[belief.position]
        if not required or protects(limit, belief.prior):
            chosen.append((belief, None if limit is None else limit[0]))
    points = []
    for factor in FACTORS:
        stronger = [(b, min(factor * b.prior, max(b.prior, Fraction(1, 2)))) for b, _ in chosen]
        points += _worst(f"{factor}x", stronger)
    points += _worst("10 %", [(b, TENTH) for b, _ in chosen if b.prior <= TENTH])
    points += _worst("rho1", [(b, max(rho1, b.prior)) for b, rho1 in chosen if rho1 is not None])
    return tuple(points)


def _worst(label: str, priors: Sequence[tuple[Belief, Fraction]]) -> list[CurvePoint]:
    points = [CurvePoint(label, belief.position, prior, belief.at_prior(prior)) for belief, prior in priors]
    return [max(points, key=lambda point: point.posterior)] if points else []


def _key(value: Any) -> Hashable:
    """Values of a manifest, so that True is not 1 and 1 is not "1"."""
    return (type(value).__name__, value)
