"""The house in figures, for docs/decisions/rooms.md: files, lines of code, and what the main operations walk through.

Nothing here is a speed. tests/test_house.py holds the budgets; what must not be there at all (imports that go the other
way, mechanisms that are told apart) is what tests/test_architecture.py looks for.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import deniable as dn

PACKAGE = Path(dn.__file__).parent
VERIFIER = PACKAGE.parent / "deniable_verify"
CORE = ("core", "mechanisms", "tables", "estimation", "learned", "release", "publishing", "planning")
ROWS = 5_000
PASS = ("tables/dataset.py", "_read")  # entered once for each time that rows of a table are read


def files(folder: Path = PACKAGE) -> dict[str, str]:
    """The text of every file of a package, by its path."""
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}


def of_core(texts: Mapping[str, str]) -> dict[str, str]:
    """What publishes, asks and saves: the rooms of the core, and the public face."""
    return {path: text for path, text in texts.items() if "/" not in path or path.split("/", maxsplit=1)[0] in CORE}


def lines_of_code(text: str) -> int:
    """Lines that are neither empty, nor a comment, nor of a docstring."""
    said: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            said |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in said
        for number, line in enumerate(text.splitlines(), start=1)
    )


@dataclasses.dataclass(frozen=True)
class Walk:
    """What an operation enters of the package: functions with a name, files; and how often it reads the table."""

    functions: int
    files: int
    passes: int


def walked(work: Callable[[], object]) -> Walk:
    entered: set[tuple[str, str, int]] = set()
    passes = 0
    roots = (f"{PACKAGE}/", f"{VERIFIER}/")

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal passes
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(roots) and "<" not in code.co_name:
            entered.add((code.co_filename, code.co_name, code.co_firstlineno))
            if (code.co_filename.removeprefix(roots[0]), code.co_name) == PASS and id(frame) not in frames:
                frames[id(frame)] = frame
                passes += 1

    frames: dict[int, FrameType] = {}  # generators are entered again for every batch: a frame is one pass
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return Walk(len(entered), len({file for file, *_ in entered}), passes)


def walks() -> dict[str, Walk]:
    """Of the second call: the first one imports."""
    people = {
        "sex": ["F", "M"] * (ROWS // 2),
        "age": list(range(18, 68)) * (ROWS // 50),
        "job": ["cook", "nurse", "guard", "clerk", "smith"] * (ROWS // 5),
    }
    table, domain = pa.table(people), ["cook", "nurse", "guard", "clerk", "smith"]
    named: dict[str, Any] = {"sensitive": "job", "privacy": dn.Privacy(rho2="3/4"), "mechanism": "uniform"}
    chosen: dict[str, Any] = {"sensitive": "job", "privacy": dn.Privacy(rho2="3/4"), "domain": domain}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = dn.publish(table, **named, threads=1)
        release.save(Path(folder) / "asked")
        operations: dict[str, Callable[[], object]] = {
            "publish by a named mechanism": lambda: dn.publish(table, **named, threads=1),
            "publish, mechanism left out": lambda: dn.publish(table, **chosen, threads=1),
            "publish to a folder": lambda: dn.publish(
                table, **named, threads=1, out=Path(folder) / "out", overwrite=True
            ),
            "count": lambda: release.count({"sex": "F", "job": "cook"}),
            "sql": lambda: release.sql("SELECT sex, COUNT(*) AS n FROM release WHERE job = 'cook' GROUP BY sex"),
            "verify": lambda: dn.verify(Path(folder) / "asked"),
        }
        for operation in operations.values():
            operation()
        return {name: walked(operation) for name, operation in operations.items()}


def optional_fields(texts: Mapping[str, str]) -> int:
    """Places outside their own chapters that ask whether an optional field of a part is there."""
    from deniable.core.part import Part

    names = [field.name for field in dataclasses.fields(Part) if "None" in str(field.type)]
    there = re.compile(rf"\.({'|'.join(names)}) is (not )?None")
    return sum(len(there.findall(text)) for path, text in texts.items() if path != "core/part.py")


def sizes() -> dict[str, tuple[int, int]]:
    """Files and lines of code, of the core, of the whole package, and of the verifier beside it."""
    texts = files()
    rooms = {"core": of_core(texts), "package": texts, "verifier": files(VERIFIER)}
    return {name: (len(some), sum(map(lines_of_code, some.values()))) for name, some in rooms.items()}


def rows() -> list[Mapping[str, object]]:
    texts = files()
    public = [one for one in (getattr(dn, name) for name in dir(dn)) if not inspect.ismodule(one)]
    figures: dict[str, object] = {}
    for room, (count, lines) in sizes().items():
        figures[f"{room}: files"] = count
        figures[f"{room}: lines of code, without docstrings, comments and empty lines"] = lines
    figures["optional fields of a part asked for"] = optional_fields(texts)
    figures["public names, beside modules"] = len(public)
    figures["of them without an example"] = sum(">>>" not in (inspect.getdoc(one) or "") for one in public)
    for what, walk in walks().items():
        figures[f"{what}: functions"] = walk.functions
        figures[f"{what}: files walked"] = walk.files
        if walk.passes:
            figures[f"{what}: passes over the table"] = walk.passes
    return [{"what": what, "count": count, "note": ""} for what, count in figures.items()]
