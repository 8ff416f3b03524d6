"""Many questions at once: conditions counted from shared cubes, estimates as one array computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.core.errors import QuestionError
from deniable.core.tally import Block
from deniable.estimation.aggregates import Count, LinearMethod, count_of
from deniable.estimation.answering import answer, interval
from deniable.estimation.asking import Asking, Options, asking
from deniable.estimation.model.conditions import is_joint
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
    if ask.learned is not None and every_value:
        return _every_value_one_by_one(published, wheres, options)
    if options.four_state or is_joint(published.manifest) or ask.learned is not None:
        if every_value and options.four_state:
            raise QuestionError(
                f"every_value=True does not go with method = {options.method!r}. Fix: group_by the column."
            )
        if every_value:
            raise QuestionError("every_value=True is for one sensitive column. Fix: group_by the columns you mean.")
        return _one_by_one(published, wheres, options)
    masks, sets = ask.resolver().conjunctions(wheres)
    if every_value and not sets.all():
        raise QuestionError("With every_value=True the conditions may name public columns only.")
    tally = ask.counter.conjunctions(masks)
    numbers = every_value_of(ask, tally, options) if every_value else _own_values(ask, tally, sets, options)
    return Counts(numbers.value, np.sqrt(numbers.variance), *interval(numbers, options.z))


def _one_by_one(published: Published, wheres: Sequence[Where | None], options: Options) -> Counts:
    counts = [answer(published, Question(conjunction(where), options=options)).estimate() for where in wheres]
    columns = [[getattr(count, name) for count in counts] for name in ("value", "stderr", "low", "high")]
    return Counts(*(np.array(column, dtype=np.float64) for column in columns))


def _every_value_one_by_one(published: Published, wheres: Sequence[Where | None], options: Options) -> Counts:
    """By the values of all sensitive columns, which are the labels."""
    manifest = asking(published).manifest
    rows = []
    for where in wheres:
        grouped = answer(published, Question(conjunction(where), manifest.sensitive_columns, options=options))
        if len(grouped.labels) < len(manifest.domain):
            raise QuestionError("With every_value=True the conditions may name public columns only.")
        rows.append(grouped.by_aggregate[Count()])
    numbers = Answers.joined(rows, axis=0)
    return Counts(numbers.value, np.sqrt(numbers.variance), *interval(numbers, options.z))


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
    return Answers.joined(parts, axis=0).first_label(np.argsort(np.concatenate(order)))


def linear_method(options: Options) -> LinearMethod:
    assert not options.four_state
    return options.method  # type: ignore[return-value]
