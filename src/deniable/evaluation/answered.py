"""What a setting of an experiment gives: answers, the histogram, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from deniable.engines.randomness import Keystream
from deniable.estimation.asking import Asking, Options
from deniable.estimation.grouping import by_method
from deniable.estimation.linear import Weighing
from deniable.evaluation.pools import QuestionPool

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
SET_ENTRIES = 2**22  # weights computed at a time

ESTIMATORS: dict[str, Options] = {
    "inverse": Options("inverse", calibrate=False),
    "calibrated": Options("inverse"),
    "shrunk": Options("shrunk"),
    "mle": Options("mle"),
}


@dataclass(frozen=True, eq=False)
class Answered:
    """What one draw of a setting gives.

    Attributes:
        answers: estimator -> [conditions, sets].
        histogram: estimator -> the estimated histogram of the whole table.
        kept: the share of rows that were published as they are; None where rows are not published.
        seconds: for making the draw, and for answering.
    """

    answers: Mapping[str, Floats]
    histogram: Mapping[str, Floats]
    kept: float | None
    seconds: tuple[float, float]


class Setting(Protocol):
    """One row group of the table of results."""

    @property
    def label(self) -> str: ...

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        """Draw once, answer all questions."""
        ...


def estimated(ask: Asking, tally: Floats, sets: Bools, estimator: str) -> Floats:
    """Counts [conditions, sets] from rows by state [conditions, states]."""
    options = ESTIMATORS[estimator]
    control, parts = ask.control(options), []
    step = max(1, SET_ENTRIES // max(tally.shape))
    for start in range(0, len(sets), step):
        chosen = sets[start : start + step, None, :]
        weighing = Weighing.of(ask.states, chosen, control, np.ones(1))
        parts.append(by_method(ask, tally[:, None, :], chosen, weighing.counts(tally), options).value)
    return np.concatenate(parts, axis=1)


def generator(stream: Keystream) -> np.random.Generator:
    """A generator for simulations, seeded by a draw's randomness."""
    return np.random.default_rng(stream.subkey("generator").words(0, 4))
