"""Bias and noise of the ways to count in a decoy release, over many keys: python benchmarks/run.py decoy_estimates

20,000 rows, c = 5, 20 values whose frequencies fall like 1/sqrt(rank); the count of one value among the rows of a
public condition. "independent": the condition has nothing to do with the value. "correlated": it prefers this value and
the five that share most groups with it, chosen by the release's own plan, so that it is the hardest for it.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pyarrow as pa

import deniable as dn
from deniable.core.histogram import Histogram
from deniable.mechanisms.decoys import Decoys, full_channel

C, M, ROWS, ASKED = 5, 20, 20_000, 3
METHODS = ("inverse", "four-state exact", "four-state")


def codes_of(rows: int) -> np.ndarray:
    share = np.arange(1, M + 1) ** -0.5
    counts = np.floor(share / share.sum() * rows).astype(np.int64)
    counts[-1] += (-counts.sum()) % C
    return np.repeat(np.arange(M), counts)


def table_of(codes: np.ndarray, grouping: Any, correlated: bool) -> pa.Table:
    """The sensitive column, a second one that is independent of it, and a public one."""
    random = np.random.default_rng(5)
    share = np.full(M, 0.2)
    if correlated:
        plan = Decoys(c=C, grouping=grouping).plan(Histogram(tuple(range(M)), np.bincount(codes)), None)
        met = full_channel(plan.parts[0])[ASKED]
        share = np.full(M, 0.05)
        share[np.argsort(-met * (np.arange(M) != ASKED))[:5]] = 0.6
        share[ASKED] = 0.3
    asked = random.random(len(codes)) < share[codes]
    return pa.table({"asked": asked, "value": codes, "other": random.integers(0, 10, len(codes))})


def rows(keys: int = 40) -> list[dict[str, Any]]:
    """One dict (what, seconds, bias %, spread %, claimed %) per table, question and method."""
    found = []
    cases = [
        ("mixed", False, 1),
        ("mixed", True, 1),
        ("balanced", False, 1),
        ("balanced", True, 1),
        ("mixed", False, 2),
    ]
    for grouping, correlated, columns in cases:
        begin = time.perf_counter()
        table = table_of(codes_of(ROWS), grouping, correlated)
        where: dict[str, Any] = {"asked": True, "value": ASKED}
        if columns == 2:
            where["other"] = [0, 1, 2, 3, 4]
        names = ["value", "other"][:columns]
        true = int(
            np.logical_and.reduce([np.isin(table[name].to_numpy(), wanted) for name, wanted in where.items()]).sum()
        )
        answers: dict[str, list[dn.Estimate]] = {method: [] for method in METHODS}
        for key in range(keys):
            release = dn.publish(
                table.select(["asked", *names]),
                sensitive=names,
                mechanism=Decoys(c=C, grouping=grouping),
                key=bytes([key] * 32),
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for method in METHODS:
                    answers[method].append(release.count(where, method=method))
        spent = time.perf_counter() - begin
        kind = "correlated" if correlated else "independent"
        for method, each in answers.items():
            values = np.array([one.value for one in each])
            claimed = np.sqrt(np.mean([one.stderr**2 for one in each]))
            found.append(
                {
                    "what": f"{grouping}, {columns} column{'s' * (columns > 1)}, {kind}: {method}",
                    "seconds": spent / len(METHODS),
                    "bias %": f"{100 * (values.mean() / true - 1):+.0f}",
                    "error of it": f"{100 * values.std() / true / np.sqrt(keys):.0f}",
                    "spread %": f"{100 * values.std() / true:.0f}",
                    "claimed %": f"{100 * claimed / true:.0f}",
                    "note": f"{keys} keys",
                }
            )
    return found
