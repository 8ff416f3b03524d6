"""Learned releases on real tables, without options: python benchmarks/synthetic_peers.py [TABLE] [--keys N]

For each table and key: tables are measured with exact noise, a model learned, rows dealt. Printed are the mean relative
errors of counts of at least .1, .5 and 1 % of the rows, of the model and of plain counts of the rows, on pool 1
(one to three conditions on random levels) and pool 2 (two or three conditions of a random row); how many intervals
hold, by size of the count; seconds of the processor and memory. Reads the folder DENIABLE_DATA.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import resource
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import sparse

from deniable.learned import dealing, measuring, model, uncertainty
from deniable.tables.keys import Keystream, Secret

GAMMA = Fraction(12, 5)  # of (1/13, 1/6)
ROWS, QUESTIONS = 100_000, 200
SELECTIVITIES = (0.001, 0.005, 0.01)
SIZES = (10, 30, 100, 300, 1000, 10**9)
TABLES: dict[str, tuple[str, str, list[str] | None]] = {
    "occ": ("census_occ100k", "occupation", None),
    "edu": ("census_occ100k", "education", None),
    "diag": ("diabetes130", "diag_1", ["race", "gender", "age", "admission_type_id", "time_in_hospital",
             "medical_specialty", "number_diagnoses", "readmitted"]),
    "adult": ("adult", "occupation", ["age", "workclass", "education", "marital_status", "relationship", "race", "sex",
              "hours_per_week", "income"]),
    "kdd": ("census_income_kdd", "detailed_occupation_recode", ["age", "class_of_worker", "education", "marital_stat",
            "race", "sex", "hispanic_origin", "citizenship", "income_class"]),
}  # fmt: skip


class Table:
    """A real table in codes: public combinations, and a count of each value in every one."""

    def __init__(self, which: str) -> None:
        file, sensitive, names = TABLES[which]
        table = pq.read_table(Path(os.environ["DENIABLE_DATA"], f"{file}.parquet"))
        table = table.filter(pc.is_valid(table[sensitive])).slice(0, ROWS)
        names = names or [name for name in table.column_names if name != sensitive]
        coded = [_codes(table[name]) for name in names]
        self.ordered = [
            pa.types.is_integer(table[name].type) and size > 10 for name, (_, size) in zip(names, coded, strict=True)
        ]
        self.codes = np.stack([codes for codes, _ in coded], axis=1)
        self.sizes = [size for _, size in coded]
        self.values, self.m = _codes(table[sensitive])
        self.n = len(self.values)
        distinct, self.of = np.unique(self.codes, axis=0, return_inverse=True)
        self.of = self.of.ravel()
        self.rows = np.bincount(self.of).astype(np.int64)
        self.columns = [measuring.Levels(name, distinct[:, j], self.sizes[j]) for j, name in enumerate(names)]
        ones = np.ones(self.n, dtype=np.int64)
        self.counts = sparse.csr_array((ones, (self.of, self.values)), (len(distinct), self.m))

    def table_of(self, levels: measuring.Levels) -> Any:
        """Counts of a table of levels by value."""
        return np.bincount(levels.codes[self.of] * self.m + self.values, minlength=levels.size * self.m).reshape(
            levels.size, self.m
        )

    def pools(self) -> list[list[Any]]:
        """The combinations of the questions of pools 1 and 2."""
        rng, one = np.random.default_rng(11), []
        while len(one) < QUESTIONS:
            keep = np.ones(self.n, bool)
            for c in rng.choice(len(self.sizes), rng.integers(1, 4), replace=False):
                keep &= self.codes[:, c] == rng.integers(self.sizes[c])
            if keep.any():
                one.append(np.unique(self.of[keep]))
        rng, two = np.random.default_rng(77), []
        for _ in range(QUESTIONS):
            row, keep = rng.integers(self.n), np.ones(self.n, bool)
            for c in rng.choice(len(self.sizes), rng.integers(2, 4), replace=False):
                keep &= self.codes[:, c] == self.codes[row, c]
            two.append(np.unique(self.of[keep]))
        return [one, two]


def _codes(column: Any) -> tuple[Any, int]:
    """Codes in the order of values; what is missing is a value, the last one."""
    values = pc.unique(column).drop_null()
    values = values.take(pc.array_sort_indices(values))
    codes = pc.index_in(column, value_set=values).combine_chunks()
    size = len(values) + (1 if column.null_count else 0)
    return pc.fill_null(codes, len(values)).to_numpy(zero_copy_only=False).astype(np.int64), size


def errors(estimates: Any, counts: Any, n: int) -> list[float]:
    """Mean relative errors of the counts of at least each selectivity."""
    relative = np.abs(estimates - counts) / np.maximum(counts, 1)
    return [float(np.mean(relative[counts >= share * n])) for share in SELECTIVITIES]


def run(table: Table, key: int, epsilon: Fraction, pools: list[list[Any]]) -> dict[str, Any]:
    """One release: errors, coverage, seconds."""
    started = time.process_time()
    source = Keystream(Secret.from_key(key.to_bytes(32, "big")), "synthetic")
    plan = measuring.default_measure(table.rows, table.columns, table.ordered, table.m, float(epsilon))
    costs = measuring.shared(epsilon, plan.weights)
    noisy = [
        measuring.noisy(source.subkey("table", str(i)), table.table_of(levels), cost)
        for i, (levels, cost) in enumerate(zip(plan.tables, costs, strict=True))
    ]
    variances = [measuring.laplace_variance(cost / 2) for cost in costs]
    learner = model.Learner(table.rows, plan.tables, noisy, variances, plan.smooth)
    fitted = learner.fit()
    learned = time.process_time()
    rows = dealing.dealt(
        table.rows, lambda q: learner.design.shares(fitted, q), plan.tables, table.m, source.subkey("rows")
    )
    dealt = time.process_time()
    sure = uncertainty.Uncertainty(learner, fitted)
    found: dict[str, Any] = {"learn": learned - started, "deal": dealt - learned, "tau": fitted.tau}
    for name, pool in zip(("pool 1", "pool 2"), pools, strict=True):
        held: list[list[bool]] = [[] for _ in SIZES[1:]]
        estimates, counted, true = [], [], []
        for place, group in enumerate(pool):
            p = learner.design.shares(fitted, group)
            actual = table.counts[group].sum(axis=0)
            true.append(actual)
            counted.append(rows[group].sum(axis=0))
            estimates.append(table.rows[group] @ p)
            if place % 4 == 0:
                half = 1.96 * np.sqrt(sure.of_group(group, p)[1])
                for size, one in enumerate(held):
                    some = (actual >= SIZES[size]) & (actual < SIZES[size + 1])
                    one += (np.abs(estimates[-1] - actual) <= half)[some].tolist()
        found[name] = {
            "model": errors(np.array(estimates), np.array(true), table.n),
            "rows": errors(np.array(counted), np.array(true), table.n),
            "held": held,
        }
    found["ask"] = time.process_time() - dealt
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="*", default=["occ"], choices=list(TABLES))
    parser.add_argument("--keys", type=int, default=2)
    parser.add_argument("--epsilon", type=Fraction, default=measuring.epsilon_of(GAMMA))
    asked = parser.parse_args()
    for which in asked.table:
        table = Table(which)
        pools = table.pools()
        found = [run(table, key, asked.epsilon, pools) for key in range(asked.keys)]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        size = f"{table.n:,} rows, {len(table.rows):,} combinations, {table.m} values"
        print(f"{which}: {size}, epsilon {float(asked.epsilon):.3f}")
        for name in ("pool 1", "pool 2"):
            means = [[np.mean([one[name][what] for one in found], axis=0)] for what in ("model", "rows")]
            shown = [" ".join(f"{error:.4f}" for error in mean[0]) for mean in means]
            held = [
                list(itertools.chain.from_iterable(one[name]["held"][size] for one in found))
                for size in range(len(SIZES) - 1)
            ]
            cover = " ".join(f"{SIZES[i]}+: {np.mean(one):.3f} of {len(one)}" for i, one in enumerate(held) if one)
            print(f"  {name}  model {shown[0]}  rows {shown[1]}  intervals hold {cover}")
        seconds = {what: math.fsum(one[what] for one in found) / len(found) for what in ("learn", "deal", "ask")}
        print(
            "  seconds",
            {what: round(value, 1) for what, value in seconds.items()},
            f"memory {memory:.1f} GB",
            flush=True,
        )


if __name__ == "__main__":
    main()
