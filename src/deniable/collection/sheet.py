"""A sheet: a survey whose answers have channels, and what it promises to whoever fills it in.

Respondents trust nobody, so every private answer withstands any prior: its amplification is bounded, whatever a
collector believed before. Amplifications of a sheet's answers multiply, however the answers are correlated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from deniable.collection.survey import NO, YES, Question, Requirement, Survey
from deniable.collection.survey_file import column_names
from deniable.core import lineup_exact
from deniable.core.channel import Channel
from deniable.core.exact import SCALE
from deniable.core.lineup import COIN, TRUTH_STEP, LineUpDesign
from deniable.core.lineup_blocks import BlockDesign
from deniable.core.part import Part
from deniable.core.privacy import worst_posterior
from deniable.core.promise import Amplification, LineUps, Promise
from deniable.core.replace import NumberRange
from deniable.core.replace import Requirement as ColumnRequirement
from deniable.estimation.model.lineups import LineUpStates
from deniable.estimation.precision import rows_needed
from deniable.mechanisms.lineup_choice import LEAST_ORDERS, by_amplification

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

    >>> from deniable.collection.survey_file import survey_of
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
            reached = lineup_exact.amplification(design)
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
        reached = lineup_exact.amplification(small)
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
