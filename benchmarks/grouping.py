"""What grouping into decoy groups and by Anatomy costs, codes in, codes out: python benchmarks/grouping.py"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.core.histogram import Histogram
from deniable.engines.local.dealing import Dealer
from deniable.engines.local.grouping import anatomy_groups
from deniable.engines.local.kernel import Kernel
from deniable.engines.randomness import Keystream, Secret
from deniable.mechanisms.baselines.anatomy import Anatomy
from deniable.mechanisms.decoys import Decoys

ROWS = 500_000
MANY_ROWS = 20_000_000
BATCH = 2**17


def codes_of(n: int, m: int) -> np.ndarray:
    """Codes whose frequencies fall like 1 / sqrt(rank)."""
    share = np.arange(1, m + 1) ** -0.5
    return np.random.default_rng(1).choice(m, n, p=share / share.sum()).astype(np.uint16)


def decoys(codes: np.ndarray, m: int, c: int, grouping: str) -> np.ndarray:
    """Count, plan, deal and draw, as the local engine does."""
    histogram = Histogram(tuple(range(m)), np.bincount(codes, minlength=m))
    plan = Decoys(c=c, leftovers="drop", grouping=grouping).plan(histogram, None)  # type: ignore[arg-type]
    keys = Keystream(Secret.from_key(bytes(32)), "benchmark")
    dealer = Dealer(plan, keys.subkey("dealing"))
    kernel = Kernel([cell.channel for cell in plan.cells], [plan.positions(cell) for cell in plan.cells])
    parts = []
    for first in range(0, len(codes), BATCH):
        batch = codes[first : first + BATCH]
        parts.append(kernel.perturb(batch, keys.words(first, len(batch)), dealer.deal(batch)))
    dealer.finish()
    return np.concatenate(parts)


def anatomy(codes: np.ndarray, m: int, l: int) -> np.ndarray:
    histogram = Histogram(tuple(range(m)), np.bincount(codes, minlength=m))
    keys = Keystream(Secret.from_key(bytes(32)), "benchmark")
    return anatomy_groups(codes, m, l, keys, Anatomy(l=l).suppressed(histogram))


def rows(n: int = ROWS, many: int = MANY_ROWS) -> list[dict[str, Any]]:
    """One dict (what, seconds, ratio, note) each; the ratio is to two seconds, the limit for 500,000 rows."""
    small, large, wide = codes_of(n, 50), codes_of(many, 50), codes_of(n, 5000)
    measured: list[tuple[str, Callable[[], object], str]] = [
        (f"decoys, mixed, {n:,} rows, m = 50", lambda: decoys(small, 50, 5, "mixed"), "c = 5; the paper: 10 seconds"),
        (f"decoys, balanced, {n:,} rows, m = 50", lambda: decoys(small, 50, 5, "balanced"), "c = 5"),
        (f"decoys, mixed, {n:,} rows, m = 5,000", lambda: decoys(wide, 5000, 5, "mixed"), "c = 5"),
        (f"Anatomy, {n:,} rows, m = 50", lambda: anatomy(small, 50, 6), "l = 6"),
        (f"Anatomy, {n:,} rows, m = 5,000", lambda: anatomy(wide, 5000, 6), "l = 6"),
        (f"decoys, mixed, {many:,} rows, m = 50", lambda: decoys(large, 50, 5, "mixed"), "c = 5, one thread"),
        (f"Anatomy, {many:,} rows, m = 50", lambda: anatomy(large, 50, 6), "l = 6, one thread"),
    ]
    found = []
    for what, work, note in measured:
        begin = time.perf_counter()
        work()
        spent = time.perf_counter() - begin
        found.append({"what": what, "seconds": spent, "ratio": spent / 2, "note": note})
    return found


def main() -> None:
    print(f"{'what':<46}{'seconds':>9}  note")
    for row in rows():
        print(f"{row['what']:<46}{row['seconds']:>9.3f}  {row['note']}")


if __name__ == "__main__":
    main()
