"""The desk's server: who is let in, what every answer carries, and its routes.

It listens on 127.0.0.1 alone. Other programs of this machine, and pages of other sites in the same browser, can reach
it there, so every request is looked at: its Host must be ours (a name that is made to lead here is not), its Origin
must be ours or, for reading, absent, and its cookie must hold the token that only the terminal printed.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlencode

import jinja2
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from deniable.core.errors import DeniableError, OptionError
from deniable.desk.desk import STEPS, Desk, Form, StaleError
from deniable.desk.steps import page_of, taken
from deniable.desk.texts import LANGUAGES, Words, preferred
from deniable.desk.work import said_of
from deniable.report.tables import style_sheet

HOST = "127.0.0.1"
MOST_BYTES = 2**20  # of a form: a thousand columns take a tenth of it
MOST_FIELDS = 20_000
SLOWEST_BODY = 20.0  # seconds
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
# same-origin: with no-referrer, browsers send forms of this very page with the Origin "null".
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"cache-control", b"no-store"),
]
FILES = {"desk.js": "text/javascript; charset=utf-8", "style.css": "text/css; charset=utf-8"}
NOT_YOURS = "This desk is open for its owner alone. Open the address that the terminal printed.\n"
log = logging.getLogger("deniable.desk")


class Gate:
    """Stands before every request, and adds the headers of every answer. No request is logged."""

    def __init__(self, app: Any, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        self.cookie = f"deniable-desk-{port}"  # cookies do not know ports, and there may be several desks

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        begun = False

        async def with_headers(message: Any) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                own = [pair for pair in message["headers"] if pair[0].lower() != b"cache-control"]
                message = {**message, "headers": [*own, *HEADERS]}
            await send(message)

        request = Request(scope, receive)
        answer = self._answer(request)
        if answer is None:
            body = await self._body(request)
            if isinstance(body, Response):
                answer = body
        if answer is not None:
            await answer(scope, receive, with_headers)
            return
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Any:
            return waiting.pop() if waiting else await receive()

        try:
            await self.app(scope, replayed, with_headers)
        except Exception as problem:  # its words might hold values of the table
            log.error("internal error: %s", type(problem).__name__)
            if not begun:
                await PlainTextResponse("Something went wrong inside.\n", 500)(scope, receive, with_headers)

    def _answer(self, request: Request) -> Response | None:
        """What whoever is not let in is told; None for the owner."""
        host = request.headers.get("host", "")
        if host not in self.hosts:
            return PlainTextResponse("This address is not the desk's.\n", 421)
        origin = request.headers.get("origin")
        reading = request.method in ("GET", "HEAD")
        if origin != f"http://{host}" and not (reading and origin is None):
            return PlainTextResponse("Another page may not ask the desk anything.\n", 403)
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("Another page may not ask the desk anything.\n", 403)
        given = request.query_params.get("token")
        if given is not None and reading and self._is_token(given):
            others = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
            answer = RedirectResponse(f"/?{urlencode(others)}" if others else "/", 303)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
            return answer
        if not self._is_token(request.cookies.get(self.cookie, "")):
            return PlainTextResponse(NOT_YOURS, 403)
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    async def _body(self, request: Request) -> bytes | Response:
        """The whole body; one that is too large or too slow is refused."""
        stated = request.headers.get("content-length", "")
        too_large = PlainTextResponse(f"More than {MOST_BYTES:,} bytes are not taken.\n", 413, {"connection": "close"})
        if stated.isdigit() and int(stated) > MOST_BYTES:
            return too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(SLOWEST_BODY):
                async for part in request.stream():
                    size += len(part)
                    if size > MOST_BYTES:
                        return too_large
                    parts.append(part)
        except TimeoutError:
            return PlainTextResponse("The body came too slowly.\n", 408, {"connection": "close"})
        return b"".join(parts)


def make_app(desk: Desk, port: int, token: str) -> Gate:
    """The application of one desk."""
    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("deniable.desk", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder = resources.files("deniable.desk").joinpath("page")
    files = {
        "style.css": f"{style_sheet()}\n{folder.joinpath('desk.css').read_text(encoding='utf-8')}",
        "desk.js": folder.joinpath("desk.js").read_text(encoding="utf-8"),
    }

    def words_for(request: Request) -> Words:
        wanted = request.query_params.get("lang")
        if wanted in LANGUAGES:
            desk.language = wanted
        return Words(desk.language or preferred(request.headers.get("accept-language", "")))

    def rendered(step: str, words: Words, form: Form | None = None, problem: str = "", status: int = 200) -> Response:
        text = pages.get_template(f"{step}.html").render(**page_of(desk, step, words, form, problem))
        return HTMLResponse(text, status)

    async def home(request: Request) -> Response:
        words_for(request)
        return RedirectResponse(f"/{desk.first_open}", 303)

    async def page(request: Request) -> Response:
        step, words = request.path_params["step"], words_for(request)
        if step not in STEPS:
            return PlainTextResponse("There is no such page.\n", 404)
        if request.method != "POST":
            if "again" in request.query_params:
                desk.bench.forget_ended()
            return await run_in_threadpool(rendered, step, words)
        try:
            fields = parse_qs(
                (await request.body()).decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS
            )
        except ValueError:
            return PlainTextResponse("This is no form of the desk.\n", 400)
        return await run_in_threadpool(posted, step, words, Form(fields))

    def posted(step: str, words: Words, form: Form) -> Response:
        if form.get("go") == "preview":
            return rendered(step, words, form)
        try:
            following = taken(desk, step, form)
        except StaleError:
            return rendered(step, words, None, words("page.stale"), 409)
        except DeniableError as problem:
            return rendered(step, words, form, str(problem), 422)
        return RedirectResponse(f"/{following}", 303)

    async def progress(request: Request) -> Response:
        work = desk.bench.get(request.path_params["name"])
        if work is None:
            return JSONResponse({"state": "none"}, 404)
        words = words_for(request)
        return JSONResponse({"state": work.state, "share": work.share, "words": said_of(words, work)})

    async def stop(request: Request) -> Response:
        desk.bench.stop(request.path_params["name"])
        back = request.query_params.get("back", "")
        return RedirectResponse(f"/{back if back in STEPS else desk.first_open}", 303)

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in FILES:
            return PlainTextResponse("There is no such page.\n", 404)
        return Response(files[name], media_type=FILES[name])

    inside = Starlette(
        routes=[
            Route("/", home),
            Route("/files/{name}", file),
            Route("/progress/{name}", progress),
            Route("/stop/{name}", stop, methods=["POST"]),
            Route("/{step}", page, methods=["GET", "POST"]),
        ]
    )
    return Gate(inside, port, token)


def listening(port: int) -> socket.socket:
    """A socket of this machine alone; port 0: any that is free."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
    except OSError:
        made.close()
        raise OptionError(
            f"--port {port} is in use by another program, or not for this account. Fix: leave --port out."
        ) from None
    return made


class Serving:
    """A desk that is served: its address holds the token."""

    def __init__(self, desk: Desk, port: int = 0) -> None:
        self.desk, self.socket = desk, listening(port)
        self.port = self.socket.getsockname()[1]
        self.token = secrets.token_urlsafe(32)
        config = uvicorn.Config(
            make_app(desk, self.port, self.token),
            access_log=False,
            log_level="error",
            server_header=False,
            lifespan="off",
            ws="none",
            h11_max_incomplete_event_size=2**16,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=2,
        )
        self.server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/?{urlencode({'token': self.token})}"

    def run(self, ready: Callable[[str], None], browser: bool) -> None:
        """Serve until Ctrl-C or SIGTERM; work under way is stopped, and what it had begun taken away."""
        self.socket.listen(128)  # whoever reads the address may come before the server does
        ready(self.address)
        if browser:
            with suppress(webbrowser.Error):
                webbrowser.open(self.address)
        try:
            with suppress(KeyboardInterrupt):
                self.server.run(sockets=[self.socket])
        finally:
            self.desk.bench.close()
