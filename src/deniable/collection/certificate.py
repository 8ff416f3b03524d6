"""The certificate of a survey's document, recomputed before anyone answers: a server cannot lower the noise unseen.

It uses the recheck of ``verify``, which shares nothing with the code that plans surveys.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.audit.verify import lineups
from deniable.audit.verify.checks import points, range_amplification
from deniable.collection.sheet import Sheet, SheetColumn
from deniable.collection.survey import Choice, Question, Survey
from deniable.collection.wire import FORMAT, FORMAT_VERSION
from deniable.core.channel import Channel, uniform_weights
from deniable.core.errors import DeniableError
from deniable.core.lineup_codes import design_of
from deniable.core.part import Part
from deniable.core.promise import Amplification
from deniable.core.replace import NumberRange


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
            _column(entry, question)
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


def _column(raw: Mapping[str, Any], question: Question) -> SheetColumn:
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
