"""An analyst's session against DuckDB on the original: python benchmarks/run.py session

A group-by of three columns, one of them sensitive, on the made-up census; and the 100 questions of
tests/estimation/sql/diabetes_session.sql over a release of the diabetes table, from DENIABLE_DATA or ../shared/data.
Ratios are to DuckDB, which answers the same questions from the original, exactly and without intervals.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import best

import deniable as dn
from deniable.lab.made_up import census

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DENIABLE_DATA", ROOT.parent / "shared" / "data")) / "diabetes130.parquet"
SESSION = ROOT / "tests" / "estimation" / "sql" / "diabetes_session.sql"
CHAPTERS = ("circulatory", "digestive", "respiratory", "genitourinary", "endocrine")
LOOKUPS = {
    "icd": pa.table({"first": ["4", "5", "V", "6", "2"], "chapter": CHAPTERS}),
    "admission": pa.table({"id": [1, 2, 3], "name": ["Emergency", "Urgent", "Elective"]}),
}
GROUPS = "SELECT education, gender, occupation, COUNT(*) AS n FROM release GROUP BY education, gender, occupation"


def compared(
    what: str, table: pa.Table, release: dn.Release, questions: list[str], lookups: dict[str, pa.Table]
) -> Any:
    """Seconds of both; a single question is asked three times, and its best time taken."""
    repeats = 3 if len(questions) == 1 else 1
    with duckdb.connect() as connection:
        for name, lookup in {"original": table, **lookups}.items():
            connection.register(name, lookup)
        connection.execute("CREATE TABLE release AS SELECT * FROM original")
        limit = best(lambda: [connection.sql(question).to_arrow_table() for question in questions], repeats)
    spent = best(lambda: [release.sql(question, tables=lookups) for question in questions], repeats)
    note = f"DuckDB on the original: {limit:.3g} s, without intervals"
    return {"what": what, "seconds": spent, "ratio": spent / limit, "note": note}


def rows() -> list[dict[str, Any]]:
    privacy = dn.Privacy("1/13", "1/3")
    table = census(500_000, seed=1)
    release = dn.publish(table, sensitive="occupation", privacy=privacy, mechanism="designed", key=bytes(32))
    result = [compared("group by three columns, 500,000 rows", table, release, [GROUPS], {})]
    what = "session of 100 questions, diabetes"
    if not DATA.is_file():
        return [*result, {"what": what, "seconds": None, "note": "skipped: set DENIABLE_DATA to the tables' folder"}]
    patients = pq.read_table(DATA).drop_columns(["encounter_id", "patient_nbr", "diag_2", "diag_3"])
    release = dn.publish(patients, sensitive="diag_1", privacy=privacy, mechanism="designed", key=bytes(32))
    questions = [line.rstrip(";") for line in SESSION.read_text().splitlines() if line and not line.startswith("--")]
    return [*result, compared(what, patients, release, questions, LOOKUPS)]
