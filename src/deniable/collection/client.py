"""The client for programs and devices: answers are changed at random here, queued, and sent until they arrived.

The queue on disk holds what is sent, never an answer; a crash between two sends loses nothing, and the ids of responses
make a retry harmless.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from deniable.collection.certificate import certified
from deniable.collection.drawing import response_id
from deniable.collection.respondent import sent
from deniable.collection.wire import CODE, MOST_BATCH_BYTES, MOST_IN_BATCH, fingerprint
from deniable.core.errors import DeniableError, OptionError
from deniable.engines.randomness import KEY_BYTES

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
