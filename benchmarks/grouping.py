"""What grouping into decoy groups and by Anatomy costs: python benchmarks/run.py grouping

First codes in, codes out, where the ratio is to two seconds, the limit for 500,000 rows; then end to end, from a table
in memory and from a Parquet file to a folder, where the ratio is to copying that file in the same run. Runs from a file
are processes of their own, so that their peak memory is their own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import COPY, alone, best

import deniable as dn
from deniable.core.histogram import Histogram
from deniable.lab import Anatomy
from deniable.lab.anatomy import anatomy_groups
from deniable.mechanisms.decoys import Decoys
from deniable.tables.keys import Keystream, Secret
from deniable.tables.sampler import Kernel
from deniable.tables.worker import Dealer, require_all_dealt

ROWS = 500_000
MANY_ROWS = 20_000_000
BATCH = 2**17
PUBLIC = {"age": 77, "gender": 2, "education": 14, "marital": 6, "race": 9, "workclass": 7, "country": 70}

SETUP = """
import pyarrow.parquet as pq
import deniable as dn
from deniable.mechanisms import Decoys
dn.publish  # imports what it needs, before time is taken
source, out, what = sys.argv[1:]
"""
PUBLISH = """
names = ["occupation", "age"] if what == "two columns" else "occupation"
dn.publish(source, sensitive=names, mechanism=Decoys(c=5, leftovers="drop"), out=out)
"""


def codes_of(n: int, m: int) -> np.ndarray:
    """Codes whose frequencies fall like 1 / sqrt(rank)."""
    share = np.arange(1, m + 1) ** -0.5
    return np.random.default_rng(1).choice(m, n, p=share / share.sum()).astype(np.uint16)


def decoys(codes: np.ndarray, m: int, c: int, grouping: str) -> np.ndarray:
    """Count, plan, deal and draw, as the local engine does."""
    histogram = Histogram(tuple(range(m)), np.bincount(codes, minlength=m))
    plan = Decoys(c=c, leftovers="drop", grouping=grouping).plan(histogram, None)  # type: ignore[arg-type]
    keys = Keystream(Secret.from_key(bytes(32)), "benchmark")
    dealer = Dealer(plan.parts[0], keys.subkey("dealing"))
    kernel = Kernel([cell.channel for cell in plan.cells], [plan.positions(cell) for cell in plan.cells])
    perturbed, seen = [], np.zeros(m, dtype=np.int64)
    for first in range(0, len(codes), BATCH):
        batch = codes[first : first + BATCH]
        perturbed.append(kernel.perturb(batch, keys.words(first, len(batch)), dealer.deal(batch, seen)))
        seen += dealer.counts(batch)
    require_all_dealt(seen, dealer.planned)
    return np.concatenate(perturbed)


def anatomy(codes: np.ndarray, m: int, l: int) -> np.ndarray:
    histogram = Histogram(tuple(range(m)), np.bincount(codes, minlength=m))
    keys = Keystream(Secret.from_key(bytes(32)), "benchmark")
    return anatomy_groups(codes, m, l, keys, Anatomy(l=l).suppressed(histogram))


def table_of(n: int) -> pa.Table:
    """A census-like table: seven public columns, and an occupation."""
    random = np.random.default_rng(2)
    columns = {name: pa.array(random.integers(0, size, n, dtype=np.int16)) for name, size in PUBLIC.items()}
    names = pa.array([f"occupation {i}" for i in range(50)])
    return pa.table({**columns, "occupation": names.take(pa.array(codes_of(n, 50)))})


def in_memory(n: int) -> list[dict[str, Any]]:
    """``dn.publish`` of a table in memory; the ratio is to two seconds."""
    mechanism = Decoys(c=5, leftovers="drop")
    spent = best(partial(dn.publish, table_of(n), sensitive="occupation", mechanism=mechanism), 1)
    return [_row(f"publish, decoys, {n:,} rows in memory", spent, spent / 2, "the limit is two seconds")]


def from_file(n: int, whats: tuple[str, ...], folder: Path) -> list[dict[str, Any]]:
    """From a Parquet file to a folder; the ratio is to copying the file."""
    source = folder / f"{n}.parquet"
    with pq.ParquetWriter(source, table_of(1).schema) as writer:
        for piece in range(0, n, 1_000_000):
            writer.write_table(table_of(min(1_000_000, n - piece)))
    found, copied = [], 0.0
    for what in ("copy", *whats):
        work = COPY if what == "copy" else PUBLISH
        seconds, memory = alone(work, source, folder / f"{what} {n}", what, setup=SETUP)
        copied = copied or seconds
        note = "the file itself" if what == "copy" else "from a Parquet file to a folder"
        found.append({**_row(f"{what}, {n:,} rows of 8 columns", seconds, seconds / copied, note), "MB": round(memory)})
    return found


def _row(what: str, seconds: float, ratio: float, note: str) -> dict[str, Any]:
    return {"what": what, "seconds": seconds, "ratio": ratio, "note": note}


def rows(n: int = ROWS, many: int = MANY_ROWS) -> list[dict[str, Any]]:
    """One dict (what, seconds, ratio, MB, note) each."""
    found = [*codes_alone(n, many), *in_memory(n)]
    with tempfile.TemporaryDirectory() as folder:
        found += from_file(n, ("decoys", "two columns"), Path(folder))
        found += from_file(many, ("decoys",), Path(folder))
    return found


def codes_alone(n: int, many: int) -> list[dict[str, Any]]:
    """Codes in, codes out; the ratio is to two seconds, the limit for 500,000 rows."""
    small, large, wide = codes_of(n, 50), codes_of(many, 50), codes_of(n, 5000)
    measured: list[tuple[str, Callable[[], object], str]] = [
        (f"decoys, mixed, {n:,} rows, m = 50", lambda: decoys(small, 50, 5, "mixed"), "c = 5; the paper: 10 seconds"),
        (f"decoys, balanced, {n:,} rows, m = 50", lambda: decoys(small, 50, 5, "balanced"), "c = 5"),
        (f"decoys, mixed, {n:,} rows, m = 5,000", lambda: decoys(wide, 5000, 5, "mixed"), "c = 5"),
        (f"Anatomy, {n:,} rows, m = 50", lambda: anatomy(small, 50, 6), "l = 6"),
        (f"Anatomy, {n:,} rows, m = 5,000", lambda: anatomy(wide, 5000, 6), "l = 6"),
        (f"decoys, mixed, {many:,} rows, m = 50", lambda: decoys(large, 50, 5, "mixed"), "c = 5, one thread"),
        (f"Anatomy, {many:,} rows, m = 50", lambda: anatomy(large, 50, 6), "l = 6, one thread"),
    ]
    found = []
    for what, work, note in measured:
        spent = best(work, 1)
        found.append(_row(what, spent, spent / 2, note))
    return found
