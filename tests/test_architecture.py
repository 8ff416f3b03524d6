"""The rooms of ARCHITECTURE.md: who may import whom, what is named where, how long a chapter may be. One test lists
every offence."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "deniable"
TEXTS = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
LONGEST_FILE = 750

# A room may import itself and these, as ARCHITECTURE.md draws them.
CORE = ("core", "tables", "mechanisms", "estimation", "learned", "release", "planning", "publishing")
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "learned": {"core"},  # the numerics of learned releases, which mechanisms, tables and estimation call
    **{room: {"core", "learned"} for room in ("tables", "mechanisms", "estimation")},
    "release": {"core", "tables", "mechanisms", "estimation", "learned"},
    "planning": {"core", "tables", "mechanisms", "estimation", "learned"},
    "publishing": {"core", "tables", "mechanisms", "estimation", "learned", "release", "planning"},
    "collection": set(CORE),
    **{house: {"extend"} for house in ("spark", "files", "learn")},  # as a package outside would
    "report": {*CORE, "owner", "analyst"},
    "owner": {*CORE, "report", "analyst"},
    "desk": {*CORE, "owner", "report", "analyst"},
    "lab": {*CORE, "owner"},
    "analyst": {*CORE, "report", "lab"},
    "cli": {*CORE, "owner", "analyst", "report", "collection", "desk", "lab", "spark", "files", "learn"},
}
# Chapters of a house that a room below it opens when it is asked for what only that house knows.
OPENED = {
    ("publishing/advice.py", "deniable.owner.advice"),
    ("release/release.py", "deniable.files.statistical"),
    ("tables/files.py", "deniable.files"),
}
# Outside packages and the rooms that may name them; everything else is free.
ONLY_IN = {
    "duckdb": {"estimation", "release"},  # answers in SQL; a release as a database
    "sqlglot": {"estimation"},
    "pyspark": {"spark"},
    "cryptography": {"tables", "release"},  # keys of draws; signatures of releases
    "typer": {"cli"},
    "rich": {"cli"},
    "socket": {"cli", "collection", "desk"},
    "urllib": {"cli", "collection", "desk"},
    "http": {"cli", "collection"},
    "fastapi": {"collection"},
    "jinja2": {"desk"},
    "altair": {"report"},
    "sklearn": {"learn"},
    "random": set(),
}
CORE_STANDS_ON = {"numpy", "deniable", "jsonschema"}
# Names that do not say what a value holds, and files without a subject.
EMPTY_NAMES = {"found", "each", "told", "asked"}
NO_SUBJECT = {"utils", "misc", "helpers", "common"}


def room_of(path: str) -> str:
    return path.split("/", maxsplit=1)[0] if "/" in path else "face"


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if module == "deniable":
                yield from (f"{module}.{alias.name}" for alias in node.names)
            else:
                yield module


def wrong_imports(path: str, tree: ast.AST) -> Iterator[str]:
    """What a chapter may not import."""
    room = room_of(path)
    for module in imports(tree):
        package, _, inner = module.partition(".")
        if not package:
            yield f"imports {module}: imports are absolute"
        elif package == "deniable":
            other = inner.split(".")[0]
            public = not other or not (other == "extend" or (PACKAGE / other).is_dir())  # commands may use these names
            if not (room == "cli" and public) and other not in {room, *MAY_IMPORT[room]}:
                opened = {(path, module), (path, module.rpartition(".")[0])}
                if not opened & OPENED:
                    yield f"imports {module}"
        elif package in ONLY_IN and room not in ONLY_IN[package]:
            yield f"imports {package}, which is for {', '.join(sorted(ONLY_IN[package])) or 'nobody'}"
        elif room == "core" and package not in {*sys.stdlib_module_names, *CORE_STANDS_ON}:
            yield f"imports {package}: core stands on NumPy alone"


def told_apart(tree: ast.AST, classes: set[str], names: set[str]) -> Iterator[str]:
    """Where something is done to a mechanism because of its class, or its name."""
    for node in ast.walk(tree):
        used: set[object] = set()
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            used = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)} & classes
        elif isinstance(node, ast.Compare) and "mechanism" in ast.unparse(node):
            used = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)} & names
        if used:
            yield f"tells mechanisms apart: {ast.unparse(node)}"


def empty_names(tree: ast.AST) -> Iterator[str]:
    """Variables, parameters and functions with names that do not say what they hold."""
    nodes = list(ast.walk(tree))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    used |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    used |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    yield from (f"names {name!r}" for name in sorted(used) if name.lower().lstrip("_") in EMPTY_NAMES)


def offences(path: str, source: str) -> Iterator[str]:
    """Everything that is wrong with one chapter."""
    from deniable.mechanisms import MECHANISMS

    room, tree = room_of(path), ast.parse(source)
    if room == "face":
        if path not in {"__init__.py", "__main__.py", "extend.py"}:
            yield "stands outside of all rooms"
        return  # the public names come from everywhere, and nothing imports them
    if room not in MAY_IMPORT:
        yield f"is in a room without a line in MAY_IMPORT and in ARCHITECTURE.md: {room}"
        return
    if (lines := len(source.splitlines())) > LONGEST_FILE:
        yield f"has {lines} lines, more than the {LONGEST_FILE} of a chapter"
    if Path(path).stem in NO_SUBJECT:
        yield "has no subject"
    yield from wrong_imports(path, tree)
    if room != "lab":  # which plays each of them as its paper does
        yield from told_apart(tree, {MECHANISMS[name].__name__ for name in MECHANISMS} | {"Rival"}, set(MECHANISMS))
    if path != "cli/doctor.py":  # what a doctor has found is a word of its printed result
        yield from empty_names(tree)


VERIFIER = PACKAGE.parent / "deniable_verify"
MAY_NAME_IT = {"release", "owner", "collection", "analyst"}  # what calls it, and what recounts sets and amplifications


def verifier_offences(path: str, source: str) -> Iterator[str]:
    """The verifier stands on NumPy and PyArrow, and names nothing of the package that it checks."""
    for module in imports(ast.parse(source)):
        package = module.partition(".")[0]
        if package not in {*sys.stdlib_module_names, "numpy", "pyarrow", "deniable_verify"}:
            yield f"imports {module}"
    if len(source.splitlines()) > LONGEST_FILE:
        yield "is too long"


def test_the_verifier_stands_alone() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in VERIFIER.rglob("*.py")}
    assert [f"{path} {wrong}" for path, source in texts.items() for wrong in verifier_offences(path, source)] == []
    assert list(verifier_offences("a.py", "from deniable.core import values"))
    assert list(verifier_offences("a.py", "import scipy"))
    named = {
        room_of(path)
        for path, source in TEXTS.items()
        if "import deniable_verify" in source or "from deniable_verify" in source
    }
    assert named == MAY_NAME_IT


def test_the_house_is_as_architecture_draws_it() -> None:
    assert [f"{path} {wrong}" for path, source in sorted(TEXTS.items()) for wrong in offences(path, source)] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/a.py", "from deniable.mechanisms import plan"),
        ("core/a.py", "import scipy"),
        ("core/a.py", "from deniable import publish"),
        ("core/a.py", "from . import errors"),
        ("tables/a.py", "from deniable.mechanisms.uniform import Uniform"),
        ("planning/a.py", "import duckdb"),
        ("mechanisms/a.py", "import deniable.tables.dataset"),
        ("owner/a.py", "from deniable.cli import main"),
        ("planning/a.py", "from deniable.publishing.publish import publish"),
        ("release/a.py", "from deniable.owner.advice import warnings_about"),
        ("attic/a.py", ""),
        ("loose.py", ""),
        ("core/utils.py", ""),
        ("core/a.py", "\n" * (LONGEST_FILE + 1)),
        ("owner/a.py", "x = isinstance(how, Uniform)"),
        ("owner/a.py", "x = mechanism.name == 'decoys'"),
        ("owner/a.py", "def _told(): return 0"),
        ("spark/a.py", "from deniable.core.errors import TableError"),
        ("core/a.py", "from deniable.extend import Channel"),
    ],
)
def test_an_offence_is_seen(path: str, source: str) -> None:
    assert list(offences(path, source))
