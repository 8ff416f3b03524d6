"""An analyst's session: 100 questions over a release of a real table, each also asked of the original by DuckDB.

None is refused, and the truth lies in the intervals as often as they promise. Many answers are about the same rows, so
that their errors go together: the intervals count as a few hundred, and 92 to 98 of 100 is what is asked for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn

DATA = Path(os.environ.get("DENIABLE_DATA", "")) / "diabetes130.parquet"
SESSION = Path(__file__).with_name("diabetes_session.sql")
QUESTIONS = [line.rstrip(";") for line in SESSION.read_text().splitlines() if line and not line.startswith("--")]
CHAPTERS = ("circulatory", "digestive", "respiratory", "genitourinary", "endocrine")
LOOKUPS = {
    "icd": pa.table({"first": ["4", "5", "V", "6", "2"], "chapter": CHAPTERS}),
    "admission": pa.table({"id": [1, 2, 3], "name": ["Emergency", "Urgent", "Elective"]}),
}
RELEASES = 4


def key_of(row: dict[str, Any], keys: list[str]) -> tuple[Any, ...]:
    return tuple(float(row[k]) if isinstance(row[k], int) and not isinstance(row[k], bool) else row[k] for k in keys)


def compared(answer: pa.Table, exact: list[dict[str, Any]]) -> list[tuple[bool, bool]]:
    """For every aggregate of every group: whether it is exact, and whether the truth lies in the interval."""
    numbers = [name for name in answer.column_names if f"{name}_low" in answer.column_names]
    said = {f"{name}{end}" for name in numbers for end in ("", "_low", "_high", "_hopeless")}
    keys = [name for name in answer.column_names if name not in said]
    known = {key_of(row, keys): row for row in exact}
    found = answer.to_pylist()
    assert known.keys() <= {key_of(row, keys) for row in found}
    held = []
    for row in found:
        truth = known.get(key_of(row, keys))
        for name in numbers:
            value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
            true = 0 if truth is None else truth[name]  # a group that the original does not have
            if value is None or true is None:
                assert value is None or truth is None or value == pytest.approx(0, abs=5)
                continue
            close = 1e-9 * max(1.0, abs(float(true)))
            held.append((bool(low == high), float(low) - close <= float(true) <= float(high) + close))
    return held


def test_the_session_has_a_hundred_different_questions() -> None:
    assert len(QUESTIONS) == len(set(QUESTIONS)) == 100


@pytest.mark.long
@pytest.mark.skipif(not DATA.is_file(), reason="the diabetes table is not here: set DENIABLE_DATA to its folder")
def test_a_session_of_a_hundred_questions_is_answered_as_promised() -> None:
    table = pq.read_table(DATA).drop_columns(["encounter_id", "patient_nbr", "diag_2", "diag_3"])
    held: list[tuple[bool, bool]] = []
    with duckdb.connect() as connection:
        for name, lookup in {"release": table, **LOOKUPS}.items():
            connection.register(name, lookup)
        truth = [connection.sql(question).to_arrow_table().to_pylist() for question in QUESTIONS]
    privacy = dn.Privacy(rho1="1/13", rho2="1/3")
    for number in range(RELEASES):
        release = dn.publish(
            table, sensitive="diag_1", privacy=privacy, mechanism="designed", key=number.to_bytes(32, "big")
        )
        for question, exact in zip(QUESTIONS, truth, strict=True):
            held += compared(release.sql(question, tables=LOOKUPS), exact)
    certain, uncertain = ([inside for point, inside in held if point == which] for which in (True, False))
    print(f"{len(uncertain):,} intervals, {np.mean(uncertain):.3f} hold the truth; {len(certain):,} exact answers")
    assert all(certain)
    assert len(uncertain) > 300 * RELEASES
    assert 0.92 < np.mean(uncertain) < 0.98
