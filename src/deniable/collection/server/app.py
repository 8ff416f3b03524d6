"""The server's routes. Whoever answers needs no account; results need a token."""

from __future__ import annotations

import datetime
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata, resources
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from deniable.collection.codes import hashed
from deniable.collection.server import openapi
from deniable.collection.server.guards import (
    MOST_BYTES,
    Rates,
    SecurityHeaders,
    json_body,
    require_token,
)
from deniable.collection.server.results import Results
from deniable.collection.server.writer import Writer
from deniable.collection.store.base import Entry, Outcome, Store, StoreError
from deniable.collection.wire import MOST_BATCH_BYTES, MOST_IN_BATCH, ResponseError, Responses
from deniable.core.errors import DeniableError, TableError

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
PAGES = {"": "index.html", "results.html": "results.html"}
log = logging.getLogger("deniable.collect")


def make_app(responses: Responses, store: Store, token_hash: str, rate: int = 600) -> FastAPI:
    """The application for one survey.

    Args:
        responses: the survey, and what checks responses to it.
        store: where they are kept.
        token_hash: of the token that results need.
        rate: responses a minute from one place; 0: any number.
    """
    store.open_for(responses.fingerprint)
    app = FastAPI(
        title=f"Survey {responses.sheet.survey.name!r}",
        version=metadata.version("deniable"),
        description="Responses are changed at random where they are given. Nothing else is accepted, or stored.",
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.writer, app.state.store = Writer(store), store
    app.add_middleware(SecurityHeaders)
    app.add_exception_handler(StarletteHTTPException, _refused)
    _add_pages(app, responses)
    _add_collection(app, responses, Rates(rate, MOST_IN_BATCH))
    _add_results(app, Results(responses.sheet, store), token_hash)
    app.openapi()["components"] = openapi.COMPONENTS
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    await run_in_threadpool(app.state.writer.close)
    app.state.store.close()


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, StarletteHTTPException)
    return JSONResponse({"error": problem.detail}, problem.status_code, problem.headers)


# -- pages -------------------------------------------------------------------------------------------------------------


def _add_pages(app: FastAPI, responses: Responses) -> None:
    """The page, its modules, and the survey itself."""
    folder = resources.files("deniable.collection").joinpath("page")
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.count(".") == 1}
    document = responses.document.encode()

    def serve(name: str) -> Any:
        kind = TYPES["." + name.rpartition(".")[2]]
        # The page asks anew each time whether anything changed; offline it has its own copy.
        headers = {"Cache-Control": "no-cache"}

        async def page() -> Response:
            return Response(files[name], media_type=kind, headers=headers)

        return page

    for path, name in {**{name: name for name in files if name != "index.html"}, **PAGES}.items():
        app.add_api_route(f"/{path}", serve(name), methods=["GET"], include_in_schema=False)

    @app.get("/survey", **openapi.SURVEY)
    async def survey() -> Response:
        headers = {"Cache-Control": "no-cache", "ETag": f'"{responses.fingerprint}"'}
        return Response(document, media_type="application/json", headers=headers)

    @app.get("/healthz", **openapi.HEALTH)
    async def health() -> Response:
        try:
            await run_in_threadpool(app.state.store.setting, "survey")
        except Exception:
            raise HTTPException(503, "The store does not answer.") from None
        return JSONResponse({"healthy": True})


# -- responses ---------------------------------------------------------------------------------------------------------


def _add_collection(app: FastAPI, responses: Responses, rates: Rates) -> None:
    @app.post("/responses", status_code=201, **openapi.one_response(responses))
    async def respond(request: Request) -> Response:
        rates.take(request)
        raw = await json_body(request, MOST_BYTES)
        try:
            entry = _entry(*responses.check(raw))
        except ResponseError as wrong:
            raise HTTPException(422, str(wrong)) from None
        (outcome,) = await _stored(app.state.writer, [entry])
        if outcome == "code":
            raise HTTPException(422, "This one-time code is unknown, or was used before.")
        return JSONResponse({"stored": True, "new": outcome == "new"}, 201 if outcome == "new" else 200)

    @app.post("/responses/batch", **openapi.batch(responses))
    async def respond_many(request: Request) -> Response:
        rates.take(request)  # before megabytes are read: one that is refused counts, too
        raw = await json_body(request, MOST_BATCH_BYTES)
        entries = _batch(responses, raw)
        rates.take(request, len(entries) - 1)
        outcomes = await _stored(app.state.writer, entries)
        refused = [entry.id for entry, outcome in zip(entries, outcomes, strict=True) if outcome == "code"]
        return JSONResponse({"new": outcomes.count("new"), "known": outcomes.count("known"), "refused": refused})


def _batch(responses: Responses, raw: Any) -> list[Entry]:
    if not isinstance(raw, dict) or set(raw) != {"survey", "responses"} or not isinstance(raw["responses"], list):
        raise HTTPException(422, "A batch is a JSON object with survey and responses, a list.")
    if raw["survey"] != responses.fingerprint:
        raise HTTPException(422, "The batch is for another version of the survey. Fix: fetch the survey again.")
    if not 1 <= len(raw["responses"]) <= MOST_IN_BATCH:
        raise HTTPException(422, f"A batch has 1 to {MOST_IN_BATCH:,} responses.")
    entries = []
    for place, one in enumerate(raw["responses"]):
        try:
            entries.append(_entry(*responses.check_one(one)))
        except ResponseError as wrong:
            raise HTTPException(422, f"Response {place} of the batch: {wrong} Nothing was stored.") from None
    return entries


def _entry(id: str, answers: str, code: str | None) -> Entry:
    """A response as it is stored; of the time only the day is kept."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Entry(id, answers, None if code is None else hashed(code), today)


async def _stored(writer: Writer, entries: list[Entry]) -> list[Outcome]:
    try:
        return await writer.add(entries)
    except Exception as problem:
        log.error("the store failed: %s", type(problem).__name__)
        raise HTTPException(503, "The response could not be stored. Fix: send it again later.") from None


# -- results -----------------------------------------------------------------------------------------------------------


def _add_results(app: FastAPI, results: Results, token_hash: str) -> None:
    def answered(make: Any, *arguments: Any) -> Any:
        try:
            return make(*arguments)
        except StoreError:
            raise HTTPException(503, "The store does not answer.") from None
        except TableError as early:
            raise HTTPException(409, str(early)) from None
        except DeniableError as wrong:
            raise HTTPException(422, str(wrong)) from None

    @app.get("/progress", **openapi.PROGRESS)
    def progress(request: Request) -> Any:
        require_token(request, token_hash)
        return JSONResponse(answered(results.progress))

    @app.get("/results", **openapi.RESULTS)
    def summary(request: Request) -> Any:
        require_token(request, token_hash)
        return JSONResponse(answered(results.summary))

    @app.get("/results/cross", **openapi.CROSS)
    def cross(request: Request, one: str = "", other: str = "") -> Any:
        require_token(request, token_hash)
        return JSONResponse(answered(results.cross, one, other))

    @app.post("/questions", **openapi.QUESTIONS)
    async def ask(request: Request) -> Any:
        require_token(request, token_hash)
        raw = await json_body(request, MOST_BYTES)
        if not isinstance(raw, dict) or set(raw) != {"sql"} or not isinstance(raw["sql"], str):
            raise HTTPException(422, "A question is a JSON object with sql, a text; the table is called release.")
        if any("\ud800" <= character <= "\udfff" for character in raw["sql"]):
            raise HTTPException(422, "The question holds half a character. Fix: send it as UTF-8.")
        return JSONResponse(await run_in_threadpool(answered, results.ask, raw["sql"]))

    @app.get("/export", **openapi.EXPORT)
    def export(request: Request) -> Any:
        require_token(request, token_hash)
        name = results.sheet.survey.name
        headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
        return Response(answered(results.export), media_type="application/zip", headers=headers)
