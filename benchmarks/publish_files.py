"""From a Parquet file to a release on disk: time and peak memory, at 1, 10 and 100 million rows of 8 columns.

The physical limit measured beside it is reading and writing the same file without perturbing or shuffling it.
Each run is a process of its own, so that its peak memory is its own. Ratios are of processor time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import COPY, alone_with_processor

SIZES = {"age": 77, "gender": 2, "education": 14, "marital": 6, "race": 9, "workclass": 7, "country": 70}
PIECE = 1_000_000

SETUP = """
import pyarrow.parquet as pq
import deniable as dn
import pyarrow as pa
source, out, what = sys.argv[1:]
# Whatever is imported, and made once, is there before time is taken.
few = pa.table({"age": [1, 2] * 500, "occupation": ["a", "b", "c", "d"] * 250})
dn.publish(few, sensitive="occupation", mechanism="uniform", privacy=dn.Privacy("1/4", "1/2"))
"""
PUBLISH = """
options = {"mechanism": "uniform", "privacy": dn.Privacy("1/13", "1/6"), "shuffle": what == "shuffled"}
dn.publish(source, sensitive="occupation", out=out, **options)
"""


def write_table(path: Path, rows: int) -> None:
    """A census-like table, a million rows at a time."""
    random = np.random.default_rng(0)
    names = pa.array([f"occupation {i}" for i in range(50)])
    schema = pa.schema([(name, pa.int16()) for name in SIZES] + [("occupation", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(rows // PIECE):
            columns = [pa.array(random.integers(0, size, PIECE), pa.int16()) for size in SIZES.values()]
            columns.append(names.take(pa.array(random.integers(0, 50, PIECE))))
            writer.write_table(pa.table(columns, schema=schema))


def measured(source: Path, out: Path, what: str) -> tuple[float, float, float]:
    """Seconds by the clock and of processor time, and peak mebibytes of one run."""
    return alone_with_processor(COPY if what == "copy" else PUBLISH, source, out, what, setup=SETUP)


def rows(millions: tuple[int, ...] = (1, 10, 100)) -> list[dict[str, Any]]:
    """One dict (what, seconds, processor, ratio, rows/s, MB, note) per run; the ratio is to copying the file."""
    result: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for million in millions:
            source = Path(folder) / "source.parquet"
            write_table(source, million * PIECE)
            limit = 0.0
            for what in ("copy", "in order", "shuffled"):
                seconds, processor, memory = measured(source, Path(folder) / f"{what} {million}", what)
                limit = limit or processor
                result.append(
                    {
                        "what": f"{what} {million}M x 8" if what == "copy" else f"publish {million}M x 8, {what}",
                        "seconds": seconds,
                        "processor": processor,
                        "ratio": processor / limit,
                        "rows/s": million * PIECE / seconds,
                        "MB": round(memory),
                        "note": "the limit" if what == "copy" else "aim: at most 600 MB",
                    }
                )
    return result
