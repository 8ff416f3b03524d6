"""Publish by generalization: ranges instead of public values, true sensitive values, groups as boxes. For comparison.

Groups are cut on the whole table at once, so it is held in memory: as codes, the widest column's size for every column
and row, and some 60 bytes a row besides. Rows are always shuffled: a true value stands in every row, so a row's place
would say whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Codes, Ints
from deniable.core.errors import ColumnError, OptionError
from deniable.engines.base import CELL, ROW_GROUP
from deniable.engines.batch.shuffling import order_of
from deniable.engines.randomness import Keystream
from deniable.engines.request import Request
from deniable.rivals.base import RivalRelease, batches, manifest_of
from deniable.rivals.generalize.axes import axes_of_rows
from deniable.rivals.generalize.boxes import box_table, box_texts
from deniable.rivals.generalize.mondrian import mondrian

if TYPE_CHECKING:
    from deniable.rivals.generalize.mechanism import Generalize


def published_boxes(mechanism: Generalize, request: Request) -> RivalRelease:
    """Rows with ranges and true values, and the boxes of their groups."""
    _check(request)
    scan = request.scan(request.sensitive, request.domain)
    guarantee = mechanism.guarantee(scan.histogram, request.privacy)
    keys, encoder = request.keys, scan.encoder
    codes = np.concatenate([encoder.encode(batch) for batch in batches(request, list(request.sensitive))])
    kept = rows_kept(codes, mechanism.suppressed(scan.histogram), keys.subkey("suppression"))
    kept = kept[order_of(keys.subkey("order").words(0, len(codes))[kept])]
    codes = codes[kept]
    axes = axes_of_rows(request.dataset, request.public, kept, request.progress)
    groups = mondrian(list(axes.values()), codes, mechanism.k, mechanism.l)
    boxes = box_table(axes, groups)
    texts = {name: box_texts(boxes, name) for name in axes}

    def rows(first: int, last: int) -> pa.Table:
        own = pa.array(groups[first:last], pa.int64())
        values = dict(zip(request.sensitive, encoder.decode(codes[first:last]), strict=True))
        return pa.table({**{name: text.take(own) for name, text in texts.items()}, **values, CELL: own})

    def pieces(_: Path | None) -> Iterator[pa.Table]:
        return (rows(first, first + ROW_GROUP) for first in range(0, len(groups), ROW_GROUP))

    schema = rows(0, 0).schema
    manifest = manifest_of(mechanism, request, guarantee, scan, schema, len(groups))
    return RivalRelease(manifest, schema, pieces, lambda: [boxes])


def rows_kept(codes: Codes, suppressed: Ints, stream: Keystream) -> Ints:
    """The rows that are published, in their order; which rows of a value are not is drawn."""
    left_out: list[Ints] = []
    words = stream.words(0, len(codes)) if suppressed.any() else None
    for value in np.flatnonzero(suppressed):
        own = np.flatnonzero(codes == value)
        assert words is not None
        left_out.append(own[order_of(words[own])][: suppressed[value]])
    kept = np.ones(len(codes), dtype=bool)
    kept[np.concatenate([np.zeros(0, np.int64), *left_out])] = False
    return np.flatnonzero(kept)


def _check(request: Request) -> None:
    if not request.public:
        raise ColumnError(
            "mechanism 'generalize' needs a public column: without one there is nothing to generalize. "
            "Fix: publish another column, or use mechanism='anatomy'."
        )
    if CELL in (*request.public, *request.sensitive):
        raise ColumnError(f"The table has a column {CELL!r}, which the release needs for itself. Fix: rename it.")
    if not request.shuffle:
        raise OptionError(
            "mechanism 'generalize' publishes true values, so rows must be shuffled: their order would say whose they "
            "are. Fix: leave out shuffle=False."
        )
