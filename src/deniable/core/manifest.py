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
from deniable.core.parts import Marginal, Mixture, Part, cells_of, part_dict, part_of
from deniable.core.privacy import Privacy

__all__ = [
    "Column",
    "DataFile",
    "Manifest",
    "Marginal",
    "Part",
    "Randomness",
    "cells_of",
    "check_schema",
    "guarantee_dict",
    "privacy_dict",
    "schema",
]

FORMAT = "deniable-release"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Column:
    """A column of the published table. Role: ``public``, ``sensitive`` or ``cell``."""

    name: str
    type: str
    role: str


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
    """A release's manifest. Most releases have one part; ``domain``, ``channels`` and so on speak of the first."""

    name: str
    software: Mapping[str, str]
    mechanism: str
    options: Mapping[str, Any]
    rows: int
    columns: tuple[Column, ...]
    parts: tuple[Part, ...]
    privacy: Mapping[str, Any] | None
    guarantee: Mapping[str, Any]
    randomness: Randomness
    data: DataFile | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def domain(self) -> tuple[Hashable, ...]:
        return self.parts[0].domain

    @property
    def missing(self) -> str:
        return self.parts[0].missing

    @property
    def cells_published(self) -> bool:
        return self.parts[0].cells_published

    @property
    def channels(self) -> tuple[Channel, ...]:
        return self.parts[0].channels

    @property
    def cell_positions(self) -> tuple[Counts, ...]:
        return self.parts[0].cell_positions

    @property
    def marginal(self) -> Marginal | None:
        return self.parts[0].marginal

    @property
    def mixture(self) -> Mixture | None:
        return self.parts[0].mixture

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
        found: dict[str, tuple[Hashable, ...]] = {}
        for part in self.parts:
            if len(part.columns) == 1:
                found[part.columns[0]] = part.domain
            else:
                entries = [entry for entry in part.domain if isinstance(entry, tuple)]
                for i, name in enumerate(part.columns):
                    found[name] = tuple(dict.fromkeys(entry[i] for entry in entries))
        return found

    # -- JSON ---------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "software": dict(self.software),
            "name": self.name,
            "mechanism": {"name": self.mechanism, "options": _plain(self.options)},
            "rows": self.rows,
            "columns": [asdict(column) for column in self.columns],
            "sensitive": [part_dict(part) for part in self.parts],
            "privacy": None if self.privacy is None else dict(self.privacy),
            "guarantee": dict(self.guarantee),
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
        types = {column["name"]: column["type"] for column in raw["columns"]}
        return cls(
            name=raw["name"],
            software=raw["software"],
            mechanism=raw["mechanism"]["name"],
            options=raw["mechanism"]["options"],
            rows=raw["rows"],
            columns=tuple(Column(**column) for column in raw["columns"]),
            parts=tuple(part_of(part, types) for part in raw["sensitive"]),
            privacy=raw["privacy"],
            guarantee=raw["guarantee"],
            randomness=Randomness(**raw["randomness"]),
            data=None if raw["data"] is None else DataFile(**raw["data"]),
            extra=raw.get("extra", {}),
        )


def _plain(value: Any) -> Any:
    """Options as JSON has them: mappings as lists of pairs where their keys are not text, tuples and sets as lists."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _plain(each) for key, each in value.items()}
        return [[_plain(key), _plain(each)] for key, each in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return values.to_json(value)


def privacy_dict(privacy: Privacy | None) -> dict[str, Any] | None:
    """A requirement as JSON: exact fractions as text."""
    if privacy is None:
        return None
    return {
        "rho1": _text(privacy.rho1),
        "rho2": _text(privacy.rho2),
        "adversary": privacy.adversary,
        # Requirements of single values are often shares of rows: three digits, so that no count can be read off them.
        "per_value": [
            [values.to_json(value), str(_digits(low, up=False)), str(_digits(high, up=True))]
            for value, (low, high) in privacy.per_value.items()
        ],
        "exempt": [values.to_json(value) for value in sorted(privacy.exempt, key=repr)],
        **({} if privacy.small_sums is None else {"small_sums": privacy.small_sums.to_dict()}),
        **({} if privacy.large_sums is None else {"large_sums": privacy.large_sums.to_dict()}),
    }


def guarantee_dict(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as JSON: what ``verify`` recomputes, exact fractions as text."""
    return {
        "basis": guarantee.basis,
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


def _digits(number: Fraction, *, up: bool) -> Fraction:
    """A probability to three significant digits, towards the weaker promise."""
    scale = Fraction(1000)
    while number * scale < 100:
        scale *= 10
    scaled = number * scale
    return Fraction(-(-scaled // 1) if up else scaled // 1) / scale


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
