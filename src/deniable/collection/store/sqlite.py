"""Responses in a SQLite file, in WAL mode: what was acknowledged is on the disk."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deniable.collection.store.base import Entry, Outcome, Store, StoreError

# Rows lie by their random id, not in the order of their arrival.
SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS responses (id TEXT PRIMARY KEY, day TEXT NOT NULL, answers TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS codes (hash TEXT PRIMARY KEY, used INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
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
        return outcomes

    def _add(self, entry: Entry) -> Outcome:
        execute = self._connection.execute
        if entry.code is not None:
            if execute("SELECT 1 FROM responses WHERE id = ?", (entry.id,)).fetchone():
                return "known"
            if not execute("UPDATE codes SET used = 1 WHERE hash = ? AND used = 0", (entry.code,)).rowcount:
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
            self._connection.executemany("INSERT INTO codes (hash) VALUES (?)", ((one,) for one in hashes))
            execute("COMMIT")

    def codes(self) -> tuple[int, int]:
        ((made, used),) = self._run("SELECT count(*), coalesce(sum(used), 0) FROM codes")
        return int(made), int(used)

    def setting(self, name: str, value: str | None = None) -> str | None:
        if value is not None:
            self._run("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))
        rows = self._run("SELECT value FROM settings WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        with self._lock:
            self._connection.close()
