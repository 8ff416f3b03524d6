"""A source without some of its rows: rows that are not to be published are never counted, dealt or perturbed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.engines.local.sources import BATCH_ROWS, DerivedSource, Source

Integers = npt.NDArray[np.int64]


class _Words(Protocol):
    def words(self, start: int, count: int) -> npt.NDArray[np.uint64]: ...


class WithoutRows(DerivedSource):
    """Another source, without the rows that have these numbers."""

    def __init__(self, source: Source, rows: Integers) -> None:
        super().__init__(source)
        self._gone = np.sort(rows)

    @property
    def rows(self) -> int | None:
        return None if self._source.rows is None else self._source.rows - len(self._gone)

    def batches(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The remaining rows, in row order."""
        start = 0
        for batch in self._source.batches(columns, batch_rows):
            low, high = np.searchsorted(self._gone, [start, start + batch.num_rows])
            if high > low:
                kept = np.ones(batch.num_rows, dtype=bool)
                kept[self._gone[low:high] - start] = False
                yield batch.filter(pa.array(kept))
            else:
                yield batch
            start += batch.num_rows


def drawn_rows(keystream: _Words, rows: int, count: int) -> Integers:
    """``count`` different numbers below ``rows``, every choice equally likely but for a share of rows / 2^64."""
    found: dict[int, None] = {}
    position = 0
    while len(found) < count:
        found[int(keystream.words(position, 1)[0]) % rows] = None
        position += 1
    return np.array(list(found), dtype=np.int64)
