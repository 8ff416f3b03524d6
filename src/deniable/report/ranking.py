"""The headline of an evaluation: releases ranked against independence, and what an informed attacker gains from each.

Independence multiplies the rows of a public condition by the value's share of the table. It needs no release, so a
release is worth what its errors are smaller than those of independence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from deniable.core.html import shown
from deniable.core.probability import percent
from deniable.planning.chart import INDEPENDENCE
from deniable.report import charts
from deniable.report.page import Block, Facts, Figure, Note
from deniable.report.tables import Kind, Table, share

Record = Mapping[str, Any]  # a result as Result.to_dict gives it
INTERACTIVE = "laplace"  # answers questions one by one, and publishes nothing
OWN = "its own"  # where there is one way to estimate
NO_RELEASE = "independence (no release)"
TITLE = "What accuracy costs against an informed attacker"


@dataclass(frozen=True)
class Ranked:
    """A release with its best estimator: its errors by selectivity, and how often an informed attacker is right."""

    release: str
    estimator: str
    errors: Mapping[str, float]
    risk: float


@dataclass(frozen=True)
class Ranking:
    """Releases by their error at one selectivity, the smallest first, beside independence's errors."""

    selectivity: str
    releases: tuple[Ranked, ...]
    independence: Mapping[str, float]
    risk_without: float

    def times(self, one: Ranked, selectivity: str) -> float:
        """The error as a multiple of that of independence."""
        line = self.independence.get(selectivity, math.nan)
        return round(one.errors[selectivity] / line, 3) if line > 0 else math.nan


def ranking_of(result: Record) -> Ranking | None:
    """Releases ranked at the largest selectivity that was asked about; None where nothing can be compared."""
    for selectivity in reversed(list(result["questions"])):
        best: dict[str, Ranked] = {}
        line: dict[str, float] = {}
        for row in result["rows"]:
            errors = {one: mean_of(row, f"relative {one}") for one in result["questions"]}
            if row["setting"] == INDEPENDENCE:
                line = errors
            elif is_release(row) and math.isfinite(errors[selectivity]):
                ranked = Ranked(shown(row["setting"]), row["estimator"] or OWN, errors, _risk(result, row["setting"]))
                known = best.get(row["setting"])
                if known is None or errors[selectivity] < known.errors[selectivity]:
                    best[row["setting"]] = ranked
        if best and math.isfinite(line.get(selectivity, math.nan)):
            ordered = sorted(best.values(), key=lambda one: one.errors[selectivity])
            return Ranking(selectivity, tuple(ordered), line, _risk_without(result))
    return None


def is_release(row: Record) -> bool:
    """Whether rows are published, which cannot be said of answers one by one."""
    return str(row["setting"]).partition(":")[0] != INTERACTIVE


def name_of(row: Record) -> str:
    """A setting and its estimator."""
    return shown(f"{row['setting']}, {row['estimator']}" if row["estimator"] else row["setting"])


def mean_of(row: Record, name: str) -> float:
    """A number of a row; JSON has null where there is none."""
    summary = row.get(name)
    return math.nan if summary is None or summary["mean"] is None else float(summary["mean"])


def headline(result: Record) -> list[Block]:
    """Key figures, the ranking, and error against risk."""
    ranking = ranking_of(result)
    if ranking is None:
        return []
    return [_facts(result, ranking), _table(ranking), *_notes(result, ranking), *_figure(ranking, result.get("rho2"))]


def _facts(result: Record, ranking: Ranking) -> Facts:
    best, which, line = ranking.releases[0], _which(ranking), ranking.independence[ranking.selectivity]
    times = ranking.times(best, ranking.selectivity)
    beaten = f"{best.release}, {best.estimator}: {times:.2g} times that of independence"
    return Facts(
        (
            ("Line to beat", share(line, 2), f"mean relative error of independence, {which}"),
            ("Smallest error of a release", share(best.errors[ranking.selectivity], 2), beaten),
            ("Questions", f"{result['questions'][ranking.selectivity]:,}", which),
        )
    )


def _table(ranking: Ranking) -> Table:
    """Independence stands in its place: what comes after it teaches nothing."""
    columns: dict[str, Kind] = {"release": "text", "estimator": "text", "relative error": "share"}
    columns |= {f"x independence, >= {percent(float(one), 2)}": "number" for one in ranking.independence}
    if not all(math.isnan(one.risk) for one in ranking.releases):
        columns["informed attacker right"] = "share"
    line = Ranked(NO_RELEASE, "none", ranking.independence, ranking.risk_without)
    ordered = sorted((*ranking.releases, line), key=lambda one: (one.errors[ranking.selectivity], one is not line))
    rows = [
        (
            one.release,
            one.estimator,
            one.errors[ranking.selectivity],
            *(ranking.times(one, selectivity) for selectivity in ranking.independence),
            one.risk,
        )[: len(columns)]
        for one in ordered
    ]
    caption = (
        f"Releases by their mean relative error at {_which(ranking)}, each with its best estimator. Their errors "
        "as multiples of those of independence, by selectivity: above 1, independence is nearer to the truth."
    )
    below = range(ordered.index(line) + 1, len(ordered))
    return Table.of(caption + (" In red: no better than independence." if below else ""), columns, rows, marked=below)


def _notes(result: Record, ranking: Ranking) -> list[Block]:
    notes: list[Block] = []
    line, published = ranking.independence[ranking.selectivity], [row for row in result["rows"] if is_release(row)]
    useless = [
        name_of(row)
        for row in published
        if row["setting"] != INDEPENDENCE and mean_of(row, f"relative {ranking.selectivity}") >= line
    ]
    if useless:
        text = f"At {_which(ranking)}: {'; '.join(useless)}."
        notes.append(Note("caution", "no better than independence, which needs no release", text))
    if len(published) < len(result["rows"]):
        text = (
            "Its owner answers each question with noise, and every further question uses up privacy: it is no release, "
            "is not ranked, and stands in the details."
        )
        notes.append(Note("info", f"{INTERACTIVE} publishes no rows", text))
    return notes


def _figure(ranking: Ranking, rho2: float | None) -> list[Block]:
    """Error against the informed attacker's right guesses: a point for each release whose attacker was played."""
    drawn = [one for one in ranking.releases if math.isfinite(one.risk) and one.errors[ranking.selectivity] > 0]
    if not drawn:
        return []
    left_out = [one.release for one in ranking.releases if one not in drawn]
    columns: dict[str, Kind] = {"release": "text", "informed attacker right": "share", "relative error": "share"}
    rows = [(one.release, one.risk, one.errors[ranking.selectivity]) for one in drawn]
    without, line = ranking.risk_without, ranking.independence[ranking.selectivity]
    said = [
        "Across: how often someone who has learnt from other people's public columns guesses a person's value from "
        f"their row{'' if math.isnan(without) else f' ({percent(without)} without a release)'}.",
        f"Up: the mean relative error at {_which(ranking)}. Lower and further left is better.",
        f"Dotted: independence, which needs no release{'' if rho2 is None else '; upright, rho2'}.",
    ]
    if left_out:
        said.append(f"Not drawn, since this attacker is not played against them: {', '.join(left_out)}.")
    points = [{"name": name, "risk": risk, "error": error} for name, risk, error in rows]
    table = Table.of("Error and risk of each release.", columns, rows)
    return [Figure(TITLE, " ".join(said), partial(charts.error_against_risk, points, line, rho2=rho2), table)]


def _which(ranking: Ranking) -> str:
    return f"questions about at least {percent(float(ranking.selectivity), 2)} of the rows"


def _risk(result: Record, setting: str) -> float:
    return _right((result.get("informed") or {}).get(setting), "after")


def _risk_without(result: Record) -> float:
    played = (result.get("informed") or {}).values()
    return next((_right(one, "without") for one in played), math.nan)


def _right(informed: Record | None, when: str) -> float:
    known = None if informed is None else informed[when]["right"]
    return math.nan if known is None else float(known)
