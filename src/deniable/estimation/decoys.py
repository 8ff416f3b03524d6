"""Reconstruction from decoy groups (mathematics 7, 11.2; SPLU 5): four states, and several columns.

For a public predicate Q and a value s a row is in one of four states, (not Q, Q) x (not s, s). A row with s shows s
with probability 1/c; a row without it with probability a:

    M = I (x) [[1-a, a], [(c-1)/c, 1/c]]
    a = f_s / N                            as published (SPLU Eq. 6-9)
    a = f_s (c-1) / (c (N - f_s))          exactly, on average over the rows without s

a depends on f_s, which is estimated along with the rest, to the fixed point. Both are wrong for the rows *of Q* when Q
is correlated with the value: rows without s are not alike, and those whose value shares groups with s show it more
often. The full channel knows which values share groups; it is unbiased, and pays for that with variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from deniable.core.errors import QuestionError
from deniable.core.values import Floats

Others = Literal["exact", "as published"]
HALVINGS = 60
ROUNDS = 3000
TOLERANCE = 1e-9  # of the rows, for a fixed point
SINGULAR = 1e-9  # relative to the largest singular value

# -- four states, and their tensor product -----------------------------------------------------------------------------


def four_states(observed: npt.ArrayLike, c: int, *, others: Others = "exact") -> Floats:
    """Estimated rows in each state, from published rows [..., 2, 2]: (not Q, Q) x (does not show s, shows s).

    It is the fixed point of the iterative Bayesian rule (mathematics 8), which for two states and a given a is the
    inverse cut to what is possible; halving finds the f_s that agrees with its own a.

    >>> four_states([[950, 50], [90, 10]], 5).round(1).tolist()
    [[975.0, 25.0], [65.0, 35.0]]
    """
    y, shape = by_question(observed, 1)
    rows = y.sum((1, 2))
    low, high = np.zeros_like(rows), rows / c
    for _ in range(HALVINGS):
        f = (low + high) / 2
        more = _cut(y, f, rows, c, others).sum(1) > f
        low, high = np.where(more, f, low), np.where(more, high, f)
    with_s = _cut(y, low, rows, c, others)
    return np.stack([y.sum(2) - with_s, with_s], axis=2).reshape(shape)


def several_columns(observed: npt.ArrayLike, sizes: Sequence[int], *, others: Others = "exact") -> Floats:
    """The same for k sensitive columns with independent groupings: [..., 2, 2, .., 2], one axis per column after Q's.

    M = I (x) M_1 (x) .. (x) M_k, never built. Where the inverse is possible it is the fixed point; else
    x_p <- x_p sum_q M_pq y_q / (x M)_q is iterated, every a updated in every round, for all questions at once.
    """
    y, shape = by_question(observed, len(sizes))
    x = inverted(y, sizes, others=others)
    rows = y.sum(tuple(range(1, y.ndim)))
    x = _fixed_point(np.where(np.isfinite(x), x, y), y, rows, list(enumerate(sizes, start=2)), others)
    return x.reshape(shape)


def inverted(observed: npt.ArrayLike, sizes: Sequence[int], *, others: Others = "exact") -> Floats:
    """The same by the inverse of M, linear given every a: it may leave what is possible. A value in every group
    (f_s = N/c) shows nothing: its inverse is not a number."""
    y, shape = by_question(observed, len(sizes))
    rows, x = y.sum(tuple(range(1, y.ndim))), y
    for axis, c in enumerate(sizes, start=2):
        f = marginal(_with_value(y, axis), rows, c, others)
        x = _times(x, _inverse(_factor(f, rows, c, others)), axis)
    return x.reshape(shape)


def bayesian_round(x: Floats, y: Floats, rows: Floats, columns: list[tuple[int, int]], others: Others) -> Floats:
    """One round of the iterative Bayesian rule, every a by the rows so far."""
    factors = [(axis, _factor(_with_value(x, axis), rows, c, others)) for axis, c in columns]
    blame = y / np.maximum(_through(x, factors), 1e-300)
    return x * _through(blame, [(axis, np.swapaxes(factor, 1, 2)) for axis, factor in factors])


def _fixed_point(x: Floats, y: Floats, rows: Floats, columns: list[tuple[int, int]], others: Others) -> Floats:
    """The iterative Bayesian rule until no question moves; only those that still move are computed.

    It starts between what was published and the inverse, as near to the inverse as is possible: both have the f_s that
    was published, and from an f_s above N/c the rule would leave for a second, senseless solution.
    """
    states = (slice(None), *[None] * (x.ndim - 1))
    step = np.divide(y, y - x, out=np.ones_like(y), where=x < 0).reshape(len(y), -1).min(1)
    moving = np.flatnonzero((step < 1) & (rows > 0))
    x = y + np.where(step < 1, 0.99 * step, 1.0)[states] * (x - y)
    x[moving] += 1e-6 * rows[moving][states]  # a state at zero would stay there
    for _ in range(ROUNDS):
        if not len(moving):
            break
        now, n = x[moving], rows[moving]
        following = bayesian_round(now, y[moving], n, columns, others)
        far = np.abs(following - now).reshape(len(moving), -1).max(1) > TOLERANCE * n
        x[moving] = following
        moving = moving[far]
    return x


def by_question(observed: npt.ArrayLike, k: int) -> tuple[Floats, tuple[int, ...]]:
    """Observed rows with all questions on one axis, and the shape to give back."""
    y = np.asarray(observed, dtype=np.float64)
    if y.shape[-k - 1 :] != (2,) * (k + 1):
        raise QuestionError(f"{k} sensitive columns need observed rows by {2 ** (k + 1)} states; got shape {y.shape}.")
    return y.reshape(-1, *y.shape[-k - 1 :]), y.shape


def _with_value(x: Floats, axis: int) -> Floats:
    """Rows that have (or show) a column's value, for each question."""
    return np.take(x, 1, axis=axis).reshape(len(x), -1).sum(1)


def marginal(shown: Floats, rows: Floats, c: int, others: Others) -> Floats:
    """The f_s at which the published number of rows with s is as expected: f/c + a(f) (N - f) = shown.

    With the exact a that is f = shown; with the published one a quadratic equation.
    """
    if others == "exact":
        return shown
    slope = 1 + 1 / c
    share = shown / np.maximum(rows, 1e-300)
    return rows / 2 * (slope - np.sqrt(np.maximum(slope**2 - 4 * share, 0.0)))


def chance(f: Floats, rows: Floats, c: int, others: Others) -> Floats:
    """a, the probability that a row without s shows s."""
    without = rows - f if others == "exact" else rows
    scale = (c - 1) / c if others == "exact" else 1.0
    chance = np.divide(scale * f, without, out=np.zeros_like(f), where=without > 0)
    return np.clip(chance, 0.0, 1 / c)  # f_s <= N/c in every table that can be grouped


def chance_slope(f: Floats, rows: Floats, c: int, others: Others) -> Floats:
    """da / df', a's derivative by the number of rows that show s: da/df df/df', f from ``marginal``."""
    if others == "exact":
        return np.divide((c - 1) / c * rows, (rows - f) ** 2, out=np.zeros_like(f), where=rows > f)
    turn = 1 / c + 1 - 2 * f / np.maximum(rows, 1e-300)  # d(f/c + f/N (N - f)) / df
    return np.divide(1.0, turn * rows, out=np.zeros_like(f), where=turn * rows > 0)


def _factor(f: Floats, rows: Floats, c: int, others: Others) -> Floats:
    """[[1-a, a], [(c-1)/c, 1/c]] for each question."""
    a = chance(f, rows, c, others)
    factor = np.empty((len(a), 2, 2))
    factor[:, 0, 0], factor[:, 0, 1] = 1 - a, a
    factor[:, 1] = (c - 1) / c, 1 / c
    return factor


def _inverse(factor: Floats) -> Floats:
    """Two by two inverses; not a number where s and its absence show alike."""
    spread = factor[:, 1, 1] - factor[:, 0, 1]
    spread = np.where(np.abs(spread) > SINGULAR, spread, np.nan)
    adjoint = np.stack(
        [np.stack([factor[:, 1, 1], -factor[:, 0, 1]], 1), np.stack([-factor[:, 1, 0], factor[:, 0, 0]], 1)], 1
    )
    return adjoint / spread[:, None, None]


def _cut(y: Floats, f: Floats, rows: Floats, c: int, others: Others) -> Floats:
    """Rows with s in (not Q, Q) for a given f: the inverse cut to [0, rows], which is the likeliest."""
    a = chance(f, rows, c, others)[:, None]
    total = y.sum(2)
    spread = np.maximum(1 / c - a, 1e-15)
    return np.clip((y[:, :, 1] - a * total) / spread, 0.0, total)


def _times(x: Floats, matrix: Floats, axis: int) -> Floats:
    """x M along one state axis, another M for each question."""
    moved = np.moveaxis(x, axis, -1)
    product = (moved.reshape(len(x), -1, 2) @ matrix).reshape(moved.shape)
    return np.moveaxis(product, -1, axis)


def _through(x: Floats, factors: list[tuple[int, Floats]]) -> Floats:
    for axis, factor in factors:
        x = _times(x, factor, axis)
    return x
