"""Tables as they will be published: recoded, then binned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deniable.core.bins import BinsLike
from deniable.core.errors import ColumnError, no_column, option
from deniable.core.histogram import Histogram
from deniable.core.recode import Steps
from deniable.engines import Engine, engine_named
from deniable.engines.base import Dataset, Progress, no_progress
from deniable.engines.randomness import Keystream
from deniable.publishing.arguments import as_names, public_columns
from deniable.publishing.recoding import Recoding


def scan_table(
    table: Any,
    sensitive: str | Sequence[str],
    *,
    missing: str = "value",
    bins: Mapping[str, BinsLike] | None = None,
    recoding: Recoding | None = None,
    progress: Progress = no_progress,
    engine: str | Engine = "local",
) -> Histogram:
    """The histogram of a table's sensitive column: all that planning needs."""
    names = as_names(sensitive)
    opened = engine_named(engine).open(table)
    public = public_columns(opened, names)
    steps = {} if recoding is None else recoding.steps(opened.schema, public, names)
    coarse = recoded(opened, {column: step for column, step in steps.items() if column in names})
    return binned(coarse, bins or {}, names).scan(names, missing, None, progress).histogram


def recoded(dataset: Dataset, steps: Steps) -> Dataset:
    """The table with its columns recoded, if any are."""
    return dataset.recoded(steps) if steps else dataset


def binned(
    dataset: Dataset, bins: Mapping[str, BinsLike], sensitive: tuple[str, ...], keys: Keystream | None = None
) -> Dataset:
    """The table with its sensitive numbers as intervals, where it has bins."""
    other = [column for column in bins if column not in sensitive]
    if other:
        if other[0] not in dataset.names:
            raise ColumnError(no_column("bins", other[0], dataset.names))
        raise ColumnError(
            f"{option('bins')} names {other[0]!r}, which is not a sensitive column. Fix: "
            f"{option('recode', f'{{{other[0]!r}: bands(..)}}', f'{other[0]}=bands:..')} makes a public column coarser."
        )
    return dataset.binned(bins, keys)
