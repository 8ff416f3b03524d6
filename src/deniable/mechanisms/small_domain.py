"""Small-domain randomization: split the rows into cells of few values and perturb each within its own
(mathematics 4).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain, compress
from typing import ClassVar

import numpy as np

from deniable.core import exact
from deniable.core.errors import (
    InternalError,
    OptionError,
    RequirementError,
    did_you_mean,
    listing,
    option,
    shortened,
)
from deniable.core.exact import own_amplifications
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy, largest_prior
from deniable.core.promise import Cells, Guarantee, Single
from deniable.core.values import Bools, Counts, Floats, percent, rounded
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.one_cell import covered_singles, loose_singles
from deniable.mechanisms.partitioning import (
    CHANNELS,
    COSTS,
    ORDERS,
    ChannelKind,
    CostName,
    Group,
    OrdersKind,
    Rules,
    Seating,
    balance,
    cost_named,
    joined,
    merge,
    weights_for,
)
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    OWN_MARGINS,
    beyond_rho1,
    check_histogram,
    checks_tell,
    covered_values,
    exempt_positions,
    largest_protected_frequency,
    needs_rho2,
    require_values,
    surest_bound,
)

# -- The options that say which values may make up a cell, checked and turned into rules for the merge -----------------


Apart = tuple[tuple[Hashable, ...], ...]


def problems_of(keep_apart: Apart, categories: Mapping[Hashable, Hashable] | None, min_categories: int) -> list[str]:
    """What is wrong with the options by themselves, before any table is known."""
    problems = [
        f"keep_apart holds {listing(list(values))}: each entry must name at least two values."
        for values in keep_apart
        if len(set(values)) < 2
    ]
    if min_categories < 1:
        problems.append(f"min_categories = {min_categories} is not allowed: a cell holds at least 1 category.")
    if min_categories > 1 and categories is None:
        problems.append(
            f"min_categories = {min_categories} needs a category map: give categories={{value: category, ..}}."
        )
    return problems


def rules_for(
    histogram: Histogram,
    keep_apart: Apart,
    categories: Mapping[Hashable, Hashable] | None,
    min_categories: int,
    min_rows: int,
) -> Rules:
    """The rules for one table. Whatever no single cell of all rows can meet, no smaller cell can meet either."""
    apart = np.zeros((len(keep_apart), histogram.m))
    for row, values in zip(apart, keep_apart, strict=True):
        require_values("keep_apart", values, histogram)
        row[[histogram.position(value) for value in values]] = 1
        if not (histogram.counts[row == 0] > 0).any():
            raise RequirementError(
                f"keep_apart = {listing(list(values))} cannot be met: the table holds no other values, so every cell "
                "lies within them. Fix: leave this entry out."
            )
    if histogram.rows < min_rows:
        raise RequirementError(
            f"min_rows = {min_rows:,} cannot be met: the whole table has fewer rows. Fix: lower min_rows."
        )
    return Rules(apart, _numbered(histogram, categories, min_categories), min_categories, min_rows)


def _numbered(
    histogram: Histogram, categories: Mapping[Hashable, Hashable] | None, min_categories: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    if categories is None:
        return None
    missing = [value for value in histogram.domain if value not in categories]
    if missing:
        raise OptionError(
            f"categories does not say where {listing(missing)} belongs: every value of the column needs a category."
        )
    numbers: dict[Hashable, int] = {}
    category = np.array([numbers.setdefault(categories[value], len(numbers)) for value in histogram.domain])
    present = len(np.unique(category[histogram.counts > 0]))
    if present < min_categories:
        raise RequirementError(
            f"min_categories = {min_categories} cannot be met: the rows of the table hold values of {present} "
            f"categories only, even as one cell. Fix: min_categories={present} or less, or finer categories."
        )
    return category


# -- What published cells promise, computed from the integers that the sampler uses (mathematics 2, 4, 11.5, 11.6) -----


CELL_VALUES = "A row's cell is published: that the row's value is one of its cell's values is revealed."
CELL_SIZES = (
    "The number of rows in each cell is published, and cells are filled evenly: how frequent a value is can sometimes "
    "be worked out exactly."
)
UPWARD = "There is no downward guarantee: that a person does not have a value can become certain, by the cell alone."
TOGETHER = (
    "The bound is for what a row's own cell and published value say. Someone who knows the exact histogram, or the "
    "values of other rows of a small cell, can combine the rows of that cell and become surer."
)


def posteriors(cell: Cell) -> list[Fraction]:
    """The largest Pr[x | cell, y] over all y, for each value x of a cell, to someone who knows the frequencies."""
    return exact.surest(cell.channel.keep, cell.channel.replace, cell.rows.counts)


def surest_in_cells(histogram: Histogram, cells: Sequence[Cell]) -> list[Fraction]:
    """The largest Pr[x | cell, y] over all cells and y, for each value of the table."""
    if len(cells) == 1 and cells[0].rows.domain == histogram.domain:
        return posteriors(cells[0])
    sure: list[Fraction | None] = [None] * histogram.m
    for cell in cells:
        for value, belief in zip(cell.rows.domain, posteriors(cell), strict=True):
            place = histogram.position(value)
            known = sure[place]
            sure[place] = belief if known is None or known is belief else max(known, belief)
    nothing = Fraction(0)
    return [nothing if belief is None else belief for belief in sure]


def bound_in_cells(histogram: Histogram, planned: Sequence[Cell], margin: int) -> list[Fraction]:
    """The same at the most, if each value has up to so many rows more in each cell than it was planned to take."""
    sure = [Fraction(0)] * histogram.m
    for cell in planned:
        bounds = surest_bound(cell.channel, cell.rows.counts + margin, cell.size)
        for value, belief in zip(cell.rows.domain, bounds, strict=True):
            place = histogram.position(value)
            sure[place] = max(sure[place], belief)
    return sure


def cells_guarantee(
    histogram: Histogram,
    privacy: Privacy,
    cells: tuple[Cell, ...],
    protected: Bools,
    above: tuple[int, ...],
    loose: tuple[Single, ...],
    not_hidden: tuple[str, ...],
    *,
    noisy: bool,
    categories: Mapping[Hashable, Hashable] | None = None,
) -> Guarantee:
    """The frequency guarantee of published cells (SDR Cor. 1), and in words what it leaves open.

    Args:
        histogram, cells: as planned, from noisy counts where ``noisy``; that the true ones keep the promise is checked.
        privacy: the requirement.
        protected: the values that it covers.
        above, loose: values, and single values of one of several columns, that it does not cover.
        not_hidden: what else is given away, in words.
        noisy: whether the exact posterior is not to be told.
        categories: value -> category: how sure one can become of a category is then said, too.
    """
    assert privacy.rho2 is not None
    places = [np.array([histogram.position(value) for value in cell.rows.domain]) for cell in cells]
    guarded = [protected[place] for place in places]
    sure = [posteriors(cell) for cell in cells]
    covered = [compress(beliefs, mask.tolist()) for beliefs, mask in zip(sure, guarded, strict=True)]
    worst = max(exact.different(chain.from_iterable(covered)))
    if worst > privacy.rho2 and not noisy:
        raise InternalError("a cell of the plan lets a posterior exceed rho2")
    gammas = tuple(cell.channel.exact_gamma for cell in cells)
    whole = len(cells) == 1 and cells[0].rows.domain == histogram.domain
    return Guarantee(
        promises=(Cells(privacy.rho2, gammas, privacy.rho1, exempt_positions(histogram, privacy), above, loose),),
        adversary="frequency",
        rho1=privacy.rho1,
        rho2=privacy.rho2,
        worst=privacy.rho2 if noisy else min(rounded(worst, up=True), privacy.rho2),
        gamma=gammas[0] if whole else None,
        also=(*_also(privacy.rho2, cells, guarded, gammas), *_of_categories(histogram, cells, categories)),
        not_protected=(
            *EVERY_RELEASE,
            CELL_VALUES,
            UPWARD,
            _stronger_beliefs(histogram, privacy, cells, places, sure, protected),
            CELL_SIZES,
            TOGETHER,
            *not_hidden,
        ),
    )


def _also(
    rho2: Fraction, cells: tuple[Cell, ...], guarded: list[Bools], gammas: tuple[Fraction | None, ...]
) -> tuple[str, ...]:
    own = exact.different(
        chain.from_iterable(
            compress(own_amplifications(cell.channel.keep, cell.channel.replace), mask.tolist())
            for cell, mask in zip(cells, guarded, strict=True)
        )
    )
    if any(gamma is None for gamma in own):
        raise InternalError("a protected value has an unbounded amplification")
    covered = percent(rounded(largest_prior(rho2, max(gamma for gamma in own if gamma is not None)), up=False))
    if all(cell.channel.is_uniform for cell in cells):
        knowing = (
            f"To someone who already knows a row's cell, any belief up to {covered} in a protected value is covered."
        )
    else:
        knowing = (
            "To someone who already knows a row's cell, any belief in a protected value up to its share of the rows of "
            f"that cell is covered (at least {covered})."
        )
    bounded = [gamma for gamma in gammas if gamma is not None]
    if len(bounded) < len(gammas):
        return (knowing,)
    return (
        knowing,
        f"Within its cell each row satisfies epsilon-local differential privacy, epsilon at most "
        f"{_up(math.log(max(bounded))):g}; the choice of the cell is not covered by it.",
    )


def _of_categories(
    histogram: Histogram, cells: Sequence[Cell], categories: Mapping[Hashable, Hashable] | None
) -> tuple[str, ...]:
    """How sure someone who knows the frequencies becomes of a category, C, at most:

    Pr[C | cell, y] = (1[y in C] f_y p_y + r_y A) / (f_y p_y + r_y S),   A, S = sum of f (1 - p) over C, over the cell
    """
    if categories is None:
        return ()
    names = dict.fromkeys(categories[value] for value in histogram.domain)
    sure = dict.fromkeys(names, 0.0)
    for cell in cells:
        rows, coins, drawn = cell.rows.counts.astype(np.float64), cell.channel.coins, cell.channel.replacing
        kept, redrawn = rows * coins, rows * (1 - coins)
        shown = kept + drawn * redrawn.sum()
        there = shown > 0
        own = np.array([categories[value] for value in cell.rows.domain], dtype=object)
        for name in dict.fromkeys(own):
            inside = own == name
            beliefs = (inside * kept + drawn * redrawn[inside].sum())[there] / shown[there]
            sure[name] = max(sure[name], float(beliefs.max(initial=0.0)))
    shares = dict.fromkeys(names, 0.0)
    for value in histogram.domain:
        shares[categories[value]] += float(histogram.frequency(value))
    most = max(names, key=lambda name: (_odds(sure[name]) / max(_odds(shares[name]), 1e-9), sure[name]))
    return (
        f"Of categories, by the counts that the plan was made from, the odds of {shortened(most)} grow most: who "
        f"knows the frequencies believes it at {percent(shares[most], 2)} of anyone, and after seeing a row at up to "
        f"{_at_most(sure[most])}.",
    )


def _odds(belief: float) -> float:
    return belief / max(1 - belief, 1e-12)


def _up(value: float) -> float:
    """A positive number rounded up to three significant digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2) if value > 0 else 1.0
    return math.ceil(value / step - 1e-9) * step


def _stronger_beliefs(
    histogram: Histogram,
    privacy: Privacy,
    cells: tuple[Cell, ...],
    places: Sequence[Counts],
    sure: Sequence[list[Fraction]],
    protected: Bools,
) -> str:
    """How far a belief above the frequency can grow, with the cell as evidence and the rest in proportion
    (mathematics 2).

    Evidence multiplies the odds of x by (odds given the cell and y) / (odds by frequency), whatever they were.
    """
    belief = float(privacy.rho1 or rounded(largest_protected_frequency(histogram, protected), up=True, digits=2))
    by_cell = by_both = belief
    for cell, place, posterior in zip(cells, places, sure, strict=True):
        before = histogram.counts[place] / histogram.rows
        known = {id(p): float(p) for p in exact.different(posterior)}
        alike = zip(before.tolist(), cell.rows.relative.tolist(), map(id, posterior), strict=True)
        for frequency, share, both in set(compress(alike, protected[place].tolist())):
            by_cell = max(by_cell, _updated(belief, frequency, share))
            by_both = max(by_both, _updated(belief, frequency, known[both]))
    return (
        f"Beliefs stronger than a value's frequency are not covered: someone who held a protected value at "
        f"{percent(belief)} beforehand, and all others in proportion to their frequency, can become up to "
        f"{_at_most(by_both)} sure of it (up to {_at_most(by_cell)} by the cell alone)."
    )


def _updated(belief: float, frequency: float, posterior: float) -> float:
    """A belief after the evidence that moves the belief ``frequency`` to ``posterior``."""
    evidence = posterior / (1 - posterior) * (1 - frequency) / frequency
    return belief * evidence / (belief * evidence + 1 - belief)


def _at_most(probability: float) -> str:
    return "almost 100 %" if probability > 0.99 else percent(rounded(Fraction(probability), up=True, digits=2))


# -- Small-domain randomization: split the rows into cells of few values and perturb each within its own (mathematics 4,
# SDR).
#
#     rho1_i = largest relative frequency in cell i of a protected value,  gamma_i = rho2 (1-rho1_i) / (rho1_i (1-rho2))
#
# If every cell meets (rho1_i, rho2), so does the table, for someone who knows how frequent each value is (SDR Cor. 1).
# The cell of a row is published, and is evidence too: docs/explanation/small-domain.md says what it reveals.


@dataclass(frozen=True)
class SmallDomain(Mechanism):
    """Cells of few values, each perturbed within its own: balance, rearrange, merge, then a channel for each (SDR).

        rho1_i = largest share of a protected value in cell i,    gamma_i = rho2 (1-rho1_i) / (rho1_i (1-rho2))

    Attributes:
        cost: what the merge minimises: ``"relative"``, the summed variance of reconstructed count / true count;
            ``"variance"``, that of the reconstructed counts; ``"bound"``, the paper's error bound.
        orders: which orders of the groups the merge tries, to keep the cheapest: ``"all"`` that are known here, or
            ``"band"``, the paper's alone. A smaller bound is not a smaller error: with all orders the paper's cost
            merges even more, and the error grows.
        delta: the error bound holds with probability 1 - delta; used by ``"bound"`` alone.
        channels: ``"uniform"``, one coin for a cell, or ``"fine-grain"``, one for each of its values.
        keep_apart: sets of values; no cell may consist of values of one such set alone.
        categories: value -> category, for ``min_categories``; how sure one can become of a category is then said, too.
        min_categories: how many categories each cell must hold.
        min_rows: how many rows each cell must hold: in small cells someone who knows the cell's contents can combine
            rows. Default: 1 for the paper's cost, otherwise 100, or a twentieth of the table if that is less.

    >>> import deniable as dn
    >>> from deniable.mechanisms import SmallDomain
    >>> rows = dict(zip("abcdefghij", [12, 8, 6, 5, 4, 3, 1, 1, 1, 1]))
    >>> plan = dn.plan(rows, dn.Privacy(rho1="1/3", rho2="2/3"), SmallDomain(cost="bound"))
    >>> [dict(cell.rows) for cell in plan.cells]
    [{'a': 12, 'b': 8, 'c': 6, 'd': 4, 'e': 4, 'f': 2}, {'d': 1, 'f': 1, 'g': 1, 'h': 1, 'i': 1, 'j': 1}]
    """

    name: ClassVar[str] = "small-domain"
    reveals: ClassVar[str] = "the cell: a row's value is one of the cell's"

    cost: CostName = "relative"
    orders: OrdersKind = "all"
    delta: float = 0.05
    channels: ChannelKind = "uniform"
    keep_apart: tuple[tuple[Hashable, ...], ...] = ()
    categories: Mapping[Hashable, Hashable] | None = None
    min_categories: int = 1
    min_rows: int | None = None

    def __post_init__(self) -> None:
        apart = tuple((values,) if isinstance(values, str) else tuple(values) for values in self.keep_apart)
        object.__setattr__(self, "keep_apart", apart)
        problems = [
            f"{option} = {value!r} is not known: choose {' or '.join(map(repr, known))}.{did_you_mean(value, known)}"
            for option, value, known in (
                ("cost", self.cost, COSTS),
                ("orders", self.orders, tuple(ORDERS)),
                ("channels", self.channels, CHANNELS),
            )
            if value not in known
        ]
        if not 0 < self.delta < 1:
            problems.append(f"delta = {self.delta} is not allowed: it must lie strictly between 0 and 1.")
        least = self.min_rows
        if least is not None and (isinstance(least, bool) or not isinstance(least, int) or least < 1):
            problems.append(f"min_rows = {least!r} is not allowed: choose a whole number from 1 on, or leave it out.")
        problems += problems_of(apart, self.categories, self.min_categories)
        if problems:
            raise OptionError("\n".join(problems))

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        privacy = needs_rho2(privacy, self.name)
        assert privacy.rho2 is not None
        if privacy.adversary == "any-prior":
            raise RequirementError(
                "adversary 'any-prior' cannot be met by mechanism 'small-domain': a row's cell is published and is "
                "evidence that depends on the table, so a belief can grow before the value is even looked at. Fix: "
                f"{option('mechanism', 'uniform')}, or {option('adversary', 'frequency')}."
            )
        check_histogram(histogram, privacy)
        protected = covered_values(histogram, privacy, public)
        shown = histogram if public is None else public
        rules = rules_for(shown, self.keep_apart, self.categories, self.min_categories, self._least_rows(histogram))
        weights = weights_for(self.cost, shown.counts)
        covered = covered_singles(histogram, privacy, public)
        seating = Seating(histogram, public is not None, protected, privacy.rho2, self.channels, weights, covered)
        cells, planned = seating.cells(self._merged(shown, protected, weights, privacy.rho2, rules))
        seen = [
            Cell(Histogram(cell.channel.values, group.counts), cell.channel)
            for cell, group in zip(cells, planned, strict=True)
        ]
        above = beyond_rho1(
            histogram, privacy, public, surest_in_cells(histogram, cells), partial(bound_in_cells, histogram, seen)
        )
        promised = cells_guarantee(
            shown,
            privacy,
            tuple(seen),
            protected,
            above,
            loose_singles(covered),
            checks_tell(histogram, public, OWN_MARGINS),
            noisy=public is not None,
            categories=self.categories,
        )
        return Plan.of_cells(
            self.name,
            histogram,
            tuple(cells),
            promised,
            privacy=privacy,
            options=self.options,
            cells_published=True,
        )

    def _least_rows(self, histogram: Histogram) -> int:
        if self.min_rows is not None:
            return self.min_rows
        return 1 if self.cost == "bound" else max(1, min(100, histogram.rows // 20))

    def _merged(
        self, histogram: Histogram, protected: Bools, weights: Floats, rho2: Fraction, rules: Rules
    ) -> list[Group]:
        """Balance, rearrange in several ways, merge each, keep the cheapest."""
        cost = cost_named(self.cost, rho2=float(rho2), rows=histogram.rows, delta=self.delta)
        groups = balance(histogram.counts, protected)
        merges = []
        for order in dict.fromkeys(tuple(order.tolist()) for _, order in ORDERS[self.orders](groups, histogram.m)):
            arranged = [groups[k] for k in order]
            merges.append((merge(arranged, protected, weights, cost, rules), arranged))
        best, arranged = min(merges, key=lambda pair: pair[0].cost)
        if best.cost == float("inf"):
            raise RequirementError(
                f"rho2 = {rho2} cannot be met with a useful coin: the most frequent protected value is as frequent to "
                "nine digits. Fix: raise rho2."
            )
        return [joined(arranged[start:stop]) for start, stop in zip(best.cuts, best.cuts[1:], strict=False)]


# -- Small-domain randomization: balance, rearrange, merge (mathematics 4) ---------------------------------------------


__all__ = ["SmallDomain"]
