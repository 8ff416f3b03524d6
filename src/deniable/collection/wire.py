"""What goes over the wire: the survey as one document, one-time codes, and responses that are checked before anyone
stores them.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import math
import re
import secrets
from collections.abc import Hashable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from deniable.collection.sheet import Sheet, SheetColumn
from deniable.collection.survey import Choice, Question, Survey
from deniable.core.channels import Channel, NumberRange, uniform_weights
from deniable.core.designs import design_of
from deniable.core.errors import DeniableError
from deniable.core.part import Part
from deniable.core.promise import Amplification
from deniable_verify import lineups
from deniable_verify.numbers import points, range_amplification

# -- One-time codes against ballot stuffing: random, told once, kept as hashes, never tied to a response ---------------


CODE_BYTES = 10  # 80 random bits


def new_codes(number: int) -> list[str]:
    """So many different codes such as ABCD-EFGH-IJKL-MNOP."""
    codes: set[str] = set()
    while len(codes) < number:
        text = base64.b32encode(secrets.token_bytes(CODE_BYTES)).decode()
        codes.add("-".join(text[start : start + 4] for start in range(0, len(text), 4)))
    return sorted(codes)


def hashed(secret: str) -> str:
    """Of a token or a one-time code: both have so many random bits that a plain hash cannot be undone."""
    return hashlib.sha256(secret.encode()).hexdigest()


# -- What goes over the wire: the survey as one document, and responses that are checked before anyone stores them -----
# The document is a text; its fingerprint is taken of its bytes, so that nobody needs to agree on how JSON is written.
# Whoever has the fingerprint, from the invitation, knows that no word and no number of the survey was changed.


FORMAT, FORMAT_VERSION = "deniable-survey", 1
FINGERPRINT_BYTES = 20
ID = re.compile(r"[0-9a-f]{32}")
CODE = re.compile(r"[A-Z2-7]{4}(-[A-Z2-7]{4}){3}")
MOST_IN_BATCH, MOST_BATCH_BYTES = 1000, 4 * 1024 * 1024


class ResponseError(DeniableError):
    """A response that cannot be taken. The message says why, and never what was answered."""


def document(sheet: Sheet) -> str:
    """The survey as respondents get it: every word and every whole number of its channels, and what they promise."""
    survey = sheet.survey
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "name": survey.name,
        "title": dict(survey.title),
        "consent": dict(survey.consent),
        "languages": list(survey.languages),
        "codes": survey.codes,
        "questions": [
            {
                "name": question.name,
                "kind": question.kind,
                "text": dict(question.text),
                "choices": [{"value": choice.value, "label": dict(choice.label)} for choice in question.choices],
                "range": None if question.range is None else _range(question.range.to_dict()),
                "optional": question.optional,
                "public": question.public,
                "columns": [_column(column) for column in sheet.of_question(question)],
            }
            for question in survey.questions
        ],
        "gamma": str(sheet.gamma),
        "epsilon": sheet.epsilon,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _range(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: raw[key] for key in ("kind", "low", "high", "step", "missing")}


def _column(column: SheetColumn) -> dict[str, Any]:
    described: dict[str, Any] = {"name": column.name, "option": column.option, "values": list(column.values)}
    if column.part is None:
        return {**described, "channel": None}
    return {**described, "channel": _channel(column), "gamma": str(column.gamma), "epsilon": math.log(column.gamma)}


def _channel(column: SheetColumn) -> dict[str, Any]:
    """The integers of a channel: a coin and so many points, or a design of line-ups."""
    part = column.part
    assert part is not None
    if part.lineups is not None:
        return {"kind": "line-up", **part.lineups.integers()}
    points = part.range.points if part.range is not None else part.m
    return {"kind": "coin", "keep": part.coin, "points": points}


def fingerprint(text: str) -> str:
    """Of a document: 160 bits of SHAKE-256, as hexadecimal digits."""
    return hashlib.shake_256(text.encode()).digest(FINGERPRINT_BYTES).hex()


class Responses:
    """Checks responses against a sheet: what is not in its domain, or not known at all, is refused."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.document = document(sheet)
        self.fingerprint = fingerprint(self.document)
        self._allowed = {column.name: _Allowed(column) for column in sheet.columns}

    def check(self, raw: Any) -> tuple[str, str, str | None]:
        """A response as (id, answers as text, one-time code); refused with the reason where anything is off."""
        if not isinstance(raw, dict):
            raise ResponseError("A response is a JSON object with survey, id and answers.")
        if raw.get("survey") != self.fingerprint:
            raise ResponseError(
                "The response is to another version of the survey. Fix: fetch the survey again, and ask again."
            )
        return self.check_one({key: value for key, value in raw.items() if key != "survey"})

    def check_one(self, raw: Any) -> tuple[str, str, str | None]:
        """A response of a batch, whose survey was checked."""
        if not isinstance(raw, dict):
            raise ResponseError("A response is a JSON object with id and answers.")
        code = raw.get("code")
        unknown = [key for key in raw if key not in ("id", "answers", "code")]
        if unknown:
            raise ResponseError(f"A response has the unknown field {str(unknown[0])[:40]!r}.")
        if not isinstance(raw.get("id"), str) or not ID.fullmatch(raw["id"]):
            raise ResponseError("id is not allowed: 32 hexadecimal digits, chosen at random by the respondent.")
        if self.sheet.survey.codes:
            if not isinstance(code, str) or not CODE.fullmatch(code):
                raise ResponseError("This survey needs a one-time code, such as ABCD-EFGH-IJKL-MNOP.")
        elif code is not None:
            raise ResponseError("This survey takes no one-time codes.")
        return raw["id"], self._answers(raw.get("answers")), code

    def _answers(self, answers: Any) -> str:
        if not isinstance(answers, dict):
            raise ResponseError("answers is a JSON object: column -> what is sent of it.")
        for name in answers:
            if name not in self._allowed:
                raise ResponseError(f"answers has the unknown column {str(name)[:40]!r}.")
        row = []
        for name, allowed in self._allowed.items():
            if name not in answers:
                raise ResponseError(f"answers lacks the column {name!r}.")
            if not allowed.holds(answers[name]):
                raise ResponseError(f"What is sent of {name!r} is none of what the survey allows there.")
            row.append(answers[name])
        return json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class _Allowed:
    """What may be sent of a column."""

    def __init__(self, column: SheetColumn) -> None:
        self.column = column
        part, question = column.part, column.question
        self.range = question.range
        self.null = question.optional and (part is None or self.range is not None)
        self.lineups = None if part is None else part.lineups

    @cached_property
    def values(self) -> frozenset[Hashable]:
        """Choices; of line-ups, sets as tuples in the order of the domain; of a range, its points as they are sent."""
        if self.range is not None:
            return frozenset(value_at(place, self.range) for place in range(self.range.grid))
        if self.lineups is None:
            return frozenset(self.column.values)
        names = self.column.values
        return frozenset(tuple(names[place] for place in members) for members in self.lineups.sets.members.tolist())

    def holds(self, value: Any) -> bool:
        if value is None:
            return self.null
        if self.lineups is not None:
            return isinstance(value, list) and all(type(one) is str for one in value) and tuple(value) in self.values
        if self.range is None or self.range.kind == "date":
            return type(value) is str and value in self.values
        return type(value) in (int, float)[: 1 + (self.range.kind == "number")] and value in self.values


def code_of(value: Any, scope: Any) -> int:
    """The grid point of an answer: the nearest, a half upward, in the arithmetic that the page has."""
    if scope.kind == "date":
        steps = (value.toordinal() - scope.low.toordinal()) / scope.step
    else:
        steps = (value - scope.low) / scope.step
    return min(math.floor(steps + 0.5), scope.grid - 1)


def value_at(place: int, scope: Any) -> Any:
    """What is sent of a grid point; missing after the last."""
    if place == scope.grid:
        return None
    if scope.kind == "date":
        return (scope.low + datetime.timedelta(days=place * int(scope.step))).isoformat()
    number = scope.numbers(np.array([place]))[0]
    return int(number) if scope.kind == "integer" else float(number)


# -- The certificate of a survey's document, recomputed before anyone answers: a server cannot lower the noise unseen.
# It uses the recheck of ``verify``, which shares nothing with the code that plans surveys.


class CertificateError(DeniableError):
    """A survey that protects less than it says, or that cannot be read."""


def certified(document: str) -> Sheet:
    """The sheet in a document, if every number of its noise keeps what the document states."""
    try:
        raw = json.loads(document)
        if raw["format"] != FORMAT or raw["format_version"] != FORMAT_VERSION:
            raise CertificateError("The survey has a format that this deniable does not know. Fix: upgrade deniable.")
        questions = tuple(_question(entry) for entry in raw["questions"])
        columns = tuple(
            _certified_column(entry, question)
            for question, own in zip(questions, raw["questions"], strict=True)
            for entry in own["columns"]
        )
        survey = Survey(
            raw["name"], raw["title"], raw["consent"], tuple(raw["languages"]), questions, bool(raw["codes"])
        )
        sheet = Sheet(survey, columns)
        if sheet.gamma > Fraction(raw["gamma"]) or sheet.epsilon > raw["epsilon"] + 1e-6:
            raise CertificateError("The whole survey reveals more than it says. Nothing was sent.")
    except CertificateError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError, RecursionError):
        raise CertificateError("The survey cannot be read: it is damaged. Nothing was sent.") from None
    return sheet


def _question(raw: Mapping[str, Any]) -> Question:
    scope = None if raw["range"] is None else NumberRange.from_dict({**raw["range"], "keep": 0})
    choices = tuple(Choice(choice["value"], choice["label"]) for choice in raw["choices"])
    return Question(
        raw["name"], raw["kind"], raw["text"], choices, scope, bool(raw["optional"]), bool(raw["public"]), None
    )


def _certified_column(raw: Mapping[str, Any], question: Question) -> SheetColumn:
    name, channel = raw["name"], raw["channel"]
    if question.public != (channel is None):
        called = "public" if question.public else "private"
        raise CertificateError(f"The column {name!r} is called {called}, and is not. Nothing was sent.")
    if channel is None:
        return SheetColumn(name, question, raw["option"])
    gamma = _amplification(channel, raw, question)
    if gamma is None or gamma > Fraction(raw["gamma"]) or math.log(Fraction(raw["gamma"])) > raw["epsilon"] + 1e-6:
        raise CertificateError(f"The column {name!r} has less noise than the survey says. Nothing was sent.")
    return SheetColumn(name, question, raw["option"], _part(name, channel, raw, question, gamma))


def _amplification(channel: Mapping[str, Any], raw: Mapping[str, Any], question: Question) -> Fraction | None:
    size = len(raw["values"])
    if channel["kind"] == "line-up":
        return lineups.amplification(channel) if lineups.is_design(channel, size) else None
    size = points(question.range.to_dict()) if question.range is not None else size
    if channel["kind"] != "coin" or channel["points"] != size or not 0 <= channel["keep"] <= 2**32 or size < 2:
        return None
    return range_amplification(channel["keep"], size)


def _part(name: str, channel: Mapping[str, Any], raw: Mapping[str, Any], question: Question, gamma: Fraction) -> Part:
    promise, values, scope = Amplification(gamma), tuple(raw["values"]), question.range
    if scope is not None:
        own = NumberRange(scope.kind, scope.low, scope.high, scope.step, channel["keep"], scope.missing)
        return Part(columns=(name,), types=("double",), missing="value", promise=promise, range=own)
    made: dict[str, Any] = {"columns": (name,), "types": ("string",), "missing": "refuse", "promise": promise}
    if channel["kind"] == "line-up":
        return Part(**made, domain=values, lineups=design_of(channel, len(values)))
    m = len(values)
    coin = Channel(values, np.full(m, channel["keep"], dtype=np.int64), uniform_weights(m))
    return Part(**made, domain=values, channels=(coin,), cell_positions=(np.arange(m),))
