"""Learned releases, as they are published: how public columns are read as levels, noisy tables of levels by value, what
they cost, and the model that was learned from them (mathematics 14).

    Pr[s | q] = e^(o_s + sum_t theta_t[g_t(q), s]) / Z_q        q: the levels of a row's public columns

Tables t that were measured have counts and a cost; others, bands of near levels, only have parameters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from deniable.core import values
from deniable.core.errors import ManifestError
from deniable.core.values import Floats, Ints, is_fraction

ROUNDED = 2.0**-16  # parameters are published as multiples of it
BASE = -1  # the number of the table that the logarithms of shares, o, stand under in a release's file
MOST_LEVELS = 2**16  # of a column, or of a table
NUMBERS = ("table", "level", "value", "count", "theta")  # the columns of that file


@dataclass(frozen=True)
class Spent:
    """One line of the ledger of a release: what was looked at, and the exact epsilon and delta that it cost.

    Attributes:
        what: ``edges`` (of the bins of a column of numbers), ``largest`` (the share of the most frequent value),
            ``list`` (the histogram that decides which values are listed), ``table``, or ``choice``.
        name: the column, the table, or the tables that stood for choice.
        epsilon: the cost of all of it, not of one entry.
        delta: the probability that the list tells of one person, 0 but for ``list``.
    """

    what: Literal["edges", "largest", "list", "table", "choice"]
    name: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)


@dataclass(frozen=True)
class Coding:
    """How a public column is read as levels: numbers and dates by edges, other values by name.

    Attributes:
        column: its name.
        type: the name of its Arrow type.
        ordered: whether ``marks`` are edges; the level is then how many of them are at or below the value.
        marks: edges, or the values that have a level of their own; all other values share the next one.
        missing: whether missing values have the last level; otherwise no row of the table is missing there.
    """

    column: str
    type: str
    ordered: bool
    marks: tuple[Hashable, ...]
    missing: bool

    @property
    def size(self) -> int:
        """How many levels there are; the shared one may be empty."""
        return len(self.marks) + 1 + int(self.missing)


@dataclass(frozen=True, eq=False)
class LearnedTable:
    """A table of levels by value, or levels that only have parameters.

    Attributes:
        columns: which codings it is of.
        places: the level at each combination of their levels, the first column running slowest; -1: none occurs.
        epsilon: what its counts cost; None where none were measured.
        counts: the noisy counts [levels, values].
        theta: parameters [levels, values], in multiples of 2^-16.
    """

    columns: tuple[int, ...]
    places: Ints
    epsilon: Fraction | None
    counts: Ints | None = None
    theta: Ints | None = None

    @property
    def size(self) -> int:
        """How many levels it has."""
        return int(self.places.max(initial=-1)) + 1

    def levels(self, codes: Ints, sizes: Sequence[int]) -> Ints:
        """The level of each combination of codes [combinations, columns]."""
        place = np.zeros(len(codes), dtype=np.int64)
        for column in self.columns:
            place = place * sizes[column] + codes[:, column]
        level: Ints = self.places[place]
        return level


@dataclass(frozen=True, eq=False)
class Learned:
    """What a release says of a column that was learned.

    Attributes:
        codings: of the public columns that the model sees.
        tables: measured ones first.
        spent: everything that was looked at, and what it cost.
        base: o_s, in multiples of 2^-16.
        tau: the standard deviation that each table's parameters were given beforehand.
        other: whether a value of the domain, ``(other)`` or a missing one, stands for all that are not listed.
    """

    codings: tuple[Coding, ...]
    tables: tuple[LearnedTable, ...]
    spent: tuple[Spent, ...]
    tau: tuple[float, ...]
    base: Ints | None = None
    other: bool = False

    @property
    def epsilon(self) -> Fraction:
        """What all of it costs where one value changes."""
        return sum((line.epsilon for line in self.spent), start=Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The probability that the list of values tells of one person."""
        return sum((line.delta for line in self.spent), start=Fraction(0))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many levels each column has."""
        return tuple(coding.size for coding in self.codings)

    @property
    def measured(self) -> tuple[LearnedTable, ...]:
        """The tables with counts."""
        return tuple(table for table in self.tables if table.epsilon is not None)

    def to_dict(self) -> dict[str, Any]:
        """As the manifest has it; counts and parameters are in a file of their own."""
        return {
            "codings": [
                {
                    "column": coding.column,
                    "type": coding.type,
                    "ordered": coding.ordered,
                    "marks": [values.to_json(mark) for mark in coding.marks],
                    "missing": coding.missing,
                }
                for coding in self.codings
            ],
            "tables": [
                {
                    "columns": list(table.columns),
                    "places": table.places.tolist(),
                    "epsilon": None if table.epsilon is None else str(table.epsilon),
                }
                for table in self.tables
            ],
            "spent": [
                {"what": line.what, "name": line.name, "epsilon": str(line.epsilon), "delta": str(line.delta)}
                for line in self.spent
            ],
            "tau": list(self.tau),
            "other": self.other,
        }

    def numbers(self) -> dict[str, Ints]:
        """Counts and parameters as columns of a table: a row for every level and value, in their order."""
        assert self.base is not None
        m = len(self.base)
        columns: dict[str, list[Ints]] = {name: [] for name in NUMBERS}
        for number, table in [(BASE, None), *enumerate(self.tables)]:
            size = 1 if table is None else table.size
            theta = self.base if table is None else table.theta
            counts = None if table is None else table.counts
            assert theta is not None
            columns["table"].append(np.full(size * m, number))
            columns["level"].append(np.repeat(np.arange(size), m))
            columns["value"].append(np.tile(np.arange(m), size))
            columns["count"].append(np.zeros(size * m, np.int64) if counts is None else counts.ravel())
            columns["theta"].append(theta.ravel())
        return {name: np.concatenate(pieces).astype(np.int64) for name, pieces in columns.items()}

    def with_numbers(self, columns: Mapping[str, Ints], m: int) -> Learned:
        """The same with the counts and parameters that ``numbers`` wrote."""
        wanted = [1, *(table.size for table in self.tables)]
        if any(len(column) != sum(wanted) * m for column in columns.values()):
            raise ManifestError("The noisy tables of the release have other levels or values than its manifest says.")
        expected = replace(
            self,
            base=np.zeros(m, np.int64),
            tables=tuple(replace(table, theta=np.zeros((table.size, m), np.int64)) for table in self.tables),
        ).numbers()
        if any((expected[name] != columns[name]).any() for name in ("table", "level", "value")):
            raise ManifestError("The noisy tables of the release are not in the order that its manifest says.")
        ends = np.cumsum(wanted) * m
        tables = []
        for table, start, end in zip(self.tables, ends, ends[1:], strict=False):
            counts = columns["count"][start:end].reshape(-1, m) if table.epsilon is not None else None
            tables.append(replace(table, counts=counts, theta=columns["theta"][start:end].reshape(-1, m)))
        return replace(self, base=columns["theta"][:m], tables=tuple(tables))


def learned_of(raw: Mapping[str, Any]) -> Learned:
    """What the manifest says, without counts and parameters."""
    return Learned(
        codings=tuple(
            Coding(
                one["column"],
                one["type"],
                one["ordered"],
                tuple(values.from_json(mark, one["type"]) for mark in one["marks"]),
                one["missing"],
            )
            for one in raw["codings"]
        ),
        tables=tuple(
            LearnedTable(
                tuple(one["columns"]),
                np.array(one["places"], dtype=np.int64),
                None if one["epsilon"] is None else Fraction(one["epsilon"]),
            )
            for one in raw["tables"]
        ),
        spent=tuple(
            Spent(one["what"], one["name"], Fraction(one["epsilon"]), Fraction(one["delta"])) for one in raw["spent"]
        ),
        tau=tuple(raw["tau"]),
        other=raw["other"],
    )


def learned_problems(raw: Mapping[str, Any], public: Sequence[str]) -> Iterator[str]:
    """What is wrong with a learned part of a manifest, the first thing first."""
    sizes = [len(one["marks"]) + 1 + int(one["missing"]) for one in raw["codings"]]
    names = [one["column"] for one in raw["codings"]]
    if len(set(names)) != len(names) or not set(names) <= set(public):
        yield "the model sees a column twice, or one that is not published"
    if any(size > MOST_LEVELS for size in sizes):
        yield f"a column has more than {MOST_LEVELS:,} levels"
    if len(raw["tau"]) != len(raw["tables"]):
        yield "not every table of the model has its tau"
    for table in raw["tables"]:
        columns, places = table["columns"], table["places"]
        if len(set(columns)) != len(columns) or any(not 0 <= column < len(sizes) for column in columns):
            yield "a table of the model is of columns that it does not see"
            return
        if len(places) != math.prod(sizes[column] for column in columns) or len(places) > MOST_LEVELS:
            yield "a table of the model does not say the level of each combination"
            return
        occurring = {place for place in places if place >= 0}
        if occurring != set(range(len(occurring))):
            yield "the levels of a table of the model are not numbered without gaps"
    for line in raw["spent"]:
        if not (is_fraction(line["epsilon"]) and Fraction(line["epsilon"]) > 0):
            yield "a line of the ledger costs nothing that can be read"
        if not (is_fraction(line["delta"]) and 0 <= Fraction(line["delta"]) < 1):
            yield "a line of the ledger has a delta that is no probability"


@dataclass(frozen=True, eq=False)
class Dealt:
    """How rows get their values: the public combinations, and how many rows of each get which value.

    Attributes:
        keys: of the combinations, in rising order (``learned.levels.keys_of``).
        starts, places, counts: combination i deals counts[k] rows of value places[k], starts[i] <= k < starts[i+1].
    """

    keys: Any
    starts: Ints
    places: Ints
    counts: Ints = field(repr=False)

    @property
    def rows(self) -> Ints:
        """Of each combination."""
        ends: Floats = np.concatenate([[0], np.cumsum(self.counts)])
        return np.diff(ends[self.starts]).astype(np.int64)
