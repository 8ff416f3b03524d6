"""Responses in PostgreSQL: the same promises, for servers that share a database."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from deniable.collection.store import Entry, Outcome, Store, StoreError

SCHEMA = """
CREATE TABLE IF NOT EXISTS deniable_settings (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS deniable_responses (id text PRIMARY KEY, day text NOT NULL, answers text NOT NULL);
CREATE TABLE IF NOT EXISTS deniable_codes (hash text PRIMARY KEY);
"""
# Stores that kept codes after they were used told by xmin which response had used which.
FORGET_USED = """
DO $$ BEGIN
IF EXISTS (SELECT FROM information_schema.columns
           WHERE table_name = 'deniable_codes' AND column_name = 'used' AND table_schema = current_schema()) THEN
    LOCK TABLE deniable_codes;
    INSERT INTO deniable_settings SELECT 'codes', count(*)::text FROM deniable_codes ON CONFLICT DO NOTHING;
    DELETE FROM deniable_codes WHERE used;
END IF;
END $$
"""
COUNT_CODES = """
WITH added AS (INSERT INTO deniable_codes (hash) SELECT unnest(%s::text[]) RETURNING 1)
INSERT INTO deniable_settings SELECT 'codes', count(*)::text FROM added
ON CONFLICT (name) DO UPDATE SET value = (deniable_settings.value::bigint + excluded.value::bigint)::text
"""
INSERT = """
INSERT INTO deniable_responses SELECT * FROM unnest(%s::text[], %s::text[], %s::text[])
ON CONFLICT DO NOTHING RETURNING id
"""


class PostgresStore(Store):
    """A store in a database; its connection is made anew after the database was away."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._connection = self._connect()
        self._run(SCHEMA)
        self._run(FORGET_USED)

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(self._address, autocommit=True, connect_timeout=10)
        except psycopg.Error as problem:  # its words may hold the password of the address
            raise StoreError(
                f"The PostgreSQL store cannot be reached ({type(problem).__name__}). Fix: check host, database, user "
                "and password of --store."
            ) from None

    def _alive(self) -> psycopg.Connection[Any]:
        if self._connection.closed or self._connection.broken:
            self._connection = self._connect()
        return self._connection

    def _run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            cursor = self._alive().execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def add(self, entries: Sequence[Entry]) -> list[Outcome]:
        with self._lock, self._alive().transaction():
            if any(entry.code is not None for entry in entries):
                return [self._add(entry) for entry in entries]
            lists = ([e.id for e in entries], [e.day for e in entries], [e.answers for e in entries])
            new = {row[0] for row in self._connection.execute(INSERT, lists).fetchall()}
        outcomes: list[Outcome] = []
        for entry in entries:  # an id that comes twice at once is new once
            outcomes.append("new" if entry.id in new else "known")
            new.discard(entry.id)
        return outcomes

    def _add(self, entry: Entry) -> Outcome:
        execute = self._connection.execute
        if entry.code is not None:
            known = "SELECT 1 FROM deniable_responses WHERE id = %s"
            if execute(known, (entry.id,)).fetchone():
                return "known"
            if not execute("DELETE FROM deniable_codes WHERE hash = %s", (entry.code,)).rowcount:
                # Another server may have stored this very response while this one waited for its code.
                return "known" if execute(known, (entry.id,)).fetchone() else "code"
        return "new" if execute(INSERT, ([entry.id], [entry.day], [entry.answers])).fetchall() else "known"

    def rows(self) -> list[str]:
        return [row[0] for row in self._run("SELECT answers FROM deniable_responses ORDER BY id")]

    def days(self) -> list[tuple[str, int]]:
        counted = self._run("SELECT day, count(*) FROM deniable_responses GROUP BY day ORDER BY day")
        return [(str(day), int(count)) for day, count in counted]

    def count(self) -> int:
        return int(self._run("SELECT count(*) FROM deniable_responses")[0][0])

    def add_codes(self, hashes: Iterable[str]) -> None:
        self._run(COUNT_CODES, (list(hashes),))

    def codes(self) -> tuple[int, int]:
        ((made, left),) = self._run(
            "SELECT (SELECT value FROM deniable_settings WHERE name = 'codes'), (SELECT count(*) FROM deniable_codes)"
        )
        return int(made or 0), int(made or 0) - int(left)

    def setting(self, name: str, value: str | None = None) -> str | None:
        if value is not None:
            self._run(
                "INSERT INTO deniable_settings VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, value),
            )
        rows = self._run("SELECT value FROM deniable_settings WHERE name = %s", (name,))
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        with self._lock:
            self._connection.close()
