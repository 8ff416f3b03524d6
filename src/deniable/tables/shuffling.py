"""Rows in a keyed random order, in memory or, for tables larger than memory, through files.

Every row has a 64-bit sort key, a pure function of the release's key and the row number; the published order is the
order of these keys. Buckets by the keys' high bits are sorted one at a time, so the order is the same for any number
of buckets, batches or threads. Only perturbed rows ever reach a bucket file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.values import Words

Keyed = Iterable[tuple[pa.RecordBatch, Words]]
BUCKET_BYTES = 12 * 2**20  # sorts faster in the processor's cache, and a few of them in memory at once are little
PIECE_ROWS, PIECE_BYTES = 4096, 32 * 2**20  # what a bucket gets at once, and all of them together
# Compressing is slower than the disk, and threads cost more than they gain for pieces of this size.
_WRITING = pa.ipc.IpcWriteOptions(use_threads=False)
_READING = pa.ipc.IpcReadOptions(use_threads=False)
SORT_KEY = "sort key"


def shuffled(batches: Keyed, schema: pa.Schema, spool: Path | None, rows: int, threads: int) -> Iterator[pa.Table]:
    """All rows in the order of their keys; in memory, or through files in a private folder where one is given.

    Where texts come as dictionaries they stay such."""
    if spool is None:
        return shuffled_in_memory(batches, schema)
    pieces = iter(batches)
    first = next(pieces, None)
    wide = 16.0 if first is None or not first[0].num_rows else first[0].nbytes / first[0].num_rows + 16
    every = pieces if first is None else chain([first], pieces)
    narrow = schema if first is None else first[0].schema
    return shuffled_through_files(every, narrow, spool, bucket_count(int(rows * wide)), threads)


def shuffled_in_memory(batches: Keyed, schema: pa.Schema) -> Iterator[pa.Table]:
    """All rows at once, sorted by their keys."""
    kept, keys = [], []
    for batch, words in batches:
        kept.append(batch)
        keys.append(words)
    if kept:
        yield _arranged(pa.Table.from_batches(kept), order_of(np.concatenate(keys)))


def shuffled_through_files(
    batches: Keyed, schema: pa.Schema, folder: Path, buckets: int, threads: int
) -> Iterator[pa.Table]:
    """Deal rows into bucket files by the high bits of their keys, then sort one bucket at a time."""
    keyed = schema.append(pa.field(SORT_KEY, pa.uint64()))
    paths = [folder / f"bucket-{index:05d}.arrow" for index in range(buckets)]
    _scatter(batches, keyed, paths)
    with ThreadPoolExecutor(threads) as executor:
        ahead: deque[Future[pa.Table]] = deque()
        for path in paths:
            ahead.append(executor.submit(_sorted_bucket, path))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _sorted_bucket(path: Path) -> pa.Table:
    """The rows of a bucket, in the order of their keys; its file goes."""
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file, options=_READING) as reader:
        bucket = reader.read_all()
    path.unlink()
    last = bucket.num_columns - 1  # by place: a table may have a column of that name
    return _arranged(bucket.remove_column(last), order_of(bucket.column(last).to_numpy()))


def _arranged(table: pa.Table, order: npt.NDArray[np.intp]) -> pa.Table:
    """The rows in an order of all of them, which need not be looked at for numbers of no row."""
    return pc.take(table, pa.array(order), boundscheck=False)


def order_of(keys: Words) -> npt.NDArray[np.intp]:
    """The order of the keys; rows with equal keys stay in the order of the input."""
    order = np.argsort(keys)
    arranged = keys[order]
    if (arranged[1:] == arranged[:-1]).any():  # about one table in 10^5 at 20 million rows
        order = np.argsort(keys, kind="stable")
    return order


def _scatter(batches: Keyed, keyed: pa.Schema, paths: list[Path]) -> None:
    writers = [pa.ipc.new_stream(str(path), keyed, options=_WRITING) for path in paths]
    try:
        for batch, words in _gathered(batches, PIECE_ROWS * len(paths)):
            # Monotone in the key, so that bucket after bucket is the order of the keys.
            bucket = ((words >> np.uint64(32)) * np.uint64(len(paths)) >> np.uint64(32)).astype(np.uint16)
            order = np.argsort(bucket, kind="stable")
            arranged = _arranged(batch.append_column(SORT_KEY, pa.array(words)), order)
            ends = np.cumsum(np.bincount(bucket, minlength=len(paths)))
            start = 0
            for writer, end in zip(writers, ends.tolist(), strict=True):
                if end > start:
                    writer.write_table(arranged.slice(start, end - start))
                start = end
    finally:
        for writer in writers:
            writer.close()


def _gathered(batches: Keyed, rows: int) -> Iterator[tuple[pa.Table, Words]]:
    """The same rows in larger pieces, as long as they are small in memory: a piece is dealt to every bucket, and what a
    bucket is handed at once must not become fewer rows the more buckets there are."""
    waiting: list[pa.RecordBatch] = []
    keys: list[Words] = []
    for batch, words in batches:
        waiting.append(batch)
        keys.append(words)
        if sum(map(len, keys)) >= rows or sum(one.nbytes for one in waiting) >= PIECE_BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks(), np.concatenate(keys)
            waiting, keys = [], []
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks(), np.concatenate(keys)


def bucket_count(total_bytes: int) -> int:
    """How many buckets keep one bucket near ``BUCKET_BYTES``; few enough to hold all files open."""
    return int(min(max(1, -(-total_bytes // BUCKET_BYTES)), 900))


def rechunked(tables: Iterable[pa.Table], schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """The same rows in pieces of exactly ``rows`` rows (the last may be shorter), however they arrive.

    Files written from these pieces do not depend on how the work was cut up.
    """
    waiting: list[pa.Table] = []
    have = 0
    for table in tables:
        waiting.append(table)
        have += table.num_rows
        while have >= rows:
            joined = pa.concat_tables(waiting)
            yield joined.slice(0, rows).combine_chunks()
            waiting = [joined.slice(rows)]
            have -= rows
    if have:
        yield pa.concat_tables(waiting).combine_chunks()
    elif not waiting:
        yield schema.empty_table()
