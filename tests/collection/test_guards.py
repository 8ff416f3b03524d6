"""What stands in front of requests, without a network: failures, headers, rates by sender."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.collection.surveys import responses_of

pytest.importorskip("fastapi", reason="needs the extra 'collect'")

from fastapi import HTTPException

from deniable.collection.server.app import make_app
from deniable.collection.server.guards import Rates
from deniable.collection.store import SqliteStore
from deniable.collection.wire import hashed

TOKEN = "token-for-the-guards-0123456789"
RESPONSES = responses_of()


def app_of(tmp_path: Path, rate: int = 0) -> Any:
    return make_app(RESPONSES, SqliteStore(tmp_path / "responses.db"), hashed(TOKEN), rate)


def asked(app: Any, method: str, path: str, content: Any = None) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON of one request, straight to the application: what it raises is raised here."""
    head = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in head.items()], "client": ("192.0.2.7", 1),
        "http_version": "1.1", "scheme": "http", "server": ("here", 80), "root_path": "",
    }  # fmt: skip
    told: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(content).encode(), "more_body": False}

    async def send(message: Any) -> None:
        told.append(message)

    asyncio.run(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in told[0]["headers"]}
    return told[0]["status"], headers, json.loads(b"".join(message.get("body", b"") for message in told[1:]))


def test_a_failure_is_an_answer_like_others_and_its_words_are_seen_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_of(tmp_path)

    def fails() -> int:
        raise RuntimeError("smokes: yes")

    monkeypatch.setattr(app.state.store, "count", fails)
    status, headers, said = asked(app, "GET", "/progress")
    assert (status, list(said)) == (500, ["error"])
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "RuntimeError" in caplog.text
    assert "smokes" not in caplog.text + said["error"]


def test_results_are_kept_by_no_cache_and_the_page_is_asked_for_anew(tmp_path: Path) -> None:
    app = app_of(tmp_path)
    assert asked(app, "GET", "/progress")[1]["cache-control"] == "no-store"
    assert asked(app, "GET", "/survey")[1]["cache-control"] == "no-cache"


def test_half_a_character_in_a_question_is_refused(tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) FROM release WHERE smokes = '\ud800'"
    status, _, said = asked(app_of(tmp_path), "POST", "/questions", {"sql": sql})
    assert (status, said["error"]) == (422, "The question holds half a character. Fix: send it as UTF-8.")


def test_batches_that_are_refused_count_for_the_rate(tmp_path: Path) -> None:
    app = app_of(tmp_path, rate=1)
    statuses = [asked(app, "POST", "/responses/batch", [])[0] for _ in range(1001)]
    assert statuses == [422] * 1000 + [429]


SENDERS = [
    ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),  # one network: whoever has it has 2^64 addresses
    ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
    ("192.0.2.7", "::ffff:192.0.2.7", True),
    ("::ffff:192.0.2.7", "::ffff:192.0.2.8", False),
    ("192.0.2.7", "192.0.2.8", False),
]


@pytest.mark.parametrize(("one", "other", "same"), SENDERS)
def test_who_counts_as_one_sender(one: str, other: str, same: bool) -> None:
    rates = Rates(1, 1)
    request: Any = SimpleNamespace(client=SimpleNamespace(host=one))
    rates.take(request)
    request.client.host = other
    with pytest.raises(HTTPException) if same else nullcontext():
        rates.take(request)
