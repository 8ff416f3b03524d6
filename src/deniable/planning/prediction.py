"""The error of a question before anything is published, in closed form (SPEC 8, "Weights").

The estimate of a count is a sum of weights w(y) over the question's rows, with E[w | x] = 1[x in S] in every cell. Rows
are perturbed independently, and a row of value x falls into cell c with the planned share s_cx, so

    Var = sum_x n_x ( sum_c s_cx sum_y P_c[y][x] w_c(y)^2  -  1[x in S] )

where n_x is the number of the question's rows with value x. Where nobody sees the cells, one set of weights serves all
of them, and the mean of w given x differs from cell to cell: mu_cx. Rows of a value are dealt without replacement, so
this part of the variance, sum_c s_cx mu_cx^2 - 1[x in S], counts only (f_x - n_x) / (f_x - 1). A normal error of
standard deviation sd has the mean absolute value sqrt(2/pi) sd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deniable.core.channel import Channel
from deniable.core.errors import OptionError
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, Plan
from deniable.core.profile import QuestionProfile
from deniable.mechanisms.variances import value_variances

Floats = npt.NDArray[np.float64]
CHUNK = 4_000_000  # numbers in one array of questions x values
NORMAL_MEAN = float(np.sqrt(2 / np.pi))  # the mean of |Z| for a standard normal Z


def predicted_variance(
    plan: Plan, chosen: npt.ArrayLike, rows: npt.ArrayLike, *, marginal_variance: float | None = None
) -> Floats:
    """The variance of each question's estimated count.

    Args:
        plan: how the table becomes a release.
        chosen: (k, m) indicators: the value set S of each question, in the order of the plan's histogram.
        rows: (k, m) the rows that satisfy the question's public part, by their true value.
        marginal_variance: of each count in the published noisy histogram; when given, estimates are calibrated to it.
    """
    inside = np.atleast_2d(np.asarray(chosen, dtype=np.float64))
    counts = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    m = plan.histogram.m
    if inside.shape[-1] != m or counts.shape[-1] != m:
        raise OptionError(f"A question names {inside.shape[-1]} and {counts.shape[-1]} values; the plan has {m}.")
    each, whole = row_variances(plan, inside), plan.histogram.counts
    drawn: Floats = (each.within * counts).sum(-1)
    of_rows: Floats = np.maximum(drawn + (each.dealt * _dealt(counts, whole)).sum(-1), 0.0)
    if marginal_variance is None:
        return of_rows
    return calibrated_variance(of_rows, each.of_table(whole), marginal_variance * inside.sum(-1), drawn)


def pool_variance(plan: Plan, profile: QuestionProfile, *, marginal_variance: float | None = None) -> Floats:
    """The variance of every question of a pool: the same, for many conditions and value sets at once."""
    asked, whole = profile.in_order(plan.histogram.domain), plan.histogram.counts
    step = max(CHUNK // asked.sets.shape[1], 1)
    parts = []
    for start in range(0, len(asked.sets), step):
        some = asked.sets[start : start + step].astype(np.float64)
        each = row_variances(plan, some)
        drawn = asked.by_value @ each.within.T
        of_rows = np.maximum(drawn + _dealt(asked.by_value, whole) @ each.dealt.T, 0.0)
        if marginal_variance is not None:
            of_rows = calibrated_variance(of_rows, each.of_table(whole), marginal_variance * some.sum(-1), drawn)
        parts.append(of_rows)
    return asked.pick(np.concatenate(parts, axis=1))


def _dealt(rows: Floats, whole: npt.NDArray[np.int64]) -> Floats:
    """n_x (f_x - n_x) / (f_x - 1): how much of the variance of dealing is left in n_x of f_x rows."""
    left: Floats = rows * np.maximum(whole - rows, 0.0) / np.maximum(whole - 1, 1)
    return left


def calibrated_variance(
    of_rows: npt.ArrayLike, of_table: npt.ArrayLike, noise: npt.ArrayLike, drawn: npt.ArrayLike | None = None
) -> Floats:
    """V_R - C beta, beta = C / (V_T + v): what calibration to the published histogram leaves (SPEC 8).

    C, the covariance with the table's estimate, is V_R; but for the part by dealing, which the table as a whole does
    not have: ``drawn`` is V_R without it.

    >>> float(calibrated_variance(50.0, 100.0, 0.0)), float(calibrated_variance(50.0, 100.0, 0.0, drawn=40.0))
    (25.0, 34.0)
    """
    v_r, total = np.asarray(of_rows, dtype=np.float64), np.asarray(of_table, dtype=np.float64) + np.asarray(noise)
    shared = v_r if drawn is None else np.clip(np.asarray(drawn, dtype=np.float64), 0.0, v_r)
    beta = np.divide(shared, total, out=np.zeros(np.broadcast_shapes(v_r.shape, total.shape)), where=total > 0)
    left: Floats = v_r - shared * np.minimum(beta, 1.0)
    return left


def predicted_error(variance: npt.ArrayLike) -> Floats:
    """The mean absolute error of an unbiased normal estimate: sqrt(2/pi) sd."""
    error: Floats = NORMAL_MEAN * np.sqrt(np.maximum(np.asarray(variance, dtype=np.float64), 0.0))
    return error


def predicted_relative_error(
    plan: Plan,
    histogram: Histogram,
    selectivities: Sequence[float] = (0.001, 0.005, 0.01),
    *,
    marginal_variance: float | None = None,
) -> Floats:
    """The mean relative error of counts at each selectivity, if public columns tell nothing about the value.

    A question of selectivity a about value x takes the share q = a / pi_x of all rows, so V_R = V_T q, and q (1 - q) of
    what dealing adds. The mean is over the values with pi_x >= a; it is nan where there is none. ``histogram`` may
    differ from the planned counts.
    """
    counts = histogram.counts.astype(np.float64)
    n = counts.sum()
    of_table, dealt = _value_variances(plan, counts)
    errors = []
    for a in selectivities:
        asked = counts >= a * n
        share = a * n / counts[asked]
        drawn = of_table[asked] * share
        variance = drawn + dealt[asked] * share * (1 - share)
        if marginal_variance is not None:
            variance = calibrated_variance(variance, of_table[asked], marginal_variance, drawn)
        errors.append(float(predicted_error(variance).mean()) / (a * n) if asked.any() else np.nan)
    return np.array(errors)


def _value_variances(plan: Plan, counts: Floats) -> tuple[Floats, Floats]:
    """The variance of every single value's count over the whole table, and what dealing adds in a part of it.

    O(m) where a row's cell is known; a hidden grouping has one dense channel for all, taken some values at a time.
    """
    m = plan.histogram.m
    of_table, dealt = np.zeros(m), np.zeros(m)
    if plan.cells_published or len(plan.cells) == 1:
        for cell in plan.cells:
            places = plan.positions(cell)
            of_table[places] += _channel_variances(cell.channel, counts[places] * _shares(plan, cell))
        return np.maximum(of_table, 0.0), dealt
    per_row = counts**2 / np.maximum(counts - 1, 1)
    for some in _slices(m):
        each = row_variances(plan, np.eye(some.stop - some.start, m, some.start))
        of_table[some], dealt[some] = each.of_table(counts), np.maximum(each.dealt @ per_row, 0.0)
    return of_table, dealt


def _channel_variances(channel: Channel, rows: Floats) -> Floats:
    """``value_variances``; value by value where a coin is 0, which its closed form divides by."""
    if channel.keep.all():
        return value_variances(channel.coins, channel.replacing, rows)
    found, observed = np.zeros(channel.m), channel.apply(rows)
    for some in _slices(channel.m):
        weights = channel.weights(np.eye(some.stop - some.start, channel.m, some.start))
        found[some] = weights**2 @ observed - rows[some]
    return found


def _slices(m: int) -> list[slice]:
    step = max(CHUNK // m, 1)
    return [slice(start, min(start + step, m)) for start in range(0, m, step)]


class RowVariances(NamedTuple):
    """What one row of value x adds to the variance of the count of each value set, [sets, m]: by its draw, and by the
    cell that it is dealt to where nobody sees the cell."""

    within: Floats
    dealt: Floats

    def of_table(self, counts: npt.NDArray[Any]) -> Floats:
        """Of the count over the whole table, where all rows of a value are dealt as planned."""
        whole: Floats = np.maximum(self.within @ counts, 0.0)
        return whole


def row_variances(plan: Plan, sets: Floats) -> RowVariances:
    """Each row's part in the variance."""
    if not plan.cells_published and len(plan.cells) > 1:
        return _unpublished(plan, sets)
    squares = np.zeros(sets.shape)
    for cell in plan.cells:
        places = plan.positions(cell)
        weights = cell.channel.weights(sets[:, places])
        squares[:, places] += cell.channel.expected(weights**2) * _shares(plan, cell)
    return RowVariances(squares - sets, np.zeros(sets.shape))


def _unpublished(plan: Plan, sets: Floats) -> RowVariances:
    """One channel for all, P[y][x] = sum_c s_cx P_c[y][x], and its weights."""
    m = plan.histogram.m
    mixed = np.zeros((m, m))
    for cell in plan.cells:
        places = plan.positions(cell)
        mixed[np.ix_(places, places)] += cell.channel.matrix() * _shares(plan, cell)
    empty = np.flatnonzero(plan.histogram.counts == 0)
    mixed[:, empty] = 0.0
    mixed[empty, empty] = 1.0
    try:
        weights = np.linalg.solve(mixed.T, sets.T).T
    except np.linalg.LinAlgError:
        raise OptionError(
            f"The error of mechanism {plan.mechanism!r} cannot be predicted: its channel cannot be inverted."
        ) from None
    means = np.zeros(sets.shape)  # sum_c s_cx mu_cx^2
    for cell in plan.cells:
        places = plan.positions(cell)
        means[:, places] += cell.channel.expected(weights[:, places]) ** 2 * _shares(plan, cell)
    means[:, empty] = sets[:, empty]
    return RowVariances(weights**2 @ mixed - means, means - sets)


def _shares(plan: Plan, cell: Cell) -> Floats:
    """The share of each value's rows that a cell takes; a value without rows is in its cells equally little."""
    whole = plan.histogram.counts[plan.positions(cell)]
    shares: Floats = np.divide(cell.rows.counts, whole, out=np.zeros(len(whole)), where=whole > 0)
    if len(plan.cells) == 1:
        shares[whole == 0] = 1.0
    return shares
