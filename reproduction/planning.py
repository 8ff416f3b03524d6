"""Our own claims about planning, shown: predicted errors against measured ones, and the planner at work."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import norm, t

from deniable.core.channels import Replace
from deniable.core.histogram import SELECTIVITIES
from deniable.core.privacy import Privacy
from deniable.lab import rival_candidates
from deniable.lab.anatomy import Anatomized
from deniable.lab.experiments import Result, run_experiment
from deniable.lab.laplace import Noisy
from deniable.lab.rival import Setting, predicted_errors
from deniable.lab.settings import DecoyGroups, Perturbed, Redrawn
from deniable.mechanisms import Designed, FineGrain, Identity, Lineup, Mechanism, Pram, Retention, SmallDomain, Uniform
from deniable.planning.candidates import Candidate, Chart, Point, Series
from deniable.planning.planner import compare
from deniable.planning.pools import CONDITIONS, CodedTable, sdr_pool
from deniable.planning.prediction import Errors, Spread
from reproduction.criteria import limit
from reproduction.items import ADULT, CENSUS, Item, data_table, per_cent, slashed
from reproduction.promises import DIABETES, cost_parts, costs
from reproduction.promises import DRAWS as COST_DRAWS
from reproduction.running import Paper, Part, Step

DRAWS = 20
KDD = "census_income_kdd.parquet"
WITHIN = limit("Predicted error against measured error", "within")
SURE = limit("Predicted error against measured error", "standard_errors")  # that it may be off beyond that
ESTIMATORS = ("inverse", "calibrated")
COIN = 0.3  # of retention, which is told its coin
FEW_CONDITIONS, FEW_DRAWS = 20, 5  # for columns of hundreds of values, each of which is asked about


@dataclass(frozen=True)
class Case:
    """A table, a requirement, and the group sizes of the rivals (0: its most frequent value allows none)."""

    name: str
    file: str
    sensitive: str
    privacy: Privacy
    anatomy: int
    decoys: int
    drop: tuple[str, ...] = ()
    conditions: int = CONDITIONS
    most_draws: int = DRAWS
    seconds: float = 20.0  # of 20 draws, one core

    def settings(self) -> list[Setting]:
        own: tuple[Mechanism, ...] = (Uniform(), SmallDomain(), FineGrain(), Identity(), Designed(), Pram(), Lineup())
        perturbed = (Perturbed(mechanism.name, mechanism, self.privacy, ESTIMATORS) for mechanism in own)
        kept = Perturbed(Retention.name, Retention({self.sensitive: Replace(coin=COIN)}), None, ESTIMATORS)
        decoys = [DecoyGroups(self.decoys)] if self.decoys else []
        anatomy = [Anatomized(self.anatomy)] if self.anatomy else []
        return [*perturbed, kept, *decoys, *anatomy, Redrawn(), Noisy(0.5)]


def cases() -> tuple[Case, ...]:
    own, persons = ("split", "fnlwgt"), ("encounter_id", "patient_nbr")
    return (
        Case("CENSUS occupation", CENSUS, "occupation", Privacy("1/13", "1/6"), 6, 6),
        Case("Adult occupation", ADULT, "occupation", Privacy(None, "1/4"), 4, 4, own),
        Case("Adult education", ADULT, "education", Privacy("1/3", "2/5"), 3, 3, (*own, "education_num")),
        Case("KDD occupation", KDD, "detailed_occupation_recode", Privacy("1/13", "1/6"), 6, 0),
        Case("CENSUS education", CENSUS, "education", Privacy("1/4", "1/2"), 3, 3),
        Case("Adult hours a week", ADULT, "hours_per_week", Privacy("1/13", "1/4"), 2, 2, own),
        Case("KDD industry", KDD, "detailed_industry_recode", Privacy("1/13", "1/6"), 6, 0),
        Case("diabetes specialty", DIABETES, "medical_specialty", Privacy("1/4", "1/2"), 2, 2, persons),
        Case(
            "diabetes diagnosis",
            DIABETES,
            "diag_1",
            Privacy("1/13", "1/6"),
            6,
            6,
            persons,
            FEW_CONDITIONS,
            FEW_DRAWS,
            45.0,
        ),
    )


def paper(data: str | os.PathLike[str] | None = None, *, draws: int = DRAWS) -> Paper:
    """Predicted against measured errors, and the planner's table for 716 diagnoses."""
    folder = None if data is None else Path(data)
    compared = tuple(
        Part(lambda case=case: measured_and_predicted(case, folder, draws=draws), case.seconds)  # type: ignore[misc]
        for case in cases()
    )
    few = min(draws, COST_DRAWS)
    steps = (
        Step(lambda made: predictions(made, draws), parts=compared),
        Step(lambda: _diagnoses(folder), 4),
        Step(lambda made: costs(made, few), parts=cost_parts(folder, few)),
    )
    return Paper("planner", "The planner", steps)


@dataclass(frozen=True)
class Pair:
    """A predicted error beside the measured one, both relative.

    Attributes:
        half_row: half a row, relative to the smallest question: errors as small as that are no normal numbers.
    """

    predicted: float
    measured: Spread
    half_row: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured.mean

    @property
    def noise(self) -> float:
        """The standard error of the measured mean."""
        return self.measured.deviation / math.sqrt(max(self.measured.draws, 1))

    @property
    def off(self) -> float:
        """How far the two are apart, beyond 10 % of the measured one."""
        return abs(self.predicted - self.measured.mean) - WITHIN * self.measured.mean

    @property
    def agrees(self) -> bool:
        """Within 10 %, up to what so many draws can tell, or half a row.

        A standard error of few draws is uncertain itself: as many of them as make three of many (Student's t).
        """
        sure = float(t.isf(norm.sf(SURE), max(self.measured.draws - 1, 1)))
        return self.off <= max(sure * self.noise, self.half_row)

    def __str__(self) -> str:
        return f"{self.ratio:.2f} ± {self.ratio * self.noise / self.measured.mean:.2f}"


Pairs = list[Pair]


def predictions(measured: Sequence[Mapping[str, Pairs]], draws: int) -> Item:
    """Every case, measured and predicted."""
    by_case = {case.name: by_setting for case, by_setting in zip(cases(), measured, strict=True)}
    rows = [_row(name, setting, pairs) for name, settings in by_case.items() for setting, pairs in settings.items()]
    return _agreement(rows, by_case, draws)


def measured_and_predicted(
    case: Case, folder: Path | None, *, draws: int, workers: int = 1, seed: int = 1
) -> dict[str, Pairs]:
    """Setting and estimator -> (predicted, measured) for each selectivity."""
    table = CodedTable.of(data_table(case.file, folder), case.sensitive, drop=case.drop)
    pool = sdr_pool(table, conditions=case.conditions)
    settings = case.settings()
    result = run_experiment(pool, settings, draws=min(draws, case.most_draws), workers=workers, seed=seed)
    return {
        f"{setting.label}, {name}" if name else setting.label: _pairs(result, setting.label, name, errors, table.rows)
        for setting in settings
        for name, errors in predicted_errors(setting, pool).items()
    }


def _pairs(result: Result, setting: str, estimator: str, errors: Errors, rows: int) -> Pairs:
    numbers: Mapping[str, Spread] = result.row(setting, estimator).numbers
    return [
        Pair(error, numbers[f"relative {share:g}"], 0.5 / (share * rows))
        for share, error in zip(SELECTIVITIES, errors, strict=True)
    ]


def _row(case: str, name: str, pairs: Pairs) -> tuple[str, ...]:
    predicted = slashed((pair.predicted for pair in pairs), ".2g")
    measured = " / ".join(f"{pair.measured.mean:.2g} ± {pair.measured.deviation:.1g}" for pair in pairs)
    return case, name, predicted, measured, " / ".join(str(pair) if pair.measured.mean > 0 else "" for pair in pairs)


def _agreement(rows: Sequence[tuple[str, ...]], by_case: Mapping[str, Mapping[str, Pairs]], draws: int) -> Item:
    named = {
        (case, setting, place): pair
        for case, by_setting in by_case.items()
        for setting, pairs in by_setting.items()
        for place, pair in enumerate(pairs)
        if pair.measured.mean > 0
    }
    every = list(named.values())
    ratios = [pair.ratio for pair in every]
    beyond = {name: pair for name, pair in named.items() if pair.off > 0}
    settings = ", ".join(dict.fromkeys(f"{case} by {setting.split(',')[0]}" for case, setting, _ in beyond))
    wrong = [f"{case}, {setting}: {pair}" for (case, setting, _), pair in beyond.items() if not pair.agrees]
    return Item(
        name="Predicted error against measured error",
        about=(
            "The pool of SDR 10.9 on nine columns of four tables; mean relative error of the questions about at least "
            f"0.1 / 0.5 / 1 % of the rows. Predicted in closed form before anything is drawn; measured over {draws} "
            f"releases ({min(draws, FEW_DRAWS)} of the diagnoses), with the standard deviation from release to "
            "release; their ratio with its standard error."
        ),
        columns=("table", "mechanism, estimator", "predicted", "measured", "ratio"),
        rows=tuple(rows),
        agrees=not wrong,
        why=(
            f"{len(every) - len(beyond)} of {len(ratios)} ratios are within 10 % of 1; they range from "
            f"{min(ratios):.2f} to {max(ratios):.2f}. {_beyond(len(beyond), settings, wrong)}The ratio of the means is "
            f"{sum(pair.predicted for pair in every) / sum(pair.measured.mean for pair in every):.3f}."
        ),
        chart=_chart(
            {case: [pair for pairs in settings.values() for pair in pairs] for case, settings in by_case.items()}
        ),
        draws=draws,
    )


def _beyond(number: int, settings: str, wrong: Sequence[str]) -> str:
    """What is said of ratios that are further from 1."""
    if not number:
        return ""
    judged = (
        f"Off by more than three standard errors and half a row: {'; '.join(wrong)}. "
        if wrong
        else "All of them are off by no more than that and three standard errors of the measured mean (more of them "
        "where releases are few, by Student's t), or half a row of the smallest question, where no normal law holds. "
    )
    return (
        f"The other {number} are of {settings}. {judged}A column with rare values is planned from counts whose noise "
        "decides how many rows a release keeps, so that errors differ much from release to release, and so do means "
        "of few releases. "
    )


def _chart(pairs: Mapping[str, Pairs]) -> Chart:
    return Chart(
        title="Predicted errors come true",
        x="predicted relative error",
        y="measured relative error",
        series=tuple(
            Series(name, tuple(Point(pair.predicted, pair.measured.mean) for pair in both if pair.measured.mean > 0))
            for name, both in pairs.items()
        ),
        log_x=True,
        log_y=True,
        cloud=True,
    )


def _diagnoses(folder: Path | None) -> Item:
    table = CodedTable.of(data_table(DIABETES, folder).select(["diag_1"]), "diag_1")
    comparison = compare(table.histogram, Privacy("1/13", "1/6"), rivals=rival_candidates)
    listed = [*comparison.candidates, *comparison.rivals]
    return Item(
        name="The planner on diag_1 of diabetes130",
        about=(
            f"{table.m} ICD-9 codes (missing is one), {table.rows:,} rows, rho1 = 1/13, rho2 = 1/6, frequency "
            "adversary: predicted error of counts about 0.1 / 0.5 / 1 % of the rows, if public columns tell nothing "
            "about the diagnosis."
        ),
        columns=("mechanism", "cells", "mean coin", "rows kept", "epsilon", "predicted error", "seconds"),
        rows=tuple(_candidate_row(one) for one in listed if one.guarantee is not None),
        agrees=None,
        why=f"The planner takes {comparison.recommended.name}. {comparison.reason}",
    )


def _candidate_row(one: Candidate) -> tuple[str, ...]:
    channel = ("", "", "")
    if one.plan is not None and one.lineups is None:
        channel = (str(len(one.plan.cells)), per_cent(one.plan.average_coin), per_cent(one.plan.record_utility))
    errors = " / ".join("" if math.isnan(error) else f"{error:.3f}" for error in one.errors)
    epsilon = "unbounded" if math.isinf(one.epsilon) else f"{one.epsilon:.2f}"
    name = f"{one.label} (rival)" if one.rival else one.label
    return (name, *channel, epsilon, f"{errors} + bias" if one.biased else errors, f"{one.seconds:.3f}")
