"""Print all benchmarks as one table: `make bench`, or `python benchmarks/run.py NAME...` for some of them.

A benchmark is a module beside this one with a function `rows()` that gives mappings with the keys `what` (what was
measured), `seconds`, `ratio` (to what the note says), others where they help, and `note` (why something was skipped).
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent


def modules(names: list[str]) -> Iterator[ModuleType]:
    """The benchmarks by name, all of them when none is named."""
    known = {path.stem: path for path in sorted(HERE.glob("*.py")) if path.name != Path(__file__).name}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"No benchmark is called {unknown[0]!r}. Choose from: {', '.join(known)}.")
    for name in names or known:
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", known[name])
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        if hasattr(module, "rows"):
            yield module


def printed(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else "" if cell is None else str(cell)


def main() -> None:
    measured: list[Mapping[str, object]] = []
    start = time.perf_counter()
    for module in modules(sys.argv[1:]):
        print(f"[{time.perf_counter() - start:6.1f} s] {module.__file__}", file=sys.stderr)
        measured += module.rows()
    columns = [*dict.fromkeys(key for row in measured for key in row if key != "note"), "note"]
    table = Table(*columns, box=None, pad_edge=False)
    for row in measured:
        table.add_row(*(printed(row.get(column)) for column in columns))
    Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 200).print(table)


if __name__ == "__main__":
    main()
