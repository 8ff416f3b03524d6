"""Random words of a respondent, and answers perturbed with them: in the same whole numbers as the page has.

A respondent's key is 32 random bytes. The word that an answer is perturbed with is

    the first 8 bytes, little-endian, of SHAKE-256(key, "deniable draw", fingerprint, column, code)

a pure function of the key, the survey, the column and the *answer*: whoever goes back and forth sees one draw for each
answer, not a new one each time, and two answers never share a draw. The key is thrown away once an answer is sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from deniable.collection.sheet import SheetColumn
from deniable.core.arrays import Ints, Words
from deniable.engines.batch.kernel import Kernel
from deniable.engines.batch.lineups import LineUpKernel
from deniable.engines.batch.ranges import RangeKernel


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
