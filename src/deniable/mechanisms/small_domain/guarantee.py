"""What published cells promise, computed from the integers that the sampler uses (mathematics 2, 4, 11.5, 11.6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, compress

import numpy as np

from deniable.core import exact
from deniable.core.arrays import Bools, Counts
from deniable.core.errors import InternalError
from deniable.core.exact import own_amplifications
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell
from deniable.core.privacy import Privacy, largest_prior
from deniable.core.probability import percent, rounded
from deniable.core.promise import Cells
from deniable.core.promise_numbers import Single
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    exempt_positions,
    largest_protected_frequency,
)
from deniable.mechanisms.view import surest_bound

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
) -> Guarantee:
    """The frequency guarantee of published cells (SDR Cor. 1), and in words what it leaves open.

    Args:
        histogram, cells: as planned, from noisy counts where ``noisy``; that the true ones keep the promise is checked.
        privacy: the requirement.
        protected: the values that it covers.
        above, loose: values, and single values of one of several columns, that it does not cover.
        not_hidden: what else is given away, in words.
        noisy: whether the exact posterior is not to be told.
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
        also=_also(privacy.rho2, cells, guarded, gammas),
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
