"""Who is in a table that a series is about to publish, and whether those who seem new are people that it knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Ints, Words
from deniable.core.errors import RequirementError, option
from deniable.engines.base import PartJob
from deniable.engines.randomness import Keystream
from deniable.publishing.looks import Looks, among, distinct
from deniable.publishing.request import Publication
from deniable.publishing.spelling import words_of_spellings


@dataclass(frozen=True)
class Present:
    """The rows of a table: whom each is about, and with which values.

    Attributes:
        words: of the ids as they are written.
        spellings: words that ids have in common with their other spellings.
        codes: of the values, for each part.
    """

    words: Words
    spellings: Words
    codes: tuple[Ints, ...]

    @classmethod
    def in_table(cls, publication: Publication, jobs: Sequence[PartJob], who: str, keys: Keystream) -> Present:
        """Everyone in the table, in one pass over it."""
        exact, plain = keys.subkey("people"), keys.subkey("spellings")
        words, spellings = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
        codes = [[np.zeros(0, np.int64)] for _ in jobs]
        for batch in publication.dataset.batches([*(name for job in jobs for name in job.part.columns), who]):
            ids = batch.column(who)
            words.append(exact.words_of(ids))
            spellings.append(words_of_spellings(plain, ids))
            for part, job in zip(codes, jobs, strict=True):
                part.append(job.encoder.encode(batch).astype(np.int64))
        return cls(np.concatenate(words), np.concatenate(spellings), tuple(np.concatenate(part) for part in codes))

    @property
    def looks(self) -> list[Looks]:
        """Who is published with which values, for each part."""
        return [Looks.of(self.words, codes) for codes in self.codes]

    def compared(self, before: Words, spellings: Words) -> Compared:
        """With those who were published before; both sorted, and everyone once."""
        people = distinct(self.words)
        new, kept = int((~among(people, before)).sum()), int(among(before, people).sum())
        spelt = distinct(self.spellings[~among(self.words, before)])
        respelt = bool(among(spelt, spellings).any())
        return Compared(len(people), new, len(before) - kept, kept, respelt, len(spelt) < new)


@dataclass(frozen=True)
class Compared:
    """A table beside the publications before it.

    Attributes:
        people: in the table.
        new: of them, those whom no publication had.
        gone: people of the publications who are not in the table.
        kept: those who are.
        respelt: whether an id that is new is one of the publications' ids in another spelling.
        twice: whether two ids that are new are spellings of one.
    """

    people: int
    new: int
    gone: int
    kept: int
    respelt: bool
    twice: bool

    def require_known(self, unfit: str, bound: Callable[[], str]) -> None:
        """Refuse a table in which people seem to have other ids than before: they would be drawn a second time.

        An id that the series, or the table itself, has in another spelling is enough; so are more people who are new
        than known, where more are gone than known. ``unfit`` begins the message, and ``bound`` says what two looks
        come to.
        """
        if self.respelt:
            seen = "at least one id that is new to it is one of its ids, written otherwise"
        elif self.twice:
            seen = "at least two of its ids that are new are one id, written in two ways"
        elif self.kept < min(self.new, self.gone):
            seen = f"{'few' if self.kept else 'none'} of its people are in it, and most are new"
        else:
            return
        raise RequirementError(
            f"{unfit}: {seen}. Under an id of another type or spelling (5, 5.0, '5', '005', 'P5', 'p5 ') a person is "
            f"drawn afresh, which is a second look: {bound()}. Fix: write every id in one way, that of the first "
            f"publication; {option('new_people', True)}, if every id that is new names another person, whom the series "
            "has not published."
        )
