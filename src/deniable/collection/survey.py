"""A survey: what is asked, in which words, and how deniable every answer must be.

Everything here is chosen before anyone answers and depends on no answer, so what it promises holds against any prior.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from deniable.core.privacy import amplification_limit
from deniable.core.replace import NumberRange

Kind = Literal["choice", "several", "number", "date"]
KINDS: tuple[Kind, ...] = ("choice", "several", "number", "date")
Texts = Mapping[str, str]  # language -> words
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
NO_ANSWER = "no answer"
YES, NO = "yes", "no"
EPSILON_PARTS = 10**9  # gamma of an epsilon is rounded down to a fraction of so many parts


@dataclass(frozen=True)
class Requirement:
    """How deniable an answer must be: two beliefs, an epsilon, or a coin.

    Attributes:
        rho1, rho2: a belief of up to rho1 may grow to rho2 at most.
        epsilon: of local differential privacy; for people who think in it.
        coin: the probability that the answer is kept, whatever that promises.
    """

    rho1: Fraction | None = None
    rho2: Fraction | None = None
    epsilon: float | None = None
    coin: float | None = None

    @property
    def gamma(self) -> Fraction | None:
        """The largest amplification that is allowed; None where a coin is given instead.

        >>> Requirement(rho1=Fraction(1, 13), rho2=Fraction(1, 6)).gamma
        Fraction(12, 5)
        """
        if self.rho1 is not None and self.rho2 is not None:
            return amplification_limit(self.rho1, self.rho2)
        if self.epsilon is None:
            return None
        return Fraction(math.floor(math.exp(self.epsilon) * EPSILON_PARTS * (1 - 1e-12)), EPSILON_PARTS)


@dataclass(frozen=True)
class Choice:
    """One of the answers that may be chosen: what is stored, and what people read."""

    value: str
    label: Texts


@dataclass(frozen=True)
class Question:
    """One question of a survey.

    Attributes:
        name: of its column in the results.
        kind: ``choice`` (one of several), ``several`` (any of them, each a column of yes and no), ``number`` or
            ``date`` (in a range).
        text: what people read.
        choices: of ``choice`` and ``several``.
        range: of ``number`` and ``date``, its coin not yet chosen.
        optional: whether it may be left out; no answer is then an answer like the others.
        public: whether the answer is sent as it is.
        requirement: how deniable the answer must be; None for a public question.
    """

    name: str
    kind: Kind
    text: Texts
    choices: tuple[Choice, ...] = ()
    range: NumberRange | None = None
    optional: bool = False
    public: bool = False
    requirement: Requirement | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """What a question of choices may be answered with; no answer last."""
        given = tuple(choice.value for choice in self.choices)
        return (*given, NO_ANSWER) if self.optional and self.kind == "choice" and not self.public else given

    @property
    def size(self) -> int:
        """How many different answers there are."""
        if self.range is not None:
            return self.range.points
        return 2 ** len(self.choices) if self.kind == "several" else len(self.values)


@dataclass(frozen=True)
class Survey:
    """A survey, as its file says it.

    Attributes:
        name: a short one, of the release that is exported.
        title, consent: what people read first.
        languages: of all texts; the first is the one that is shown where the reader's is not there.
        questions: in their order.
        codes: whether only who has a one-time code may answer.
        respondents: how many are expected, for what is said about precision.
    """

    name: str
    title: Texts
    consent: Texts
    languages: tuple[str, ...]
    questions: tuple[Question, ...]
    codes: bool = False
    respondents: int = 1000


def grid(low: object, high: object, step: float | None, *, missing: bool) -> NumberRange:
    """The grid of a number's or date's answers; whole where both ends and the step are."""
    if isinstance(low, datetime.date) and isinstance(high, datetime.date):
        return NumberRange("date", low, high, int(step or 1), 0, missing)
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    whole = isinstance(low, int) and isinstance(high, int) and (step is None or float(step).is_integer())
    return NumberRange("integer" if whole else "number", low, high, step if step is not None else 1, 0, missing)
