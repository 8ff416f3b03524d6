"""Made-up respondents: what a survey would give, before anyone is asked."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.collection.bars import bars_of
from deniable.collection.respondent import code, sent
from deniable.collection.survey import Question
from deniable.collection.wire import Responses, value_at
from deniable.core.errors import OptionError, option
from deniable.engines.randomness import KEY_BYTES
from deniable.release.release import Release

OFTEN = 0.3  # how often a made-up respondent ticks one of several choices
SKIPPED = 0.1


@dataclass(frozen=True)
class Compared:
    """One count of a simulation: what is true of the made-up respondents, and what the survey tells."""

    column: str
    value: str
    truth: int
    count: float
    low: float
    high: float

    @property
    def covered(self) -> bool:
        return self.low <= self.truth <= self.high


class Respondents:
    """Made-up people who answer a survey: a few answers are frequent, most are rare.

    Args:
        responses: the survey.
        number: how many.
        seed: the same one gives the same people and the same draws: for experiments, never for a real survey.
    """

    def __init__(self, responses: Responses, number: int, seed: int | None = None) -> None:
        self.responses = responses
        if seed is not None and seed < 0:
            raise OptionError(f"seed = {seed} is below 0. Fix: {option('seed', 1)}, say.")
        draw = np.random.default_rng(seed)
        columns = {question.name: _answers(question, number, draw) for question in responses.sheet.survey.questions}
        self.answers = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        fresh = draw.bytes(KEY_BYTES)
        self.keys = [hashlib.shake_256(fresh + place.to_bytes(8, "big")).digest(KEY_BYTES) for place in range(number)]

    def sent(self) -> list[dict[str, Any]]:
        """What they send."""
        return sent(self.responses.sheet, self.responses.fingerprint, self.answers, self.keys)

    def compared(self, release: Release) -> Iterator[Compared]:
        """Every count of every private column beside the truth; ``release`` is of what they sent."""
        for column in self.responses.sheet.private:
            held = Counter(code(column, given[column.question.name]) for given in self.answers)
            for bar in bars_of(column):
                estimate = release.count(bar.where)
                truth = sum(held[place] for place in bar.codes)
                yield Compared(column.name, bar.label, truth, estimate.value, estimate.low, estimate.high)


def _answers(question: Question, number: int, draw: np.random.Generator) -> Sequence[Any]:
    if question.kind == "several":
        ticks = draw.random((number, len(question.choices))) < OFTEN
        names = [choice.value for choice in question.choices]
        return [[name for name, tick in zip(names, row, strict=True) if tick] for row in ticks.tolist()]
    size = len(question.choices) if question.range is None else question.range.grid
    weights = 1 / np.arange(1.0, size + 1)  # Zipf
    places = draw.choice(size, number, p=weights / weights.sum()).tolist()
    skipped = (draw.random(number) < SKIPPED * question.optional).tolist()
    if question.range is None:
        values: list[Any] = [choice.value for choice in question.choices]
    else:
        values = [value_at(place, question.range) for place in range(size)]
    return [None if skip else values[place] for place, skip in zip(places, skipped, strict=True)]
