"""Mechanisms side by side for one table, and error against risk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deniable.core.errors import DeniableError
from deniable.core.histogram import Histogram
from deniable.core.lineups import LineUpDesign
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.text import first_values, paragraph, table, title
from deniable.core.values import percent
from deniable.mechanisms import Lineup, Mechanism
from deniable.planning.candidates import Candidate, Chart, Point, Series, label_of
from deniable.planning.informed import InformedAttacker, against

# -- Error against risk: what an informed attacker gains from every point of a comparison, and which ``auto`` may take.
# Line-ups teach more than a single value, so whoever has learnt Pr[value | public columns] gains more from them. Where
# the promise is not about this attacker they must be named to be taken; against any prior it is, whatever was learnt.


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


# -- Mechanisms side by side for one table: the planner's result, and its table for terminals and notebooks ------------


@dataclass(frozen=True, repr=False)
class Comparison:
    """All applicable mechanisms side by side, and the one to take.

    Attributes:
        candidates: one per mechanism, the recommended one first, refused ones last.
        rivals: the baselines under the same requirement, for comparison.
        selectivities: the shares of the table that questions are about; one predicted error for each.
        reason: why the first is recommended, in two sentences.
        questions: how many questions the errors are means over, for each selectivity; None without a pool.
        independence: the errors of an answer that needs no release, on a pool.
    """

    candidates: tuple[Candidate, ...]
    rivals: tuple[Candidate, ...]
    selectivities: tuple[float, ...]
    reason: str
    questions: tuple[int, ...] | None = None
    independence: tuple[float, ...] | None = None

    @property
    def recommended(self) -> Candidate:
        """The one to take."""
        return self.candidates[0]

    @property
    def usable(self) -> tuple[Candidate, ...]:
        """What may be taken, the best first."""
        applying = tuple(one for one in self.candidates if one.guarantee is not None)
        return tuple(one for one in applying if not one.withheld) or applying

    def in_one_line(self, taken: Candidate | None = None, made: Plan | None = None) -> str:
        """What is taken, and why, beside the next best; named by the plan that was ``made`` of it."""
        best = taken or self.recommended
        label = best.label if made is None else label_of(best.name, made)
        others = [one for one in self.usable if one is not best]
        if not others:
            return f"{label}, the only mechanism that meets the requirement"
        mine, next_ = best.score[0], others[0].score[0]
        if math.isinf(mine):
            return f"{label}: no errors can be predicted here, and it lets the odds of any belief grow least"
        if not next_ >= mine:
            return f"{label}: {others[0].label} meets the requirement on paper, and not for this table"
        larger = f", {next_ / mine:.2g} times as large" if mine > 0 and next_ < math.inf else ""
        larger = ", about as large" if larger.startswith(", 1 ") else larger
        return (
            f"{label}: of {len(others) + 1} mechanisms that meet the requirement its predicted error is the "
            f"smallest (next: {others[0].label}{larger})"
        )

    @property
    def refused(self) -> tuple[Candidate, ...]:
        """Mechanisms that do not apply; their ``refusal`` says why."""
        return tuple(one for one in (*self.candidates, *self.rivals) if one.guarantee is None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        described = {
            "recommended": self.recommended.name,
            "reason": self.reason,
            "selectivities": list(self.selectivities),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "rivals": [candidate.to_dict() for candidate in self.rivals],
        }
        if self.questions is None:
            return described
        return {**described, "questions": list(self.questions), "independence": list(self.independence or ())}

    # -- as a table ---------------------------------------------------------------------------------------------------

    @property
    def starting_belief(self) -> str:
        """What the stronger attacker believed beforehand, in words."""
        known = self.recommended.beliefs
        return percent(0.0 if known is None else known.rho1)

    @property
    def columns(self) -> list[str]:
        """The heads of ``row``."""
        sure = ["sure: frequency", f"sure: from {self.starting_belief}"]
        informed = ["informed: right", "above rho2"][: self._informed_columns]
        return ["mechanism", "cells", "coin", "rows kept", *sure, *informed, "epsilon", *self._sizes(), "reveals"]

    @property
    def measured(self) -> bool:
        """Whether an informed attacker was played."""
        return any(one.informed is not None for one in self.candidates)

    @property
    def without_release(self) -> list[str]:
        """What an informed attacker gets right, and believes above rho2, before seeing a row; as far as it is shown."""
        played = next((one.informed for one in self.candidates if one.informed is not None), None)
        return [] if played is None else played.before.texts()[: self._informed_columns]

    @property
    def _informed_columns(self) -> int:
        """Where each value has its own rho2 there is none to be above."""
        if not self.measured:
            return 0
        limits = [one.informed.after.above_rho2 for one in self.candidates if one.informed is not None]
        return 1 if all(map(math.isnan, limits)) else 2

    @property
    def withheld(self) -> tuple[Candidate, ...]:
        """Mechanisms that meet the requirement and are not recommended; ``withheld`` says why."""
        return tuple(one for one in self.candidates if one.withheld and one.guarantee is not None)

    def row(self, candidate: Candidate) -> list[Any]:
        """A mechanism that applies, as a row of a table."""
        described = candidate.to_dict()
        bias = " + bias" if candidate.biased else ""
        errors = [f"{error_text(error)}{bias}" if not math.isnan(error) else "" for error in candidate.errors]
        epsilon = "unbounded" if described["epsilon"] is None else described["epsilon"]
        channel = ["", "", ""]
        if candidate.lineups is not None:
            channel = ["", percent(candidate.lineups.share_true), ""]
        elif candidate.plan:
            channel = [described["cells"], percent(described["coin"]), percent(described["kept"])]
        known = candidate.beliefs
        sure = ["", ""] if known is None else [percent(known.frequency), percent(known.any_prior)]
        informed = ["", ""] if candidate.informed is None else candidate.informed.after.texts()
        sure += informed[: self._informed_columns]
        return [described["label"], *channel, *sure, epsilon, *errors, described["reveals"]]

    def row_of_independence(self) -> list[Any]:
        """What is right without any release, as a row of the same table; only a pool of questions tells that."""
        assert self.independence is not None
        errors = [error_text(error) for error in self.independence]
        return ["no release at all", *[""] * (len(self.columns) - len(errors) - 2), *errors, ""]

    def _sizes(self) -> list[str]:
        if self.questions is None:
            return [f"error at {percent(share, 2)}" for share in self.selectivities]
        return [
            f"error, all ({number:,})" if share == 0 else f">= {percent(share, 2)} ({number:,})"
            for share, number in zip(self.selectivities, self.questions, strict=True)
        ]

    def __repr__(self) -> str:
        refused = [one.name for one in self.refused]
        without = f", {first_values(refused)} refused" if refused else ""
        compared = len(self.candidates) + len(self.rivals) - len(refused)
        plural = "s" * (compared != 1)
        return f"<Comparison of {compared} mechanism{plural}: {self.recommended.label} recommended{without}>"

    def _repr_html_(self) -> str:
        """For notebooks: the mechanisms that apply, the reason for the first, and why others do not apply."""
        usable = [one for one in (*self.candidates, *self.rivals) if one.guarantee is not None]
        rows = [[f"{one.label}{' (rival)' * one.rival}", *self.row(one)[1:]] for one in usable]
        refusals = [f"{one.name} does not apply: {one.refusal}" for one in self.refused]
        texts = "".join(paragraph(text) for text in (self.reason, *refusals))
        return title(repr(self)) + table(self.columns, rows, total=len(rows), what="mechanisms") + texts


def error_text(error: float) -> str:
    """A predicted error as people read it; nothing where there is none."""
    return "" if math.isnan(error) else percent(error, 2)
