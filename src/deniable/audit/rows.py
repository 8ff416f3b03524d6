"""What the rows reveal beside their values: their order, rows that are alone in their public columns, repeated ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from deniable.audit.posteriors import Belief

Codes = npt.NDArray[np.integer]
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
    repeated_posterior: float
    foreign: int = 0


def row_report(rows: Rows, beliefs: Sequence[Belief]) -> RowReport:
    """Look at the rows. The table's own values are used: this is for the owner's eyes."""
    sizes = np.bincount(rows.public)[rows.public] if len(rows.public) else np.zeros(0, np.int64)
    largest, among, posterior = _repeated(rows, beliefs)
    return RowReport(
        rows=len(rows.public),
        unique=int((sizes == 1).sum()),
        rare=int((sizes < FEW).sum()),
        ordered=tuple(name for name, codes in rows.columns.items() if depends_on_order(codes)),
        same_order=_same_order(rows),
        repeated=largest,
        repeated_rows=among,
        repeated_posterior=posterior,
        foreign=_foreign(rows),
    )


def depends_on_order(codes: Codes) -> bool:
    """Whether ten consecutive blocks of rows differ in their values more than chance allows (chi-squared, 1e-6)."""
    _, coded = np.unique(codes, return_inverse=True)
    frequency = np.bincount(coded)
    rank = np.empty(len(frequency), dtype=np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(len(frequency))
    # Values too rare for ten per block are one class: the approximation needs counts.
    pooled = np.where((frequency[coded] >= 10 * BLOCKS) & (rank[coded] < MOST_VALUES), rank[coded] + 1, 0)
    _, pooled = np.unique(pooled, return_inverse=True)
    classes = int(pooled.max(initial=0)) + 1
    if classes < 2:
        return False
    block = np.arange(len(codes)) * BLOCKS // len(codes)
    table = np.bincount(block * classes + pooled, minlength=BLOCKS * classes).reshape(BLOCKS, classes)
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / len(codes)
    enough = expected.min(0) >= 5
    if enough.sum() < 2:
        return False
    statistic = float((((table - expected) ** 2 / expected)[:, enough]).sum())
    degrees = (BLOCKS - 1) * (int(enough.sum()) - 1 + int(not enough.all()))
    return bool(chdtrc(degrees, statistic) < CHANCE)


def _foreign(rows: Rows) -> int:
    """No mechanism adds rows, so a table that has a combination less often than its release is another table."""
    if not len(rows.original_public):
        return 0
    count = int(max(rows.public.max(initial=0), rows.original_public.max())) + 1
    more = np.bincount(rows.public, minlength=count) - np.bincount(rows.original_public, minlength=count)
    return int(np.maximum(more, 0).sum())


def _same_order(rows: Rows) -> bool:
    """Whether row i of the release has the public values of row i of the table, for all i, and that says something."""
    if len(rows.public) != len(rows.original_public) or len(rows.public) < 2 or len(np.unique(rows.public)) < 2:
        return False
    return bool(np.array_equal(rows.public, rows.original_public))


def _repeated(rows: Rows, beliefs: Sequence[Belief]) -> tuple[int, int, float]:
    """Combinations whose rows all have one value: k draws of it, if they are one person; odds grow by L^k."""
    if not len(rows.original):
        return 0, 0, 0.0
    groups = int(rows.original_public.max()) + 1
    sizes = np.bincount(rows.original_public, minlength=groups)
    low = np.full(groups, np.iinfo(np.int64).max)
    high = np.full(groups, -1)
    np.minimum.at(low, rows.original_public, rows.original)
    np.maximum.at(high, rows.original_public, rows.original)
    agree = (low == high) & (sizes >= 2)
    by_position = {belief.position: belief for belief in beliefs}
    worst = 0.0
    for value in np.unique(low[agree]).tolist():
        if value in by_position:
            draws = int(sizes[agree & (low == value)].max())
            worst = max(worst, _after(by_position[value], draws))
    return int(sizes[agree].max(initial=0)), int(sizes[agree].sum()), worst


def _after(belief: Belief, draws: int) -> float:
    """The posterior after that many independent rows that all show the most telling view."""
    if belief.highest == 1 or belief.prior == 1:
        return 1.0
    ratio = belief.highest / (1 - belief.highest) / (belief.prior / (1 - belief.prior))
    odds = math.log(belief.prior / (1 - belief.prior)) + draws * math.log(max(ratio, Fraction(1, 10**9)))
    return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0
