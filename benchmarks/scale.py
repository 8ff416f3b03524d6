"""Peak memory and processor time of every command as tables grow: in rows, and in values of the sensitive column.

    python benchmarks/scale.py --rows 5 6 7 --values 1 4 5 6 --kept measured.jsonl
    python benchmarks/scale.py --as-kept --kept benchmarks/scale.jsonl

Each command is a process of its own under the limit that `ulimit -d` sets; what is refused is said. What was measured
is kept in a file, line by line, so that large tables can be measured later than small ones. The second line prints the
tables of docs/explanation/scale.md from what was measured for it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PIECE = 1_000_000
LONGEST = 900  # seconds of the processor
SLOWEST = 7200  # seconds by the clock, for a machine that has other work
FEW_VALUES, FEW_ROWS = 50, 1_000_000
ROWS, VALUES = (5, 6, 7, 8), (1, 4, 5, 6)  # powers of ten
COUNT = "SELECT COUNT(*) AS n FROM release WHERE age < 40 AND v < 5"
BY_PUBLIC = "SELECT age, sex, COUNT(*) AS n FROM release WHERE v < 5 GROUP BY age, sex"
BY_SENSITIVE = "SELECT v, COUNT(*) AS n FROM release GROUP BY v ORDER BY n DESC LIMIT 5"
PLACES = ("RELEASE", "UNIFORM", "FINE-GRAIN", "SMALL-DOMAIN", "LINEUP", "DESIGNED", "DECOYS", "ANATOMY", "GENERALIZE")
FILES = ("REPORT", "AUDIT")
REQUIRED = ("--sensitive", "v", "--rho2", "9/10")


def publishing(mechanism: str, *required: str) -> list[str]:
    """The words that publish by a mechanism, into a folder of its own."""
    return ["publish", "TABLE", *required, "--mechanism", mechanism, "--out", mechanism.upper(), "--quiet"]


COMMANDS: dict[str, list[str]] = {
    "publish": ["publish", "TABLE", *REQUIRED, "--out", "RELEASE", "--quiet"],
    "publish, uniform": publishing("uniform", *REQUIRED),
    "publish, designed": publishing("designed", *REQUIRED),
    "publish, fine-grain": publishing("fine-grain", *REQUIRED),
    "publish, small-domain": publishing("small-domain", *REQUIRED),
    "publish, lineup": publishing("lineup", *REQUIRED),
    "publish, decoys": publishing("decoys", "--sensitive", "v"),
    "verify": ["verify", "RELEASE"],
    "query, a count": ["query", "RELEASE", COUNT],
    "query, by public columns": ["query", "RELEASE", BY_PUBLIC],
    "query, by the sensitive column": ["query", "RELEASE", BY_SENSITIVE],
    "report, for analysts": ["report", "RELEASE", "--format", "md", "--out", "REPORT"],
    "audit": ["audit", "TABLE", "RELEASE", "--out", "AUDIT"],
    "risk": ["risk", "TABLE", "--columns", "age,sex"],
    "plan": ["plan", "TABLE", *REQUIRED, "--quiet"],
    "evaluate, one draw": [
        *("evaluate", "TABLE", *REQUIRED, "--mechanism", "uniform", "--draws", "1", "--quiet"),
    ],
}


def write_table(path: Path, rows: int, values: int, wide: bool = False) -> None:
    """A made-up table, a million rows at a time; every value occurs. A wide one has five more public columns, in which
    nearly every row is alone."""
    draw = np.random.default_rng(0)
    more = [("zip", pa.string()), ("day", pa.date32()), ("amount", pa.float64()), ("education", pa.int32())]
    own = [("age", pa.int16()), ("sex", pa.string()), ("v", pa.int64())]
    schema = pa.schema([*own, *more, ("race", pa.string())] if wide else own)
    zips = np.array([f"{number:05d}" for number in range(30_000)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, PIECE):
            size = min(PIECE, rows - start)
            columns = [
                pa.array(draw.integers(17, 91, size), pa.int16()),
                pa.array(np.array(["F", "M"])[draw.integers(0, 2, size)]),
                pa.array(np.arange(start, start + size) % values),
            ]
            if wide:
                columns += [
                    pa.array(zips[draw.integers(0, len(zips), size)]),
                    pa.array(draw.integers(0, 3_650, size).astype("datetime64[D]")),
                    pa.array(draw.exponential(2_000, size).round()),
                    pa.array(draw.integers(0, 16, size), pa.int32()),
                    pa.array(np.array(list("abcde"))[draw.integers(0, 5, size)]),
                ]
            writer.write_table(pa.table(columns, schema=schema))


def measured(words: list[str], folder: Path) -> str:
    """Processor seconds and peak megabytes of a command, or why there are none."""
    with open(folder / "said", "w+") as said:
        started = subprocess.Popen(
            [sys.executable, "-m", "deniable", *words],
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        resource.prlimit(started.pid, resource.RLIMIT_CPU, (LONGEST, LONGEST))
        begin = time.monotonic()
        while (ended := os.wait4(started.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() - begin > SLOWEST:
                started.kill()
            time.sleep(0.02)
        _, status, used = ended
        started.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = said.read().splitlines()
    if started.returncode < 0:
        return f"more than {LONGEST} s"
    if started.returncode not in (0, 1):
        needed = re.search(r"[\d.]+ [MGT]i?B", " ".join(lines))
        return "refused" if needed is None else f"refused: {needed[0]}"
    return f"{used.ru_utime + used.ru_stime:.1f} s, {used.ru_maxrss / 1024:,.0f} MB"


Size = tuple[int, int]  # rows, and values of the sensitive column


class Kept:
    """What was measured, in a file of one line each; what is there is not measured again."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        lines = file.read_text().splitlines() if file is not None and file.exists() else []
        self.cells: dict[tuple[int, int, str], str] = {
            (n, m, what): cell for n, m, what, cell in map(json.loads, lines)
        }

    def missing(self, size: Size, names: Iterable[str]) -> list[str]:
        return [what for what in names if (*size, what) not in self.cells]

    def add(self, size: Size, what: str, cell: str) -> None:
        self.cells[*size, what] = cell
        if self.file is not None:
            with self.file.open("a") as lines:
                print(json.dumps([*size, what, cell]), file=lines)


def measure(size: Size, names: Sequence[str], kept: Kept, wide: bool) -> None:
    """Every command that was not measured on a table of this size."""
    left = kept.missing(size, names)
    if not left:
        return
    with tempfile.TemporaryDirectory(prefix="deniable-scale-") as home:
        folder = Path(home)
        places = {name: str(folder / name.lower()) for name in (*PLACES, *FILES)}
        places["TABLE"] = str(folder / "table.parquet")
        write_table(Path(places["TABLE"]), *size, wide)
        for what in dict.fromkeys(["publish", *left]):  # the others ask the release that it makes
            cell = measured([places.get(word, word) for word in COMMANDS[what]], folder)
            if what in left:
                kept.add(size, what, cell)


def table(title: str, heads: Sequence[str], sizes: Sequence[Size], names: Sequence[str], kept: Kept) -> str:
    """What is kept of these sizes, a row for each command that was measured on one of them."""
    lines = [f"| {title} | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for what in names:
        cells = [kept.cells.get((*size, what)) for size in sizes]
        if any(cells):
            lines.append(f"| {what} | {' | '.join(cell or 'not measured' for cell in cells)} |")
    return "\n".join(lines)


def tables(rows: Sequence[int], values: Sequence[int], names: Sequence[str], kept: Kept) -> str:
    """The two tables: by rows, and by values, each a list of powers of ten."""
    by_rows = [(10**power, FEW_VALUES) for power in rows]
    by_values = [(FEW_ROWS, 10**power) for power in values]
    return "\n\n".join(
        (
            table(f"{FEW_VALUES} values", [f"{n:,} rows" for n, _ in by_rows], by_rows, names, kept),
            table(f"{FEW_ROWS:,} rows", [f"{m:,} values" for _, m in by_values], by_values, names, kept),
        )
    )


def main() -> None:
    """Measure what is not kept, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS, metavar="POWER", help="of ten, with 50 values")
    parser.add_argument("--values", type=int, nargs="*", default=VALUES, metavar="POWER", help="of ten, in 10^6 rows")
    parser.add_argument("--only", nargs="*", choices=[*COMMANDS], metavar="COMMAND", help="some of the commands")
    parser.add_argument("--wide", action="store_true", help="tables of eight columns instead of three")
    parser.add_argument("--kept", type=Path, default=None, help="a file of what was measured, read and added to")
    parser.add_argument("--as-kept", action="store_true", help="print what is kept, and measure nothing")
    options = parser.parse_args()
    kept, names = Kept(options.kept), options.only or [*COMMANDS]
    sizes = [*((10**power, FEW_VALUES) for power in options.rows), *((FEW_ROWS, 10**power) for power in options.values)]
    for size in () if options.as_kept else sizes:
        measure(size, names, kept, options.wide)
    print(tables(options.rows, options.values, names, kept))


if __name__ == "__main__":
    main()
