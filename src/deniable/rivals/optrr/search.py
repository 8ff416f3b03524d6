"""An evolutionary search over randomized-response matrices (Huang and Du, ICDE 2008), in two objectives.

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

from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Bools, Floats, Ints

SINGULAR = 1e10  # a condition number beyond which a matrix is no candidate
TINY, NUDGE = 1e-12, 1e-14
RETURNED = 0.9  # of the children beyond the limit so many are brought back to it; the others keep the front wide


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
