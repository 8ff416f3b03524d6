"""A question to a release of one part: rows by public group, class and state, weighed by value sets.

The truth of the public conditions puts a row into a *class*, which says what set of sensitive values is asked for; its
*state* is its cell and published value. Sensitive columns that are grouped by are labels: sets of values, or single
values, which need no m x m array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from deniable.core.errors import QuestionError
from deniable.core.tally import Block, CodeMask
from deniable.core.values import Bools, Floats, Ints
from deniable.estimation import calibration
from deniable.estimation.calibration import Calibration, Control, SetControl
from deniable.estimation.limits import Cumulants
from deniable.estimation.mapped import Grouped, Mapped, column_of
from deniable.estimation.model.likelihood import likelihood_counts
from deniable.estimation.model.moments import cumulants_of
from deniable.estimation.model.weighed import Answers, Tallies, Weighed
from deniable.estimation.questions import domain_numbers, sensitive_part

if TYPE_CHECKING:
    from deniable.estimation.asking import Asking, Options
    from deniable.estimation.linear import Narrowed
    from deniable.estimation.model.lineups import LineUpStates
    from deniable.estimation.model.states import States
    from deniable.estimation.predicates import Predicate

SET_ENTRIES = 2**22  # weights computed at a time
Labels = tuple[tuple[Hashable, ...], ...]
Made = Callable[[Block, Bools | Floats], Weighed]  # rows, and value sets [labels, classes, m]
Spread = Callable[[Sequence[str], Sequence[CodeMask], Ints, Sequence[str]], Made]


def weighed(
    ask: Asking,
    where: Predicate,
    narrowed: Sequence[Narrowed],
    groups: Sequence[Grouped],
    values: Sequence[str],
    options: Options,
    spread: Spread | None = None,
) -> tuple[Labels, Iterator[Iterator[list[Weighed]]]]:
    """The labels, and block by block of public groups the rows weighed by some labels after the other: by the condition
    itself, then by each of some further conditions on its rows. ``spread`` makes them where their errors are a
    model's."""
    resolved = ask.resolver().resolve(where, [one.condition for one in narrowed])
    every: list[Bools | Floats] = [resolved.sets]
    for one, sets in zip(narrowed, resolved.narrowed, strict=True):
        every.append(sets if one.numbers is None else sets * domain_numbers(ask.manifest, one.numbers))
    control = ask.control(options)
    public = [name for name in groups if isinstance(name, str) and name not in ask.manifest.sensitive_columns]
    hidden = [group for group in groups if column_of(group) in ask.manifest.sensitive_columns]
    blocks = ask.counter.tally(public, resolved.leaves, resolved.classes, values, states=True)
    plain = spread is None and not any(isinstance(group, Mapped) for group in hidden)
    if plain and len(hidden) == len(ask.manifest.sensitive_columns) and ask.states.m > 1:
        chosen = np.flatnonzero(resolved.sets.any(axis=0))
        columns = [sensitive_part(ask.manifest, column) for column in hidden]
        labels = tuple(tuple(column[place] for column in columns) for place in chosen.tolist())
        return labels, (iter([[SingleValues(ask, block, sets, chosen, control) for sets in every]]) for block in blocks)
    labels, member = _members(ask, hidden, resolved.sets)
    step = max(1, SET_ENTRIES // (len(resolved.sets) * ask.states.count))
    starts = range(0, max(len(member), 1), step)  # a condition that no value satisfies leaves no label, and no rows
    parts = [member[start : start + step, None, :] for start in starts]

    made: Made = partial(ValueSets, ask, control=control)
    if spread is not None:
        made = spread(public, resolved.leaves, resolved.classes, values)
    return labels, (([made(block, part * sets[None, :, :]) for sets in every] for part in parts) for block in blocks)


def row_weights(ask: Asking, where: Predicate, numbers: Mapped | None = None) -> Floats:
    """w of every row, in the order of the table: its class says which set is asked for, its state what is published."""
    resolved = ask.resolver().resolve(where)
    sets = resolved.sets if numbers is None else resolved.sets * domain_numbers(ask.manifest, numbers)
    if ask.states.unknown(sets).any():
        raise QuestionError(
            "This question has no weights: its values cannot be told apart in this release, so no sum over its rows is "
            "unbiased. Fix: ask count(where=...), which says what is possible at all."
        )
    rows = ask.counter.coded((), resolved.leaves, states=True)
    own = resolved.classes[rows.patterns]
    return np.where(own >= 0, ask.states.weights(sets)[own, rows.states], 0.0)


def _members(ask: Asking, columns: Sequence[Grouped], sets: Bools) -> tuple[Labels, Bools]:
    """The groups that sensitive columns form, where something is asked of them: their values, and which values of the
    domain belong to each [labels, m]."""
    if not columns:
        return ((),), np.ones((1, sets.shape[1]), bool)
    parts = list(zip(*(sensitive_part(ask.manifest, column) for column in columns), strict=True))
    labels = list(dict.fromkeys(parts))
    place = {label: i for i, label in enumerate(labels)}
    member = np.zeros((len(labels), len(parts)), bool)
    member[[place[part] for part in parts], np.arange(len(parts))] = True
    chosen = np.flatnonzero((member @ sets.any(axis=0)).astype(bool))
    return tuple(labels[i] for i in chosen), member[chosen]


class _OnePart(Weighed):
    """Rows by [group, class, state]."""

    def __init__(self, ask: Asking, block: Block, known: Control | None) -> None:
        self.ask, self.states, self._whole = ask, ask.states, known
        self.keys, self.counts = block.keys, block.counts
        self.moments = {
            name: Tallies(moment.rows, moment.sums, moment.squares) for name, moment in block.moments.items()
        }

    def usual(self, tally: Floats) -> list[Floats]:
        assert self._whole is not None
        total = self._whole.total
        return self.followed(self, tally.sum(-1, keepdims=True) * (total / max(total.sum(), 1.0)))

    def _fitted(self) -> Floats:
        """The likeliest counts [group, class, m]."""
        shape = self.counts.shape
        fitted = likelihood_counts(self.states, self.counts.reshape(-1, shape[-1]))
        return fitted.reshape(*shape[:2], self.states.m)


class ValueSets(_OnePart):
    """Labels are value sets [labels, classes, m], or numbers for each value."""

    def __init__(self, ask: Asking, block: Block, sets: Bools | Floats, control: Control | None) -> None:
        super().__init__(ask, block, control)
        self.sets = sets
        states = self.states
        weight = states.weights(sets)
        possible, certain = np.zeros_like(weight), np.zeros_like(weight)
        for part, positions in zip(states.slices, states.positions, strict=True):
            possible[..., part] = sets[..., positions].max(-1, keepdims=True)
            certain[..., part] = sets[..., positions].min(-1, keepdims=True)
        self._weight, self._possible, self._certain = weight, possible, certain
        self.unknown = None if states.unbiased else np.asarray(states.unknown(sets).any(axis=1))
        self._follow: SetControl | None = None
        if control is not None:
            place = np.arange(len(sets)), _followed(sets, block.counts.sum(axis=(0, 2)))
            self._follow = SetControl(states, control, sets[place], weight[place])
            self.controls = (self._follow.with_other(self._follow),)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.keys), len(self.sets)

    def first(self, tally: Floats) -> Floats:
        return _added(tally, self._weight)

    def common(self, other: ValueSets, tally: Floats) -> Floats:
        same = other is self and self.sets.dtype == bool
        both = self._weight if same else self.states.weights(self.sets * other.sets)
        return _added(tally, self._weight * other._weight - both)

    def followed(self, other: ValueSets, tally: Floats) -> list[Floats]:
        assert other._follow is not None
        same = other is self and self.sets.shape[1] == 1 and self.sets.dtype == bool  # one class follows itself
        both = self._weight if same else self.states.weights(self.sets * other._follow.chosen[:, None, :])
        return [_added(tally, self._weight * other._follow.weights[:, None, :] - both)]

    def shared(self, other: ValueSets) -> Sequence[Calibration]:
        if other is self:
            return self.controls
        assert self._follow is not None
        assert other._follow is not None
        return [self._follow.with_other(other._follow)]

    def bounds(self, tally: Floats) -> tuple[Floats, Floats]:
        return _added(tally, self._certain), _added(tally, self._possible)

    def cumulants(self, value: Floats, variance: Floats, smallest: Floats) -> Cumulants | None:
        if self.sets.dtype != bool:
            return None
        moments = self.states.set_moments(self._weight, self.sets.astype(bool), self.ask.often)
        parts = [
            (rows[:, None, number], one.picked((slice(None), number)))
            for rows, one in zip(_by_cell(self.states, self.counts), moments, strict=True)
            for number in range(rows.shape[1])
        ]
        return cumulants_of(parts, self.shape)

    def likely(self) -> Floats:
        return np.einsum("gtx,jtx->gj", self._fitted(), self.sets.astype(np.float64), optimize=True)

    def shrunk(self, linear: Answers) -> Answers:
        return self.ask.shrinkage.shrunk(linear, self.counts.sum(axis=2), self.sets.astype(bool))


class SingleValues(_OnePart):
    """Labels are single values, each asked for in the classes whose set holds it; O(states) a group and class. What is
    asked for may be a number for each value, too."""

    def __init__(self, ask: Asking, block: Block, sets: Bools | Floats, chosen: Ints, control: Control | None) -> None:
        super().__init__(ask, block, control)
        self._sets, self._chosen = sets, chosen
        self.unknown = None if self.states.unbiased else self.states.unknown(np.eye(self.states.m, dtype=bool))[chosen]
        self._known: list[tuple[Floats, Floats, Floats]] = []
        self.controls = [] if control is None else [calibration.of_values(self.states, control).picked(chosen)]

    def _of_labels(self, by_value: Floats) -> Floats:
        """[group, class, m] to [group, labels]: only what is asked for."""
        return (by_value * self._sets).sum(axis=1)[:, self._chosen]

    def _moments(self, tally: Floats) -> tuple[Floats, Floats]:
        """Estimates and variances by value; of the last two tallies, what rows show and what they would show on
        average, they are known, and most are asked about thrice."""
        for known, inverted, variance in self._known:
            if known is tally:
                return inverted, variance
        inverted = self.states.invert(tally)
        variance = self.states.squares(tally) - inverted
        self._known = [*self._known[-1:], (tally, inverted, variance)]
        return inverted, variance

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.keys), len(self._chosen)

    def first(self, tally: Floats) -> Floats:
        return self._of_labels(self._moments(tally)[0])

    def common(self, other: SingleValues, tally: Floats) -> Floats:
        own = self._moments(tally)[1]
        same = other is self and self._sets.dtype == bool
        return self._of_labels(own if same else own * other._sets)

    def followed(self, other: SingleValues, tally: Floats) -> list[Floats]:
        return [self._of_labels(self._moments(tally)[1])]  # all conditions follow the label's value in the whole table

    def shared(self, other: SingleValues) -> Sequence[Calibration]:
        return self.controls

    def bounds(self, tally: Floats) -> tuple[Floats, Floats]:
        certain, possible = (np.zeros((*tally.shape[:2], self.states.m)) for _ in range(2))
        for part, positions in zip(self.states.slices, self.states.positions, strict=True):
            here = tally[..., part].sum(-1, keepdims=True)
            possible[..., positions] += here
            if len(positions) == 1:
                certain[..., positions] += here
        ends = self._of_labels(certain), self._of_labels(possible)
        return np.minimum(*ends), np.maximum(*ends)

    def cumulants(self, value: Floats, variance: Floats, smallest: Floats) -> Cumulants | None:
        every = self.ask.value_moments
        if every is None or self._sets.dtype != bool:
            return None
        place = np.full(self.states.m, -1)
        place[self._chosen] = np.arange(len(self._chosen))
        parts = []
        for rows, positions, moments in zip(
            _by_cell(self.states, self.counts), self.states.positions, every, strict=True
        ):
            inside = np.flatnonzero(place[positions] >= 0)
            some = np.zeros(self.shape)
            some[:, place[positions[inside]]] = rows @ self._sets[:, positions[inside]]
            parts.append((some, moments.at(inside, place[positions[inside]], len(self._chosen))))
        return cumulants_of(parts, self.shape)

    def likely(self) -> Floats:
        return self._of_labels(self._fitted())

    def shrunk(self, linear: Answers) -> Answers:
        rows, fitted, parts = self.counts.sum(axis=2), self.ask.shrinkage, []
        for start in range(0, max(len(self._chosen), 1), step := max(1, SET_ENTRIES // self._sets.size)):
            places = self._chosen[start : start + step]
            sets = np.zeros((len(places), *self._sets.shape), bool)
            sets[np.arange(len(places)), :, places] = self._sets[:, places].T
            some = linear.picked(np.arange(start, start + len(places)))
            parts.append(fitted.shrunk(some, rows, sets))
        return Answers.joined(parts, axis=1)


def _by_cell(states: States | LineUpStates, counts: Floats) -> list[Floats]:
    """Rows [group, class] of each cell."""
    return [counts[..., part].sum(axis=-1) for part in states.slices]


def _followed(sets: Bools | Floats, rows: Floats) -> Ints:
    """For each label the class whose set the control follows: the set that is asked of most rows, among those not all
    or nothing."""
    if sets.shape[1] == 1:
        return np.zeros(len(sets), np.int64)
    inside = sets.astype(np.float64) @ sets.swapaxes(1, 2)
    size = np.diagonal(inside, axis1=1, axis2=2)
    apart = size[:, :, None] + size[:, None, :] - 2 * inside  # |v - v'|^2, 0 for the same sets
    same = apart <= 1e-12 * (size[:, :, None] + size[:, None, :])
    trivial = sets.min(-1) == sets.max(-1)
    return np.argmax(np.where(trivial, -1.0, same @ rows), axis=1)


def _added(tally: Floats, per_row: Floats) -> Floats:
    """A tally [groups, classes, states], each row counting [labels, classes, states]: [groups, labels]."""
    return _flat(tally) @ _flat(per_row).T


def _flat(array: Floats) -> Floats:
    return array.reshape(len(array), math.prod(array.shape[1:]))
