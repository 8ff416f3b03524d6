"""Where responses are kept: SQLite by default, PostgreSQL by its address. No original answer, address or time
of day.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from deniable.core.errors import DeniableError, OptionError, extra_missing

# -- What a store of responses does. It never sees an original answer, an address or a time of day ---------------------


Outcome = Literal["new", "known", "code"]  # stored; was there already; its one-time code is unknown or used


class StoreError(DeniableError):
    """A store that cannot be opened, or that fails."""


class Entry(NamedTuple):
    """A response to be stored: its id, the perturbed answers as text, the hash of its one-time code, the day."""

    id: str
    answers: str
    code: str | None
    day: str


class Store(Protocol):
    """Where responses are kept. Any thread may call it, one at a time."""

    def open_for(self, fingerprint: str) -> None:
        """Refuse to mix responses to different surveys, or to different noise."""
        known = self.setting("survey")
        if known is not None and known != fingerprint:
            raise OptionError(
                f"The store holds responses to another version of this survey ({known[:12]}..; this one is "
                f"{fingerprint[:12]}..): words or noise were changed. Fix: the survey file that it was started with, "
                "or another --store for the new version."
            )
        self.setting("survey", fingerprint)

    def add(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Store responses, durably and all at once; an id that is there is left as it is."""
        ...

    def rows(self) -> list[str]:
        """The answers of all responses, in no order that tells when they came."""
        ...

    def days(self) -> list[tuple[str, int]]:
        """How many came on each day."""
        ...

    def count(self) -> int: ...

    def add_codes(self, hashes: Iterable[str]) -> None:
        """Keep the hashes of one-time codes; one that is used is forgotten, so that nothing ties it to a response."""
        ...

    def codes(self) -> tuple[int, int]:
        """How many one-time codes there are, and how many of them were used."""
        ...

    def setting(self, name: str, value: str | None = None) -> str | None:
        """A setting; with a value, it is set first."""
        ...

    def close(self) -> None: ...


# -- Responses in a SQLite file, in WAL mode: what was acknowledged is on the disk -------------------------------------


# Rows lie by their random id, not in the order of their arrival.
SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS responses (id TEXT PRIMARY KEY, day TEXT NOT NULL, answers TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS codes (hash TEXT PRIMARY KEY) WITHOUT ROWID;
"""
COUNT_CODES = """
INSERT INTO settings VALUES ('codes', ?)
ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + excluded.value
"""


class SqliteStore(Store):
    """A store in one file, which only its owner can read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            os.close(descriptor)
            self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._connection.executescript(SCHEMA)
            if "used" in [row[1] for row in self._run("PRAGMA table_info(codes)")]:
                self._forget_used()
        except (OSError, sqlite3.Error) as problem:
            words = problem.strerror if isinstance(problem, OSError) else str(problem)
            raise StoreError(
                f"The store {str(path)!r} cannot be opened: {words}. Fix: --store with another path."
            ) from None

    def add(self, entries: Sequence[Entry]) -> list[Outcome]:
        with self._lock:
            execute = self._connection.execute
            execute("BEGIN IMMEDIATE")
            try:
                outcomes = [self._add(entry) for entry in entries]
                execute("COMMIT")
            except BaseException:
                execute("ROLLBACK")
                raise
            if any(entry.code is not None for entry in entries):
                # The log would tell what was written together: a response, and the code that it used up.
                execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return outcomes

    def _add(self, entry: Entry) -> Outcome:
        execute = self._connection.execute
        if entry.code is not None:
            if execute("SELECT 1 FROM responses WHERE id = ?", (entry.id,)).fetchone():
                return "known"
            if not execute("DELETE FROM codes WHERE hash = ?", (entry.code,)).rowcount:
                return "code"
        row = (entry.id, entry.day, entry.answers)
        stored = execute("INSERT INTO responses VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row).rowcount
        return "new" if stored else "known"

    def _run(self, statement: str, values: Sequence[str] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def rows(self) -> list[str]:
        return [row[0] for row in self._run("SELECT answers FROM responses ORDER BY id")]

    def days(self) -> list[tuple[str, int]]:
        return self._run("SELECT day, count(*) FROM responses GROUP BY day ORDER BY day")

    def count(self) -> int:
        return int(self._run("SELECT count(*) FROM responses")[0][0])

    def add_codes(self, hashes: Iterable[str]) -> None:
        with self._lock:
            execute = self._connection.execute
            execute("BEGIN IMMEDIATE")
            added = self._connection.executemany("INSERT INTO codes (hash) VALUES (?)", ((one,) for one in hashes))
            execute(COUNT_CODES, (added.rowcount,))
            execute("COMMIT")

    def codes(self) -> tuple[int, int]:
        ((made, left),) = self._run(
            "SELECT (SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'codes'), (SELECT count(*) FROM codes)"
        )
        return int(made or 0), int(made or 0) - int(left)

    def _forget_used(self) -> None:
        """In stores that kept codes after they were used: they were tied to the responses that used them."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        if not execute("SELECT 1 FROM settings WHERE name = 'codes'").fetchone():
            execute(COUNT_CODES, execute("SELECT count(*) FROM codes").fetchone())
        execute("DELETE FROM codes WHERE used")
        execute("COMMIT")

    def setting(self, name: str, value: str | None = None) -> str | None:
        if value is not None:
            self._run("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))
        rows = self._run("SELECT value FROM settings WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        with self._lock:
            self._connection.close()


# -- Where responses are kept: SQLite by default, PostgreSQL by its address --------------------------------------------


def store_at(address: str) -> Store:
    """The store at a path, or at an address ``postgresql://...``."""
    scheme, separator, _ = address.partition("://")
    if not separator:
        return SqliteStore(address)
    if scheme not in ("postgresql", "postgres"):
        raise OptionError(
            f"The store {scheme + '://..'!r} is not known. Fix: a path for SQLite, or postgresql://user@host/database."
        )
    try:
        from deniable.collection.store.postgres import PostgresStore
    except ImportError:
        raise extra_missing("psycopg", "collect") from None
    return PostgresStore(address)
