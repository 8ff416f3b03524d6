"""What the promises cost: plans from noisy counts, which give no count away, beside plans from the exact ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from deniable.core.histogram import SELECTIVITIES
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.lab.draws import draw_plan, noisy_marginal
from deniable.lab.experiments import run_experiment
from deniable.lab.rival import Answered, Setting, estimated
from deniable.lab.settings import Perturbed
from deniable.mechanisms import Designed, FineGrain, Lineup, Mechanism, SmallDomain, Uniform
from deniable.planning.pools import CodedTable, QuestionPool, sdr_pool
from deniable.tables.keys import Keystream
from reproduction.items import CENSUS, Item, data_table, slashed
from reproduction.running import Part

DRAWS = 8  # most of the time goes into plans, one for every draw of the noisy histogram
OCC, DIAGNOSES = "OCC-100k", "diag_1"
SECONDS = {(DIAGNOSES, "line-up"): 70.0}  # of 8 draws, one core; any other mechanism takes a few
DIABETES = "diabetes130.parquet"
PUBLIC = ("race", "gender", "age", "admission_type_id", "time_in_hospital")
PRIVACY = Privacy("1/13", "1/6")
ESTIMATOR = "calibrated"
# Printed by the build that planned from exact counts: OCC-100k, calibrated; it measured no line-ups, and no diag_1.
PAGE_BEFORE = {"small-domain": (0.31, 0.14, 0.10), "designed": (0.21, 0.10, 0.07)}


@dataclass(frozen=True)
class FromExactCounts(Perturbed):
    """A mechanism whose plan is made from the exact histogram: its parameters give counts away."""

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        marginal = noisy_marginal(pool.table.histogram, stream)
        draw = draw_plan(pool.table, self.plan_for(pool), stream, marginal)
        tally = pool.tally(draw.states, draw.asking.states.count)
        whole, single = draw.asking.total[None, :], np.eye(pool.table.m, dtype=bool)
        answers = {name: estimated(draw.asking, tally, pool.sets, name) for name in self.estimators}
        histogram = {name: estimated(draw.asking, whole, single, name)[0] for name in self.estimators}
        return Answered(answers, histogram, float((draw.published == pool.table.codes).mean()), (0.0, 0.0))

    def plan_for(self, pool: QuestionPool) -> Plan:
        return self.mechanism.plan(pool.table.histogram, self.privacy)


def compared() -> list[tuple[str, Mechanism]]:
    return [
        ("uniform", Uniform()),
        ("small-domain", SmallDomain()),
        ("fine-grain", FineGrain()),
        ("designed", Designed()),
        ("line-up", Lineup()),
    ]


@dataclass(frozen=True)
class Cost:
    """Mean relative errors of one mechanism's plans from exact and from noisy counts."""

    table: str
    mechanism: str
    exact: tuple[float, ...]
    noisy: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        return [ours / before for ours, before in zip(self.noisy, self.exact, strict=True)]

    @property
    def row(self) -> tuple[str, ...]:
        earlier = PAGE_BEFORE.get(self.mechanism) if self.table == OCC else None
        page = "" if earlier is None else slashed(earlier)
        errors = (slashed(self.exact, ".3f"), slashed(self.noisy, ".3f"))
        return self.table, self.mechanism, page, *errors, slashed(self.ratios)


def cost_parts(data: Path | None, draws: int) -> tuple[Part, ...]:
    """The same for 50 occupations and 717 diagnoses, each mechanism by itself."""
    return tuple(
        Part(lambda name=name, label=label: _cost(name, label, data, draws), SECONDS.get((name, label), 5.0))  # type: ignore[misc]
        for name in (OCC, DIAGNOSES)
        for label, _ in compared()
    )


@cache
def _pool(name: str, data: Path | None) -> QuestionPool:
    if name == OCC:
        return sdr_pool(CodedTable.of(data_table(CENSUS, data), "occupation"))
    return sdr_pool(CodedTable.of(data_table(DIABETES, data).select([*PUBLIC, "diag_1"]), "diag_1"))


def _cost(name: str, label: str, data: Path | None, draws: int) -> Cost:
    mechanism = dict(compared())[label]
    settings: list[Setting] = [
        FromExactCounts(f"{label}, exact", mechanism, PRIVACY, (ESTIMATOR,)),
        Perturbed(f"{label}, noisy", mechanism, PRIVACY, (ESTIMATOR,)),
    ]
    result = run_experiment(_pool(name, data), settings, draws=draws)
    exact, noisy = (result.row(setting.label, ESTIMATOR).errors(SELECTIVITIES) for setting in settings)
    return Cost(name, label, exact, noisy)


def costs(measured: Sequence[Cost], draws: int) -> Item:
    """Errors of plans from exact and from noisy counts, for 50 occupations and 717 diagnoses."""
    ratios = [ratio for cost in measured for ratio in cost.ratios]
    return Item(
        name="What planning from noisy counts costs",
        about=(
            f"Mean relative error at selectivity >= 0.1 / 0.5 / 1 %, (1/13, 1/6), calibrated, {draws} draws. Plans "
            "used to be made from the exact histogram, and their coins gave counts away; now every published number "
            "is a function of the noisy histogram, with a margin that covers the true counts. The first figures "
            "are what this page printed then."
        ),
        columns=("table", "mechanism", "printed before", "from exact counts", "from noisy counts", "ratio"),
        rows=tuple(cost.row for cost in measured),
        agrees=None,
        why=f"They are {min(ratios):.2f} to {max(ratios):.2f} times what they were, {np.mean(ratios):.2f} on average.",
    )
