"""Many questions at once: conditions counted from shared cubes, estimates as one array computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.core.errors import QuestionError
from deniable.core.tally import Block, CodeMask
from deniable.estimation.aggregates import LinearMethod, count_of
from deniable.estimation.answering import answer, interval
from deniable.estimation.asking import Asking, Options, asking
from deniable.estimation.model.conditions import is_joint
from deniable.estimation.model.learned import pooled
from deniable.estimation.model.one_part import SET_ENTRIES, SingleValues, ValueSets
from deniable.estimation.model.weighed import Answers
from deniable.estimation.predicates import Where, conjunction
from deniable.estimation.published import Bools, Floats, Published
from deniable.estimation.question import Question


@dataclass(frozen=True, eq=False)
class Counts:
    """Answers to many questions, as arrays: [questions], or [questions, values of the domain].

    Attributes:
        value, stderr: the estimates and their standard errors.
        low, high: the ends of their intervals.
    """

    value: Floats
    stderr: Floats
    low: Floats
    high: Floats


def count_many(
    published: Published, wheres: Sequence[Where | None], options: Options, *, every_value: bool = False
) -> Counts:
    """Many counts at once: conditions are counted from shared cubes, estimates are one array computation.

    With ``every_value`` the conditions name public columns only, and each is answered for every sensitive value.
    """
    ask = asking(published)
    if options.four_state or is_joint(published.manifest):
        if every_value and options.four_state:
            raise QuestionError(
                f"every_value=True does not go with method = {options.method!r}. Fix: group_by the column."
            )
        if every_value:
            raise QuestionError("every_value=True is for one sensitive column. Fix: group_by the columns you mean.")
        return _one_by_one(published, wheres, options)
    if not wheres:
        nothing = np.zeros((0, ask.states.m) if every_value else 0)
        return Counts(nothing, nothing, nothing, nothing)
    masks, sets = ask.resolver().conjunctions(wheres)
    if every_value and not sets.all():
        raise QuestionError("With every_value=True the conditions may name public columns only.")
    tally = ask.counter.conjunctions(masks)
    if ask.learned is not None:
        numbers = _modelled(ask, masks, tally, None if every_value else sets, options)
        numbers = numbers if every_value else numbers.first_label()
    elif every_value:
        numbers = every_value_of(ask, tally, options)
    else:
        numbers = _own_values(ask, tally, sets, options)
    return Counts(numbers.value, np.sqrt(numbers.variance), *interval(numbers, options.z))


def _one_by_one(published: Published, wheres: Sequence[Where | None], options: Options) -> Counts:
    counts = [answer(published, Question(conjunction(where), options=options)).estimate() for where in wheres]
    columns = [[getattr(count, name) for count in counts] for name in ("value", "stderr", "low", "high")]
    return Counts(*(np.array(column, dtype=np.float64) for column in columns))


def _modelled(
    ask: Asking, masks: Sequence[list[CodeMask]], tally: Floats, sets: Bools | None, options: Options
) -> Answers:
    """Questions to a learned release, each with its own value set or with every value (None); those on the same rows
    share what is known of these."""
    keys = [tuple((column, id(mask)) for column, mask in own) for own in masks]
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    rows = np.sort(list(first.values()))
    group, method = np.searchsorted(rows, [first[key] for key in keys]), linear_method(options)
    parts, order = [], []
    for part, counted in pooled(ask, [masks[i] for i in rows], tally[rows]):
        members = np.flatnonzero((group >= part.start) & (group < part.stop))
        asks = [np.eye(ask.states.m, dtype=bool)] if sets is None else list(np.unique(sets[members], axis=0)[:, None])
        for own in asks:
            order.append(members if sets is None else members[(sets[members] == own).all(axis=1)])
            parts.append(count_of(counted(own), method=method).at(group[order[-1]] - part.start))
    return Answers.joined(parts, axis=0).at(np.argsort(np.concatenate(order)))


def every_value_of(ask: Asking, tally: Floats, options: Options) -> Answers:
    """Counts of every sensitive value [questions, m] among rows that are tallied by state [questions, states]."""
    block = Block(np.zeros((len(tally), 0), np.int64), tally[:, None, :])
    every = np.ones((1, ask.states.m), bool)
    rows = SingleValues(ask, block, every, np.arange(ask.states.m), ask.control(options))
    return count_of(rows, method=linear_method(options))


def value_sets_of(ask: Asking, tally: Floats, sets: Bools, options: Options) -> Answers:
    """Counts of value sets [sets, m] among rows that are tallied by state: [questions, sets]."""
    control, parts = ask.control(options), []
    block = Block(np.zeros((len(tally), 0), np.int64), tally[:, None, :])
    for start in range(0, len(sets), step := max(1, SET_ENTRIES // max(tally.shape[1], len(tally)))):
        rows = ValueSets(ask, block, sets[start : start + step, None, :], control)
        parts.append(count_of(rows, method=linear_method(options)))
    return Answers.joined(parts, axis=1)


def _own_values(ask: Asking, tally: Floats, sets: Bools, options: Options) -> Answers:
    """Questions with the same value set are answered together."""
    distinct, inverse = np.unique(sets, axis=0, return_inverse=True)
    order, parts = [], []
    for number, mask in enumerate(distinct):
        members = np.flatnonzero(inverse.reshape(-1) == number)
        order.append(members)
        parts.append(value_sets_of(ask, tally[members], mask[None, :], options))
    return Answers.joined(parts, axis=0).at(np.argsort(np.concatenate(order))).first_label()


def linear_method(options: Options) -> LinearMethod:
    assert not options.four_state
    return options.method  # type: ignore[return-value]
