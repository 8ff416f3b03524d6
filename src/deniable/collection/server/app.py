"""The server's routes, what they say about themselves, and results for the researcher."""

from __future__ import annotations

import datetime
import io
import logging
import tempfile
import threading
import time
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from deniable.collection.collected import bars_of, release_of
from deniable.collection.server.guards import MOST_BYTES, Rates, SecurityHeaders, Writer, json_body, require_token
from deniable.collection.sheet import ERROR, Sheet, SheetColumn
from deniable.collection.store import Entry, Outcome, Store, StoreError
from deniable.collection.wire import CODE, ID, MOST_BATCH_BYTES, MOST_IN_BATCH, ResponseError, Responses, hashed
from deniable.core import values
from deniable.core.errors import DeniableError, QuestionError, TableError, did_you_mean, warnings_heard
from deniable.estimation.predicates import Between
from deniable.release.release import Release

# -- What the routes say about themselves in the OpenAPI document: bodies, answers, refusals ---------------------------


Json = dict[str, Any]
REFUSAL: Json = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
SAID: dict[int, str] = {
    400: "The body is not JSON.",
    401: "There is no token.",
    403: "The token is wrong.",
    408: "The body came too slowly.",
    409: "There are no responses yet.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "The body or a parameter is not allowed; the message says why.",
    429: "Too many responses from one place.",
    503: "The store does not answer.",
}
BEARER: Json = {"security": [{"token": []}]}
COMPONENTS: Json = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}


def _route(summary: str, answer: Json | None, codes: tuple[int, ...], *, body: Json | None = None, **more: Any) -> Json:
    """The keyword arguments of a route."""
    responses: dict[int | str, Json] = {code: _content(REFUSAL, SAID[code]) for code in codes}
    if answer is not None:
        responses[more.pop("status", 200)] = _content(answer, "What was asked for.")
    extra: Json = {**more.pop("extra", {})}
    if body is not None:
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return {"summary": summary, "responses": responses, "openapi_extra": extra, "response_model": None, **more}


def _content(schema: Json, words: str) -> Json:
    return {"description": words, "content": {"application/json": {"schema": schema}}}


def _object(required: Mapping[str, Json], **optional: Json) -> Json:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def one_response(responses: Responses) -> Json:
    """POST /responses."""
    survey = {"survey": {"type": "string", "const": responses.fingerprint}}
    known = _object({"stored": {"type": "boolean"}, "new": {"type": "boolean"}})
    route = _route(
        "Store one response. Its id makes a retry harmless: it counts once.",
        known,
        (400, 408, 413, 415, 422, 429, 503),
        body=_response(responses, survey),
        status=201,
    )
    route["responses"][200] = _content(known, "The response was stored before.")
    return route


def batch(responses: Responses) -> Json:
    """POST /responses/batch."""
    listed = {"type": "array", "minItems": 1, "maxItems": MOST_IN_BATCH, "items": _response(responses, {})}
    number = {"type": "integer"}
    return _route(
        "Store many responses at once: all of them, or none where one is not allowed.",
        _object({"new": number, "known": number, "refused": {"type": "array", "items": {"type": "string"}}}),
        (400, 408, 413, 415, 422, 429, 503),
        body=_object({"survey": {"type": "string", "const": responses.fingerprint}, "responses": listed}),
    )


def _response(responses: Responses, survey: Mapping[str, Json]) -> Json:
    answers = _object({column.name: _answer(column) for column in responses.sheet.columns})
    fields = {**survey, "id": {"type": "string", "pattern": f"^{ID.pattern}$"}, "answers": answers}
    if responses.sheet.survey.codes:
        fields["code"] = {"type": "string", "pattern": f"^{CODE.pattern}$"}
    return _object(fields)


def _answer(column: SheetColumn) -> Json:
    scope, part = column.question.range, column.part
    if part is not None and part.lineups is not None:
        size = part.lineups.size
        names = {"type": "string", "enum": list(column.values)}
        return {"type": "array", "items": names, "minItems": size, "maxItems": size, "uniqueItems": True}
    if scope is None:
        known: Json = {"type": "string", "enum": list(column.values)}
    elif scope.kind == "date":
        known = {"type": "string", "format": "date"}
    else:
        kind = "integer" if scope.kind == "integer" else "number"
        known = {"type": kind, "minimum": scope.low, "maximum": scope.high}
    optional = column.question.optional and (scope is not None or part is None)
    return {"anyOf": [known, {"type": "null"}]} if optional else known


_ANY: Json = {"type": "object"}
SURVEY = _route("The survey: words, whole numbers of its noise, and what they promise.", _ANY, ())
HEALTH = _route("Whether the server and its store answer.", _ANY, (503,))
PROGRESS = _route("How many responses there are, by day.", _ANY, (401, 403, 503), extra=BEARER)
RESULTS = _route("Every question: counts with intervals.", _ANY, (401, 403, 409, 422, 503), extra=BEARER)
CROSS = _route("Two columns against each other.", _ANY, (401, 403, 409, 422, 503), extra=BEARER)
QUESTIONS = _route(
    "A question in SQL; the table is called release.",
    _ANY,
    (400, 401, 403, 408, 409, 413, 415, 422, 503),
    body=_object({"sql": {"type": "string"}}),
    extra=BEARER,
)
EXPORT = _route(
    "The responses as a release, a ZIP archive that `deniable verify` accepts.",
    None,
    (401, 403, 409, 503),
    extra=BEARER,
)


# -- Results for the researcher: counts with intervals from the responses so far, never the responses themselves -------


FRESH = 2.0  # seconds for which results are not computed again


class Results:
    """Answers from the responses in a store."""

    def __init__(self, sheet: Sheet, store: Store) -> None:
        self.sheet, self.store = sheet, store
        self._lock = threading.Lock()
        self._kept: tuple[float, Release] | None = None

    def release(self) -> Release:
        """The responses so far, as a release."""
        with self._lock:
            now = time.monotonic()
            if self._kept is None or now - self._kept[0] > FRESH:
                self._kept = (now, release_of(self.sheet, self.store.rows()))
            return self._kept[1]

    def progress(self) -> dict[str, Any]:
        """How many came, by day, and how many one-time codes are left."""
        made, used = self.store.codes()
        return {
            "responses": self.store.count(),
            "days": [{"day": day, "responses": count} for day, count in self.store.days()],
            "codes": {"made": made, "used": used} if self.sheet.survey.codes else None,
        }

    def summary(self) -> dict[str, Any]:
        """Every question: counts with intervals, how precise they are, how many more respondents are needed."""
        release = self.release()
        return {
            "responses": release.manifest.rows,
            "epsilon": self.sheet.epsilon,
            "columns": [self._column(release, column) for column in self.sheet.columns],
        }

    def _column(self, release: Release, column: SheetColumn) -> dict[str, Any]:
        rows = release.manifest.rows
        bars = {bar.label: _bar(release, bar.where) for bar in bars_of(column)}
        precise = max(bar["high"] - bar["low"] for bar in bars.values()) / 2 / rows
        needed = 0 if column.part is None else column.respondents_for(ERROR)
        return {
            "column": column.name,
            "question": dict(column.question.text),
            "option": column.option,
            "public": column.part is None,
            "bars": [{"label": label, **bar} for label, bar in bars.items()],
            "precise_to": precise,
            "needed_for": {"error": ERROR, "respondents": needed, "more": max(needed - rows, 0)},
        }

    def cross(self, one: str, other: str) -> dict[str, Any]:
        """Two questions against each other."""
        pair = [self._named(one), self._named(other)]
        if one == other:
            raise QuestionError("A question against itself tells nothing. Fix: name two columns.")
        release = self.release()
        rows, columns = bars_of(pair[0]), bars_of(pair[1])
        table = [[_bar(release, {**mine.where, **theirs.where}) for theirs in columns] for mine in rows]
        labels = {"rows": [bar.label for bar in rows], "columns": [bar.label for bar in columns]}
        return {"one": one, "other": other, **labels, "cells": table}

    def _named(self, name: str) -> SheetColumn:
        known = {column.name: column for column in self.sheet.columns}
        if name not in known:
            raise QuestionError(f"The survey has no column {name[:40]!r}.{did_you_mean(name, known)}")
        return known[name]

    def ask(self, sql: str) -> dict[str, Any]:
        """A question in SQL; what the estimator warns of is told with the answer."""
        with warnings_heard() as heard:
            table = self.release().sql(sql)
        rows = [[values.to_json(value) for value in row.values()] for row in table.to_pylist()]
        return {"columns": table.column_names, "rows": rows, "warnings": list(heard)}

    def export(self) -> bytes:
        """The release as a ZIP archive of its folder; ``deniable verify`` accepts it."""
        name = self.sheet.survey.name
        archive = io.BytesIO()
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / name
            release_of(self.sheet, self.store.rows()).save(folder)
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
                for path in sorted(folder.iterdir()):
                    # A fixed time of day: when an export was made is not part of it.
                    entry = zipfile.ZipInfo(f"{name}/{path.name}")
                    zipped.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
        return archive.getvalue()


def _bar(release: Release, where: Mapping[str, Any]) -> dict[str, float]:
    if any(not _there(release, column, value) for column, value in where.items()):
        return {"count": 0.0, "low": 0.0, "high": 0.0}
    estimate = release.count(where)
    return {"count": estimate.value, "low": estimate.low, "high": estimate.high}


def _there(release: Release, column: str, value: Any) -> bool:
    """Whether anyone gave this public answer yet; of private ones every answer can be asked for."""
    if column not in release.manifest.public_columns or value is None or isinstance(value, Between):
        return True
    return value in release.counter().distinct(column).to_pylist()


# -- The server's routes. Whoever answers needs no account; results need a token ---------------------------------------


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
    app.openapi()["components"] = COMPONENTS
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

    @app.get("/survey", **SURVEY)
    async def survey() -> Response:
        headers = {"Cache-Control": "no-cache", "ETag": f'"{responses.fingerprint}"'}
        return Response(document, media_type="application/json", headers=headers)

    @app.get("/healthz", **HEALTH)
    async def health() -> Response:
        try:
            await run_in_threadpool(app.state.store.setting, "survey")
        except Exception:
            raise HTTPException(503, "The store does not answer.") from None
        return JSONResponse({"healthy": True})


# -- responses ---------------------------------------------------------------------------------------------------------


def _add_collection(app: FastAPI, responses: Responses, rates: Rates) -> None:
    @app.post("/responses", status_code=201, **one_response(responses))
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

    @app.post("/responses/batch", **batch(responses))
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

    @app.get("/progress", **PROGRESS)
    def progress(request: Request) -> Any:
        require_token(request, token_hash)
        return JSONResponse(answered(results.progress))

    @app.get("/results", **RESULTS)
    def summary(request: Request) -> Any:
        require_token(request, token_hash)
        return JSONResponse(answered(results.summary))

    @app.get("/results/cross", **CROSS)
    def cross(request: Request, one: str = "", other: str = "") -> Any:
        require_token(request, token_hash)
        return JSONResponse(answered(results.cross, one, other))

    @app.post("/questions", **QUESTIONS)
    async def ask(request: Request) -> Any:
        require_token(request, token_hash)
        raw = await json_body(request, MOST_BYTES)
        if not isinstance(raw, dict) or set(raw) != {"sql"} or not isinstance(raw["sql"], str):
            raise HTTPException(422, "A question is a JSON object with sql, a text; the table is called release.")
        if any("\ud800" <= character <= "\udfff" for character in raw["sql"]):
            raise HTTPException(422, "The question holds half a character. Fix: send it as UTF-8.")
        return JSONResponse(await run_in_threadpool(answered, results.ask, raw["sql"]))

    @app.get("/export", **EXPORT)
    def export(request: Request) -> Any:
        require_token(request, token_hash)
        name = results.sheet.survey.name
        headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
        return Response(answered(results.export), media_type="application/zip", headers=headers)
