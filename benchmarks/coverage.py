"""How often 95 % intervals contain the truth, and how large errors are, by size of the count.

OCC-100k, Adult and the demo table.

Run: python benchmarks/coverage.py [--draws 3]. The tables are found through DENIABLE_DATA or ../shared/data. Releases
are published and asked as a user would, with fixed keys. Each table is asked 200 random
conditions on one to three public columns with every sensitive value (SDR 10.9).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import deniable as dn
from deniable.lab.made_up import census as made_up

DECADES = ((1, 10), (10, 100), (100, 1000), (1000, 10**9))
SELECTIVITIES = (0.001, 0.005, 0.01)
METHODS: dict[str, dict[str, Any]] = {
    "inverse": {"calibrate": False},
    "calibrated": {},
    "shrunk": {"method": "shrunk"},
    "mle": {"method": "mle"},
}


def data_folder() -> Path:
    default = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    return Path(os.environ.get("DENIABLE_DATA", default))


def codes_of(table: pa.Table, sensitive: str) -> tuple[list[Any], Any]:
    """The domain, in a release's order, and the true code of each row."""
    domain, truth = np.unique(table[sensitive].to_numpy(zero_copy_only=False), return_inverse=True)
    return domain.tolist(), truth


def conditions(rng: np.random.Generator, columns: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Random values, each drawn as often as it occurs, of one to three random columns."""
    found = []
    for _ in range(number):
        names = rng.choice(list(columns), rng.integers(1, 4), replace=False)
        found.append({str(name): columns[str(name)][rng.integers(len(columns[str(name)]))] for name in names})
    return found


def actual_counts(columns: dict[str, Any], wheres: list[dict[str, Any]], truth: Any, m: int) -> Any:
    masks = (np.logical_and.reduce([columns[c] == v for c, v in where.items()]) for where in wheres)
    return np.stack([np.bincount(truth[mask], minlength=m) for mask in masks])


def report(name: str, table: pa.Table, sensitive: str, privacy: dn.Privacy, draws: int) -> None:
    rng = np.random.default_rng(1)
    public = [c for c in table.column_names if c != sensitive and len(table[c].unique()) <= 200]
    table = table.select([*public, sensitive])
    columns = {c: np.array(table[c].to_pylist(), dtype=object) for c in public}
    wheres = conditions(rng, columns, 200)
    collected: dict[str, list[Any]] = {method: [] for method in METHODS}
    seconds = dict.fromkeys(METHODS, 0.0)
    domain, truth = codes_of(table, sensitive)
    actual = actual_counts(columns, wheres, truth, len(domain))
    for draw in range(draws):
        release = dn.publish(
            table,
            sensitive=sensitive,
            privacy=privacy,
            key=draw.to_bytes(32, "big"),
            shuffle=False,
            mechanism="uniform",
        )
        assert list(release.manifest.parts[0].domain) == domain
        for method, options in METHODS.items():
            start = time.perf_counter()
            collected[method].append(release.count_many(wheres, every_value=True, **options))
            seconds[method] += (time.perf_counter() - start) / draws
    rows = len(truth)
    print(f"\n{name}: {rows:,} rows, {actual.size:,} questions, {draws} releases, {privacy}")
    print(f"{'':12}{'relative error at .1/.5/1 %':>30}  {'covered, true count':>20}" + " " * 22 + "seconds")
    heads = " ".join(f"{f'{a:,}+':>8}" for a, _ in DECADES)
    print(f"{'':12}{'':30}  {'> 50':>8} {heads}")
    independent = actual.sum(1, keepdims=True) * np.bincount(truth, minlength=actual.shape[1]) / rows
    for method, pools in collected.items():
        errors = [np.mean([relative_error(pool.value, actual, s * rows) for pool in pools]) for s in SELECTIVITIES]
        covers = [np.mean([covered(pool, actual, a, b) for pool in pools]) for a, b in ((50, 10**9), *DECADES)]
        shown = " / ".join(f"{error:.2f}" for error in errors)
        print(f"{method:12}{shown:>30}  " + " ".join(f"{c:8.3f}" for c in covers) + f"{seconds[method]:10.3f}")
    shown = " / ".join(f"{relative_error(independent, actual, s * rows):.2f}" for s in SELECTIVITIES)
    print(f"{'independence':12}{shown:>30}")


def relative_error(value: Any, actual: Any, least: float) -> float:
    large = actual >= max(least, 1)
    return float((np.abs(value - actual)[large] / actual[large]).mean())


def covered(pool: Any, actual: Any, low: int, high: int) -> float:
    inside = (actual >= low) & (actual < high)
    return float(((pool.low <= actual) & (actual <= pool.high))[inside].mean()) if inside.any() else float("nan")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=3)
    draws = parser.parse_args().draws
    folder = data_folder()
    if not folder.exists():
        print("The tables are not here: set DENIABLE_DATA to the folder that holds them.", file=sys.stderr)
        return 1
    census = pq.read_table(folder / "census_occ100k.parquet")
    report("OCC-100k", census, "occupation", dn.Privacy("1/13", "1/6"), draws)
    adult = pq.read_table(folder / "adult.parquet")
    adult = adult.filter(pc.is_valid(adult["occupation"]))
    report("Adult", adult, "occupation", dn.Privacy("1/7", "5/11"), draws)
    report("demo", made_up(100_000, seed=5), "occupation", dn.Privacy("1/13", "1/3"), draws)
    return 0


if __name__ == "__main__":
    sys.exit(main())
