"""The respondent's side for programs and devices: answers are changed at random here, remembered, queued, and sent
until they arrived.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import hmac
import json
import math
import os
import secrets
import sqlite3
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from deniable.collection.sheet import Sheet, SheetColumn
from deniable.collection.survey import NO_ANSWER, Question
from deniable.collection.wire import CODE, MOST_BATCH_BYTES, MOST_IN_BATCH, certified, code_of, fingerprint, value_at
from deniable.core.channels import NumberRange
from deniable.core.errors import DeniableError, OptionError, SecretError, TableError, did_you_mean, listing
from deniable.core.part import Part, part_dict
from deniable.core.values import Ints, Words
from deniable.tables.keys import KEY_BYTES
from deniable.tables.lineups import LineUpKernel
from deniable.tables.ranges import RangeKernel
from deniable.tables.sampler import Kernel

# -- Random words of a respondent, and answers perturbed with them: in the same whole numbers as the page has ----------
# A respondent's key is 32 random bytes. The word that an answer is perturbed with is
#
#     the first 8 bytes, little-endian, of SHAKE-256(key, "deniable draw", fingerprint, column, code)
#
# a pure function of the key, the survey, the column and the *answer*: whoever goes back and forth sees one draw for
# each answer, not a new one each time, and two answers never share a draw. The key is thrown away once an answer is
# sent.


def word(key: bytes, fingerprint: str, column: str, code: int) -> int:
    """The 64-bit word that an answer is perturbed with."""
    text = f"deniable draw\n{fingerprint}\n{column}\n{code}".encode()
    return int.from_bytes(hashlib.shake_256(key + text).digest(8), "little")


def response_id(key: bytes, fingerprint: str) -> str:
    """The id of a respondent's response: the same key never counts twice."""
    return hashlib.shake_256(key + f"deniable response\n{fingerprint}".encode()).digest(16).hex()


def draw_codes(column: SheetColumn, codes: Ints, words: Words) -> Ints:
    """Perturbed codes: places of values, points of the range, numbers of sets. Row k uses words[k]."""
    drawn: Ints = _sampler(column)(codes, words).astype(np.int64)
    return drawn


@lru_cache(maxsize=256)
def _sampler(column: SheetColumn) -> Callable[[Ints, Words], Any]:
    part = column.part
    assert part is not None
    if part.lineups is not None:
        return LineUpKernel(part.lineups).perturb
    kernel = RangeKernel(part.range) if part.range is not None else Kernel(part.channels, part.cell_positions)
    return lambda codes, words: kernel.perturb(codes.astype(np.uint32), words)


def words_of(keys: Sequence[bytes], fingerprint: str, column: str, codes: Ints) -> Words:
    """One word for each respondent."""
    drawn = [word(key, fingerprint, column, code) for key, code in zip(keys, codes.tolist(), strict=True)]
    return np.array(drawn, dtype=np.uint64)


# -- What a respondent has answered so far, in a file of their own: the same question and value give the same answer.
# The word that perturbs an answer is a function of the file's key, the question and the value,
#
#     word = first 8 bytes of HMAC-SHA256(key, question, code of the value)
#
# so asking again gives nothing new. Another question about the same column, or another value, has a word of its own and
# is one more look: amplifications multiply, epsilons add up, and the file keeps their sum. A look is written down
# before its answer is given. Whoever has the file can undo the answers.


FORMAT = "deniable-answers-1"
QUESTION_FIELDS = (
    "columns",
    "types",
    "missing",
    "domain",
    "range",
    "cells",
    "lineups",
)  # what an answer's distribution is made of


@dataclass(frozen=True)
class Look:
    """One answer that was given.

    Attributes:
        question: the digest of what was asked.
        answer: a keyed digest of question and value; it tells two values apart, and neither of them.
        gamma: how much surer the answer can make anyone.
    """

    question: str
    answer: str
    gamma: Fraction


@dataclass(frozen=True)
class Memory:
    """A respondent's key, and the looks that were had so far."""

    key: bytes
    looks: tuple[Look, ...] = ()

    @property
    def epsilon(self) -> float:
        """Of all answers together."""
        return sum(math.log(look.gamma) for look in self.looks)

    def word(self, part: Part, code: int) -> int:
        """The random word for a question and a value."""
        return int.from_bytes(self._digest("word", part, code)[:8], "big")

    def with_look(self, part: Part, code: int, gamma: Fraction) -> Memory:
        """The memory after an answer; the same if it was given before."""
        look = Look(question(part), self._digest("look", part, code).hex(), gamma)
        return replace(self, looks=tuple(dict.fromkeys((*self.looks, look))))

    def _digest(self, purpose: str, part: Part, code: int) -> bytes:
        text = f"{FORMAT} {purpose} {question(part)} ".encode() + code.to_bytes(8, "big")
        return hmac.digest(self.key, text, "sha256")

    def to_json(self) -> str:
        """As the file holds it."""
        looks = [{"question": look.question, "answer": look.answer, "gamma": str(look.gamma)} for look in self.looks]
        return json.dumps({"format": FORMAT, "key": self.key.hex(), "answers": looks}, indent=1) + "\n"

    @classmethod
    def from_json(cls, raw: Any) -> Memory:
        """From the file."""
        if raw.keys() != {"format", "key", "answers"} or raw["format"] != FORMAT:
            raise ValueError("another format")
        key = bytes.fromhex(raw["key"])
        looks = tuple(Look(**{**look, "gamma": Fraction(look["gamma"])}) for look in raw["answers"])
        if len(key) != KEY_BYTES or any(look.gamma < 1 for look in looks):
            raise ValueError("numbers that no memory has")
        return cls(key, looks)


def question(part: Part) -> str:
    """The digest of all that the distribution of an answer depends on, and of nothing else."""
    raw = part_dict(part)
    text = json.dumps({name: raw.get(name) for name in QUESTION_FIELDS}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read(path: Path) -> Memory:
    """The memory in a file; a new one where there is none yet."""
    try:
        with open(path, encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            raw = json.load(file)
    except FileNotFoundError:
        return Memory(secrets.token_bytes(KEY_BYTES))
    except OSError as problem:
        raise SecretError(f"The memory {str(path)!r} cannot be read: {problem.strerror}.") from None
    except (ValueError, RecursionError):
        raise _damaged(path) from None
    if mode & 0o077:
        raise SecretError(
            f"The memory {str(path)!r} has mode {mode:03o}: others can read it, and undo the answers. "
            f"Fix: chmod 600 {str(path)!r}."
        )
    try:
        return Memory.from_json(raw)
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
        raise _damaged(path) from None


def _damaged(path: Path) -> SecretError:
    return SecretError(
        f"{str(path)!r} is no memory of answers, or is damaged: what was answered before is not known. Fix: another "
        "file, if nothing was answered with this one."
    )


# -- A respondent's side, in Python: answers become what is sent, on the machine where they were given -----------------


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


# -- The client for programs and devices: answers are changed at random here, queued, and sent until they arrived ------
# The queue on disk holds what is sent, never an answer; a crash between two sends loses nothing, and the ids of
# responses make a retry harmless.


FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0  # seconds between tries, doubled each time
LARGEST_SURVEY = 16 * 1024 * 1024
MOST_ENTRIES_BYTES = MOST_BATCH_BYTES - 200  # the rest is for what stands around them


class ClientError(DeniableError):
    """A server that cannot be reached, or that refuses what is sent."""


@dataclass(frozen=True)
class Submitted:
    """What became of a submission.

    Attributes:
        sent: responses that the server has.
        new: those of them that it did not have before.
        queued: responses that wait for the next try.
        refused: ids that the server refused, by one-time codes that are unknown or used.
        others: responses in the queue to other surveys, or to other versions of this one, which this server does not
            take: they wait for a client of theirs.
    """

    sent: int
    new: int
    queued: int
    refused: tuple[str, ...] = ()
    others: int = 0


class Client:
    """Sends answers to a collection server, perturbed on this machine.

    Args:
        url: of the server.
        fingerprint: of the survey, from its owner; a survey that has another one is refused.
        most_epsilon: the largest epsilon of a whole sheet that you accept.
        queue: a file that keeps what is not yet sent; left out: kept in memory.
        batch: responses in one request, at most; fewer where they are large.
        tries: how often a request is tried before it stays in the queue.
        timeout: seconds that one request may take.

    >>> import deniable as dn
    >>> try:  # `deniable collect serve` tells the address, and the fingerprint after its #
    ...     client = dn.collection.Client("http://127.0.0.1:1/", fingerprint="0" * 40, tries=1)
    ...     client.submit([{"smokes": "yes"}, {"smokes": "no"}])
    ... except dn.DeniableError as mistake:
    ...     print(mistake)
    The survey at http://127.0.0.1:1/ cannot be fetched (URLError). Fix: check the address.
    """

    def __init__(
        self,
        url: str,
        *,
        fingerprint: str | None = None,
        most_epsilon: float | None = None,
        queue: str | os.PathLike[str] | None = None,
        batch: int = 500,
        tries: int = 5,
        timeout: float = 30.0,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise OptionError(
                f"url = {url[:80]!r} is no address. Fix: one that starts with https:// (or http:// for tests)."
            )
        if not 1 <= batch <= MOST_IN_BATCH or tries < 1:
            raise OptionError(f"batch is 1 to {MOST_IN_BATCH:,}, and tries 1 or more; got {batch} and {tries}.")
        self.url = url.rstrip("/") + "/"
        self._batch, self._tries, self._timeout = batch, tries, timeout
        document = self._fetched("survey")
        self.fingerprint, self.sheet = _checked(document, fingerprint, most_epsilon)
        self._queue = _Queue(queue, self.fingerprint)

    def submit(
        self,
        rows: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        keys: Sequence[bytes] | None = None,
        codes: Sequence[str] | None = None,
    ) -> Submitted:
        """Perturb answers and send them; what cannot be sent now stays in the queue.

        Args:
            rows: question -> answer, for each respondent.
            keys: a device's own key for each respondent (32 secret random bytes, kept by the device): the same key
                and answers give the same response again, which counts once. Left out: fresh ones.
            codes: a one-time code for each, where the survey needs them.
        """
        several = [rows] if isinstance(rows, Mapping) else list(rows)
        drawn = [secrets.token_bytes(KEY_BYTES) for _ in several] if keys is None else list(keys)
        if len(drawn) != len(several) or not all(isinstance(key, bytes) and len(key) == KEY_BYTES for key in drawn):
            raise OptionError(f"keys needs {KEY_BYTES} bytes for each of the {len(several)} respondents.")
        if (codes is not None) != self.sheet.survey.codes or (codes is not None and len(codes) != len(several)):
            raise OptionError("codes: one for each respondent, where the survey needs them, and none elsewhere.")
        if not all(isinstance(code, str) and CODE.fullmatch(code) for code in codes or []):
            raise OptionError(
                "codes has one that is no code such as ABCD-EFGH-IJKL-MNOP. Fix: as they were handed out."
            )
        answers = sent(self.sheet, self.fingerprint, several, drawn)
        entries = [
            {"id": response_id(key, self.fingerprint), "answers": row} for key, row in zip(drawn, answers, strict=True)
        ]
        for entry, code in zip(entries, codes or [], strict=codes is not None):
            entry["code"] = code
        self._queue.add(entries)
        return self.flush()

    def flush(self) -> Submitted:
        """Send what waits in the queue."""
        arrived = new = 0
        refused: list[str] = []
        while waiting := self._queue.first(self._batch):
            answer = self._posted(waiting)
            if answer is None:
                break
            self._queue.remove([entry["id"] for entry in waiting])
            refused += answer["refused"]
            arrived += len(waiting) - len(answer["refused"])
            new += answer["new"]
        queued, others = self._queue.counts()
        return Submitted(arrived, new, queued, tuple(refused), others)

    async def asubmit(self, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]], **options: Any) -> Submitted:
        """The same for asyncio: the loop goes on while this waits.

        Args:
            rows: question -> answer, for each respondent.
            options: as for ``submit``.
        """
        return await asyncio.to_thread(self.submit, rows, **options)

    async def aflush(self) -> Submitted:
        """``flush`` for asyncio."""
        return await asyncio.to_thread(self.flush)

    # -- requests ------------------------------------------------------------------------------------------------------

    def _posted(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        """What the server said; None where it could not be reached, however often it was tried."""
        body = json.dumps({"survey": self.fingerprint, "responses": entries}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + "responses/batch", body, headers, method="POST")
        pause = FIRST_PAUSE
        for attempt in range(self._tries):
            if attempt:
                time.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000))
                pause = min(2 * pause, LONGEST_PAUSE)
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                    content: dict[str, Any] = json.loads(answer.read())
                return content
            except urllib.error.HTTPError as problem:
                if problem.code < 500 and problem.code not in (408, 429):
                    raise ClientError(f"The server refused the batch ({problem.code}): {_said(problem)}") from None
                pause = max(pause, _asked_pause(problem))
            except (OSError, ValueError):
                continue
        return None

    def _fetched(self, path: str) -> str:
        problem = ""
        for attempt in range(self._tries):
            if attempt:
                time.sleep(min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE))
            try:
                with urllib.request.urlopen(self.url + path, timeout=self._timeout) as answer:
                    return str(answer.read(LARGEST_SURVEY).decode())
            except (OSError, ValueError) as wrong:
                problem = type(wrong).__name__
        raise ClientError(f"The survey at {self.url} cannot be fetched ({problem}). Fix: check the address.")


def _checked(document: str, expected: str | None, most_epsilon: float | None) -> Any:
    """The sheet of a document, if it is the one that was promised and protects as it says."""
    own = fingerprint(document)
    if expected is not None and own != expected:
        raise ClientError(
            f"The survey has the fingerprint {own}, not {expected}: its words or its noise were changed. Nothing was "
            "sent."
        )
    sheet = certified(document)
    if most_epsilon is not None and sheet.epsilon > most_epsilon:
        raise ClientError(
            f"The whole sheet has epsilon {sheet.epsilon:.4g}, and you accept {most_epsilon:g}. Nothing was sent."
        )
    return own, sheet


def _said(problem: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(problem.read(10_000))["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return "no reason was given"


def _asked_pause(problem: urllib.error.HTTPError) -> float:
    wait = problem.headers.get("Retry-After", "")
    return min(float(wait), LONGEST_PAUSE) if wait.isdigit() else 0.0


class _Queue:
    """What is not yet sent, in the order in which it came; in a file that only its owner can read, or in memory."""

    def __init__(self, path: str | os.PathLike[str] | None, survey: str) -> None:
        if path is not None:
            os.close(os.open(Path(path), os.O_RDWR | os.O_CREAT, 0o600))
        self._db = sqlite3.connect(":memory:" if path is None else path, check_same_thread=False, isolation_level=None)
        self._survey = survey
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS waiting (id TEXT, survey TEXT, entry TEXT, PRIMARY KEY (id, survey))"
        )

    def add(self, entries: Sequence[Mapping[str, Any]]) -> None:
        rows = [(entry["id"], self._survey, json.dumps(entry)) for entry in entries]
        if any(len(text) + len(", ") > MOST_ENTRIES_BYTES for _, _, text in rows):
            raise OptionError(
                f"A response is larger than the {MOST_BATCH_BYTES:,} bytes that a server takes at once. Fix: a survey "
                "of fewer questions, or of shorter choices."
            )
        self._db.execute("BEGIN")
        self._db.executemany("INSERT OR IGNORE INTO waiting VALUES (?, ?, ?)", rows)
        self._db.execute("COMMIT")

    def first(self, number: int) -> list[dict[str, Any]]:
        """The first so many, or as many of them as a server takes at once."""
        query = "SELECT entry FROM waiting WHERE survey = ? ORDER BY rowid LIMIT ?"
        texts = [row[0] for row in self._db.execute(query, (self._survey, number))]
        sizes = accumulate(len(text) + len(", ") for text in texts)
        return [json.loads(text) for text, size in zip(texts, sizes, strict=True) if size <= MOST_ENTRIES_BYTES]

    def remove(self, ids: Sequence[str]) -> None:
        self._db.execute("BEGIN")
        self._db.executemany("DELETE FROM waiting WHERE id = ? AND survey = ?", [(one, self._survey) for one in ids])
        self._db.execute("COMMIT")

    def counts(self) -> tuple[int, int]:
        """How many wait for this survey, and how many for others."""
        query = "SELECT count(*) FILTER (WHERE survey = ?), count(*) FILTER (WHERE survey <> ?) FROM waiting"
        own, others = self._db.execute(query, (self._survey, self._survey)).fetchone()
        return int(own), int(others)
