"""How many rows a share needs: the paper's figure, the certain one, and the one that is planned with."""

from __future__ import annotations

import math

import numpy as np
import pytest

import deniable as dn


def test_the_theorem_is_the_papers_and_the_others_are_sharper() -> None:
    needed = dn.rows_needed(0.2, 0.01)
    assert needed.theorem == math.ceil(4 * math.log(2 / 0.05) / (0.2 * 0.01) ** 2)
    assert needed.variance < needed.certain < needed.theorem
    assert needed.certain == pytest.approx(needed.theorem / 8, abs=1)


@pytest.mark.parametrize(
    ("coins", "masses"), [([0.5], [0.3]), ([0.5], None), ([0.4, 0.8], [0.2, 0.5]), ([0.9], [0.01])]
)
def test_so_many_rows_are_enough_and_not_many_fewer(coins: list[float], masses: list[float] | None) -> None:
    """Simulated at the worst state: misses of 5 % at most, with 20,000 draws; at 5 % more error visibly fewer."""
    error, draws = 0.05, 20_000
    needed = dn.rows_needed(coins, error, masses=masses)
    rng = np.random.default_rng(4)
    worst = 0.0
    b = masses or [0.0 if p > 0.5 else (0.5 - p) / (1 - p) for p in coins]
    for state in range(2 ** len(coins)):
        bits = [(state >> place) & 1 for place in range(len(coins))]
        chance = [p * bit + (1 - p) * mass for p, bit, mass in zip(coins, bits, b, strict=True)]
        patterns = [[(pattern >> place) & 1 for place in range(len(coins))] for pattern in range(2 ** len(coins))]
        odds = [
            math.prod(c if shown else 1 - c for c, shown in zip(chance, pattern, strict=True)) for pattern in patterns
        ]
        weights = [
            math.prod((shown - (1 - p) * mass) / p for shown, p, mass in zip(pattern, coins, b, strict=True))
            for pattern in patterns
        ]
        counts = rng.multinomial(needed.variance, odds, draws)
        off = np.abs(counts @ np.array(weights) / needed.variance - all(bits))
        worst = max(worst, float(np.mean(off > error)))
    # 5 % has a standard error of 0.15 %; lattice points may add or take a little.
    assert 0.035 < worst < 0.05 + 5 * 0.0016 + 0.005


def test_more_columns_and_smaller_coins_need_more() -> None:
    one, two = dn.rows_needed(0.5, 0.01), dn.rows_needed([0.5, 0.5], 0.01)
    assert two.theorem is None
    assert two.variance > one.variance
    assert two.certain > one.certain
    assert dn.rows_needed(0.25, 0.01).variance > one.variance
    assert dn.rows_needed(1, 0.01).variance == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: dn.rows_needed(0, 0.01),
        lambda: dn.rows_needed(0.5, 0),
        lambda: dn.rows_needed([], 0.01),
        lambda: dn.rows_needed([0.5, 0.5], 0.01, masses=[0.1]),
        lambda: dn.rows_needed(0.5, 0.01, masses=1.5),
        lambda: dn.rows_needed(0.5, 0.01, confidence=1),
        lambda: dn.rows_needed("half", 0.01),
    ],
)
def test_what_makes_no_sense_is_refused(call: object) -> None:
    with pytest.raises(dn.DeniableError, match="not allowed"):
        call()  # type: ignore[operator]
