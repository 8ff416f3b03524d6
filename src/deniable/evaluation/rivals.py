"""Rivals in an experiment: what has no channel, or answers in a way of its own (mathematics 9)."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from deniable.core.arrays import Bools, Floats, Ints
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.engines.randomness import Keystream
from deniable.estimation.decoys import Others, four_states
from deniable.evaluation.answered import Answered, Setting, estimated, generator
from deniable.evaluation.boxed import Boxed
from deniable.evaluation.draws import decoys_planned, draw_plan, noisy_marginal, planning_stream
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.decoys.mechanism import Decoys
from deniable.mechanisms.redraw import Redraw
from deniable.planning.independence import RedrawMoments
from deniable.planning.pools import QuestionPool
from deniable.planning.profiles import ByPool, Errors
from deniable.rivals.anatomy.estimate import AnatomyTables
from deniable.rivals.anatomy.groups import anatomy_groups
from deniable.rivals.anatomy.mechanism import Anatomy
from deniable.rivals.anatomy.prediction import AnatomyMoments
from deniable.rivals.diversity import group_size
from deniable.rivals.generalize.estimate import BoxCounts
from deniable.rivals.generalize.mechanism import Generalize, rows_kept
from deniable.rivals.laplace import mechanism as laplace

CONDITIONS = 64  # that Anatomy's groups are asked at a time


class Rival(Setting):
    """A mechanism that is evaluated in a way of its own.

    Attributes:
        evaluates: the mechanism.
    """

    evaluates: ClassVar[type[Mechanism]]

    @classmethod
    @abstractmethod
    def of(cls, mechanism: Any, label: str, privacy: Privacy) -> Rival:
        """The setting of a mechanism of this kind."""


@dataclass(frozen=True)
class Noisy(Setting):
    """Laplace's mechanism: true answers with noise of scale 1/epsilon, each question paid for anew (mathematics 9)."""

    epsilon: float
    label: str = "laplace"

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        rng = generator(stream)
        true = pool.true_answers
        begin = time.perf_counter()
        answers = true + rng.laplace(scale=1 / self.epsilon, size=true.shape)
        counts = pool.table.histogram.counts
        histogram = counts + rng.laplace(scale=1 / self.epsilon, size=counts.shape)
        return Answered({"": answers}, {"": histogram}, None, (0.0, time.perf_counter() - begin))

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {"": profile.noise(1 / self.epsilon)}


@dataclass(frozen=True)
class Laplace(Rival):
    """Laplace's mechanism with the budget that a requirement allows: spent on each question anew, as in SPLU 6, and
    shared by all questions of the pool, as whoever answers them must (mathematics 9)."""

    mechanism: laplace.Laplace
    privacy: Privacy
    label: str = "laplace"
    evaluates: ClassVar[type[Mechanism]] = laplace.Laplace

    @classmethod
    def of(cls, mechanism: laplace.Laplace, label: str, privacy: Privacy) -> Laplace:
        return cls(mechanism, privacy, label)

    def epsilons(self, pool: QuestionPool) -> dict[str, float]:
        """The epsilon of one question, either way."""
        budget = self.mechanism.budget(pool.table.histogram, self.privacy)
        return {"budget for each": budget, "budget shared": budget / max(len(pool), 1)}

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        either = {name: Noisy(epsilon).run(pool, stream.subkey(name)) for name, epsilon in self.epsilons(pool).items()}
        answers = {name: noisy.answers[""] for name, noisy in either.items()}
        histogram = {name: noisy.histogram[""] for name, noisy in either.items()}
        return Answered(answers, histogram, None, (0.0, sum(noisy.seconds[1] for noisy in either.values())))

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {name: profile.noise(1 / epsilon) for name, epsilon in self.epsilons(profile.pool).items()}


@dataclass(frozen=True)
class Redrawn(Rival):
    """DBR: every sensitive value redrawn from the column's own distribution; published counts are the answers."""

    label: str = "redraw"
    evaluates: ClassVar[type[Mechanism]] = Redraw

    @classmethod
    def of(cls, mechanism: Redraw, label: str, privacy: Privacy) -> Redrawn:
        return cls(label)

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

    def plan(self, counts: Histogram) -> Plan:
        return Redraw().plan(counts, None)

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {"": profile.errors_of(RedrawMoments())}


@dataclass(frozen=True)
class Anatomized(Rival):
    """Anatomy: rows in groups of l different values, published as two tables (mathematics 9; SDR 10.10)."""

    l: int
    label: str = "anatomy"
    privacy: Privacy | None = None
    evaluates: ClassVar[type[Mechanism]] = Anatomy

    @classmethod
    def of(cls, mechanism: Anatomy, label: str, privacy: Privacy) -> Anatomized:
        return cls(mechanism.l, label, privacy)

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table = pool.table
        begin = time.perf_counter()
        mechanism = Anatomy(self.l)
        mechanism.guarantee(table.histogram, self.privacy)  # refused, where it promises too little
        suppressed = mechanism.suppressed(table.histogram)
        cell = anatomy_groups(table.codes, table.m, self.l, stream.subkey("groups"), suppressed)
        drawn = time.perf_counter()
        tables = AnatomyTables.of_codes(table.codes, cell, table.m)
        answers = _anatomy_counts(tables, pool, cell >= 0) @ pool.sets.T
        answered = time.perf_counter()
        histogram = (table.histogram.counts - suppressed).astype(np.float64)
        return Answered({"": answers}, {"": histogram}, None, (drawn - begin, answered - drawn))

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {"": profile.errors_of(AnatomyMoments(Anatomy(self.l), planning_stream()))}


def _anatomy_counts(tables: AnatomyTables, pool: QuestionPool, there: Bools) -> Floats:
    """Counts [conditions, m]; conditions are handed over some at a time, as the places of rows that are left."""
    place = np.cumsum(there) - 1
    parts = []
    for start in range(0, len(pool.rows), CONDITIONS):
        some = pool.rows[start : start + CONDITIONS]
        parts.append(tables.counts_of([place[rows[there[rows]]] for rows in some]))
    return np.concatenate(parts)


@dataclass(frozen=True)
class Generalized(Rival):
    """Generalization: boxes of k rows or more, no value above 1/l of a box (Mondrian), rows spread evenly in boxes."""

    k: int
    l: int
    label: str = "generalize"
    privacy: Privacy | None = None
    evaluates: ClassVar[type[Mechanism]] = Generalize

    @classmethod
    def of(cls, mechanism: Generalize, label: str, privacy: Privacy) -> Generalized:
        return cls(mechanism.k, mechanism.l, label, privacy)

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table = pool.table
        begin = time.perf_counter()
        mechanism = Generalize(self.k, self.l)
        mechanism.guarantee(table.histogram, self.privacy)
        suppressed = mechanism.suppressed(table.histogram)
        kept = rows_kept(table.codes, suppressed, stream.subkey("suppression"))
        boxed = Boxed.of(table, kept, self.k, self.l)
        drawn = time.perf_counter()
        counts = BoxCounts.of_codes(boxed.groups, table.codes[kept], table.m, boxed.boxes.num_rows)
        by_value = np.array([counts.by_value(share, table.m) for share in boxed.shares(pool)])
        answers = by_value @ pool.sets.T
        answered = time.perf_counter()
        histogram = (table.histogram.counts - suppressed).astype(np.float64)
        return Answered({"": answers}, {"": histogram}, None, (drawn - begin, answered - drawn))


@dataclass(frozen=True)
class DecoyGroups(Rival):
    """Decoy groups of size c (mathematics 7), answered by four states and by the plan's full channel.

    The up to c - 1 rows that no group can take are kept here, in a smaller group: n is the same for every c.
    """

    c: int
    label: str = "decoys"
    evaluates: ClassVar[type[Mechanism]] = Decoys

    @classmethod
    def of(cls, mechanism: Decoys, label: str, privacy: Privacy) -> DecoyGroups:
        return cls(mechanism.c or group_size(privacy), label)

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table = pool.table
        begin = time.perf_counter()
        plan = self.plan(table.histogram)
        draw = draw_plan(table, plan, stream, noisy_marginal(table.histogram, stream))
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

    def plan(self, counts: Histogram) -> Plan:
        return decoys_planned(self.mechanism, counts)

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {"full channel": profile.channels(self.plan(profile.pool.table.histogram), None)}

    @property
    def mechanism(self) -> Decoys:
        return Decoys(c=self.c, leftovers="drop")


def _four_state_answers(pool: QuestionPool, tally: Floats, total: Floats, c: int, others: Others) -> Floats:
    condition, value, observed = states_asked(pool, tally, total)
    return answers_of(pool, condition, value, four_states(observed, c, others=others)[:, 1, 1])


def states_asked(pool: QuestionPool, tally: Floats, total: Floats) -> tuple[Ints, Ints, Floats]:
    """The conditions and values that a pool asks about, and what rows show of them: (not Q, Q) x (not s, s)."""
    needed = np.zeros(tally.shape, bool)
    np.logical_or.at(needed, pool.condition, pool.sets[pool.chosen])
    condition, value = np.nonzero(needed)
    rows, shown = tally.sum(axis=1)[condition], tally[condition, value]
    others_shown = total[value] - shown
    observed = np.stack([total.sum() - rows - others_shown, others_shown, rows - shown, shown], axis=1)
    return condition, value, observed.reshape(-1, 2, 2)


def answers_of(pool: QuestionPool, condition: Ints, value: Ints, rows: Floats) -> Floats:
    """Counts of single values as answers to a pool; what it does not ask about stays 0 and is never looked at."""
    counts = np.zeros((len(pool.rows), pool.table.m))
    counts[condition, value] = rows
    return counts @ pool.sets.T.astype(np.float64)
