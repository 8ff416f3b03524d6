"""Measured errors as a report: releases ranked against independence, and the schema of what `deniable evaluate`
prints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from deniable.core.errors import counted
from deniable.core.text import shown
from deniable.core.values import percent
from deniable.planning.candidates import INDEPENDENCE, Chart, Point, Series, cloud
from deniable.report import charts
from deniable.report.charts import draw
from deniable.report.page import Block, Document, Facts, Figure, Folded, Note, Section, Text
from deniable.report.tables import Kind, Table, share

# -- What `deniable evaluate --json` prints, as a schema: whatever else a file holds is refused ------------------------


_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
_SPREAD: dict[str, Any] = {"type": "object", "required": ["mean"], "additionalProperties": _NUMBER}
_BAND: dict[str, Any] = {
    "type": "object",
    "required": ["from", "to", "mean", "deviation"],
    "properties": {"from": {"type": "number", "minimum": 0}, "to": {"type": "number", "minimum": 0}},
    "additionalProperties": {"type": "number"},
}
_PAIR: dict[str, Any] = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_ROW: dict[str, Any] = {
    "type": "object",
    "required": ["setting", "estimator", "bands", "cloud"],
    "properties": {
        "setting": {"type": "string"},
        "estimator": {"type": "string"},
        "bands": {"type": "array", "items": _BAND},
        "cloud": {"type": "array", "items": _PAIR},
        "predicted": {"type": "array", "items": _NUMBER},
    },
    "additionalProperties": _SPREAD,
}
_RESULT: dict[str, Any] = {
    "type": "object",
    "required": ["pool", "questions", "draws", "rows", "refused"],
    "properties": {
        "pool": {"type": "string"},
        "questions": {
            "type": "object",
            "propertyNames": {"pattern": "^[0-9.e-]+$"},
            "additionalProperties": {"type": "integer"},
        },
        "draws": {"type": "integer"},
        "seed": {"type": "integer"},
        "rows": {"type": "array", "items": _ROW, "minItems": 1},
        "refused": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
EVALUATION: dict[str, Any] = {
    "type": "object",
    "required": ["results"],
    "properties": {"results": {"type": "array", "items": _RESULT, "minItems": 1}},
}


def is_evaluation(content: Any) -> bool:
    """Whether a JSON document is what ``deniable evaluate --json`` prints."""
    import jsonschema

    return bool(jsonschema.Draft202012Validator(EVALUATION).is_valid(content))


# -- The headline of an evaluation: releases ranked against independence, and what an informed attacker gains from each.
# Independence multiplies the rows of a public condition by the value's share of the table. It needs no release, so a
# release is worth what its errors are smaller than those of independence.


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
    return [
        _facts(result, ranking),
        _ranking_table(ranking),
        *_notes(result, ranking),
        *_figure(ranking, result.get("rho2")),
    ]


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


def _ranking_table(ranking: Ranking) -> Table:
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


# -- Measured errors (``Result.to_dict`` of an experiment) as blocks of a page, and as a page of their own -------------


def evaluation_report(results: Sequence[Record], what: str) -> Document:
    """One page about experiments on one table, for its owner."""
    listed = [
        Section(f"pool-{number}", f"Ranking: pool {shown(result['pool'])}", tuple(measured_blocks(result)))
        for number, result in enumerate(results, start=1)
    ]
    keep = Note(
        "caution",
        "for the owner alone",
        "This page shows exact counts of the original table. Nothing was published to make it.",
        "Keep it with the table, and do not publish it.",
    )
    how = Text(
        "Releases of the table were drawn and thrown away. The same questions were asked of each, and of "
        "independence, which multiplies the rows that satisfy the public condition by the value's share of the "
        "table: that needs no release, and is the line to beat. Details are folded below each ranking."
    )
    return Document(
        "owner",
        f"What a release of {shown(what)} would be worth",
        "How far off answers are, measured on the table itself.",
        (Section("owner", "Before you read on", (keep, how)), *listed),
        "Written by deniable for the owner of the table. Do not publish it.",
    )


def measured_blocks(result: Record) -> list[Block]:
    """Everything that is known of one pool: the ranking and error against risk; the rest is folded."""
    draws = f"{counted(result['draws'], 'draw')} of each mechanism"
    details = [
        Folded("Every mechanism and estimator", (_table(result, draws),)),
        Folded("Errors by the size of the question", tuple(_by_size(result, draws))),
        Folded("True and estimated counts", tuple(_clouds(result))),
        Folded("The histogram, rows kept, seconds", (_costs(result),)),
    ]
    refused = [Note("info", f"{shown(name)} does not apply", why) for name, why in result["refused"].items()]
    details += [Folded(f"What does not apply ({len(refused)})", tuple(refused))] if refused else []
    return [*headline(result), *(one for one in details if one.blocks)]


def _table(result: Record, draws: str) -> Block:
    sizes = list(result["questions"])
    if not any(result["questions"].values()):
        least = percent(float(sizes[0]), 2)
        return Text(f"No question of this pool is about {least} of the rows or more: errors of smaller ones follow.")
    columns: dict[str, Kind] = {"mechanism": "text", "estimator": "text"}
    for selectivity in sizes:
        columns[f">= {percent(float(selectivity), 2)} ({result['questions'][selectivity]:,})"] = "share"
    columns |= {"rows off": "number", "slope": "number", "R²": "number"}
    rows = [
        (
            row["setting"],
            row["estimator"] or OWN,
            *(mean_of(row, f"relative {selectivity}") for selectivity in sizes),
            *(mean_of(row, name) for name in (f"absolute {sizes[0]}", "slope", "r2")),
        )
        for row in result["rows"]
    ]
    caption = (
        f"Mean relative error by selectivity (questions), over {draws}; rows off, on average, and the line through "
        f"true and estimated counts, of questions about at least {percent(float(sizes[0]), 2)} of the rows."
    )
    return Table.of(caption, columns, rows)


def _by_size(result: Record, draws: str) -> list[Block]:
    chart = errors_chart(result)
    if not any(line.points for line in chart.series):
        return [Text("There are too few questions of any size for a chart of errors by size.")]
    columns: dict[str, Kind] = {"mechanism": "text", "estimator": "text", "rows from": "share", "to": "share"}
    columns |= {"relative error": "share", "deviation": "share"}
    rows = [
        (row["setting"], row["estimator"] or OWN, band["from"], band["to"], band["mean"], band["deviation"])
        for row in result["rows"]
        for band in row["bands"]
    ]
    caption = (
        f"Mean relative error of questions by the share of all rows that they count, over {draws}; bars: one standard "
        "deviation over draws either way. Dotted: independence, which needs no release. A mechanism above it teaches "
        "nothing about questions of that size."
    )
    table = Table.of("Errors by the size of questions.", columns, rows)
    return [Figure("Errors by the size of the question", caption, partial(draw, chart), table)]


def errors_chart(result: Record) -> Chart:
    """Errors of releases by band of selectivity, a panel for each estimator; those with one way only are in all."""
    estimators = list(dict.fromkeys(row["estimator"] for row in result["rows"] if row["estimator"])) or [""]
    series = [
        Series(shown(row["setting"]), tuple(map(_in_band, row["bands"])), (), estimator)
        for estimator in estimators
        for row in result["rows"]
        if row["estimator"] in ("", estimator) and is_release(row)
    ]
    return Chart(
        "Errors by the size of the question",
        "rows counted, of all rows",
        "mean relative error",
        tuple(series),
        log_x=True,
        log_y=True,
        percent=True,
        percent_x=True,
    )


def _in_band(band: Record) -> Point:
    """A band of selectivity as a point: at its middle on a logarithmic axis, which shows no error of 0."""
    return Point(math.sqrt(band["from"] * band["to"]), max(band["mean"], 1e-4), band["deviation"])


def _clouds(result: Record) -> list[Block]:
    rows = [row for row in result["rows"] if row["cloud"]]
    if not rows:
        return []
    chart = Chart(
        "True and estimated counts",
        "true count",
        "estimate",
        tuple(
            cloud(name_of(row), [(true, estimated) for true, estimated in row["cloud"]], panel=name_of(row))
            for row in rows
        ),
        cloud=True,
    )
    columns: dict[str, Kind] = {"mechanism": "text", "questions shown": "count", "middle half, from": "number"}
    columns |= {"to": "number", "5 % below": "number", "5 % above": "number"}
    caption = (
        f"One draw of each; the same questions for all, {len(rows[0]['cloud']):,} of them, evenly from small to large. "
        "Across: the true count; up: the estimate; on the line they are the same. Estimates beyond the edges, among "
        "them all of 0 and below, are drawn at the edge."
    )
    summary = Table.of("Estimated as a multiple of the true count.", columns, [_quotients(row) for row in rows])
    return [Figure("True and estimated counts", caption, partial(draw, chart), summary)]


def _quotients(row: Record) -> tuple[Any, ...]:
    """Where estimate / truth lies: the middle half, and the ends that five per cent are beyond."""
    true, estimated = np.array(row["cloud"], dtype=np.float64).T
    low, first, last, high = np.quantile(estimated / true, [0.05, 0.25, 0.75, 0.95]).tolist()
    return name_of(row), len(true), first, last, low, high


def _costs(result: Record) -> Table:
    columns: dict[str, Kind] = {"mechanism": "text", "estimator": "text", "histogram off": "share"}
    columns |= {"rows kept": "share", "seconds to draw": "number", "seconds to answer": "number"}
    names = ("reconstruction", "kept", "draw seconds", "answer seconds")
    rows = [
        (row["setting"], row["estimator"] or OWN, *(mean_of(row, name) for name in names)) for row in result["rows"]
    ]
    caption = (
        "The mean relative error of the whole table's histogram; the share of rows published as they are; and how long "
        "a draw and all answers took."
    )
    return Table.of(caption, columns, rows)
