"""Swapping among n rows, exactly (mathematics 6, 13.11).

Each row keeps its value by a coin p; the others' values are permuted among themselves. A row that no coin keeps has K
companions, K binomial, and draws its own value with 1 / (K + 1), so that it ends with its own value with

    q = p + (1 - p) E[1 / (K + 1)] = p + (1 - p^n) / n

and else with the value of any of the n - 1 other rows alike. In terms of the column's histogram f / n that is

    P = p' I + (1 - p') (f / n) 1^T,    p' = (n q - 1) / (n - 1) = p (n - p^(n-1)) / (n - 1)

the channel of a coin p' > p: Lemma 1 holds with p', and with p only as n grows. By the symmetry of the rows all of them
together tell no more about one row than its own published value does.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from deniable.core.errors import InternalError
from deniable.core.exact import SCALE

MOST_EXACT = 4096  # rows; for more p^(n-1) is left out, which makes the coin larger than it is


@lru_cache(maxsize=64)  # exact numbers of many digits, and a guarantee asks for the same one many times
def swapping_coin(keep: int, rows: int) -> Fraction:
    """p', the coin that swapping among so many rows comes to; never below it.

    >>> swapping_coin(SCALE // 2, 2), float(swapping_coin(SCALE // 2, 20))
    (Fraction(3, 4), 0.5263157392802992)
    """
    if rows < 1 or not 0 <= keep <= SCALE:
        raise InternalError(f"a coin of {keep} among {rows} rows")
    if rows == 1:
        return Fraction(1)
    coin = Fraction(keep, SCALE)
    last = coin ** (rows - 1) if rows <= MOST_EXACT else 0
    return min(coin * (rows - last) / (rows - 1), Fraction(1))


def swapping_threshold(limit: Fraction, rows: int) -> int:
    """The largest coin, out of 2^32, that among so many rows comes to less than ``limit``; it grows with the coin."""
    low, high = 0, SCALE  # at 0 it is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if swapping_coin(middle, rows) < limit else (low, middle)
    return low
