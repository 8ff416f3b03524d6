"""The error of a question before anything is published, in closed form (mathematics 8)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from deniable.core.channels import Channel
from deniable.core.errors import OptionError
from deniable.core.histogram import SELECTIVITIES, Histogram, QuestionProfile
from deniable.core.plan import Cell, Plan
from deniable.core.values import Floats, Ints, percent
from deniable.estimation.model.lineups import LineUpStates
from deniable.estimation.model.tensor import SINGULAR
from deniable.mechanisms.decoys import full_channel
from deniable.mechanisms.one_cell import value_variances
from deniable.planning.outlook import learned_error
from deniable.planning.pools import QuestionPool

# -- How far answers are off: relative to the truth, averaged by the size of the question, and spread over draws -------


def relative_error(estimates: npt.ArrayLike, truth: npt.ArrayLike) -> Floats:
    """|est - act| / act for every question; not a number where act = 0 (SDR 6.1)."""
    act = np.asarray(truth, dtype=np.float64)
    return relative_to(np.abs(np.asarray(estimates, dtype=np.float64) - act), act)


def relative_to(errors: Floats, truth: Floats) -> Floats:
    """Absolute errors as shares of the true answers; not a number where the truth is 0."""
    shares: Floats = np.divide(errors, truth, out=np.full(errors.shape, np.nan), where=truth > 0)
    return shares


def mean_between(errors: Floats, truth: Floats, low: float, high: float = np.inf) -> float:
    """The mean error of the questions whose true answer is in [low, high); not a number where there is none."""
    inside = (truth >= low) & (truth < high) & ~np.isnan(errors)
    return float(errors[inside].mean()) if inside.any() else float("nan")


@dataclass(frozen=True)
class Spread:
    """A mean over draws, their standard deviation, and how many there were."""

    mean: float
    deviation: float
    draws: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.deviation:.3f}" if self.draws > 1 else f"{self.mean:.3f}"


def spread(numbers: Iterable[float]) -> Spread:
    """Mean and standard deviation over draws.

    >>> spread([1.0, 3.0])
    Spread(mean=2.0, deviation=1.4142135623730951, draws=2)
    """
    known = np.array([number for number in numbers if not np.isnan(number)])
    if not len(known):
        return Spread(float("nan"), float("nan"), 0)
    return Spread(float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else 0.0, len(known))


def spreads(rows: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """The spread of every number that draws report under the same name."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: spread(row[name] for row in rows if name in row) for name in names}


# -- The estimate that needs no release: what the public columns and the column's distribution say by themselves -------
#     N_R f_x / n                                                                                     (mathematics 5, 9)
#
# It is the honest zero of every comparison: an estimate that is not better teaches nothing about how the sensitive
# column and the public ones belong together. Redrawn values (DBR) say just this, with the noise of their draws on top.


def independence(rows: npt.ArrayLike, counts: npt.ArrayLike, sets: npt.ArrayLike) -> Floats:
    """Answers [conditions, sets]: rows of each condition, the histogram, and value sets [sets, m].

    >>> independence([10.0], [3, 1], [[True, False], [False, True]]).tolist()
    [[7.5, 2.5]]
    """
    histogram = np.asarray(counts, dtype=np.float64)
    share = np.asarray(sets, dtype=np.float64) @ (histogram / max(histogram.sum(), 1.0))
    answers: Floats = np.outer(np.asarray(rows, dtype=np.float64), share)
    return answers


class IndependenceMoments:
    """Independence has a bias and no variance; there is none either where the columns tell nothing about each other."""

    def variance_per_row(self, share: Floats, question: Floats) -> Floats:
        return np.zeros(share.shape)

    def moments(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        answers = independence(pool.condition_rows, pool.table.histogram.counts, pool.sets)
        return answers - pool.true_answers, np.zeros(answers.shape)


class RedrawMoments:
    """N_R values redrawn from f/n: Var = N_R pi_x (1 - pi_x)."""

    def variance_per_row(self, share: Floats, question: Floats) -> Floats:
        return 1 - share

    def moments(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        answers = independence(pool.condition_rows, pool.table.histogram.counts, pool.sets)
        share = answers / np.maximum(pool.condition_rows, 1.0)[:, None]
        return answers - pool.true_answers, answers * (1 - share)


# -- The error of a question before anything is published, in closed form (mathematics 8, "Weights") -------------------
# The estimate of a count is a sum of weights w(y) over the question's rows, with E[w | x] = 1[x in S] in every cell.
# Rows are perturbed independently, and a row of value x falls into cell c with the planned share s_cx, so
#
#     Var = sum_x n_x ( sum_c s_cx sum_y P_c[y][x] w_c(y)^2  -  1[x in S] )
#
# where n_x is the number of the question's rows with value x. Where nobody sees the cells, one set of weights serves
# all of them, and the mean of w given x differs from cell to cell: mu_cx. Rows of a value are dealt without
# replacement, so this part of the variance, sum_c s_cx mu_cx^2 - 1[x in S], counts only (f_x - n_x) / (f_x - 1). A
# normal error of standard deviation sd has the mean absolute value sqrt(2/pi) sd.


CHUNK = 4_000_000  # numbers in one array of questions x values
NORMAL_MEAN = float(np.sqrt(2 / np.pi))  # the mean of |Z| for a standard normal Z


def pool_variance(plan: Plan, profile: QuestionProfile, *, marginal_variance: float | None = None) -> Floats:
    """The variance of the estimated count of every question of a pool.

    Args:
        plan: how the table becomes a release.
        profile: the questions, as the true rows of their conditions and their value sets.
        marginal_variance: of each count in the published noisy histogram; when given, estimates are calibrated to it.
    """
    questions, whole = profile.in_order(plan.histogram.domain), plan.histogram.counts
    step = max(CHUNK // questions.sets.shape[1], 1)
    parts = []
    for start in range(0, len(questions.sets), step):
        some = questions.sets[start : start + step].astype(np.float64)
        per_row = row_variances(plan, some)
        drawn = questions.by_value @ per_row.within.T
        of_rows = np.maximum(drawn + _dealt(questions.by_value, whole) @ per_row.dealt.T, 0.0)
        if marginal_variance is not None:
            of_rows = calibrated_variance(of_rows, per_row.of_table(whole), marginal_variance * some.sum(-1), drawn)
        parts.append(of_rows)
    return questions.pick(np.concatenate(parts, axis=1))


def _dealt(rows: Floats, whole: Ints) -> Floats:
    """n_x (f_x - n_x) / (f_x - 1): how much of the variance of dealing is left in n_x of f_x rows."""
    left: Floats = rows * np.maximum(whole - rows, 0.0) / np.maximum(whole - 1, 1)
    return left


def calibrated_variance(
    of_rows: npt.ArrayLike, of_table: npt.ArrayLike, noise: npt.ArrayLike, drawn: npt.ArrayLike | None = None
) -> Floats:
    """V_R - C beta, beta = C / (V_T + v): what calibration to the published histogram leaves (mathematics 8).

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
        frequent = counts >= a * n
        share = a * n / counts[frequent]
        drawn = of_table[frequent] * share
        variance = drawn + dealt[frequent] * share * (1 - share)
        if marginal_variance is not None:
            variance = calibrated_variance(variance, of_table[frequent], marginal_variance, drawn)
        errors.append(float(predicted_error(variance).mean()) / (a * n) if frequent.any() else np.nan)
    return np.array(errors)


def _value_variances(plan: Plan, counts: Floats) -> tuple[Floats, Floats]:
    """The variance of every single value's count over the whole table, and what dealing adds in a part of it.

    O(m) where a row's cell is known; a hidden grouping has one dense channel for all, taken some values at a time;
    line-ups have sums over their sets.
    """
    m, design = plan.histogram.m, plan.parts[0].lineups
    of_table, dealt = np.zeros(m), np.zeros(m)
    if design is not None:
        states = LineUpStates(design)
        of_table = states.squares(states.shown(counts[None]))[0] - counts
        return np.maximum(of_table, 0.0), dealt
    if plan.cells_published or len(plan.cells) == 1:
        for cell in plan.cells:
            places = plan.positions(cell)
            of_table[places] += _channel_variances(cell.channel, counts[places] * _shares(plan, cell))
        return np.maximum(of_table, 0.0), dealt
    per_row = counts**2 / np.maximum(counts - 1, 1)
    for some in _slices(m):
        single = row_variances(plan, np.eye(some.stop - some.start, m, some.start))
        of_table[some], dealt[some] = single.of_table(counts), np.maximum(single.dealt @ per_row, 0.0)
    return of_table, dealt


def _channel_variances(channel: Channel, rows: Floats) -> Floats:
    """``value_variances``; value by value where a coin is 0, which its closed form divides by."""
    if channel.keep.all():
        return value_variances(channel.coins, channel.replacing, rows)
    variances, observed = np.zeros(channel.m), channel.apply(rows)
    for some in _slices(channel.m):
        weights = channel.weights(np.eye(some.stop - some.start, channel.m, some.start))
        variances[some] = weights**2 @ observed - rows[some]
    return variances


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
    design = plan.parts[0].lineups
    if design is not None:
        return RowVariances(_of_lineups(LineUpStates(design), sets), np.zeros(sets.shape))
    if not plan.cells_published and len(plan.cells) > 1:
        return _unpublished(plan, sets)
    squares = np.zeros(sets.shape)
    for cell in plan.cells:
        places = plan.positions(cell)
        weights = cell.channel.weights(sets[:, places])
        squares[:, places] += cell.channel.expected(weights**2) * _shares(plan, cell)
    return RowVariances(squares - sets, np.zeros(sets.shape))


def _of_lineups(states: LineUpStates, sets: Floats) -> Floats:
    """E[w(S)^2 | x] - 1[x in A], some value sets at a time."""
    step = max(CHUNK // states.count, 1)
    parts = [states.expected(states.weights(some.astype(bool)) ** 2) for some in _in_steps(sets, step)]
    variances: Floats = np.concatenate(parts) - sets
    return variances


def _in_steps(sets: Floats, step: int) -> list[Floats]:
    return [sets[start : start + step] for start in range(0, len(sets), step)]


def _unpublished(plan: Plan, sets: Floats) -> RowVariances:
    """One channel for all, P[y][x] = sum_c s_cx P_c[y][x], and its weights; empty values as if they were kept."""
    mixed = full_channel(dataclasses.replace(plan.parts[0], left_out=None))
    empty = np.flatnonzero(plan.histogram.counts == 0)
    mixed[empty, empty] = 1.0
    if not np.linalg.cond(mixed, 1) < SINGULAR:
        raise OptionError(
            f"The error of mechanism {plan.mechanism!r} cannot be predicted: some values cannot be told apart in its "
            "channel, which has no inverse. Fix: other groups, or another mechanism."
        )
    weights = np.linalg.solve(mixed.T, sets.T).T
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


# -- What the planner predicts errors for: counts by their selectivity, or a pool of someone's own questions -----------
# Mechanisms with channels are unbiased, and their error follows from the variance (``prediction``). Rivals are not:
# where an answer has a bias b and a variance v, its mean absolute error is that of a normal number,
#
#     E|N(b, v)| = sqrt(2v/pi) exp(-b^2 / 2v) + b (1 - 2 Phi(-b / sqrt v))


Errors = tuple[float, ...]
LAPLACE_QUESTIONS = 100  # that a budget is divided among, where no pool says how many there are


class Moments(Protocol):
    """A way to answer without channels: how far off it is on average, and how much that varies."""

    def variance_per_row(self, share: Floats, question: Floats, /) -> Floats:
        """An answer's variance divided by the truth, from the values' shares and the questions' shares of their rows.

        For questions whose public columns tell nothing about the value, where there is no bias.
        """
        ...

    def moments(self, pool: QuestionPool, /) -> tuple[Floats, Floats]:
        """Bias and variance of every answer to a pool, [conditions, sets]."""
        ...


class Profile(Protocol):
    """Questions by size, and the predicted mean relative error of each mechanism's answers to them."""

    @property
    def selectivities(self) -> tuple[float, ...]: ...

    @property
    def questions(self) -> int:
        """How many questions a budget has to pay for."""
        ...

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """How many questions each selectivity takes; None where it stands for all that could be asked.

        Only questions that are known show a bias.
        """
        ...

    def channels(self, plan: Plan, marginal_variance: float | None) -> Errors: ...

    def errors_of(self, answering: Moments) -> Errors:
        """Of answers that may be biased."""
        ...

    def noise(self, mean: float) -> Errors:
        """Of answers whose noise has this mean absolute value."""
        ...

    def learned(self, columns: int, epsilon: float) -> Errors:
        """Of a model that is learned from tables of so many public columns."""
        ...

    def in_words(self, share: float) -> str:
        """Which questions a selectivity stands for."""
        ...


@dataclass(frozen=True)
class BySelectivity:
    """Counts about a share a of all rows, if public columns tell nothing about the value (the planner's assumption).

    A question about x takes the share q = a n / f_x of the rows of every value. Rivals that assume just this have no
    bias here; on real questions they do, which a pool shows.
    """

    histogram: Histogram
    selectivities: tuple[float, ...] = SELECTIVITIES
    questions: int = LAPLACE_QUESTIONS

    @property
    def sizes(self) -> None:
        return None

    def channels(self, plan: Plan, marginal_variance: float | None) -> Errors:
        errors = predicted_relative_error(plan, self.histogram, self.selectivities, marginal_variance=marginal_variance)
        return tuple(errors.tolist())

    def errors_of(self, answering: Moments) -> Errors:
        """Mean over the values that are frequent enough of sqrt(2/pi a n v) / (a n), v the variance per row."""
        means = []
        for a in self.selectivities:
            share = self.histogram.relative[self.histogram.relative >= a]
            errors = NORMAL_MEAN * np.sqrt(answering.variance_per_row(share, a / share) / (a * self.histogram.rows))
            means.append(float(errors.mean()) if len(share) else math.nan)
        return tuple(means)

    def noise(self, mean: float) -> Errors:
        largest = float(self.histogram.relative.max())
        return tuple(mean / (a * self.histogram.rows) if a <= largest else math.nan for a in self.selectivities)

    def learned(self, columns: int, epsilon: float) -> Errors:
        rows, largest = self.histogram.rows, float(self.histogram.relative.max())
        errors = [learned_error(a * rows, columns, epsilon) if a <= largest else math.nan for a in self.selectivities]
        return tuple(errors)

    def in_words(self, share: float) -> str:
        return f"at {percent(share, 2)} of the rows"


@dataclass(frozen=True, eq=False)
class ByPool:
    """A pool's own questions, by their true size; a selectivity of 0 takes all that have an answer above 0."""

    pool: QuestionPool
    selectivities: tuple[float, ...] = (0.0, *SELECTIVITIES)

    @property
    def questions(self) -> int:
        return len(self.pool)

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.pool.sizes(self.selectivities)

    def channels(self, plan: Plan, marginal_variance: float | None) -> Errors:
        variance = pool_variance(plan, self.pool.profile, marginal_variance=marginal_variance)
        return self._by_size(predicted_error(variance))

    def errors_of(self, answering: Moments) -> Errors:
        bias, variance = answering.moments(self.pool)
        return self._by_size(folded_mean(self.pool.pick(bias), self.pool.pick(variance)))

    def noise(self, mean: float) -> Errors:
        return self._by_size(np.full(len(self.pool), mean))

    def learned(self, columns: int, epsilon: float) -> Errors:
        truth = self.pool.truth
        return self._by_size(np.array([count * learned_error(max(count, 1), columns, epsilon) for count in truth]))

    def in_words(self, share: float) -> str:
        return f"where the answer is {percent(share, 2)} of the rows or more" if share else "over the whole pool"

    def _by_size(self, errors: Floats) -> Errors:
        truth, rows = self.pool.truth, self.pool.table.rows
        relative = relative_to(errors, truth)
        return tuple(mean_between(relative, truth, share * rows) for share in self.selectivities)


def folded_mean(bias: Floats, variance: Floats) -> Floats:
    """E|N(b, v)|.

    >>> folded_mean(np.array([3.0, 0.0]), np.array([0.0, 1.0])).round(4).tolist()
    [3.0, 0.7979]
    """
    sd = np.sqrt(np.maximum(variance, 0.0))
    z = np.abs(np.divide(bias, sd, out=np.full(np.shape(bias), np.inf), where=sd > 0))
    inside = np.array([math.erf(number / math.sqrt(2)) for number in z.ravel()]).reshape(np.shape(z))
    mean: Floats = sd * NORMAL_MEAN * np.exp(-np.minimum(z**2, 1400) / 2) + np.abs(bias) * inside
    return mean


def profile_of(
    histogram: Histogram, pool: QuestionPool | None = None, selectivities: Sequence[float] | None = None
) -> Profile:
    """A pool's questions where there is a pool, else counts by selectivity."""
    if pool is not None:
        return ByPool(pool) if selectivities is None else ByPool(pool, tuple(selectivities))
    return BySelectivity(histogram) if selectivities is None else BySelectivity(histogram, tuple(selectivities))
