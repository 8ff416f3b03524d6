"""A record for the data protection officer: what was published from what, by which program, and who approved it."""

from __future__ import annotations

import datetime
import hashlib
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from deniable.core.html import shown
from deniable.core.recode import said
from deniable.report.evidence import Evidence
from deniable.report.page import Block, Section, Text
from deniable.report.tables import Kind, Table

PACKAGES = ("deniable", "numpy", "pyarrow", "duckdb", "cryptography")
BLANK = "_" * 24
TO_FILL = ("Approved by", "Function", "Date", "Signature", "Data protection officer", "Comments")


@dataclass(frozen=True)
class Origin:
    """Where a report comes from.

    Attributes:
        files: the original table: a file's name, and the SHA-256 of what is in it.
        command: what was run to write the report.
        date: when, in UTC.
    """

    files: tuple[tuple[str, str], ...]
    command: str
    date: str

    @classmethod
    def of(cls, files: Sequence[str], words: Sequence[str]) -> Origin:
        """Of a report that is written now, about a table in these files, by a command of these words."""
        digests = tuple((file, _digest(Path(file))) for file in files)
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        return cls(digests, shlex.join(words), now)


def record_section(evidence: Evidence, origin: Origin | None) -> Section:
    """Date, table, digest, command, versions, columns with their roles, and lines to fill in."""
    manifest = evidence.manifest
    rows = [
        ("Release", shown(manifest.name)),
        ("Mechanism", f"{manifest.mechanism} {_options(manifest.options)}".strip()),
        ("Required", _required(manifest.privacy)),
        ("Made with", f"{manifest.software.get('name', 'deniable')} {manifest.software.get('version', '')}"),
    ]
    if origin is not None:
        rows = [
            ("Report written", origin.date),
            *((f"Table {shown(file, 200)}", f"SHA-256 {digest}") for file, digest in origin.files),
            ("Command", origin.command),
            *rows,
            ("Versions", _versions()),
        ]
    if manifest.data is not None:
        rows.append((f"Published file {manifest.data.file}", f"SHA-256 {manifest.data.sha256}"))
    columns: dict[str, Kind] = {"column": "text", "role": "text", "type": "text", "made coarser": "text"}
    listed = [
        (one.name, one.role, one.type, said(manifest.recoded[one.name]) if one.name in manifest.recoded else "no")
        for one in manifest.columns
    ]
    about: dict[str, Kind] = {"what": "text", "entry": "text"}
    blocks: tuple[Block, ...] = (
        Text("For the data protection officer. Nothing of it stands in the release but what the release says itself."),
        Table.of("What was published, and how.", about, rows),
        Table.of("Every published column and its role.", columns, listed),
        Table.of("To be filled in.", about, [(what, BLANK) for what in TO_FILL]),
    )
    return Section("record", "Record", blocks)


def _options(options: object) -> str:
    known = options.items() if isinstance(options, dict) else ()
    listed = [f"{name}={shown(str(value), 60)}" for name, value in known if value not in (None, "", {}, [])]
    return f"({', '.join(listed)})" if listed else ""


def _required(privacy: object) -> str:
    if not isinstance(privacy, dict):
        return "nothing"
    own = privacy.get("per_value") or []
    stated = [f"{name} = {privacy[name]}" for name in ("rho1", "rho2") if privacy.get(name) is not None]
    stated += [f"{len(own):,} values with a requirement of their own"] if own else []
    return f"{', '.join(stated)}; adversary {privacy['adversary']}"


def _versions() -> str:
    versions = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(versions)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
