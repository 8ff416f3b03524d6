"""Pools of questions: conditions counted from shared cubes, estimates as one array computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.core.errors import QuestionError
from deniable.estimation.asking import Asking, Method, Options, asking
from deniable.estimation.four_state import count_each_four_state
from deniable.estimation.grouping import SET_ENTRIES, by_method, interval
from deniable.estimation.joint import is_joint
from deniable.estimation.linear import Answers, Weighing, without_claim
from deniable.estimation.multidimensional import count_each
from deniable.estimation.predicates import conjunction
from deniable.estimation.published import Bools, Floats, Published


@dataclass(frozen=True, eq=False)
class Pool:
    """Answers to a pool of questions, as arrays: [questions], or [questions, values of the domain]."""

    value: Floats
    stderr: Floats
    low: Floats
    high: Floats


def count_many(
    published: Published,
    wheres: Sequence[Mapping[str, Any] | None],
    *,
    every_value: bool = False,
    method: Method = "inverse",
    calibrate: bool | None = None,
    confidence: float = 0.95,
) -> Pool:
    """Many counts at once: conditions are counted from shared cubes, estimates are one array computation.

    With ``every_value`` the conditions name public columns only, and each is answered for every sensitive value.
    """
    options = Options(method, calibrate, confidence)
    if options.four_state:
        if every_value:
            raise QuestionError(f"every_value=True does not go with method = {method!r}. Fix: group_by the column.")
        found = count_each_four_state(published, wheres, options)
        return Pool(found.value, np.sqrt(found.variance), *interval(found, options.z))
    if is_joint(published.manifest):
        if every_value:
            raise QuestionError("every_value=True is for one sensitive column. Fix: group_by the columns you mean.")
        return Pool(*count_each(published, wheres, options))
    ask = asking(published)
    resolver = ask.resolver()
    leaves, sets = [], np.zeros((len(wheres), ask.states.m), bool)
    for i, where in enumerate(wheres):
        public, mask = resolver.conjunction(conjunction(where))
        if every_value and not mask.all():
            raise QuestionError("With every_value=True the conditions may name public columns only.")
        leaves.append(public)
        sets[i] = mask
    tally = ask.counter.pool(leaves)
    found = _every_value(ask, tally, options) if every_value else _own_values(ask, tally, sets, options)
    if not ask.states.unbiased:
        found = without_claim(found)
    return Pool(found.value, np.sqrt(found.variance), *interval(found, options.z))


def _every_value(ask: Asking, tally: Floats, options: Options) -> Answers:
    control, parts = ask.control(options), []
    for start in range(0, ask.states.m, step := max(1, SET_ENTRIES // max(tally.shape[1], len(tally)))):
        chosen = np.zeros((min(step, ask.states.m - start), 1, ask.states.m), bool)
        chosen[np.arange(len(chosen)), 0, start + np.arange(len(chosen))] = True
        weighing = Weighing.of(ask.states, chosen, control, np.ones(1))
        parts.append(by_method(ask, tally[:, None, :], chosen, weighing.counts(tally), options))
    return Answers.joined(parts, axis=1)


def _own_values(ask: Asking, tally: Floats, sets: Bools, options: Options) -> Answers:
    """Questions with the same value set are answered together."""
    control = ask.control(options)
    distinct, inverse = np.unique(sets, axis=0, return_inverse=True)
    columns = [np.zeros(len(sets)) for _ in range(5)]
    for number, mask in enumerate(distinct):
        members = np.flatnonzero(inverse.reshape(-1) == number)
        chosen = mask[None, None, :]
        weighing = Weighing.of(ask.states, chosen, control, np.ones(1))
        part = by_method(ask, tally[members][:, None, :], chosen, weighing.counts(tally[members]), options)
        for column, name in zip(columns, ("value", "variance", "raw", "smallest", "largest"), strict=True):
            column[members] = getattr(part, name)[:, 0]
    return Answers(*columns)
