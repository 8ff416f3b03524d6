"""Who remembers what was published, and what several looks at the same people can do together."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deniable.core.errors import ManifestError, RequirementError, listing, option
from deniable.core.privacy import USUAL_BELIEF, worst_posterior
from deniable.core.values import Bools, Ints, Words, percent
from deniable.publishing.request import Publication
from deniable.release.commit import Commit
from deniable.tables.content import Sample, Sketch
from deniable.tables.keys import Keystream

# -- Looks at people: who was published with which values, and what several looks can do together ----------------------


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


def composed(gammas: Sequence[Fraction | None], rho1: Fraction | None = None) -> str:
    """What several looks at a person can do together: amplifications multiply."""
    total = product_of(gammas)
    if total is None:
        return f"{len(gammas)} looks together have no bound"
    odds = f"{len(gammas)} looks together multiply the odds of a belief by up to {float(total):.4g}"
    return f"{odds}: {grown(total, rho1)}"


def product_of(gammas: Sequence[Fraction | None]) -> Fraction | None:
    """The amplification of several looks; None where one of them has no bound."""
    known = [gamma for gamma in gammas if gamma is not None]
    return None if len(known) < len(gammas) else math.prod(known, start=Fraction(1))


def grown(gamma: Fraction, rho1: Fraction | None) -> str:
    """What becomes of a belief, in words."""
    before = USUAL_BELIEF if rho1 is None else rho1
    return f"a belief of {percent(before)} becomes at most {percent(worst_posterior(before, gamma))}"


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


# -- Who remembers what was published: a series, or the ledger beside a key, which says what releases were drawn under
# it, so that a second look at the same people is no accident.
#
# Draws depend on the key, the content and all choices. The same ones give the same release, and nothing new; anything
# else is drawn afresh, and whoever has both releases has two looks (mathematics 13.1).


FIELDS = {"name", "draws", "gamma"}


@dataclass
class Ledger:
    """What was published under a key: by name, a digest of what decided the draws, the amplification, and a sketch of
    the table's rows. Older entries have no sketch."""

    path: Path
    entries: list[dict[str, Any]] = field(default_factory=list)
    changed: bool = False

    @classmethod
    def beside(cls, key_file: Path) -> Ledger:
        """The ledger of a key file; empty where there is none yet."""
        path = key_file.with_name(key_file.name + ".ledger")
        if not path.exists():
            return cls(path)
        try:
            entries = json.loads(path.read_text(encoding="utf-8"))
            if not all(FIELDS <= set(entry) <= {*FIELDS, "rows"} for entry in entries):
                raise ValueError
            for entry in entries:
                _sketch(entry)
        except (OSError, ValueError, TypeError, KeyError, zlib.error):
            raise ManifestError(
                f"{path} is damaged: it is the ledger of a key. Fix: move it away to begin anew."
            ) from None
        return cls(path, entries)

    @classmethod
    def of(cls, publication: Publication, draws: tuple[str, ...], gamma: Fraction | None) -> Ledger | None:
        """The ledger with what is about to be published in it, which refuses people that were published before; None
        where there is no key file. ``draws`` names what decides the draws."""
        request = publication.request
        if request.key_file is None:
            return None
        ledger = cls.beside(Path(request.key_file))
        sketched = partial(publication.source.sketch, Keystream(publication.secret, "ledger"))
        ledger.note(request.name, draws, gamma, sketched, again=request.again)
        return ledger

    def note(
        self,
        name: str,
        draws: tuple[str, ...],
        gamma: Fraction | None,
        sketched: Callable[[], Sketch],
        *,
        again: bool,
    ) -> None:
        """Take a release in; a second look at what has this name, or at rows that were published under another one, is
        refused, unless the owner insists."""
        digest = hashlib.sha256("\n".join(draws).encode()).hexdigest()
        if any((entry["name"], entry["draws"]) == (name, digest) for entry in self.entries):
            return  # the same release once more
        rows = sketched()
        alike = [entry for entry in self.entries if _alike(rows, _sketch(entry))]
        looked = [entry for entry in self.entries if entry["name"] == name or entry in alike]
        if looked and not again:
            looks = [None if entry["gamma"] is None else Fraction(entry["gamma"]) for entry in looked] + [gamma]
            named = listing(list(dict.fromkeys(entry["name"] for entry in alike or looked)))
            if alike:
                raise RequirementError(
                    f"Rows of this table were published under this key before, as {named}: this is a second look at "
                    f"the same people, {composed(looks)}. Fix: {option('series', '')} to publish them again as they "
                    f"were; {option('again', True)} to insist, or if they are other people whose rows are alike."
                )
            raise RequirementError(
                f"Another release named {named} was published under this key: of another table, or with other choices. "
                f"If it was about the same people, this is a second look at them: {composed(looks)}. Fix: "
                f"{option('series', '')} to publish them again as they were; {option('name', '')} if this is about "
                f"other people; {option('again', True)} to insist."
            )
        entry = {"name": name, "draws": digest, "gamma": None if gamma is None else str(gamma)}
        self.entries.append({**entry, "rows": packed_sketch(rows)})
        self.changed = True

    def save(self, commit: Commit) -> None:
        """Write it down, if there is something new."""
        if self.changed:
            commit.write(self.path, json.dumps(self.entries, indent=1) + "\n", private=True)


def packed_sketch(rows: Sketch) -> dict[str, Any]:
    """For a file."""
    samples = [{**vars(one), "once": packed(one.once), "repeated": packed(one.repeated)} for one in rows.samples]
    return {"rows": rows.rows, "samples": samples}


def unpacked_sketch(raw: Mapping[str, Any]) -> Sketch:
    """What ``packed_sketch`` wrote."""
    samples = (
        Sample(**{**one, "once": unpacked(one["once"]), "repeated": unpacked(one["repeated"])})
        for one in raw["samples"]
    )
    return Sketch(int(raw["rows"]), tuple(samples))


def _sketch(entry: Mapping[str, Any]) -> Sketch | None:
    return unpacked_sketch(entry["rows"]) if "rows" in entry else None


def _alike(one: Sketch, other: Sketch | None) -> bool:
    return other is not None and one.same_people(other)
