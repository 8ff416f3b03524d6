"""The manifest: all that a stranger needs to estimate from a release and to verify it; nothing gives a row away."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from importlib import metadata, resources
from typing import Any

from deniable.core import html, values
from deniable.core.about import About
from deniable.core.errors import ManifestError
from deniable.core.formats import soundness
from deniable.core.guarantee import Guarantee
from deniable.core.labels import Labels, labels_dict, labels_of
from deniable.core.part import Part, part_dict, part_of, perturbed_names
from deniable.core.privacy import Privacy
from deniable.core.probability import rounded
from deniable.core.recode import Steps, step_dict, step_of
from deniable.core.sentence import sentence_of

FORMAT = "deniable-release"
FORMAT_VERSION = 2


@dataclass(frozen=True)
class Column:
    """A column of the published table. Role: ``public``, ``sensitive`` or ``cell``."""

    name: str
    type: str
    role: str


ROW_NUMBER, ROW_ID, PERSON_AND_VALUE = "row number", "row id", "person and value"  # what a row's draws depend on


@dataclass(frozen=True)
class Randomness:
    """Where the draws came from: a seed, which whoever knows can undo, and a series, which is about the same people."""

    source: str
    seed: int | None
    shuffled: bool
    row_identity: str
    series: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        raw = {**asdict(self), "series": list(self.series)}
        return raw if self.series else {name: raw[name] for name in raw if name != "series"}

    @property
    def by_person(self) -> bool:
        """Whether rows of one name that hold the same value are published alike."""
        return self.row_identity == PERSON_AND_VALUE


@dataclass(frozen=True)
class DataFile:
    """A published table's file, and the digest that ties the manifest to it."""

    file: str
    format: str
    sha256: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Manifest:
    """A release's manifest.

    Attributes:
        name: of the release; part of the derivation of its draws.
        software: what wrote it.
        mechanism, options: what the owner chose, for the record; parts say what follows from it.
        rows: how many are published.
        columns: of the published table.
        parts: what was perturbed together, and how.
        privacy, guarantee: what was required, and what is promised, as JSON has them.
        randomness: where the draws came from.
        data: the file of the published table; None as long as it is in memory.
        lineups: the file of the table of line-ups, where rows show them by codes.
        recoded: the columns that were made coarser before anything else, and how.
        labels: what the codes of a column stand for, where the table that was published said it.
        about: who published it and when, what columns mean, which errors to expect.
    """

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
    lineups: DataFile | None = None
    recoded: Steps = field(default_factory=dict)
    labels: Mapping[str, Labels] = field(default_factory=dict)
    about: About | None = None

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        """The columns that were perturbed."""
        return tuple(name for part in self.parts for name in part.columns)

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The columns that are published as they were."""
        return tuple(column.name for column in self.columns if column.role == "public")

    @property
    def types(self) -> dict[str, str]:
        """Column name -> the name of its Arrow type."""
        known = {name: kind for part in self.parts for name, kind in zip(part.columns, part.types, strict=True)}
        return {**known, **{column.name: column.type for column in self.columns}}

    @cached_property
    def column_domains(self) -> dict[str, tuple[Hashable, ...]]:
        """Each sensitive column's own values, in the order of first appearance in the domain."""
        return {
            name: tuple(dict.fromkeys(part.column_values(name))) if len(part.columns) > 1 else part.domain
            for part in self.parts
            for name in part.columns
        }

    def part_of(self, column: str) -> Part | None:
        """The part that ``column`` belongs to; None for a public column."""
        return next((part for part in self.parts if column in part.columns), None)

    # -- for people ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Manifest of {self.rows:,} rows, {html.shown(perturbed_names(self.parts))} by {self.mechanism}>"

    def _repr_html_(self) -> str:
        return html.title(repr(self)) + self.columns_html()

    def columns_html(self) -> str:
        """The promise, and the columns with their first values, as plain HTML."""
        rows = ((column.name, column.type, column.role, self._values_of(column.name)) for column in self.columns)
        listed = html.table(["column", "type", "role", "values"], rows, total=len(self.columns), what="columns")
        return html.paragraph(self.guarantee["sentence"]) + listed

    def _values_of(self, column: str) -> str:
        part = self.part_of(column)
        if part is None:
            return ""
        if part.range is not None:
            return f"{part.range.low} to {part.range.high}"
        values_of = self.column_domains[column]
        return f"{len(values_of):,}: {html.first_values(values_of)}"

    # -- JSON ---------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As JSON of the present format has it."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "software": dict(self.software),
            "name": self.name,
            "mechanism": {"name": self.mechanism, "options": values.plain(self.options)},
            "rows": self.rows,
            "columns": [asdict(column) for column in self.columns],
            "parts": [part_dict(part) for part in self.parts],
            "privacy": None if self.privacy is None else dict(self.privacy),
            "guarantee": dict(self.guarantee),
            "randomness": self.randomness.to_dict(),
            "data": None if self.data is None else asdict(self.data),
            **({} if self.lineups is None else {"lineups": asdict(self.lineups)}),
            **({"recoded": self._recoded_dict()} if self.recoded else {}),
            **({"labels": labels_dict(self.labels)} if self.labels else {}),
            **({} if self.about is None else {"about": self.about.to_dict()}),
        }

    def _recoded_dict(self) -> dict[str, Any]:
        return {column: [step_dict(step) for step in steps] for column, steps in self.recoded.items()}

    def to_json(self) -> str:
        """The text of ``manifest.json``."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """The manifest in a ``text``, checked against the schema; errors say what is wrong and where."""
        return cls.from_dict(read_json(text))

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Manifest:
        """The manifest in ``raw``, JSON of the present format."""
        return cls(
            name=raw["name"],
            software=raw["software"],
            mechanism=raw["mechanism"]["name"],
            options=raw["mechanism"]["options"],
            rows=raw["rows"],
            columns=tuple(Column(**column) for column in raw["columns"]),
            parts=tuple(part_of(part) for part in raw["parts"]),
            privacy=raw["privacy"],
            guarantee=raw["guarantee"],
            randomness=Randomness(**{**raw["randomness"], "series": tuple(raw["randomness"].get("series", ()))}),
            data=None if raw["data"] is None else DataFile(**raw["data"]),
            lineups=DataFile(**raw["lineups"]) if raw.get("lineups") else None,
            recoded={column: tuple(map(step_of, steps)) for column, steps in raw.get("recoded", {}).items()},
            labels=labels_of(raw.get("labels", {})),
            about=About.from_dict(raw["about"]) if "about" in raw else None,
        )


def read_json(text: str) -> dict[str, Any]:
    """The text of a manifest as JSON of the present format, checked against its schema."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ManifestError(f"manifest.json is not JSON{line}: the release is damaged.") from None
    soundness.require_plain(raw)
    version = raw.get("format_version") if isinstance(raw, dict) else None
    if isinstance(version, int) and version != FORMAT_VERSION:
        raise ManifestError(
            f"This release has format version {version}; this deniable reads {FORMAT_VERSION}. "
            "Fix: take the deniable that wrote it."
        )
    check_schema(raw)
    soundness.require_sound(raw)
    checked: dict[str, Any] = raw
    return checked


def software() -> dict[str, str]:
    """What writes a manifest."""
    return {"name": "deniable", "version": _version()}


@cache
def _version() -> str:
    """Of the installed package; looked up once, since it is read from a file."""
    return metadata.version("deniable")


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
            [values.to_json(value), str(rounded(low, up=False)), str(rounded(high, up=True))]
            for value, (low, high) in privacy.per_value.items()
        ],
        "exempt": [values.to_json(value) for value in sorted(privacy.exempt, key=repr)],
        "small_sums": None if privacy.small_sums is None else privacy.small_sums.to_dict(),
        "large_sums": None if privacy.large_sums is None else privacy.large_sums.to_dict(),
    }


def with_sentence(manifest: Manifest) -> Manifest:
    """A manifest of rows, with the sentence that its parts give."""
    computed = sentence_of(manifest.parts, manifest.guarantee["adversary"])
    return replace(manifest, guarantee={**manifest.guarantee, "sentence": computed})


def guarantee_dict(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as JSON, but for its promises, which stand with their parts; exact fractions as text."""
    return {
        "adversary": guarantee.adversary,
        "rho1": _text(guarantee.rho1),
        "rho2": _text(guarantee.rho2),
        "gamma": _text(guarantee.gamma),
        "epsilon": None if guarantee.gamma is None else guarantee.epsilon,
        "sentence": str(guarantee),
        "also": list(guarantee.also),
        "not_protected": list(guarantee.not_protected),
    }


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


@cache
def schema() -> dict[str, Any]:
    """The published JSON Schema of ``manifest.json``."""
    text = resources.files("deniable.core.formats").joinpath("format2.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def check_schema(raw: Any) -> None:
    """Refuse what is not a manifest that this version can read."""
    import jsonschema

    checked = jsonschema.Draft202012Validator(schema()).iter_errors(soundness.condensed(raw))
    problem = jsonschema.exceptions.best_match(checked)
    if problem is not None:
        where = "/".join(str(part) for part in problem.absolute_path) or "the top"
        raise ManifestError(f"manifest.json is damaged at {where}: {problem.message[:200]}")
