"""One count over 16 perturbed columns, with its interval: python benchmarks/run.py cube

100,000 rows of 16 correlated yes-or-no columns, perturbed with the coins .9, .7 and .5. Times are of the mathematics
after the counts (2^16 patterns), then of a whole question to a release. Ratios are to one pass of 16 factors over 2^16
numbers, each read and written once at the bandwidth that copying an array reaches in the same run.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from measuring import best

import deniable as dn
from deniable.core.channels import Replace
from deniable.estimation.model.tensor import Factor, Tensor
from deniable.mechanisms.retention import Retention

COLUMNS = 16
ROWS = 100_000
COINS = (0.9, 0.7, 0.5)


def answers(rows: int = ROWS, columns: int = COLUMNS) -> np.ndarray:
    """Yes or no, [columns, rows]: one hidden trait decides how likely each yes is."""
    random = np.random.default_rng(0)
    trait = random.random(rows)
    return np.array([random.random(rows) < 0.15 + 0.7 * ((trait * (i + 1)) % 1) for i in range(columns)])


def counts(original: np.ndarray, coin: float) -> np.ndarray:
    """How many perturbed rows have each pattern."""
    random = np.random.default_rng(1)
    pattern = np.zeros(original.shape[1], np.int64)
    for column in original:
        kept = random.random(len(column)) < coin
        pattern = pattern * 2 + np.where(kept, column, random.random(len(column)) < 0.5)
    found = np.bincount(pattern, minlength=2 ** len(original))
    return found.astype(np.float64).reshape((2,) * len(original))


def peak(work: Callable[[], object]) -> float:
    """The most memory that was held at once, in MB."""
    tracemalloc.start()
    work()
    found = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return found


def one_pass() -> float:
    """16 factors over 2^16 numbers, as fast as memory allows: each reads and writes all of them once."""
    source, target = np.random.default_rng(2).random(2**COLUMNS), np.empty(2**COLUMNS)
    return COLUMNS * best(lambda: np.copyto(target, source), 50)


def rows() -> list[dict[str, Any]]:
    """One dict (what, seconds, ratio, MB, note) each."""
    limit = one_pass()
    found: list[dict[str, Any]] = [
        {"what": "one pass of 16 factors, memory's limit", "seconds": limit, "ratio": 1.0, "note": "16 copies of 2^16"}
    ]
    original = answers()
    for coin in COINS:
        tensor = Tensor(tuple(Factor(coin, np.array([0.5, 0.5])) for _ in range(COLUMNS)))
        y = counts(original, coin)
        fit = tensor.fit(y)
        note = f"condition number {tensor.condition:.2g}"
        told = f"{note}; {fit.leaps} leaps, the last ten gained {fit.gain:.1g} in log-likelihood"
        measured: list[tuple[str, Callable[[], object], str]] = [
            ("inverse and its variance", partial(_inverse, tensor, y), note),
            ("maximum likelihood", partial(tensor.fit, y), told),
        ]
        for what, work, said in measured:
            seconds, name = best(work), f"16 columns, p = {coin}, {what}"
            memory = round(peak(work), 1)
            found.append({"what": name, "seconds": seconds, "ratio": seconds / limit, "MB": memory, "note": said})
    return [*found, *_questions(original, limit)]


def _inverse(tensor: Tensor, y: np.ndarray) -> None:
    tensor.invert(y)
    tensor.squares(y)


def _questions(original: np.ndarray, limit: float) -> list[dict[str, Any]]:
    """The same asked of a release: the first question tallies the rows, too."""
    names = [f"c{i:02d}" for i in range(COLUMNS)]
    table = pa.table({name: np.where(column, "y", "n") for name, column in zip(names, original, strict=True)})
    mechanism = Retention({name: Replace(coin=0.9) for name in names})
    release = dn.publish(table, mechanism=mechanism, key=bytes(32), shuffle=False)
    found = []
    for method in ("inverse", "mle"):
        seconds = best(partial(release.count, dict.fromkeys(names, "y"), method=method))
        note = "with interval, tallying 100,000 rows included"
        what = f"count over 16 columns, p = 0.9, {method}"
        found.append({"what": what, "seconds": seconds, "ratio": seconds / limit, "note": note})
    return found
