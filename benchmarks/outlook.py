"""What the planner predicts of learned releases, and what choosing costs: python benchmarks/outlook.py [TABLE ..]

For each table, number of rows, of public columns and epsilon: mean relative errors of counts of one or two conditions
and a value, counted in the published rows, by size, beside what `deniable.planning.outlook` predicts. Then the time of
the processor of a publication without a mechanism, as a multiple of the same by `synthetic`, which it takes, and by
`designed`, on 204,000 rows of 17 columns. Reads the folder DENIABLE_DATA.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from synthetic_peers import TABLES

import deniable as dn
from deniable.planning.outlook import learned_error

SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)
QUESTIONS = 300
WIDE = 30  # values from which on a condition is a range


def table_of(which: str, rows: int, columns: int) -> tuple[pa.Table, str]:
    """Some rows and public columns of a real table, and its sensitive column."""
    file, sensitive, names = TABLES[which]
    table = pq.read_table(Path(os.environ["DENIABLE_DATA"], f"{file}.parquet"))
    table = table.filter(pc.is_valid(table[sensitive]))
    if rows < table.num_rows:
        taken = np.sort(np.random.default_rng(1).choice(table.num_rows, rows, replace=False))
        table = table.take(pa.array(taken))
    public = (names or [name for name in table.column_names if name != sensitive])[:columns]
    return table.select([*public, sensitive]), sensitive


def errors(table: pa.Table, sensitive: str, epsilon: float) -> dict[int, tuple[float, float]]:
    """Smallest count -> its mean measured error, and the mean of what is predicted."""
    values = sorted(pc.unique(table[sensitive]).to_pylist(), key=str)
    release = dn.publish(
        table,
        sensitive=sensitive,
        privacy=dn.Privacy(epsilon=epsilon),
        mechanism="synthetic",
        domain=values,
        key=bytes(32),
        shuffle=False,
    )
    public = [name for name in table.column_names if name != sensitive]
    codes = {name: np.unique([str(one) for one in table[name].to_pylist()], return_inverse=True)[1] for name in public}
    place = {value: number for number, value in enumerate(values)}
    true, dealt = (
        np.array([place.get(one, -1) for one in data[sensitive].to_pylist()]) for data in (table, release.table)
    )
    rng, off = np.random.default_rng(2), []
    for question in range(QUESTIONS):
        row, keep = rng.integers(len(true)), np.ones(len(true), dtype=bool)
        for name in rng.choice(public, min(1 + question % 2, len(public)), replace=False):
            width = rng.integers(1, codes[name].max() // 3) if codes[name].max() > WIDE else 0
            keep &= np.abs(codes[name] - codes[name][row]) <= width
        there, ours = (np.bincount(each[keep], minlength=len(values)) for each in (true, dealt))
        off += [
            (count, abs(mine - count) / count) for count, mine in zip(there, ours, strict=True) if count >= SIZES[0]
        ]
    counts, measured = np.array(off).T
    predicted = np.array([learned_error(count, len(public), epsilon) for count in counts])
    size = np.searchsorted(SIZES, counts, side="right") - 1
    return {
        SIZES[one]: (float(measured[size == one].mean()), float(predicted[size == one].mean()))
        for one in np.unique(size)
        if (size == one).sum() >= 30
    }


def seconds(table: pa.Table, **options: Any) -> float:
    """Of the processor, the least of two."""
    times = []
    for _ in range(2):
        begin = time.process_time()
        dn.publish(table, privacy=dn.Privacy("1/13", "1/6"), threads=1, **options)
        times.append(time.process_time() - begin)
    return min(times)


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    for which in sys.argv[1:] or ["occ", "edu", "adult", "kdd", "diag"]:
        for rows, columns, epsilon in ((5_000, 3, 1.0), (25_000, 7, 1.0), (25_000, 3, 2.5), (100_000, 7, 0.875)):
            table, sensitive = table_of(which, rows, columns)
            found = errors(table, sensitive, epsilon)
            told = "  ".join(f"{size}+: {100 * one:.1f} % ({100 * other:.1f})" for size, (one, other) in found.items())
            print(f"{which} {table.num_rows:,} rows, {columns} columns, epsilon {epsilon:g}: {told}", flush=True)
    whole = pq.read_table(Path(os.environ["DENIABLE_DATA"], "census_income_kdd.parquet")).slice(0, 204_000)
    sensitive = "detailed_occupation_recode"
    public = [name for name in whole.column_names if name != sensitive and len(whole[name].unique()) < 200][:16]
    table = whole.select([sensitive, *public])
    chosen = seconds(table, sensitive=sensitive)
    for name in ("synthetic", "designed"):
        rows_of = table if name == "synthetic" else table.filter(pc.not_equal(table[sensitive], 0))
        named = seconds(rows_of, sensitive=sensitive, mechanism=name)
        print(f"mechanism left out, 204,000 x 17: {chosen:.2f} s of the processor, {chosen / named:.2f} x {name}")


if __name__ == "__main__":
    main()
