"""A sheet: a survey whose answers have channels, what it promises to whoever fills it in, and what it reveals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from deniable.collection.survey import NO, YES, Question, Requirement, Survey, column_names
from deniable.core.channels import Channel, NumberRange
from deniable.core.channels import Requirement as ColumnRequirement
from deniable.core.designs import BlockDesign
from deniable.core.exact import SCALE
from deniable.core.lineups import COIN, TRUTH_STEP, LineUpDesign, lineup_amplification
from deniable.core.part import Part
from deniable.core.privacy import worst_posterior
from deniable.core.promise import Amplification, LineUps, Promise
from deniable.core.values import percent
from deniable.estimation.model.lineups import LineUpStates
from deniable.estimation.precision import rows_needed
from deniable.mechanisms.lineup import LEAST_ORDERS, by_amplification

# -- A sheet: a survey whose answers have channels, and what it promises to whoever fills it in ------------------------
# Respondents trust nobody, so every private answer withstands any prior: its amplification is bounded, whatever a
# collector believed before. Amplifications of a sheet's answers multiply, however the answers are correlated.


MOST_SETS = 4096  # of a line-up question: pairs of questions stay countable, and a page has little to compute
BETTER = 0.9  # line-ups must lower the variance by a tenth, or people see a single answer, which is simpler
USUAL_BELIEF = Fraction(1, 10)  # what is said about questions whose requirement names no belief
TYPES = {"integer": "int64", "number": "double", "date": "date32[day]"}


@dataclass(frozen=True, eq=False)
class SheetColumn:
    """A column of the results.

    Attributes:
        name: of the column.
        question: that fills it.
        option: of several choices, the one that it is about.
        part: how it is perturbed, and what that promises; None for a public question.
    """

    name: str
    question: Question
    option: str | None = None
    part: Part | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """Of choices, all answers; no answer last."""
        return (YES, NO) if self.option is not None else self.question.values

    @property
    def gamma(self) -> Fraction:
        """Its amplification, exactly."""
        assert self.part is not None
        gamma = getattr(self.part.promise, "gamma", None)
        assert gamma is not None
        return Fraction(gamma)

    @property
    def type(self) -> str:
        """Of the column in a release."""
        scope = self.question.range
        return "string" if scope is None else TYPES[scope.kind]

    def respondents_for(self, error: float) -> int:
        """How many make the share of an answer accurate to +- error, 95 times in 100; the least favourable answer."""
        assert self.part is not None
        if self.part.lineups is None:
            assert self.part.coin is not None
            return rows_needed(self.part.coin / SCALE, error).variance
        z = 1.959964
        return math.ceil(z**2 * _lineup_variance(self.part.lineups)[1] / error**2)


@dataclass(frozen=True, eq=False)
class Sheet:
    """A survey with the channels of its answers.

    >>> from deniable.collection.survey import survey_of
    >>> text = '''
    ... title = "Smoking"
    ... privacy = { epsilon = 1.0 }
    ... [[question]]
    ... name = "smokes"
    ... kind = "choice"
    ... text = "Do you smoke?"
    ... choices = ["yes", "no"]
    ... '''
    >>> sheet = Sheet.of(survey_of(text))
    >>> round(sheet.epsilon, 6), round(sheet.columns[0].part.coin / 2**32, 4)
    (1.0, 0.4621)
    """

    survey: Survey
    columns: tuple[SheetColumn, ...]

    @classmethod
    def of(cls, survey: Survey) -> Sheet:
        """The sheet of a survey: a channel for every private answer."""
        return cls(survey, tuple(column for question in survey.questions for column in _columns(question)))

    @property
    def private(self) -> tuple[SheetColumn, ...]:
        return tuple(column for column in self.columns if column.part is not None)

    @property
    def public(self) -> tuple[SheetColumn, ...]:
        return tuple(column for column in self.columns if column.part is None)

    @cached_property
    def gamma(self) -> Fraction:
        """The amplification of the whole sheet."""
        return math.prod((column.gamma for column in self.private), start=Fraction(1))

    @property
    def epsilon(self) -> float:
        """Of the whole sheet: ln gamma."""
        return sum(math.log(column.gamma) for column in self.private)

    def of_question(self, question: Question) -> tuple[SheetColumn, ...]:
        """The columns that a question fills."""
        return tuple(column for column in self.columns if column.question == question)


def _columns(question: Question) -> list[SheetColumn]:
    names = column_names(question)
    options: Sequence[str | None] = (
        [choice.value for choice in question.choices] if question.kind == "several" else [None]
    )
    if question.requirement is None:
        return [SheetColumn(name, question, option) for name, option in zip(names, options, strict=True)]
    wanted, gamma = question.requirement, question.requirement.gamma
    if gamma is not None and len(names) > 1:
        gamma = _root(gamma, len(names))  # one requirement for all ticks together
    return [
        SheetColumn(name, question, option, _part(name, question, option, wanted, gamma))
        for name, option in zip(names, options, strict=True)
    ]


def _root(gamma: Fraction, k: int) -> Fraction:
    """The largest fraction of 10^9 parts whose k-th power is at most gamma."""
    parts = 10**9
    guess = math.floor(float(gamma) ** (1 / k) * parts)
    while Fraction(guess, parts) ** k > gamma:
        guess -= 1
    return Fraction(guess, parts)


def _part(name: str, question: Question, option: str | None, wanted: Requirement, gamma: Fraction | None) -> Part:
    """How an answer is perturbed: the best channel that its requirement allows."""
    if question.range is not None:
        scope = _with_coin(question.range, wanted, gamma)
        kind = TYPES[scope.kind]
        assert scope.exact_gamma is not None
        return _made(name, kind, Amplification(scope.exact_gamma), question, option, wanted, range=scope)
    values = (YES, NO) if option is not None else question.values
    if gamma is None:
        channel = Channel.of(values, float(wanted.coin or 0))
    else:
        design = better_lineup(len(values), gamma)
        if design is not None:
            reached = lineup_amplification(design)
            assert reached is not None
            return _made(name, "string", _lineup_promise(design, reached), question, option, wanted, lineups=design)
        channel = Channel.uniform(values, gamma=gamma)
    assert channel.exact_gamma is not None
    return _made(name, "string", Amplification(channel.exact_gamma), question, option, wanted, channel=channel)


def _with_coin(scope: NumberRange, wanted: Requirement, gamma: Fraction | None) -> NumberRange:
    if gamma is None:
        keep = math.floor(float(wanted.coin or 0) * SCALE)
    else:
        least = SCALE // scope.points
        keep = int((gamma - 1) * SCALE * least / (SCALE + (gamma - 1) * least))
    return NumberRange(scope.kind, scope.low, scope.high, scope.step, keep, scope.missing)


def _made(
    name: str,
    kind: str,
    promise: Promise,
    question: Question,
    option: str | None,
    wanted: Requirement,
    *,
    range: NumberRange | None = None,
    channel: Channel | None = None,
    lineups: LineUpDesign | None = None,
) -> Part:
    """A part, its promise for the beliefs that were required of it."""
    stated = wanted.rho1 is not None and wanted.rho2 is not None and question.kind != "several"
    if stated:  # one requirement for several ticks together is not one for each: they promise their amplification
        own = ColumnRequirement(wanted.rho1, wanted.rho2, "any-prior")  # type: ignore[arg-type]
        promise = type(promise)(**{**promise.__dict__, "rho1": wanted.rho1, "rho2": wanted.rho2})
    values = (YES, NO) if option is not None else question.values
    return Part(
        columns=(name,),
        types=(kind,),
        missing="value" if range is not None and range.missing else "refuse",
        promise=promise,
        domain=() if range is not None else values,
        range=range,
        channels=() if channel is None else (channel,),
        cell_positions=() if channel is None else (np.arange(channel.m),),
        requirement=own if stated else None,
        lineups=lineups,
    )


def _lineup_promise(design: LineUpDesign, gamma: Fraction) -> LineUps:
    """Line-ups are promised for some belief: one in ten, where the requirement names none."""
    return LineUps("any-prior", USUAL_BELIEF, worst_posterior(USUAL_BELIEF, gamma), gamma, 1 / gamma)


# -- line-ups, where they are better -----------------------------------------------------------------------------------


def better_lineup(m: int, gamma: Fraction) -> BlockDesign | None:
    """The line-ups of m values at this amplification, where they leave a smaller error than single answers."""
    if m < 3 or gamma <= 1:
        return None
    chosen = by_amplification(m, gamma, None, None)
    if chosen is None or chosen.size < 2:
        return None
    design = _small(chosen, gamma)
    states = LineUpStates(design)
    if not states.unbiased:
        return None
    keep = float(Channel.uniform(tuple(range(m)), gamma=gamma).coins[0])
    return design if _lineup_variance(design)[0] < BETTER * _coin_variance(m, keep) else None


def _small(design: BlockDesign, gamma: Fraction) -> BlockDesign:
    """The same with so few orders that its sets stay countable; the truth lowered until the amplification holds."""
    orders = design.orders
    while orders > LEAST_ORDERS and orders * design.m > MOST_SETS:
        orders //= 2
    coin = design.coin
    while True:
        small = replace(design, truth=coin * TRUTH_STEP, orders=orders)
        reached = lineup_amplification(small)
        if reached is not None and reached <= gamma and coin < COIN:
            return small
        coin -= 1


def _coin_variance(m: int, p: float) -> float:
    """Of one row's weight for one of m equally frequent values."""
    q = (1 - p) / m
    return ((1 - q) ** 2 / m + (1 - 1 / m) * q**2) / p**2 - 1 / m


def _lineup_variance(design: LineUpDesign) -> tuple[float, float]:
    """The same for line-ups: the mean over values, and the largest for a value and a respondent."""
    states = LineUpStates(design)
    weights = states.weights_for(np.eye(design.m))
    given = states.expected(weights**2) - np.eye(design.m)  # [value asked for, value held]
    return float(given.mean()), float(given.max())


# -- What a survey reveals of whoever answers, what it can tell the researcher, and what in it identifies people -------


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
