"""What the rows reveal beside their values: their order, rows that are alone in their public columns, repeated ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc

from deniable.audit.repeats import Views, surest_after
from deniable.core.arrays import Codes, Counts

BLOCKS = 10
CHANCE = 1e-6  # how often a shuffled column may be called ordered
MOST_VALUES = 40
FEW = 5


@dataclass(frozen=True)
class Rows:
    """The rows of a release and of the table it was made from, as numbers.

    Attributes:
        columns: the published columns by name (public, sensitive, cell), coded, in the published order.
        public: for each published row, which combination of public values it has.
        original: for each row of the table, the position of its sensitive value; m where it is exempt.
        original_public: for each row of the table its combination, numbered as in ``public``. Both are empty where
            the release shows public values less exactly than the table does.
    """

    columns: Mapping[str, Codes]
    public: Codes
    original: Codes
    original_public: Codes


@dataclass(frozen=True)
class RowReport:
    """What the rows reveal.

    Attributes:
        rows: how many are published.
        unique: rows that are alone in their public columns.
        rare: rows that share them with fewer than 5 rows, themselves included.
        ordered: published columns whose values depend on where in the release a row stands.
        same_order: whether the published rows stand in the order of the table.
        repeated: the most rows with one and the same public combination and the same sensitive value throughout.
        repeated_rows: rows in such combinations of two rows or more.
        repeated_posterior: what an attacker who knows that one such combination is one person can become sure of.
        foreign: published rows with a public combination that the table has less often, or not at all.
    """

    rows: int
    unique: int
    rare: int
    ordered: tuple[str, ...]
    same_order: bool
    repeated: int
    repeated_rows: int
    repeated_posterior: float = 0.0
    foreign: int = 0


@dataclass(frozen=True, eq=False)
class Combinations:
    """Some combinations of public values: how many rows of release and table have each, and its least and greatest
    sensitive value in the table."""

    published: Codes
    people: Codes
    low: Codes
    high: Codes


@dataclass(frozen=True)
class RowCounts:
    """What a report on rows is made of.

    Attributes:
        report: all of it but ``repeated_posterior``.
        draws: for each sensitive value, the most rows of one combination that all hold it.
    """

    report: RowReport
    draws: Mapping[int, int]


def counted(
    combinations: Iterable[Combinations], ordered: Sequence[str], *, in_order: bool, with_table: bool
) -> RowCounts:
    """Counts of rows from all combinations, which may come in pieces.

    Args:
        combinations: every combination, in one piece.
        ordered: columns whose values depend on where a row stands.
        in_order: whether row i of the release has the public values of row i of the table, for all i.
        with_table: whether the table's rows were counted.
    """
    rows = unique = rare = foreign = different = repeated = repeated_rows = 0
    draws: dict[int, int] = {}
    for one in combinations:
        sizes = np.asarray(one.published, np.int64)
        rows, different = rows + int(sizes.sum()), different + int((sizes > 0).sum())
        unique, rare = unique + int((sizes == 1).sum()), rare + int(sizes[sizes < FEW].sum())
        people = np.asarray(one.people, np.int64)
        foreign += int(np.maximum(sizes - people, 0).sum()) if with_table else 0
        agree = (one.low == one.high) & (people >= 2)
        repeated, repeated_rows = (
            max(repeated, int(people[agree].max(initial=0))),
            repeated_rows + int(people[agree].sum()),
        )
        for value in np.unique(one.low[agree]).tolist():
            draws[value] = max(draws.get(value, 0), int(people[agree & (one.low == value)].max()))
    same_order = in_order and different >= 2
    report = RowReport(
        rows, unique, rare, tuple(ordered), same_order, repeated, repeated_rows=repeated_rows, foreign=foreign
    )
    return RowCounts(report, draws)


def counts_of(rows: Rows) -> RowCounts:
    """The counts of rows that are all in memory."""
    groups = int(max(rows.public.max(initial=-1), rows.original_public.max(initial=-1))) + 1
    low, high = np.full(groups, np.iinfo(np.int64).max), np.full(groups, -1)
    np.minimum.at(low, rows.original_public, rows.original)
    np.maximum.at(high, rows.original_public, rows.original)
    published, people = (np.bincount(of, minlength=groups) for of in (rows.public, rows.original_public))
    return counted(
        [Combinations(published, people, low, high)],
        [name for name, codes in rows.columns.items() if depends_on_order(codes)],
        in_order=bool(np.array_equal(rows.public, rows.original_public)),
        with_table=bool(len(rows.original_public)),
    )


def row_report(rows: RowCounts, views: Views) -> RowReport:
    """What the rows reveal. The table's own values are used: this is for the owner's eyes."""
    # Combinations whose rows all have one value: as many draws of it, if they are one person.
    return replace(rows.report, repeated_posterior=surest_after(views, rows.draws))


def depends_on_order(codes: Codes) -> bool:
    """Whether ten consecutive blocks of rows differ in their values more than chance allows (chi-squared, 1e-6)."""
    _, coded = np.unique(codes, return_inverse=True)
    classes = order_classes(np.bincount(coded))
    return is_ordered(blocks_of(classes[coded], 0, len(codes), int(classes.max(initial=0)) + 1))


def order_classes(rows: Counts) -> Codes:
    """Values in classes, by the rows of each: values too rare for ten in a block are one, for counts are needed."""
    rank = np.empty(len(rows), dtype=np.int64)
    rank[np.argsort(-rows, kind="stable")] = np.arange(len(rows))
    pooled = np.where((rows >= 10 * BLOCKS) & (rank < MOST_VALUES), rank + 1, 0)
    used = np.zeros(MOST_VALUES + 1, dtype=bool)
    used[pooled[rows > 0]] = True
    return (np.cumsum(used) - 1).clip(0).astype(np.int8)[pooled]


def blocks_of(classes: Codes, start: int, rows: int, number: int) -> Counts:
    """Of consecutive rows, from ``start`` of so many, how many of each block are in each class, [blocks, classes]."""
    block = (start + np.arange(len(classes))) * BLOCKS // max(rows, 1)
    return np.bincount(block * number + classes, minlength=BLOCKS * number).reshape(BLOCKS, number)


def is_ordered(table: Counts) -> bool:
    """Whether the blocks of ``blocks_of`` differ by more than chance."""
    if table.shape[1] < 2:
        return False
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    enough = expected.min(0) >= 5
    if enough.sum() < 2:
        return False
    statistic = float((((table - expected) ** 2 / expected)[:, enough]).sum())
    degrees = (BLOCKS - 1) * (int(enough.sum()) - 1 + int(not enough.all()))
    return bool(chdtrc(degrees, statistic) < CHANCE)
