"""A server that is killed under load, on both stores: what was acknowledged is there, and nothing is there twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from deniable.collection.client import sent
from deniable.collection.store import Entry, store_at
from tests.collection.serving import TOKEN, Server, new_id, serving
from tests.collection.surveys import EVERY_KIND, answers, responses_of

pytest.importorskip("fastapi", reason="needs the extra 'collect'")
RESPONSES = responses_of()
KILLS = 20


class Respondent(threading.Thread):
    """Sends responses, singly and in batches, and tries each until it is acknowledged."""

    def __init__(self, server: Server, rows: list[dict[str, Any]], batch: int) -> None:
        super().__init__(daemon=True)
        self.server, self.rows, self.batch = server, rows, batch
        self.acknowledged: list[str] = []
        self.sent: list[str] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        place = 0
        while not self.stopped.is_set():
            entries = [{"id": new_id(), "answers": self.rows[(place + i) % len(self.rows)]} for i in range(self.batch)]
            place += self.batch
            self.sent += [entry["id"] for entry in entries]
            while not self._arrived(entries) and not self.stopped.is_set():
                time.sleep(0.02)

    def _arrived(self, entries: list[dict[str, Any]]) -> bool:
        try:
            if self.batch == 1:
                status, _ = self.server.post("/responses", {"survey": RESPONSES.fingerprint, **entries[0]})
            else:
                body = {"survey": RESPONSES.fingerprint, "responses": entries}
                status, _ = self.server.post("/responses/batch", body)
        except OSError:  # killed in between: it may or may not have been stored
            return False
        except Exception:  # half an answer
            return False
        if status not in (200, 201):
            return False
        self.acknowledged += [entry["id"] for entry in entries]
        return True


@pytest.mark.long
def test_what_was_acknowledged_survives_twenty_kills_and_counts_once(address: str, tmp_path: Path) -> None:
    survey = tmp_path / "survey.toml"
    survey.write_text(EVERY_KIND, encoding="utf-8")
    rows = sent(RESPONSES.sheet, RESPONSES.fingerprint, answers(50), [os.urandom(32) for _ in range(50)])
    with serving(survey, address, tmp_path) as server:
        senders = [Respondent(server, rows, batch) for batch in (1, 1, 1, 7, 50)]
        for sender in senders:
            sender.start()
        for number in range(KILLS):
            time.sleep(0.3 + 0.05 * (number % 7))
            before = sum(len(sender.acknowledged) for sender in senders)
            server.stop(signal.SIGKILL)
            server.start()
            deadline = time.monotonic() + 60
            while sum(len(sender.acknowledged) for sender in senders) == before and time.monotonic() < deadline:
                time.sleep(0.02)
        for sender in senders:
            sender.stopped.set()
        for sender in senders:
            sender.join(60)
        assert server.get("/progress", TOKEN)[0] == 200
        server.stop(signal.SIGKILL)
    acknowledged = [one for sender in senders for one in sender.acknowledged]
    tried = {one for sender in senders for one in sender.sent}
    assert len(acknowledged) > 20 * KILLS
    stored = ids_in(address)
    assert len(stored) == len(set(stored))  # none twice
    assert set(acknowledged) <= set(stored)  # every one that was acknowledged
    assert set(stored) <= tried


def ids_in(address: str) -> list[str]:
    """The ids in a store, read without our code."""
    if address.startswith("postgresql://"):
        import psycopg

        with psycopg.connect(address) as connection:
            return [row[0] for row in connection.execute("SELECT id FROM deniable_responses").fetchall()]
    import sqlite3

    with sqlite3.connect(address) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [row[0] for row in connection.execute("SELECT id FROM responses")]


@pytest.mark.long
def test_both_stores_do_the_same(address: str) -> None:
    store = store_at(address)
    store.open_for("a" * 40)
    entries = [Entry(new_id(), f"[{i}]", None, "2025-01-01") for i in range(5)]
    assert store.add(entries) == ["new"] * 5
    assert store.add([*entries, entries[0]]) == ["known"] * 6
    fresh = Entry(new_id(), "[9]", None, "2025-01-02")
    assert store.add([fresh, fresh]) == ["new", "known"]
    assert store.count() == 6
    assert store.days() == [("2025-01-01", 5), ("2025-01-02", 1)]
    assert sorted(store.rows()) == ["[0]", "[1]", "[2]", "[3]", "[4]", "[9]"]
    store.add_codes(["h1", "h2"])
    coded = Entry(new_id(), "[1]", "h1", "2025-01-02")
    assert store.add([coded, coded, Entry(new_id(), "[2]", "h1", "2025-01-02")]) == ["new", "known", "code"]
    assert store.codes() == (2, 1)
    assert store.setting("token") is None
    assert store.setting("token", "x") == "x"
    store.close()
    again = store_at(address)
    assert again.count() == 7
    with pytest.raises(Exception, match="another version of this survey"):
        again.open_for("b" * 40)
    again.close()


def test_an_unknown_store_is_refused_and_its_password_is_not_named(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="mysql") as refused:
        store_at("mysql://me:secret@host/x")
    assert "secret" not in str(refused.value)
    pytest.importorskip("psycopg", reason="needs the extra 'collect'")
    with pytest.raises(Exception, match="cannot be reached") as refused:
        store_at("postgresql://me:secret@127.0.0.1:1/x")
    assert "secret" not in str(refused.value)
    with pytest.raises(Exception, match="cannot be opened"):
        store_at(str(tmp_path / "no" / "such" / "folder.db"))
