"""The rooms of ARCHITECTURE.md: who may import whom, what is named where, how long a file may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "deniable"
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FILE = 320

# A room may import itself and the rooms before it, as ARCHITECTURE.md draws them.
FOUR = {"mechanisms", "estimation", "audit", "engines"}
MAY_IMPORT: dict[str, set[str]] = {"core": set(), **{room: {"core"} for room in FOUR}}
for _room, _below in (
    ("planning", FOUR),
    ("lab", {"planning"}),
    ("release", FOUR),
    ("learn", {"release"}),
    ("publishing", {"release", "planning"}),
    ("collection", {"publishing"}),
    ("owner", {"publishing"}),
    ("report", {"owner", "collection", "learn", "lab"}),
    ("cli", {"report"}),
):
    MAY_IMPORT[_room] = _below | {"core"}.union(*(MAY_IMPORT[below] for below in _below))
# Outside packages and the rooms that may name them; everything else is free.
ONLY_IN = {
    "duckdb": {"engines"},
    "pyspark": {"engines"},
    "cryptography": {"engines", "release"},  # keys of draws; signatures of releases
    "typer": {"cli"},
    "rich": {"cli"},
    "socket": {"cli", "collection"},
    "urllib": {"cli", "collection"},
    "http": {"cli", "collection"},
    "fastapi": {"collection"},
    "altair": {"report"},
    "random": set(),
}
# Names that do not say what a value holds.
EMPTY_NAMES = {"found", "each", "told", "asked"}
CORE_STANDS_ON = {"numpy", "deniable", "jsonschema"}


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "face"


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            if module in ("deniable", "deniable.tables"):
                yield from (f"{module}.{alias.name}" for alias in node.names)
            else:
                yield module


def offences(source: str, room: str) -> list[str]:
    """What a file in this room may not import."""
    wrong = []
    for module in imports(ast.parse(source)):
        package, _, inner = module.partition(".")
        if package == "deniable":
            other = inner.split(".")[0]
            if room == "cli" and (not other or not (PACKAGE / other).is_dir()):  # commands may use the public names
                continue
            if other not in {room, *MAY_IMPORT[room]}:
                wrong.append(f"{room} imports {module}")
            elif inner.startswith("engines.local") and room != "engines":
                wrong.append(f"{room} names {module}: only engines/ may")
        elif package in ONLY_IN and room not in ONLY_IN[package]:
            wrong.append(f"{room} imports {package}")
    return wrong


def test_there_are_no_loose_files_and_every_room_is_known() -> None:
    loose = {path.name for path in FILES if room_of(path) == "face"}
    assert loose == {"__init__.py", "__main__.py"}
    rooms = {room_of(path) for path in FILES} - {"face"}
    assert rooms <= set(MAY_IMPORT), "a new room needs a line in MAY_IMPORT and in ARCHITECTURE.md"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_flow_one_way_and_engines_keep_their_packages(path: Path) -> None:
    room = room_of(path)
    if room == "face":  # the public names: they come from everywhere, and nothing imports them
        return
    assert offences(path.read_text(encoding="utf-8"), room) == []


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


def told_apart(source: str, classes: set[str], names: set[str]) -> list[str]:
    """Where something is done to a mechanism because of its class, or its name."""
    places = []
    for node in ast.walk(ast.parse(source)):
        used: set[object] = set()
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            used = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)} & classes
        elif isinstance(node, ast.Compare) and "mechanism" in ast.unparse(node):
            used = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)} & names
        if used:
            places.append(ast.unparse(node))
    return places


def test_a_mechanism_says_what_it_is_and_is_not_told_apart() -> None:
    from deniable.mechanisms import MECHANISMS

    classes = {MECHANISMS[name].__name__ for name in MECHANISMS} | {"Rival"}
    places = {
        path.relative_to(PACKAGE).as_posix(): told_apart(path.read_text(encoding="utf-8"), classes, set(MECHANISMS))
        for path in FILES
    }
    assert not {path: checks for path, checks in places.items() if checks}
    assert told_apart("x = isinstance(how, Uniform)", classes, set()) == ["isinstance(how, Uniform)"]
    assert told_apart("x = mechanism.name == 'decoys'", classes, {"decoys"}) == ["mechanism.name == 'decoys'"]


def test_arrays_are_named_in_one_place() -> None:
    """An alias elsewhere is of a kind of its own: none means what core/arrays.py already has a name for."""
    named = [
        line.partition(" = ")
        for line in (PACKAGE / "core" / "arrays.py").read_text(encoding="utf-8").splitlines()
        if " = npt.NDArray" in line
    ]
    kinds = {kind.partition("  #")[0] for name, _, kind in named if name != "Codes"}
    aliases = [
        (path.name, line)
        for path in FILES
        for line in path.read_text(encoding="utf-8").splitlines()
        if path.name != "arrays.py" and any(f" = {kind}" in line and line[0].isupper() for kind in kinds)
    ]
    assert len(kinds) > 4
    assert aliases == [("condition_rows.py", "Rows = npt.NDArray[np.int32]")]  # places of rows, and not cells


def empty_names(source: str) -> set[str]:
    """Variables, parameters and functions with names that do not say what they hold."""
    nodes = list(ast.walk(ast.parse(source)))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    used |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    used |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {name for name in used if name.lower().lstrip("_") in EMPTY_NAMES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_names_say_what_they_hold(path: Path) -> None:
    if room_of(path) != "cli" or path.stem != "doctor":  # what a doctor has found is a word of its printed result
        assert empty_names(path.read_text(encoding="utf-8")) == set()


def test_the_check_sees_an_empty_name() -> None:
    assert empty_names("def _told(each): return found") == {"_told", "each", "found"}


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("core", "from deniable.mechanisms import plan"),
        ("engines", "from deniable.mechanisms.uniform import Uniform"),
        ("estimation", "import duckdb"),
        ("mechanisms", "import deniable.tables.local"),
        ("audit", "from deniable import publish"),
        ("evaluation", "from deniable.cli import main"),
        ("planning", "from deniable.publishing.publish import publish"),
        ("release", "from deniable.tables.storage import digest"),
        ("release", "from deniable.tables import local"),
        ("core", "from deniable import publish"),
    ],
)
def test_the_check_sees_a_wrong_import(room: str, line: str) -> None:
    assert offences(line, room)
