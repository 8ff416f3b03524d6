"""The server: only perturbed rows come in, only estimates go out, and everything else is refused with its reason."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import sqlite3
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deniable as dn
from deniable.collection.client import sent
from deniable.tables.keys import KEY_BYTES
from tests.collection.serving import TOKEN, Server, new_id, serving
from tests.collection.surveys import EVERY_KIND, answers, responses_of

pytest.importorskip("fastapi", reason="needs the extra 'collect'")
RESPONSES = responses_of()


def rows(number: int) -> list[dict[str, Any]]:
    keys = [os.urandom(KEY_BYTES) for _ in range(number)]
    return sent(RESPONSES.sheet, RESPONSES.fingerprint, answers(number), keys)


def response(**changes: Any) -> dict[str, Any]:
    return {"survey": RESPONSES.fingerprint, "id": new_id(), "answers": rows(1)[0], **changes}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("server")
    survey = home / "survey.toml"
    survey.write_text(EVERY_KIND, encoding="utf-8")
    with serving(survey, str(home / "responses.db"), home) as started:
        assert started.get("/results", TOKEN)[0] == 409  # nobody answered yet
        yield started


def test_the_survey_is_served_as_the_text_that_its_fingerprint_is_of(server: Server) -> None:
    status, document, headers = server.request("GET", "/survey")
    assert status == 200
    assert document == json.loads(RESPONSES.document)
    assert headers["etag"] == f'"{RESPONSES.fingerprint}"'


def test_a_response_counts_once_however_often_it_is_sent(server: Server) -> None:
    one = response()
    before = server.get("/progress", TOKEN)[1]["responses"]
    assert server.post("/responses", one) == (201, {"stored": True, "new": True})
    assert server.post("/responses", one) == (200, {"stored": True, "new": False})
    batch = {"survey": RESPONSES.fingerprint, "responses": [{"id": one["id"], "answers": one["answers"]}] * 2}
    assert server.post("/responses/batch", batch) == (200, {"new": 0, "known": 2, "refused": []})
    assert server.get("/progress", TOKEN)[1]["responses"] == before + 1


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"survey": "0" * 40}, "another version of the survey"),
    ({"id": "short"}, "32 hexadecimal digits"),
    ({"id": None}, "32 hexadecimal digits"),
    ({"more": 1}, "unknown field 'more'"),
    ({"code": "ABCD-EFGH-IJKL-MNOP"}, "takes no one-time codes"),
    ({"answers": []}, "answers is a JSON object"),
    ({"answers": {}}, "lacks the column"),
]
WRONG_ANSWERS: list[tuple[str, Any]] = [
    ("smokes", "maybe"),
    ("smokes", None),
    ("smokes", ["yes"]),
    ("illness", "a"),
    ("illness", ["a", "b"]),
    ("illness", ["l", "a", "b"]),
    ("illness", [1, 2, 3]),
    ("days", 5),
    ("days", 10.0),
    ("days", True),
    ("days", 10**400),
    ("dose", 0.15),
    ("seen", "2024-02-30"),
    ("seen", None),
    ("team", None),
    ("unknown", 1),
]


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_what_is_not_a_response_is_refused_with_the_reason(server: Server, change: dict[str, Any], said: str) -> None:
    status, told = server.post("/responses", response(**change))
    assert status == 422
    assert said in told["error"]


@pytest.mark.parametrize(("column", "value"), WRONG_ANSWERS)
def test_an_answer_outside_its_domain_is_refused_and_never_named(server: Server, column: str, value: Any) -> None:
    status, told = server.post("/responses", response(answers={**rows(1)[0], column: value}))
    assert status == 422
    assert column in told["error"]
    assert column == "unknown" or json.dumps(value) not in told["error"]


def test_a_batch_with_one_wrong_response_stores_nothing(server: Server) -> None:
    before = server.get("/progress", TOKEN)[1]["responses"]
    good = [{"id": new_id(), "answers": row} for row in rows(3)]
    batch = {"survey": RESPONSES.fingerprint, "responses": [*good, {"id": new_id(), "answers": {}}]}
    status, told = server.post("/responses/batch", batch)
    assert status == 422
    assert "Response 3 of the batch" in told["error"]
    assert server.get("/progress", TOKEN)[1]["responses"] == before


def test_large_slow_and_broken_bodies_are_refused(server: Server) -> None:
    assert server.post("/responses", b" " * 10_000_000)[0] == 413
    assert server.post("/responses/batch", b"[" * 10_000_000)[0] == 413
    assert server.post("/responses/batch", b"[" * 1_000_000)[0] == 400  # deeper than JSON is read
    assert server.post("/responses", b"\xff\xfe")[0] == 400
    assert server.post("/responses", b'{"id": NaN}')[0] == 400
    assert server.request("POST", "/responses", b"{}", Content_Type="text/plain")[0] == 415
    slow = []
    for _ in range(50):  # senders that never finish hold nobody up
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(
            b"POST /responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
        )
        slow.append(connection)
    assert server.post("/responses", response())[0] == 201
    for connection in slow:
        connection.close()


def test_two_hundred_at_once_are_all_stored(server: Server) -> None:
    before = server.get("/progress", TOKEN)[1]["responses"]
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda one=one: statuses.append(server.post("/responses", one)[0]))  # type: ignore[misc]
        for one in [response() for _ in range(200)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [201] * 200
    assert server.get("/progress", TOKEN)[1]["responses"] == before + 200


PROTECTED = [("GET", "/progress"), ("GET", "/results"), ("GET", "/results/cross?one=smokes&other=team"),
             ("POST", "/questions"), ("GET", "/export")]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), PROTECTED)
def test_results_need_the_token_and_tell_nothing_without(server: Server, method: str, path: str) -> None:
    body = {"sql": "SELECT COUNT(*) AS n FROM release"} if method == "POST" else None
    for headers, expected in (
        ({}, 401), ({"Authorization": "Basic abc"}, 401), ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Bearer wrong"}, 403), ({"Authorization": f"Bearer {TOKEN}x"}, 403),
    ):  # fmt: skip
        status, told, _ = server.request(method, path, body, **headers)
        assert status == expected
        assert set(told) == {"error"}
    server.post("/responses", response())
    assert server.request(method, path, body, Authorization=f"Bearer {TOKEN}")[0] == 200


def test_answers_are_estimates_with_intervals(server: Server) -> None:
    batch = [{"id": new_id(), "answers": row} for row in rows(1000)]
    assert server.post("/responses/batch", {"survey": RESPONSES.fingerprint, "responses": batch})[1]["new"] == 1000
    time.sleep(2.1)  # results are kept for two seconds
    status, told = server.post(
        "/questions",
        {"sql": "SELECT smokes, COUNT(*) AS n FROM release GROUP BY smokes"},
        Authorization=f"Bearer {TOKEN}",
    )
    assert status == 200
    assert told["columns"] == ["smokes", "n", "n_low", "n_high"]
    results = server.get("/results", TOKEN)[1]
    assert sum(row[1] for row in told["rows"]) == pytest.approx(results["responses"])
    by_name = {column["column"]: column for column in results["columns"]}
    assert set(by_name) == {column.name for column in RESPONSES.sheet.columns}
    assert by_name["team"]["public"]
    assert by_name["smokes"]["needed_for"]["respondents"] > 0
    crossed = server.get("/results/cross?one=illness&other=smokes", TOKEN)[1]
    assert len(crossed["cells"]) == len(crossed["rows"]) == 13
    total = sum(cell["count"] for row in crossed["cells"] for cell in row)
    assert total == pytest.approx(results["responses"])
    for wrong in ("DROP TABLE release", "SELECT nothing FROM release", ""):
        assert server.post("/questions", {"sql": wrong}, Authorization=f"Bearer {TOKEN}")[0] == 422
    assert server.get("/results/cross?one=smokes&other=smoke", TOKEN)[0] == 422


def test_the_export_verifies_and_tells_no_time(server: Server, tmp_path: Path) -> None:
    server.post("/responses", response())
    status, content = server.get("/export", TOKEN)
    assert status == 200
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        archive.extractall(tmp_path)
    assert dn.verify(tmp_path / "every-kind").holds
    table = dn.open_release(tmp_path / "every-kind").table
    assert not {"id", "day"} & set(table.column_names)


def test_the_openapi_document_names_every_route_and_how_to_sign_in(server: Server) -> None:
    document = server.get("/openapi.json")[1]
    assert set(document["paths"]) == {
        *("/survey", "/healthz", "/responses", "/responses/batch"),
        *("/progress", "/results", "/results/cross", "/questions", "/export"),
    }
    assert document["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    for method, path in PROTECTED:
        assert document["paths"][path.partition("?")[0]][method.lower()]["security"] == [{"token": []}]


def test_headers_forbid_everything_from_elsewhere(server: Server) -> None:
    for path in ("/", "/survey", "/results.html", "/survey.js", "/nothing", "/openapi.json"):
        _, _, headers = server.request("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
    page = server.request("GET", "/")[1].decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|https?://", page)


def test_nothing_about_the_sender_or_the_time_is_stored_or_logged(server: Server) -> None:
    agent = f"agent-{new_id()}"
    one = response()
    server.post("/responses", one, User_Agent=agent)
    server.post("/responses", {**one, "survey": "x"}, User_Agent=agent)
    content = b"".join(
        path.read_bytes() for path in server.log.parent.iterdir() if path.is_file() and path.name != "token"
    )
    assert one["id"].encode() in content
    assert agent.encode() not in content
    assert TOKEN.encode() not in content
    assert b"127.0.0.1" not in b"".join(
        path.read_bytes() for path in server.log.parent.iterdir() if path.suffix in (".db", ".db-wal")
    )
    with sqlite3.connect(server.store) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(responses)")]
        assert columns == ["id", "day", "answers"]
        ((day,),) = connection.execute("SELECT DISTINCT day FROM responses").fetchall()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    assert one["id"] not in server.log.read_text()


@pytest.mark.long
def test_it_stops_gracefully_and_keeps_its_token_and_survey(tmp_path: Path) -> None:
    survey = tmp_path / "survey.toml"
    survey.write_text(EVERY_KIND, encoding="utf-8")
    with serving(survey, str(tmp_path / "r.db"), tmp_path) as server:
        assert server.post("/responses", response())[0] == 201
        assert server.stop(signal.SIGTERM) in (0, -signal.SIGTERM)
        server.start()
        assert server.get("/progress", TOKEN)[1]["responses"] == 1
        server.stop(signal.SIGTERM)
        survey.write_text(EVERY_KIND.replace('"1/3"', '"1/2"'), encoding="utf-8")
        with pytest.raises(AssertionError, match="another version of this survey"):
            server.start()


@pytest.mark.long
def test_one_time_codes_are_used_once_and_kept_as_hashes(tmp_path: Path) -> None:
    import subprocess
    import sys

    survey, store = tmp_path / "survey.toml", str(tmp_path / "r.db")
    survey.write_text("codes = true\n" + EVERY_KIND, encoding="utf-8")
    with_codes = responses_of("codes = true\n" + EVERY_KIND)
    command = [sys.executable, "-m", "deniable", "collect", "codes", str(survey), "-n", "3", "--store", store]
    codes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(set(codes)) == 3
    assert not any(code.encode() in (tmp_path / "r.db").read_bytes() for code in codes)
    with serving(survey, store, tmp_path) as server:

        def send(code: Any, id: str | None = None) -> tuple[int, Any]:
            one = {"survey": with_codes.fingerprint, "id": id or new_id(), "answers": rows(1)[0], "code": code}
            return server.post("/responses", one)

        mine = new_id()
        assert send(codes[0], mine)[0] == 201
        assert send(codes[0], mine)[0] == 200  # a retry
        assert send(codes[0])[0] == 422  # someone else with the same code
        assert send("AAAA-AAAA-AAAA-AAAA")[0] == 422
        assert send(None)[0] == 422
        batch = [{"id": new_id(), "answers": rows(1)[0], "code": code} for code in codes]
        told = server.post("/responses/batch", {"survey": with_codes.fingerprint, "responses": batch})[1]
        assert (told["new"], told["refused"]) == (2, [batch[0]["id"]])
        assert server.get("/progress", TOKEN)[1]["codes"] == {"made": 3, "used": 3}


@pytest.mark.long
def test_one_place_cannot_send_without_end(tmp_path: Path) -> None:
    survey = tmp_path / "survey.toml"
    survey.write_text(EVERY_KIND, encoding="utf-8")
    with serving(survey, str(tmp_path / "r.db"), tmp_path, rate=60) as server:
        batch = [{"id": new_id(), "answers": row} for row in rows(900)]
        assert server.post("/responses/batch", {"survey": RESPONSES.fingerprint, "responses": batch})[0] == 200
        status, _, headers = server.request(
            "POST", "/responses/batch", {"survey": RESPONSES.fingerprint, "responses": batch}
        )
        assert status == 429
        assert int(headers["retry-after"]) > 100
