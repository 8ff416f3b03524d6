"""Line-ups beside designed channels and the paper's cells, on five pools of SDR 10.9 (mathematics 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from deniable.core.privacy import Privacy
from deniable.evaluation.answered import Setting
from deniable.evaluation.experiment import Result, run_on_pools
from deniable.evaluation.informed import informed_by_setting
from deniable.evaluation.rivals import Anatomized
from deniable.evaluation.settings import Perturbed
from deniable.mechanisms import Designed, Lineup, Mechanism, SmallDomain, Uniform
from deniable.planning.pools import sdr_pool
from deniable.planning.profiles import SELECTIVITIES
from deniable.planning.tables import CodedTable
from reproduction.comparison import POOLS, RHO1, RHO2
from reproduction.items import Item, near, per_cent, slashed

DRAWS = 20
WITHIN = 0.1
DEFAULT, CELLS = "line-up, default", "small-domain, the paper's cost"
Errors = tuple[float, ...]
# Measured before with a plain script on one other pool, 3 draws.
EARLIER: dict[tuple[str, str], Errors] = {
    (DEFAULT, "inverse"): (0.17, 0.09, 0.075),
    (DEFAULT, "calibrated"): (0.14, 0.06, 0.045),
    ("line-up, truth 4/5", "inverse"): (0.13, 0.07, 0.06),
    ("line-up, truth 4/5", "calibrated"): (0.11, 0.05, 0.035),
    ("line-up, truth 1", "inverse"): (0.10, 0.06, 0.05),
    ("line-up, truth 1", "calibrated"): (0.084, 0.037, 0.026),
    ("line-up of 10, truth 1/2", "calibrated"): (0.26, 0.12, 0.086),
    ("line-up of 12, truth 1", "calibrated"): (0.15, 0.07, 0.05),
    ("designed", "inverse"): (0.28, 0.16, 0.13),
    ("designed", "calibrated"): (0.24, 0.11, 0.08),
    (CELLS, "inverse"): (0.43, 0.22, 0.18),
    (CELLS, "calibrated"): (0.35, 0.15, 0.11),
    ("anatomy", ""): (0.31, 0.22, 0.19),
    ("independence", ""): (0.36, 0.26, 0.22),
    ("any prior: uniform", "inverse"): (1.62, 0.83, 0.57),
    ("any prior: uniform", "shrunk"): (0.34, 0.23, 0.18),
    ("any prior: line-up", "inverse"): (0.70, 0.32, 0.22),
    ("any prior: line-up", "shrunk"): (0.29, 0.18, 0.13),
}
GUESSED = {
    DEFAULT: 0.31,
    "line-up, truth 4/5": 0.36,
    "line-up, truth 1": 0.44,
    "line-up of 10, truth 1/2": 0.22,
    "line-up of 12, truth 1": 0.28,
    "designed": 0.22,
    CELLS: 0.30,
    "any prior: uniform": 0.17,
}
NOT_COMPARED = ("shrunk",)  # against any prior these had a published histogram then, and have none now


def compared() -> list[Setting]:
    """The settings of the table of mathematics 12."""
    knows = Privacy(RHO1, RHO2)
    mechanisms: dict[str, Mechanism] = {
        DEFAULT: Lineup(),
        "line-up, truth 4/5": Lineup(truth=Fraction(4, 5)),
        "line-up, truth 1": Lineup(truth=1),
        "line-up of 10, truth 1/2": Lineup(size=10),
        "line-up of 12, truth 1": Lineup(size=12, truth=1),
        "designed": Designed(),
        CELLS: SmallDomain(cost="bound", orders="band"),
    }
    any_prior = Privacy(RHO1, RHO2, adversary="any-prior")
    return [
        *(Perturbed(label, mechanism, knows, ("inverse", "calibrated")) for label, mechanism in mechanisms.items()),
        Perturbed("any prior: uniform", Uniform(), any_prior, ("inverse", "shrunk")),
        Perturbed("any prior: line-up", Lineup(), any_prior, ("inverse", "shrunk")),
        Anatomized(6),
    ]


def lineups(table: CodedTable, *, draws: int = DRAWS, pools: Sequence[int] = POOLS) -> Item:
    """mathematics 12's table, over pools; each draw is asked by all of them."""
    settings = compared()
    results = run_on_pools([sdr_pool(table, seed=seed) for seed in pools], settings, draws=draws)
    errors = {(row.setting, row.estimator): mean_errors(results, row.setting, row.estimator) for row in results[0].rows}
    attacked = informed_by_setting(settings, table)
    informed = {name: one.after.right for name, one in attacked.items()}
    blind = attacked[DEFAULT].before.right
    near_to = {
        place: sum(near(ours, earlier, WITHIN) for ours, earlier in zip(errors[place], EARLIER[place], strict=True))
        for place in EARLIER
        if place in errors and place[1] not in NOT_COMPARED
    }
    ours, designed, paper = (errors[name, "calibrated"][0] for name in (DEFAULT, "designed", CELLS))
    earlier_ratio = EARLIER[DEFAULT, "calibrated"][0] / EARLIER["designed", "calibrated"][0]
    return Item(
        "Line-ups",
        f"Mean relative error at selectivity >= 0.1 / 0.5 / 1 %, mean over {len(pools)} pools of 200 conditions x "
        f"{table.m} values and over {draws} draws, each asked by all pools; OCC-100k, (1/13, 1/6). Beside it an "
        "earlier measurement, of one other pool and 3 draws. Right guesses are those of an attacker who has learnt "
        f"from half of the people which values go with which public columns ({per_cent(blind, 0)} without a release). "
        "Sizes are those that the exact certificate allows with a noisy histogram.",
        ("mechanism", "estimator", "earlier", "error", "right guesses, earlier", "right guesses"),
        tuple(_row(place, errors[place], informed) for place in errors),
        near(ours / designed, earlier_ratio, WITHIN),
        "The verdict is about the ratio to designed channels at 0.1 %, since pools differ: "
        f"{ours / designed:.2f}, and {earlier_ratio:.2f} earlier. Figure by figure, {sum(near_to.values())} of "
        f"{3 * len(near_to)} are within a tenth of the earlier ones; errors move with the pool, and those of "
        "independence with them. Shrunk estimates against any prior have no published histogram to be drawn to here; "
        f"the earlier ones had one. A line-up with a fair coin has {ours / paper:.2f} times the error of the paper's "
        "cells, all calibrated.",
    )


def mean_errors(results: Sequence[Result], setting: str, estimator: str) -> Errors:
    """Errors by selectivity, the mean over pools."""
    by_pool = [result.row(setting, estimator).errors(SELECTIVITIES) for result in results]
    return tuple(float(error) for error in np.mean(by_pool, axis=0))


def _row(place: tuple[str, str], errors: Errors, informed: Mapping[str, float]) -> tuple[str, ...]:
    setting, estimator = place
    earlier, first = EARLIER.get(place), estimator in ("inverse", "")
    return (
        setting,
        estimator,
        "" if earlier is None else slashed(earlier, ".3f"),
        slashed(errors, ".3f"),
        per_cent(GUESSED[setting], 0) if setting in GUESSED and first else "",
        per_cent(informed[setting], 0) if setting in informed and first else "",
    )
