"""How well a public column predicts the sensitive value of rows that it was not learnt from.

A column's value v says how likely each sensitive value x is, learnt from half of the rows and tried on the other half:

    p(x | v) = (n_vx + a p_x) / (n_v + a),     gain = mean of log p(x | v) - log p_x over rows that were not learnt from

with a chosen by the rows of the other half. A column that says nothing gains nothing, however many values it has: what
it seems to say about the rows that it was learnt from is not what it says about others. A gain of more than six
standard errors is no chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.core.arrays import Bools, Codes, Floats, Ints

ALARM = 6.0  # standard errors
LEAST = 1e-4  # of the uncertainty: less is rounding
DENSE = 4  # pairs of values a row: of more, most never occur
SMOOTHING = (0.5, 2.0, 8.0, 32.0, 128.0, 512.0, 2048.0)


@dataclass(frozen=True)
class Gain:
    """How much less surprising sensitive values are to someone who knows a column.

    Attributes:
        mean, error: nats a row, and the standard error.
        surprise: of someone who knows the frequencies only.
        smoothing: the a that explains other rows best.
    """

    mean: float
    error: float
    surprise: float
    smoothing: float

    @property
    def is_real(self) -> bool:
        return self.mean > max(ALARM * self.error, LEAST * self.surprise)

    @property
    def explained(self) -> float:
        """The share of the uncertainty that is gone."""
        return max(self.mean, 0.0) / self.surprise if self.surprise > 0 else 0.0


def gain_of(codes: Codes, original: Ints, m: int, first: Bools) -> Gain:
    """Learn from each half, try it on the other; ``first`` are the rows of one half."""
    halves = [np.flatnonzero(first), np.flatnonzero(~first)]
    gains, plain = [], []
    for learnt, tried in (halves, halves[::-1]):
        with_value, in_all = _seen(codes, original, m, learnt, tried)
        # As learnt, without smoothing: a column that is always the same must gain exactly nothing.
        share = np.maximum(np.bincount(original[learnt], minlength=m), 0.5)[original[tried]] / len(learnt)
        known = np.log(share)
        plain.append(-known)
        gains.append(np.array([np.log((with_value + a * share) / (in_all + a)) - known for a in SMOOTHING]))
    chosen = [int(np.argmax(gains[1 - side].mean(axis=1))) for side in (0, 1)]  # by the rows of the other half
    every = np.concatenate([gains[0][chosen[0]], gains[1][chosen[1]]])
    error = float(every.std() / np.sqrt(len(every)))
    return Gain(float(every.mean()), error, float(np.concatenate(plain).mean()), SMOOTHING[chosen[0]])


def prior_of(original: Ints, m: int) -> Floats:
    """How frequent each value is among some rows; none is impossible."""
    counts = np.bincount(original, minlength=m) + 0.5
    prior: Floats = counts / counts.sum()
    return prior


def _seen(codes: Codes, original: Ints, m: int, learnt: Ints, tried: Ints) -> tuple[Floats, Floats]:
    """For each row that is tried: rows learnt from with its value of the column; first those with its own result."""
    size = int(codes.max(initial=0)) + 1
    in_all = np.bincount(codes[learnt], minlength=size)[codes[tried]].astype(np.float64)
    keys = codes.astype(np.int64) * m + original
    if size * m <= DENSE * len(keys):
        return np.bincount(keys[learnt], minlength=size * m)[keys[tried]].astype(np.float64), in_all
    known, rows = np.unique(keys[learnt], return_counts=True)
    place = np.minimum(np.searchsorted(known, keys[tried]), max(len(known) - 1, 0))
    there = known[place] == keys[tried]
    return np.where(there, rows[place], 0).astype(np.float64), in_all
