"""The arrays that everything is computed with, by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]  # of rows
Cells = npt.NDArray[np.int32]  # the number of the cell of each row
Words = npt.NDArray[np.uint64]
Codes = npt.NDArray[Any]  # integers of the smallest width that holds them
