"""Line-ups beside designed channels and the paper's cells, on five pools of SDR 10.9 (mathematics 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from deniable.core.histogram import SELECTIVITIES
from deniable.lab.experiments import Result
from deniable.lab.rival import informed_by_setting
from deniable.planning.informed import Informed
from deniable.planning.pools import CodedTable
from reproduction.criteria import limit
from reproduction.five_pools import CELLS, DESIGNED, LINE_UP, settings
from reproduction.items import Item, near, per_cent, slashed

WITHIN = limit("Line-ups", "within")
Errors = tuple[float, ...]
# Measured before with a plain script on one other pool, 3 draws.
EARLIER: dict[tuple[str, str], Errors] = {
    (LINE_UP, "inverse"): (0.17, 0.09, 0.075),
    (LINE_UP, "calibrated"): (0.14, 0.06, 0.045),
    ("line-up, truth 4/5", "inverse"): (0.13, 0.07, 0.06),
    ("line-up, truth 4/5", "calibrated"): (0.11, 0.05, 0.035),
    ("line-up, truth 1", "inverse"): (0.10, 0.06, 0.05),
    ("line-up, truth 1", "calibrated"): (0.084, 0.037, 0.026),
    ("line-up of 10, truth 1/2", "calibrated"): (0.26, 0.12, 0.086),
    ("line-up of 12, truth 1", "calibrated"): (0.15, 0.07, 0.05),
    (DESIGNED, "inverse"): (0.28, 0.16, 0.13),
    (DESIGNED, "calibrated"): (0.24, 0.11, 0.08),
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
    LINE_UP: 0.31,
    "line-up, truth 4/5": 0.36,
    "line-up, truth 1": 0.44,
    "line-up of 10, truth 1/2": 0.22,
    "line-up of 12, truth 1": 0.28,
    DESIGNED: 0.22,
    CELLS: 0.30,
    "any prior: uniform": 0.17,
}
NOT_COMPARED = ("shrunk",)  # against any prior these had a published histogram then, and have none now


SHOWN = (
    *(LINE_UP, "line-up, truth 4/5", "line-up, truth 1", "line-up of 10, truth 1/2", "line-up of 12, truth 1"),
    *(DESIGNED, CELLS, "any prior: uniform", "any prior: line-up", "anatomy", "independence"),
)
ESTIMATED = {"any prior: uniform": ("inverse", "shrunk"), "any prior: line-up": ("inverse", "shrunk")}
NAMED = {LINE_UP: "line-up, default", DESIGNED: "designed", CELLS: "small-domain, the paper's cost"}


def attacked(table: CodedTable) -> dict[str, Informed]:
    """What someone gains from each setting who has learnt from half of the people."""
    return informed_by_setting([setting for setting in settings() if setting.label in SHOWN], table)


def lineups(results: Sequence[Result], gained: Mapping[str, Informed]) -> Item:
    """mathematics 12's table, over pools; each draw is asked by all of them."""
    errors = {
        (row.setting, row.estimator): mean_errors(results, row.setting, row.estimator)
        for setting in SHOWN
        for row in results[0].rows
        if row.setting == setting and row.estimator in ("", *ESTIMATED.get(setting, ("inverse", "calibrated")))
    }
    informed = {name: one.after.right for name, one in gained.items()}
    blind = gained[LINE_UP].before.right
    near_to = {
        place: sum(near(ours, earlier, WITHIN) for ours, earlier in zip(errors[place], EARLIER[place], strict=True))
        for place in EARLIER
        if place in errors and place[1] not in NOT_COMPARED
    }
    ours, designed, paper = (errors[name, "calibrated"][0] for name in (LINE_UP, DESIGNED, CELLS))
    earlier_ratio = EARLIER[LINE_UP, "calibrated"][0] / EARLIER[DESIGNED, "calibrated"][0]
    return Item(
        "Line-ups",
        f"Mean relative error at selectivity >= 0.1 / 0.5 / 1 %, mean over {len(results)} pools of 200 conditions x "
        f"50 values and over {results[0].draws} draws, each asked by all pools; OCC-100k, (1/13, 1/6). Beside it an "
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
        draws=results[0].draws,
    )


def mean_errors(results: Sequence[Result], setting: str, estimator: str) -> Errors:
    """Errors by selectivity, the mean over pools."""
    by_pool = [result.row(setting, estimator).errors(SELECTIVITIES) for result in results]
    return tuple(float(error) for error in np.mean(by_pool, axis=0))


def _row(place: tuple[str, str], errors: Errors, informed: Mapping[str, float]) -> tuple[str, ...]:
    setting, estimator = place
    earlier, first = EARLIER.get(place), estimator in ("inverse", "")
    return (
        NAMED.get(setting, setting),
        estimator,
        "" if earlier is None else slashed(earlier, ".3f"),
        slashed(errors, ".3f"),
        per_cent(GUESSED[setting], 0) if setting in GUESSED and first else "",
        per_cent(informed[setting], 0) if setting in informed and first else "",
    )
