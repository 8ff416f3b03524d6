"""What an experiment compares: mechanisms with estimators, the line to beat, and rivals, which the planner lists, too.

A setting draws once and answers the whole pool in one or several ways. Answers are arrays [conditions, value sets].
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import OptionError, did_you_mean
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.promise import Guarantee
from deniable.core.values import Codes, Floats, Ints
from deniable.estimation.decoys import Others, four_states
from deniable.lab.anatomy import Anatomy
from deniable.lab.draws import decoys_planned, draw_plan, draw_release, noisy_marginal
from deniable.lab.generalize import Generalize
from deniable.lab.laplace import Laplace
from deniable.lab.optrr import OptRR
from deniable.lab.perturbed_generalization import PerturbedGeneralization
from deniable.lab.rival import ESTIMATORS, Answered, Rival, Setting, estimated, generator, group_size
from deniable.mechanisms import MECHANISMS, Decoys, Mechanism, Pram, Redraw, Synthetic
from deniable.mechanisms.base import spelled
from deniable.planning.candidates import (
    MARGINAL_VARIANCE,
    Candidate,
    as_published,
    candidate,
    drawn_plans,
    mean_errors,
    timed,
)
from deniable.planning.pools import PIECE, QuestionPool
from deniable.planning.prediction import ByPool, Errors, IndependenceMoments, Profile, RedrawMoments, independence
from deniable.publishing.publish import publish
from deniable.tables.encoding import Encoded
from deniable.tables.keys import Keystream

STANDARD = ("inverse", "calibrated", "shrunk")
RIVALS: tuple[type[Rival | OptRR], ...] = (Anatomy, Generalize, PerturbedGeneralization, OptRR, Laplace)
NOT_ONE_COLUMN = {"retention": "many columns", "items": "lists"}
EVALUATED = (*(name for name in MECHANISMS if name not in NOT_ONE_COLUMN), *(rival.name for rival in RIVALS))


@dataclass(frozen=True)
class Perturbed(Setting):
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
        whole, single = draw.asking.total[None, :], np.eye(pool.table.m, dtype=bool)
        answers = {name: estimated(draw.asking, tally, pool.sets, name) for name in self.estimators}
        answered = time.perf_counter()
        histogram = {name: estimated(draw.asking, whole, single, name)[0] for name in self.estimators}
        sets = draw.plan.parts[0].lineups is not None  # of which none is published as it is
        kept = None if sets else _share_alike(draw.published, pool.table.codes)
        return Answered(answers, histogram, kept, (drawn - begin, answered - drawn))

    def plan(self, counts: Histogram) -> Plan:
        return as_published(self.mechanism, counts, self.privacy)

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        plans = drawn_plans(self.mechanism, profile.pool.table.histogram, self.privacy)
        knows = self.privacy is None or self.privacy.adversary == "frequency"
        noise = {"inverse": None, "calibrated": MARGINAL_VARIANCE if knows else None}
        return {
            name: mean_errors(plans, lambda plan, name=name: profile.channels(plan, noise[name]))  # type: ignore[misc]
            for name in self.estimators
            if name in noise
        }


def _share_alike(published: Codes, codes: Codes) -> float:
    """The share of rows that are published as they are, a piece of them at a time."""
    pieces = (slice(start, start + PIECE) for start in range(0, len(codes), PIECE))
    return sum(int((published[piece] == codes[piece]).sum()) for piece in pieces) / len(codes)


@dataclass(frozen=True)
class Independent(Setting):
    """N_R f_x / n: the line to beat."""

    label: str = "independence"
    chance: ClassVar[bool] = False

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        counts = pool.table.histogram.counts
        answers = independence(pool.condition_rows, counts, pool.sets)
        return Answered({"": answers}, {"": counts.astype(np.float64)}, None, (0.0, 0.0))

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {"": profile.errors_of(IndependenceMoments())}


@dataclass(frozen=True)
class Redrawn(Setting):
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

    def plan(self, counts: Histogram) -> Plan:
        return Redraw().plan(counts, None)

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        return {"": profile.errors_of(RedrawMoments())}


def _places(column: Encoded) -> pa.Array:
    """Codes of a column as places among its values, missing as null."""
    return pa.array(column.codes.astype(np.int64), mask=column.codes == len(column.values))


@dataclass(frozen=True)
class Learned(Setting):
    """A learned release, published as anyone publishes it and counted as it is; the table's values are declared."""

    label: str
    mechanism: Synthetic
    privacy: Privacy | None

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table, key = pool.table, stream.subkey("release").words(0, 4).tobytes()
        values = pa.array(list(table.domain))
        columns = {name: column.values.take(_places(column)) for name, column in table.columns.items()}
        begin = time.perf_counter()
        release = publish(
            pa.table({**columns, table.sensitive: values.take(pa.array(table.codes))}),
            sensitive=table.sensitive,
            privacy=self.privacy,
            mechanism=self.mechanism,
            domain=list(table.domain),
            key=key,
            shuffle=False,
        )
        drawn = time.perf_counter()
        shown = release.table[table.sensitive].combine_chunks()
        published = pc.index_in(shown, value_set=values).to_numpy(zero_copy_only=False)
        answers = pool.tally(published, table.m) @ pool.sets.T
        answered = time.perf_counter()
        histogram = np.bincount(published, minlength=table.m).astype(np.float64)
        kept = _share_alike(published, table.codes)
        return Answered({"": answers}, {"": histogram}, kept, (drawn - begin, answered - drawn))


@dataclass(frozen=True)
class DecoyGroups(Setting):
    """Decoy groups of size c (mathematics 7), answered by four states and by the plan's full channel.

    The up to c - 1 rows that no group can take are kept here, in a smaller group: n is the same for every c.
    """

    c: int
    label: str = "decoys"

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


def setting_named(text: str, privacy: Privacy, estimators: tuple[str, ...] = STANDARD) -> Setting:
    """A setting by the name of its mechanism or rival, which its options may follow: ``decoys:c=5``.

    A rival that is given no options gets those that bound beliefs by rho2.
    """
    name, options, _ = text.partition(":")
    if name in NOT_ONE_COLUMN:
        raise OptionError(
            f"mechanism {name!r} perturbs {NOT_ONE_COLUMN[name]}; here one column of values is evaluated. "
            "Fix: leave it out."
        )
    known: dict[str, type[Mechanism | Rival]] = {**MECHANISMS, **{rival.name: rival for rival in RIVALS}}
    made = spelled(text, known)
    if isinstance(made, Rival):
        return (made if options else made.fitted(privacy)).setting(text, privacy)
    if isinstance(made, Synthetic):
        return Learned(text, made, privacy)
    if isinstance(made, Decoys):
        return DecoyGroups(made.c or group_size(privacy), text)
    return Redrawn(text) if isinstance(made, Redraw) else Perturbed(text, made, privacy, estimators)


def rival_candidates(counts: Histogram, privacy: Privacy, profile: Profile) -> list[Candidate]:
    """The baselines in the planner's table, with the parameters that the requirement asks of them, and what they would
    answer."""
    biased = profile.sizes is None  # a pool's own questions show the bias

    def grouped(rival: Rival) -> Candidate:
        def made() -> tuple[None, Guarantee, Errors]:
            bound = rival.guarantee(counts, privacy)
            return None, bound, rival.errors(profile, privacy, bound)

        return timed(rival, made, rival=True, biased=biased and rival.biased)

    def redrawn() -> tuple[Plan | None, Guarantee, Errors]:
        plan = Redraw().plan(counts, privacy)
        return plan, plan.guarantee, profile.errors_of(RedrawMoments())

    return [
        replace(candidate(Decoys(c=None, leftovers="drop"), counts, privacy, profile), rival=True),
        replace(candidate(Pram(), counts, privacy, profile), rival=True),
        timed(Redraw(), redrawn, rival=True, biased=biased),
        *(grouped(rival().fitted(privacy)) for rival in (Anatomy, Generalize, PerturbedGeneralization)),
        replace(candidate(OptRR(), counts, privacy, profile), rival=True),
        grouped(Laplace(questions=profile.questions)),
    ]
