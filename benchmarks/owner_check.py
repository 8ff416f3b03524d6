"""What an owner is told, on real and made-up tables: every trap is named, no harmless column is, and every fix that is
printed runs and helps.

    make owner-check                                      the tables of DENIABLE_DATA, if it is there, and made-up ones
    python -m benchmarks.owner_check --only households    the cases whose names begin so
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from typer.testing import CliRunner

from benchmarks.owner_tables import ALONE, LEARNT, Case, of_made_up, of_real
from deniable.cli.main import app

ANY_COLUMN = (ALONE, LEARNT, "promise", "not covered")  # parts that are about all columns, or about none


def run(words: list[str]) -> tuple[int, dict[str, Any]]:
    """A command in this process: its exit code, and what it printed as JSON."""
    before = sys.argv
    sys.argv = ["deniable", *words]  # a decision prints the command that it was taken in
    try:
        done = CliRunner().invoke(app, words)
    finally:
        sys.argv = before
    try:
        return done.exit_code, json.loads(done.stdout)
    except ValueError:
        return done.exit_code, {"error": done.output[-400:] or repr(done.exception)}


def figure(point: dict[str, Any] | None) -> float:
    """The figure of a part as a number; none where nothing is open."""
    digits = "" if point is None else point["figure"].split(" ")[0].replace(",", "")
    return float(digits) if digits.replace(".", "", 1).isdigit() else 0.0


def published(words: list[str]) -> tuple[str, dict[str, dict[str, Any]]]:
    """What is open after a publication, by its part; and what went wrong with it."""
    code, result = run([*words, "--json", "--despite", "The check looks at it."])
    if "decision" not in result:
        return f"exit {code}: {result.get('error')}", {}
    decision = result["decision"]
    meant = [point for point in decision["fine"] if point["grade"] == "never"]  # by --despite
    return "", {point["part"]: point for point in (*meant, *decision["decisions"], *decision["further"])}


def checked(case: Case, home: Path) -> list[str]:
    """What is wrong with what is said of a table; it prints a line."""
    start = time.perf_counter()
    pq.write_table(case.table(), home / "table.parquet")
    table, out = str(home / "table.parquet"), str(home / "release")
    words = ["publish", table, "--sensitive", case.sensitive, *case.options, "--out", out, "--overwrite"]
    failed, points = published(words)
    if failed:
        print(f"{case.name}: {failed}", flush=True)
        return [f"{case.name}: {failed}"]
    wrong = [
        f"{case.name}: {part} does not name {sorted({*columns} - {*points.get(part, {}).get('columns', ())})}"
        for part, columns in case.traps.items()
        if part not in points or not {*columns} <= {*points[part]["columns"]}
    ]
    planted = {name for columns in case.traps.values() for name in columns} | {*case.may}
    for part, point in points.items():
        extra = {*point["columns"]} - planted if part not in ANY_COLUMN else set()
        wrong += [f"{case.name}: {part} names {sorted(extra)}"] if extra else []
    fixes = 0
    for part, point in points.items():
        if not point.get("command"):
            continue
        fixes += 1
        failed, after = published(shlex.split(point["command"])[1:])
        if failed:
            wrong.append(f"{case.name}: the fix of {part} does not run: {failed}")
        elif part in after and not figure(after[part]) < figure(point):
            wrong.append(f"{case.name}: the fix of {part} does not help: {point['figure']}, {after[part]['figure']}")
    seconds = time.perf_counter() - start
    print(f"{case.name} | {', '.join(points) or 'nothing'} | {fixes} fixes | {seconds:.1f} s", flush=True)
    for line in wrong:
        print(f"  WRONG {line}", flush=True)
    return wrong


def main() -> int:
    """All cases, or some."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--data", type=Path, default=Path("../shared/data"))
    reader.add_argument("--only", default="")
    given = reader.parse_args()
    cases = [*of_made_up(), *(of_real(given.data) if given.data.is_dir() else ())]
    if not given.data.is_dir():
        print(f"{given.data} is not there: made-up tables only.")
    cases = [case for case in cases if case.name.startswith(given.only)]
    print("table | what is to be decided | fixes that were run | time")
    with tempfile.TemporaryDirectory() as home:
        wrong = [line for case in cases for line in checked(case, Path(home))]
    traps = sum(len(case.traps) for case in cases)
    print(f"{len(cases)} tables, {traps} traps: {len(wrong)} things are wrong.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
