"""Single values of columns that are perturbed together: a bound for the tuple is none for each of its entries."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Ints


@dataclass(frozen=True, eq=False)
class SingleValues:
    """The values of one of several columns, in the order of the domain, and which of them every tuple holds."""

    column: int
    values: tuple[Hashable, ...]
    codes: Ints


def single_values(domain: Sequence[Hashable]) -> list[SingleValues]:
    """The single values of each column of a domain of tuples; none where values are single anyway.

    >>> [column.values for column in single_values([("hiv", "cook"), ("hiv", "nurse"), ("flu", "cook")])]
    [('hiv', 'flu'), ('cook', 'nurse')]
    >>> single_values(["hiv", "flu"])
    []
    """
    tuples = [value for value in domain if isinstance(value, tuple)]
    if not tuples or len(tuples) < len(domain):
        return []
    columns = []
    for place in range(len(tuples[0])):
        entries = [value[place] for value in tuples]
        codes = {value: code for code, value in enumerate(dict.fromkeys(entries))}
        columns.append(SingleValues(place, tuple(codes), np.array([codes[entry] for entry in entries], dtype=np.int64)))
    return columns
