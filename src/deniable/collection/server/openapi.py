"""What the routes say about themselves in the OpenAPI document: bodies, answers, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deniable.collection.sheet import SheetColumn
from deniable.collection.wire import CODE, ID, MOST_IN_BATCH, Responses

Json = dict[str, Any]
ERROR: Json = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
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
    responses: dict[int | str, Json] = {code: _content(ERROR, SAID[code]) for code in codes}
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
