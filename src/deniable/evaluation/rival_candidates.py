"""The baselines in the planner's table: with the parameters that a requirement asks of them, and what they answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.evaluation.drawing import stream_of
from deniable.evaluation.rivals import Generalized
from deniable.evaluation.settings import FEWEST, group_size
from deniable.mechanisms import Anatomy, Decoys, Generalize, Laplace, Pram, Redraw, WithoutChannels
from deniable.planning.candidates import Candidate, candidate, timed
from deniable.planning.profiles import ByPool, Errors, Profile


def rival_candidates(counts: Histogram, privacy: Privacy, profile: Profile) -> list[Candidate]:
    """The baselines with the parameters that the requirement asks of them, and what they would answer."""
    l = group_size(privacy)
    k = max(FEWEST, l)
    by_pool = isinstance(profile, ByPool)

    def without(mechanism: WithoutChannels, errors: Callable[[Guarantee], Errors], biased: bool = False) -> Candidate:
        def made() -> tuple[None, Guarantee, Errors]:
            promised = mechanism.guarantee(counts, privacy)
            return None, promised, errors(promised)

        return timed(mechanism, made, rival=True, biased=biased)

    def redrawn() -> tuple[Plan | None, Guarantee, Errors]:
        plan = Redraw().plan(counts, privacy)
        return plan, plan.guarantee, profile.redraw()

    laplace = Laplace(questions=profile.questions)
    return [
        _as_rival(candidate(Decoys(c=None, leftovers="drop"), counts, privacy, profile)),
        _as_rival(candidate(Pram(), counts, privacy, profile)),
        timed(Redraw(), redrawn, rival=True, biased=not by_pool),
        without(Anatomy(l), lambda _: profile.anatomy(l), biased=not by_pool),
        without(Generalize(k, l), lambda _: _generalized(profile, k, l), biased=not by_pool),
        without(laplace, lambda promised: profile.noise(_mean_noise(promised.epsilon / profile.questions))),
    ]


def _as_rival(found: Candidate) -> Candidate:
    return replace(found, rival=True)


def _generalized(profile: Profile, k: int, l: int) -> Errors:
    """Its partition needs the public columns, so only a pool can tell. There is no chance in it: one run is exact."""
    if not isinstance(profile, ByPool):
        return (math.nan,) * len(profile.selectivities)
    answered = Generalized(k, l).run(profile.pool, stream_of(0, 0, "planner"))
    return profile.measured(answered.answers[""])


def _mean_noise(epsilon: float) -> float:
    """E|Z| = 2t / (1 - t^2), t = e^-epsilon, of discrete Laplace noise."""
    t = math.exp(-epsilon)
    return 2 * t / (1 - t**2)
