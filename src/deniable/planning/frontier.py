"""Error against risk: what an informed attacker gains from every point of a comparison, and which ``auto`` may take.

Line-ups teach more than a single value, so whoever has learnt Pr[value | public columns] gains more from them. ``auto``
takes no point whose informed attacker is right more often than with the paper's own cells (small-domain) at the same
rho2, nor one that rules values out. Without a table to measure it on, it takes no line-ups. Against any prior the
promise is about this attacker too, whatever they have learnt: there nothing needs to be measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from deniable.audit.attacks.informed import InformedAttacker
from deniable.core.errors import DeniableError, RequirementError
from deniable.core.histogram import Histogram
from deniable.core.lineup import LineUpDesign
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.mechanisms import Lineup, Mechanism, SmallDomain
from deniable.planning.candidates import Candidate
from deniable.planning.chart import Chart, Point, Series
from deniable.planning.informed import against

FRONTIER = "frontier"
GROWN = (1.25, 1.5, 2.0, 2.5, 4.0)  # sizes beside the one of the smallest error, as multiples of it
TRUTHS = ("3/4", "1")
MANY = 500  # values; with more, one more size is tried
UNMEASURED = (
    "what an informed attacker gains from line-ups was not measured, which takes the rows of a table with public "
    "columns, and one sensitive column of up to 2,000 values"
)
ABOVE_HALF = "its truth is above 1/2: it must be named to be taken"


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


def judged(
    candidates: Sequence[Candidate],
    attacker: InformedAttacker | None,
    privacy: Privacy,
    limit: float | None,
    *,
    named: bool,
) -> list[Candidate]:
    """The same candidates with what an informed attacker gains, and why ``auto`` does not take some of them.

    Args:
        candidates: all of them, refused ones too.
        attacker: who has learnt from the table; None where its public columns were not looked at.
        privacy: the requirement.
        limit: the share of right guesses that is allowed; left out, that of the paper's cells.
        named: whether someone chose these mechanisms: then line-ups need no measurement.
    """
    promised = named or privacy.adversary == "any-prior"
    if attacker is None:
        return [
            replace(one, withheld=UNMEASURED) if one.lineups is not None and not promised else one for one in candidates
        ]
    measured = with_informed(candidates, attacker)
    allowed = _of_the_paper(measured, attacker, privacy) if limit is None else limit
    return [replace(one, withheld=_reason(one, allowed, promised)) for one in measured]


def with_informed(candidates: Sequence[Candidate], attacker: InformedAttacker | None) -> list[Candidate]:
    """The same candidates, with what an informed attacker gains from those that have a plan."""
    if attacker is None:
        return list(candidates)
    return [one if one.plan is None else replace(one, informed=against(attacker, one.plan)) for one in candidates]


def require_some(candidates: Sequence[Candidate], limit: float | None) -> None:
    """Refuse a limit that no mechanism keeps."""
    usable = [one for one in candidates if one.plan is not None]
    if limit is None or not usable or any(not one.withheld for one in usable):
        return
    least = min((one for one in usable if one.informed is not None), key=lambda one: one.risk)
    raise RequirementError(
        f"No mechanism keeps an informed attacker at {percent(limit)} right guesses: with {least.label} they are "
        f"{percent(least.risk)}. Fix: a higher informed limit, or a lower rho2."
    )


def _of_the_paper(candidates: Sequence[Candidate], attacker: InformedAttacker, privacy: Privacy) -> float | None:
    """How often the attacker is right with the paper's cells at this rho2; None where they do not apply."""
    known = next((one for one in candidates if one.name == SmallDomain.name and one.informed is not None), None)
    if known is not None:
        return known.risk
    counts = next((one.plan.histogram for one in candidates if one.plan is not None), None)
    if counts is None:
        return None
    try:
        plan = SmallDomain().plan(counts, replace(privacy, adversary="frequency"))
    except DeniableError:
        return None
    return against(attacker, plan).after.right


def _reason(one: Candidate, limit: float | None, promised: bool) -> str:
    if one.lineups is not None and not promised and one.lineups.share_true > Fraction(1, 2):
        return ABOVE_HALF
    if one.informed is None:
        return ""
    if limit is None:
        return "small-domain, which the informed attacker is compared with, does not apply" if one.lineups else ""
    if one.risk > limit:
        return f"an informed attacker is right in {percent(one.risk)}, and {percent(limit)} is the limit"
    return ""


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
