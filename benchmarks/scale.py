"""Peak memory and processor time of every command as tables grow: in rows, and in values of the sensitive column.

    python benchmarks/scale.py --rows 5 7 --values 1 6 > table.md

Each command is a process of its own under the ceiling that `--memory` sets; what is refused is said. The table it
prints is the one in docs/explanation/scale.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PIECE = 1_000_000
LONGEST = 900.0  # seconds, by the clock
FEW_VALUES, FEW_ROWS = 50, 1_000_000
COUNT = "SELECT COUNT(*) AS n FROM release WHERE age < 40 AND v < 5"
BY_PUBLIC = "SELECT age, sex, COUNT(*) AS n FROM release WHERE v < 5 GROUP BY age, sex"
BY_SENSITIVE = "SELECT v, COUNT(*) AS n FROM release GROUP BY v ORDER BY n DESC LIMIT 5"
COMMANDS: dict[str, list[str]] = {
    "publish": ["publish", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--out", "RELEASE", "--quiet"],
    "publish, designed": [
        *("publish", "TABLE", "--sensitive", "v", "--rho2", "9/10", "--mechanism", "designed"),
        *("--out", "DESIGNED", "--quiet"),
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


def write_table(path: Path, rows: int, values: int) -> None:
    """A made-up table, a million rows at a time; every value occurs."""
    draw = np.random.default_rng(0)
    schema = pa.schema([("age", pa.int16()), ("sex", pa.string()), ("v", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, PIECE):
            size = min(PIECE, rows - start)
            columns = [
                pa.array(draw.integers(17, 91, size), pa.int16()),
                pa.array(np.array(["F", "M"])[draw.integers(0, 2, size)]),
                pa.array(np.arange(start, start + size) % values),
            ]
            writer.write_table(pa.table(columns, schema=schema))


def measured(words: list[str], folder: Path) -> str:
    """Processor seconds and peak megabytes of a command, or why there are none."""
    with open(folder / "said", "w+") as said:
        begin = time.monotonic()
        started = subprocess.Popen([sys.executable, "-m", "deniable", *words], stdout=subprocess.DEVNULL, stderr=said)
        while (ended := os.wait4(started.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() - begin > LONGEST:
                started.kill()
                os.wait4(started.pid, 0)
                return f"more than {LONGEST:.0f} s"
            time.sleep(0.02)
        _, status, used = ended
        started.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = said.read().splitlines()
    if started.returncode not in (0, 1):
        return f"refused: {(lines or ['?'])[-1].removeprefix('Error: ')[:60]}"
    return f"{used.ru_utime + used.ru_stime:.1f} s, {used.ru_maxrss / 1024:,.0f} MB"


def column(rows: int, values: int, memory: str | None) -> Iterator[tuple[str, str]]:
    """Every command on one table."""
    with tempfile.TemporaryDirectory(prefix="deniable-scale-") as home:
        folder = Path(home)
        places = {name: str(folder / name.lower()) for name in ("RELEASE", "DESIGNED", "REPORT", "AUDIT")}
        places["TABLE"] = str(folder / "table.parquet")
        write_table(Path(places["TABLE"]), rows, values)
        for what, words in COMMANDS.items():
            limited = [] if memory is None else ["--memory", memory]
            yield what, measured([*(places.get(word, word) for word in words), *limited], folder)


def main() -> None:
    """Print two tables: by rows, and by values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs=2, default=(5, 8), metavar="POWER", help="10^a to 10^b rows")
    parser.add_argument("--values", type=int, nargs=2, default=(1, 6), metavar="POWER", help="10^a to 10^b values")
    parser.add_argument("--memory", default=None, help="a ceiling for every command")
    options = parser.parse_args()
    by_rows = [(10**power, FEW_VALUES) for power in range(options.rows[0], options.rows[1] + 1)]
    by_values = [(FEW_ROWS, 10**power) for power in range(options.values[0], options.values[1] + 1)]
    for title, sizes in ((f"{FEW_VALUES} values", by_rows), (f"{FEW_ROWS:,} rows", by_values)):
        columns = [dict(column(rows, values, options.memory)) for rows, values in sizes]
        heads = [f"{rows:,} rows" if sizes is by_rows else f"{values:,} values" for rows, values in sizes]
        print(f"| {title} | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 1)}", flush=True)
        for what in COMMANDS:
            print(f"| {what} | {' | '.join(cells[what] for cells in columns)} |", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
