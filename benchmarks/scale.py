"""Peak memory and processor time of every command as tables grow: in rows, and in values of the sensitive column.

    python benchmarks/scale.py --rows 5 7 --values 1 6 --kept measured.jsonl > table.md

Each command is a process of its own under the ceiling that `--memory` sets; what is refused is said. What was measured
is kept in a file, line by line, so that large tables can be measured later than small ones. The tables it prints are
those of docs/explanation/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
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
COUNT = "SELECT COUNT(*) AS n FROM release WHERE age < 40 AND v < 5"
BY_PUBLIC = "SELECT age, sex, COUNT(*) AS n FROM release WHERE v < 5 GROUP BY age, sex"
BY_SENSITIVE = "SELECT v, COUNT(*) AS n FROM release GROUP BY v ORDER BY n DESC LIMIT 5"
PLACES = (
    "RELEASE",
    "UNIFORM",
    "FINE",
    "SMALL",
    "LINEUP",
    "DESIGNED",
    "DECOYS",
    "ANATOMY",
    "GENERALIZED",
    "REPORT",
    "AUDIT",
)
COMMANDS: dict[str, list[str]] = {
    "publish": ["publish", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--out", "RELEASE", "--quiet"],
    "publish, uniform": [
        *("publish", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--mechanism", "uniform"),
        *("--out", "UNIFORM", "--quiet"),
    ],
    "publish, fine-grain": [
        *("publish", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--mechanism", "fine-grain"),
        *("--out", "FINE", "--quiet"),
    ],
    "publish, small-domain": [
        *("publish", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--mechanism", "small-domain"),
        *("--out", "SMALL", "--quiet"),
    ],
    "publish, lineup": [
        *("publish", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--mechanism", "lineup"),
        *("--out", "LINEUP", "--quiet"),
    ],
    "publish, designed": [
        *("publish", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--mechanism", "designed"),
        *("--out", "DESIGNED", "--quiet"),
    ],
    "publish, decoys": [
        *("publish", "TABLE", "--sensitive", "v", "--mechanism", "decoys"),
        *("--out", "DECOYS", "--quiet"),
    ],
    "publish, anatomy": [
        *("publish", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--mechanism", "anatomy"),
        *("--out", "ANATOMY", "--quiet"),
    ],
    "publish, generalize": [
        *("publish", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--mechanism", "generalize"),
        *("--out", "GENERALIZED", "--quiet"),
    ],
    "verify": ["verify", "RELEASE"],
    "query, a count": ["query", "RELEASE", COUNT],
    "query, by public columns": ["query", "RELEASE", BY_PUBLIC],
    "query, by the sensitive column": ["query", "RELEASE", BY_SENSITIVE],
    "report, for analysts": ["report", "RELEASE", "--format", "md", "--out", "REPORT"],
    "audit": ["audit", "TABLE", "RELEASE", "--out", "AUDIT"],
    "risk": ["risk", "TABLE", "--columns", "age,sex"],
    "plan": ["plan", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--quiet"],
    "evaluate, one draw": [
        *("evaluate", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--mechanism", "uniform"),
        *("--draws", "1", "--quiet"),
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
        return f"refused: {(lines or ['?'])[-1].removeprefix('Error: ')}"
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


def measure(size: Size, names: Sequence[str], memory: str | None, kept: Kept, wide: bool) -> None:
    """Every command that was not measured on a table of this size."""
    left = kept.missing(size, names)
    if not left:
        return
    with tempfile.TemporaryDirectory(prefix="deniable-scale-") as home:
        folder = Path(home)
        places = {name: str(folder / name.lower()) for name in PLACES}
        places["TABLE"] = str(folder / "table.parquet")
        write_table(Path(places["TABLE"]), *size, wide)
        for what in dict.fromkeys(["publish", *left]):  # the others ask the release that it makes
            limited = [] if memory is None else ["--memory", memory]
            cell = measured([*(places.get(word, word) for word in COMMANDS[what]), *limited], folder)
            if what in left:
                kept.add(size, what, cell)


def main() -> None:
    """Print two tables: by rows, and by values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs=2, default=(5, 8), metavar="POWER", help="10^a to 10^b rows")
    parser.add_argument("--values", type=int, nargs=2, default=(1, 6), metavar="POWER", help="10^a to 10^b values")
    parser.add_argument("--only", nargs="*", choices=[*COMMANDS], metavar="COMMAND", help="some of the commands")
    parser.add_argument("--memory", default=None, help="a ceiling for every command")
    parser.add_argument("--wide", action="store_true", help="tables of eight columns instead of three")
    parser.add_argument("--kept", type=Path, default=None, help="a file of what was measured, read and added to")
    options = parser.parse_args()
    kept, names = Kept(options.kept), options.only or [*COMMANDS]
    by_rows = [(10**power, FEW_VALUES) for power in range(options.rows[0], options.rows[1] + 1)]
    by_values = [(FEW_ROWS, 10**power) for power in range(options.values[0], options.values[1] + 1)]
    for title, sizes in ((f"{FEW_VALUES} values", by_rows), (f"{FEW_ROWS:,} rows", by_values)):
        for size in sizes:
            measure(size, names, options.memory, kept, options.wide)
        heads = [f"{rows:,} rows" if sizes is by_rows else f"{values:,} values" for rows, values in sizes]
        print(f"| {title} | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}", flush=True)
        for what in names:
            print(f"| {what} | {' | '.join(kept.cells[*size, what] for size in sizes)} |", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
