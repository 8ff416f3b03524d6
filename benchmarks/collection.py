"""Collecting responses: the server beside a bare FastAPI endpoint that writes the same rows to the same store.

Both run in processes of their own on this machine, with the same load: connections that stay open, each waiting for its
answer before it sends the next response. The ratio is our time over the bare endpoint's, for the same responses.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

CONNECTIONS = 16
SINGLE, BATCHES, IN_BATCH = 4000, 160, 100
ROUNDS = 3
BARE = """
import datetime, json, sqlite3, sys
import uvicorn
from fastapi import FastAPI, Request

store, port = sys.argv[1], int(sys.argv[2])
app = FastAPI()
if store.startswith("postgresql://"):
    import psycopg
    connection = psycopg.connect(store, autocommit=True)
    INSERT = "INSERT INTO bare VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
    connection.execute("CREATE TABLE IF NOT EXISTS bare (id text PRIMARY KEY, day text, answers text)")
    cursor = connection.cursor()
    begin, commit, execute, many = "BEGIN", "COMMIT", connection.execute, cursor.executemany
else:
    connection = sqlite3.connect(store, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute("PRAGMA " + pragma)
    INSERT = "INSERT OR IGNORE INTO bare VALUES (?, ?, ?)"
    connection.execute("CREATE TABLE IF NOT EXISTS bare (id TEXT PRIMARY KEY, day TEXT, answers TEXT) WITHOUT ROWID")
    begin, commit, execute, many = "BEGIN", "COMMIT", connection.execute, connection.executemany

def row(raw):
    return raw["id"], datetime.date.today().isoformat(), json.dumps(list(raw["answers"].values()))

@app.post("/responses")
async def one(request: Request):
    execute(INSERT, row(await request.json()))
    return {"stored": True}

@app.post("/responses/batch")
async def batch(request: Request):
    rows = [row(raw) for raw in (await request.json())["responses"]]
    execute(begin)
    many(INSERT, rows)
    execute(commit)
    return {"new": len(rows)}

@app.get("/healthz")
async def health():
    return {}

uvicorn.run(app, host="127.0.0.1", port=port, access_log=False, log_level="warning")
"""


def rows() -> list[Mapping[str, Any]]:
    """Responses a second and the slowest hundredth, single and batched, on both stores."""
    try:
        import fastapi  # noqa: F401
    except ImportError:
        return [{"what": "collection", "note": "skipped: needs the extra 'collect'"}]
    measured: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory() as home:
        measured += _measured(Path(home), "SQLite", str(Path(home) / "ours.db"), str(Path(home) / "bare.db"))
    if shutil.which("initdb") is None:
        return [*measured, {"what": "collection, PostgreSQL", "note": "skipped: needs PostgreSQL on the PATH"}]
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.collection.serving import postgres

    with tempfile.TemporaryDirectory() as home, postgres() as address:
        measured += _measured(Path(home), "PostgreSQL", address, address)
    return measured


def _measured(home: Path, name: str, ours: str, bare: str) -> Iterator[Mapping[str, Any]]:
    survey = home / "survey.toml"
    survey.write_text(resources.files("deniable.collection").joinpath("example.toml").read_text(), encoding="utf-8")
    ports = [_free_port(), _free_port()]
    serve = ["collect", "serve", str(survey), "--store", ours, "--port", str(ports[0]), "--rate", "0"]
    commands = [[sys.executable, "-m", "deniable", *serve], [sys.executable, "-c", BARE, bare, str(ports[1])]]
    with contextlib.ExitStack() as stack:
        for command, port in zip(commands, ports, strict=True):
            stack.enter_context(_running(command, port))
        answers, fingerprint = _answers(survey)
        for what, per_request, requests in (("single", 1, SINGLE), (f"batches of {IN_BATCH}", IN_BATCH, BATCHES)):
            runs: list[list[tuple[float, float]]] = [[], []]
            for _ in range(ROUNDS):  # by turns, so that both see the same machine
                for place, port in enumerate(ports):
                    runs[place].append(_load(port, answers, fingerprint, per_request, requests))
            mine, theirs = (min(run) for run in runs)
            total = per_request * requests
            yield {
                "what": f"{total:,} responses, {what}, {name}",
                "seconds": mine[0],
                "ratio": mine[0] / theirs[0],
                "per second": round(total / mine[0]),
                "p99 ms": round(1000 * mine[1], 1),
                "note": f"to a bare FastAPI endpoint: {total / theirs[0]:,.0f} a second, p99 {1000 * theirs[1]:.1f} ms",
            }


def _answers(survey: Path) -> tuple[list[dict[str, Any]], str]:
    from deniable.collection.collected import Respondents
    from deniable.collection.sheet import Sheet
    from deniable.collection.survey import read_survey
    from deniable.collection.wire import Responses

    responses = Responses(Sheet.of(read_survey(survey)))
    return Respondents(responses, 500, seed=1).sent(), responses.fingerprint


def _load(
    port: int, answers: list[dict[str, Any]], fingerprint: str, per_request: int, requests: int
) -> tuple[float, float]:
    """Seconds for all requests, and the 99th percentile of one."""
    bodies = [_body(answers, fingerprint, per_request, number) for number in range(requests)]
    path = "/responses" if per_request == 1 else "/responses/batch"
    times: list[float] = []

    def send(mine: list[bytes]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for body in mine:
            start = time.perf_counter()
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            told = answer.read()
            if answer.status not in (200, 201):
                raise RuntimeError(told[:200])
            times.append(time.perf_counter() - start)
        connection.close()

    senders = [threading.Thread(target=send, args=(bodies[i::CONNECTIONS],)) for i in range(CONNECTIONS)]
    start = time.perf_counter()
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    if len(times) != requests:
        raise RuntimeError("some responses were not taken")
    return time.perf_counter() - start, sorted(times)[int(0.99 * len(times))]


def _body(answers: list[dict[str, Any]], fingerprint: str, per_request: int, number: int) -> bytes:
    entries = [
        {"id": os.urandom(16).hex(), "answers": answers[(number * per_request + place) % len(answers)]}
        for place in range(per_request)
    ]
    if per_request == 1:
        return json.dumps({"survey": fingerprint, **entries[0]}).encode()
    return json.dumps({"survey": fingerprint, "responses": entries}).encode()


@contextlib.contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/healthz")
                if connection.getresponse().status == 200:
                    break
            if process.poll() is not None:
                raise RuntimeError("a server did not start")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
