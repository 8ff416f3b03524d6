"""Constrained maximum likelihood: counts that are never negative and add up to N (mathematics 8).

It is the fixed point of the iterative Bayesian rule, but needs no iteration over counts. For P = diag(p) + r (1-p)^T
let g = P f be the expected published counts, t = sum (1-p) f the replaced rows and u = sum o r / g. The conditions of
Karush, Kuhn and Tucker then read

    p_y f_y = max(0, a_y - r_y t),    a_y = o_y p_y / (1 - (1-p_y) u),    sum g = sum f = N

so two numbers decide everything. With one coin for all values t = (1-p) N is known and a is o up to a factor: a sort
and one scan (for the uniform channel, f_i = max(0, o_i/lambda - qN/p)). Otherwise t follows from u by a sort and a
scan, and sum f grows with u: a bracketing search in one number, for a whole batch at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from deniable.core.channels import Channel
from deniable.estimation.model.fixed_point import squarem
from deniable.estimation.model.lineups import LineUpStates
from deniable.estimation.model.states import States
from deniable.estimation.published import Floats

SEARCH_STEPS = 120
BAYESIAN_STEPS, TOLERANCE = 3000, 1e-12
SMALL = 2**12  # entries of a channel; fewer are multiplied as they are
SPARSE = 0.2  # the share of entries that are not zero from which skipping the others costs more than it saves


def likelihood_counts(states: States | LineUpStates, counts: Floats) -> Floats:
    """The maximum likelihood histogram of each row of counts by state: [questions, states] -> [questions, m].

    Cells are estimated on their own and added up.
    """
    if isinstance(states, LineUpStates):
        return states.likely(counts)
    fitted = np.zeros((len(counts), states.m))
    if states.mixture is not None:
        return bayesian(states.mixture, counts)
    for channel, positions, part in zip(states.channels, states.positions, states.slices, strict=True):
        fitted[:, positions] += most_likely(channel, counts[:, part])
    return fitted


def most_likely(channel: Channel, observed: Floats) -> Floats:
    """The maximum likelihood histograms [questions, m] for observed counts of one channel."""
    rows = observed.sum(axis=1, keepdims=True)
    share = observed / np.maximum(rows, 1.0)
    p, r = channel.coins, channel.replacing
    if not channel.invertible:
        shares = np.broadcast_to(r, share.shape) if (channel.keep == 0).all() else bayesian(channel.matrix(), share)
    elif (channel.keep == channel.keep[0]).all():
        shares = one_coin(float(p[0]), r, share)
    else:
        shares = many_coins(p, r, share)
    return shares * rows


def one_coin(p: float, r: Floats, o: Floats) -> Floats:
    """p f_y = max(0, a o_y - r_y t) with t = 1-p: values enter by decreasing o/r until the next would be negative."""
    t = 1 - p
    order = np.argsort(-_ratio(o, r), axis=1, kind="stable")
    sorted_o, sorted_r = np.take_along_axis(o, order, 1), r[order]
    inside_o, inside_r = np.cumsum(sorted_o, axis=1), np.cumsum(sorted_r, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = (p + t * inside_r) / inside_o
        enters = factor * sorted_o > sorted_r * t
    last = np.maximum(enters.sum(axis=1, keepdims=True) - 1, 0)
    chosen = np.take_along_axis(factor, last, 1)
    chosen = np.where(np.isfinite(chosen), chosen, 0.0)
    return np.maximum(0.0, chosen * o - r * t) / p


def many_coins(p: Floats, r: Floats, o: Floats) -> Floats:
    """Search u between 0 and 1 / (1 - min p) for sum f = 1; at the upper end the least kept value takes the rest."""
    least = int(np.argmin(p))
    top = 1 / (1 - p[least])
    low, high = np.zeros((len(o), 1)), np.full((len(o), 1), top)
    for _ in range(SEARCH_STEPS):
        middle = (low + high) / 2
        if ((middle == low) | (middle == high)).all():
            break
        short = _given_u(p, r, o, middle).sum(axis=1, keepdims=True) < 1
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    f = _given_total(p, r, _above(p, o, high))
    at_end = (high[:, 0] == top) & (o.sum(axis=1) > 0)
    if at_end.any():
        f[at_end] = _rest_to_one(p, r, o[at_end], least)
    return f


def _above(p: Floats, o: Floats, u: Floats) -> Floats:
    """a_y = o_y p_y / (1 - (1-p_y) u)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        a: Floats = np.where(o * p > 0, o * p / (1 - (1 - p) * u), 0.0)
    return a


def _given_total(p: Floats, r: Floats, a: Floats) -> Floats:
    """f for a given a: t from sum f = 1. Where all counts are positive, sum g = 1 leaves t open: this decides."""
    safe = np.where(p > 0, p, 1.0)
    order = np.argsort(-_ratio(a, r), axis=1, kind="stable")
    sorted_a, sorted_r, sorted_p = np.take_along_axis(a, order, 1), r[order], safe[order]
    inside_a, inside_r = np.cumsum(sorted_a / sorted_p, axis=1), np.cumsum(sorted_r / sorted_p, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(inside_r > 0, np.maximum(inside_a - 1, 0.0) / inside_r, 0.0)
    number = np.maximum((sorted_a > sorted_r * t).sum(axis=1, keepdims=True), 1)
    return np.maximum(0.0, a - r * np.take_along_axis(t, number - 1, 1)) / safe


def _given_u(p: Floats, r: Floats, o: Floats, u: Floats) -> Floats:
    """f for a given u: t from sum over y of max(a_y, r_y t) = 1."""
    a = _above(p, o, u)
    order = np.argsort(-_ratio(a, r), axis=1, kind="stable")
    sorted_a, sorted_r = np.take_along_axis(a, order, 1), r[order]
    left_a, left_r = 1 - np.cumsum(sorted_a, axis=1), np.maximum(1 - np.cumsum(sorted_r, axis=1), 0.0)
    # Value k is above its replacements if t, computed from the values before it, is below a_k / r_k.
    before_a = np.concatenate([np.ones((len(o), 1)), left_a[:, :-1]], axis=1)
    before_r = np.concatenate([np.ones((len(o), 1)), left_r[:, :-1]], axis=1)
    above = sorted_a * before_r > sorted_r * before_a
    number = above.sum(axis=1, keepdims=True)
    rest_a = np.take_along_axis(np.concatenate([before_a, left_a[:, -1:]], axis=1), number, 1)
    rest_r = np.take_along_axis(np.concatenate([before_r, left_r[:, -1:]], axis=1), number, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(rest_r > 0, np.maximum(rest_a, 0.0) / rest_r, 0.0)
    return np.maximum(0.0, a - r * t) / np.where(p > 0, p, 1.0)


def _rest_to_one(p: Floats, r: Floats, o: Floats, least: int) -> Floats:
    """The case u = 1 / (1 - min p): the value with the smallest coin absorbs what the others leave; search t."""
    others = np.arange(len(p)) != least
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(others & (o * p > 0), o * p / (1 - (1 - p) / (1 - p[least])), 0.0)
    safe = np.where(p > 0, p, 1.0)
    low, high = np.zeros((len(o), 1)), np.ones((len(o), 1))
    for _ in range(SEARCH_STEPS):
        t = (low + high) / 2
        f = np.maximum(0.0, a - r * t) / safe
        total = np.maximum(a, r * t).sum(1, keepdims=True) + p[least] * (1 - f.sum(1, keepdims=True))
        low, high = np.where(total < 1, t, low), np.where(total < 1, high, t)
    f = np.maximum(0.0, a - r * low) / safe
    f[:, least] = np.maximum(0.0, 1 - f.sum(axis=1))
    return f


def bayesian(matrix: Floats, observed: Floats) -> Floats:
    """The iterative Bayesian rule with SQUAREM's extrapolation, for channels without structure; batches at once.

    x_p <- x_p sum_q a_qp y_q / (sum_r a_qr x_r)

    Of many values few share groups with each other: what is not there is not multiplied.
    """
    if not len(observed):
        return np.zeros((0, matrix.shape[1]))
    rows = observed.sum(axis=1, keepdims=True)
    x = np.broadcast_to(rows / matrix.shape[1], (len(observed), matrix.shape[1])).copy()
    few = matrix.size > SMALL and np.count_nonzero(matrix) < SPARSE * matrix.size
    forward: Any = csr_array(matrix) if few else matrix
    back: Any = csr_array(matrix.T) if few else matrix.T

    def rule(now: Floats) -> Floats:
        expected = np.maximum((forward @ now.T).T, 1e-300)
        return now * (back @ (observed / expected).T).T

    return squarem(rule, x, BAYESIAN_STEPS, TOLERANCE * max(float(rows.max(initial=1.0)), 1.0))


def _ratio(a: Floats, r: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.where(a > 0, a / r, 0.0)
    return ratio
