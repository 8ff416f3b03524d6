"""DuckDB, locked: it computes with tables that it is handed, in memory, and reaches nothing else.

What it may not do is refused by DuckDB itself: no file is read or written, none spilled to, no extension is loaded, no
address is asked, no name of a Python variable is a table, and none of this can be set otherwise. It comes last: a
question is parsed, checked node by node against what is understood (``understood``) and rewritten before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from deniable.core.errors import QuestionError

CLOSED: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "error_on_division_by_zero": "false",
    "threads": "1",
}


def run(query: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The result of a SELECT over some tables; an error of the database is one of the question."""
    import duckdb

    session = _opened(os.getpid()).cursor()
    try:
        for name, table in tables.items():
            session.register(name, table)
        return session.sql(query).to_arrow_table()
    except duckdb.Error as error:
        raise QuestionError(_said(error)) from None
    finally:
        session.close()


@cache
def _opened(process: int) -> Any:
    """One database a process: what is forked off opens its own."""
    import duckdb

    opened = duckdb.connect(":memory:", config=CLOSED)
    opened.execute("SET lock_configuration = true")
    return opened


def _said(error: Exception) -> str:
    """What the database says, without its kind of error and the place in a text that nobody has written."""
    first = str(error).partition("\n")[0].partition(": ")[2] or str(error)
    return first.partition("Candidate")[0].strip().rstrip(".")
