"""Releases of groups, in two tables; Anatomy's: rows with their group, and groups with their values."""

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

from deniable.core.errors import ColumnError, OptionError, QuestionError, did_you_mean
from deniable.core.manifest import Manifest
from deniable.engines.local import storage
from deniable.engines.local.engine import CELL
from deniable.engines.local.shuffling import rechunked
from deniable.estimation import Estimate
from deniable.estimation.estimate import normal_quantile
from deniable.estimation.predicates import Leaf, conjunction, require_known
from deniable.release.release import ROW_GROUP, Release, finish_folder
from deniable.rivals.anatomy.estimate import AnatomyTables

GROUPS = "groups.parquet"


class CountsOnly(Release):
    """A release of a rival: it answers ``count`` and nothing else."""

    def domain_mask(self, leaf: Leaf) -> npt.NDArray[np.bool_]:
        """Which entries of the domain satisfy a condition on a sensitive column."""
        columns = self.manifest.parts[0].columns
        place, several = columns.index(leaf.column), len(columns) > 1
        own = [entry[place] if several else entry for entry in self.manifest.domain]  # type: ignore[index]
        require_known(leaf.column, pa.array(list(dict.fromkeys(own))).drop_null(), leaf.named, sensitive=True)
        return holds_for(leaf, pa.array(own))

    def no_column(self, name: str) -> ColumnError:
        known = [*self.manifest.parts[0].columns, *self.manifest.public_columns]
        return ColumnError(f"The release has no column {name!r}.{did_you_mean(name, known)}")

    def refuse(self, options: Mapping[str, Any]) -> None:
        """Options of other releases' counts mean nothing here, and are not passed over."""
        if options:
            raise OptionError(
                f"A release by {self.manifest.mechanism!r} has one way to count: {', '.join(options)} does not go with "
                "it. Fix: count(where=..., confidence=0.95)."
            )

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise QuestionError(
            f"A release by {self.manifest.mechanism!r} answers count(where=...) only: it is here to be compared with. "
            "Fix: publish with another mechanism for sums, averages, group-bys and SQL."
        )

    sum = mean = group_by = histogram = count_many = cube = sql = counter = _refused


class TwoTables(CountsOnly):
    """A release with a second table that describes its groups."""

    def __init__(self, manifest: Manifest, *, groups: pa.Table | None = None, **options: Any) -> None:
        super().__init__(manifest, **options)
        self._groups = groups

    @cached_property
    def groups(self) -> pa.Table:
        """The second table."""
        if self._groups is not None:
            return self._groups
        assert self.folder is not None
        return storage.read_groups(self.folder / GROUPS)

    def save(self, out: str | os.PathLike[str], *, overwrite: bool = False, format: str = "parquet") -> Release:
        """Write both tables, the manifest and the README into a folder: the whole of it, or nothing."""
        folder = Path(out)
        if format == "csv":
            storage.require_readable_csv(self.table.schema)
        with storage.new_folder(folder, overwrite) as partial:
            pieces = rechunked([self.table], self.table.schema, ROW_GROUP)
            pq.write_table(self.groups, partial / GROUPS, compression="zstd")
            extra = {**self.manifest.extra, "groups_sha256": storage.digest(partial / GROUPS)}
            manifest = finish_folder(partial, replace(self.manifest, extra=extra), pieces, self.table.schema, format)
        return type(self)(manifest, folder=folder, groups=self.groups, warnings=self.warnings)


class GroupsRelease(TwoTables):
    """Anatomy's two tables: ``table`` (public columns and group) and ``groups`` (group, value, rows)."""

    @cached_property
    def _tables(self) -> AnatomyTables:
        m = len(self.manifest.domain)
        names = [name for name in self.groups.column_names if name not in (CELL, "rows")]
        listed = zip(*(self.groups[name].to_pylist() for name in names), strict=True)
        place = {value if len(names) > 1 else (value,): i for i, value in enumerate(self.manifest.domain)}
        values = np.array([place[value] for value in listed], dtype=np.int64)
        cell = self.table[CELL].to_numpy().astype(np.int64)
        return AnatomyTables(cell, self.groups[CELL].to_numpy(), values, self.groups["rows"].to_numpy(), m)

    def count(self, where: Mapping[str, Any] | None = None, *, confidence: float = 0.95, **options: Any) -> Estimate:
        """Rows that satisfy ``where``: a group's values are spread evenly over its rows.

        The standard error holds if public columns tell nothing about the value within a group; where they do, the
        estimate is biased, and nothing in the release says by how much.
        """
        self.refuse(options)
        normal_quantile(confidence)
        matching = np.ones(self.table.num_rows, dtype=bool)
        wanted = np.ones(len(self.manifest.domain), dtype=bool)
        sensitive = self.manifest.parts[0].columns
        for leaf in conjunction(where).parts:
            assert isinstance(leaf, Leaf)
            if leaf.column in sensitive:
                wanted &= self.domain_mask(leaf)
            elif leaf.column in self.table.column_names:
                matching &= holds_for(leaf, self.table[leaf.column].combine_chunks())
            else:
                raise self.no_column(leaf.column)
        tables = self._tables
        sizes = np.maximum(np.bincount(tables.groups, weights=tables.rows), 1.0)
        hits = np.bincount(tables.cell[matching], minlength=len(sizes))
        chosen = np.bincount(tables.groups, weights=tables.rows * wanted[tables.values], minlength=len(sizes))
        share = hits / sizes
        value = float((chosen * share).sum())
        # Drawing `chosen` of a group's rows without replacement: hypergeometric.
        spread = chosen * share * (1 - share) * (sizes - chosen) / np.maximum(sizes - 1, 1)
        return Estimate(value, float(np.sqrt(spread.sum())), confidence, 0.0, float(matching.sum()), "anatomy")


def holds_for(leaf: Leaf, values: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values satisfy a condition, missing ones among them."""
    holds = leaf.test(values)
    settled = pc.if_else(pc.is_null(values), pa.scalar(leaf.missing), pc.fill_null(holds, False))
    return np.asarray(settled.to_numpy(zero_copy_only=False), dtype=bool)
