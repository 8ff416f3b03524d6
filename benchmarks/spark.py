"""Publishing a Parquet file locally and on Spark (two cores of this machine), against the same pipeline that perturbs
nothing: rows are read, encoded, dealt, shuffled and written, and every value stays what it is.

Starting Spark and a first small release, after which its workers are warm, are not timed. Each run is a process of its
own; the peak memory is that of the driver. Ratios are of processor time, of Spark's machine and its workers too.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from measuring import alone_with_processor
from publish_files import PIECE, write_table

# Python reads this file when it starts, in the driver and in Spark's workers.
IDENTITY = """
import os
if os.environ.get("DENIABLE_BENCH") == "identity":
    from deniable.tables.worker import PartWorker
    PartWorker.perturb = lambda self, job, batch, coded, start: (
        self.encoder.folded(coded.codes) if self.folds else self.encoder.decode(coded.codes)
    )
"""
SETUP = """
import os
source, small, out, engine, what, folder = sys.argv[1:]
os.environ["DENIABLE_BENCH"] = what
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
exec(open(folder + "/sitecustomize.py").read())
import deniable as dn
from deniable.tables import engine_on
runs_on = engine_on(engine, "local[2]" if engine == "spark" else None)
def publish(table, out):
    options = {"mechanism": "uniform", "privacy": dn.Privacy("1/13", "1/6"), "engine": runs_on}
    dn.publish(table, sensitive="occupation", out=out, **options)
publish(small, out + "-small")
"""


def rows(million: int = 5) -> list[dict[str, Any]]:
    """One dict (what, seconds, processor, ratio, rows/s, MB, note) per run; the ratio is to the pipeline that perturbs
    nothing."""
    if importlib.util.find_spec("pyspark") is None:
        return [{"what": "publish on Spark", "note": "skipped: pip install 'deniable[spark]', with Java 17"}]
    result: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sitecustomize.py").write_text(IDENTITY, encoding="utf-8")
        source, small = Path(folder) / "source.parquet", Path(folder) / "small.parquet"
        write_table(source, million * PIECE)
        with pq.ParquetFile(source) as file:
            pq.write_table(file.read_row_group(0).slice(0, 1_000), small)
        for engine in ("local", "spark"):
            limit = 0.0
            for what in ("identity", "perturbed"):
                out = Path(folder) / f"{engine}-{what}"
                arguments = (source, small, out, engine, what, folder)
                seconds, processor, memory = alone_with_processor("publish(source, out)", *arguments, setup=SETUP)
                limit = limit or processor
                result.append(
                    {
                        "what": f"publish {million}M x 8, {engine}, {what}",
                        "seconds": seconds,
                        "processor": processor,
                        "ratio": processor / limit,
                        "rows/s": million * PIECE / seconds,
                        "MB": memory,
                        "note": "the limit" if what == "identity" else "aim: at most 1.3",
                    }
                )
    return result
