"""Dealing: whole numbers of every value for each public combination, so that counts of rows are the model's to within
rounding (mathematics 14.3).

Combinations are dealt in a shuffled order, some at a time. For each group g of each watched table and value s,

    D[g, s] = expected - dealt so far

and the next combinations' expected counts, the whole rows first set aside, are tilted by e^(D / a) of their groups, a
the rows that all tables together will deal to (g, s) at once, at least 1, and rounded systematically:
floor(c_s + u) - floor(c_(s-1) + u), c their running sum, u uniform. Groups that are short of a value attract it, so D
stays at a few rows however many there are. Watching a table costs no privacy: all of it follows from the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from deniable.core.learned import Dealt
from deniable.core.values import Ints
from deniable.learned.measuring import Levels, Source

TOGETHER = 64  # combinations dealt at a time, at most: fewer keep D smaller, more are faster
AHEAD = 4096  # combinations whose shares are computed at a time
STRONGEST = 4.0  # pull on the logarithm of a share


def dealt(
    rows: Ints, shares: Callable[[Ints], Any], watched: Sequence[Levels], m: int, source: Source
) -> sparse.csr_array:
    """How many rows of each public combination get each value.

    Args:
        rows: of every combination.
        shares: Pr[s | q] of some combinations.
        watched: tables whose counts are to be the model's.
        m: how many values.
        source: uniform bits; the first ones shuffle, the next ones round.
    """
    n = len(rows)
    order = np.argsort(source.words(0, n), kind="stable")
    offsets = np.cumsum([0, *(one.size for one in watched)])
    short = np.zeros((int(offsets[-1]), m), dtype=np.float32)
    places = np.stack([one.codes + start for one, start in zip(watched, offsets, strict=False)], axis=1)
    together = min(max(n // 256, 1), TOGETHER)
    first_some = order[:AHEAD]
    rest = np.modf(shares(first_some) * rows[first_some, None])[0].mean(axis=0)
    members = np.concatenate([np.bincount(one.codes, minlength=one.size) for one in watched]) * (together / n)
    gain = (1 / np.maximum(len(watched) * members[:, None] * rest, 1)).astype(np.float32)
    uniform = (source.words(n, n) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    parts: list[tuple[Ints, Ints, Ints]] = []
    for first in range(0, n, AHEAD):
        some = order[first : first + AHEAD]
        p = shares(some)
        for start in range(0, len(some), together):
            at = some[start : start + together]
            expected = p[start : start + together] * rows[at, None]
            whole = np.floor(expected)
            rest = expected - whole
            left = rows[at] - whole.sum(axis=1)
            pull = np.zeros(expected.shape, dtype=np.float32)
            for column in places[at].T:
                pull += short[column]
            tilted = rest * np.exp(np.clip(pull, -STRONGEST, STRONGEST))
            tilted *= (left / np.maximum(tilted.sum(axis=1), 1e-300))[:, None]
            running = np.cumsum(tilted, axis=1)
            running[:, -1] = left
            steps = np.floor(running + uniform[at, None])
            counts = whole + np.diff(steps, axis=1, prepend=0)
            missing = (expected - counts).astype(np.float32)
            for column in places[at].T:
                np.add.at(short, column, missing * gain[column])
            q, s = np.nonzero(counts)
            parts.append((at[q], s, counts[q, s].astype(np.int64)))
    q, s, counts = (np.concatenate(numbers) for numbers in zip(*parts, strict=True))
    return sparse.csr_array((counts, (q, s)), shape=(n, m))


class Deal:
    """The values of rows, by their combination and their rank within it.

    Ranks are spread first, (a rank + b) mod n_q with a near n_q / 1.618 and coprime, b from the uniform bits: rows that
    follow each other in the table, and may be alike in columns that were not measured, get values in their shares.

    Args:
        dealt: how many rows of each combination get each value.
        source: uniform bits.
    """

    def __init__(self, dealt: Dealt, source: Source) -> None:
        self.rows = dealt.rows
        sizes, of = np.unique(self.rows, return_inverse=True)
        self._step = np.array([_coprime(int(size)) for size in sizes], dtype=np.int64)[of.ravel()]
        shift = source.words(0, len(self.rows)) % np.maximum(self.rows, 1).astype(np.uint64)
        self._shift = shift.astype(np.int64)
        self._ends, self._places = np.cumsum(dealt.counts), dealt.places
        self._before = np.concatenate([[0], np.cumsum(self.rows)])

    def values(self, combinations: Ints, ranks: Ints) -> Ints:
        """The place of each row's value in the list of values."""
        spread = (self._step[combinations] * ranks + self._shift[combinations]) % self.rows[combinations]
        places: Ints = self._places[np.searchsorted(self._ends, self._before[combinations] + spread, side="right")]
        return places


def _coprime(n: int) -> int:
    step = max(round(n * 0.6180339887), 1)
    while np.gcd(step, n) != 1:
        step += 1
    return step
