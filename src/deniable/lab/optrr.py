"""OptRR (Huang and Du, ICDE 2008): a whole matrix for a column, found by an evolutionary search.

All other channels here are coins and a replacing distribution; a matrix has m (m-1) numbers to choose. It is executed
as cells that nobody sees: a row's value decides its cell, and the replacing distribution of the cell of x is the column
of x. So kernel and estimates are those of every release.

    Pr[x | y] = f_x M[y][x] / sum_k f_k M[y][k]  <=  rho2

is kept in whole numbers: for counts u that are never below the true ones and add up to n + s, the denominator is at
least sum_k u_k M[y][k] - s max_k M[y][k].

A matrix is M[y][x] = Pr[x is published as y], any one whose columns add up to 1. What is made small, as in the paper:

    privacy   max over x, y of Pr[x | y] / limit_x
    error     mean over x of the variance of the reconstructed count, sum_y (M^-1[x][y])^2 o_y - f_x,  o = M f

by SPEA2 (Zitzler, Laumanns and Thiele 2001): an archive of the matrices that no other beats in both, filled up by
strength and thinned out by nearness; parents by tournaments; children by exchange of columns and by change of entries.
Matrices beyond the limit are brought back to it, as the paper's third operator does: with o 1' mixed in, every
posterior moves to the frequency of its value in proportion,

    M' = (1-a) M + a o 1',    Pr'[x | y] = (1-a) Pr[x | y] + a f_x / n

so that the a which is needed is a maximum of quotients.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from deniable.core.channels import Channel, weights_of
from deniable.core.errors import OptionError, RequirementError
from deniable.core.exact import SCALE
from deniable.core.histogram import Histogram
from deniable.core.part import Mixture
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy
from deniable.core.promise import Guarantee
from deniable.core.values import Bools, Counts, Floats, Ints
from deniable.mechanisms.base import Mechanism, Need
from deniable.mechanisms.one_cell import refuse_any_prior
from deniable.mechanisms.requirement import (
    beyond_rho1,
    check_histogram,
    covered_values,
    exempt_positions,
    frequency_promise,
    needs_rho2,
    too_close,
    upper_counts,
)

Exact = list[list[int]]
LARGEST = 64  # values: the search is over their square
SLACKS = (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.2, 0.4)  # by which limits are lowered until whole numbers keep them
OPTIONS = {"population": (4, 500), "generations": (1, 5000)}
SINGULAR = 1e10  # a condition number beyond which a matrix is no candidate
TINY, NUDGE = 1e-12, 1e-14
RETURNED = 0.9  # of the children beyond the limit so many are brought back to it; the others keep the front wide


@dataclass(frozen=True)
class OptRR(Mechanism):
    """A matrix that an evolutionary search found for the histogram: privacy against squared error (ICDE 2008).

    Attributes:
        population: how many matrices a generation has.
        generations: how many there are. The search begins anew from the same random numbers, so that the same
            histogram gives the same matrix.

    >>> import deniable as dn
    >>> from deniable.lab import OptRR
    >>> counts = dn.Histogram.of({"flu": 500, "cold": 300, "hiv": 200})
    >>> plan = OptRR(generations=20).plan(counts, dn.Privacy(rho2="3/5"))
    >>> plan.guarantee.worst <= 0.6, plan.cells_published
    (True, False)
    """

    population: int = 30
    generations: int = 60
    name: ClassVar[str] = "optrr"
    reveals: ClassVar[str] = "rarer values speak louder to those who know more than frequencies"

    def __post_init__(self) -> None:
        for name, (least, most) in OPTIONS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise OptionError(f"{name} = {value!r} is not allowed: choose {least} to {most:,}. Fix: {name}=50.")

    def layout(self, columns: tuple[str, ...]) -> tuple[Need, ...]:
        if len(columns) > 1:
            raise OptionError(
                "mechanism 'optrr' searches a matrix for one sensitive column. Fix: name one, or mechanism='designed'."
            )
        return super().layout(columns)

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """The plan; everything is a function of ``public``, the noisy histogram, where there is one."""
        refuse_any_prior(self.name, privacy)
        required = needs_rho2(privacy, self.name)
        check_histogram(histogram, required)
        if histogram.m > LARGEST:
            raise RequirementError(
                f"mechanism 'optrr' searches matrices of up to {LARGEST} values, and the sensitive column has "
                f"{histogram.m:,}. Fix: merge rare values, or mechanism='designed'."
            )
        assert required.rho2 is not None
        covered = covered_values(histogram, required, public)
        upper = upper_counts(histogram, public)
        matrix = self._matrix(histogram, upper, covered, required.rho2)
        sure = surest(matrix, histogram.counts, 0)
        above = beyond_rho1(histogram, required, public, sure, partial(_bound, matrix, public, histogram.rows))
        return Plan.of_cells(
            self.name,
            histogram,
            cells_of(matrix, histogram),
            self._guarantee(histogram, required, above, sure, public),
            privacy=required,
            options=self.options,
            mixture=as_mixture(matrix),
        )

    def _matrix(self, histogram: Histogram, upper: Counts, covered: Bools, rho2: Fraction) -> Exact:
        """The matrix of the search in whole numbers out of 2^32, with limits as low as these need to be kept."""
        counts = np.maximum(upper, 1)
        shares = counts / counts.sum()
        spare = int(upper.sum()) - histogram.rows
        limits = np.where(covered, float(rho2), np.inf)
        candidate: Floats | None = None
        for slack in SLACKS:
            problem = Problem(shares, limits * (1 - slack))
            if (shares >= problem.limits).any():
                break
            if candidate is None:
                candidate = searched(problem, _seeded(self, counts, covered, rho2), self.population, self.generations)
            matrix = in_whole_numbers(problem.returned(candidate[None])[0])
            worst = surest(matrix, upper, spare)
            if all(belief <= rho2 for belief, own in zip(worst, covered, strict=True) if own):
                return matrix
        raise too_close(histogram.domain[int(np.argmax(np.where(covered, upper, -1)))], rho2)

    def _guarantee(
        self,
        histogram: Histogram,
        required: Privacy,
        above: tuple[int, ...],
        sure: Sequence[Fraction],
        public: Histogram | None,
    ) -> Guarantee:
        assert required.rho2 is not None
        exempt = exempt_positions(histogram, required)
        covered = [belief for place, belief in enumerate(sure) if place not in {*above, *exempt}]
        return Guarantee(
            promises=(frequency_promise(histogram, required, above),),
            adversary="frequency",
            rho1=required.rho1,
            rho2=required.rho2,
            worst=max(covered, default=required.rho2) if public is None else required.rho2,
            gamma=None,
        )


def _bound(matrix: Exact, public: Histogram | None, rows: int, margin: int) -> list[Fraction]:
    """Posteriors at the most, by noisy counts that are raised by a margin."""
    assert public is not None
    raised = public.counts + margin
    return surest(matrix, raised, int(raised.sum()) - rows)


def _seeded(mechanism: OptRR, counts: Counts, covered: Bools, rho2: Fraction) -> np.random.Generator:
    """Random numbers that follow from what the search is about: the same histogram gives the same matrix."""
    about = hashlib.sha256(counts.astype(np.int64).tobytes() + covered.tobytes())
    about.update(repr((mechanism, rho2)).encode())
    return np.random.default_rng(list(about.digest()))


# -- a matrix in whole numbers out of 2^32, M[y][x], as cells that nobody sees -----------------------------------------


def in_whole_numbers(matrix: Floats) -> Exact:
    """The nearest matrix whose columns add up to 2^32."""
    columns = [weights_of(np.maximum(column, 0.0)) for column in matrix.T]
    exact: Exact = np.stack(columns, axis=1).tolist()
    return exact


def surest(matrix: Exact, counts: Counts, spare: int) -> list[Fraction]:
    """At least max_y Pr[x | y] of each x, for counts that exceed the true ones by ``spare`` rows in all; with none,
    exactly that."""
    rows: list[int] = counts.tolist()
    worst = [Fraction(0)] * len(rows)
    for entries in matrix:
        seen = sum(n * entry for n, entry in zip(rows, entries, strict=True)) - spare * max(entries)
        for x, (n, entry) in enumerate(zip(rows, entries, strict=True)):
            if n * entry:
                worst[x] = max(worst[x], min(Fraction(n * entry, seen), Fraction(1)) if seen > 0 else Fraction(1))
    return worst


def cells_of(matrix: Exact, histogram: Histogram) -> tuple[Cell, ...]:
    """A cell for each value, which takes all of its rows and replaces them by its column of the matrix."""
    cells = []
    for place, rows in enumerate(histogram.counts.tolist()):
        own = np.zeros(histogram.m, np.int64)
        own[place] = rows
        column = np.array([entries[place] for entries in matrix], dtype=np.int64)
        channel = Channel(histogram.domain, np.zeros(histogram.m, np.int64), column)
        cells.append(Cell(Histogram(histogram.domain, own), channel))
    return tuple(cells)


def as_mixture(matrix: Exact) -> Mixture:
    """The matrix as a manifest has it: floating-point numbers hold multiples of 2^-32 exactly."""
    return tuple(tuple(entry / SCALE for entry in entries) for entries in matrix)


# -- the search --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """What is searched for.

    Attributes:
        shares: how frequent values are, adding up to 1.
        limits: the largest posterior of each value; infinite where there is none.
    """

    shares: Floats
    limits: Floats

    def posteriors(self, matrices: Floats) -> Floats:
        """Pr[x | y], [.., y, x]."""
        joint = matrices * self.shares
        return joint / np.maximum(joint.sum(-1, keepdims=True), TINY)

    def objectives(self, matrices: Floats) -> Floats:
        """Privacy and error of each matrix; both infinite where it cannot be inverted."""
        privacy = (self.posteriors(matrices) / self.limits).max((-1, -2))
        with np.errstate(all="ignore"):
            try:
                inverse = np.linalg.inv(matrices)
            except np.linalg.LinAlgError:  # one of them is singular to the last bit: a little off the diagonal is not
                inverse = np.linalg.inv(matrices + NUDGE * np.eye(len(self.shares)))
            error = ((inverse**2 @ (matrices @ self.shares)[:, :, None])[:, :, 0] - self.shares).mean(-1)
            condition = np.linalg.norm(matrices, axis=(1, 2)) * np.linalg.norm(inverse, axis=(1, 2))
        usable = np.isfinite(error) & (condition < SINGULAR)
        return np.where(usable[:, None], np.stack([privacy, error], axis=1), np.inf)

    def returned(self, matrices: Floats) -> Floats:
        """Each matrix with as much of its own published distribution mixed in as the limits need."""
        sure = self.posteriors(matrices)
        above = np.where(np.isfinite(self.limits), sure - self.limits, 0.0)
        needed = np.where(above > 0, above / np.maximum(sure - self.shares, TINY), 0.0).max((-1, -2))
        share = np.clip(needed, 0.0, 1.0)[:, None, None]
        shown = (matrices @ self.shares)[:, :, None]
        mixed: Floats = (1 - share) * matrices + share * shown
        return mixed


def searched(problem: Problem, rng: np.random.Generator, population: int, generations: int) -> Floats:
    """The matrix within the limits with the smallest error that was found."""
    matrices = problem.returned(_first(problem, rng, population))
    objectives = problem.objectives(matrices)
    best, least = _better(problem, matrices, matrices[0], np.inf)
    for generation in range(generations):
        keep, fitness = _selected(objectives, population)
        archive, scores = matrices[keep], objectives[keep]
        parents = archive[_tournaments(fitness, population, rng)]
        parents[::4] = best  # the front is wide, and what is wanted is one end of it
        children = _changed(_exchanged(parents, rng), rng, 0.5 * (1 - generation / generations) ** 2)
        beyond = rng.random(len(children)) < RETURNED
        children[beyond] = problem.returned(children[beyond])
        best, least = _better(problem, children, best, least)
        matrices = np.concatenate([archive, children])
        objectives = np.concatenate([scores, problem.objectives(children)])
    return best


def _better(problem: Problem, matrices: Floats, best: Floats, least: float) -> tuple[Floats, float]:
    """The best of some matrices brought back to the limits, if it is better than what is known."""
    inside = problem.returned(matrices)
    errors = problem.objectives(inside)[:, 1]
    place = int(np.argmin(errors))
    return (inside[place], float(errors[place])) if errors[place] < least else (best, least)


def _first(problem: Problem, rng: np.random.Generator, number: int) -> Floats:
    """Random matrices: a random coin for each value, and random replacements, some like the column itself."""
    m = len(problem.shares)
    coins = rng.random((number, 1)) ** 2 * rng.random((number, m)) ** rng.choice([0.1, 1.0], (number, 1))
    drawn = rng.dirichlet(np.ones(m), number)
    like = rng.random((number, 1))
    replacing = like * problem.shares + (1 - like) * drawn
    matrices: Floats = coins[:, None, :] * np.eye(m) + replacing[:, :, None] * (1 - coins[:, None, :])
    return matrices


def _exchanged(parents: Floats, rng: np.random.Generator) -> Floats:
    """Crossover: each column of a child is one of its two parents'."""
    first, second = parents[::2], parents[1::2]
    swap: Bools = rng.random((len(first), 1, first.shape[-1])) < 0.5
    return np.concatenate([np.where(swap, second, first), np.where(swap, first, second)])


def _changed(matrices: Floats, rng: np.random.Generator, heat: float) -> Floats:
    """Mutation: entries grow or shrink, and the others of their column make room; less and less of it.

    A child changes in one of four ways: some entries, some rows (how often a value is a replacement), some of the
    diagonal (how often it is kept), or everything a little.
    """
    number, m, _ = matrices.shape
    some = rng.random((number, m, 1)) < 2 / m
    entries = (rng.random((number, m, m)) < 2 / m**2) * rng.normal(size=(number, m, m))
    rows = some * rng.normal(size=(number, m, 1)) * np.ones(m)
    diagonal = some * rng.normal(size=(number, m, 1)) * np.eye(m)
    everything = 0.1 * rng.normal(size=(number, m, m))
    ways = np.stack([entries, rows, diagonal, everything])
    steps = ways[rng.integers(0, len(ways), number), np.arange(number)] * (0.02 + heat)
    changed: Floats = matrices * np.exp(steps)
    return changed / changed.sum(1, keepdims=True)


def _selected(objectives: Floats, number: int) -> tuple[Ints, Floats]:
    """SPEA2's environmental selection: those that nobody beats, thinned out by nearness or filled up by strength."""
    privacy, error = objectives[:, 0], objectives[:, 1]
    beats = (privacy[:, None] <= privacy) & (error[:, None] <= error)
    beats &= (privacy[:, None] < privacy) | (error[:, None] < error)
    strength = beats.sum(1)
    raw = (beats * strength[:, None]).sum(0).astype(np.float64)
    distance = _distances(objectives)
    near = np.sort(distance, axis=1)[:, min(len(distance) - 1, max(1, int(np.sqrt(len(distance)))))]
    fitness = raw + 1 / (near + 2)
    order: Ints = np.argsort(fitness, kind="stable")
    keep = order[: max(number, 1)]
    front = np.flatnonzero(raw == 0)
    if len(front) > number:
        keep = _thinned(front, distance, number)
    return keep, fitness[keep]


def _distances(objectives: Floats) -> Floats:
    """Distances in both objectives, each on a logarithmic scale and in units of its own spread."""
    scaled = np.log(np.where(np.isfinite(objectives), np.maximum(objectives, TINY), 1e12))
    scaled = scaled / np.maximum(scaled.std(0), TINY)
    return np.sqrt(((scaled[:, None] - scaled) ** 2).sum(-1))


def _thinned(front: Ints, distance: Floats, number: int) -> Ints:
    """The front without those that stand nearest to another, one by one."""
    own = distance[np.ix_(front, front)] + np.diag(np.full(len(front), np.inf))
    left = np.ones(len(front), bool)
    for _ in range(len(front) - number):
        nearest = np.where(left, np.where(left[None, :], own, np.inf).min(1), np.inf)
        left[int(np.argmin(nearest))] = False
    return front[left]


def _tournaments(fitness: Floats, number: int, rng: np.random.Generator) -> Ints:
    """Parents: the fitter of two, as often as needed."""
    pairs = rng.integers(0, len(fitness), (number + number % 2, 2))
    return pairs[np.arange(len(pairs)), np.argmin(fitness[pairs], axis=1)]
