"""A series: one table, published again and again, and the people in it (mathematics 13.9, 13.14)."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import unicodedata
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core import values
from deniable.core.channels import NumberRange, Replace
from deniable.core.errors import ManifestError, OptionError, RequirementError, SecretError, option
from deniable.core.histogram import Histogram
from deniable.core.part import Part, part_dict, part_of
from deniable.core.plan import Cell, Plan, PlannedPart
from deniable.core.promise import Guarantee
from deniable.core.values import Ints, Words
from deniable.mechanisms import Mechanism
from deniable.mechanisms.partitioning import Group, split
from deniable.publishing.ledger import Looks, among, composed, distinct, packed, unpacked
from deniable.publishing.parts import COST, Prepared, as_required, noisy_marginal, prepared, require_kept, with_room
from deniable.publishing.request import Publication
from deniable.release.commit import Commit
from deniable.tables.base import Dataset, PartJob, Progress, no_progress
from deniable.tables.encoding import in_order
from deniable.tables.keys import Keystream, Secret, stored

# -- One id in many spellings: 5, 5.0, '5', '005', 'P05' and 'p5 ' may name one person, to whom a series must not do as
# if they were new (mathematics 13.14).


BLANKS = re.compile(r"\s+")
LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")  # of every number in a text, but not behind a point: 1.05 is not 1.5
WHOLE = re.compile(r"(?<=\d)\.0+$")
NUMBER = re.compile(r"[0-9]{1,20}")


def plain(text: str) -> str:
    """What an id has in common with its other spellings: no capitals, blanks, leading zeros or forms of letters.

    >>> plain(" P-007.0"), plain("ｐ-7"), plain("1.10"), plain("0")
    ('p-7', 'p-7', '1.10', '0')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return WHOLE.sub("", LEADING_ZEROS.sub("", BLANKS.sub("", folded)))


def words_of_spellings(keys: Keystream, ids: pa.Array | pa.ChunkedArray) -> Words:
    """One word per id, the same for all spellings of it, of whatever type."""
    if pa.types.is_integer(ids.type):
        return keys.words_of(ids)
    texts = [plain(text) for text in _texts(ids)]
    words = keys.words_of(pa.array(texts, pa.string()))
    numbers = {place: int(text) for place, text in enumerate(texts) if NUMBER.fullmatch(text) and int(text) < 2**64}
    if numbers:  # as a column of numbers has them
        words[list(numbers)] = keys.words_of(pa.array(numbers.values(), pa.uint64()))
    return words


def _texts(ids: pa.Array | pa.ChunkedArray) -> list[str]:
    """Ids as texts; a whole number has no point, however it is stored."""
    ids = stored(ids)
    if pa.types.is_floating(ids.type):
        numbers = np.asarray(ids.to_numpy(zero_copy_only=False), dtype=np.float64).tolist()
        return [str(int(number)) if number.is_integer() else repr(number) for number in numbers]
    if pa.types.is_binary(ids.type) or pa.types.is_large_binary(ids.type) or pa.types.is_fixed_size_binary(ids.type):
        return [value.decode("utf-8", "backslashreplace") for value in ids.to_pylist()]
    return list(ids.cast(pa.string()).to_pylist())


# -- Who is in a table that a series is about to publish, and whether those who seem new are people that it knows ------


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


# -- A series: one table, published again and again (mathematics 13.14) ------------------------------------------------
# The plan and the domain are fixed at the first publication. A row's draw, and its cell, is a function of the key of
# the series, the person and the value: whoever has not changed is published as before, and all publications together
# tell no more of that person than one of them. A changed value is drawn afresh; how often that may happen to a person
# is bounded.
#
# The file of a series holds its key and who was published with what. It is as secret as a key.


FORMAT = 2
UNSEALED = 1  # the first format, without a digest: such series go on, and are sealed when they are written again
CHANGES = 2  # how often a person's value may change, unless the owner says otherwise


@dataclass
class Series:
    """The file of a series, read or about to be made.

    Attributes:
        changes: how often a person's value may change.
        choices: a digest of what was chosen at the first publication.
        plan: what was fixed then; None before.
        looks: who was published with what, for each part.
        publications: what was published, for the owner to read.
        spellings: words of the ids of everyone, the same for all spellings of an id; files that were written before
            there were any have none, and get those of whoever is published next.
        new_people: whether the owner says that all ids which are new name people who were not published before.
    """

    path: Path
    secret: Secret
    changes: int
    choices: str = ""
    plan: dict[str, Any] | None = None
    looks: list[Looks] = field(default_factory=list)
    publications: list[dict[str, Any]] = field(default_factory=list)
    spellings: Words = field(default_factory=lambda: Looks.none().words)
    new_people: bool = False

    @classmethod
    def open(cls, path: Path, changes: int | None, new_people: bool) -> Series:
        """The series in this file, or a new one where there is no file."""
        if changes is not None and (isinstance(changes, bool) or not isinstance(changes, int) or changes < 0):
            raise OptionError(
                f"changes = {changes!r} is not allowed: it is a whole number from 0 on. Fix: {option('changes', 2)}."
            )
        if not path.exists():
            made = Secret(Secret.generate().key, "series")
            return cls(path, made, CHANGES if changes is None else changes, new_people=new_people)
        require_own_file(path)
        series = cls._read(path)
        series.new_people = new_people
        if changes is not None and changes != series.changes:
            raise OptionError(
                f"changes = {changes}, and the series in {path} was begun with {series.changes}: the total that was "
                "promised counts on it. Fix: leave changes out, or begin a new series."
            )
        return series

    @classmethod
    def _read(cls, path: Path) -> Series:
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            if raw["format"] != UNSEALED and (raw["format"] != FORMAT or raw["digest"] != digest_of(raw)):
                raise ValueError
            looks = [Looks.from_dict(one) for one in raw["looks"]]
            secret = Secret(bytes.fromhex(raw["key"]), "series")
            kept = (raw["changes"], raw["choices"], raw["plan"], looks, raw["publications"])
            return cls(path, secret, *kept, unpacked(raw["spellings"]) if "spellings" in raw else Looks.none().words)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, zlib.error):
            raise ManifestError(
                f"{path} is no file of a series, or was changed or damaged after it was written: who was published "
                "with what cannot be trusted. Fix: put a copy of it back; a new file name begins a new series, which "
                "is a second look at everyone."
            ) from None

    def save(self, commit: Commit) -> None:
        """Write the file, readable by its owner only, whole or not at all."""
        raw = {
            "format": FORMAT,
            "key": self.secret.key.hex(),
            "changes": self.changes,
            "choices": self.choices,
            "plan": self.plan,
            "looks": [one.to_dict() for one in self.looks],
            "publications": self.publications,
            "spellings": packed(self.spellings),
        }
        raw["digest"] = digest_of(raw)
        commit.write(self.path, json.dumps(raw, indent=1) + "\n", private=True)

    @property
    def keys(self) -> Keystream:
        """The randomness of all publications: the plan is fixed, so it is part of no derivation."""
        return Keystream(self.secret, "series")

    @property
    def name(self) -> str:
        """What its publications say that they belong to: a word of the key that tells nothing else of it."""
        return self.keys.subkey("name").words(0, 2).astype("<u8").tobytes().hex()

    def admitted(self, publication: Publication) -> Publication:
        """The publication; refused where it is otherwise than at first: that would be a second look at everyone."""
        choices = publication.choices
        if self.plan is not None and choices != self.choices:
            raise OptionError(
                f"The series in {self.path} was begun with other choices (mechanism, requirement, sensitive columns, "
                "who is who, missing, domain or bins): other draws of the same people are a second look, "
                f"{self._second_look()}. Fix: the same choices as then; or a new series, if that look is meant."
            )
        self.choices = choices
        return publication

    def _second_look(self) -> str:
        assert self.plan is not None
        gamma = self.plan["guarantee"]["gamma"]
        return composed([None if gamma is None else Fraction(gamma)] * 2)

    # -- the plan ----------------------------------------------------------------------------------------------------

    def freeze(self, ready: Prepared, parts: Sequence[Part]) -> None:
        """Fix the plan of the first publication."""
        promised = ready.plan.guarantee
        for job in ready.jobs:
            if job.part.swapped or job.part.hidden or job.part.groups is not None:
                raise OptionError(
                    f"series does not go with mechanism {ready.plan.mechanism!r}: its rows are not drawn one by one, "
                    "so a person could not be published again as before. Fix: a mechanism with channels, for example "
                    "'designed'."
                )
        self.plan = {
            "parts": [part_dict(part) for part in parts],
            "rows": [[cell.rows.counts.tolist() for cell in job.part.cells] for job in ready.jobs],
            "guarantee": {
                "adversary": promised.adversary,
                **{name: _text(getattr(promised, name)) for name in ("rho1", "rho2", "gamma", "worst")},
                "also": list(promised.also),
                "not_protected": list(promised.not_protected),
            },
            "mechanism": ready.plan.mechanism,
            "options": values.plain(ready.plan.options),
        }
        self.looks = [Looks.none() for _ in ready.jobs]

    def prepared(self, mechanism: str | Mechanism, publication: Publication) -> Prepared:
        """What is to be executed for this publication, by the plan of the first; that one is made now, if it is it."""
        if self.plan is None:
            ready = prepared(mechanism, replace(publication, privacy=with_room(publication.privacy)))
            return replace(ready, plan=as_required(ready.plan, publication.privacy))
        stored = [part_of(raw) for raw in self.plan["parts"]]
        jobs, marginals = [], []
        for part, rows in zip(stored, self.plan["rows"], strict=True):
            job, histogram = self._job(part, rows, publication)
            require_kept(part, job.part)
            jobs.append(job)
            keys = publication.keys.subkey(*part.columns)
            wanted = part.marginal is not None and histogram is not None
            marginals.append(noisy_marginal(keys, histogram) if wanted and histogram is not None else None)
        raw = self.plan["guarantee"]
        promised = Guarantee(
            promises=tuple(part.promise for part in stored),
            adversary=raw["adversary"],
            rho1=_fraction(raw["rho1"]),
            rho2=_fraction(raw["rho2"]),
            worst=Fraction(raw["worst"]),
            gamma=_fraction(raw["gamma"]),
            also=tuple(raw["also"]),
            not_protected=tuple(raw["not_protected"]),
        )
        plan = Plan(
            self.plan["mechanism"], tuple(job.part for job in jobs), publication.privacy, promised, self.plan["options"]
        )
        return Prepared(plan, publication.dataset, tuple(jobs), tuple(marginals))

    def _job(
        self, part: Part, rows: Sequence[Sequence[int]], publication: Publication
    ) -> tuple[PartJob, Histogram | None]:
        if part.range is not None:
            return self._range_job(part, part.range, publication), None
        domain = {column: list(dict.fromkeys(part.column_values(column))) for column in part.columns}
        scan = in_order(publication.scan(part.columns, domain), domain)
        groups = [
            Group(places, np.array(counts, dtype=np.int64))
            for places, counts in zip(part.cell_positions, rows, strict=True)
        ]
        taken = split(groups, scan.histogram.counts) if groups else []
        planned = _part(part, scan.histogram, taken)
        first = _part(part, _total(part, groups), [group.counts for group in groups]) if groups else None
        return PartJob(planned, scan.encoder, scan.rows, drawn_as=first), scan.histogram

    def _range_job(self, part: Part, grid: NumberRange, publication: Publication) -> PartJob:
        declared = Replace(coin=max(grid.coin, 2.0**-32), low=grid.low, high=grid.high, step=grid.step)
        request = publication.request
        scan = publication.dataset.scan_range(part.columns[0], declared, request.missing, request.progress)
        if scan.grid.missing and not grid.missing:
            raise RequirementError(
                f"The column {part.columns[0]!r} has missing values, and had none when the series began: they are no "
                "value of its plan. Fix: fill them, leave those rows out, or begin a new series."
            )
        planned = PlannedPart(columns=part.columns, grid=grid, requirement=part.requirement)
        return PartJob(planned, scan.encoder.with_range(grid), scan.rows)

    def compared(self, dataset: Dataset, who: str, progress: Progress = no_progress) -> Compared:
        """A table beside the publications before it; nothing is taken in.

        Args:
            dataset: the table.
            who: the column that names the row or the person.
            progress: told how many rows were looked at.
        """
        exact, plain = self.keys.subkey("people"), self.keys.subkey("spellings")
        words, spellings, rows = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)], 0
        for batch in dataset.batches([who]):
            words.append(exact.words_of(batch.column(who)))
            spellings.append(words_of_spellings(plain, batch.column(who)))
            rows += batch.num_rows
            progress(rows, dataset.rows, "comparing")
        before = self.looks[0].words if self.looks else Looks.none().words
        return Present(np.concatenate(words), np.concatenate(spellings), ()).compared(distinct(before), self.spellings)

    # -- the ledger ----------------------------------------------------------------------------------------------------

    def note(self, publication: Publication, jobs: Sequence[PartJob], date: str) -> dict[str, Any]:
        """Take in who is published now; refused where someone changed too often. Nothing is written yet."""
        who = publication.request.who or ""
        present = Present.in_table(publication, jobs, who, self.keys)
        joined = [before.joined(looks) for before, looks in zip(self.looks, present.looks, strict=True)]
        if any(looks.above(self.changes + 1) for looks in joined):
            raise RequirementError(
                f"At least one person has changed their value more than {self.changes} times since the series began, "
                "and each change is another look at them. Fix: leave the rows of those who did out, or begin a new "
                f"series, with {option('changes', '')} for as many as are to be expected."
            )
        now = present.compared(distinct(self.looks[0].words), self.spellings)
        if not self.new_people:
            now.require_known(
                f"By the column {who!r} this table does not fit the series in {self.path}", self._second_look
            )
        entry = {
            "number": len(self.publications) + 1,
            "date": date,
            "people": now.people,
            "new": now.new,
            "gone": now.gone,
            "most_values_of_a_person": max(looks.most for looks in joined),
        }
        self.looks, self.spellings = joined, distinct(np.concatenate([self.spellings, present.spellings]))
        self.publications.append(entry)
        return entry

    def said(self, promised: Guarantee, histograms: bool) -> Guarantee:
        """The guarantee of this publication, with what all of them promise together."""
        number, most = len(self.publications), self.changes + 1
        looks = composed([promised.gamma] * most, promised.rho1)
        total = (
            f"This is publication {number:,} of a series. Whoever's value has not changed is published as before, and "
            "all publications together promise what one does. A changed value is drawn afresh, and that it changed can "
            f"be seen; that happens to a person {self.changes:,} times at most: {looks}."
        )
        repeated = (
            f"The noisy histograms of all {number:,} publications add up: epsilon {number * COST:g} to whoever does "
            "not know the distributions.",
        )
        return replace(
            promised,
            also=(*promised.also, total),
            not_protected=(*promised.not_protected, *(repeated if histograms and number > 1 else ())),
        )


def _part(part: Part, histogram: Histogram, rows: Sequence[Ints]) -> PlannedPart:
    """The stored plan of a part, for a table with this histogram, whose cells take these rows."""
    cells = zip(part.channels, rows, strict=True)
    return PlannedPart(
        columns=part.columns,
        histogram=histogram,
        cells=tuple(Cell(Histogram(channel.values, counts), channel) for channel, counts in cells),
        cells_published=part.cells_published,
        requirement=part.requirement,
        lineups=part.lineups,
    )


def _total(part: Part, groups: Sequence[Group]) -> Histogram:
    counts = np.zeros(part.m, dtype=np.int64)
    for group in groups:
        np.add.at(counts, group.positions, group.counts)
    return Histogram(part.domain, counts)


def require_own_file(path: Path) -> None:
    """Refuse a series that others can read."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise SecretError(f"{path} can be read by others: it holds the key of the series. Fix: chmod 600 {path}.")


def digest_of(raw: Mapping[str, Any]) -> str:
    """Of everything that the file holds but the digest: what follows from a sound file need not be checked again."""
    whole = {name: entry for name, entry in raw.items() if name != "digest"}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


# -- Rows of one person, and people who are published again: what is asked for, and what is said of it -----------------


def said_of_looks(ready: Prepared, publication: Publication, series: Series | None) -> Prepared:
    """What is published, saying what several looks at a person come to; a series takes note of it."""
    promised = ready.plan.guarantee
    if series is None:
        return saying(ready, SAID_OF_PEOPLE.format(composed([promised.gamma] * 2, promised.rho1)))
    if series.plan is None:
        series.freeze(ready, ready.published(publication.request.missing))
    series.note(publication, ready.jobs, datetime.date.today().isoformat())
    said = series.said(promised, any(ready.marginals))
    return replace(ready, plan=replace(ready.plan, guarantee=said))


SAID_OF_PEOPLE = (  # several rows of a person are one look as long as they hold one value (mathematics 13.9)
    "Rows of one person that hold the same value are published alike, and are one look at that person. Whoever has "
    "rows with k different values is looked at k times: {}."
)


def saying(ready: Prepared, sentence: str) -> Prepared:
    """What is published, saying one thing more that it does not protect from."""
    promised = ready.plan.guarantee
    said = replace(promised, not_protected=(*promised.not_protected, sentence))
    return replace(ready, plan=replace(ready.plan, guarantee=said))


def require_own_draws(ready: Prepared, who: str | None, by_value: bool) -> None:
    """A row id decides the draws of its row; where rows are dealt to cells or swapped, their order decides too. A
    person and a value draw their cell themselves, but for groups."""
    if who is not None and any(
        (len(work.part.cells) > 1 and not (by_value and work.part.cells_published)) or work.part.swapped
        for work in ready.jobs
    ):
        raise OptionError(
            f"The column {who!r}, which names rows or people ({option('row_id')}, person), does not go with mechanism "
            f"{ready.plan.mechanism!r}: it deals rows to cells, or swaps them, by their order. Fix: leave it out, or "
            "publish with a mechanism of one cell, for example 'designed'."
        )
