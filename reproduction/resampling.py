"""Larger samples of a table that is at hand: rows drawn from it with replacement.

The papers' samples of 200,000 to 500,000 rows of CENSUS cannot be had; OCC-100k can. A resample has the relations of
its 100,000 rows and the counts of a larger table, so that what depends on the number of rows can be shown. It is no new
sample of the population: values and combinations that the 100,000 rows lack stay missing.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SIZES = (100_000, 200_000, 300_000, 400_000, 500_000)


def resampled(table: pa.Table, rows: int, seed: int = 1) -> pa.Table:
    """So many rows; the table itself where that is its size."""
    if rows == table.num_rows:
        return table
    return table.take(pa.array(np.random.default_rng(seed).integers(table.num_rows, size=rows)))
