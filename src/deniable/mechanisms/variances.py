"""The error that a channel leaves, in closed form: what mechanisms minimise (mathematics 8)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.core.arrays import Floats
from deniable.core.profile import SELECTIVITIES, QuestionProfile


def value_variances(p: Floats, r: Floats, counts: Floats) -> Floats:
    """The exact variance of each value's reconstructed count under one channel, O(m) for all values (mathematics 8).

    Var_x = sum_y o_y w_y^2 - f_x with o = P f and the weights w of the value set {x}.
    """
    s = (r / p) / (1 + (r * (1 - p) / p).sum())
    observed = counts * p + r * (counts * (1 - p)).sum()
    elsewhere = observed * ((1 - p) / p) ** 2
    variances: Floats = observed * ((1 - (1 - p) * s) / p) ** 2 + s**2 * (elsewhere.sum() - elsewhere) - counts
    return variances


def profile_error(p: Floats, r: Floats, counts: Floats, profile: Sequence[float]) -> float:
    """The predicted relative error of counts at the given selectivities, as a geometric mean over the selectivities.

    A question of selectivity a about x takes a/pi_x of the rows, so its variance is Var_x a/pi_x and its error
    sqrt(2/pi) sd / (a n), averaged over the values that are frequent enough to be asked about.
    """
    n = counts.sum()
    share = counts / n
    variances = np.maximum(value_variances(p, r, counts), 0.0)
    occurring = [a for a in profile if (share >= a).any()] or [float(np.median(share))]
    errors = [float(np.sqrt(2 / np.pi * variances / (share * a)).compress(share >= a).mean()) / n for a in occurring]
    return float(np.exp(np.mean(np.log(np.maximum(errors, 1e-300)))))


def pool_error(p: Floats, r: Floats, counts: Floats, profile: QuestionProfile) -> float:
    """The predicted relative error of a pool's own questions, calibrated to the histogram (mathematics 8).

    A row of value x adds p_x w_x^2 + (1-p_x) sum_y r_y w_y^2 - 1[x in S] to the variance of the count of S. The mean is
    taken over the questions of at least each selectivity, and these means geometrically, as in ``profile_error``.
    """
    s = (profile.sets @ (r / p) / (r / p).sum())[:, None]
    squares = ((profile.sets - (1 - p) * s) / p) ** 2
    per_row = p * squares + (1 - p) * (squares @ r)[:, None] - profile.sets
    of_rows, of_table = np.maximum(profile.by_value @ per_row.T, 0.0), np.maximum(per_row @ counts, 1e-300)
    left = of_rows * (1 - np.minimum(of_rows / of_table, 1.0))
    there = profile.truth > 0
    relative = np.sqrt(2 / np.pi * profile.pick(left)[there]) / profile.truth[there]
    limits = np.array(SELECTIVITIES) * counts.sum()
    large = [profile.truth[there] >= limit for limit in limits if (profile.truth >= limit).any()]
    means = [float(relative[some].mean()) for some in large or [np.ones(len(relative), bool)]]
    return float(np.exp(np.mean(np.log(np.maximum(means, 1e-300)))))
