"""Decoy groups as SPLU makes and answers them, and errors of several settings by the size of the answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.values import Floats
from deniable.estimation.model.lineups import LineUpStates
from deniable.lab.draws import decoys_planned, draw_plan, stream_of
from deniable.lab.rival import Answered, Setting
from deniable.lab.settings import answers_of, states_asked
from deniable.mechanisms import Lineup
from deniable.mechanisms.decoys import Decoys
from deniable.planning.candidates import as_published
from deniable.planning.pools import QuestionPool
from deniable.planning.prediction import Spread, mean_between, relative_error, spread
from deniable.tables.keys import Keystream
from reproduction.criteria import limit
from reproduction.splu_iteration import splu_iteration

PUBLISHED, LINE_UP = "decoys as SPLU", "line-up"
STATES = 2**23  # of some conditions, counted at a time
FOUR, EXACT, FULL = "decoys, four states", "decoys, exact a", "decoys, full channel"
MOST_ROUNDS = 1000  # a few questions creep on for longer
Errors = dict[str, list[Spread]]
Bins = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class AsPublished(Setting):
    """SPLU-Gen and its reconstruction to the letter: Anatomy's groups, p = 1/c, Eq. 13 from the published counts to a
    change of 1 %."""

    c: int
    label: str = PUBLISHED

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table, begin = pool.table, time.perf_counter()
        plan = decoys_planned(Decoys(c=self.c, leftovers="drop", grouping="anatomy"), table.histogram)
        draw = draw_plan(table, plan, stream, None)
        drawn = time.perf_counter()
        total = np.bincount(draw.published, minlength=table.m).astype(np.float64)
        condition, value, observed = states_asked(pool, pool.tally(draw.published, table.m), total)
        answers = answers_of(pool, condition, value, splu_iteration(observed, [self.c], most=MOST_ROUNDS).rows[:, 1, 1])
        answered = time.perf_counter()
        kept = float((draw.published == table.codes).mean())
        return Answered({"": answers}, {"": total}, kept, (drawn - begin, answered - drawn))


@lru_cache(maxsize=32)
def lineups_planned(histogram: Histogram, rho2: Fraction) -> tuple[Plan, LineUpStates]:
    """Line-ups as a release would have them, and what estimates need of them: made once for all draws."""
    plan = as_published(Lineup(), histogram, Privacy(None, rho2))
    design = plan.parts[0].lineups
    assert design is not None
    return plan, LineUpStates(design)


@dataclass(frozen=True)
class LinedUp(Setting):
    """Line-ups that let nobody become surer than decoy groups do, 1/c; by inversion, with no histogram beside them."""

    c: int
    label: str = LINE_UP

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table, begin = pool.table, time.perf_counter()
        plan, states = lineups_planned(table.histogram, Fraction(1, self.c))
        draw = draw_plan(table, plan, stream, None)
        drawn = time.perf_counter()
        step = max(1, STATES // states.count)
        counts = np.concatenate(
            [
                states.invert(_tally(pool.rows[start : start + step], draw.states, states.count))
                for start in range(0, len(pool.rows), step)
            ]
        )
        answers = counts @ pool.sets.T.astype(np.float64)
        answered = time.perf_counter()
        histogram = states.invert(draw.asking.total[None, :])[0]
        return Answered({"": answers}, {"": histogram}, None, (drawn - begin, answered - drawn))


def _tally(conditions: Sequence[npt.NDArray[np.int32]], states: npt.NDArray[Any], number: int) -> Floats:
    """Rows of some conditions by state; of hundreds of values there are more states than fit for all at once."""
    place = np.repeat(np.arange(len(conditions)), [len(rows) for rows in conditions])
    key = place * number + states[np.concatenate([np.zeros(0, np.int32), *conditions])]
    counts = np.bincount(key, minlength=len(conditions) * number)
    return counts.reshape(len(conditions), number).astype(np.float64)


def measured(pool: QuestionPool, settings: Sequence[Setting], bins: Bins, draws: int) -> Errors:
    """Mean relative error in bins of true rows, over draws, by setting and estimator."""
    drawn: dict[str, list[list[float]]] = {}
    for setting in settings:
        for draw in range(draws if setting.chance else 1):
            answered = setting.run(pool, stream_of(1, draw, setting.label))
            for estimator, answers in answered.answers.items():
                errors = relative_error(pool.pick(answers), pool.truth)
                by_bin = [mean_between(errors, pool.truth, *ends) for ends in bins]
                drawn.setdefault(f"{setting.label}, {estimator}".removesuffix(", "), []).append(by_bin)
    return {name: [spread(column) for column in zip(*rows, strict=True)] for name, rows in drawn.items()}


def at_most(error: Spread, most: float) -> bool:
    """Whether one release could be within the limit: the papers show one, and ours differ from draw to draw."""
    deviations = limit("SPLU Figure 9 (section 6.2.1)", "deviations")
    return bool(error.mean - deviations * error.deviation <= most)
