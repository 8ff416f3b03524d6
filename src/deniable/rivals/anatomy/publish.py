"""Publish by Anatomy: two tables, rows with their group and groups with their values (SPEC 9). For comparison.

Anatomy is no plan of channels, so it does not run through the engine's kernel. Which rows form a group is decided on
the whole sensitive column at once, in some 25 bytes a row; public columns pass by in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from deniable.core.errors import TableError
from deniable.core.guarantee import Guarantee
from deniable.core.manifest import Column, Manifest, Part, Randomness, guarantee_dict, privacy_dict
from deniable.engines.base import Scan
from deniable.engines.local import storage
from deniable.engines.local.engine import CELL, decoded, plain_type
from deniable.engines.local.shuffling import bucket_count, rechunked, shuffled_in_memory, shuffled_through_files
from deniable.mechanisms import Anatomy, WithoutChannels
from deniable.publishing.request import Request
from deniable.release.release import ROW_GROUP, finish_folder
from deniable.rivals.anatomy.groups import anatomy_groups
from deniable.rivals.anatomy.release import GROUPS, GroupsRelease

Ints = npt.NDArray[np.int64]


def publish_groups(mechanism: Anatomy, request: Request) -> GroupsRelease:
    """An Anatomy release, in memory."""
    made = _Grouped.of(mechanism, request)
    table = pa.concat_tables(made.rows(None)).combine_chunks()
    return GroupsRelease(made.manifest, table=table, groups=pa.concat_tables(made.values()).combine_chunks())


def write_groups(mechanism: Anatomy, request: Request, out: Path, overwrite: bool, form: str) -> GroupsRelease:
    """An Anatomy release in a folder; public columns are never held in memory where they come from a file."""
    made = _Grouped.of(mechanism, request)
    if form == "csv":
        storage.require_readable_csv(made.schema)
    with storage.new_folder(out, overwrite) as partial:
        spool = partial / "spool"
        spool.mkdir(mode=0o700)
        with pq.ParquetWriter(partial / GROUPS, made.values_schema, compression="zstd") as writer:
            for piece in made.values():
                writer.write_table(piece)
        extra = {**made.manifest.extra, "groups_sha256": storage.digest(partial / GROUPS)}
        manifest = finish_folder(partial, replace(made.manifest, extra=extra), made.rows(spool), made.schema, form)
        spool.rmdir()
    return GroupsRelease(manifest, folder=out)


@dataclass(frozen=True, eq=False)
class _Grouped:
    """A table whose rows have their groups.

    Attributes:
        codes: the sensitive value of each row.
        groups: its group; -1 where it is left out.
    """

    request: Request
    scan: Scan
    codes: npt.NDArray[Any]
    groups: npt.NDArray[np.int32]
    manifest: Manifest
    schema: pa.Schema

    @classmethod
    def of(cls, mechanism: Anatomy, request: Request) -> _Grouped:
        scan = request.scan(request.sensitive, request.domain)
        guarantee = mechanism.guarantee(scan.histogram, request.privacy)
        codes = np.concatenate([scan.encoding.encode(batch) for batch in _batches(request, request.sensitive)])
        suppressed = mechanism.suppressed(scan.histogram)
        groups = anatomy_groups(codes, scan.histogram.m, mechanism.l, request.keys.subkey("anatomy"), suppressed)
        fields = [pa.field(name, plain_type(request.engine.source.schema.field(name).type)) for name in request.public]
        schema = pa.schema([*fields, pa.field(CELL, pa.int32())])
        manifest = groups_manifest(mechanism, request, guarantee, scan, schema, int((groups >= 0).sum()))
        return cls(request, scan, codes, groups, manifest, schema)

    def rows(self, spool: Path | None) -> Iterator[pa.Table]:
        """The first table: public columns and group."""
        source = self.request.engine.source
        if not self.request.shuffle:
            tables: Iterator[pa.Table] = (pa.Table.from_batches([batch]) for batch, _ in self._keyed())
        elif spool is None or source.in_memory:
            tables = shuffled_in_memory(self._keyed(), self.schema)
        else:
            wide = next((batch.nbytes / max(batch.num_rows, 1) for batch in self._public()), 0.0)
            buckets = bucket_count(int(len(self.groups) * (wide + 16)))
            tables = shuffled_through_files(self._keyed(), self.schema, spool, buckets, 1)
        yield from rechunked(tables, self.schema, ROW_GROUP)

    def _public(self) -> Iterator[pa.RecordBatch]:
        return _batches(self.request, self.request.public or self.request.sensitive)

    def _keyed(self) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.uint64]]]:
        order, start = self.request.keys.subkey("order"), 0
        for batch in self._public():
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
            raise TableError(
                "The table changed while it was being read. Fix: publish from a copy that nobody writes to."
            )

    @property
    def values_schema(self) -> pa.Schema:
        kinds = zip(self.request.sensitive, self.scan.encoding.types, strict=True)
        named = [pa.field(name, kind) for name, kind in kinds]
        return pa.schema([pa.field(CELL, pa.int64()), *named, pa.field("rows", pa.int64())])

    def values(self) -> Iterator[pa.Table]:
        """The second table, (group, value, rows), in the order of groups and values; a group has each value once."""
        m, there = self.scan.histogram.m, self.groups >= 0
        pairs = self.groups[there].astype(np.int64)
        pairs *= m
        pairs += self.codes[there]
        pairs.sort()
        for start in range(0, len(pairs), ROW_GROUP):
            some = pairs[start : start + ROW_GROUP]
            listed = self.scan.encoding.decode((some % m).astype(self.scan.encoding.dtype))
            columns = [pa.array(some // m), *listed, pa.array(np.ones(len(some), np.int64))]
            yield pa.Table.from_arrays(columns, schema=self.values_schema)


def _batches(request: Request, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in request.engine.source.batches(list(columns)):
        done += batch.num_rows
        request.progress(done, request.engine.source.rows, "grouping")
        yield batch


def groups_manifest(
    mechanism: WithoutChannels, request: Request, guarantee: Guarantee, scan: Scan, schema: pa.Schema, rows: int
) -> Manifest:
    """The manifest of a release of groups: no channels, and a second table."""
    roles = {CELL: "cell", **dict.fromkeys(request.sensitive, "sensitive")}
    return Manifest(
        name=request.name,
        software={"name": "deniable", "version": metadata.version("deniable")},
        mechanism=mechanism.name,
        options=mechanism.options,
        rows=rows,
        columns=tuple(Column(field.name, str(field.type), roles.get(field.name, "public")) for field in schema),
        parts=(Part(request.sensitive, scan.histogram.domain, request.missing, True, (), ()),),
        privacy=privacy_dict(request.privacy),
        guarantee=guarantee_dict(guarantee),
        randomness=Randomness(request.secret.source, request.secret.seed, request.shuffle, "row number"),
        extra={"groups": GROUPS, "types": [str(kind) for kind in scan.encoding.types]},
    )


def codes_and_rows(request: Request, encoder: Any) -> tuple[Ints, pa.Table]:
    """The sensitive column as codes, and the public columns, all in memory."""
    codes, batches, done = [], [], 0
    for batch in request.engine.source.batches([*request.public, *request.sensitive]):
        codes.append(encoder.encode(batch).astype(np.int64))
        batches.append(pa.Table.from_batches([batch]).select(list(request.public)))
        done += batch.num_rows
        request.progress(done, request.engine.source.rows, "grouping")
    rows = pa.concat_tables(batches).combine_chunks()
    plain = [pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in rows.schema]
    return np.concatenate(codes), rows.cast(pa.schema(plain))
