"""Local suppression: blank out single values so that every combination of some columns has k rows or more.

Rows in combinations that are too small lose one value at a time: first the column whose loss lets most of them join
enough others, and only for those rows. Rows that nothing helps lose the column with the most different values among
them, and are looked at again. Missing is a value like any other, so blanked rows are alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from deniable.audit.exposure import combined
from deniable.core.arrays import Bools, Codes, Ints
from deniable.core.errors import OptionError, counted


def suppressed_to_k(columns: Mapping[str, tuple[Codes, int]], k: int) -> dict[str, Bools]:
    """Which values to blank out, for each column.

    Args:
        columns: for each column its codes, and the code that stands for missing.
        k: how many rows a combination must have.
    """
    names = list(columns)
    codes = [columns[name][0].astype(np.int64) for name in names]
    blanks = [columns[name][1] for name in names]
    rows = len(codes[0]) if codes else 0
    if k < 2 or rows < k:
        raise OptionError(
            f"{counted(rows, 'row')} cannot be made alike in groups of {k:,}. Fix: k from 2 to the number of rows."
        )
    while (risky := _risky(codes, k)).any():
        if not _one_value(codes, blanks, risky, k):
            _everyone(codes, blanks, risky, k)
    original = [columns[name][0] for name in names]
    return {name: now != before for name, now, before in zip(names, codes, original, strict=True)}


def _risky(codes: Sequence[Ints], k: int) -> Bools:
    group = combined(codes, len(codes[0]))
    small: Bools = (np.bincount(group) < k)[group]
    return small


def _one_value(codes: list[Ints], blanks: Sequence[int], risky: Bools, k: int) -> bool:
    """Blank the column that helps most rows, in those rows; False where none helps any."""
    helped, best = np.zeros(0, bool), -1
    for place, blank in enumerate(blanks):
        tried = [*codes[:place], np.where(risky, blank, codes[place]), *codes[place + 1 :]]
        now = risky & ~_risky(tried, k) & (codes[place] != blank)
        if now.sum() > helped.sum():
            helped, best = now, place
    if best < 0:
        return False
    codes[best] = np.where(helped, blanks[best], codes[best])
    return True


def _everyone(codes: list[Ints], blanks: Sequence[int], risky: Bools, k: int) -> None:
    """Blank the column with the most different values in all rows that are left; rows without any take others along."""
    different = [
        len(np.unique(one[risky])) if (one[risky] != blank).any() else 0
        for one, blank in zip(codes, blanks, strict=True)
    ]
    worst = int(np.argmax(different))
    if different[worst]:
        codes[worst] = np.where(risky, blanks[worst], codes[worst])
        return
    group = combined(codes, len(codes[0]))
    sizes = np.bincount(group)
    smallest = int(np.argmin(np.where(sizes < k, np.iinfo(np.int64).max, sizes)))
    for place, blank in enumerate(blanks):
        codes[place] = np.where(group == smallest, blank, codes[place])
