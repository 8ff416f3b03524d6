"""A question to a learned release: rows counted as they are, and how far the model may be off (mathematics 14.4).

Rows are dealt so that they count what the model expects; so an estimate is a plain count, and its error is the model's.
The covariance C_s of the errors at each value s is computed with values independent of each other. All values together
are the group's rows, which are public: of an error a_s the share phi_s of the sum over all values is taken off,

    d_S = sum over S of a_s - phi_s sum of a,    phi_s = V_s / sum of V

with V_s the variance for the group's rows. That is the least squares of counts whose sum is known; d is 0 for all
values together, and the same for a set as for the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from scipy import sparse

from deniable.core.learned import ROUNDED, Coding, Learned
from deniable.core.tally import Block, CodeMask, Counter, Derived
from deniable.core.values import Bools, Floats, Ints, Words
from deniable.estimation.asking import Asking, level_column
from deniable.estimation.limits import Cumulants
from deniable.estimation.model.one_part import Made, Spread, ValueSets
from deniable.estimation.model.weighed import Weighed
from deniable.learned.levels import keys_of
from deniable.learned.measuring import Levels, laplace_variance
from deniable.learned.model import Fitted, Learner
from deniable.learned.uncertainty import Sums, Uncertainty

if TYPE_CHECKING:
    from deniable.estimation.model.weighed import Answers

FREQUENT = 32  # values whose variances stand for those of all others together
COMBINATION = "combination of levels"
POOLED = 512  # conjunctions at a time
LEAST = 1.0  # rows that a value may have in a group where none is published, if it has as many elsewhere


@dataclass(frozen=True, eq=False)
class Model:
    """What a release was learned from, made again from its rows and its noisy tables.

    Attributes:
        codings: how public columns are read.
        keys: of the combinations of levels that rows have, rising.
        uncertainty: of its counts.
        counter: of the rows, with a column that says which combination each has.
    """

    codings: tuple[Coding, ...]
    keys: Words
    uncertainty: Uncertainty
    counter: Counter

    @classmethod
    def of(cls, learned: Learned, counter: Counter, exempt: Sequence[CodeMask]) -> Model:
        """The model, from the public columns of all rows whose values were learned."""
        names = _levels(learned.codings)
        keys, rows = [], []
        for block in counter.tally(names, exempt, _kept(np.zeros(1, np.int64), exempt)):
            keys.append(_codes(counter, names, block.keys))
            rows.append(block.counts[:, 0, 0].astype(np.int64))
        codes, counts = np.concatenate(keys), np.concatenate(rows)
        key = keys_of(codes, learned.sizes)
        order = np.argsort(key, kind="stable")
        codes, counts = codes[order], counts[order]
        tables = [Levels("", table.levels(codes, learned.sizes), table.size, table.columns) for table in learned.tables]
        measured = len(learned.measured)
        noisy = [table.counts for table in learned.measured if table.counts is not None]
        variances = [laplace_variance(table.epsilon / 2) for table in learned.measured if table.epsilon is not None]
        learner = Learner(counts, tables[:measured], noisy, variances, tables[measured:])
        theta = [table.theta for table in learned.tables if table.theta is not None]
        assert learned.base is not None
        learner.base = np.asarray(learned.base * ROUNDED, np.float64)
        tau = np.array(learned.tau)
        all_theta = np.asarray(np.concatenate(theta) * ROUNDED, np.float64)
        fitted = Fitted(learner.base, all_theta, tau)
        key = key[order]

        def places(*levels: pa.Array) -> pa.Array:
            own = np.stack([column.to_numpy(zero_copy_only=False) for column in levels], axis=1)
            return pa.array(np.searchsorted(key, keys_of(own, learned.sizes)))

        combined = counter.with_columns([Derived(COMBINATION, tuple(names), places)])
        return cls(learned.codings, key, Uncertainty(learner, fitted), combined)


_models: WeakKeyDictionary[Learned, Model] = WeakKeyDictionary()


def model_of(ask: Asking) -> Model:
    """The model of a release, made once."""
    learned = ask.learned
    assert learned is not None
    if learned not in _models:
        _models[learned] = Model.of(learned, ask.by_level, ask.exempt)
    return _models[learned]


def _levels(codings: Sequence[Coding]) -> list[str]:
    return [level_column(coding) for coding in codings]


def _codes(counter: Counter, names: Sequence[str], keys: Ints) -> Ints:
    """Levels of groups that were counted by them."""
    codes = np.empty(keys.shape, np.int64)
    for place, name in enumerate(names):
        codes[:, place] = counter.distinct(name).to_numpy(zero_copy_only=False)[keys[:, place]]
    return codes


def _kept(classes: Ints, exempt: Sequence[CodeMask]) -> Ints:
    """Classes of patterns that have a further bit for every column of which missing values are exempt: all are 1."""
    return np.concatenate([np.full(len(classes) * (2 ** len(exempt) - 1), -1, np.int64), classes])


def spread_of(ask: Asking) -> Spread:
    """What makes the rows of a question whose errors are the model's."""

    def spread(public: Sequence[str], leaves: Sequence[CodeMask], classes: Ints, values: Sequence[str]) -> Made:
        return SpreadRows(ask, public, leaves, classes, values).sets_of

    return spread


class SpreadRows:
    """The rows of a question by public group, class and combination of levels.

    Args:
        ask: the release.
        public, leaves, classes, values: as for a tally.
    """

    def __init__(
        self, ask: Asking, public: Sequence[str], leaves: Sequence[CodeMask], classes: Ints, values: Sequence[str]
    ) -> None:
        self.ask, self.model = ask, model_of(ask)
        masks, counter = [*leaves, *ask.exempt], self.model.counter
        blocks = list(counter.tally([*public, COMBINATION], masks, _kept(classes, ask.exempt), values))
        keys = np.concatenate([block.keys for block in blocks])
        self.place = counter.distinct(COMBINATION).to_numpy(zero_copy_only=False)[keys[:, -1]]
        self.keys, group = np.unique(keys[:, : len(public)], axis=0, return_inverse=True)
        self.group = group.reshape(-1)
        columns = [np.concatenate([block.counts for block in blocks])]
        for name, what in itertools.product(values, ("rows", "sums")):
            columns.append(np.concatenate([getattr(block.moments[name], what) for block in blocks]))
        self._errors: Errors | None = None
        self.numbers = np.stack([column[:, :, 0] for column in columns], axis=1)  # [cells, tallies, classes]

    def sets_of(self, block: Block, sets: Bools | Floats) -> ModelledSets:
        """Value sets over a block of groups, whose errors are computed once for all of them."""
        if self._errors is None or self._errors.block is not block:
            self._errors = Errors(self.model.uncertainty, block, self.sums(block.keys))
        return ModelledSets(self.ask, block, sets, self._errors)

    def sums(self, keys: Ints) -> Sums:
        """Of some public groups; elements are tallies by class, tallies outside."""
        wanted = _places(keys, self.keys)
        inside = wanted[self.group] >= 0
        group, place, numbers = wanted[self.group[inside]], self.place[inside], self.numbers[inside]
        elements = numbers.shape[1] * numbers.shape[2]
        flat = numbers.reshape(len(numbers), elements)
        cell, element = np.nonzero(flat)
        of = sparse.csr_array(
            (flat[cell, element], (group[cell] * elements + element, place[cell])),
            (len(keys) * elements, len(self.model.keys)),
        )
        return self.model.uncertainty.sums(of, len(keys))


def pooled(
    ask: Asking, questions: Sequence[Sequence[CodeMask]], tally: Floats
) -> Iterator[tuple[slice, Callable[[Bools], ModelledSets]]]:
    """Conjunctions of public conditions, some at a time, and what counts value sets [sets, m] among their rows.

    Args:
        ask: the release.
        questions, tally: the conjunctions, and their rows by state.
    """
    uncertainty = model_of(ask).uncertainty
    for start in range(0, len(questions), POOLED):
        part = slice(start, start + POOLED)
        of, rows = _combined(ask, questions[part]), tally[part]
        block = Block(np.zeros((len(rows), 0), np.int64), rows[:, None, :])
        errors = Errors(uncertainty, block, uncertainty.sums(of, len(rows)))
        yield part, partial(_sets_of, ask, block, errors)


def _sets_of(ask: Asking, block: Block, errors: Errors, sets: Bools) -> ModelledSets:
    return ModelledSets(ask, block, sets[:, None, :], errors)


def _combined(ask: Asking, questions: Sequence[Sequence[CodeMask]]) -> sparse.csr_array:
    """The rows of conjunctions by combination of levels; those on the same columns are counted together."""
    model = model_of(ask)
    by_columns: dict[tuple[str, ...], list[int]] = {}
    for i, masks in enumerate(questions):
        by_columns.setdefault(tuple(sorted({column for column, _ in masks})), []).append(i)
    entries = []
    for columns, members in by_columns.items():
        for block in model.counter.tally([*columns, COMBINATION], ask.exempt, _kept(np.zeros(1, np.int64), ask.exempt)):
            place = model.counter.distinct(COMBINATION).to_numpy(zero_copy_only=False)[block.keys[:, -1]]
            for i in members:
                inside = np.ones(len(place), bool)
                for column, mask in questions[i]:
                    inside &= mask[block.keys[:, columns.index(column)]]
                at = np.flatnonzero(inside)
                entries.append((np.full(len(at), i), place[at], block.counts[at, 0, 0]))
    question, place, rows = (np.concatenate(column) for column in zip(*entries, strict=True))
    return sparse.csr_array((rows, (question, place)), (len(questions), len(model.keys)))


def _places(wanted: Ints, known: Ints) -> Ints:
    """Where each known group stands among those that are wanted; -1 where it does not."""
    place = {tuple(key): i for i, key in enumerate(wanted.tolist())}
    return np.array([place.get(tuple(key), -1) for key in known.tolist()], dtype=np.int64)


class Errors:
    """The errors of a block of public groups, value by value, for all labels and conditions of a question.

    Args:
        uncertainty: of the model.
        block: the groups.
        sums: over their rows; elements are tallies by class, tallies outside.
    """

    def __init__(self, uncertainty: Uncertainty, block: Block, sums: Sums) -> None:
        self.block, self.uncertainty = block, uncertainty
        self.m, self.classes = self.uncertainty.learner.m, block.counts.shape[1]
        self.counts = block.counts[..., : self.m]  # without values that are published as missing
        self.sums = sums
        self.share = np.exp(self.uncertainty.learner.base)
        self.frequent = np.argsort(-self.share, kind="stable")[:FREQUENT]
        self._known: dict[int, tuple[Floats, Floats]] = {}
        self._own: dict[int, Floats] = {}

    def of_value(self, s: int) -> tuple[Floats, Floats]:
        """Expected rows [groups, classes] and the model's covariance [groups, elements, elements]."""
        if s not in self._known:
            total, covariance = self.uncertainty.of_value(s, self.sums)
            self._known[s] = total[:, : self.classes], covariance
        return self._known[s]

    @cached_property
    def dealt(self) -> Floats:
        """By what chance is multiplied, since rows are dealt, too [groups, classes]."""
        rows = self.counts.sum(axis=-1)
        squares = np.concatenate([rows, np.zeros((len(rows), self.sums.cells.shape[1] - self.classes))], axis=1)
        return 1 + self.uncertainty.dealt(self.sums, squares)[:, : self.classes]

    def chance(self, s: int, products: Floats) -> Floats:
        """The variance of a sum of rows by class [groups, classes] that is the table's own chance and the dealing's,
        from what its squares add up to by published value [groups, classes, m]."""
        rows = self.counts.sum(axis=-1)
        least = np.divide(np.minimum(rows * self.share[s], LEAST), rows, out=np.zeros_like(rows), where=rows > 0)
        added: Floats = (products[..., s] + least * products[..., : self.m].sum(axis=-1)) * self.dealt
        return added

    def own(self, s: int) -> Floats:
        """V_s: the variance of the rows with a value, by class [groups, classes]."""
        if s not in self._own:
            covariance = self.of_value(s)[1]
            places = np.arange(self.classes)
            self._own[s] = np.maximum(covariance[:, places, places] + self.chance(s, self.counts), 0.0)
        return self._own[s]

    @cached_property
    def whole(self) -> Floats:
        """The sum of V over the most frequent values, by class [groups, classes]."""
        return sum((self.own(int(s)) for s in self.frequent), start=np.zeros(self.counts.shape[:2]))


class ModelledSets(ValueSets):
    """Rows as published, whose errors are those of the model that they were dealt from."""

    def __init__(self, ask: Asking, block: Block, sets: Bools | Floats, errors: Errors) -> None:
        super().__init__(ask, block, sets, None)
        self._errors = errors

    def covariance(self, other: ModelledSets, tally: Floats, its: Floats, products: Floats) -> Floats:
        errors, classes = self._errors, self.sets.shape[1]
        first, second = self._at(tally), other._at(its)
        own, others = _moved(self.sets), _moved(other.sets)
        added = np.zeros(self.shape)
        needed = np.flatnonzero(((own != 0) | (others != 0)).any(axis=(0, 1))[: errors.m])
        values = np.union1d(needed, errors.frequent)
        whole = np.maximum(sum((errors.own(int(s)) for s in np.setdiff1d(needed, errors.frequent)), errors.whole), 1e-9)
        # [groups, classes, values, ..]
        phi = np.stack([errors.own(int(s)) for s in values], axis=-1) / whole[:, :, None]
        cross = np.zeros((len(self.counts), classes, classes, len(values)))
        for place, s in enumerate(values.tolist()):
            model = errors.of_value(s)[1][:, first : first + classes, second : second + classes]
            cross[..., place] = model
            diagonal = np.arange(classes)
            cross[:, diagonal, diagonal, place] += errors.chance(s, products)
        for one in range(classes):
            u = own[:, one][:, values].astype(np.float64)
            shift = phi[:, one] @ u.T  # [groups, labels]
            for two in range(classes):
                w = others[:, two][:, values].astype(np.float64)
                its_shift = phi[:, two] @ w.T
                c = cross[:, one, two]
                added += c @ (u * w).T - shift * (c @ w.T) - its_shift * (c @ u.T)
                added += shift * its_shift * c.sum(axis=-1, keepdims=True)
        return added

    def cumulants(self, value: Floats, variance: Floats, smallest: Floats) -> Cumulants | None:
        return Weighed.cumulants(self, value, variance, smallest)  # chance, not weights, makes the jumps

    def slope(self) -> Floats | float:
        """Chance, the table's own and the dealing's, goes with the rows; less what is known of all values together."""
        rows = np.maximum(self.counts.sum(axis=(1, 2))[:, None], 1.0)
        chance = (self._errors.dealt * self.counts.sum(axis=-1)).sum(axis=1, keepdims=True) / rows
        return (2 * chance - 2) * (1 - self.first(self.counts) / rows)

    def _at(self, tally: Floats) -> int:
        """Where a tally's elements begin."""
        known = [self.counts, *(part for one in self.moments.values() for part in (one.rows, one.sums))]
        return next(place for place, one in enumerate(known) if one is tally) * self.sets.shape[1]

    def shrunk(self, linear: Answers) -> Answers:
        """The model has drawn them already."""
        return linear


def _moved(sets: Bools | Floats) -> Floats:
    """Sets less the number that most of their values have: errors are the same, and fewer values matter."""
    if sets.dtype != bool:
        return sets.astype(np.float64)
    most = 2 * sets.sum(axis=-1, keepdims=True) > sets.shape[-1]
    moved: Floats = sets.astype(np.float64) - most
    return moved
