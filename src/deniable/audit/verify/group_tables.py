"""The two tables of a release of groups must be about the same groups, and hold nothing but what describes them.

Both are read by their columns ``cell`` and ``rows``: whoever changes one table alone changes answers, or what a group
is seen to promise. Nothing here uses the code that made the groups.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Ints
from deniable.core.errors import listing
from deniable.core.manifest import Manifest

CELL, ROWS = "cell", "rows"
BOX = (" low", " high", " missing")  # of a column that is measured; others have their values listed
LISTED = " values"


def tables_problem(manifest: Manifest, table: pa.Table, groups: pa.Table) -> str | None:
    """Why a table of rows and one of groups are not two tables of one release; None where they are."""
    columns = manifest.parts[0].columns
    expected = [CELL, *(columns if manifest.form == "buckets" else _box_columns(manifest, groups)), ROWS]
    if lacking := [name for name in expected if name not in groups.column_names]:
        return f"the table of groups has no column {listing(lacking)}"
    if len(groups.column_names) != len(expected):
        return f"the table of groups has other columns than {listing(expected)}"
    own = (CELL,) if manifest.form == "buckets" else (CELL, *columns)
    if lacking := [name for name in own if name not in table.column_names]:
        return f"the table of rows has no column {listing(lacking)}"
    numbers = [table[CELL], groups[CELL], groups[ROWS]]
    if not all(pa.types.is_integer(column.type) and not column.null_count for column in numbers):
        return f"{CELL!r} and {ROWS!r} must be whole numbers in every line"
    shown, described, rows = (column.to_numpy().astype(np.int64) for column in numbers)
    if min(shown.min(initial=0), described.min(initial=0)) < 0 or rows.min(initial=1) < 1:
        return f"{CELL!r} must be 0 or more and {ROWS!r} 1 or more in every line"
    if manifest.form != "buckets" and not np.array_equal(described, np.arange(len(described))):
        return "boxes must stand in their order, each once"
    return _sizes_problem(manifest.form, shown, described, rows)


def _box_columns(manifest: Manifest, groups: pa.Table) -> list[str]:
    names: list[str] = []
    for name in manifest.public_columns:
        names += [name + LISTED] if name + LISTED in groups.column_names else [name + end for end in BOX]
    return names


def _sizes_problem(form: str, shown: Ints, described: Ints, rows: Ints) -> str | None:
    """Every group has as many rows in one table as the other says; of a sample, one."""
    cells, inverse = np.unique(described, return_inverse=True)
    sizes = np.ones(len(cells)) if form == "samples" else np.bincount(inverse, weights=rows, minlength=len(cells))
    seen, counts = np.unique(shown, return_counts=True)
    if np.array_equal(seen, cells) and np.array_equal(counts, sizes):
        return None
    if form == "samples":
        return "the table of rows does not show one row of each box"
    return "the table of rows has other groups, or other numbers of rows in them, than the table of groups says"
