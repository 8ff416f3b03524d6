"""What a survey reveals of whoever answers, what it can tell the researcher, and what in it identifies people."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from deniable.collection.sheet import Sheet, SheetColumn
from deniable.collection.survey import Question
from deniable.core.privacy import worst_posterior
from deniable.core.probability import percent

BELIEFS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
ERROR = 0.05
MUCH_EPSILON, TOO_MUCH_EPSILON = 4.0, 8.0
FEW_IN_A_GROUP = 10  # respondents that share their public answers, on average
FEW_RESPONDENTS = 200
FINE_DAYS, FINE_POINTS = 31, 100

# Words that ask who somebody is, as stems; a question that holds one is pointed at, not refused.
IDENTIFYING = {
    "a name": r"\b(first|last|full|your|sur|family)\s?name\b|\bvorname|\bnachname|\bnom\b|\bnombre\b|\bapellido",
    "an address": r"\baddress|\bstreet\b|\badresse\b|\bstra(ss|ß)e|\bdirecci[oó]n\b|\brue\b",
    "a postcode": r"\bzip\b|\bpost\s?code|\bpostal|\bpostleitzahl|\bplz\b|\bc[oó]digo postal",
    "an e-mail address": r"\be-?mail|\bcorreo",
    "a telephone number": r"\b(tele)?phone|\btelefon|\bt[eé]l[eé]fono|\bmobile number|\bhandynummer",
    "a date of birth": r"\bbirth\s?(day|date)?|\bborn\b|\bgeburts|\bgeboren|\bnaissance|\bnacimiento",
    "a number of a person": r"\b(employee|staff|student|patient|member|passport|security|insurance)\s?(id|number)\b"
    r"|\bpersonalnummer|\bmatrikel|\bsteuer-?id|\bversicherungsnummer",
    "a network address": r"\bip\b|\bdevice id",
}


@dataclass(frozen=True)
class Revealed:
    """What one column reveals, and what it takes to count it.

    Attributes:
        column, question: which.
        how: how the answer is changed, in words.
        epsilon: ln of its amplification.
        grows: belief before -> the most it can be after, as text.
        respondents: how many make a share accurate to +- 5 points.
        error: what the expected number of respondents makes it accurate to.
    """

    column: str
    question: str
    how: str
    epsilon: float
    grows: dict[str, str]
    respondents: int
    error: float


@dataclass(frozen=True)
class Checked:
    """A survey, looked at before anyone answers.

    Attributes:
        revealed: by private column.
        public: columns that are sent as they are.
        epsilon: of the whole sheet.
        grows: belief in a combination of answers before -> the most it can be after the whole sheet.
        warnings: what to think over.
    """

    name: str
    fingerprint: str
    revealed: tuple[Revealed, ...]
    public: tuple[str, ...]
    epsilon: float
    grows: dict[str, str]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def check(sheet: Sheet, fingerprint: str) -> Checked:
    """What every answer and the whole sheet reveal against any prior, what precision takes, and what identifies people.

    Args:
        sheet: the survey with its channels.
        fingerprint: of its document.
    """
    return Checked(
        sheet.survey.name,
        fingerprint,
        tuple(_revealed(column, sheet.survey.respondents) for column in sheet.private),
        tuple(column.name for column in sheet.public),
        sheet.epsilon,
        _grows(sheet.gamma),
        tuple(warnings_of(sheet)),
    )


def _revealed(column: SheetColumn, respondents: int) -> Revealed:
    needed = column.respondents_for(ERROR)
    return Revealed(
        column.name,
        column.question.name,
        how(column),
        math.log(column.gamma),
        _grows(column.gamma),
        needed,
        ERROR * math.sqrt(needed / respondents),
    )


def how(column: SheetColumn) -> str:
    """How an answer is changed, in a few words."""
    part = column.part
    assert part is not None
    if part.lineups is not None:
        return f"line-up of {part.lineups.size} of {part.m}, around the answer {percent(part.lineups.share_true)}"
    points = part.m if part.range is None else part.range.points
    return f"kept {percent((part.coin or 0) / 2**32)}, else one of {points:,}"


def _grows(gamma: Fraction) -> dict[str, str]:
    return {percent(prior): percent(worst_posterior(prior, gamma)) for prior in BELIEFS}


# -- the linter --------------------------------------------------------------------------------------------------------


def warnings_of(sheet: Sheet) -> Iterator[str]:
    """What a careful colleague would say about a survey before it is sent out."""
    for question in sheet.survey.questions:
        yield from _identifying(question)
    yield from _alone(sheet)
    if sheet.epsilon > MUCH_EPSILON:
        much = "protects hardly anyone" if sheet.epsilon > TOO_MUCH_EPSILON else "is much"
        yield (
            f"The whole sheet has epsilon {sheet.epsilon:.3g}, which {much}: someone who combines all answers of a "
            "person can become far surer than by any one. Fix: fewer private questions, or a smaller epsilon for each."
        )
    expected = sheet.survey.respondents
    short = [column.name for column in sheet.private if column.respondents_for(2 * ERROR) > expected]
    if short:
        yield (
            f"{expected:,} respondents leave an error of more than {2 * ERROR:.0%} in {', '.join(short)}. Fix: fewer "
            "choices or a coarser step, a larger rho2, or more respondents."
        )
    if expected < FEW_RESPONDENTS:
        yield (f"{expected:,} respondents are few: intervals will be wide, and groups small enough to know each other.")


def _identifying(question: Question) -> Iterator[str]:
    words = " ".join([question.name.replace("_", " "), *question.text.values()]).lower()
    for what, pattern in IDENTIFYING.items():
        if re.search(pattern, words):
            sent = "is sent as it is" if question.public else "is private, but its choices stand in the survey"
            yield f"{question.name!r} seems to ask for {what}, and {sent}. Fix: leave it out, or ask for a group."
    scope = question.range
    if question.public and scope is not None:
        if scope.kind == "date" and scope.step < FINE_DAYS:
            yield f"{question.name!r} is a public date to {scope.step:g} days. Fix: step = 365, or ask in private."
        elif scope.points > FINE_POINTS:
            yield f"{question.name!r} is a public number with {scope.points:,} values. Fix: a larger step."


def _alone(sheet: Sheet) -> Iterator[str]:
    """Whether public answers together leave people alone in their group."""
    public = [question for question in sheet.survey.questions if question.public]
    groups = math.prod(question.size for question in public)
    expected = sheet.survey.respondents
    if public and groups * FEW_IN_A_GROUP > expected:
        yield (
            f"The public answers ({', '.join(question.name for question in public)}) make {groups:,} groups: with "
            f"{expected:,} respondents {expected / groups:.2g} share one on average, so that public answers can "
            "identify people. Fix: fewer or coarser public questions."
        )
