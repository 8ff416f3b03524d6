"""Stores under two servers at once, and as whoever takes them sees them: codes are used once, and tied to nothing."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deniable.collection.store import Entry, store_at
from deniable.collection.wire import hashed, new_codes
from tests.collection.serving import new_id

pytest.importorskip("fastapi", reason="needs the extra 'collect'")
DAY = "2025-01-01"


def test_nothing_in_a_store_ties_a_code_to_a_response(address: str) -> None:
    """Both were written in one transaction, which PostgreSQL shows of each row, and SQLite's log page by page."""
    store = store_at(address)
    codes = [hashed(code) for code in new_codes(20)]
    store.add_codes(codes)
    for code in codes[:15]:
        assert store.add([Entry(new_id(), "[1]", code, DAY)]) == ["new"]
    assert store.codes() == (20, 15)
    store.add_codes([hashed(code) for code in new_codes(5)])
    assert store.codes() == (25, 15)
    if address.startswith("postgresql"):
        import psycopg

        with psycopg.connect(address) as connection:
            rows = connection.execute("SELECT r.id FROM deniable_responses r JOIN deniable_codes c ON r.xmin = c.xmin")
            assert rows.fetchall() == []
            kept = {row[0] for row in connection.execute("SELECT hash FROM deniable_codes")}
    else:
        files = b"".join(path.read_bytes() for path in Path(address).parent.iterdir())
        kept = {code for code in codes if code.encode() in files}
    assert kept.isdisjoint(codes[:15])
    assert kept >= set(codes[15:])
    store.close()


def test_a_code_is_used_once_by_two_servers_at_once_and_a_retry_is_no_second_use(address: str) -> None:
    """Two responses with one code: one is stored. One response that is sent twice at once: both are told that it is."""
    stores = [store_at(address), store_at(address)]
    codes = [hashed(code) for code in new_codes(60)]
    stores[0].add_codes(codes)
    start = threading.Barrier(2)

    def add(number: int, entry: Entry) -> str:
        start.wait(30)
        return stores[number].add([entry])[0]

    with ThreadPoolExecutor(2) as threads:
        for place, code in enumerate(codes):
            one = Entry(new_id(), "[1]", code, DAY)
            other = one if place % 2 else one._replace(id=new_id())
            outcomes = {
                waiting.result(60) for waiting in [threads.submit(add, n, e) for n, e in enumerate((one, other))]
            }
            assert outcomes == ({"new", "known"} if place % 2 else {"new", "code"})
    assert stores[0].count() == len(codes)
    assert stores[1].codes() == (60, 60)
    for store in stores:
        store.close()


def test_a_store_that_kept_used_codes_forgets_them(address: str) -> None:
    """As stores were before: used codes stay refused, and are counted."""
    store = store_at(address)
    store.close()
    old = ["DROP TABLE {}codes", "CREATE TABLE {}codes (hash text PRIMARY KEY, used {} DEFAULT {})"]
    rows = "INSERT INTO {}codes VALUES ('h1', {}), ('h2', {}), ('h3', {})"
    if address.startswith("postgresql"):
        import psycopg

        with psycopg.connect(address) as connection:
            for statement in (old[0].format("deniable_"), old[1].format("deniable_", "boolean NOT NULL", "false")):
                connection.execute(statement)
            connection.execute(rows.format("deniable_", "true", "false", "true"))
    else:
        with sqlite3.connect(address) as connection:
            for statement in (old[0].format(""), old[1].format("", "INTEGER NOT NULL", "0") + " WITHOUT ROWID"):
                connection.execute(statement)
            connection.execute(rows.format("", 1, 0, 1))
    for _ in range(2):  # once, however often it is opened
        store = store_at(address)
        assert store.codes() == (3, 2)
        store.close()
    store = store_at(address)
    assert [store.add([Entry(new_id(), "[1]", code, DAY)])[0] for code in ("h1", "h2", "h3")] == ["code", "new", "code"]
    store.add_codes(["h4"])
    assert store.codes() == (4, 3)
    store.close()
