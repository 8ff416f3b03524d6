"""Connections that nobody uses are closed, and a state that lasts is logged once."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator

import pytest

uvicorn = pytest.importorskip("uvicorn", reason="needs the extra 'collect'")
pytest.importorskip("fastapi", reason="needs the extra 'collect'")

from deniable.collection.server import serving  # noqa: E402
from deniable.collection.server.guards import Lasting  # noqa: E402

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n"


async def app(scope, receive, send) -> None:
    if scope["path"] == "/slow":
        await asyncio.sleep(60)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server that is as hurried as the test."""
    monkeypatch.setattr(serving, "SLOWEST_HEADERS", 1.0)
    monkeypatch.setattr(serving, "SLOWEST_REQUEST", 2.0)
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 20)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=serving.Prompt, lifespan="off", log_level="error", timeout_keep_alive=30)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = server.force_exit = True  # a request that is still answered is not waited for
    thread.join(20)
    assert not thread.is_alive()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def closed_after(connection: socket.socket, dribbled: bytes = b"") -> float:
    """Seconds until the other side closes, while a header comes byte by byte."""
    begun = time.monotonic()
    connection.settimeout(0.1)
    while time.monotonic() - begun < 15:
        try:
            if dribbled:
                connection.send(dribbled)
            if connection.recv(100) == b"":
                return time.monotonic() - begun
        except TimeoutError:
            continue
        except OSError:
            return time.monotonic() - begun
    return float("inf")


def answer(connection: socket.socket) -> bytes:
    """One whole answer, which may come in pieces."""
    got = b""
    while not got.endswith(b"\r\n\r\nok"):
        piece = connection.recv(1000)
        assert piece, got
        got += piece
    return got


def test_connections_that_send_nothing_or_dribble_are_closed(port: int) -> None:
    with connected(port) as silent, connected(port) as dribbling:
        dribbling.sendall(REQUEST + b"X: ")
        assert closed_after(dribbling, b"a") < 10
        assert closed_after(silent) < 10


def test_a_second_request_may_not_dribble_either(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(REQUEST + b"\r\n")
        assert b"200 OK" in answer(connection)
        time.sleep(1.5)  # longer than headers may take: between requests the time to keep alive counts
        connection.sendall(REQUEST + b"\r\n")
        assert b"200 OK" in answer(connection)
        connection.sendall(REQUEST + b"X: ")
        assert closed_after(connection, b"a") < 10


def test_a_request_that_is_not_answered_in_time_is_ended(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        assert 1.0 < closed_after(connection) < 10


def test_no_more_connections_are_held_than_stated(port: int) -> None:
    held = [connected(port) for _ in range(30)]
    try:
        time.sleep(0.5)
        ended = sum(closed_after(connection) < 0.5 for connection in held[20:])
        assert ended == 10
    finally:
        for connection in held:
            connection.close()


def test_a_state_that_lasts_is_one_line() -> None:
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    log = logging.Logger("test")
    log.addHandler(Kept())
    log.addFilter(Lasting(seconds=0.2))
    for _ in range(1000):
        log.error("the store failed: %s", "OSError")
    log.error("something else")
    time.sleep(0.3)
    log.error("the store failed: %s", "OSError")
    assert lines[:2] == ["the store failed: OSError", "something else"]
    assert lines[2].startswith("the store failed: OSError (999 times more")
