"""The database behind questions in SQL reaches nothing but the tables that it is handed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from deniable.core.errors import QuestionError
from deniable.estimation.sql.database import run
from deniable.estimation.sql.values import tidy

here = pa.table({"secret": [1, 2, 3]})  # a Python variable that is not handed over


def test_it_computes_with_the_tables_that_it_is_handed() -> None:
    made = run("SELECT SUM(a) AS s FROM t", {"t": pa.table({"a": [1, 2, 3]})})
    assert made["s"].to_pylist() == [6]
    with pytest.raises(QuestionError, match="t does not exist"):  # and has forgotten them
        run("SELECT * FROM t", {})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/other.db'",
        "EXPORT DATABASE '{folder}/all'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM read_csv('https://127.0.0.1/x.csv')",
        "SELECT getenv('HOME')",
        "SELECT * FROM here",
        "SET enable_external_access = true",
        "SET temp_directory = '{folder}'",
        "RESET lock_configuration",
    ],
)
def test_it_reaches_nothing_else(query: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(QuestionError):
        run(query.format(file=file, folder=tmp_path), {})
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_what_does_not_fit_into_memory_is_not_written_to_disk() -> None:
    assert run("SELECT current_setting('temp_directory') AS d", {})["d"].to_pylist() == [""]


def test_a_division_by_zero_has_no_value() -> None:
    made = run("SELECT 1 / 0 AS a, 5 % 0 AS b, 5 // 0 AS c, SQRT(-1) AS d", {})
    assert [tidy(made[name], name).to_pylist() for name in made.column_names] == [[None]] * 4


def test_it_is_imported_by_the_first_question_that_needs_it() -> None:
    program = """
import sys, pyarrow as pa, deniable as dn
table = pa.table({"town": ["Chur", "Basel"] * 50, "ill": ["yes", "no"] * 50})
release = dn.publish(table, sensitive="ill", mechanism="redraw", key=bytes(32))
release.sql("SELECT town, COUNT(*) AS n FROM release WHERE ill = 'yes' AND town IN ('Chur') GROUP BY town")
assert "duckdb" not in sys.modules
release.sql("SELECT COUNT(*) AS n FROM release WHERE lower(town) = 'chur'")
assert "duckdb" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
