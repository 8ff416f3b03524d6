"""Stores of either kind, empty, for the tests of collection."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collection.serving import postgres

needs_postgres = pytest.mark.skipif(
    shutil.which("initdb") is None, reason="needs PostgreSQL: no program 'initdb' is on the PATH"
)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=[needs_postgres, pytest.mark.slow])])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where responses are kept."""
    if request.param == "sqlite":
        yield str(tmp_path / "responses.db")
        return
    pytest.importorskip("psycopg", reason="needs the extra 'collect'")
    with postgres() as started:
        yield started
