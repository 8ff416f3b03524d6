"""`deniable doctor`: what this machine has, and what is missing for what."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from deniable.cli import console
from deniable.core import memory

OLDEST_SPARK = 4
SPARE_BYTES = 2**30  # of temporary space: less is said
POSTGRES = "/usr/lib/postgresql/*/bin/postgres"  # Debian keeps the server off the PATH
_ANSWER_SECONDS = 7  # with four programs that hang, less than half a minute


@dataclass(frozen=True)
class Finding:
    """One thing that this machine has, or lacks.

    Attributes:
        what: the thing.
        found: its version or size; None where it is missing.
        enough: whether it can be used.
        needed_for: what it is needed for.
        fix: how to get it, where it cannot be used.
    """

    what: str
    found: str | None
    enough: bool
    needed_for: str
    fix: str = ""


def doctor(as_json: console.AsJson = False) -> None:
    """Say what this machine has, and what is missing for what.

    Publishing, asking and verifying on this machine need nothing but deniable. Everything else is said with what it is
    for. The exit code is 0, whatever is missing.
    """
    things = findings()
    if as_json:
        console.emit({"findings": [asdict(one) for one in things]})
        return
    state = ["ok" if one.enough else "missing" if one.found is None else "not enough" for one in things]
    rows = [(now, one.what, one.found or "-", one.needed_for) for now, one in zip(state, things, strict=True)]
    console.show_table(["", "what", "found", "needed for"], rows)
    for one in things:
        if not one.enough:
            console.say(f"{one.what}: {one.fix}")


def findings() -> list[Finding]:
    """Everything that is looked at."""
    return [*_machine(), *_spark(), *_packages(), *_programs()]


def _machine() -> list[Finding]:
    whole = memory.of_the_machine()
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    return [
        Finding("deniable", _version("deniable"), True, "everything"),
        Finding("Python", platform.python_version(), True, "everything"),
        Finding("cores", str(os.cpu_count() or 1), True, "threads of publish"),
        Finding("memory", memory.in_words(whole), True, "tables: what needs more is refused"),
        Finding(
            "temporary space",
            f"{memory.in_words(free)} in {folder}",
            free >= SPARE_BYTES,
            "Spark, which shuffles through files (publish itself writes beside its output)",
            f"less than {memory.in_words(SPARE_BYTES)} is free: free some, or set TMPDIR to another folder.",
        ),
    ]


def _spark() -> list[Finding]:
    from deniable.spark.tasks import OLDEST_JAVA, java_version

    java, spark = java_version(), _version("pyspark")
    first = None if spark is None else int(re.match(r"\d*", spark)[0] or 0)  # type: ignore[index]
    return [
        Finding(
            "Java",
            None if java is None else str(java),
            java is not None and java >= OLDEST_JAVA,
            "--engine spark",
            f"install Java {OLDEST_JAVA} or newer (Debian: openjdk-17-jre-headless), or set JAVA_HOME.",
        ),
        Finding(
            "Spark",
            spark,
            first is not None and first >= OLDEST_SPARK,
            "--engine spark, tables on a cluster",
            "pip install 'deniable[spark]'",
        ),
    ]


def _packages() -> list[Finding]:
    wanted = [
        ("altair", "report", "deniable report, charts of evaluate"),
        ("vl-convert-python", "report", "deniable report, charts of evaluate"),
        ("scikit-learn", "learn", "classifiers (deniable.learn)"),
        ("pyreadstat", "files", "tables of SPSS, Stata and SAS"),
        ("openpyxl", "files", "Excel workbooks"),
        ("fastapi", "collect", "deniable collect serve"),
        ("uvicorn", "collect", "deniable collect serve"),
        ("psycopg", "collect", "answers of a survey in PostgreSQL"),
    ]
    return [
        Finding(name, _version(name), _version(name) is not None, purpose, f"pip install 'deniable[{extra}]'")
        for name, extra, purpose in wanted
    ]


def _programs() -> list[Finding]:
    servers = [shutil.which("postgres"), *map(str, sorted(Path("/").glob(POSTGRES.lstrip("/"))))]
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    programs = [
        ("browser", browser, "tests of pages (reports, surveys)", "install Chromium (Debian: chromium)."),
        ("PostgreSQL", next(filter(None, servers), None), "a survey's answers beyond SQLite, on this machine",
         "install it (Debian: postgresql), or name a server elsewhere."),
        ("R", shutil.which("Rscript"), "releases in R (docs/how-to/into-other-tools.md)",
         "install it (Debian: r-base-core)."),
    ]  # fmt: skip
    return [_program(name, place, purpose, fix) for name, place, purpose, fix in programs]


def _program(name: str, place: str | None, purpose: str, fix: str) -> Finding:
    version = None if place is None else _answer([place, "--version"])
    return Finding(name, version, version is not None, purpose, fix)


def _answer(command: Sequence[str]) -> str | None:
    """The number in what a program says of its version; None where it does not run."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_ANSWER_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    said = (done.stdout + done.stderr)[:10_000].decode(errors="replace")  # programs speak in any encoding
    number = re.search(r"\d{1,9}(\.\d{1,9})*", said)
    return number[0] if number else "unknown"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
