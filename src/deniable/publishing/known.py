"""What an informed attacker can know of a table: a sample of its rows, as codes. For its owner, and no release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.audit.attacks.informed import InformedAttacker
from deniable.core.arrays import Ints
from deniable.core.bins import BinsLike
from deniable.core.histogram import Histogram
from deniable.engines import engine_named
from deniable.engines.base import Dataset, Progress, no_progress
from deniable.engines.batch.columns import Encoded, encode
from deniable.planning.informed import attacker_of
from deniable.publishing.arguments import public_columns
from deniable.publishing.recoding import Recoding
from deniable.publishing.scanning import binned, recoded

ROWS = 200_000  # at most, evenly spread over the table
MOST_VALUES = 2000  # learnt about: what is learnt of every pair of values is kept


@dataclass(frozen=True)
class Sample:
    """Some rows: public columns, and the code of each sensitive part (after its last value where a row is exempt)."""

    public: pa.Table
    codes: list[Ints]

    def column(self, name: str, kept: Ints) -> Encoded:
        """A public column of some of the rows."""
        return encode(self.public[name].take(pa.array(kept)))


def sampled(
    dataset: Dataset,
    public: Sequence[str],
    encoders: Sequence[Any],
    rows: int,
    most: int = ROWS,
    progress: Progress = no_progress,
) -> Sample:
    """Every so many rows of a table, in one pass and bounded memory."""
    step, first, done = max(1, -(-rows // most)), 0, 0
    codes: list[list[Ints]] = [[np.zeros(0, np.int64)] for _ in encoders]
    tables = []
    sensitive = [column for encoder in encoders for column in encoder.columns]
    for batch in dataset.batches(list(dict.fromkeys([*public, *sensitive]))):
        taken = batch.take(pa.array(np.arange(first % step, batch.num_rows, step)))
        first = (first - batch.num_rows) % step
        for place, encoder in enumerate(encoders):
            codes[place].append(encoder.encode(taken).astype(np.int64))
        tables.append(taken.select(list(public)))
        done += batch.num_rows
        progress(done, rows, "looking at public columns")
    schema = pa.schema([dataset.schema.field(name) for name in public])
    return Sample(pa.Table.from_batches(tables, schema), [np.concatenate(parts) for parts in codes])


def attacker_on_table(
    table: Any,
    sensitive: str,
    *,
    drop: Sequence[str] = (),
    missing: str = "value",
    bins: Mapping[str, BinsLike] | None = None,
    recoding: Recoding | None = None,
    progress: Progress = no_progress,
) -> tuple[Histogram, InformedAttacker | None]:
    """Someone who has learnt from the public columns, where there are some and not too many values to learn about; and
    the histogram that the attacker speaks of."""
    opened = engine_named("local").open(table)
    public = public_columns(opened, (sensitive,), tuple(drop))
    dataset = opened if recoding is None else recoded(opened, recoding.steps(opened.schema, public, (sensitive,)))
    dataset = binned(dataset, bins or {}, (sensitive,))
    scan = dataset.scan((sensitive,), missing, None, progress)
    if not public or not scan.rows or scan.histogram.m > MOST_VALUES:
        return scan.histogram, None
    sample = sampled(dataset, public, [scan.encoder], scan.rows, progress=progress)
    kept = np.flatnonzero(sample.codes[0] < scan.histogram.m)  # the others are exempt: they show what they are
    columns = [sample.column(name, kept) for name in public]
    return scan.histogram, attacker_of(columns, sample.codes[0][kept], scan.histogram.m)
