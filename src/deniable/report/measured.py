"""Measured errors (``Result.to_dict`` of an experiment) as blocks of a page, and as a page of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from deniable.core.errors import counted
from deniable.core.html import shown
from deniable.core.probability import percent
from deniable.planning.chart import Chart, Point, Series, cloud
from deniable.report import figures
from deniable.report.page import Block, Document, Figure, Folded, Note, Section, Text
from deniable.report.ranking import OWN, Record, headline, is_release, mean_of, name_of
from deniable.report.tables import Kind, Table


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
    return [Figure("Errors by the size of the question", caption, partial(figures.draw, chart), table)]


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
    return [Figure("True and estimated counts", caption, partial(figures.draw, chart), summary)]


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
