"""What an informed attacker can know of a table that is about to be published: a sample of its rows, as codes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from deniable.audit.attacks.informed import InformedAttacker
from deniable.engines.base import Scan
from deniable.engines.batch.columns import encode
from deniable.engines.request import Request
from deniable.planning.informed import attacker_of

ROWS = 200_000  # at most, evenly spread over the table


def attacker_on(request: Request, scan: Scan) -> InformedAttacker | None:
    """Someone who has learnt from the public columns; None where there are none."""
    if not request.public or not scan.rows:
        return None
    step, first = -(-scan.rows // ROWS), 0
    codes, tables = [], []
    columns = list(dict.fromkeys([*request.public, *request.sensitive]))
    for batch in request.dataset.batches(columns):
        taken = batch.take(pa.array(np.arange(first % step, batch.num_rows, step)))
        first = (first - batch.num_rows) % step
        codes.append(scan.encoder.encode(taken).astype(np.int64))
        tables.append(taken.select(list(request.public)))
    values = np.concatenate(codes)
    held = values < scan.histogram.m  # the others are exempt: they show what they are
    sample = pa.Table.from_batches(tables).filter(pa.array(held))
    return attacker_of([encode(sample[name]) for name in request.public], values[held], scan.histogram.m)
