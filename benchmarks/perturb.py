"""What perturbing a column costs, against the randomness it needs: python benchmarks/perturb.py

One thread does all of it: publishing gives a batch to each, and they share nothing. Ratios are of processor time.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from measuring import least

from deniable.core.channels import Channel
from deniable.core.designs import ArcDesign
from deniable.tables.keys import Keystream, Secret
from deniable.tables.lineups import LineUpKernel
from deniable.tables.sampler import CHUNK, Kernel

ROWS = 20_000_000
M = 50
MANY = 3_000
SIZE = 6


def rows(n: int = ROWS, m: int = M) -> list[dict[str, Any]]:
    """One dict (what, seconds, processor, ratio, note) per measurement; the ratio is to the keystream alone."""
    stream = Keystream(Secret.from_key(bytes(32)), "benchmark")
    codes = np.random.default_rng(1).integers(0, m, n).astype(np.uint8)
    cells = np.random.default_rng(2).integers(0, 2, n).astype(np.int32)
    values, domain = range(m), np.arange(m)
    uniform = Channel.uniform(values, gamma=Fraction(12, 5))
    general = Channel.of(values, np.linspace(0.1, 0.6, m), np.linspace(1, 3, m))
    whole, alias = Kernel([uniform], [domain]), Kernel([general], [domain])
    line_ups = LineUpKernel(ArcDesign.of(np.linspace(1, 3, m), SIZE, 0.5))
    two, two_alias = Kernel([uniform] * 2, [domain] * 2), Kernel([general] * 2, [domain] * 2)
    many = Kernel([Channel.of(range(MANY), np.linspace(0.1, 0.6, MANY), np.linspace(1, 3, MANY))], [np.arange(MANY)])
    many_codes = np.random.default_rng(3).integers(0, MANY, n).astype(np.uint16)
    buffer = np.empty(CHUNK, dtype=np.uint64)
    numpy_generator = np.random.Generator(np.random.PCG64(1))

    def keystream() -> None:
        for first in range(0, n, CHUNK):
            count = min(CHUNK, n - first)
            stream.words(first, count, buffer[:count])

    def pcg64() -> None:
        for first in range(0, n, CHUNK):
            numpy_generator.bit_generator.random_raw(min(CHUNK, n - first))

    measured: list[tuple[str, Callable[[], object], str]] = [
        ("keystream alone", keystream, "AES-256-CTR, the limit"),
        ("NumPy PCG64 alone", pcg64, "not secure; for reference"),
        ("uniform", lambda: whole.perturb_rows(codes, stream), "with keystream"),
        ("alias table", lambda: alias.perturb_rows(codes, stream), "any channel"),
        (f"alias table, {MANY:,} values", lambda: many.perturb_rows(many_codes, stream), "any channel"),
        (f"line-ups of {SIZE}", lambda: line_ups.perturb_rows(codes, stream), "at most 3 x uniform"),
        ("uniform, 2 cells", lambda: two.perturb_rows(codes, stream, cells=cells), "cells given"),
        ("alias table, 2 cells", lambda: two_alias.perturb_rows(codes, stream, cells=cells), "cells given"),
    ]
    times = [least(work) for _, work, _ in measured]
    return [
        {"what": what, "seconds": spent, "processor": used, "ratio": used / times[0][1], "note": note}
        for (what, _, note), (spent, used) in zip(measured, times, strict=True)
    ]


def main() -> None:
    print(f"{ROWS:,} rows, m = {M}\n")
    print(f"{'what':<40}{'seconds':>9}{'ns/row':>8}{'ratio':>7}  note")
    for row in rows():
        nanoseconds = row["processor"] / ROWS * 1e9
        print(f"{row['what']:<40}{row['seconds']:>9.4f}{nanoseconds:>8.2f}{row['ratio']:>7.2f}  {row['note']}")


if __name__ == "__main__":
    main()
