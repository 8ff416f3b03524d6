"""A noisy histogram that is paid for, beside rows against any prior: python benchmarks/paid_histogram.py [--keys N]

The 100,000 rows of OCC at (1/13, 1/6) against any prior, epsilon ln 2.4 in all. Printed are the mean relative errors of
counts of at least .1, .5 and 1 % of the rows: of the rows alone, of rows and histogram, calibrated and shrunk, and of
the histogram alone, at the whole budget. Pool 1 has one to three conditions on random values, pool 2 two or three of a
random row. Reads the folder DENIABLE_DATA.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import deniable as dn
from deniable.mechanisms import Lineup, Uniform

ROWS, QUESTIONS, SENSITIVE = 100_000, 200, "occupation"
SELECTIVITIES = (0.001, 0.005, 0.01)
PRIVACY = dn.Privacy("1/13", "1/6", adversary="any-prior")
EPSILON = float(np.log(2.4))


def pools(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Conditions on public columns."""
    names = [name for name in table.column_names if name != SENSITIVE]
    known = {name: pc.unique(table[name]).to_pylist() for name in names}
    rng = np.random.default_rng(11)

    def one() -> dict[str, Any]:
        chosen = rng.choice(len(names), rng.integers(1, 4), replace=False)
        return {names[c]: known[names[c]][rng.integers(len(known[names[c]]))] for c in chosen}

    def two() -> dict[str, Any]:
        row = int(rng.integers(table.num_rows))
        chosen = rng.choice(len(names), rng.integers(2, 4), replace=False)
        return {names[c]: table[names[c]][row].as_py() for c in chosen}

    return {"pool 1": [one() for _ in range(QUESTIONS)], "pool 2": [two() for _ in range(QUESTIONS)]}


def truth(table: pa.Table, where: dict[str, Any], domain: list[Any]) -> Any:
    """The count of every value."""
    keep = np.ones(table.num_rows, bool)
    for name, value in where.items():
        keep &= pc.equal(table[name], value).to_numpy()
    values = pc.index_in(table[SENSITIVE].filter(pa.array(keep)), value_set=pa.array(domain))
    return np.bincount(values.to_numpy(), minlength=len(domain)).astype(float)


def errors(estimates: Any, counts: Any) -> str:
    """Mean relative errors by selectivity."""
    off = np.abs(estimates - counts) / np.maximum(counts, 1)
    return " / ".join(f"{off[counts >= share * ROWS].mean():.3f}" for share in SELECTIVITIES)


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1)
    keys = parser.parse_args().keys
    table = pq.read_table(Path(os.environ["DENIABLE_DATA"], "census_occ100k.parquet")).slice(0, ROWS)
    domain = sorted(pc.unique(table[SENSITIVE]).to_pylist())
    every = pools(table)
    exact = {name: np.array([truth(table, where, domain) for where in pool]) for name, pool in every.items()}
    rows = {name: counts.sum(axis=1) for name, counts in exact.items()}
    whole = truth(table, {}, domain)
    rng = np.random.default_rng(0)
    for name, counts in exact.items():
        noisy = whole + rng.geometric(1 - np.exp(-EPSILON / 2), len(domain))
        noisy -= rng.geometric(1 - np.exp(-EPSILON / 2), len(domain))
        print(f"{name}, histogram alone: {errors(rows[name][:, None] * noisy / ROWS, counts)}")
    for made in (Lineup(), Uniform()):
        for paid in (None, True):
            for key in range(keys):
                release = dn.publish(
                    table,
                    sensitive=SENSITIVE,
                    mechanism=made,
                    privacy=PRIVACY,
                    domain=domain,
                    marginals=paid,
                    key=key.to_bytes(32, "big"),
                )
                order = [release.manifest.parts[0].domain.index(value) for value in domain]
                for method in ("inverse", "shrunk"):
                    for name, pool in every.items():
                        answers = release.count_many(pool, every_value=True, method=method)
                        said = errors(np.asarray(answers.value).reshape(len(pool), -1)[:, order], exact[name])
                        print(f"{name}, {made.name}, {'with' if paid else 'no'} histogram, {method}: {said}")


if __name__ == "__main__":
    main()
