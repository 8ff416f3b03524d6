"""Publish by Anatomy: two tables, rows with their group and groups with their values (mathematics 9).

Which rows form a group is decided on the whole sensitive column at once, in some 25 bytes a row; public columns pass by
in batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.arrays import Codes, Words
from deniable.core.errors import TableError, table_changed
from deniable.engines.base import CELL, ROW_GROUP, Scan
from deniable.engines.batch.shuffling import rechunked, shuffled
from deniable.engines.batch.values import decoded, plain_type
from deniable.engines.request import Request
from deniable.rivals.anatomy.groups import anatomy_groups
from deniable.rivals.base import RivalRelease, batches, manifest_of

if TYPE_CHECKING:
    from deniable.rivals.anatomy.mechanism import Anatomy

ROWS = "rows"  # the column of the second table that counts them


def published_groups(mechanism: Anatomy, request: Request) -> RivalRelease:
    """Both tables; public columns are never held in memory where they come from a file and go to one."""
    if ROWS in request.sensitive:
        raise TableError(
            f"The column name {ROWS!r} is reserved with mechanism 'anatomy', whose second table counts rows in a "
            "column of that name. Fix: rename the sensitive column."
        )
    scan = request.scan(request.sensitive, request.domain)
    guarantee = mechanism.guarantee(scan.histogram, request.privacy)
    codes = np.concatenate([scan.encoder.encode(batch) for batch in batches(request, list(request.sensitive))])
    suppressed = mechanism.suppressed(scan.histogram)
    groups = anatomy_groups(codes, scan.histogram.m, mechanism.l, request.keys.subkey("anatomy"), suppressed)
    fields = [pa.field(name, plain_type(request.dataset.schema.field(name).type)) for name in request.public]
    schema = pa.schema([*fields, pa.field(CELL, pa.int32())])
    manifest = manifest_of(mechanism, request, guarantee, scan, schema, int((groups >= 0).sum()))
    tables = _Tables(request, scan, codes, groups, schema)
    return RivalRelease(manifest, schema, tables.rows, tables.values, beside=scan)


@dataclass(frozen=True, eq=False)
class _Tables:
    """A table whose rows have their groups.

    Attributes:
        codes: the sensitive value of each row.
        groups: its group; -1 where it is left out.
    """

    request: Request
    scan: Scan
    codes: Codes
    groups: npt.NDArray[np.int32]
    schema: pa.Schema

    def rows(self, spool: Path | None) -> Iterator[pa.Table]:
        """The first table: public columns and group."""
        if self.request.shuffle:
            tables = shuffled(self._keyed(), self.schema, spool, len(self.groups), threads=1)
        else:
            tables = (pa.Table.from_batches([batch]) for batch, _ in self._keyed())
        yield from rechunked(tables, self.schema, ROW_GROUP)

    def _keyed(self) -> Iterator[tuple[pa.RecordBatch, Words]]:
        order, start = self.request.keys.subkey("order"), 0
        for batch in batches(self.request, list(self.request.public or self.request.sensitive)):
            own = self.groups[start : start + batch.num_rows]
            words = order.words(start, batch.num_rows)
            start += batch.num_rows
            if len(own) < batch.num_rows:
                break
            columns = [decoded(batch.column(name)) for name in self.request.public]
            made = pa.RecordBatch.from_arrays([*columns, pa.array(own)], schema=self.schema)
            there = own >= 0
            yield (made, words) if there.all() else (made.filter(pa.array(there)), words[there])
        if start != len(self.groups):
            raise table_changed()

    def values(self) -> Iterator[pa.Table]:
        """The second table, (group, value, rows), in the order of groups and values; a group has each value once."""
        kinds = zip(self.request.sensitive, self.scan.encoder.types, strict=True)
        named = [pa.field(name, kind) for name, kind in kinds]
        schema = pa.schema([pa.field(CELL, pa.int64()), *named, pa.field(ROWS, pa.int64())])
        m, there = self.scan.histogram.m, self.groups >= 0
        pairs = self.groups[there].astype(np.int64)
        pairs *= m
        pairs += self.codes[there]
        pairs.sort()
        for start in range(0, len(pairs), ROW_GROUP):
            some = pairs[start : start + ROW_GROUP]
            listed = self.scan.encoder.decode((some % m).astype(self.scan.encoder.dtype))
            columns = [pa.array(some // m), *listed, pa.array(np.ones(len(some), np.int64))]
            yield pa.Table.from_arrays(columns, schema=schema)
