"""What an experiment compares: mechanisms with estimators, and the rivals that have no channel.

A setting draws once and answers the whole pool in one or several ways. Answers are arrays [conditions, value sets].
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from deniable.core.errors import OptionError, did_you_mean
from deniable.core.privacy import Privacy
from deniable.engines.local.grouping import anatomy_groups
from deniable.engines.randomness import Keystream
from deniable.estimation.anatomy import AnatomyTables
from deniable.estimation.asking import Asking, Options
from deniable.estimation.decoys import Others, four_states
from deniable.estimation.grouping import by_method
from deniable.estimation.linear import Weighing
from deniable.evaluation.drawing import draw_release
from deniable.evaluation.independence import independence
from deniable.evaluation.pools import QuestionPool
from deniable.mechanisms import MECHANISMS, Mechanism, mechanism_named
from deniable.mechanisms.baselines.anatomy import Anatomy
from deniable.mechanisms.decoys import Decoys

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
SET_ENTRIES = 2**22  # weights computed at a time

ESTIMATORS: dict[str, Options] = {
    "inverse": Options("inverse", calibrate=False),
    "calibrated": Options("inverse"),
    "shrunk": Options("shrunk"),
    "mle": Options("mle"),
}
RIVALS = ("anatomy", "decoys", "redraw")
STANDARD = ("inverse", "calibrated", "shrunk")


@dataclass(frozen=True, eq=False)
class Answered:
    """What one draw of a setting gives.

    Attributes:
        answers: estimator -> [conditions, sets].
        histogram: estimator -> the estimated histogram of the whole table.
        kept: the share of rows that were published as they are; None where rows are not published.
        seconds: for making the draw, and for answering.
    """

    answers: Mapping[str, Floats]
    histogram: Mapping[str, Floats]
    kept: float | None
    seconds: tuple[float, float]


class Setting(Protocol):
    """One row group of the table of results."""

    @property
    def label(self) -> str: ...

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        """Draw once, answer all questions."""
        ...


@dataclass(frozen=True)
class Perturbed:
    """A mechanism under a requirement, answered by some estimators."""

    label: str
    mechanism: Mechanism
    privacy: Privacy | None
    estimators: tuple[str, ...] = STANDARD

    def __post_init__(self) -> None:
        for name in self.estimators:
            if name not in ESTIMATORS:
                raise OptionError(
                    f"estimator = {name!r} is not known: choose among {', '.join(ESTIMATORS)}."
                    + did_you_mean(name, ESTIMATORS)
                )

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        begin = time.perf_counter()
        draw = draw_release(pool.table, self.mechanism, self.privacy, stream)
        drawn = time.perf_counter()
        tally = pool.tally(draw.states, draw.asking.states.count)
        whole, each = draw.asking.total[None, :], np.eye(pool.table.m, dtype=bool)
        answers = {name: estimated(draw.asking, tally, pool.sets, name) for name in self.estimators}
        answered = time.perf_counter()
        histogram = {name: estimated(draw.asking, whole, each, name)[0] for name in self.estimators}
        kept = float((draw.published == pool.table.codes).mean())
        return Answered(answers, histogram, kept, (drawn - begin, answered - drawn))


def estimated(ask: Asking, tally: Floats, sets: Bools, estimator: str) -> Floats:
    """Counts [conditions, sets] from rows by state [conditions, states]."""
    options = ESTIMATORS[estimator]
    control, parts = ask.control(options), []
    step = max(1, SET_ENTRIES // max(tally.shape))
    for start in range(0, len(sets), step):
        chosen = sets[start : start + step, None, :]
        weighing = Weighing.of(ask.states, chosen, control, np.ones(1))
        parts.append(by_method(ask, tally[:, None, :], chosen, weighing.counts(tally), options).value)
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Independent:
    """N_R f_x / n: the line to beat."""

    label: str = "independence"

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        counts = pool.table.histogram.counts
        answers = independence(pool.condition_rows, counts, pool.sets)
        return Answered({"": answers}, {"": counts.astype(np.float64)}, None, (0.0, 0.0))


@dataclass(frozen=True)
class Noisy:
    """Laplace's mechanism: true answers with noise of scale 1/epsilon, each question paid for anew (SPEC 9)."""

    epsilon: float
    label: str = field(default="laplace")

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        rng = generator(stream)
        true = pool.by_value @ pool.sets.T
        begin = time.perf_counter()
        answers = true + rng.laplace(scale=1 / self.epsilon, size=true.shape)
        counts = pool.table.histogram.counts
        histogram = counts + rng.laplace(scale=1 / self.epsilon, size=counts.shape)
        return Answered({"": answers}, {"": histogram}, None, (0.0, time.perf_counter() - begin))


@dataclass(frozen=True)
class Redrawn:
    """DBR: every sensitive value redrawn from the column's own distribution; published counts are the answers."""

    label: str = "redraw"

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table = pool.table
        begin = time.perf_counter()
        published = generator(stream).choice(table.m, size=table.rows, p=table.histogram.relative)
        drawn = time.perf_counter()
        answers = pool.tally(published, table.m) @ pool.sets.T
        answered = time.perf_counter()
        histogram = np.bincount(published, minlength=table.m).astype(np.float64)
        kept = float((published == table.codes).mean())
        return Answered({"": answers}, {"": histogram}, kept, (drawn - begin, answered - drawn))


@dataclass(frozen=True)
class Anatomized:
    """Anatomy: rows in groups of l different values, published as two tables (SPEC 9; SDR 10.10)."""

    l: int
    label: str = "anatomy"

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table = pool.table
        begin = time.perf_counter()
        suppressed = Anatomy(self.l).suppressed(table.histogram)
        cell = anatomy_groups(table.codes, table.m, self.l, stream.subkey("groups"), suppressed)
        drawn = time.perf_counter()
        tables = AnatomyTables.of_codes(table.codes, cell, table.m)
        answers = _anatomy_counts(tables, pool, cell >= 0) @ pool.sets.T
        answered = time.perf_counter()
        histogram = (table.histogram.counts - suppressed).astype(np.float64)
        return Answered({"": answers}, {"": histogram}, None, (drawn - begin, answered - drawn))


def _anatomy_counts(tables: AnatomyTables, pool: QuestionPool, there: Bools) -> Floats:
    """Counts [conditions, m]; conditions are handed over some at a time, as one flag per row that is left."""
    place = np.cumsum(there) - 1
    step = max(1, SET_ENTRIES // len(there))
    parts = []
    for start in range(0, len(pool.rows), step):
        some = pool.rows[start : start + step]
        matching = np.zeros((len(some), len(tables.cell)), bool)
        for flags, rows in zip(matching, some, strict=True):
            flags[place[rows[there[rows]]]] = True
        parts.append(tables.counts(matching))
    return np.concatenate(parts)


@dataclass(frozen=True)
class DecoyGroups:
    """Decoy groups of size c (SPEC 7), answered by four states and by the plan's full channel.

    The up to c - 1 rows that no group can take are kept here, in a smaller group: n is the same for every c.
    """

    c: int
    label: str = "decoys"

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table = pool.table
        begin = time.perf_counter()
        draw = draw_release(table, Decoys(c=self.c, leftovers="drop"), None, stream)
        drawn = time.perf_counter()
        tally = pool.tally(draw.published, table.m)
        total = np.bincount(draw.published, minlength=table.m).astype(np.float64)
        answers = {
            "four states": _four_state_answers(pool, tally, total, self.c, "as published"),
            "exact a": _four_state_answers(pool, tally, total, self.c, "exact"),
            "full channel": estimated(draw.asking, tally, pool.sets, "inverse"),
        }
        answered = time.perf_counter()
        kept = float((draw.published == table.codes).mean())
        return Answered(answers, dict.fromkeys(answers, total), kept, (drawn - begin, answered - drawn))


def _four_state_answers(pool: QuestionPool, tally: Floats, total: Floats, c: int, others: Others) -> Floats:
    """Only what the pool asks about is computed; everything else stays 0 and is never looked at."""
    needed = np.zeros(tally.shape, bool)
    np.logical_or.at(needed, pool.condition, pool.sets[pool.chosen])
    condition, value = np.nonzero(needed)
    rows, shown = tally.sum(axis=1)[condition], tally[condition, value]
    others_shown = total[value] - shown
    observed = np.stack([total.sum() - rows - others_shown, others_shown, rows - shown, shown], axis=1)
    found = np.zeros(tally.shape)
    found[condition, value] = four_states(observed.reshape(-1, 2, 2), c, others=others)[:, 1, 1]
    return found @ pool.sets.T.astype(np.float64)


def generator(stream: Keystream) -> np.random.Generator:
    """A generator for simulations, seeded by a draw's randomness."""
    return np.random.default_rng(stream.subkey("generator").words(0, 4))


def setting_named(name: str, privacy: Privacy, estimators: tuple[str, ...] = STANDARD) -> Setting:
    """A setting by the name of its mechanism. Rivals without a channel get the group size that bounds them by rho2."""
    size = 2 if privacy.rho2 is None else math.ceil(1 / privacy.rho2)
    if name == "anatomy":
        return Anatomized(size)
    if name == "decoys":
        return DecoyGroups(size)
    if name == "redraw":
        return Redrawn()
    known = [*MECHANISMS, *(rival for rival in RIVALS if rival not in MECHANISMS)]
    if name not in MECHANISMS:
        raise OptionError(
            f"mechanism = {name!r} is not known.{did_you_mean(name, known)} Choose one of: {', '.join(known)}."
        )
    return Perturbed(name, mechanism_named(name), privacy, estimators)
