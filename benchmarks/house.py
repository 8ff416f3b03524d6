"""The house in figures, for docs/decisions/rooms.md: files, lines, and what one `publish` and one `count` walk through.

Nothing here is a speed. What must not be there at all (loose files, imports that go the other way, mechanisms that are
told apart) is what tests/test_architecture.py looks for.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import deniable as dn

PACKAGE = Path(dn.__file__).parent
ROWS = 5_000


def files() -> dict[str, str]:
    """The text of every file of the package, by its path."""
    return {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


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


def walked(work: Callable[[], object]) -> tuple[int, int]:
    """How many functions with a name, and files, of the package are entered."""
    entered: set[tuple[str, str, int]] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and "<" not in code.co_name:
            entered.add((code.co_filename, code.co_name, code.co_firstlineno))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return len(entered), len({file for file, *_ in entered})


def walks() -> dict[str, tuple[int, int]]:
    """Of the second call: the first one imports."""
    people = {"sex": ["F", "M"] * (ROWS // 2), "job": ["cook", "nurse", "guard", "clerk", "smith"] * (ROWS // 5)}
    table = pa.table(people)

    def publish() -> dn.Release:
        return dn.publish(table, sensitive="job", privacy=dn.Privacy(rho2="3/4"), mechanism="uniform", threads=1)

    publish().count({"sex": "F", "job": "cook"})
    release = publish()
    return {"publish": walked(publish), "count": walked(lambda: release.count({"sex": "F", "job": "cook"}))}


def rows() -> list[Mapping[str, object]]:
    texts = files()
    names = Counter(Path(path).name for path in texts if not path.endswith("__init__.py"))
    public = [one for one in (getattr(dn, name) for name in dir(dn)) if not inspect.ismodule(one)]
    figures: dict[str, object] = {
        "files": len(texts),
        "lines": sum(len(text.splitlines()) for text in texts.values()),
        "lines of code, without docstrings, comments and empty lines": sum(map(lines_of_code, texts.values())),
        "files above the rooms, beside the public face": sum("/" not in path for path in texts) - 2,
        "file names that occur twice or more": sum(count > 1 for count in names.values()),
        "public names, beside modules": len(public),
        "of them without an example": sum(">>>" not in (inspect.getdoc(one) or "") for one in public),
    }
    for what, (functions, through) in walks().items():
        figures[f"{what} walks through, functions"] = functions
        figures[f"{what} walks through, files"] = through
    return [{"what": what, "count": count, "note": ""} for what, count in figures.items()]
