"""The digest of a table whose rows are on many machines: the same as on one.

A digest is that of pieces of 2^18 rows (``batch.content``). A task hashes the pieces that lie wholly in its partition;
what straddles two partitions is sent to one task as Arrow bytes, and hashed there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deniable.engines.batch.content import PIECE_ROWS, content_schema, digest_of_piece, digest_of_pieces
from deniable.engines.spark.reading import Reading, changed, starts_of
from deniable.engines.spark.tasks import Batches, carried_errors, large_batches, mapped, spark_problems

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FRAGMENTS = "piece long, first long, digest binary, rows binary"
_SCHEMA = pa.schema(
    [
        pa.field("piece", pa.int64()),
        pa.field("first", pa.int64()),
        pa.field("digest", pa.binary()),
        pa.field("rows", pa.binary()),
    ]
)


def digest_of_frame(frame: DataFrame, reading: Reading, rows: Mapping[int, int]) -> str:
    """The digest of the rows in the order of the partitions; ``rows`` says how many each has."""
    total = sum(rows.values())
    work = partial(_fragments, reading, starts_of(rows), dict(rows), total)
    with spark_problems(), large_batches(frame.sparkSession):
        fragments = mapped(frame, work, FRAGMENTS)
        join = _grouped(partial(_joined, total))
        joined = fragments.groupBy("piece").applyInArrow(join, "piece long, digest binary").collect()
    digests = {row.piece: bytes(row.digest) for row in joined}
    if not digests:
        return digest_of_pieces([digest_of_piece(content_schema(reading.read).empty_table(), True)])
    return digest_of_pieces(digests[number] for number in range(len(digests)))


def _grouped(join: Any) -> Any:
    def task(table: pa.Table) -> pa.Table:
        with carried_errors():
            return join(table)

    return task


def _fragments(
    reading: Reading,
    starts: Mapping[int, int],
    counted: Mapping[int, int],
    total: int,
    partition: int,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    """The digests of the pieces in a partition, and the rows of those that are in others too."""
    place = start = starts.get(partition, 0)
    waiting: list[pa.RecordBatch] = []
    for batch in reading.batches(partition, batches):
        while batch.num_rows:
            room = PIECE_ROWS - place % PIECE_ROWS
            waiting.append(batch.slice(0, room))
            place += waiting[-1].num_rows
            batch = batch.slice(room)
            if place % PIECE_ROWS == 0:
                yield _fragment(waiting, place, total)
                waiting = []
    if waiting:
        yield _fragment(waiting, place, total)
    if place - start != counted.get(partition, 0):
        raise changed()


def _fragment(batches: list[pa.RecordBatch], end: int, total: int) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches)
    first = end - table.num_rows
    piece = first // PIECE_ROWS
    whole = first == piece * PIECE_ROWS and end == min(first + PIECE_ROWS, total)
    digest = _digest(table, piece) if whole else b""
    return pa.RecordBatch.from_pydict(
        {"piece": [piece], "first": [first], "digest": [digest], "rows": [b"" if whole else _as_bytes(table)]},
        schema=_SCHEMA,
    )


def _joined(total: int, fragments: pa.Table) -> pa.Table:
    """The digest of one piece."""
    held = sorted(fragments.to_pylist(), key=lambda fragment: fragment["first"])
    piece = held[0]["piece"]
    digest = held[0]["digest"]
    if not digest:
        table = pa.concat_tables([pa.ipc.open_stream(fragment["rows"]).read_all() for fragment in held])
        if table.num_rows != min(PIECE_ROWS, total - piece * PIECE_ROWS):
            raise changed()
        digest = _digest(table, piece)
    return pa.table({"piece": pa.array([piece], pa.int64()), "digest": pa.array([digest], pa.binary())})


def _digest(table: pa.Table, piece: int) -> bytes:
    return digest_of_piece(table.cast(content_schema(table.schema)).combine_chunks(), piece == 0)


def _as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
