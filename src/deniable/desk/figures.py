"""Live figures of a table: its columns as codes, held once; what someone who knows public columns finds, before and
after they are made coarser; and how a column's values are distributed.

How many of the people are alone is asked of a sample of people, each looked for among *all* rows:

    key(row) = sum over columns of z_column[coarse code of the row]  mod 2^64,   z random words

Two rows have one key where they agree in all columns, and by chance once in 2^64. So a change of a recoding costs a
pass over codes in memory, and the only error is that of the sample, which is stated. Words are from a fixed seed:
nothing of them is secret, and the same table gives the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.core.values import Codes, Floats, Ints
from deniable.owner.project import Project
from deniable.owner.public import SEED
from deniable.owner.risk import risk
from deniable.owner.roles import Columns, runs_of
from deniable.publishing.recoding import as_steps
from deniable.tables import engine_named
from deniable.tables.base import Dataset, Progress, no_progress
from deniable.tables.encoding import Encoded, coded_columns, encode, is_askable, is_number, smallest

PEOPLE = 10_000  # who are looked for among all rows
BY_COLUMN = 8_000_000  # codes that are looked at to say what each column adds: of larger tables some rows
CELLS = 500_000_000  # codes that are held: of larger tables some rows, in runs
LEARNT_FROM = 20_000  # rows that someone learns from
SURE = 1.96  # standard errors of an interval of 95 %
BITS = 20  # of the key, by which rows are passed over that nobody has
BLOCK = 2**16  # rows
BARS = 20
MOST_BY_COLUMN = 40  # columns
Keys = NDArray[np.uint64]


@dataclass(frozen=True)
class Alone:
    """How many people are found by what someone may know of them.

    Attributes:
        share: of the people are alone.
        error: of the share, either way, at 95 %; 0 where everyone was looked for.
        few: share of the people who share what is known with fewer than five.
        without: column -> the share that would be alone if it were not known, among some rows that stand together.
        among: the share that is alone among those rows where all columns are known: of fewer rows more are.
        rows: how many those rows are.
        of: rows.
    """

    share: float
    error: float
    few: float
    without: Mapping[str, float]
    among: float
    rows: int
    of: int


@dataclass(frozen=True)
class Bar:
    """Rows of a value, or of a range of numbers."""

    label: str
    rows: int


@dataclass
class Figures:
    """A table as codes.

    Attributes:
        rows: of the table.
        sample: some rows, as the table has them, by which roles are told.
        columns: the columns that were read.
        held: how many rows of each column are held: all, but for very large tables.
    """

    rows: int
    sample: Columns
    columns: dict[str, Encoded] = field(default_factory=dict)
    held: int = 0

    @classmethod
    def begun(cls, dataset: Dataset, progress: Progress) -> Figures:
        """A sample, and the number of rows."""
        names = [name for name in dataset.names if name]
        sample = Columns(runs_of(dataset, names, progress=progress))
        rows = dataset.rows
        if rows is None:
            rows = 0
            for batch in dataset.batches(names[:1]):
                rows += batch.num_rows
                progress(rows, None, "rows")
        return cls(rows, sample)

    def read(self, dataset: Dataset, names: Sequence[str], progress: Progress) -> None:
        """Hold these columns, too."""
        wanted = [name for name in names if name not in self.columns and is_askable(dataset.schema.field(name).type)]
        if not wanted:
            return
        if self.rows * (len(wanted) + len(self.columns)) > CELLS:
            most = CELLS // (len(wanted) + len(self.columns))
            some = runs_of(dataset, wanted, most, progress)
            dataset = engine_named("local").open(some)
        self.columns.update(coded_columns(dataset, wanted, progress))
        self.held = min(len(self.columns[name].codes) for name in self.columns)

    @property
    def complete(self) -> bool:
        """Whether all rows are held."""
        return self.held == self.rows

    def has(self, names: Sequence[str]) -> bool:
        return all(name in self.columns or not is_askable(self.sample.rows.schema.field(name).type) for name in names)

    # -- Coarser ------------------------------------------------------------------------------------------------------

    def coarse(self, name: str, recode: str, rare: int | None = None) -> Encoded:
        """The values of a column once it is made coarser, and for each of its codes the one that it becomes."""
        column = self.columns[name]
        values, places = column.values, np.arange(column.size, dtype=np.int64)
        if recode:
            single = engine_named("local").open(pa.table({name: column.values}))
            made = single.recoded({name: as_steps(recode)})
            batches = list(made.batches([name]))
            if batches:
                encoded = encode(pa.chunked_array([batch.column(0) for batch in batches]))
                values = encoded.values
                places = np.append(encoded.codes.astype(np.int64), len(values))
        if rare is not None and not is_number(column.values.type):
            counts = np.bincount(places, weights=self.counts(name), minlength=len(values) + 1)
            small = (counts > 0) & (counts < rare)
            small[-1] = False
            if small.sum() > 1:
                first = int(np.flatnonzero(small)[0])
                places = np.where(small[places], first, places)
        return Encoded(values, places)

    def counts(self, name: str) -> Ints:
        """Rows of each value as the table has it; missing last."""
        column = self.columns[name]
        counts: Ints = np.bincount(column.codes, minlength=column.size)
        return counts

    def coarse_of(self, project: Project, name: str) -> Encoded:
        """How a column's values are published, and for each of its codes the one that it becomes."""
        recode = next((one.recode for one in project.columns if one.column == name), "")
        return self.coarse(name, recode, project.rare)

    def coarse_codes(self, project: Project, name: str) -> tuple[Encoded, Codes]:
        """How a column's values are published, and the code of each row."""
        made = self.coarse_of(project, name)
        return made, smallest(made.codes, made.size)[self.columns[name].codes]

    # -- Who is found -------------------------------------------------------------------------------------------------

    def alone(self, maps: Mapping[str, Ints], progress: Progress = no_progress) -> Alone:
        """How many people are alone in these columns, and how many would be, were one of them not known; ``maps``:
        column -> for each code the one that it becomes."""
        if not maps or not self.held:
            return Alone(0.0, 0.0, 0.0, {}, 0.0, 0, self.held)
        rng = np.random.default_rng(SEED)
        words = {name: rng.integers(0, 2**64, int(place.max()) + 1, np.uint64)[place] for name, place in maps.items()}
        people = min(self.held, PEOPLE)
        chosen = np.sort(rng.choice(self.held, people, replace=False)) if people < self.held else np.arange(people)
        sizes = self._sizes(words, chosen, (0, self.held), ("",), progress)[""]
        share = float((sizes == 1).mean())
        error = 0.0 if people == self.held else SURE * math.sqrt(max(share * (1 - share), 1 / people) / people)
        rows = min(self.held, max(BY_COLUMN // max(len(maps), 1), people))
        start = (self.held - rows) // 2
        within = chosen[(chosen >= start) & (chosen < start + rows)]
        left_out = ("", *(list(maps)[:MOST_BY_COLUMN] if len(maps) > 1 else ()))
        by_left_out = self._sizes(words, within, (start, start + rows), left_out, progress)
        without = {name: float((some == 1).mean()) for name, some in by_left_out.items()}
        among = without.pop("")
        return Alone(share, error, float((sizes < 5).mean()), without, among, rows, self.held)

    def _sizes(
        self,
        words: Mapping[str, Keys],
        chosen: Ints,
        scope: tuple[int, int],
        left_out: Sequence[str],
        progress: Progress,
    ) -> dict[str, Ints]:
        """For each of some rows, how many rows agree with it in all columns but the one that is left out; "": in all.

        Rows are taken by blocks that stay in a processor's cache, which is four times as fast as all at once.
        """

        def words_of(name: str, rows: Any) -> Keys:
            return words[name][self.columns[name].codes[rows]]

        def keys(rows: Any) -> dict[str, Keys]:
            whole = words_of(first, rows)
            for name in others:
                whole += words_of(name, rows)
            return {name: whole - words_of(name, rows) if name else whole for name in left_out}

        first, *others = words
        known = {name: np.unique(own, return_inverse=True) for name, own in keys(chosen).items()}
        counts = {name: np.zeros(len(own), np.int64) for name, (own, _) in known.items()}
        seen = {name: np.zeros(2**BITS, dtype=bool) for name in known}
        low = np.uint64(2**BITS - 1)
        for name, (own, _) in known.items():
            seen[name][own & low] = True
        for start in range(*scope, BLOCK):
            progress(start - scope[0], scope[1] - scope[0], "alone")
            for name, some in keys(slice(start, min(start + BLOCK, scope[1]))).items():
                near = some[seen[name][some & low]]
                place = pc.index_in(pa.array(near), pa.array(known[name][0])).drop_null()
                counts[name] += np.bincount(place.to_numpy(), minlength=len(counts[name]))
        return {name: counts[name][back] for name, (_, back) in known.items()}

    def given_away(self, project: Project) -> dict[str, Any] | None:
        """What public columns say of the sensitive one without any release, as ``deniable risk`` computes it, of a
        sample of the rows; None where there is nothing to say."""
        sensitive = project.sensitive
        public = [name for name in public_of(project) if name in self.columns]
        if len(sensitive) != 1 or not public or sensitive[0] not in self.columns:
            return None
        rows = self.sample.rows
        some = rows.slice(0, LEARNT_FROM) if rows.num_rows > LEARNT_FROM else rows
        arguments = project.arguments()
        recode = {name: steps for name, steps in arguments["recode"].items() if name in public}
        exposed = risk(some.select([*public, *sensitive]), public, sensitive=sensitive[0], recode=recode or None)
        after = exposed.tells[1] if recode else exposed.tells[0]
        return {
            "rows": some.num_rows,
            "of": self.rows,
            "before": None if exposed.tells[0] is None else exposed.tells[0].to_dict(),
            "after": None if after is None else after.to_dict(),
        }

    # -- How values are distributed -----------------------------------------------------------------------------------

    def bars(self, name: str, recode: str = "", rare: int | None = None) -> tuple[list[Bar], list[Bar]]:
        """A column's values and rows before and after it is made coarser."""
        column = self.columns[name]
        before = self.counts(name)
        made = self.coarse(name, recode, rare)
        after = np.bincount(made.codes, weights=before, minlength=made.size).astype(np.int64)
        return bars_of(column.values, before), bars_of(made.values, after[: made.size])


def public_of(project: Project) -> list[str]:
    """The columns that are published as they are, or coarser."""
    return [one.column for one in project.columns if one.role == "public"]


def texts_of(values: pa.Array) -> list[str]:
    """Values as people read them."""
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.string())
    return [str(value) for value in values.to_pylist()]


def bars_of(values: pa.Array, rows: Ints) -> list[Bar]:
    """At most twenty bars: the most frequent values and the rest, or ranges of numbers of one width."""
    known, missing = rows[: len(values)], int(rows[len(values)]) if len(rows) > len(values) else 0
    if is_number(values.type) and len(values) > BARS:
        made = _ranges(np.asarray(values.cast(pa.float64())), known)
    else:
        order = np.argsort(-known, kind="stable")
        kept = order[: BARS - 1] if len(order) > BARS else order
        if len(order) <= BARS:  # in their own order, which ages and months have
            labels = texts_of(values)
            by_value = np.argsort(np.array(labels, dtype=object), kind="stable")
            if is_number(values.type):
                by_value = np.argsort(np.asarray(values.cast(pa.float64())), kind="stable")
            made = [Bar(labels[place], int(known[place])) for place in by_value if known[place]]
        else:
            labels = texts_of(values.take(pa.array(kept)))
            made = [Bar(label, int(known[place])) for label, place in zip(labels, kept, strict=True)]
            made.append(Bar("…", int(known.sum() - known[kept].sum())))
    return [*made, *([Bar("?", missing)] if missing else [])]


def _ranges(numbers: Floats, rows: Ints) -> list[Bar]:
    finite = np.isfinite(numbers) & (rows > 0)
    if not finite.any():
        return []
    low, high = float(numbers[finite].min()), float(numbers[finite].max())
    width = _round((high - low) / BARS) if high > low else 1.0
    start = math.floor(low / width) * width
    places = np.floor((numbers[finite] - start) / width).astype(np.int64)
    counts = np.bincount(places, weights=rows[finite])
    return [
        Bar(f"{start + place * width:,.6g} – {start + (place + 1) * width:,.6g}", int(count))
        for place, count in enumerate(counts)
    ]


def _round(number: float) -> float:
    size = 10.0 ** math.floor(math.log10(number))
    return next(size * step for step in (1, 2, 5, 10) if size * step >= number * (1 - 1e-12))
