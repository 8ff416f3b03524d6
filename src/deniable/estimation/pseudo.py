"""A small table of weighed rows with the same one- and two-way margins as the originals are estimated to have.

With margins n_c and n_cd of K columns, N rows, and one value a_c of every column as its anchor,

    sum over c < d of n_cd(x_c, x_d)  -  (K-2) sum over c of n_c(x_c)  +  (K-1)(K-2)/2 N

each standing at the anchors of all columns that it does not name, has exactly these margins: what the first sum puts at
an anchor too often, the others take away.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import QuestionError
from deniable.estimation.answers import group_by
from deniable.estimation.asking import Options, asking
from deniable.estimation.published import Published
from deniable.estimation.questions import require_column

WEIGHT = "weight"
MOST_ROWS = 5_000_000


def pseudo_table(published: Published, columns: Sequence[str] | None) -> pa.Table:
    """Rows with weights, by which every one- and two-way margin is the estimate without calibration."""
    ask = asking(published)
    names = [*ask.manifest.public_columns, *ask.manifest.sensitive_columns] if columns is None else list(columns)
    if isinstance(columns, str) or not names or len(set(names)) < len(names):
        raise QuestionError(f"columns = {columns!r} is not a list of different columns: write columns=['age', 'sex'].")
    for name in names:
        require_column(ask.manifest, name)
        if name == WEIGHT:
            raise QuestionError(
                f"The release has a column {WEIGHT!r}, which the weights would be called. Fix: name "
                "the columns that you need in columns=[..]."
            )
    singles = {name: _margin(published, [name]) for name in names}
    _require_few(singles, ask.counter.rows)
    if len(names) == 1:
        return singles[names[0]]
    anchors = {name: _anchor(margin[name]) for name, margin in singles.items()}
    parts = [_at(_margin(published, list(pair)), 1.0, names, anchors) for pair in combinations(names, 2)]
    others = len(names) - 2
    parts += [_at(margin, -float(others), names, anchors) for margin in singles.values() if others]
    whole = pa.table({WEIGHT: [float(ask.counter.rows)]})
    parts.append(_at(whole, others * (others + 1) / 2, names, anchors))
    every = pa.concat_tables(parts).group_by(names, use_threads=False).aggregate([(WEIGHT, "sum")])
    every = every.rename_columns([*names, WEIGHT])
    return every.filter(pc.not_equal(every[WEIGHT], 0.0))


def _margin(published: Published, columns: list[str]) -> pa.Table:
    counted = group_by(published, columns, None, Options(calibrate=False))
    return counted.select(list(range(len(columns) + 1))).rename_columns([*columns, WEIGHT])


def _require_few(singles: dict[str, pa.Table], rows: int) -> None:
    sizes = {name: len(margin) for name, margin in singles.items()}
    total = sum(min(sizes[one] * sizes[other], rows * max(sizes.values())) for one, other in combinations(sizes, 2))
    if total > MOST_ROWS:
        widest = max(sizes, key=lambda name: sizes[name])
        raise QuestionError(
            f"All pairs of these columns have about {total:,} combinations of values, more than {MOST_ROWS:,} rows. "
            f"Fix: leave columns of many values out ({widest!r} has {sizes[widest]:,}): columns=[..]."
        )


def _anchor(values: pa.ChunkedArray) -> pa.Array:
    """One value of a column, as an array of one."""
    return values.combine_chunks()[:1] if values.num_chunks else pa.nulls(1, values.type)


def _at(margin: pa.Table, factor: float, names: Sequence[str], anchors: dict[str, pa.Array]) -> pa.Table:
    """A margin at the anchors of the columns that it does not have, its weights times a number."""
    first = np.zeros(len(margin), np.int64)
    columns = {
        name: margin[name].cast(anchors[name].type) if name in margin.column_names else anchors[name].take(first)
        for name in names
    }
    return pa.table({**columns, WEIGHT: pc.multiply(margin[WEIGHT], factor)})
