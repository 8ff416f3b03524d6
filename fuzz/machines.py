"""Machines that nobody set up so: programs that hang, fail or speak in bytes, and an environment that lies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from unittest import mock

from fuzz.case import Case
from fuzz.options import run

PROGRAMS = ("java", "postgres", "chromium", "Rscript")
SCRIPTS = (
    "exit 1",
    "printf '\\377\\376 17.0'",
    "printf '\\377\\376 17.0' >&2",
    "echo 'openjdk version \"99999999999999999999999999.1\"' >&2",
    "echo 'openjdk version \"\"' >&2",
    "echo",
    "head -c 10000000 /dev/zero",
    "printf '\\033[2J 3.1'",
    "kill -9 $$",
)
PLACES = ("", "/", "/dev/null", "nowhere", "\udcff", "x" * 5000, "~", "/proc/1")
NAMES = ("JAVA_HOME", "SPARK_HOME", "TMPDIR", "HOME", "PATH", "LANG", "TZ", "TERM", "DENIABLE_DATA", "PYSPARK_PYTHON")
SIZES = ("", "0", "-1", "x", "1", "99999999999999999999", "40")


def cases(draw: Random, home: Path) -> Iterator[Case]:
    """`deniable doctor` among strange programs and settings."""
    programs, java = home / "programs", home / "java" / "bin"
    for folder in (programs, java):
        folder.mkdir(parents=True, exist_ok=True)
    while True:
        chosen = {name: draw.choice(SCRIPTS) for name in PROGRAMS if draw.random() < 0.6}
        for folder in (programs, java):
            for file in folder.iterdir():
                file.unlink()
            for name, script in chosen.items():
                (folder / name).write_text(f"{draw.choice(('#!/bin/sh', '#!/bin/sh', '#!/nowhere', ''))}\n{script}\n")
                (folder / name).chmod(draw.choice((0o755, 0o755, 0o644)))
        settings = {"PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"}
        for _ in range(draw.choice((0, 1, 1, 2))):
            settings[draw.choice(NAMES)] = draw.choice((*PLACES, str(java.parent)))
        if draw.random() < 0.3:
            settings[draw.choice(("COLUMNS", "LINES"))] = draw.choice(SIZES)
        words = ["doctor", *(["--json"] if draw.random() < 0.5 else [])]
        yield Case(f"{words} with {chosen}, {str(settings)[:300]}", (lambda w=words, s=settings: _run(w, s),))


def _run(words: list[str], settings: dict[str, str]) -> None:
    with mock.patch.dict(os.environ, settings):
        run(words)
