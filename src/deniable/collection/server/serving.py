"""Serve a survey until someone stops it."""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from deniable.collection.server.app import make_app
from deniable.collection.store import Store
from deniable.collection.wire import Responses, hashed
from deniable.core.errors import OptionError, SecretError
from deniable.core.text import small_text

LEAST_TOKEN = 20  # characters
MOST_CONNECTIONS = 2_000
SLOWEST_HEADERS = 10.0  # seconds from the first byte of a request, or from the connection, to its last header
SLOWEST_REQUEST = 60.0  # until it is answered, and the answer is taken


class Prompt(H11Protocol):
    """HTTP with connections that someone uses: one that dribbles its headers, or never takes its answer, is closed."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.close()
        else:
            self._close_after(SLOWEST_HEADERS)

    def data_received(self, data: bytes) -> None:
        answered = self.cycle is None or self.cycle.response_complete
        if answered and self._late is None:
            self._close_after(SLOWEST_HEADERS)
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:  # the headers are complete
            self._close_after(SLOWEST_REQUEST)

    def on_response_complete(self) -> None:
        self._close_after(None)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._close_after(None)
        super().connection_lost(exc)

    def _close_after(self, seconds: float | None) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


def require_free(host: str, port: int) -> None:
    """Refuse an address that cannot be listened at, before a token is made, which is told once."""
    try:
        for family, kind, proto, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, proto) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind(address)
    except OSError as problem:
        reasons = {
            errno.EADDRINUSE: f"port {port} is in use by another program. Fix: another --port, or stop that program.",
            errno.EACCES: f"port {port} is not for this account. Fix: a --port of 1024 or above, behind a proxy.",
        }
        other = "it is no address of this machine. Fix: --host 127.0.0.1, or 0.0.0.0 for all of its addresses."
        raise OptionError(f"{host} cannot be listened at: {reasons.get(problem.errno or 0, other)}") from None


def token_in(file: Path) -> str:
    """The token of a file."""
    try:
        token = small_text(file).strip()
    except (OSError, UnicodeDecodeError):
        raise SecretError(
            f"The token file {str(file)!r} cannot be read as text. Fix: check the name; openssl rand -hex 32 makes a "
            "token."
        ) from None
    if len(token) < LEAST_TOKEN:
        raise SecretError(
            f"The token in {str(file)!r} is shorter than {LEAST_TOKEN} characters: it could be guessed. "
            "Fix: openssl rand -hex 32."
        )
    return token


def results_token(store: Store, given: str | None) -> tuple[str, str | None]:
    """The hash of the token that results need, and the token itself where it was just made: it is told once."""
    kept = store.setting("token") if given is None else None
    if kept is not None:
        return kept, None
    token = given or secrets.token_urlsafe(32)
    store.setting("token", hashed(token))
    return hashed(token), None if given else token


def serve(
    responses: Responses,
    store: Store,
    token_hash: str,
    *,
    host: str,
    port: int,
    rate: int,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C: requests that are under way are answered first. No request is logged."""
    app = make_app(responses, store, token_hash, rate)
    config = uvicorn.Config(
        app,
        http=Prompt,
        host=host,
        port=port,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=15,
        backlog=2048,
    )
    ready()
    with suppress(KeyboardInterrupt):  # raised again when it has stopped: that is how a server ends
        uvicorn.Server(config).run()
