"""Pools of questions: what is planned for, and what an experiment asks of the original and of every release alike."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.channels import Channel
from deniable.core.errors import ColumnError, OptionError, QuestionError, TableError, did_you_mean, no_column, option
from deniable.core.histogram import Histogram, QuestionProfile
from deniable.core.text import small_text
from deniable.core.values import Bools, Codes, Floats, Ints
from deniable.estimation.published import Counter
from deniable.estimation.questions import Resolved, Resolver
from deniable.estimation.sql.parsing import parse
from deniable.estimation.sql.scope import Scope
from deniable.tables.base import Dataset, Progress, no_progress, row_labels
from deniable.tables.encoding import Encoded, coded_columns, encode, mixed, smallest

# -- A table as codes, made once: what planning for questions, and experiments, need of the original -------------------


PIECE = 2**20


@dataclass(frozen=True, eq=False)
class CodedTable:
    """An original table: public columns and one sensitive column, as codes.

    It can be asked like a release (its public parameters have no channels), which is how conditions are read.

    Attributes:
        columns: the public columns; the last code of each means missing.
        sensitive: the sensitive column's name.
        histogram: how many rows hold each of its values.
        codes: where every row's value stands in the histogram's domain.
    """

    columns: Mapping[str, Encoded]
    sensitive: str
    histogram: Histogram
    codes: Codes
    channels: tuple[Channel, ...] = field(default=(), init=False)
    cell_positions: tuple[Ints, ...] = field(default=(), init=False)
    cells_published: bool = field(default=False, init=False)
    marginal: None = field(default=None, init=False)

    @classmethod
    def of(cls, table: pa.Table, sensitive: str, *, drop: Sequence[str] = ()) -> CodedTable:
        """A table as codes. Values are sorted, missing is a value like any other and comes last."""
        kept = _kept(table.column_names, sensitive, drop)
        return cls.of_columns({name: encode(table[name]) for name in kept}, sensitive)

    @classmethod
    def read(
        cls, dataset: Dataset, sensitive: str, *, drop: Sequence[str] = (), progress: Progress = no_progress
    ) -> CodedTable:
        """The same of a table that is read in batches: what is held is a code a row and column, and distinct values."""
        return cls.of_columns(coded_columns(dataset, _kept(dataset.names, sensitive, drop), progress), sensitive)

    @classmethod
    def of_columns(cls, columns: Mapping[str, Encoded], sensitive: str) -> CodedTable:
        """From columns as ``encode`` has them, the sensitive one among them."""
        unsorted = columns[sensitive]
        if not len(unsorted.codes):
            raise TableError(
                "The table has no rows: there is nothing to evaluate. Fix: a file with rows below its header."
            )
        values: list[Any] = unsorted.values.to_pylist()
        order = sorted(range(len(values)), key=lambda place: (str(type(values[place])), values[place]))
        missing = bool((unsorted.codes == len(values)).any())
        domain: list[Hashable] = [values[place] for place in order] + ([None] if missing else [])
        rank = np.empty(len(values) + 1, np.int64)
        rank[order] = np.arange(len(values))
        rank[len(values)] = len(values)
        codes = smallest(rank, len(domain))[unsorted.codes]
        counts = _counts(codes, len(domain))
        public = {name: column for name, column in columns.items() if name != sensitive}
        return cls(public, sensitive, Histogram(tuple(domain), counts), codes)

    @property
    def rows(self) -> int:
        return len(self.codes)

    @property
    def m(self) -> int:
        return self.histogram.m

    @property
    def domain(self) -> tuple[Hashable, ...]:
        return self.histogram.domain

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        return (self.sensitive,)

    @property
    def public_columns(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def distinct(self, column: str) -> pa.Array:
        """The distinct values of a public column, without missing."""
        return self.columns[column].values


def _counts(codes: Codes, size: int) -> Ints:
    """The rows of each code, a piece at a time: NumPy counts numbers of 64 bits, and would make them of all rows."""
    counts = np.zeros(size, np.int64)
    for start in range(0, len(codes), PIECE):
        counts += np.bincount(codes[start : start + PIECE], minlength=size)
    return counts


def _kept(names: Sequence[str], sensitive: str, drop: Sequence[str]) -> list[str]:
    """The columns that stay; refused where one is named that is not there, or the sensitive one is dropped."""
    for role, name in (("sensitive", sensitive), *(("drop", name) for name in drop)):
        if name not in names:
            raise ColumnError(no_column(role, name, names))
    if sensitive in drop:
        raise ColumnError(
            f"The column {sensitive!r} is named by {option('sensitive', '')} and by {option('drop', '')}: a column has "
            "one role. Fix: name it once."
        )
    left_out = {*drop, *row_labels(names, (sensitive,))}
    return [name for name in names if name not in left_out]


# -- The rows of the conditions of a pool: held, or counted again in all rows where a table is too large for that ------


Rows = npt.NDArray[np.int32]
HELD = 2**19  # rows of a table whose conditions are held as lists of rows: three times as fast to count
CHUNK = 2**18
RADIX = 2**62


@dataclass(frozen=True, eq=False)
class Condition:
    """A condition on public columns.

    Attributes:
        leaves: columns, and which codes of each are meant.
        classes: for each pattern of their truth, whether rows with it satisfy the condition (0) or not (-1); None
            where all leaves must hold.
    """

    leaves: tuple[tuple[str, Bools], ...]
    classes: Ints | None = None

    @classmethod
    def all_of(cls, masks: Mapping[str, Bools]) -> Condition:
        """A conjunction."""
        return cls(tuple(masks.items()))

    def rows(self, table: CodedTable) -> Rows:
        """The rows that satisfy it."""
        parts = [(self.within(table, start) + start).astype(np.int32) for start in range(0, table.rows, CHUNK)]
        return np.concatenate([np.zeros(0, np.int32), *parts])

    def within(self, table: CodedTable, start: int) -> Ints:
        """Those of the chunk of rows that begins there, counted from its first."""
        columns = [(mask, table.columns[name].codes[start : start + CHUNK]) for name, mask in self.leaves]
        number = min(CHUNK, table.rows - start)
        if self.classes is None:
            meant = np.ones(number, bool)
            for mask, codes in columns:
                meant &= mask[codes]
        else:
            pattern = np.zeros(number, np.int64)
            for bit, (mask, codes) in enumerate(columns):
                pattern |= mask[codes].astype(np.int64) << bit
            meant = self.classes[pattern] >= 0
        return np.flatnonzero(meant)


class CountedRows(Sequence[Rows]):
    """The rows of conditions, looked for when they are needed; counts of them take no list of rows."""

    def __init__(self, table: CodedTable, conditions: Sequence[Condition]) -> None:
        self._table, self._conditions = table, tuple(conditions)

    def __len__(self) -> int:
        return len(self._conditions)

    @overload
    def __getitem__(self, place: int) -> Rows: ...

    @overload
    def __getitem__(self, place: slice) -> CountedRows: ...

    def __getitem__(self, place: int | slice) -> Rows | CountedRows:
        if isinstance(place, slice):
            return CountedRows(self._table, self._conditions[place])
        return self._conditions[place].rows(self._table)

    def __add__(self, other: CountedRows) -> CountedRows:
        return CountedRows(self._table, (*self._conditions, *other._conditions))

    def tally(self, states: Codes, number: int) -> Floats:
        """Rows of every condition by state: [conditions, number of states]."""
        counts = np.zeros((len(self), number))
        sets = self._column_sets
        by_set = [np.zeros((len(one.keys), number)) for one in sets]
        for start in range(0, self._table.rows, CHUNK):
            own = states[start : start + CHUNK]
            for one, counted in zip(sets, by_set, strict=True):
                rows, places = one.matching(self._table, start)
                key = places * number + own[rows]
                counted += np.bincount(key, minlength=counted.size).reshape(counted.shape)
            for place in self._others:
                rows = self._conditions[place].within(self._table, start)
                counts[place] += np.bincount(own[rows], minlength=number)
        for one, counted in zip(sets, by_set, strict=True):
            counts[one.members] = counted[one.place_of_member]
        return counts

    @cached_property
    def _column_sets(self) -> list[_ColumnSet]:
        members: dict[tuple[str, ...], list[int]] = {}
        for place, one in enumerate(self._conditions):
            if place not in self._others:
                members.setdefault(tuple(name for name, _ in one.leaves), []).append(place)
        return [
            _ColumnSet.of(self._table, names, places, [self._conditions[place] for place in places])
            for names, places in members.items()
        ]

    @cached_property
    def _others(self) -> frozenset[int]:
        """Conditions that are not one value of each of some columns."""

        def is_other(one: Condition) -> bool:
            names = [name for name, _ in one.leaves]
            radix = math.prod(len(mask) for _, mask in one.leaves)
            single = all(int(mask.sum()) == 1 for _, mask in one.leaves)
            return one.classes is not None or not single or not names or len(set(names)) < len(names) or radix > RADIX

        return frozenset(place for place, one in enumerate(self._conditions) if is_other(one))


@dataclass(frozen=True, eq=False)
class _ColumnSet:
    """Conditions that ask for one value of each of the same columns.

    Attributes:
        names, sizes: the columns, and how many codes each has.
        keys: the different combinations of codes that are asked for, sorted.
        members, place_of_member: the conditions, and the key of each.
        rarest, meant: the column of the most codes, and which of them are asked for: other rows are not looked at.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    keys: Ints
    members: list[int]
    place_of_member: Ints
    rarest: str
    meant: Bools

    @classmethod
    def of(
        cls, table: CodedTable, names: tuple[str, ...], members: list[int], conditions: Sequence[Condition]
    ) -> _ColumnSet:
        sizes = tuple(table.columns[name].size for name in names)
        codes = [[int(mask.argmax()) for _, mask in one.leaves] for one in conditions]
        keys, places = np.unique(mixed([*np.array(codes).T], sizes), return_inverse=True)
        rarest = names[int(np.argmax(sizes))]
        meant = np.logical_or.reduce([dict(one.leaves)[rarest] for one in conditions])
        return cls(names, sizes, keys, members, places, rarest, meant)

    def matching(self, table: CodedTable, start: int) -> tuple[Ints, Ints]:
        """The rows of a chunk that satisfy a condition, counted from its first, and the place of its key."""
        rows = np.flatnonzero(self.meant[table.columns[self.rarest].codes[start : start + CHUNK]])
        own = mixed([table.columns[name].codes[start : start + CHUNK][rows] for name in self.names], self.sizes)
        places = np.minimum(np.searchsorted(self.keys, own), len(self.keys) - 1)
        there = self.keys[places] == own
        return rows[there], places[there]


def rows_of(table: CodedTable, conditions: Sequence[Condition]) -> Sequence[Rows]:
    """The rows of each condition: held where the table is small."""
    if table.rows > HELD:
        return CountedRows(table, conditions)
    return tuple(condition.rows(table) for condition in conditions)


# -- Pools of questions: what is planned for, and what an experiment asks of the original and of every release alike.
# A question is a condition on public columns and a set of sensitive values. SDR 10.9: A_1 = a_1 and .. and A_d = a_d
# and SA = x, with d in {1, 2, 3} random columns and random values of them. A pool keeps the rows of each condition, so
# that a draw is counted by one ``bincount`` over them.


CONDITIONS = 200
QUESTIONS = 5000
MOST_COLUMNS = 3
SMALL = (1, 10)  # true rows, both ends in (SPLU 6.1)
LARGE = (0.005, 0.05)  # share of all rows, the upper end out (SPLU 6.1)
DISTINCT_KEYS = 2**62
POOLS = ("sdr", "splu", "FILE.sql")


@dataclass(frozen=True, eq=False)
class QuestionPool:
    """Questions about one table, with their true answers.

    Attributes:
        name: for the table of results.
        table: the original.
        rows: for each condition the rows that satisfy it.
        sets: value sets, [sets, m].
        condition, chosen: for each question its condition and its value set.
        masks: for each condition its columns, and which codes of each satisfy it; None where it is not a conjunction of
            columns, so that a release without single public values cannot be asked.
    """

    name: str
    table: CodedTable
    rows: Sequence[Rows]
    sets: Bools
    condition: Ints
    chosen: Ints
    masks: tuple[Mapping[str, Bools] | None, ...] = ()

    def __len__(self) -> int:
        return len(self.condition)

    @cached_property
    def _entries(self) -> tuple[Rows, Ints]:
        sizes = [len(rows) for rows in self.rows]
        return np.concatenate([np.zeros(0, np.int32), *self.rows]), np.repeat(np.arange(len(sizes)), sizes)

    def tally(self, states: npt.NDArray[Any], number: int) -> Floats:
        """Rows of every condition by state: [conditions, number of states]."""
        if isinstance(self.rows, CountedRows):
            return self.rows.tally(states, number)
        rows, condition = self._entries
        key = condition * number + states[rows]
        return np.bincount(key, minlength=len(self.rows) * number).reshape(len(self.rows), number).astype(np.float64)

    @cached_property
    def by_value(self) -> Floats:
        """The true rows of every condition by sensitive value."""
        return self.tally(self.table.codes, self.table.m)

    @cached_property
    def profile(self) -> QuestionProfile:
        """The questions as counts, for planning."""
        return QuestionProfile(self.table.domain, self.by_value, self.sets, self.condition, self.chosen)

    def pick(self, answers: Floats) -> Floats:
        """From answers [conditions, sets] those that are asked for."""
        return self.profile.pick(answers)

    @property
    def truth(self) -> Floats:
        """The true answer of every question."""
        return self.profile.truth

    @property
    def true_answers(self) -> Floats:
        """The true count of every value set under every condition, [conditions, sets]."""
        answers: Floats = self.by_value @ self.sets.T
        return answers

    def sizes(self, selectivities: Sequence[float]) -> tuple[int, ...]:
        """How many questions have an answer above 0 and of at least each share of all rows."""
        return tuple(int(((self.truth > 0) & (self.truth >= a * self.table.rows)).sum()) for a in selectivities)

    @cached_property
    def condition_rows(self) -> Floats:
        """N_R, the rows of every condition."""
        return self.by_value.sum(1)


def pools_named(table: CodedTable, name: str, seed: int = 1) -> list[QuestionPool]:
    """The pools that a user names: ``sdr``, ``splu`` (two of them), or a file of questions."""
    if name == "sdr":
        return [sdr_pool(table, seed=seed)]
    if name == "splu":
        return [small_pool(table, seed=seed), large_pool(table, seed=seed)]
    path = Path(name)
    if not path.is_file():
        raise OptionError(
            f"pool = {name!r} is neither a known pool nor a file.{did_you_mean(name, POOLS[:2])} "
            f"Fix: one of {', '.join(POOLS)}."
        )
    try:
        text = small_text(path)
    except (OSError, UnicodeDecodeError):
        raise OptionError(f"pool = {name!r} cannot be read as text. Fix: a file of SQL, in UTF-8.") from None
    return [sql_pool(table, text, name=path.name)]


def sdr_pool(table: CodedTable, *, conditions: int = CONDITIONS, seed: int = 1) -> QuestionPool:
    """Random conditions, each with every sensitive value (SDR 10.9)."""
    _require(table, conditions)
    rng = np.random.default_rng(seed)
    names = _usable(table)
    masks = []
    for _ in range(conditions):
        d = min(int(rng.integers(1, MOST_COLUMNS + 1)), len(names))
        columns = rng.choice(len(names), size=d, replace=False)
        equalities = dict[str, Bools]()
        for place in columns:
            column = table.columns[names[place]]
            value = rng.integers(len(column.values))
            equalities[names[place]] = np.arange(column.size) == value
        masks.append(equalities)
    condition, chosen = np.divmod(np.arange(conditions * table.m), table.m)
    rows = rows_of(table, [Condition.all_of(one) for one in masks])
    return QuestionPool("sdr", table, rows, np.eye(table.m, dtype=bool), condition, chosen, tuple(masks))


def small_pool(table: CodedTable, *, questions: int = QUESTIONS, seed: int = 1) -> QuestionPool:
    """Random questions of the same form with 1 to 10 true rows (SPLU 6.1)."""
    return sized_pool("splu-small", table, SMALL[0], SMALL[1], questions=questions, seed=seed)


def large_pool(table: CodedTable, *, questions: int = QUESTIONS, seed: int = 1) -> QuestionPool:
    """Random questions of the same form about 0.5 % to 5 % of all rows (SPLU 6.1)."""
    low, high = (share * table.rows for share in LARGE)
    return sized_pool("splu-large", table, math.ceil(low), math.ceil(high) - 1, questions=questions, seed=seed)


def sized_pool(
    name: str, table: CodedTable, low: int, high: int, *, questions: int = QUESTIONS, seed: int = 1
) -> QuestionPool:
    """Questions whose true answer lies in [low, high], distributed as if others had been thrown away.

    Instead of drawing until enough fit, all that fit are counted: a set of d columns with values of sizes s_1..s_d is
    drawn with probability 1/3 / C(k, d), each of its questions with 1 / (s_1 .. s_d m).
    """
    _require(table, questions)
    fitting, weights = _fitting(table, low, high)
    total = sum(weights)
    if total == 0:
        raise QuestionError(f"No question about this table has between {low:,} and {high:,} rows as its answer.")
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(fitting), size=questions, p=np.array(weights) / total)
    conditions: dict[tuple[tuple[str, ...], int], int] = {}
    condition, chosen = np.empty(questions, np.int64), np.empty(questions, np.int64)
    for question, place in enumerate(drawn):
        names, keys = fitting[place]
        key = int(keys[rng.integers(len(keys))])
        chosen[question] = key % table.m
        condition[question] = conditions.setdefault((names, key // table.m), len(conditions))
    masks = tuple(_masks_of(table, columns, key) for columns, key in conditions)
    rows = (
        _sorted_rows(table, list(conditions)) if table.rows <= HELD else rows_of(table, [*map(Condition.all_of, masks)])
    )
    return QuestionPool(name, table, rows, np.eye(table.m, dtype=bool), condition, chosen, masks)


def _fitting(table: CodedTable, low: int, high: int) -> tuple[list[tuple[tuple[str, ...], Ints]], list[float]]:
    """For each set of columns the questions that fit, as mixed-radix keys (value last), and their total probability."""
    usable = _usable(table)
    fitting, weights = [], []
    for d in range(1, min(MOST_COLUMNS, len(usable)) + 1):
        for names in combinations(usable, d):
            sizes = [table.columns[name].size for name in names]
            if math.prod(sizes) * table.m > DISTINCT_KEYS:
                continue
            there = _not_missing(table, names)
            digits = [table.columns[name].codes[there] for name in names]
            keys, counts = np.unique(mixed([*digits, table.codes[there]], [*sizes, table.m]), return_counts=True)
            fit = keys[(counts >= low) & (counts <= high)]
            if len(fit):
                values = math.prod(size - 1 for size in sizes)
                fitting.append((names, fit))
                weights.append(len(fit) / (math.comb(len(usable), d) * values * table.m))
    return fitting, weights


def _sorted_rows(table: CodedTable, conditions: Sequence[tuple[tuple[str, ...], int]]) -> tuple[Rows, ...]:
    """The rows of conditions that are given as columns and a mixed-radix key; one sort per set of columns."""
    rows: list[Rows] = [np.zeros(0, np.int32)] * len(conditions)
    by_columns: dict[tuple[str, ...], list[int]] = {}
    for place, (names, _) in enumerate(conditions):
        by_columns.setdefault(names, []).append(place)
    for names, places in by_columns.items():
        columns = [table.columns[name] for name in names]
        keys = mixed([column.codes for column in columns], [column.size for column in columns])
        order = np.argsort(keys, kind="stable").astype(np.int32)
        wanted = np.array([conditions[place][1] for place in places])
        first, last = (np.searchsorted(keys[order], wanted, side=side) for side in ("left", "right"))
        for place, start, stop in zip(places, first, last, strict=True):
            rows[place] = np.sort(order[start:stop])
    return tuple(rows)


def _masks_of(table: CodedTable, names: Sequence[str], key: int) -> dict[str, Bools]:
    """The columns of a condition that is given as a mixed-radix key."""
    masks = {}
    for name in reversed(names):
        key, value = divmod(key, table.columns[name].size)
        masks[name] = np.arange(table.columns[name].size) == value
    return masks


def sql_pool(table: CodedTable, text: str, *, name: str = "sql") -> QuestionPool:
    """The user's own questions, one ``SELECT COUNT(*) FROM release WHERE ..`` in each line.

    Empty lines and lines that begin with ``--`` are skipped. The text is read like any question to a release, so the
    original and the release are asked exactly the same thing.
    """
    conditions, sets, masks = [], [], []
    for number, line in enumerate(text.splitlines(), start=1):
        question = line.strip().rstrip(";")
        if not question or question.startswith("--"):
            continue
        try:
            condition, values, conjunction = _resolved(table, question)
        except QuestionError as problem:
            raise QuestionError(f"Line {number}: {problem}") from None
        conditions.append(condition)
        sets.append(values)
        masks.append(conjunction)
    if not conditions:
        raise QuestionError(
            "The file asks nothing. Fix: one question in each line, for example "
            f"SELECT COUNT(*) FROM release WHERE {table.sensitive} = '...'"
        )
    distinct, inverse = np.unique(np.array(sets), axis=0, return_inverse=True)
    rows, number = rows_of(table, conditions), len(conditions)
    return QuestionPool(name, table, rows, distinct, np.arange(number), inverse.reshape(-1), tuple(masks))


def _resolved(table: CodedTable, question: str) -> tuple[Condition, Bools, dict[str, Bools] | None]:
    known = pa.array([value for value in table.domain if value is not None])
    scope = Scope(table, cast(Counter, table), lambda column: known)
    query = parse(question, scope)
    if scope.notes:  # a value that does not occur is a mistake in a file of questions
        raise QuestionError(scope.notes[0])
    if not query.is_count or scope.derived:
        raise QuestionError("A pool holds plain counts: SELECT COUNT(*) FROM release WHERE ..")
    condition = Resolver(table, cast(Counter, table)).resolve(query.where)
    if len(condition.sets) != 1:
        raise QuestionError(
            f"Join the condition on {table.sensitive!r} to those on public columns with AND; anything else is more "
            "than one count. Fix: ask in parts."
        )
    return Condition(condition.leaves, condition.classes), condition.sets[0], _conjunction(condition)


def _conjunction(condition: Resolved) -> dict[str, Bools] | None:
    """Which codes of each column are asked for, where all leaves must hold; None for any other formula."""
    if np.flatnonzero(condition.classes >= 0).tolist() != [len(condition.classes) - 1]:
        return None
    masks: dict[str, Bools] = {}
    for column, mask in condition.leaves:
        masks[column] = masks.get(column, np.ones(len(mask), bool)) & mask
    return masks


def _not_missing(table: CodedTable, names: Sequence[str]) -> Bools | slice:
    there = np.ones(table.rows, bool)
    for name in names:
        column = table.columns[name]
        there &= column.codes < len(column.values)
    return slice(None) if there.all() else there


def _usable(table: CodedTable) -> list[str]:
    return [name for name, column in table.columns.items() if len(column.values)]


def _require(table: CodedTable, number: int) -> None:
    if number < 1:
        raise OptionError(f"A pool of {number} is not allowed: ask at least 1.")
    if not _usable(table):
        raise OptionError("The table has no public column with values: there is nothing to put into a condition.")
