"""Parts of a release: sensitive columns that are perturbed together, and their channels in JSON."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from deniable.core import values
from deniable.core.channel import SCALE, Channel
from deniable.core.errors import ManifestError
from deniable.core.histogram import Counts
from deniable.core.plan import Plan

Mixture = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Marginal:
    """The histogram of the sensitive column with discrete Laplace noise, published for calibration (SPEC 8)."""

    counts: tuple[int, ...]
    epsilon: float
    variance: float


@dataclass(frozen=True)
class Part:
    """Sensitive columns that are perturbed together, independently of all other parts.

    Attributes:
        columns: one column, or several that are compounded into one.
        domain: its values; tuples where columns are compounded. Empty for a range of numbers.
        missing: the policy for missing values.
        cells_published: whether the column ``cell`` says which cell a row fell into.
        channels, cell_positions: each cell's channel, and where its values stand in the domain.
        marginal: the noisy histogram, where it is published.
        mixture: where the cells of rows are not published: the channel of the whole table, by the noisy histogram,
            mixture[y][x] = Pr[x is published as y].
        range: for a numeric column that is replaced by numbers of a range: how (mechanism ``retention``).
    """

    columns: tuple[str, ...]
    domain: tuple[Hashable, ...]
    missing: str
    cells_published: bool
    channels: tuple[Channel, ...]
    cell_positions: tuple[Counts, ...]
    marginal: Marginal | None = None
    range: Mapping[str, Any] | None = None
    mixture: Mixture | None = None


def cells_of(plan: Plan) -> tuple[tuple[Channel, ...], tuple[Counts, ...]]:
    """The channels of a plan and where their values stand in the domain; the counts of rows stay behind."""
    return tuple(cell.channel for cell in plan.cells), tuple(plan.positions(cell) for cell in plan.cells)


def part_dict(part: Part) -> dict[str, Any]:
    several = len(part.columns) > 1
    return {
        "columns": list(part.columns),
        "domain": [
            [values.to_json(each) for each in (entry if several and isinstance(entry, tuple) else (entry,))]
            for entry in part.domain
        ],
        "missing": part.missing,
        "cells_published": part.cells_published,
        "cells": [
            {"values": places.tolist(), "keep": channel.keep.tolist(), "replace": channel.replace.tolist()}
            for channel, places in zip(part.channels, part.cell_positions, strict=True)
        ],
        "marginal": None if part.marginal is None else {**asdict(part.marginal), "counts": list(part.marginal.counts)},
        "mixture": None if part.mixture is None else [list(row) for row in part.mixture],
        "range": None if part.range is None else dict(part.range),
    }


def part_of(raw: Mapping[str, Any], types: Mapping[str, str]) -> Part:
    kinds = [types.get(name, "") for name in raw["columns"]]
    if any(len(entry) != len(kinds) for entry in raw["domain"]):
        raise ManifestError("manifest.json is damaged: a value of the domain does not have one entry per column.")
    decoded = [
        tuple(values.from_json(each, kind) for each, kind in zip(entry, kinds, strict=True)) for entry in raw["domain"]
    ]
    domain: tuple[Hashable, ...] = tuple(decoded) if len(kinds) > 1 else tuple(entry[0] for entry in decoded)
    marginal = raw["marginal"]
    return Part(
        columns=tuple(raw["columns"]),
        domain=domain,
        missing=raw["missing"],
        cells_published=raw["cells_published"],
        channels=tuple(_channel(cell, domain) for cell in raw["cells"]),
        cell_positions=tuple(np.array(cell["values"], dtype=np.int64) for cell in raw["cells"]),
        marginal=None if marginal is None else Marginal(**{**marginal, "counts": tuple(marginal["counts"])}),
        range=raw["range"],
        mixture=None if raw["mixture"] is None else _mixture(raw["mixture"], len(domain)),
    )


def _channel(cell: Mapping[str, Any], domain: tuple[Hashable, ...]) -> Channel:
    places = cell["values"]
    if places and max(places) >= len(domain):
        raise ManifestError("manifest.json is damaged: a cell names a value that is not in the domain.")
    if not len(places) == len(cell["keep"]) == len(cell["replace"]) or sum(cell["replace"]) != SCALE:
        raise ManifestError("manifest.json is damaged: a cell's channel is not a probability distribution.")
    return Channel(tuple(domain[i] for i in places), np.array(cell["keep"]), np.array(cell["replace"]))


def _mixture(raw: list[list[float]], m: int) -> Mixture:
    matrix = np.array([row if len(row) == m else [] for row in raw], dtype=object)
    if matrix.shape != (m, m) or not np.allclose(matrix.astype(np.float64).sum(0), 1, atol=1e-4):
        raise ManifestError(
            "manifest.json is damaged: the channel of the whole table is not a probability distribution."
        )
    return tuple(tuple(row) for row in raw)
