"""The rooms of ARCHITECTURE.md: who may import whom, what is named where, how long a file may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "deniable"
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FILE = 320

# A room may import itself and these. What stands at the top (publishing, release, ...) joins rooms and may import all
# of them but those that face the user.
MAY_IMPORT = {
    "core": set(),
    "mechanisms": {"core"},
    "estimation": {"core"},
    "audit": {"core"},
    "engines": {"core"},
    "learn": {"core", "estimation"},
    "evaluation": {"core", "learn", "mechanisms", "estimation", "audit", "engines", "top"},
    "report": {"core", "mechanisms", "estimation", "audit", "engines", "evaluation", "top"},
    "collection": {"core", "mechanisms", "estimation", "audit", "engines", "evaluation", "report", "top"},
    "cli": {"core", "mechanisms", "estimation", "audit", "engines", "evaluation", "report", "collection", "top"},
    "top": {"core", "mechanisms", "estimation", "audit", "engines", "evaluation", "report"},
}
# Outside packages and the rooms that may name them; everything else is free.
ONLY_IN = {
    "duckdb": {"engines"},
    "pyspark": {"engines"},
    "cryptography": {"engines"},
    "typer": {"cli"},
    "rich": {"cli"},
    "socket": {"cli", "collection"},
    "urllib": {"cli", "collection"},
    "http": {"cli", "collection"},
    "fastapi": {"collection"},
    "altair": {"evaluation", "report"},
    "random": set(),
}
CORE_STANDS_ON = {"numpy", "deniable", "jsonschema"}


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    if parts[-1] == "__main__.py":  # the door of the command line
        return "cli"
    return parts[0] if len(parts) > 1 else "top"


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            yield from (f"deniable.{alias.name}" for alias in node.names) if module == "deniable" else (module,)


def room_named(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (PACKAGE / parts[1]).is_dir() else "top"


def offences(source: str, room: str) -> list[str]:
    """What a file in this room may not import."""
    found = []
    for module in imports(ast.parse(source)):
        package = module.split(".")[0]
        if package == "deniable":
            other = room_named(module)
            if other not in {room, *MAY_IMPORT[room]}:
                found.append(f"{room} imports {module}")
        elif package in ONLY_IN and room not in ONLY_IN[package]:
            found.append(f"{room} imports {package}")
    return found


def test_every_room_is_known() -> None:
    rooms = {room_of(path) for path in FILES}
    assert rooms <= set(MAY_IMPORT), "a new room needs a line in MAY_IMPORT and in ARCHITECTURE.md"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_flow_one_way_and_engines_keep_their_packages(path: Path) -> None:
    assert offences(path.read_text(encoding="utf-8"), room_of(path)) == []


def test_core_stands_on_numpy_alone() -> None:
    import sys

    used = {
        module.split(".")[0]
        for path in (PACKAGE / "core").rglob("*.py")
        for module in imports(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert used - set(sys.stdlib_module_names) <= CORE_STANDS_ON


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    assert path.stem not in {"utils", "misc", "helpers", "common"}


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("core", "from deniable.mechanisms import plan"),
        ("engines", "from deniable.mechanisms.uniform import Uniform"),
        ("estimation", "import duckdb"),
        ("mechanisms", "import deniable.engines.local"),
        ("audit", "from deniable import publish"),
        ("evaluation", "from deniable.cli import main"),
    ],
)
def test_the_check_sees_a_wrong_import(room: str, line: str) -> None:
    assert offences(line, room)
