"""What a cell costs: three objectives for the merge, all functions of a few sums over the cell (mathematics 4).

For a cell of N rows, m values and largest protected count M: rho1 = M/N, gamma - 1 = (rho2-rho1) / (rho1 (1-rho2)),
p = (gamma-1)/(m-1+gamma), q = 1/(m-1+gamma). A cell with rho1 >= rho2 costs infinitely much.

The count of x is estimated by f*_x = (o_x - q N) / p, and o_x is a sum of independent coins, f_x of them with
probability p+q and N-f_x with probability q, so

    Var_x = (f_x (p+q)(1-p-q) + (N-f_x) q (1-q)) / p^2.

Cells are perturbed independently, so the variance of a value's count over the table is the sum over its cells, and
sum_x weight_x Var_x needs only N, m, sum_x weight_x f_x and sum_x weight_x over the values of the cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deniable.core.arrays import Bools, Counts, Floats
from deniable.core.channel import Channel
from deniable.mechanisms import variances

CostName = Literal["variance", "bound", "relative"]
COSTS: tuple[CostName, ...] = ("variance", "bound", "relative")


@dataclass(frozen=True, eq=False)
class Sums:
    """What the costs need to know of candidate cells, one entry per cell.

    Attributes:
        rows: N, the cell's rows.
        peak: M, the largest count of a protected value in the cell.
        values: m, the number of values in the cell.
        mass: sum over the cell's values of weight_x f_x.
        weight: sum over the cell's values of weight_x.
    """

    rows: Floats
    peak: Floats
    values: Floats
    mass: Floats
    weight: Floats


Cost = Callable[[Sums], Floats]


def weights_for(cost: CostName, counts: Counts) -> Floats:
    """weight_x: 1, or 1/f_x^2 for relative errors (f_x the count in the table)."""
    if cost == "relative":
        present = np.maximum(counts, 1).astype(np.float64)
        relative: Floats = 1 / present**2
        return relative
    return np.ones(len(counts))


def cost_named(cost: CostName, *, rho2: float, rows: int, delta: float) -> Cost:
    """The cost of a cell of a table with ``rows`` rows, as a function of its sums."""
    if cost == "bound":
        return lambda sums: error_bound(sums, rho2, rows, delta)
    return lambda sums: weighted_variance(sums, rho2)


def error_bound(sums: Sums, rho2: float, rows: int, delta: float) -> Floats:
    """The paper's cost (SDR Eq. 12): (N/n) a/sqrt(N) (m/(gamma-1) + 1), a = 2 sqrt(ln(2/delta))."""
    a = 2 * math.sqrt(math.log(2 / delta))
    excess, feasible = _gamma_minus_one(sums, rho2)
    cost: Floats = np.where(feasible, np.sqrt(sums.rows) / rows * a * (sums.values / excess + 1), np.inf)
    return cost


def weighted_variance(sums: Sums, rho2: float) -> Floats:
    """sum over the cell's values of weight_x Var_x, in closed form."""
    excess, feasible = _gamma_minus_one(sums, rho2)
    p = excess / (sums.values + excess)
    q = 1 / (sums.values + excess)
    kept, other = (p + q) * (1 - p - q), q * (1 - q)
    cost: Floats = np.where(feasible, (sums.mass * kept + (sums.weight * sums.rows - sums.mass) * other) / p**2, np.inf)
    return cost


def value_variances(counts: Counts, channel: Channel) -> Floats:
    """Var_x for each value of one cell under any channel; infinite when a coin is 0."""
    if not (channel.keep > 0).all():
        return np.full(channel.m, np.inf)
    return variances.value_variances(channel.coins, channel.replacing, counts.astype(np.float64))


def _gamma_minus_one(sums: Sums, rho2: float) -> tuple[Floats, Bools]:
    """gamma - 1, and where rho1 < rho2; a cell within 1e-9 of the limit would have no coin left, so it is over it."""
    rho1 = sums.peak / sums.rows
    feasible = rho1 < rho2 * (1 - 1e-9)
    excess = np.where(feasible, (rho2 - rho1) / (rho1 * (1 - rho2)), 1.0)
    return excess, feasible
