"""Several rows of one person, who holds the same value in all of them (mathematics 13.9).

Against each other value z a view v speaks for x by Pr[v | x] / Pr[v | z], and views of several rows multiply:

    Pr[x | v_1 .. v_k] <= f_x / (f_x + sum over z != x of f_z l_z^k),    l_z = min over v of Pr[v | z] / Pr[v | x]

over all views that a row of x can have. One channel of coins reaches it: there x itself speaks most against every z.
Cells, groups and line-ups rule values out, each of them others, so that few rows may leave a single one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from scipy import sparse

from deniable.core.arrays import Floats, Ints


class Views(Protocol):
    """What rows can show."""

    @property
    def held(self) -> Ints:
        """The rows of each value."""
        ...

    def against(self, x: int) -> Floats:
        """l_z of every value z, for rows of the value x."""
        ...


def least_likely(likelihood: sparse.csr_array, own: Floats, outside: float = 0.0) -> Floats:
    """l_z of every value z.

    Args:
        likelihood: Pr[view | z] of the views that a row of x can show, [views, values]; values may be left out of one.
        own: Pr[view | x] of each.
        outside: the least Pr[view | z] / Pr[view | x] of values that are left out.
    """
    m = likelihood.shape[1]
    ratio = likelihood.data / np.repeat(own, np.diff(likelihood.indptr))
    least = np.full(m, np.inf)
    np.minimum.at(least, likelihood.indices, ratio)
    everywhere = np.bincount(likelihood.indices, minlength=m) == len(own)
    return np.where(everywhere, least, np.minimum(least, outside))


def surest_after(views: Views, rows: Mapping[int, int]) -> float:
    """How sure one can become, at most, of a value that so many rows of a person hold; over all these values."""
    surest = 0.0
    for x, number in rows.items():
        if x < len(views.held) and views.held[x]:  # exempt ones come after the last
            others = views.held * views.against(x) ** number
            surest = max(surest, float(views.held[x] / (views.held[x] + others.sum() - others[x])))
    return surest
