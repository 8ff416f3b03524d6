"""Functions of a sensitive column's values: what a group, or a number that is added up, is computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import QuestionError
from deniable.core.transforms import Bins
from deniable.core.values import Floats


@dataclass(frozen=True)
class Mapped:
    """A function of one sensitive column; the same name and column mean the same function.

    Attributes:
        name: what it is called.
        column: the sensitive column.
        compute: its values, without or with missing ones -> an array as long.
    """

    name: str
    column: str
    compute: Callable[[pa.Array], pa.Array] = field(compare=False)


def plain(column: str) -> Mapped:
    """A column's own values."""
    return Mapped(column, column, lambda values: values)


def edges_of(column: str, bins: Bins) -> tuple[Mapped, Mapped]:
    """The lower and the upper edges of a column's bins, between which its numbers lie."""
    if bins.open_ends:
        raise QuestionError(
            f"The first and the last bin of {column!r} are open: what its numbers add up to is not known. Ask for "
            "counts by bin."
        )
    edges = np.asarray(bins.edges, np.float64)
    known = pa.array(bins.labels)

    def looked_up(numbers: Floats) -> Callable[[pa.Array], pa.Array]:
        return lambda values: pa.array(numbers).take(pc.index_in(values, value_set=known, skip_nulls=True))

    lower, upper = (f"{end} edges of the bins of {column}" for end in ("lower", "upper"))
    return Mapped(lower, column, looked_up(edges[:-1])), Mapped(upper, column, looked_up(edges[1:]))


Grouped = str | Mapped  # what answers are grouped by: a column, or a function of a sensitive one


def column_of(group: Grouped) -> str:
    """The column that a group is read from."""
    return group.column if isinstance(group, Mapped) else group


def name_of(group: Grouped) -> str:
    return group.name if isinstance(group, Mapped) else group
