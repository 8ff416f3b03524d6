"""Publish by Anatomy: two tables, rows with their group and groups with their values (SPEC 9). For comparison.

Anatomy is no plan of channels, so it does not run through the engine's kernel; which rows form a group is decided on
the whole column at once, and takes eight bytes a row.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.guarantee import Guarantee
from deniable.core.manifest import Column, Manifest, Part, Randomness, guarantee_dict, privacy_dict
from deniable.engines.base import Scan
from deniable.engines.local.engine import CELL
from deniable.engines.local.grouping import anatomy_groups
from deniable.engines.local.shuffling import order_of
from deniable.groups_release import GROUPS, GroupsRelease
from deniable.mechanisms import Anatomy, WithoutChannels
from deniable.request import Request

Ints = npt.NDArray[np.int64]


def publish_groups(mechanism: Anatomy, request: Request) -> GroupsRelease:
    """An Anatomy release, in memory."""
    sensitive = request.sensitive
    scan = request.scan(request.sensitive, request.domain)
    guarantee = mechanism.guarantee(scan.histogram, request.privacy)
    keys = request.keys
    codes, rows = codes_and_rows(request, scan.encoding)
    m = scan.histogram.m
    groups = anatomy_groups(codes, m, mechanism.l, keys.subkey("anatomy"), mechanism.suppressed(scan.histogram))
    kept = np.flatnonzero(groups >= 0)
    if request.shuffle:
        kept = kept[order_of(keys.subkey("order").words(0, len(codes))[kept])]
    table = rows.take(pa.array(kept)).append_column(CELL, pa.array(groups[kept]))
    second = _second_table(codes[groups >= 0], groups[groups >= 0], m, scan.encoding, sensitive)
    manifest = groups_manifest(mechanism, request, guarantee, scan, table.schema, table.num_rows)
    return GroupsRelease(manifest, table=table, groups=second)


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


def _second_table(codes: Ints, groups: Ints, m: int, encoder: Any, sensitive: tuple[str, ...]) -> pa.Table:
    """(group, value, rows), in the order of groups and values."""
    pairs, rows = np.unique(groups * m + codes, return_counts=True)
    values = encoder.decode((pairs % m).astype(encoder.dtype))
    columns = [pa.array(pairs // m), *values, pa.array(rows)]
    return pa.table(columns, names=[CELL, *sensitive, "rows"])
