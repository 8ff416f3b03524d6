"""Looks at people: who was published with which values, and what several looks can do together."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from deniable.core.arrays import Bools, Ints, Words


@dataclass(frozen=True)
class Looks:
    """Who was published with which values of a part: distinct pairs of a person's word and a value's code, sorted."""

    words: Words
    codes: Ints

    @classmethod
    def none(cls) -> Looks:
        """Before the first publication."""
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64))

    @classmethod
    def from_dict(cls, raw: Mapping[str, str]) -> Looks:
        """What ``to_dict`` wrote."""
        return cls(unpacked(raw["words"]), unpacked(raw["codes"]).astype(np.int64))

    def to_dict(self) -> dict[str, str]:
        """For a file: packed, since there are as many as people."""
        return {"words": packed(self.words), "codes": packed(self.codes)}

    @classmethod
    def of(cls, words: Words, codes: Ints) -> Looks:
        """Distinct pairs, sorted."""
        order = np.lexsort((codes, words))
        words, codes = words[order], codes[order]
        first = np.ones(len(words), dtype=bool)
        first[1:] = (words[1:] != words[:-1]) | (codes[1:] != codes[:-1])
        return cls(words[first], codes[first])

    def joined(self, other: Looks) -> Looks:
        """These and those."""
        return Looks.of(np.concatenate([self.words, other.words]), np.concatenate([self.codes, other.codes]))

    @property
    def most(self) -> int:
        """The most values that one person was published with."""
        return int(np.unique(self.words, return_counts=True)[1].max(initial=0))

    def above(self, number: int) -> int:
        """How many people were published with more values than this."""
        return int((np.unique(self.words, return_counts=True)[1] > number).sum())


def composed(gammas: Sequence[Fraction | None]) -> str:
    """What several looks at a person can do together: amplifications multiply."""
    known = [gamma for gamma in gammas if gamma is not None]
    if len(known) < len(gammas):
        return f"{len(gammas)} looks together have no bound"
    total = float(math.prod(known, start=Fraction(1)))
    return f"{len(gammas)} looks together multiply the odds of a belief by up to {total:.4g}"


def distinct(words: Words) -> Words:
    """Every word once, sorted: what ``np.unique`` does by hashing, which takes ten times as long for random words."""
    ordered = np.sort(words)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def among(words: Words, known: Words) -> Bools:
    """Which of some words are among others, sorted ones."""
    if not len(known):
        return np.zeros(len(words), dtype=bool)
    places = np.minimum(np.searchsorted(known, words), len(known) - 1)
    return np.asarray(known[places] == words)


def packed(numbers: Words | Ints) -> str:
    """Numbers of 64 bits as text."""
    return base64.b64encode(
        zlib.compress(np.ascontiguousarray(numbers, dtype=numbers.dtype.newbyteorder("<")).tobytes())
    ).decode()


def unpacked(text: str) -> Words:
    """What ``packed`` wrote, as words."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<u8").astype(np.uint64)
