"""The Python client: it perturbs before anything leaves, checks the survey first, and loses nothing on its way."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import deniable as dn
from deniable.collection.client import Client, ClientError, Submitted, sent
from deniable.collection.wire import CertificateError, certified
from deniable.core.errors import OptionError
from tests.collection.surveys import EVERY_KIND, answers, responses_of

RESPONSES = responses_of()


class Stand(ThreadingHTTPServer):
    """A server made for these tests: it takes batches, and fails as often as it is told to."""

    document = RESPONSES.document
    failing = 0
    status = 503
    most = 10**9  # bytes

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.kept: dict[str, Any] = {}
        self.requests: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Stand

    def do_GET(self) -> None:
        self._told(200, self.server.document.encode())

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(size))
        if size > self.server.most:
            self._told(413, b'{"error": "too large"}')
            return
        self.server.requests.append(body)
        if self.server.failing:
            self.server.failing -= 1
            if self.server.status == 200:  # stored, and the answer is lost on its way
                self.server.kept.update({one["id"]: one["answers"] for one in body["responses"]})
                self.connection.close()
                return
            self._told(self.server.status, b'{"error": "not now"}')
            return
        new = [one for one in body["responses"] if one["id"] not in self.server.kept]
        self.server.kept.update({one["id"]: one["answers"] for one in new})
        told = {"new": len(new), "known": len(body["responses"]) - len(new), "refused": []}
        self._told(200, json.dumps(told).encode())

    def _told(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def stand() -> Iterator[Stand]:
    server = Stand()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_only_perturbed_answers_leave_and_in_batches(stand: Stand) -> None:
    given = answers(25)
    done = Client(stand.url, batch=10).submit(given)
    assert (done.sent, done.new, done.queued) == (25, 25, 0)
    assert [len(one["responses"]) for one in stand.requests] == [10, 10, 5]
    for row in stand.kept.values():
        RESPONSES.check_one({"id": "0" * 32, "answers": row})
    assert len(stand.kept) == 25
    # "illness" leaves as a line-up, and "smokes" is what was answered 9/11 of the time, not always
    assert all(isinstance(row["illness"], list) for row in stand.kept.values())


def test_failures_are_tried_again_and_count_once(stand: Stand) -> None:
    client = Client(stand.url)
    for status in (503, 429, 200):
        stand.failing, stand.status = 2, status
        done = client.submit(answers(3))
        assert (done.sent, done.queued) == (3, 0)
    assert len(stand.kept) == 9


def test_what_cannot_be_sent_waits_on_disk_without_the_answers(stand: Stand, tmp_path: Path) -> None:
    queue = tmp_path / "queue.db"
    client = Client(stand.url, queue=queue, tries=1)
    stand.failing = 1
    assert client.submit(answers(4)).queued == 4
    assert queue.stat().st_mode & 0o077 == 0
    again = Client(stand.url, queue=queue)
    assert again.flush().sent == 4
    assert again.flush().sent == 0
    waiting = stand.requests[0]["responses"]
    assert {one["id"] for one in waiting} == set(stand.kept)
    assert set(waiting[0]) == {"id", "answers"}


def test_a_refusal_is_an_error_with_its_reason(stand: Stand) -> None:
    stand.failing, stand.status = 1, 422
    with pytest.raises(ClientError, match=r"422.*not now"):
        Client(stand.url).submit(answers(1))


def test_the_same_key_and_answers_give_the_same_response(stand: Stand) -> None:
    client = Client(stand.url)
    key, given = hashlib.sha256(b"device").digest(), answers(1)
    assert client.submit(given, keys=[key]).new == 1
    assert client.submit(given, keys=[key]).new == 0
    (row,) = stand.kept.values()
    assert row == sent(RESPONSES.sheet, RESPONSES.fingerprint, given, [key])[0]
    with pytest.raises(OptionError, match="32 bytes"):
        client.submit(given, keys=[b"short"])
    with pytest.raises(OptionError, match="codes"):
        client.submit(given, codes=["ABCD-EFGH-IJKL-MNOP"])


def test_a_code_that_is_none_is_refused_before_it_waits_in_the_queue(stand: Stand, tmp_path: Path) -> None:
    """The server refuses the whole batch for it, and would for ever: everything behind it would wait, too."""
    needs_codes = responses_of("codes = true\n" + EVERY_KIND)
    stand.document = needs_codes.document
    client = Client(stand.url, queue=tmp_path / "queue.db")
    with pytest.raises(OptionError, match="ABCD-EFGH-IJKL-MNOP"):
        client.submit(answers(1), codes=["abcd-efgh-ijkl-mnop"])
    assert client.flush() == Submitted(0, 0, 0)
    assert client.submit(answers(1), codes=["ABCD-EFGH-IJKL-MNOP"]).sent == 1


def long_survey(questions: int) -> str:
    """A survey whose responses are large: choices of many letters that JSON escapes."""
    choices = ", ".join(f'"{letter * 99}"' for letter in "äöüß")
    asks = "".join(
        f'[[question]]\nname = "q{number}"\nkind = "choice"\ntext = {{ en = "?" }}\nchoices = [{choices}]\n'
        for number in range(questions)
    )
    start = 'name = "long"\nlanguages = ["en"]\ntitle = { en = "." }\nconsent = { en = "." }\n'
    return f'{start}privacy = {{ rho1 = "1/10", rho2 = "1/3" }}\n{asks}'


def test_responses_that_are_too_large_for_one_batch_are_sent_in_several(stand: Stand) -> None:
    """A batch of more than four megabytes was refused, and stayed at the head of the queue for ever."""
    stand.document, stand.most = responses_of(long_survey(30)).document, 4 * 1024 * 1024
    given = {f"q{number}": "ä" * 99 for number in range(30)}
    done = Client(stand.url, tries=1).submit([given] * 400)
    assert done == Submitted(400, 400, 0)
    sizes = [len(one["responses"]) for one in stand.requests]
    assert sum(sizes) == 400
    assert sizes == sorted(sizes, reverse=True)  # as many as fit, and the rest


def test_a_response_that_no_server_takes_is_refused_before_it_waits_in_the_queue(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deniable.collection.client.MOST_ENTRIES_BYTES", 500)
    client = Client(stand.url, queue=tmp_path / "queue.db")
    stand.document = responses_of(long_survey(1)).document
    large = Client(stand.url, queue=tmp_path / "queue.db")
    with pytest.raises(OptionError, match=r"larger than the 4,194,304 bytes.* shorter choices"):
        large.submit({"q0": "ä" * 99})
    assert large.flush() == Submitted(0, 0, 0)
    assert client.submit(answers(1)).sent == 1


def test_what_waits_for_another_version_of_the_survey_is_counted(stand: Stand, tmp_path: Path) -> None:
    """It cannot be sent to the new version, and nobody was told that it waits."""
    client = Client(stand.url, queue=tmp_path / "queue.db", tries=1)
    stand.failing = 1
    client.submit(answers(4))
    stand.document = changed(text=True)
    assert Client(stand.url, queue=tmp_path / "queue.db").submit(answers(2)) == Submitted(2, 2, 0, (), others=4)
    assert client.flush().sent == 4


def test_asyncio(stand: Stand) -> None:
    async def run() -> tuple[int, int]:
        client = Client(stand.url)
        done = await client.asubmit(answers(5))
        return done.new, (await client.aflush()).sent

    assert asyncio.run(run()) == (5, 0)


def changed(**changes: Any) -> str:
    document = json.loads(RESPONSES.document)
    smokes = document["questions"][1]
    smokes["columns"][0]["channel"]["keep"] += changes.get("keep", 0)
    document["questions"][2]["columns"][0]["channel"]["truth"] += changes.get("truth", 0)
    if "public" in changes:
        smokes["public"] = True
    if "text" in changes:
        smokes["text"] = {"en": "?", "de": "?"}
    document["gamma"] = changes.get("gamma", document["gamma"])
    return json.dumps(document)


@pytest.mark.parametrize("change", [{"keep": 2**20}, {"truth": 2**14}, {"public": True}, {"gamma": "9/2"}])
def test_a_survey_that_protects_less_than_it_says_is_refused(stand: Stand, change: dict[str, Any]) -> None:
    stand.document = changed(**change)
    with pytest.raises(CertificateError, match="Nothing was sent"):
        Client(stand.url)
    assert stand.requests == []


def test_another_survey_than_the_invitation_names_is_refused(stand: Stand) -> None:
    Client(stand.url, fingerprint=RESPONSES.fingerprint, most_epsilon=20)
    with pytest.raises(ClientError, match="you accept 1"):
        Client(stand.url, most_epsilon=1)
    stand.document = changed(text=True)
    certified(stand.document)  # its noise is what it says; only the fingerprint shows that a question was changed
    with pytest.raises(ClientError, match="words or its noise were changed"):
        Client(stand.url, fingerprint=RESPONSES.fingerprint)


def test_what_is_no_survey_is_refused(stand: Stand) -> None:
    for document in ("", "[]", "{}", json.dumps({**json.loads(RESPONSES.document), "format_version": 9})):
        stand.document = document
        with pytest.raises(CertificateError):
            Client(stand.url)
    with pytest.raises(ClientError, match="cannot be fetched"):
        Client("http://127.0.0.1:9", tries=1)
    with pytest.raises(dn.DeniableError, match="https://"):
        Client("survey.example.org")
