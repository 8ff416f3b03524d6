"""The first question to a release in a folder whose columns are texts: what is read and made into codes for it.

Beside it, pyarrow reads the same two columns as texts and makes codes of them, row by row, and DuckDB counts the same
condition exactly. The memory is that of a process of its own.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import alone, best

import deniable as dn

ROWS = 1_000_000
WORDS = {"60 towns": 60, "30,000 towns": 30_000}
WHERE = {"town": "the town with number 7", "disease": "the disease with number 3"}
COUNTED = "SELECT disease, COUNT(*) FROM read_parquet(?) WHERE town = 'the town with number 7' GROUP BY disease"


def made(folder: Path, words: int) -> None:
    """A release of two columns of texts."""
    rng = np.random.default_rng(0)
    columns = {
        name: pa.array([f"the {name} with number {i}" for i in range(size)]).take(pa.array(rng.integers(0, size, ROWS)))
        for name, size in (("town", words), ("disease", 20))
    }
    privacy = dn.Privacy(rho2="1/2")
    dn.publish(
        pa.table(columns),
        sensitive="disease",
        privacy=privacy,
        key=bytes(32),
        shuffle=False,
        out=folder,
        mechanism="uniform",
    )


def looked_up(folder: Path) -> None:
    """Both columns as texts, then as codes."""
    for column in WHERE:
        pq.read_table(folder / "data.parquet", columns=[column])[column].dictionary_encode().unify_dictionaries()


def asked(folder: Path) -> None:
    """A question to a release that was just opened."""
    dn.open_release(folder).count(WHERE)


def counted(folder: Path) -> None:
    """The same by DuckDB, for all diseases at once, as a release answers it."""
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.execute(COUNTED, [str(folder / "data.parquet")]).fetchall()


def rows() -> list[dict[str, Any]]:
    """One dict (what, seconds, ratio, MB, note) for each; ratios are to reading texts and looking each up."""
    result: list[dict[str, Any]] = []
    for what, words in WORDS.items():
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / "release"
            made(folder, words)
            texts, ours, exact = (best(partial(work, folder), 5) for work in (looked_up, asked, counted))
            imports = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport first_question\n"
            imports += "from pathlib import Path"
            memory = [
                round(alone(f"first_question.{work.__name__}(Path(sys.argv[1]))", folder, setup=imports)[1])
                for work in (looked_up, asked, counted)
            ]
        about = f"first question, {ROWS // 10**6}M rows, {what}"
        for name, seconds, peak, note in (
            ("texts made into codes by pyarrow", texts, memory[0], "both columns, no answer"),
            ("ours", ours, memory[1], "with its interval; aim: below 1"),
            ("DuckDB", exact, memory[2], "exact, no intervals"),
        ):
            row = {"what": f"{about}: {name}", "seconds": seconds, "ratio": seconds / texts, "MB": peak, "note": note}
            result.append(row)
    return result
