"""What a respondent has answered so far, in a file of their own: the same question and value give the same answer.

The word that perturbs an answer is a function of the file's key, the question and the value,

    word = first 8 bytes of HMAC-SHA256(key, question, code of the value)

so asking again gives nothing new. Another question about the same column, or another value, has a word of its own and
is one more look: amplifications multiply, epsilons add up, and the file keeps their sum. A look is written down before
its answer is given. Whoever has the file can undo the answers.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from deniable.core.errors import OutputError, SecretError
from deniable.core.part import Part, part_dict
from deniable.engines.randomness import KEY_BYTES
from deniable.release.folder import write_file

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


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else looks at the memory meanwhile: two looks at once must not count as one."""
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as problem:
        raise OutputError(f"The memory {str(path)!r} cannot be kept there: {problem.strerror}.") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


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


def keep(memory: Memory, path: Path) -> None:
    """Write a memory, the whole of it or nothing, readable by its owner alone."""
    write_file(path, memory.to_json(), private=True)


def _damaged(path: Path) -> SecretError:
    return SecretError(
        f"{str(path)!r} is no memory of answers, or is damaged: what was answered before is not known. Fix: another "
        "file, if nothing was answered with this one."
    )
