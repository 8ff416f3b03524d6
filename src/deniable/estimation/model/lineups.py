"""Estimating from line-ups: everything depends on the rows through c_x, the rows whose set holds x (mathematics 12).

    E[c] = B f,    B[x][y] = t J[x][y] / pi_y + (1-t) pi_x,    w(S) = sum over x in S of (B^-T 1_A)_x

Every set has L members, so J 1 = L pi, and the inverse of B needs only that of J:

    w(S) = (sum over x in S of (J^-1 pi_A)_x  -  (1-t) pi(A) / L) / t,    pi_A = pi on A and 0 elsewhere

Sums over sets and the inverse of J are the matter of ``lineup_algebra``. J is that of the design; draws are whole
numbers and differ from it by less than 2^-16 in any set's probability, 2^-30 in any expected count per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.core.errors import QuestionError
from deniable.core.lineups import LineUpDesign
from deniable.core.values import Bools, Floats, Ints
from deniable.estimation.model.fixed_point import squarem
from deniable.estimation.model.lineup_algebra import BLOCK, DENSE, STEPS, Algebra, algebra_of
from deniable.estimation.model.moments import Moments, of_sets


@dataclass(frozen=True, eq=False)
class LineUpStates:
    """The sets of a design as states; missing values that are exempt are one more value and one more state, the last.

    It answers as ``States`` does.
    """

    design: LineUpDesign
    exempt: bool = False

    @property
    def m(self) -> int:
        return self.design.m + int(self.exempt)

    @property
    def sets(self) -> int:
        """How many sets the design has."""
        return len(self.design.sets.lengths)

    @property
    def count(self) -> int:
        return self.sets + int(self.exempt)

    @cached_property
    def positions(self) -> tuple[Ints, ...]:
        """Which values a row can have: all that are not exempt, whatever its set; a row that is exempt has one."""
        own = (np.arange(self.design.m),)
        return (*own, np.array([self.design.m])) if self.exempt else own

    @cached_property
    def slices(self) -> list[slice]:
        return [slice(0, self.sets), *([slice(self.sets, self.count)] if self.exempt else [])]

    @cached_property
    def algebra(self) -> Algebra:
        return algebra_of(self.design)

    @property
    def unbiased(self) -> bool:
        """Whether J can be inverted: no value is always in, and no two values always go together."""
        return self.algebra.invertible

    def unknown(self, chosen: Bools | Floats) -> Bools:
        """Which value sets no weights tell of, [..., m] -> [...]."""
        own = chosen[..., : self.design.m]
        return np.asarray((own.min(-1) != own.max(-1)) & (not self.unbiased))

    # -- weights -------------------------------------------------------------------------------------------------------

    def weights(self, chosen: Bools | Floats) -> Floats:
        """w over states, for value sets or numbers [..., m] -> [..., states]; 1 and 0 where all or nothing is asked
        for, and the number that all values share."""
        shape = chosen.shape[:-1]
        wanted = chosen[..., : self.design.m].reshape(-1, self.design.m)
        weight = np.zeros((len(wanted), self.count))
        own = weight[:, : self.sets]
        most = wanted.max(axis=1)
        some = wanted.min(axis=1) < most
        own[~some] = most[~some, None]
        if some.any():
            own[some] = self.algebra.added(self.scores(wanted[some].astype(np.float64)))
        if self.exempt:
            weight[:, -1] = chosen[..., -1].reshape(-1)
        return weight.reshape(*shape, self.count)

    def weights_for(self, wanted: Floats) -> Floats:
        """w over states with E[w(S) | x] = wanted_x, for any numbers [..., m] -> [..., states]."""
        flat = wanted.reshape(-1, self.m)
        own = self.algebra.added(self.scores(flat[:, : self.design.m]))
        return np.concatenate([own, flat[:, self.design.m :]], axis=1).reshape(*wanted.shape[:-1], self.count)

    def shown(self, counts: Floats) -> Floats:
        """How often each set is expected, D(S) (t sum over S of f / pi + (1-t) N), [..., m] -> [..., states]."""
        flat = counts.reshape(-1, self.m)
        own, t = flat[:, : self.design.m], self.design.share_true
        around = self.algebra.added(own / self.design.inclusion)
        sets = self.design.distribution * (t * around + (1 - t) * own.sum(axis=1, keepdims=True))
        return np.concatenate([sets, flat[:, self.design.m :]], axis=1).reshape(*counts.shape[:-1], self.count)

    def invert(self, counts: Floats) -> Floats:
        """Counts by state as counts by value: [..., states] -> [..., m]."""
        self._require_unbiased()
        flat = counts.reshape(-1, self.count)
        sets = flat[:, : self.sets]
        t, size, pi = self.design.share_true, self.design.size, self.design.inclusion
        own = (
            (self.algebra.solved(self.algebra.holding(sets)) - (1 - t) * sets.sum(axis=1, keepdims=True) / size)
            * pi
            / t
        )
        return np.concatenate([own, flat[:, self.sets :]], axis=1).reshape(*counts.shape[:-1], self.m)

    def squares(self, counts: Floats) -> Floats:
        """The same with squared weights."""
        flat = counts.reshape(-1, self.count)
        total = self.algebra.squares(flat[:, : self.sets], self.scores)
        return np.concatenate([total, flat[:, self.sets :]], axis=1).reshape(*counts.shape[:-1], self.m)

    def set_moments(self, weights: Floats, sets: Bools, often: Sequence[Floats]) -> list[Moments]:
        """Of value sets [.., m], for rows that show sets; others are certain."""
        own = sets[..., : self.design.m]
        return [of_sets(self.expected, weights[..., : self.sets], own, often[0]), *self._certain(sets.shape[:-1])]

    def value_moments(self, often: Sequence[Floats]) -> list[Moments] | None:
        """Of every single value; none where there are so many values or sets that all their weights do not fit."""
        if self.design.m > DENSE or self.design.m * self.count > 4 * BLOCK:
            return None
        every = np.eye(self.design.m, dtype=bool)
        weights = self.algebra.added(self.scores(every.astype(np.float64)))
        return [of_sets(self.expected, weights, every, often[0]), *self._certain((1,))]

    def _certain(self, shape: tuple[int, ...]) -> list[Moments]:
        """Of rows that are published as they are."""
        one, none = np.ones(shape), np.zeros(shape)
        return [Moments(none, (one, one), (none, none))] if self.exempt else []

    def expected(self, scores: Floats) -> Floats:
        """E[z(S) | x] = (t / pi_x) sum over S with x of D(S) z(S) + (1-t) sum D z, [..., sets] -> [..., m]."""
        t, weighed = self.design.share_true, scores * self.design.distribution
        inside = self.algebra.holding(weighed.reshape(-1, weighed.shape[-1])) / self.design.inclusion
        inside = inside.reshape(*weighed.shape[:-1], self.design.m)
        return t * inside + (1 - t) * weighed.sum(axis=-1, keepdims=True)

    def likely(self, counts: Floats) -> Floats:
        """Maximum likelihood histograms [questions, states] -> [questions, m], by the iterative Bayesian rule on sets:

        f_x <- f_x ((t / pi_x) sum over S with x of o_S / g_S + (1-t) sum o / g),   g_S = t sum_S f / pi + (1-t) N
        """
        observed = counts[:, : self.sets]
        t, pi = self.design.share_true, self.design.inclusion
        rows = observed.sum(axis=1, keepdims=True)

        def rule(now: Floats) -> Floats:
            seen = t * self.algebra.added(now / pi) + (1 - t) * now.sum(axis=1, keepdims=True)
            ratio = observed / np.maximum(seen, 1e-300)
            inside = self.algebra.holding(ratio)
            return now * (t * inside / pi + (1 - t) * ratio.sum(axis=1, keepdims=True))

        f = squarem(rule, rows * pi / pi.sum(), STEPS, 1e-9 * max(float(rows.max(initial=1.0)), 1.0))
        return np.concatenate([f, counts[:, self.sets :]], axis=1)

    # -- the linear algebra --------------------------------------------------------------------------------------------

    def scores(self, wanted: Floats) -> Floats:
        """(B^-T 1_A)_x for value sets [sets, m]."""
        self._require_unbiased()
        t, size, pi = self.design.share_true, self.design.size, self.design.inclusion
        return (self.algebra.solved(wanted * pi) - (1 - t) * (wanted @ pi)[:, None] / size**2) / t

    def _require_unbiased(self) -> None:
        if not self.unbiased:
            raise QuestionError(
                "These line-ups cannot be estimated from: some of their values always stand together. Fix: none but "
                "publishing again, with other line-ups."
            )


@dataclass(frozen=True, eq=False)
class LineUpFactor:
    """A column of line-ups beside other perturbed ones: a factor with more published states (sets) than true ones.

        P[S][x] = D(S) (t [x in S] / pi_x + 1 - t)

    Every operation works on the last axis. Missing values that are exempt are published as they are.
    """

    states: LineUpStates

    @property
    def size(self) -> int:
        """True states."""
        return self.states.m

    @property
    def published(self) -> int:
        """Published states: sets."""
        return self.states.count

    def apply(self, x: Floats) -> Floats:
        """P x: how often each set is shown."""
        return self.states.shown(x)

    def transposed(self, z: Floats) -> Floats:
        """P^T z: what a value expects of its sets."""
        flat = z.reshape(-1, self.published)
        expected = self.states.expected(flat[:, : self.states.sets])
        return np.concatenate([expected, flat[:, self.states.sets :]], axis=1).reshape(*z.shape[:-1], self.size)

    def invert(self, y: Floats) -> Floats:
        """Counts of sets as counts of values."""
        return self.states.invert(y)

    def weights(self, t: Floats) -> Floats:
        """w with E[w(S) | x] = t_x, for any t."""
        return self.states.weights_for(t)

    def squares(self, y: Floats) -> Floats:
        """For each value the sum over rows of its squared weight."""
        return self.states.squares(y)

    def moments(self, often: Floats) -> Moments:
        """Of the weights of every single value."""
        every = np.eye(self.size)
        weights = self.states.weights_for(every)
        return of_sets(self.transposed, weights, every.astype(bool), often)

    @cached_property
    def condition(self) -> float:
        """max |w| summed over the values a set speaks about: how far noise is magnified, in the 1-norm."""
        weights = self.states.weights_for(np.eye(self.size))[:, : self.states.sets]
        return float(np.abs(weights).sum(axis=0).max())
