"""Mechanisms side by side for one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deniable.core.plan import Plan
from deniable.core.text import first_values, paragraph, table, title
from deniable.core.values import percent
from deniable.planning.candidates import Candidate, grown, label_of
from deniable.planning.outlook import Outlook

USUAL = 0.1  # a belief, of which it is said what it becomes
LARGEST = 700.0  # epsilon whose e to the power of is a number

# -- Which of several may be taken without being named: what keeps epsilon small against any attacker ------------------


def judged(candidates: Sequence[Candidate], outlook: Outlook) -> list[Candidate]:
    """The same candidates, and why some are not taken: their epsilon against any attacker is above the limit, or there
    is too little to learn from."""
    judged = []
    for one in candidates:
        why = ""
        if one.plan is not None and one.epsilon > outlook.limit:
            known = "unbounded" if math.isinf(one.epsilon) else f"{one.epsilon:.3g}"
            why = f"its epsilon against any attacker is {known}, above {outlook.limit:g}"
        elif one.plan is not None and one.plan.parts[0].learned is not None:
            why = outlook.unlearned
        judged.append(replace(one, withheld=why))
    return judged


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
        return ["mechanism", "cells", "coin", "rows kept", *sure, "epsilon", *self._sizes(), "reveals"]

    @property
    def narrow_columns(self) -> list[str]:
        """The heads of ``narrow_row``: three numbers of a mechanism."""
        return ["mechanism", "epsilon", f"{percent(USUAL)} becomes", self._sizes()[-1]]

    def narrow_row(self, candidate: Candidate) -> list[Any]:
        """A mechanism that applies by three numbers: epsilon against any attacker, what a belief of 10 % becomes at the
        most, and the error of the largest counts that were asked about."""
        epsilon = candidate.epsilon
        becomes = grown(USUAL, math.exp(epsilon) if epsilon < LARGEST else math.inf)
        known = "unbounded" if math.isinf(epsilon) else f"{epsilon:.3g}"
        return [candidate.label, known, percent(becomes), self.row(candidate)[-2]]

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
