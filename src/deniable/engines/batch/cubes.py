"""Cubes: rows by the codes of a few columns and the state, from which any conjunction on these columns is a slice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.core.tally import CodeMask

Cube = npt.NDArray[Any]

CACHE_BYTES = 256 * 2**20


class Cubes:
    """The most recently used cubes, up to a limit of memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], Cube] = OrderedDict()

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


def slice_cube(
    cube: npt.NDArray[Any], columns: tuple[str, ...], question: Sequence[CodeMask]
) -> npt.NDArray[np.float64]:
    """Rows by state of a conjunction: index the axes with one value, sum over the others."""
    masks: dict[str, npt.NDArray[np.bool_]] = {}
    for column, mask in question:
        masks[column] = masks[column] & mask if column in masks else mask
    chosen = [np.flatnonzero(masks[column]) for column in columns]
    for places in chosen:
        cube = cube[places[0]] if len(places) == 1 else cube[places].sum(axis=0, dtype=np.int64)
        # the axis is gone, so the next column is the first again
    return cube.astype(np.float64)
