"""The manifest: all that a stranger needs to estimate from a release and to verify it; nothing gives a row away."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from importlib import resources
from typing import Any

import jsonschema
import numpy as np

from deniable.core import values
from deniable.core.channel import Channel
from deniable.core.errors import ManifestError
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Counts
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy

FORMAT = "deniable-release"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Column:
    """A column of the published table. Role: ``public``, ``sensitive`` or ``cell``."""

    name: str
    type: str
    role: str


@dataclass(frozen=True)
class Marginal:
    """The histogram of the sensitive column with discrete Laplace noise, published for calibration (SPEC 8)."""

    counts: tuple[int, ...]
    epsilon: float
    variance: float


@dataclass(frozen=True)
class Randomness:
    """Where the draws came from. A seed is recorded because whoever knows it can undo the release."""

    source: str
    seed: int | None
    shuffled: bool
    row_identity: str


@dataclass(frozen=True)
class DataFile:
    """The published table's file, and the digest that ties the manifest to it."""

    file: str
    format: str
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A release's manifest. ``domain`` holds plain values, or tuples where several sensitive columns are compounded."""

    name: str
    software: Mapping[str, str]
    mechanism: str
    options: Mapping[str, Any]
    rows: int
    columns: tuple[Column, ...]
    domain: tuple[Hashable, ...]
    missing: str
    cells_published: bool
    channels: tuple[Channel, ...]
    cell_positions: tuple[Counts, ...]
    privacy: Mapping[str, Any] | None
    guarantee: Mapping[str, Any]
    marginal: Marginal | None
    randomness: Randomness
    data: DataFile | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.role == "sensitive")

    @property
    def public_columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.role == "public")

    @property
    def types(self) -> dict[str, str]:
        """Column name -> the name of its Arrow type."""
        return {column.name: column.type for column in self.columns}

    @cached_property
    def column_domains(self) -> dict[str, tuple[Hashable, ...]]:
        """Each sensitive column's own values, in the order of first appearance in the domain."""
        names = self.sensitive_columns
        if len(names) == 1:
            return {names[0]: self.domain}
        entries: list[tuple[Hashable, ...]] = [entry for entry in self.domain if isinstance(entry, tuple)]
        return {name: tuple(dict.fromkeys(entry[i] for entry in entries)) for i, name in enumerate(names)}

    # -- JSON ---------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        several = len(self.sensitive_columns) > 1
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "software": dict(self.software),
            "name": self.name,
            "mechanism": {"name": self.mechanism, "options": dict(self.options)},
            "rows": self.rows,
            "columns": [asdict(column) for column in self.columns],
            "sensitive": {
                "columns": list(self.sensitive_columns),
                "domain": [
                    [values.to_json(part) for part in (entry if several and isinstance(entry, tuple) else (entry,))]
                    for entry in self.domain
                ],
                "missing": self.missing,
            },
            "cells_published": self.cells_published,
            "cells": [
                {"values": places.tolist(), "keep": channel.keep.tolist(), "replace": channel.replace.tolist()}
                for channel, places in zip(self.channels, self.cell_positions, strict=True)
            ],
            "privacy": None if self.privacy is None else dict(self.privacy),
            "guarantee": dict(self.guarantee),
            "marginal": None if self.marginal is None else asdict(self.marginal),
            "randomness": asdict(self.randomness),
            "data": None if self.data is None else asdict(self.data),
            **({"extra": dict(self.extra)} if self.extra else {}),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read a manifest and check it against the schema; errors say what is wrong and where."""
        try:
            raw = json.loads(text)
        except json.JSONDecodeError as error:
            raise ManifestError(f"manifest.json is not JSON (line {error.lineno}): the release is damaged.") from None
        check_schema(raw)
        return cls.from_dict(raw)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Manifest:
        sensitive = raw["sensitive"]
        types = {column["name"]: column["type"] for column in raw["columns"]}
        kinds = [types.get(name, "") for name in sensitive["columns"]]
        decoded = [
            tuple(values.from_json(part, kind) for part, kind in zip(entry, kinds, strict=True))
            for entry in sensitive["domain"]
        ]
        domain: tuple[Hashable, ...] = tuple(decoded) if len(kinds) > 1 else tuple(entry[0] for entry in decoded)
        positions = tuple(np.array(cell["values"], dtype=np.int64) for cell in raw["cells"])
        if any(place.size and int(place.max()) >= len(domain) for place in positions):
            raise ManifestError("manifest.json is damaged: a cell names a value that is not in the domain.")
        for cell in raw["cells"]:
            if not len(cell["values"]) == len(cell["keep"]) == len(cell["replace"]) or sum(cell["replace"]) != 2**32:
                raise ManifestError("manifest.json is damaged: a cell's channel is not a probability distribution.")
        return cls(
            name=raw["name"],
            software=raw["software"],
            mechanism=raw["mechanism"]["name"],
            options=raw["mechanism"]["options"],
            rows=raw["rows"],
            columns=tuple(Column(**column) for column in raw["columns"]),
            domain=domain,
            missing=sensitive["missing"],
            cells_published=raw["cells_published"],
            channels=tuple(
                Channel(tuple(domain[i] for i in place), np.array(cell["keep"]), np.array(cell["replace"]))
                for cell, place in zip(raw["cells"], positions, strict=True)
            ),
            cell_positions=positions,
            privacy=raw["privacy"],
            guarantee=raw["guarantee"],
            marginal=None
            if raw["marginal"] is None
            else Marginal(**{**raw["marginal"], "counts": tuple(raw["marginal"]["counts"])}),
            randomness=Randomness(**raw["randomness"]),
            data=None if raw["data"] is None else DataFile(**raw["data"]),
            extra=raw.get("extra", {}),
        )


def privacy_dict(privacy: Privacy | None) -> dict[str, Any] | None:
    """A requirement as JSON: exact fractions as text."""
    if privacy is None:
        return None
    return {
        "rho1": _text(privacy.rho1),
        "rho2": _text(privacy.rho2),
        "adversary": privacy.adversary,
        "per_value": [[values.to_json(v), str(a), str(b)] for v, (a, b) in privacy.per_value.items()],
        "exempt": [values.to_json(value) for value in sorted(privacy.exempt, key=repr)],
    }


def guarantee_dict(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as JSON: what ``verify`` recomputes, exact fractions as text."""
    return {
        "adversary": guarantee.adversary,
        "rho1": _text(guarantee.rho1),
        "rho2": _text(guarantee.rho2),
        "gamma": _text(guarantee.gamma),
        "epsilon": None if guarantee.gamma is None else guarantee.epsilon,
        "cell_gammas": [_text(gamma) for gamma in guarantee.cell_gammas],
        "sentence": str(guarantee),
        "also": list(guarantee.also),
        "not_protected": list(guarantee.not_protected),
    }


def cells_of(plan: Plan) -> tuple[tuple[Channel, ...], tuple[Counts, ...]]:
    """The channels of a plan and where their values stand in the domain; the counts of rows stay behind."""
    return tuple(cell.channel for cell in plan.cells), tuple(plan.positions(cell) for cell in plan.cells)


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


@cache
def schema() -> dict[str, Any]:
    """The published JSON Schema of ``manifest.json``."""
    text = resources.files("deniable.core").joinpath("manifest.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def check_schema(raw: Any) -> None:
    """Refuse what is not a manifest that this version can read."""
    version = raw.get("format_version") if isinstance(raw, dict) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ManifestError(
            f"This release has format version {version}; this deniable reads up to {FORMAT_VERSION}. "
            "Fix: upgrade deniable."
        )
    problem = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema()).iter_errors(raw))
    if problem is not None:
        where = "/".join(str(part) for part in problem.absolute_path) or "the top"
        raise ManifestError(f"manifest.json is damaged at {where}: {problem.message[:200]}")
