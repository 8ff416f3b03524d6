"""The estimate that needs no release: what the public columns and the column's distribution say by themselves.

    N_R f_x / n                                                                                     (SPEC 5, 9)

It is the honest zero of every comparison: an estimate that is not better teaches nothing about how the sensitive column
and the public ones belong together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def independence(rows: npt.ArrayLike, counts: npt.ArrayLike, sets: npt.ArrayLike) -> Floats:
    """Answers [conditions, sets]: rows of each condition, the histogram, and value sets [sets, m].

    >>> independence([10.0], [3, 1], [[True, False], [False, True]]).tolist()
    [[7.5, 2.5]]
    """
    histogram = np.asarray(counts, dtype=np.float64)
    share = np.asarray(sets, dtype=np.float64) @ (histogram / max(histogram.sum(), 1.0))
    answers: Floats = np.outer(np.asarray(rows, dtype=np.float64), share)
    return answers
