"""How long fine-grain coins take: the exact solver against the linear program as it stands (mathematics 5).

Run with ``python benchmarks/fine_grain.py [largest m for the linear program]``; prints one table.
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from deniable.mechanisms.fine_grain import fine_grain_channel, solve_coins

SIZES = (10, 50, 100, 200, 1_000, 5_000, 15_000)


def by_linear_program(weights: np.ndarray, gammas: np.ndarray) -> float:
    """The best objective over all m (m-1) rows, by HiGHS."""
    m = len(weights)
    i, j = np.nonzero(~np.eye(m, dtype=bool))
    rows = np.arange(len(i))
    entries = np.concatenate([np.full(len(i), m - 1.0), gammas[i]])
    A = coo_array((entries, (np.concatenate([rows, rows]), np.concatenate([i, j])))).tocsr()
    return float(-linprog(-weights, A_ub=A, b_ub=gammas[i] - 1, bounds=(0, 1), method="highs").fun)


def main(largest: int = 100) -> None:
    rng = np.random.default_rng(1)
    print(f"{'m':>7} {'solver s':>10} {'with exact check s':>19} {'linear program s':>17} {'difference':>11}")
    for m in SIZES:
        weights = rng.dirichlet(np.full(m, 0.5))
        gammas = np.round(1 + 10 ** rng.uniform(0, 3, m), 3)
        start = time.perf_counter()
        coins = solve_coins(weights, gammas)
        solver = time.perf_counter() - start
        limits = [Fraction(str(gamma)) for gamma in gammas.tolist()]
        start = time.perf_counter()
        fine_grain_channel(range(m), weights, limits)
        channel = time.perf_counter() - start
        program, difference = "", ""
        if m <= largest:
            start = time.perf_counter()
            objective = by_linear_program(weights, gammas)
            program, difference = f"{time.perf_counter() - start:.3f}", f"{abs(objective - weights @ coins):.1e}"
        print(f"{m:>7,} {solver:>10.4f} {channel:>19.4f} {program:>17} {difference:>11}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
