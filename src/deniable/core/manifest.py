"""The manifest: all that a stranger needs to estimate from a release and to verify it; nothing gives a row away."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from importlib import metadata, resources
from typing import Any

from deniable.core import values
from deniable.core.about import About
from deniable.core.errors import ManifestError, OptionError, is_unicode, shortened
from deniable.core.part import (
    MOST_ROWS,
    Json,
    Part,
    part_dict,
    part_of,
    part_problems,
    perturbed_names,
)
from deniable.core.privacy import Privacy
from deniable.core.promise import Guarantee
from deniable.core.sentence import sentence_of
from deniable.core.text import first_values, paragraph, shown, table, title
from deniable.core.transforms import MOST_ITEMS, MOST_STEPS, Steps, item_column, step_dict, step_of
from deniable.core.values import LARGEST_WHOLE, Labels, is_fraction, is_probability, labels_dict, labels_of, rounded

# -- The door that a manifest comes in by: whatever its schema cannot say is checked here, once, and trusted from then
# on: that names refer to something, that lists have equal lengths, that fractions are fractions and that nothing makes
# us allocate what no release needs.


DEEPEST = 32  # levels of lists and objects
LONG = 64  # items: a longer list is condensed before its schema is looked at
MOST_COLUMNS = 10_000


def require_sound(raw: Json) -> None:
    """Refuse a manifest, valid by its schema, that contradicts itself or asks for too much."""
    for problem in _problems(raw):
        raise ManifestError(f"manifest.json is damaged: {problem}.")


def require_plain(raw: Any) -> None:
    """Refuse numbers that no release has, text that is no text, and nesting without end; before anything else."""
    level = [raw]
    for _ in range(DEEPEST):
        scalars: list[Any] = []
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, list) and len(item) > LONG and {*map(type, item)} == {int}:
                scalars += [min(item), max(item)]  # long lists are of whole numbers, and there may be millions
                continue
            inside = [*item, *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else [item]
            for entry in inside:
                (deeper if isinstance(entry, dict | list) else scalars).append(entry)
        if any(_is_strange(scalar) for scalar in scalars):
            raise ManifestError("manifest.json is damaged: it holds a number or a text that no release has.")
        if not deeper:
            return
        level = deeper
    raise ManifestError(f"manifest.json is damaged: it is nested more than {DEEPEST} levels deep.")


def condensed(raw: Any) -> Any:
    """The same document to a schema that says of a list's items no more than their types and ranges, as ours do.

    Of the numbers in a long list the smallest and the largest are left, of lists in a list one that holds all of their
    items: a schema looks at every item, which takes minutes where a domain has a million values.

    >>> condensed({"keep": [*range(100)], "name": "x"})
    {'keep': [0, 99], 'name': 'x'}
    """
    if isinstance(raw, dict):
        return {name: condensed(item) for name, item in raw.items()}
    if not isinstance(raw, list) or len(raw) <= LONG:
        return [condensed(item) for item in raw] if isinstance(raw, list) else raw
    by_type: dict[type, list[Any]] = {}
    for item in raw:
        by_type.setdefault(type(item), []).append(item)
    left: list[Any] = []
    for kind, items in by_type.items():
        if kind in (int, float):
            left += [min(items), max(items)]
        elif kind is list:
            left.append(condensed([entry for item in items for entry in item]))
        else:
            left += [condensed(item) for item in (items if kind is dict else items[:1])]
    return left


def _is_strange(scalar: Any) -> bool:
    if isinstance(scalar, str):
        return not is_unicode(scalar)
    if isinstance(scalar, float):
        return not math.isfinite(scalar)
    return isinstance(scalar, int) and not -LARGEST_WHOLE <= scalar < LARGEST_WHOLE


def _problems(raw: Json) -> Iterator[str]:
    """What is wrong with a manifest, the first thing first: later checks rely on earlier ones."""
    if raw["rows"] > MOST_ROWS or len(raw["columns"]) > MOST_COLUMNS or len(raw["parts"]) > MOST_COLUMNS:
        yield "it speaks of more rows or columns than a release can have"
    names = [column["name"] for column in raw["columns"]]
    if len(set(names)) != len(names):
        yield "a column is named twice"
    yield from _roles(raw)
    yield from _files(raw)
    yield from _guarantee(raw["guarantee"])
    if raw["privacy"] is not None:
        yield from _privacy(raw["privacy"])
    for part in raw["parts"]:
        yield from part_problems(part, raw)
    yield from _labels(raw)
    yield from _recodings(raw)
    yield from _about(raw)
    yield from _items(raw)


def _roles(raw: Json) -> Iterator[str]:
    """Every sensitive column belongs to one part, and every part to sensitive columns."""
    covered = [name for part in raw["parts"] for name in part["columns"]]
    if len(set(covered)) != len(covered):
        yield "a sensitive column belongs to two parts"
    published = {column["name"]: column["role"] for column in raw["columns"]}
    sensitive = {name for name, role in published.items() if role == "sensitive"}
    if set(covered) != sensitive:
        yield "its parts are not about its sensitive columns"
    by_cell = any(part["cells_published"] for part in raw["parts"])
    if by_cell and (published.get("cell") != "cell" or len(raw["parts"]) != 1):
        yield "cells are published, and no column 'cell' of one part says which"
    if not by_cell and ("cell" in published.values() or any(len(part["cells"]) > 1 for part in raw["parts"])):
        yield "rows are of several cells, and it says that these are not published"


def _files(raw: Json) -> Iterator[str]:
    for file in (raw["data"], raw.get("lineups"), raw.get("tables"), raw.get("weights")):
        if file is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", file["file"]):
            yield "it names a data file outside the release"


def _guarantee(stated: Json) -> Iterator[str]:
    for name in ("rho1", "rho2"):
        if stated[name] is not None and not is_probability(stated[name]):
            yield f"{name} of the guarantee is no probability"
    if stated["gamma"] is not None and not (is_fraction(stated["gamma"]) and Fraction(stated["gamma"]) >= 1):
        yield "gamma of the guarantee is no ratio of probabilities"


def _privacy(required: Json) -> Iterator[str]:
    for name in ("rho1", "rho2"):
        if required[name] is not None and not is_probability(required[name]):
            yield f"{name} of the requirement is no probability"
    for entry in required["per_value"]:
        if not isinstance(entry, list) or len(entry) != 3 or not all(map(is_probability, entry[1:])):
            yield "a value's own requirement is not [value, rho1, rho2]"
            return
    for sums in (required["small_sums"], required["large_sums"]):
        if sums is not None and not all(is_probability(n) for n in sums.values() if isinstance(n, str)):
            yield "a requirement of sums is no probability"


def _labels(raw: Json) -> Iterator[str]:
    """Labels are of columns that are published, and a code has one."""
    published = {column["name"] for column in raw["columns"]}
    for column, pairs in raw.get("labels", {}).items():
        if column not in published or len({code for code, _ in pairs}) < len(pairs):
            yield "it labels a column that it does not publish, or one code twice"


def _recodings(raw: Json) -> Iterator[str]:
    """Recodings are of columns that there are, and each step is one."""
    known = _names(raw)
    for column, steps in raw.get("recoded", {}).items():
        if column not in known or column == "cell" or not 1 <= len(steps) <= MOST_STEPS + 2:
            yield "it recodes a column that it does not publish, or in too many steps"
        for step in steps:
            try:
                step_of(step)
            except OptionError as problem:
                yield f"the recoding of {shortened(column)} is none ({problem})"


def _about(raw: Json) -> Iterator[str]:
    """What is said of a release is of columns that there are, on a day that there was."""
    if "about" not in raw:
        return
    lists = {part["item"]["list"] for part in raw["parts"] if part.get("item")}
    if not set(raw["about"]["columns"]) <= _names(raw) | lists:
        yield "it describes a column that it does not publish"
    try:
        About.from_dict(raw["about"])
    except OptionError as problem:
        yield f"what it says about itself is not sound ({problem})"


def _items(raw: Json) -> Iterator[str]:
    """All parts are items of one list, or none is; each has a column of its own name, of yes and no."""
    items = [part["item"] for part in raw["parts"] if part.get("item") is not None]
    if not items:
        return
    if len(items) != len(raw["parts"]) or len(items) > MOST_ITEMS:
        yield "some of its parts are items of lists, and others are not, or there are too many"
        return
    if any({**item, "item": ""} != {**items[0], "item": ""} for item in items):
        yield "its items are of several lists"
    for part in raw["parts"]:
        item = part["item"]
        if part["columns"] != [item_column(item["list"], item["item"])] or part["types"] != ["bool"]:
            yield "an item of a list is not published as a column of its name"
        if part["domain"] != [[False], [True]] or len(part["cells"]) != 1 or part["cells"][0]["values"] != [0, 1]:
            yield "an item of a list is something else than yes or no"
    if items[0]["most"] > len(items):
        yield "more items of a list count than there are"


def _names(raw: Json) -> set[str]:
    """The columns that a manifest speaks of."""
    return {column["name"] for column in raw["columns"]} | {name for part in raw["parts"] for name in part["columns"]}


# -- The manifest: all that a stranger needs to estimate from a release and to verify it; nothing gives a row away -----


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
        tables: the file of the noisy tables and the model, where values are dealt from one.
        weights: the file of what rows count for, where they have weights.
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
    tables: DataFile | None = None
    weights: DataFile | None = None
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
        return f"<Manifest of {self.rows:,} rows, {shown(perturbed_names(self.parts))} by {self.mechanism}>"

    def _repr_html_(self) -> str:
        return title(repr(self)) + self.columns_html()

    def columns_html(self) -> str:
        """The promise, and the columns with their first values, as plain HTML."""
        rows = ((column.name, column.type, column.role, self._values_of(column.name)) for column in self.columns)
        listed = table(["column", "type", "role", "values"], rows, total=len(self.columns), what="columns")
        return paragraph(self.guarantee["sentence"]) + listed

    def _values_of(self, column: str) -> str:
        part = self.part_of(column)
        if part is None:
            return ""
        if part.range is not None:
            return f"{part.range.low} to {part.range.high}"
        values_of = self.column_domains[column]
        return f"{len(values_of):,}: {first_values(values_of)}"

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
            **({} if self.tables is None else {"tables": asdict(self.tables)}),
            **({} if self.weights is None else {"weights": asdict(self.weights)}),
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
            tables=DataFile(**raw["tables"]) if raw.get("tables") else None,
            weights=DataFile(**raw["weights"]) if raw.get("weights") else None,
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
    require_plain(raw)
    version = raw.get("format_version") if isinstance(raw, dict) else None
    if isinstance(version, int) and version != FORMAT_VERSION:
        raise ManifestError(
            f"This release has format version {version}; this deniable reads {FORMAT_VERSION}. "
            "Fix: take the deniable that wrote it."
        )
    check_schema(raw)
    require_sound(raw)
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
        "rho1": None if privacy.budget is not None else _text(privacy.rho1),
        "rho2": None if privacy.budget is not None else _text(privacy.rho2),
        **({} if privacy.budget is None else {"epsilon": str(privacy.budget)}),
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
    text = resources.files("deniable_verify").joinpath("manifest.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def check_schema(raw: Any) -> None:
    """Refuse what is not a manifest that this version can read."""
    import jsonschema

    checked = jsonschema.Draft202012Validator(schema()).iter_errors(condensed(raw))
    problem = jsonschema.exceptions.best_match(checked)
    if problem is not None:
        where = "/".join(str(part) for part in problem.absolute_path) or "the top"
        raise ManifestError(f"manifest.json is damaged at {where}: {problem.message[:200]}")
