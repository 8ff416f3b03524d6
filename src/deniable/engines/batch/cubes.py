"""Cubes: rows by the codes of a few columns and the state, from which any conjunction on these columns is a slice."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.core.arrays import Bools, Floats
from deniable.core.tally import CodeMask

Cube = npt.NDArray[Any]

CACHE_BYTES = 256 * 2**20


class Cubes:
    """The most recently used cubes, up to a limit of memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], Cube] = OrderedDict()
        self._questions: Counter[tuple[str, ...]] = Counter()

    def pays(self, columns: tuple[str, ...], shape: tuple[int, ...], questions: int, rows: int) -> bool:
        """Whether questions on these columns, with all that came before, have looked at more rows one by one than the
        cube has entries: then counting it has paid."""
        self._questions[columns] += questions
        return columns in self._kept or math.prod(shape) <= rows * self._questions[columns] or not columns

    def get(
        self,
        columns: tuple[str, ...],
        shape: tuple[int, ...],
        count: Callable[[tuple[str, ...], tuple[int, ...]], Cube],
    ) -> Cube:
        """The cube of some columns, counted if it is not kept."""
        if columns not in self._kept:
            self._kept[columns] = count(columns, shape)
        self._kept.move_to_end(columns)
        cube = self._kept[columns]
        while len(self._kept) > 1 and sum(kept.nbytes for kept in self._kept.values()) > CACHE_BYTES:
            self._kept.popitem(last=False)
        return cube


def slice_cube(cube: npt.NDArray[Any], columns: tuple[str, ...], question: Sequence[CodeMask]) -> Floats:
    """Rows by state of a conjunction: index the axes with one value, sum over the others."""
    for mask in _masks_by_column(columns, question):
        places = np.flatnonzero(mask)
        cube = cube[places[0]] if len(places) == 1 else cube[places].sum(axis=0, dtype=np.int64)
        # the axis is gone, so the next column is the first again
    return cube.astype(np.float64)


def combinations_of(columns: tuple[str, ...], question: Sequence[CodeMask]) -> Bools:
    """Which combinations of the columns' codes satisfy a conjunction, as one flat array."""
    combined = np.ones(1, bool)
    for mask in _masks_by_column(columns, question):
        combined = np.logical_and.outer(combined, mask).ravel()
    return combined


def _masks_by_column(columns: tuple[str, ...], question: Sequence[CodeMask]) -> list[Bools]:
    masks: dict[str, Bools] = {}
    for column, mask in question:
        masks[column] = masks[column] & mask if column in masks else mask
    return [masks[column] for column in columns]
