"""A respondent's side, in Python: answers become what is sent, on the machine where they were given."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deniable.collection.drawing import draw_codes, words_of
from deniable.collection.sheet import Sheet, SheetColumn
from deniable.collection.survey import NO_ANSWER, Question
from deniable.collection.wire import code_of, value_at
from deniable.core.errors import TableError, did_you_mean, listing
from deniable.core.replace import NumberRange


def sent(
    sheet: Sheet, fingerprint: str, answers: Sequence[Mapping[str, Any]], keys: Sequence[bytes]
) -> list[dict[str, Any]]:
    """What is sent of each respondent's answers: column -> perturbed answer; public answers as they are.

    Args:
        sheet, fingerprint: of the survey.
        answers: question -> answer, for each respondent: a value, a list of the choices that apply, a number, a date;
            None where an optional question is left out.
        keys: 32 random bytes for each respondent, never used for anyone else.
    """
    for given in answers:
        _require_known(sheet, given)
    columns: dict[str, list[Any]] = {}
    for column in sheet.columns:
        given_to = [given.get(column.question.name) for given in answers]
        columns[column.name] = _sent_column(column, given_to, fingerprint, keys)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _sent_column(column: SheetColumn, answers: Sequence[Any], fingerprint: str, keys: Sequence[bytes]) -> list[Any]:
    if column.part is None:
        return [_public(column, answer) for answer in answers]
    codes = np.array([code(column, answer) for answer in answers], dtype=np.int64)
    drawn = draw_codes(column, codes, words_of(keys, fingerprint, column.name, codes)).tolist()
    if column.part.lineups is not None:
        members, values = column.part.lineups.sets.members, column.values
        return [[values[place] for place in members[number].tolist()] for number in drawn]
    if column.part.range is not None:
        scope = column.part.range
        return [value_at(place, scope) for place in drawn]
    return [column.values[place] for place in drawn]


def code(column: SheetColumn, answer: Any) -> int:
    """The place of an answer among those that a private column may have."""
    question, scope = column.question, column.question.range
    if scope is not None:
        if answer is None:
            if not question.optional:
                raise _refused(question)
            return scope.grid
        return code_of(_inside(question, scope, answer), scope)
    if column.option is not None:
        return 0 if column.option in _ticked(question, answer) else 1
    value = NO_ANSWER if answer is None else answer
    if not isinstance(value, str) or value not in question.values:
        raise _refused(question)
    return question.values.index(value)


def _public(column: SheetColumn, answer: Any) -> Any:
    question, scope = column.question, column.question.range
    if column.option is not None:
        return column.values[0 if column.option in _ticked(question, answer) else 1]
    if answer is None:
        if not question.optional:
            raise _refused(question)
        return None
    if scope is not None:
        return value_at(code_of(_inside(question, scope, answer), scope), scope)
    if answer not in question.values:
        raise _refused(question)
    return answer


def _inside(question: Question, scope: NumberRange, answer: Any) -> Any:
    if scope.kind == "date":
        if isinstance(answer, str):
            try:
                answer = datetime.date.fromisoformat(answer)
            except ValueError:
                raise _refused(question) from None
        right = isinstance(answer, datetime.date) and not isinstance(answer, datetime.datetime)
    else:
        right = isinstance(answer, int | float) and not isinstance(answer, bool) and math.isfinite(answer)
    if not right or not scope.low <= answer <= scope.high:
        raise _refused(question)
    return answer


def _ticked(question: Question, answer: Any) -> Sequence[str]:
    known = {choice.value for choice in question.choices}
    if not isinstance(answer, list | tuple) or not all(isinstance(one, str) and one in known for one in answer):
        raise _refused(question)
    return answer


def _refused(question: Question) -> TableError:
    """The answer itself is never named: an error may end in a log."""
    if question.range is not None:
        right = f"{question.range.low} to {question.range.high}"
    else:
        right = listing([choice.value for choice in question.choices])
        right = f"a list of {right}" if question.kind == "several" else right
    also = ", or None" if question.optional else ""
    return TableError(f"The answer to {question.name!r} is not one that it may have. Fix: {right}{also}.")


def _require_known(sheet: Sheet, given: Mapping[str, Any]) -> None:
    names = [question.name for question in sheet.survey.questions]
    for name in given:
        if name not in names:
            raise TableError(f"The survey has no question {str(name)[:40]!r}.{did_you_mean(name, names)}")
    lacking = [q.name for q in sheet.survey.questions if q.name not in given and not q.optional]
    if lacking:
        raise TableError(f"There is no answer to {listing(lacking)}. Fix: answer every question that is not optional.")
