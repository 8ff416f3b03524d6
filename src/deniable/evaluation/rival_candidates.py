"""The baselines in the planner's table: with the parameters that a requirement asks of them, and what they answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from deniable.core.arrays import Floats
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.evaluation.boxed import Boxed
from deniable.evaluation.draws import planning_stream
from deniable.evaluation.rivals import Generalized
from deniable.mechanisms import Decoys, Pram, Redraw
from deniable.planning.candidates import Candidate, candidate, timed
from deniable.planning.independence import RedrawMoments
from deniable.planning.pools import QuestionPool
from deniable.planning.profiles import Errors, Profile
from deniable.rivals.anatomy.mechanism import Anatomy
from deniable.rivals.anatomy.prediction import AnatomyMoments
from deniable.rivals.base import Rival
from deniable.rivals.generalize.mechanism import Generalize
from deniable.rivals.laplace.mechanism import Laplace
from deniable.rivals.optrr.mechanism import OptRR
from deniable.rivals.perturbed_generalization.mechanism import PerturbedGeneralization


def rival_candidates(counts: Histogram, privacy: Privacy, profile: Profile) -> list[Candidate]:
    """The baselines with the parameters that the requirement asks of them, and what they would answer."""
    biased = profile.sizes is None  # a pool's own questions show the bias
    anatomy, boxes = Anatomy().fitted(privacy), Generalize().fitted(privacy)
    sample = PerturbedGeneralization().fitted(privacy)
    laplace = Laplace(questions=profile.questions)

    def without(mechanism: Rival, errors: Callable[[Guarantee], Errors], biased: bool = False) -> Candidate:
        def made() -> tuple[None, Guarantee, Errors]:
            promised = mechanism.guarantee(counts, privacy)
            return None, promised, errors(promised)

        return timed(mechanism, made, rival=True, biased=biased)

    def redrawn() -> tuple[Plan | None, Guarantee, Errors]:
        plan = Redraw().plan(counts, privacy)
        return plan, plan.guarantee, profile.errors_of(RedrawMoments())

    return [
        replace(candidate(Decoys(c=None, leftovers="drop"), counts, privacy, profile), rival=True),
        replace(candidate(Pram(), counts, privacy, profile), rival=True),
        timed(Redraw(), redrawn, rival=True, biased=biased),
        without(anatomy, lambda _: profile.errors_of(AnatomyMoments(anatomy, planning_stream())), biased),
        without(boxes, lambda _: profile.errors_of(GeneralizeMoments(boxes)), biased),
        without(sample, lambda _: profile.errors_of(SampleMoments(sample, privacy))),
        replace(candidate(OptRR(), counts, privacy, profile), rival=True),
        without(laplace, lambda promised: profile.noise(_mean_noise(promised.epsilon / profile.questions))),
    ]


@dataclass(frozen=True)
class GeneralizeMoments:
    """Boxes need the public columns, so only a pool can tell. There is no chance in them: one run is exact."""

    mechanism: Generalize

    def variance_per_row(self, share: Floats, question: Floats) -> Floats:
        return np.full(share.shape, np.nan)

    def moments(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        answers = Generalized(self.mechanism.k, self.mechanism.l).run(pool, planning_stream()).answers[""]
        return answers - pool.true_answers, np.zeros(answers.shape)


@dataclass(frozen=True)
class SampleMoments:
    """The same of one perturbed row of each box, which is drawn: what a box adds varies by its row and its coin.

    A box g of n rows, c_x of which have x and of which a condition covers the share s, adds n s w_x(y) to the count of
    x: c_x s on average, with the variance (n s)^2 (E w_x(y)^2 - (c_x/n)^2), y published by the channel of c/n.
    """

    mechanism: PerturbedGeneralization
    privacy: Privacy

    def variance_per_row(self, share: Floats, question: Floats) -> Floats:
        return np.full(share.shape, np.nan)

    def moments(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        table = pool.table
        channel = self.mechanism.channel(table.histogram, self.privacy)
        boxed = Boxed.of(table, np.arange(table.rows), self.mechanism.k, 1)
        rows = np.bincount(boxed.groups).astype(np.float64)
        shares = np.zeros((len(rows), table.m))
        np.add.at(shares, (boxed.groups, table.codes), 1.0)
        shares /= rows[:, None]
        weights = channel.weights(pool.sets)  # [sets, values]
        mean = shares @ pool.sets.T
        variance = (shares @ channel.matrix().T) @ (weights**2).T - mean**2
        covered = np.array([rows * share for share in boxed.shares(pool)])
        return covered @ mean - pool.true_answers, covered**2 @ variance


def _mean_noise(epsilon: float) -> float:
    """E|Z| = 2t / (1 - t^2), t = e^-epsilon, of discrete Laplace noise."""
    t = math.exp(-epsilon)
    return 2 * t / (1 - t**2)
