"""Error against risk: what an informed attacker gains from every point of a comparison, and which ``auto`` may take.

Line-ups teach more than a single value, so whoever has learnt Pr[value | public columns] gains more from them. Where
the promise is not about this attacker they must be named to be taken; against any prior it is, whatever was learnt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from deniable.audit.attacks.informed import InformedAttacker
from deniable.core.errors import DeniableError
from deniable.core.histogram import Histogram
from deniable.core.lineup import LineUpDesign
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.mechanisms import Lineup, Mechanism
from deniable.planning.candidates import Candidate
from deniable.planning.chart import Chart, Point, Series
from deniable.planning.informed import against

FRONTIER = "frontier"
GROWN = (1.25, 1.5, 2.0, 2.5, 4.0)  # sizes beside the one of the smallest error, as multiples of it
TRUTHS = ("3/4", "1")
MANY = 500  # values; with more, one more size is tried
BY_NAME = (
    "line-ups teach more than a single value to whoever has learnt what goes with the public columns, so they must be "
    "named to be taken"
)


def lineup_points(counts: Histogram, privacy: Privacy, attacker: InformedAttacker | None) -> tuple[Mechanism, ...]:
    """Line-ups to compare: those of the smallest error and, where their risk is measured, other sizes and truths."""
    if privacy.sums:
        return ()
    if attacker is None or privacy.adversary == "any-prior":
        return (Lineup(),)
    try:
        own = _design(Lineup().plan(counts, privacy)).size
    except DeniableError:  # it says why when it is listed
        return (Lineup(),)
    grown = GROWN if counts.m <= MANY else (2.0,)
    sizes = sorted({round(own * factor) for factor in grown} - {own})
    sized = [Lineup(size=size) for size in sizes if size <= 3 * counts.m // 4]
    return (Lineup(), *sized, *(Lineup(truth=truth) for truth in TRUTHS))


def distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The same candidates without line-ups of a size and truth that stand there already: the size of the smallest error
    is one thing by exact counts and another by noisy ones, and may then be one of the sizes beside it."""
    labels: set[str] = set()
    kept = []
    for one in candidates:
        if one.lineups is None or one.label not in labels:
            kept.append(one)
        labels.add(one.label)
    return kept


def judged(candidates: Sequence[Candidate], privacy: Privacy, *, named: bool) -> list[Candidate]:
    """The same candidates, and why ``auto`` does not take some of them; all that someone has ``named`` may be taken."""
    if named or privacy.adversary == "any-prior":
        return list(candidates)
    return [replace(one, withheld=BY_NAME) if one.lineups is not None else one for one in candidates]


def with_informed(candidates: Sequence[Candidate], attacker: InformedAttacker | None) -> list[Candidate]:
    """The same candidates, with what an informed attacker gains from those that have a plan."""
    if attacker is None:
        return list(candidates)
    return [one if one.plan is None else replace(one, informed=against(attacker, one.plan)) for one in candidates]


def _design(plan: Plan) -> LineUpDesign:
    design = plan.parts[0].lineups
    assert design is not None
    return design


def frontier(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The points that no other beats in both error and risk, by rising risk."""
    points = sorted((one for one in candidates if _drawn(one)), key=lambda one: (one.risk, one.score[0]))
    best, least = [], math.inf
    for one in points:
        if one.score[0] < least:
            best.append(one)
            least = one.score[0]
    return best


def risk_chart(candidates: Sequence[Candidate]) -> Chart:
    """Predicted error against how often an informed attacker is right: a point for each candidate, and the frontier."""
    points = [one for one in candidates if _drawn(one)]
    series = [Series(FRONTIER, tuple(Point(one.risk, one.score[0]) for one in frontier(candidates)))]
    series += [Series(one.label, (Point(one.risk, one.score[0]),)) for one in points]
    return Chart(
        title="What accuracy costs against an informed attacker",
        x="right guesses of someone who has learnt from the public columns and sees the row",
        y="predicted relative error, geometric mean",
        series=tuple(series),
        log_y=True,
        percent=True,
        percent_x=True,
    )


def _drawn(one: Candidate) -> bool:
    return one.informed is not None and 0 < one.score[0] < math.inf
