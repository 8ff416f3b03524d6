"""Perturbed columns behind rows: the values that an original may have had, and what a row counts for at each of them.

    E[w_x(y) | original x0] = 1[x = x0],    w(y) = P^-1[.][y]

so any sum over original rows of a function of their values is, on average, the sum over published rows and values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deniable.core.errors import QuestionError
from deniable.estimation.asking import Asking, asking
from deniable.estimation.model.conditions import is_joint, perturbed_column
from deniable.estimation.published import Bools, Floats, Ints, Published
from deniable.estimation.questions import sensitive_part


@dataclass(frozen=True, eq=False)
class Source:
    """Columns that were perturbed together.

    Attributes:
        values: of each column at each true state, missing as null.
        weights: numbers of true states [.., m] -> what rows in each published state count for [.., published].
        states: the published state of every row.
        swap: where the column was swapped among rows: its coin, and the replacing masses of its true states, 0 for
            those that are published as they are, and among how many rows.
    """

    values: Mapping[str, pa.Array]
    weights: Callable[[Floats], Floats]
    states: Ints
    swap: tuple[float, Floats, int] | None = None


def sources_of(published: Published, columns: Sequence[str]) -> list[Source]:
    """The perturbed ones among some columns, by the parts of the release."""
    ask = asking(published)
    hidden = [column for column in columns if column in ask.manifest.sensitive_columns]
    if not hidden:
        return []
    if is_joint(published.manifest):
        return [_column(published, name) for name in hidden]
    return [_only_part(ask)]


def _only_part(ask: Asking) -> Source:
    values = {column: pa.array(sensitive_part(ask.manifest, column)) for column in ask.manifest.sensitive_columns}

    def weights(wanted: Bools | Floats) -> Floats:
        if ask.states.unknown(wanted).any():
            raise QuestionError(
                "This cannot be modelled: its values cannot be told apart in this release, so no sum over its rows is "
                "unbiased. Fix: model public columns only, or publish with another mechanism."
            )
        return ask.states.weights(wanted)

    return Source(values, weights, ask.counter.coded((), (), states=True).states)


def _column(published: Published, name: str) -> Source:
    """One of several columns, each perturbed on its own."""
    column, counter = perturbed_column(published.manifest, name), published.counter()
    factor = column.factor()
    values = pa.concat_arrays([column.values, pa.nulls(factor.size - len(column.values), column.values.type)])
    codes = counter.coded((name,), ()).keys[:, 0]
    states = column.states(counter.distinct(name))[codes]
    swap, among = None, published.manifest.part_of(name).swapped
    if among is not None and 0 < column.coin < 1:
        swap = column.coin, np.append(column.masses, np.zeros(int(column.exempt))), among
    return Source({name: values}, factor.weights, states, swap)
