"""An independent verifier of releases: recomputes what a release promises from its folder alone.

It stands on NumPy and PyArrow, imports nothing of deniable, and is one implementation of docs/reference/manifest.md.
Every check holds, fails, or is said not to be made, and why.

    deniable-verify RELEASE [--json]
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable_verify import folder as folders
from deniable_verify.checks import BROKEN, Certificate, Check, guarded
from deniable_verify.coverage import stated_checks
from deniable_verify.folder import Folder, Rows, flat
from deniable_verify.learned import NUMBERS, numbers_check
from deniable_verify.lineups import code_rows, is_coded
from deniable_verify.manifest import FORMAT_VERSION, OF_RELEASES, files_of, sound_checks
from deniable_verify.numbers import Json
from deniable_verify.promises import promise_of
from deniable_verify.reading import DamagedError, NoReleaseError, json_of, misfits, schema
from deniable_verify.rows import row_checks, tables_alike
from deniable_verify.sentence import sentence_check
from deniable_verify.signature import SIGNATURE, signature_check
from deniable_verify.weights import weights_table

__all__ = ["Certificate", "Check", "DamagedError", "NoReleaseError", "verify", "verify_tables"]

WITH_KEY = "that the rows were really perturbed; only whoever has the table and the key can show that"
NO_FILES = "files: the release is in memory, and has none yet"
KNOWN_MECHANISM = "what {name!r} stands for, which is no mechanism of deniable; its promises are checked"


def verify(path: str | os.PathLike[str], *, signed_by: str | None = None, rows: bool = True) -> Certificate:
    """Recompute a release's certificate from its folder; ``NoReleaseError`` where there is none.

    Args:
        path: the folder of the release.
        signed_by: the fingerprint (``SHA256:..``) of the Ed25519 key that must have signed it.
        rows: whether files are read; without them it is what costs nothing before a first question.
    """
    folder = Folder.at(Path(path))
    try:
        raw = manifest_of(folder.content(folders.MANIFEST))
    except DamagedError as problem:
        return _certificate([Check("manifest", False, str(problem))])
    checks = sound_checks(raw)
    sound = all(check.holds for check in checks)
    checks += guarded("folder", lambda: folders.entries_check(folder, raw))
    if sound:
        checks += _computed(raw)
        checks += guarded("files", lambda: _file_checks(folder, raw)) if rows else []
        checks += guarded("README", lambda: readme_check(folder, raw))
    signed = folder.content(SIGNATURE) if folder.entries.get(SIGNATURE) == "file" else None
    checks += guarded("signature", lambda: signature_check(signed, folder.digests(), signed_by))
    return _certificate(checks)


def verify_tables(manifest: Mapping[str, Any], tables: Mapping[str, Any]) -> Certificate:
    """The same of a release in memory: its manifest as JSON has it, and its tables by what they are (``data``, and
    ``tables`` of a model), as Arrow tables; without them nothing is said of rows."""
    wrong = next(misfits(manifest, schema()), None)
    if wrong is not None:
        return _certificate([Check("manifest", False, wrong)])
    checks = sound_checks(manifest)
    if all(check.holds for check in checks):
        checks += _computed(manifest)
        given = {name: Rows(table.schema, table.num_rows, table=table) for name, table in tables.items()}
        checks += guarded("rows", lambda: _table_checks(manifest, given))
    return _certificate([*checks, Check("files", None, NO_FILES, required=False)])


def manifest_of(content: bytes) -> dict[str, Any]:
    """A manifest that fits its schema."""
    raw = json_of(content, folders.MANIFEST)
    version = raw.get("format_version") if isinstance(raw, dict) else None
    if type(version) is int and version != FORMAT_VERSION:
        raise DamagedError(f"the release has format version {version}; this verifier reads {FORMAT_VERSION}")
    for problem in misfits(raw, schema()):
        raise DamagedError(f"manifest.json is damaged: {problem}")
    checked: dict[str, Any] = raw
    return checked


def _certificate(checks: Iterable[Check]) -> Certificate:
    """What could not be looked at comes first."""
    made = [Check("perturbation", None, WITH_KEY, required=False), *checks]
    return Certificate(tuple(sorted(made, key=lambda check: check.holds is not None)))


def _computed(raw: Json) -> list[Check]:
    """What the manifest shows by itself."""
    checks = []
    for part in raw["parts"]:
        checks += guarded("promise", partial(promise_checks, part, raw))
    for check in OF_RELEASES:
        checks += guarded("guarantee", partial(check, raw))
    return [*checks, *guarded("sentence", lambda: sentence_check(raw)), *mechanism_check(raw)]


def promise_checks(part: Json, raw: Json) -> list[Check]:
    """The part's promise, by its kind, and whether it is what the manifest speaks of."""
    try:
        promise, kind = promise_of(part["promise"], part)
    except ValueError as problem:
        return [Check("promise", False, str(problem))]
    return [*kind.recheck(promise, part, raw), *stated_checks(promise, kind, part, raw)]


def mechanism_check(raw: Json) -> list[Check]:
    """What mechanisms from elsewhere promise is recomputed, too; what their names stand for is not known here."""
    from deniable_verify.promises import mechanisms

    name = raw["mechanism"]["name"]
    detail = KNOWN_MECHANISM.format(name=name[:40])
    return [] if name in mechanisms() else [Check("mechanism", None, detail, required=False)]


def readme_check(folder: Folder, raw: Json) -> list[Check]:
    """The README says the sentence that is promised, and what is not protected."""
    try:
        text = folder.content(folders.README, folders.LARGEST_README).decode("utf-8")
    except (DamagedError, UnicodeDecodeError) as problem:
        return [Check("README", False, f"{folders.README} is missing, or cannot be read ({type(problem).__name__})")]
    stated = raw["guarantee"]
    lines = set(text.splitlines())
    silent = [words for words in (stated["sentence"], *stated["not_protected"]) if f"- {markdown(words)}" not in lines]
    detail = f"does not say {silent[0][:60]!r}" if silent else "says what is promised, and what is not protected"
    return [Check("README", not silent, detail)]


def markdown(text: str) -> str:
    """A sentence on one line of Markdown, whose markup and unseen characters are to be read and not to work."""
    import unicodedata

    unseen = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
    shown = "".join(repr(c)[1:-1] if unicodedata.category(c) in unseen else c for c in text)
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join("\\" + c if c in "\\`*_[]#|~$" else c for c in shown).replace("\n", " ")


# -- Files and rows ----------------------------------------------------------------------------------------------------


def _file_checks(folder: Folder, raw: Json) -> Iterator[Check]:
    """Every file is the one that the manifest speaks of, and holds nothing else; then its rows."""
    named, tables, right = files_of(raw), dict[str, Rows](), True
    if "data" not in named:
        yield Check("data", False, "the manifest names no data file")
        return
    for name, file in named.items():
        checks = folders.digest_check(folder, name, file)
        if all(check.holds for check in checks):
            types = _types(name, raw)
            try:
                checks += folders.parquet_check(folder, name, file)
                tables[name] = folders.table_of(folder, name, file, types)
            except (DamagedError, pa.ArrowException) as problem:
                checks.append(
                    Check(name, False, f"{file['file']} cannot be read: {str(problem).splitlines()[0][:200]}")
                )
        right = right and all(check.holds for check in checks)
        yield from checks
    if right:
        yield from _table_checks(raw, tables)


def _types(name: str, raw: Json) -> dict[str, str]:
    """The types of a table that is a CSV file."""
    if name == "data":
        return {column["name"]: column["type"] for column in raw["columns"]}
    if name == "tables":
        return dict.fromkeys(NUMBERS, "int64")
    part = next((part for part in raw["parts"] if part.get("lineups") is not None), raw["parts"][0])
    if name == "lineups":
        by_blocks = "size" in part["lineups"]
        return dict.fromkeys(("block", "place"), "int32") if by_blocks else {
            "value": part["types"][0], "first": "int32", "last": "int32"
        }  # fmt: skip
    data = pa.schema([(column["name"], folders.type_of(column["type"])) for column in raw["columns"]])
    made = weights_table(raw, data) or {}
    return {column: "double" if isinstance(array, np.ndarray) else str(array.type) for column, array in made.items()}


def _table_checks(raw: Json, tables: Mapping[str, Rows]) -> Iterator[Check]:
    """What stands in the tables."""
    data = tables.get("data")
    if data is None:
        yield Check("rows", None, "they are not at hand")
        return
    checks = shape_check(raw, data)
    for check in (model_table_check, lineup_table_check, weight_table_check):
        checks += guarded(check.__name__.removesuffix("_check").replace("_", " "), partial(check, raw, tables))
    yield from checks
    if all(check.holds for check in checks):
        model = tables["tables"].whole(NUMBERS) if "tables" in tables else None
        numbers = None if model is None else {name: flat(column) for name, column in model.items()}
        try:
            yield from row_checks(data, raw, numbers)
        except (*BROKEN, pa.ArrowException) as problem:
            yield Check("rows", False, f"they cannot be read ({type(problem).__name__})")


def shape_check(raw: Json, data: Rows) -> list[Check]:
    """Columns, their types and how many rows."""
    names, expected = data.schema.names, [column["name"] for column in raw["columns"]]
    checks = [
        Check("columns", names == expected, f"{len(names)} columns, {len(expected)} in the manifest"),
        Check("rows", data.rows == raw["rows"], f"{data.rows:,} rows, {raw['rows']:,} in the manifest"),
    ]
    if names == expected:
        wrong = [
            name for name, column in zip(names, raw["columns"], strict=True) if not _is_type(data, name, column["type"])
        ]
        checks += [Check("types", False, f"{wrong[0]!r} is not of the type that the manifest says")] if wrong else []
    return checks


def _is_type(data: Rows, name: str, stated: str) -> bool:
    kind = data.schema.field(name).type
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return stated in (str(kind), str(plain))


def model_table_check(raw: Json, tables: Mapping[str, Rows]) -> list[Check]:
    """The noisy tables and the parameters of a model are there, whole, where there is a model."""
    parts = [part for part in raw["parts"] if part.get("learned") is not None]
    if not parts:
        return [Check("tables", False, "noisy tables, and values of no model")] if "tables" in tables else []
    if "tables" not in tables or len(parts) != 1:
        return [Check("tables", None, "the noisy tables are not at hand, or there are several models")]
    if tables["tables"].schema.names != list(NUMBERS):
        return [Check("tables", False, f"its columns are not {', '.join(NUMBERS)}")]
    numbers = {name: flat(column) for name, column in tables["tables"].whole(NUMBERS).items()}
    if any(not np.issubdtype(column.dtype, np.integer) for column in numbers.values()):
        return [Check("tables", False, "it holds something that is no whole number")]
    return numbers_check(parts[0]["learned"], len(parts[0]["domain"]), numbers)


def lineup_table_check(raw: Json, tables: Mapping[str, Rows]) -> list[Check]:
    """Codes of line-ups come with a table that says what they stand for, and nothing else does."""
    kinds = {column["name"]: column["type"] for column in raw["columns"]}
    coded = [part for part in raw["parts"] if part.get("lineups") is not None and is_coded(part["lineups"])]
    if not coded or raw["data"] is None:
        return [Check("line-ups", False, "a table of them, and rows without codes")] if "lineups" in tables else []
    (part,), types = coded[:1], _types("lineups", raw)
    if "lineups" not in tables or kinds[part["columns"][0]] != "int32":
        return [Check("line-ups", False, "rows show codes, and no table says what they stand for")]
    shown = {field.name: str(field.type) for field in tables["lineups"].schema}
    if shown != types:
        return [Check("line-ups", False, f"its columns are not {', '.join(types)} as they should be")]
    columns = tables["lineups"].whole(list(types))
    rows = list(zip(*(column.to_pylist() for column in columns.values()), strict=True))
    if "value" in types:
        values = folders.array_of([entry[0] for entry in part["domain"]], tables["lineups"].schema.field("value").type)
        known = {value: place for place, value in enumerate(values.to_pylist())}
        rows = [(known.get(value, -1), *codes) for value, *codes in rows]
    same = sorted(rows) == code_rows(part["lineups"])
    detail = f"{len(rows):,} rows, those of the design" if same else "says something else than the design"
    return [Check("table of line-ups", same, detail)]


def weight_table_check(raw: Json, tables: Mapping[str, Rows]) -> list[Check]:
    """Weights are those that the channels give, where there are some."""
    if raw["data"] is None:
        return []
    made = weights_table(raw, tables["data"].schema)
    if "weights" not in tables:
        return [] if made is None else [Check("weights", False, "the manifest names no file of them")]
    if made is None:
        return [Check("weights", False, "a file of them, and rows that have none")]
    names, shown = list(made), tables["weights"]
    same = shown.schema.names == names and tables_alike(shown.whole(names), made, names)
    detail = f"{shown.rows:,} lines, those of the channels" if same else "say something else than the channels"
    return [Check("table of weights", same, detail)]
