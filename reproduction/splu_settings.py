"""Decoy groups as SPLU makes and answers them, and errors of several settings by the size of the answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.engines.randomness import Keystream
from deniable.estimation.decoys import splu_iteration
from deniable.evaluation.answered import Answered, Setting
from deniable.evaluation.drawing import decoys_planned, draw_plan, stream_of
from deniable.evaluation.rivals import answers_of, states_asked
from deniable.mechanisms.decoys.mechanism import Decoys
from deniable.planning.accuracy import Spread, mean_between, relative_error, spread
from deniable.planning.pools import QuestionPool

PUBLISHED = "decoys as SPLU"
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


def at_most(error: Spread, limit: float) -> bool:
    """Whether one release could be within the limit: the papers show one, and ours differ from draw to draw."""
    return error.mean - 2 * error.deviation <= limit
