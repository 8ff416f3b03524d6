"""Phase 2 of small-domain randomization: rearrange the groups so that neighbours share values (mathematics 4.2, SDR
5.2).

Reading an order backwards changes no merge, so each order stands for its reverse too. The merge tries several orders
and keeps the cheapest result, which is therefore never worse than with the paper's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from deniable.core.arrays import Bools, Floats, Ints
from deniable.mechanisms.small_domain.balance import Group

OrdersKind = Literal["all", "band"]

# Above this many groups only the orders that are found in O(t^2) are tried.
FEW = 300


def band_orders(groups: list[Group], m: int) -> Iterator[tuple[str, Ints]]:
    """The paper's phase 2: band matrices of A A^T by reverse Cuthill-McKee, from a peripheral group and SciPy's."""
    shared = _shared(_matrix(groups, m))
    yield "Cuthill-McKee", cuthill_mckee(shared > 0)
    yield "Cuthill-McKee (SciPy)", reverse_cuthill_mckee(csr_array(shared), symmetric_mode=True).astype(np.int64)


def all_orders(groups: list[Group], m: int) -> Iterator[tuple[str, Ints]]:
    """Band matrices and what else puts groups with common values side by side."""
    counts = _matrix(groups, m)
    shared = _shared(counts)
    yield "Cuthill-McKee", cuthill_mckee(shared > 0)
    yield "as balanced", np.arange(len(groups))
    norms = np.sqrt(shared.diagonal())
    cosine = shared / np.outer(norms, norms)
    yield "chain of similar groups", chain(cosine)
    if len(groups) > FEW:
        return
    yield "by size", np.argsort([group.size for group in groups], kind="stable")
    yield "Cuthill-McKee (SciPy)", reverse_cuthill_mckee(csr_array(shared), symmetric_mode=True).astype(np.int64)
    overlap = _shared((counts > 0).astype(np.float64))
    yield "chain of common values", chain(overlap)
    yield "spectral, similar groups", spectral(cosine)
    yield "spectral, common values", spectral(overlap)


ORDERS: dict[str, Callable[[list[Group], int], Iterator[tuple[str, Ints]]]] = {
    "all": all_orders,
    "band": band_orders,
}


def cuthill_mckee(linked: Bools) -> Ints:
    """Reverse Cuthill-McKee, each component from a peripheral group, neighbours by degree, ties in their order.

    It puts the groups of SDR Example 3 in the order printed there: g1 g3 g2 g4 g5.
    """
    linked = linked & ~np.eye(len(linked), dtype=bool)
    degree = linked.sum(axis=1)
    free = np.ones(len(linked), dtype=bool)
    visited: list[int] = []
    for start in np.argsort(degree, kind="stable").tolist():
        if free[start]:
            farthest = _breadth_first(linked, degree, start, free.copy())[-1]
            visited += _breadth_first(linked, degree, farthest, free)
    return np.array(visited[::-1], dtype=np.int64)


def _breadth_first(linked: Bools, degree: Ints, start: int, free: Bools) -> list[int]:
    """Nodes reached from ``start``, neighbours in order of degree; takes them off ``free``."""
    queue, done = [start], 0
    free[start] = False
    while done < len(queue):
        near = np.flatnonzero(linked[queue[done]] & free)
        free[near] = False
        queue += near[np.argsort(degree[near], kind="stable")].tolist()
        done += 1
    return queue


def chain(similarity: Floats) -> Ints:
    """Start at the group that has least in common with the others, go on to the most similar one not yet visited."""
    likeness = similarity.copy()
    np.fill_diagonal(likeness, 0)
    here = int(np.argmin(likeness.sum(axis=1)))
    visited = [here]
    free = np.ones(len(likeness), dtype=bool)
    free[here] = False
    while free.any():
        here = int(np.argmax(np.where(free, likeness[here], -1)))
        free[here] = False
        visited.append(here)
    return np.array(visited, dtype=np.int64)


def spectral(similarity: Floats) -> Ints:
    """Sort by the Fiedler vector of the normalised similarity, the relaxation of the shortest total distance."""
    if len(similarity) < 2:
        return np.arange(len(similarity))
    scale = 1 / np.sqrt(similarity.sum(axis=1))
    _, vectors = np.linalg.eigh(similarity * np.outer(scale, scale))
    fiedler = vectors[:, -2] * scale
    # Rounded, so that ties do not depend on the last bits of the linear algebra library.
    return np.argsort(np.round(fiedler * np.sign(fiedler[np.argmax(np.abs(fiedler))]), 9), kind="stable")


def _matrix(groups: list[Group], m: int) -> csr_array:
    """A, groups x values counts."""
    ends = np.cumsum([0, *(len(group.positions) for group in groups)])
    columns = np.concatenate([group.positions for group in groups])
    data = np.concatenate([group.counts for group in groups]).astype(np.float64)
    return csr_array((data, columns, ends), shape=(len(groups), m))


def _shared(matrix: csr_array) -> Floats:
    """A A^T, dense: the most frequent values are in almost every group."""
    product: Floats = (matrix @ matrix.T).toarray()
    return product
