"""Sums of inclusion counts of line-ups, beside what a histogram says of them: c_x rows have a set that holds x.

E[c] = B f,   B[x][v] = sum over sets with x of P(S | v),   and a row adds w(S) = sum over x in S of w_x to w^T c
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from deniable.audit.verify.lineups import COINS, DRAWS, FULL, Sets, sets_of
from deniable.core.values import Floats

AT_ONCE = 2**22  # sums of sets that are held at a time
REGULAR = 1e6  # condition numbers of matrices that are inverted

Numbers = tuple[Floats, Floats, Floats, Floats]  # off, variance, width and carried noise


def inclusion_sums(
    design: Mapping[str, Any], weights: Floats, shown: Floats, counts: Floats, most: Floats
) -> Iterator[Numbers]:
    """Sums of inclusion counts, and of estimates B^-1 c where every value has a sum of its own; ``shown`` has the rows
    of every set, in the order of their members."""
    sets = sets_of(design)
    order = np.lexsort(sets.members.T[::-1])
    sets, m = Sets(*(column[order] for column in sets)), weights.shape[1]
    one = _compared(design, sets, weights, shown, counts, most)
    yield one[0]
    if len(weights) != m + 1:
        return
    inclusion = one[1][:m]
    if np.linalg.cond(inclusion) < REGULAR:
        back = weights @ np.linalg.inv(inclusion).astype(np.float64)
        yield _compared(design, sets, back, shown, counts, most)[0]


def _compared(
    design: Mapping[str, Any], sets: Sets, weights: Floats, shown: Floats, counts: Floats, most: Floats
) -> tuple[Numbers, Floats]:
    """The sums, and the means of each by value."""
    coin, m, (number, size) = design["truth"] * COINS // FULL, weights.shape[1], sets.members.shape
    norm = float(COINS * DRAWS * design["orders"])
    seen, means, blind = np.zeros(len(weights)), np.zeros((len(weights), m)), np.zeros(len(weights))
    squares, least, largest = np.zeros(len(weights)), np.full(len(weights), np.inf), np.full(len(weights), -np.inf)
    step = max(AT_ONCE // len(weights), 1)
    for start in range(0, number, step):
        members, unseen, draws = (column[start : start + step] for column in sets)
        edges = np.arange(len(members) + 1) * size
        holds = csr_array((np.ones(members.size), members.ravel(), edges), shape=(len(members), m))
        around = csr_array((draws.ravel() * (coin / norm), members.ravel(), edges), shape=(len(members), m))
        without = unseen * ((COINS - coin) / norm)
        of_sets = (holds @ weights.T).T  # [sums, sets]
        seen += of_sets @ shown[start : start + step]
        means += (around.T @ of_sets.T).T
        blind += of_sets @ without
        squares += of_sets**2 @ (around @ most + without * most.sum())
        least, largest = np.minimum(least, of_sets.min(axis=1)), np.maximum(largest, of_sets.max(axis=1))
    means += blind[:, None]
    variance = np.maximum(squares - means**2 @ most, 0)
    carries: Floats = np.linalg.norm(means - means.mean(axis=1, keepdims=True), axis=1)
    return (seen - means @ counts, variance, largest - least, carries), means
