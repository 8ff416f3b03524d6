"""What the owner of a table should know before it is published."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import option, worded
from deniable.engines.base import Dataset
from deniable.engines.batch.values import plain_type
from deniable.engines.local.identifying import what_people

SAMPLE_ROWS = 100_000
FEWEST_ROWS = 50
DISTINCT_SHARE = 0.9
ALARM = 6.0


def identifier_warnings(source: Dataset, columns: Sequence[str], sample_rows: int = SAMPLE_ROWS) -> list[str]:
    """Public columns that name people: nearly every row has a value of its own, or they look or are called like it.

    Floats and times are no identifiers for being different: measurements differ from row to row without naming anybody.
    """
    sample, taken = [], 0
    for batch in source.batches(list(columns)) if columns else ():
        sample.append(batch.slice(0, sample_rows - taken))
        taken += sample[-1].num_rows
        if taken >= sample_rows:
            break
    if not taken:
        return []
    part = "" if source.rows == taken else f" of the first {taken:,} rows"
    table = pa.Table.from_batches(sample)
    warnings = []
    for name in columns:
        column = table.column(name)
        column = column.cast(plain_type(column.type))
        looks = _all_different(column, part) or what_people(name, column)
        if looks is not None:
            day = "" if "birth" not in looks else ", or recode it by year"
            warnings.append(
                f"The column {name!r} looks like {looks}. It is published as it is and may name people. Fix: "
                f"{option('drop', name)}{day}, unless that is intended."
            )
    return warnings


def _all_different(column: pa.ChunkedArray, part: str) -> str | None:
    """What is said of a column in which nearly every row has a value of its own."""
    values = len(column) - column.null_count
    if values < FEWEST_ROWS or not _may_identify(column.type):
        return None
    distinct = pc.count_distinct(column, mode="only_valid").as_py()
    share = math.floor(100 * distinct / values)
    different = f"an identifier: {share} % of its values{part} are different"
    return different if distinct >= DISTINCT_SHARE * values else None


class OrderWatch:
    """Whether the order of the rows predicts the sensitive value; fed with the codes, batch by batch.

    With counts c_i of n rows in random order, the number of neighbours with equal values has the mean
    sum c_i (c_i - 1) / n and the variance of the number of runs of several kinds,
    (A (A + n (n + 1)) - 2 n B - n^3) / (n^2 (n - 1)), A = sum c_i^2, B = sum c_i^3.
    Steps up minus steps down have the mean 0 and at most the variance (n + 1) / 3 (reached without ties).
    """

    def __init__(self, m: int) -> None:
        self._counts = np.zeros(m + 1, dtype=np.int64)  # one more for exempt rows
        self._equal = self._up = self._down = 0
        self._first: int | None = None
        self._last: int | None = None

    def update(self, codes: np.ndarray) -> None:
        """Take in the next rows."""
        if not len(codes):
            return
        self._counts += np.bincount(codes, minlength=len(self._counts))
        if self._last is None:
            self._first = int(codes[0])
        else:
            self._step(np.array([self._last]), codes[:1])
        self._step(codes[:-1], codes[1:])
        self._last = int(codes[-1])

    def merge(self, later: OrderWatch) -> None:
        """Take in the rows that another watch has seen, which follow these."""
        if later._first is None:
            return
        if self._last is None:
            self._first = later._first
        else:
            self._step(np.array([self._last]), np.array([later._first]))
        self._counts += later._counts
        self._equal, self._up, self._down = self._equal + later._equal, self._up + later._up, self._down + later._down
        self._last = later._last

    def _step(self, before: np.ndarray, after: np.ndarray) -> None:
        up, down = int(np.count_nonzero(before < after)), int(np.count_nonzero(before > after))
        self._up += up
        self._down += down
        self._equal += len(before) - up - down

    @property
    def z_equal(self) -> float:
        """How many standard deviations more neighbours are equal than in random order."""
        n = int(self._counts.sum())
        if n < 2:
            return 0.0
        counts = [int(count) for count in self._counts[self._counts > 0]]  # Python integers: n^3 overflows
        squares, cubes = sum(c**2 for c in counts), sum(c**3 for c in counts)
        variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n**2 * (n - 1))
        return (self._equal - (squares - n) / n) / math.sqrt(variance) if variance > 0 else 0.0

    @property
    def z_steps(self) -> float:
        """How many standard deviations more steps lead up than down."""
        n = int(self._counts.sum())
        return (self._up - self._down) / math.sqrt((n + 1) / 3)

    def warnings(self, column: str) -> list[str]:
        """At most one warning; a random order raises it with a probability far below one in a million."""
        pairs = self._equal + self._up + self._down
        if pairs and min(self._up, self._down) == 0 and (self.z_equal > ALARM or abs(self.z_steps) > ALARM):
            what = "the rows are sorted by it"
        elif self.z_equal > ALARM:
            what = "neighbouring rows have the same value more often than by chance"
        elif self.z_equal < -ALARM:
            what = "neighbouring rows have the same value less often than by chance"
        elif abs(self.z_steps) > ALARM:
            what = f"its values mostly {'rise' if self.z_steps > 0 else 'fall'} from row to row"
        else:
            return []
        return [
            f"The order of the rows predicts {column!r}: {what}. Whoever sees the order learns more than the guarantee "
            f"allows. Fix: {worded('shuffle the rows (shuffle=True, the default)', 'leave out --no-shuffle')}."
        ]


def _may_identify(dtype: pa.DataType) -> bool:
    t = pa.types
    kinds = (t.is_integer, t.is_string, t.is_large_string, t.is_decimal, t.is_binary, t.is_fixed_size_binary)
    return any(test(dtype) for test in (*kinds, t.is_large_binary))
