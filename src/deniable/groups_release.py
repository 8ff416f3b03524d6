"""An Anatomy release: rows with their group, groups with their values, and what can be asked of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from deniable.core.errors import ColumnError, QuestionError, did_you_mean
from deniable.core.manifest import Manifest
from deniable.engines.local import storage
from deniable.engines.local.engine import CELL
from deniable.engines.local.shuffling import rechunked
from deniable.estimation import Estimate
from deniable.estimation.anatomy import AnatomyTables
from deniable.estimation.predicates import Leaf, conjunction, require_known
from deniable.release import ROW_GROUP, Release, finish_folder

GROUPS = "groups.parquet"


class GroupsRelease(Release):
    """Two tables: ``table`` (public columns and group) and ``groups`` (group, value, rows)."""

    def __init__(self, manifest: Manifest, *, groups: pa.Table | None = None, **options: Any) -> None:
        super().__init__(manifest, **options)
        self._groups = groups

    @cached_property
    def groups(self) -> pa.Table:
        """How often each value occurs in each group."""
        if self._groups is not None:
            return self._groups
        assert self.folder is not None
        return storage.read_groups(self.folder / GROUPS)

    @cached_property
    def _tables(self) -> AnatomyTables:
        m = len(self.manifest.domain)
        names = [name for name in self.groups.column_names if name not in (CELL, "rows")]
        listed = zip(*(self.groups[name].to_pylist() for name in names), strict=True)
        place = {value if len(names) > 1 else (value,): i for i, value in enumerate(self.manifest.domain)}
        values = np.array([place[value] for value in listed], dtype=np.int64)
        cell = self.table[CELL].to_numpy().astype(np.int64)
        return AnatomyTables(cell, self.groups[CELL].to_numpy(), values, self.groups["rows"].to_numpy(), m)

    def count(self, where: Mapping[str, Any] | None = None, *, confidence: float = 0.95, **_: Any) -> Estimate:
        """Rows that satisfy ``where``: a group's values are spread evenly over its rows.

        The standard error holds if public columns tell nothing about the value within a group; where they do, the
        estimate is biased, and nothing in the release says by how much.
        """
        matching = np.ones(self.table.num_rows, dtype=bool)
        wanted = np.ones(len(self.manifest.domain), dtype=bool)
        sensitive = self.manifest.parts[0].columns
        for leaf in conjunction(where).parts:
            assert isinstance(leaf, Leaf)
            if leaf.column in sensitive:
                wanted &= self._domain_mask(leaf, sensitive.index(leaf.column))
            elif leaf.column in self.table.column_names:
                matching &= _mask(leaf, self.table[leaf.column].combine_chunks())
            else:
                known = [*sensitive, *self.table.column_names]
                raise ColumnError(f"The release has no column {leaf.column!r}.{did_you_mean(leaf.column, known)}")
        tables = self._tables
        sizes = np.maximum(np.bincount(tables.groups, weights=tables.rows), 1.0)
        hits = np.bincount(tables.cell[matching], minlength=len(sizes))
        chosen = np.bincount(tables.groups, weights=tables.rows * wanted[tables.values], minlength=len(sizes))
        share = hits / sizes
        value = float((chosen * share).sum())
        # Drawing `chosen` of a group's rows without replacement: hypergeometric.
        spread = chosen * share * (1 - share) * (sizes - chosen) / np.maximum(sizes - 1, 1)
        return Estimate(value, float(np.sqrt(spread.sum())), confidence, 0.0, float(matching.sum()), "anatomy")

    def _domain_mask(self, leaf: Leaf, position: int) -> npt.NDArray[np.bool_]:
        several = len(self.manifest.parts[0].columns) > 1
        own = [entry[position] if several else entry for entry in self.manifest.domain]  # type: ignore[index]
        require_known(leaf.column, pa.array(list(dict.fromkeys(own))).drop_null(), leaf.named, sensitive=True)
        return _mask(leaf, pa.array(own))

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise QuestionError(
            "An Anatomy release answers count(where=...) only: it is here to be compared with. "
            "Fix: publish with another mechanism for sums, averages, group-bys and SQL."
        )

    sum = mean = group_by = histogram = count_many = sql = counter = _refused

    def save(self, out: str | os.PathLike[str], *, overwrite: bool = False, format: str = "parquet") -> Release:
        """Write both tables, the manifest and the README into a folder: the whole of it, or nothing."""
        folder = Path(out)
        with storage.new_folder(folder, overwrite) as partial:
            pieces = rechunked([self.table], self.table.schema, ROW_GROUP)
            pq.write_table(self.groups, partial / GROUPS, compression="zstd")
            extra = {**self.manifest.extra, "groups_sha256": storage.digest(partial / GROUPS)}
            manifest = finish_folder(partial, replace(self.manifest, extra=extra), pieces, self.table.schema, format)
        return GroupsRelease(manifest, folder=folder, groups=self.groups, warnings=self.warnings)


def _mask(leaf: Leaf, values: pa.Array) -> npt.NDArray[np.bool_]:
    holds = leaf.test(values)
    settled = pc.if_else(pc.is_null(values), pa.scalar(leaf.missing), pc.fill_null(holds, False))
    return np.asarray(settled.to_numpy(zero_copy_only=False), dtype=bool)
