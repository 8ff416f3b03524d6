"""A setting of an experiment, what it gives (answers, the histogram, how long it took), and what was predicted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from deniable.audit.attacks.informed import Informed
from deniable.core.arrays import Bools, Floats
from deniable.core.errors import DeniableError
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.profile import SELECTIVITIES
from deniable.engines.randomness import Keystream
from deniable.estimation.asking import Asking, Options
from deniable.estimation.many import every_value_of, value_sets_of
from deniable.planning.informed import against, informed_attacker
from deniable.planning.pools import QuestionPool
from deniable.planning.profiles import ByPool, Errors
from deniable.planning.tables import CodedTable

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


class Setting(ABC):
    """One row group of the table of results: a frozen dataclass.

    Attributes:
        label: names the rows of the table.
        chance: whether draws differ.
    """

    label: str
    chance: ClassVar[bool] = True

    @abstractmethod
    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        """Draw once, answer all questions."""

    def plan(self, counts: Histogram) -> Plan | None:
        """The channels that rows go through; None where a row's value is not published."""
        return None

    def predicted(self, profile: ByPool) -> dict[str, Errors]:
        """Estimator -> mean relative errors, without those that have no closed form (shrunk, mle, four states)."""
        return {}


def predicted_errors(
    setting: Setting, pool: QuestionPool, selectivities: Sequence[float] = SELECTIVITIES
) -> dict[str, Errors]:
    """What an experiment should find, before it is run: a setting's errors on a pool, in closed form."""
    try:
        return setting.predicted(ByPool(pool, tuple(selectivities)))
    except DeniableError:  # a mechanism that refuses says why when it is run
        return {}


def informed_by_setting(settings: Sequence[Setting], table: CodedTable) -> dict[str, Informed]:
    """Setting -> what someone gains who has learnt from half of the table, of settings that publish perturbed rows;
    none without public columns."""
    attacker = informed_attacker(table)
    gained: dict[str, Informed] = {}
    for setting in settings:
        if attacker is None:
            break
        try:
            plan = setting.plan(table.histogram)
        except DeniableError:  # a mechanism that refuses says why when it is run
            continue
        if plan is not None:
            gained[setting.label] = against(attacker, plan)
    return gained


def estimated(ask: Asking, tally: Floats, sets: Bools, estimator: str) -> Floats:
    """Counts [conditions, sets] from rows by state [conditions, states]; of all single values without their weights,
    which are many where there are many states."""
    if sets.shape == (ask.states.m, ask.states.m) and np.array_equal(sets, np.eye(ask.states.m, dtype=bool)):
        return every_value_of(ask, tally, ESTIMATORS[estimator]).value
    return value_sets_of(ask, tally, sets, ESTIMATORS[estimator]).value


def generator(stream: Keystream) -> np.random.Generator:
    """A generator for simulations, seeded by a draw's randomness."""
    return np.random.default_rng(stream.subkey("generator").words(0, 4))
