"""What stands in front of every request, and the one thread that writes what came through."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import logging
import queue
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse

from deniable.collection.store import Entry, Outcome, Store
from deniable.collection.wire import hashed

# -- What stands in front of every request: headers, sizes, slow senders, too many at once, tokens ---------------------


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BYTES = 64 * 1024
SLOWEST_BODY = 20.0  # seconds
MOST_SENDERS = 50_000  # whose rates are remembered
FAILED = "Something went wrong inside. Nothing was stored; try again."
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
NOT_KEPT = (b"cache-control", b"no-store")  # where an answer does not say itself how long it may be kept


class Lasting(logging.Filter):
    """Says once a minute what lasts, such as a full disk, and how often it happened in between."""

    def __init__(self, seconds: float = 60.0) -> None:
        super().__init__()
        self.seconds = seconds
        self._said: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is logged."""
        words, now = record.getMessage(), time.monotonic()
        then, more = self._said.get(words, (-self.seconds, 0))
        if now - then < self.seconds:
            self._said[words] = then, more + 1
            return False
        self._said[words] = now, 0
        if more:
            record.msg, record.args = f"{words} ({more:,} times more since it was said)", ()
        return True


log = logging.getLogger("deniable.collect")
log.addFilter(Lasting())


class SecurityHeaders:
    """Adds the headers of every answer; the page may load nothing from elsewhere, and no script that stands in it.

    A failure ends here, as an answer with the same headers: whoever is outside would log its words, which might hold
    what was answered.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun, own = True, message["headers"]
                kept = [] if any(name.lower() == NOT_KEPT[0] for name, _ in own) else [NOT_KEPT]
                message["headers"] = [*own, *HEADERS, *kept]
            await send(message)

        try:
            await self.app(scope, receive, with_headers)
        except Exception as problem:
            log.error("internal error: %s", type(problem).__name__)
            if not begun:
                await JSONResponse({"error": FAILED}, 500)(scope, receive, with_headers)


async def json_body(request: Request, most: int) -> Any:
    """The body as JSON; too large, too slow or no JSON is refused."""
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > most:
        raise HTTPException(413, f"The body is larger than {most:,} bytes. Fix: send fewer responses at once.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "The body must be JSON. Fix: Content-Type: application/json.")
    parts, size = [], 0
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise HTTPException(413, f"The body is larger than {most:,} bytes. Fix: send less at once.")
                parts.append(part)
    except TimeoutError:
        raise HTTPException(408, f"The body took longer than {SLOWEST_BODY:g} seconds.") from None
    try:
        return json.loads(b"".join(parts), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The body is not JSON.") from None


def _no_number(name: str) -> None:
    raise ValueError(name)


class Rates:
    """How many responses one sender may send in a minute: a bucket that fills up again.

    Senders are told apart by a hash under a key of this process; no address is kept or written anywhere.
    """

    def __init__(self, per_minute: int, burst: int) -> None:
        self.per_minute, self.burst = per_minute, max(burst, per_minute)
        self._key = secrets.token_bytes(16)
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def take(self, request: Request, number: int = 1) -> None:
        """Count responses of a sender; refused where there are too many."""
        if not self.per_minute:
            return
        place = _place("" if request.client is None else request.client.host)
        sender = hashlib.blake2b(place.encode(), key=self._key, digest_size=8).digest()
        now = time.monotonic()
        left, then = self._buckets.pop(sender, (float(self.burst), now))
        left = min(self.burst, left + (now - then) * self.per_minute / 60)
        enough = left >= number
        self._buckets[sender] = (left - number if enough else left, now)
        while len(self._buckets) > MOST_SENDERS:
            self._buckets.popitem(last=False)
        if not enough:
            wait = int((number - left) * 60 / self.per_minute) + 1
            raise HTTPException(429, "Too many responses from one place.", {"Retry-After": str(wait)})


def _place(address: str) -> str:
    """One sender: an address, and of IPv6 the first half, since the other half is any sender's to choose."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address) and known.ipv4_mapped is None:
        return known.packed[:8].hex()
    return str(getattr(known, "ipv4_mapped", None) or known)


def require_token(request: Request, expected: str) -> None:
    """Refuse who has no token (401) or a wrong one (403); compared in constant time."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise HTTPException(
            401, "Results need a token. Fix: Authorization: Bearer TOKEN.", {"WWW-Authenticate": "Bearer"}
        )
    if not hmac.compare_digest(hashed(token.strip()), expected):
        raise HTTPException(403, "This token is not the one of this survey.")


# -- One thread that writes: requests that come together are committed together, and answered when that is on disk -----


MOST_AT_ONCE = 2000  # responses in one transaction
Waiting = tuple[Sequence[Entry], asyncio.AbstractEventLoop, "asyncio.Future[list[Outcome]]"]


class Writer:
    """Takes entries from any number of requests, and writes them in few transactions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="deniable-writer", daemon=True)
        self._thread.start()

    async def add(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Store entries; returns when they are durable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Outcome]] = loop.create_future()
        self._queue.put((entries, loop, future))
        return await future

    def close(self) -> None:
        """Write what is waiting, and stop."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            waiting, last = self._next()
            if waiting:
                self._write(waiting)
            if last:
                return

    def _next(self) -> tuple[list[Waiting], bool]:
        """All that waits, up to a limit; and whether the writer is to stop."""
        item = self._queue.get()
        waiting: list[Waiting] = []
        total = 0
        while item is not None:
            waiting.append(item)
            total += len(item[0])
            if total >= MOST_AT_ONCE:
                return waiting, False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return waiting, False
        return waiting, True

    def _write(self, waiting: Sequence[Waiting]) -> None:
        try:
            outcomes = self._store.add([entry for entries, _, _ in waiting for entry in entries])
        except Exception as problem:  # whoever waits is told, and the next ones may fare better
            for _, loop, future in waiting:
                _tell(loop, future, problem)
            return
        start = 0
        for entries, loop, future in waiting:
            _tell(loop, future, outcomes[start : start + len(entries)])
            start += len(entries)


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[list[Outcome]], result: object) -> None:
    def settle() -> None:
        if future.done():  # its request was given up
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    with suppress(RuntimeError):  # the loop is gone: nobody waits any more
        loop.call_soon_threadsafe(settle)
