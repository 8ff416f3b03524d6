"""THESIS 6.3: a growing table, published every month under one budget, or row by row."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import deniable as dn
from deniable.core.privacy import Privacy
from reproduction.items import Item, per_cent

ANYONE = Privacy("1/13", "1/6", adversary="any-prior")
MONTHS = (1, 3, 6, 12)
FIRST = 40_000  # rows of the first month; the others bring the rest


def a_growing_table(census: pa.Table) -> Item:
    """A table that grows for a year, published every month under one budget, and row by row."""
    shuffled = census.take(pa.array(np.random.default_rng(1).permutation(census.num_rows)))
    named = shuffled.append_column("id", pa.array(np.arange(census.num_rows)))
    sizes = [FIRST + (census.num_rows - FIRST) * month // 12 for month in range(1, 13)]
    values = sorted(set(census["occupation"].to_pylist()))
    asked: dict[str, Any] = {"sensitive": "occupation", "domain": values, "privacy": ANYONE}
    rows = []
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for month, size in enumerate(sizes, start=1):
            table = named.slice(0, size)
            learned = dn.publish(
                table.drop_columns(["id"]), **asked, mechanism="synthetic", series=Path(folder, "learned"),
                publications=12 if month == 1 else None,
            )  # fmt: skip
            drawn = dn.publish(table, **asked, mechanism="uniform", row_id="id", series=Path(folder, "rows"))
            if month in MONTHS:
                shown = [per_cent(_occupation_error(release, table)) for release in (learned, drawn)]
                rows.append((str(month), f"{size:,}", *shown))
        whole = dn.publish(census, **asked, mechanism="synthetic")
        rows.append(("once, at the end", f"{census.num_rows:,}", per_cent(_occupation_error(whole, census)), ""))
    return Item(
        "A growing table (THESIS 6.3, incremental publication and streams)",
        "OCC-100k arrives in twelve months; every month all rows so far are published, any prior, 1/13 to at most 1/6 "
        "for all publications together. Mean relative error of counts of an occupation among women or men, of at least "
        "1 % of the rows.",
        ("month", "rows so far", "learned, a twelfth of the budget each", "uniform, each row drawn once"),
        tuple(rows),
        None,
        "The thesis proposes to keep what was disclosed and to publish it alike: a row's draw is a function of key, "
        "person and value, so that nothing has to be stored and twelve publications promise what one does. Learned "
        "releases divide one budget instead, and pay for it: each publication has twelve times the noise; "
        "they are still far below those of rows that are perturbed one by one. A table that is never at rest is not "
        "covered: publications are counted.",
        draws=1,
    )


def _occupation_error(release: Any, table: pa.Table) -> float:
    """Mean relative error of counts of each occupation of women and of men, of at least 1 % of the rows."""
    pairs, counts = np.unique(
        np.stack([table["gender"].to_numpy(), table["occupation"].to_numpy()], axis=1), axis=0, return_counts=True
    )
    errors = [
        abs(release.count({"gender": int(sex), "occupation": int(job)}).value - count) / count
        for (sex, job), count in zip(pairs, counts.tolist(), strict=True)
        if count >= 0.01 * table.num_rows
    ]
    return float(np.mean(errors))
