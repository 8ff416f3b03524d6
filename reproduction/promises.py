"""What the promises cost: plans from noisy counts, which give no count away, beside plans from the exact ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.engines.randomness import Keystream
from deniable.evaluation.answered import Answered, Setting, estimated
from deniable.evaluation.drawing import draw_plan, noisy_marginal
from deniable.evaluation.experiment import Result, run_experiment
from deniable.evaluation.settings import Perturbed
from deniable.mechanisms import Designed, FineGrain, Lineup, Mechanism, SmallDomain, Uniform
from deniable.planning.pools import QuestionPool, sdr_pool
from deniable.planning.profiles import SELECTIVITIES
from deniable.planning.tables import CodedTable
from reproduction.items import CENSUS, Item, data_table, slashed

DRAWS = 8  # most of the time goes into plans, one for every draw of the noisy histogram
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


def costs(data: str | os.PathLike[str] | None, *, draws: int = DRAWS, workers: int = 1) -> Item:
    """Errors of plans from exact and from noisy counts, for 50 occupations and 717 diagnoses."""
    folder = None if data is None else Path(data)
    tables = {
        "OCC-100k": CodedTable.of(data_table(CENSUS, folder), "occupation"),
        "diag_1": CodedTable.of(data_table(DIABETES, folder).select([*PUBLIC, "diag_1"]), "diag_1"),
    }
    rows, ratios = [], []
    for name, table in tables.items():
        settings: list[Setting] = []
        for label, mechanism in compared():
            settings.append(FromExactCounts(f"{label}, exact", mechanism, PRIVACY, (ESTIMATOR,)))
            settings.append(Perturbed(f"{label}, noisy", mechanism, PRIVACY, (ESTIMATOR,)))
        result = run_experiment(sdr_pool(table), settings, draws=draws, workers=workers)
        for label, _ in compared():
            exact, noisy = (_errors(result, f"{label}, {kind}") for kind in ("exact", "noisy"))
            earlier = PAGE_BEFORE.get(label) if name == "OCC-100k" else None
            ratio = [ours / before for ours, before in zip(noisy, exact, strict=True)]
            ratios += ratio
            page = "" if earlier is None else slashed(earlier)
            rows.append((name, label, page, slashed(exact, ".3f"), slashed(noisy, ".3f"), slashed(ratio)))
    return Item(
        name="What planning from noisy counts costs",
        about=(
            f"Mean relative error at selectivity >= 0.1 / 0.5 / 1 %, (1/13, 1/6), calibrated, {draws} draws. Plans "
            "used to be made from the exact histogram, and their coins gave counts away; now every published number "
            "is a function of the noisy histogram, with a margin that covers the true counts. The first figures "
            "are what this page printed then."
        ),
        columns=("table", "mechanism", "printed before", "from exact counts", "from noisy counts", "ratio"),
        rows=tuple(rows),
        agrees=None,
        why=f"They are {min(ratios):.2f} to {max(ratios):.2f} times what they were, {np.mean(ratios):.2f} on average.",
    )


def _errors(result: Result, setting: str) -> list[float]:
    return list(result.row(setting, ESTIMATOR).errors(SELECTIVITIES))
