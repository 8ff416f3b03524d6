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

from deniable.core.manifest import Column, Manifest, Part, Randomness, guarantee_dict, privacy_dict
from deniable.core.privacy import Privacy
from deniable.engines.base import Progress
from deniable.engines.local.engine import CELL, LocalEngine
from deniable.engines.local.grouping import anatomy_groups
from deniable.engines.local.shuffling import order_of
from deniable.engines.randomness import Keystream, Secret
from deniable.groups_release import GroupsRelease
from deniable.mechanisms import Anatomy

Ints = npt.NDArray[np.int64]


def publish_groups(
    mechanism: Anatomy,
    engine: LocalEngine,
    sensitive: tuple[str, ...],
    public: tuple[str, ...],
    privacy: Privacy | None,
    secret: Secret,
    name: str,
    *,
    missing: str,
    domain: Any,
    shuffle: bool,
    progress: Progress,
) -> GroupsRelease:
    """An Anatomy release, in memory."""
    scan = engine.scan(sensitive, missing, domain, progress)
    guarantee = mechanism.guarantee(scan.histogram, privacy)
    keys = Keystream(secret, "release", name, *sensitive)
    codes, rows = _codes_and_rows(engine, scan.encoding, sensitive, public, progress)
    m = scan.histogram.m
    groups = anatomy_groups(codes, m, mechanism.l, keys.subkey("anatomy"), mechanism.suppressed(scan.histogram))
    kept = np.flatnonzero(groups >= 0)
    if shuffle:
        kept = kept[order_of(keys.subkey("order").words(0, len(codes))[kept])]
    table = rows.take(pa.array(kept)).append_column(CELL, pa.array(groups[kept]))
    second = _second_table(codes[groups >= 0], groups[groups >= 0], m, scan.encoding, sensitive)
    part = Part(sensitive, scan.histogram.domain, missing, True, (), ())
    manifest = Manifest(
        name=name,
        software={"name": "deniable", "version": metadata.version("deniable")},
        mechanism=mechanism.name,
        options=mechanism.options,
        rows=table.num_rows,
        columns=tuple(
            Column(field.name, str(field.type), "cell" if field.name == CELL else "public") for field in table.schema
        ),
        parts=(part,),
        privacy=privacy_dict(privacy),
        guarantee=guarantee_dict(guarantee),
        randomness=Randomness(secret.source, secret.seed, shuffle, "row number"),
        extra={"groups": "groups.parquet", "types": [str(kind) for kind in scan.encoding.types]},
    )
    return GroupsRelease(manifest, table=table, groups=second)


def _codes_and_rows(
    engine: LocalEngine, encoder: Any, sensitive: tuple[str, ...], public: tuple[str, ...], progress: Progress
) -> tuple[Ints, pa.Table]:
    codes, batches, done = [], [], 0
    for batch in engine.source.batches([*public, *sensitive]):
        codes.append(encoder.encode(batch).astype(np.int64))
        batches.append(pa.Table.from_batches([batch]).select(list(public)))
        done += batch.num_rows
        progress(done, engine.source.rows, "grouping")
    rows = pa.concat_tables(batches).combine_chunks()
    plain = [pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in rows.schema]
    return np.concatenate(codes), rows.cast(pa.schema(plain))


def _second_table(codes: Ints, groups: Ints, m: int, encoder: Any, sensitive: tuple[str, ...]) -> pa.Table:
    """(group, value, rows), in the order of groups and values."""
    pairs, rows = np.unique(groups * m + codes, return_counts=True)
    values = encoder.decode((pairs % m).astype(encoder.dtype))
    columns = [pa.array(pairs // m), *values, pa.array(rows)]
    return pa.table(columns, names=[CELL, *sensitive, "rows"])
