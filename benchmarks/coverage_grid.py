"""How often 95 % intervals hold, and how far estimates are off on average: mechanism x aggregate x method.

Run: python benchmarks/coverage_grid.py [--draws 6] [--rows 30000]. The made-up census is published with every mechanism
and fixed keys; counts are asked by random conditions on one to three public columns with every sensitive value,
everything else in SQL by groups of public columns; the coefficient is that of a perturbed condition in a linear model
of the age, within each group. In brackets: the mean error, in mean standard errors.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
from coverage import actual_counts, codes_of, conditions

import deniable as dn
from deniable import mechanisms
from deniable.evaluation.synthetic import census

PRIVACY = dn.Privacy("1/13", "1/4")
OCCUPATION: dict[str, Any] = {"sensitive": "occupation", "privacy": PRIVACY}
MADE: dict[str, dict[str, Any]] = {
    "uniform": {**OCCUPATION, "mechanism": "uniform"},
    "small-domain": {**OCCUPATION, "mechanism": "small-domain"},
    "fine-grain": {**OCCUPATION, "mechanism": "fine-grain"},
    "designed": {**OCCUPATION, "mechanism": "designed"},
    "line-ups": {**OCCUPATION, "mechanism": "lineup"},
    "decoys": {"sensitive": "occupation", "mechanism": mechanisms.Decoys(c=5)},
    "retention": {"mechanism": mechanisms.Retention({"occupation": dn.Replace(coin=0.4)})},
    "retention of numbers": {"mechanism": mechanisms.Retention({"age": dn.Replace(coin=0.5, low=15, high=95)})},
}
DECADES = ((1, 10), (10, 100), (100, 1000), (1000, 10**9))
INSIDE = {"occupation": "occupation IN (SELECT occupation FROM half)", "age": "age >= 40"}
AGGREGATES = {
    "share": "COUNT(*) FILTER (WHERE {inside}) / COUNT(*)",
    "difference": "COUNT(*) FILTER (WHERE {inside}) - COUNT(*) FILTER (WHERE NOT ({inside}))",
    "sum": "SUM(age) FILTER (WHERE {inside})",
    "mean": "AVG(age) FILTER (WHERE {inside})",
    "deviation": "STDDEV(age) FILTER (WHERE {inside})",
    "median": "MEDIAN(age) FILTER (WHERE {inside})",
}
GROUPS = ("education", "marital", "workclass", "race")
METHODS: dict[str, dict[str, Any]] = {"inverse": {"calibrate": False}, "calibrated": {}}


def counted(releases: list[dn.Release], table: pa.Table, options: dict[str, Any]) -> list[tuple[float, float]]:
    """Coverage and bias, in standard errors, of counts by decade."""
    columns = {c: np.array(table[c].to_pylist(), dtype=object) for c in table.column_names if c != "occupation"}
    wheres = conditions(np.random.default_rng(1), columns, 120)
    domain, truth = codes_of(table, "occupation")
    actual, parts = actual_counts(columns, wheres, truth, len(domain)), []
    for release in releases:
        if len(release.manifest.parts) == 1 and release.manifest.parts[0].swapped is None:
            found = release.count_many(wheres, every_value=True, **options)
            parts.append((found.low, found.high, found.value - actual, found.stderr))
    low, high, off, error = (np.stack([part[i] for part in parts]) for i in range(4))
    result = []
    for least, most in DECADES:
        some = (actual >= least) & (actual < most)
        held = (low <= actual) & (actual <= high)
        result.append((float(held[:, some].mean()), float(off[:, some].mean() / error[:, some].mean())))
    return result


def asked(releases: list[dn.Release], table: pa.Table, column: str, what: str, options: dict[str, Any]) -> Any:
    """Coverage and bias of an aggregate in SQL, over groups of public columns."""
    import duckdb

    names = sorted(set(table["occupation"].to_pylist()))[::2]
    half = pa.table({"occupation": pa.array(names)})
    held, off, errors = [], [], []
    for group in GROUPS:
        text = AGGREGATES[what].format(inside=INSIDE[column])
        question = f"SELECT {group}, {text} AS x FROM release GROUP BY {group} ORDER BY {group}"
        with duckdb.connect() as connection:
            connection.register("release", table)
            connection.register("half", half)
            truth = {row[0]: row[1] for row in connection.execute(question).fetchall()}
        for release in releases:
            for row in release.sql(question, tables={"half": half}, **options).to_pylist():
                if row["x"] is None or truth.get(row[group]) is None or row["x_low"] == row["x_high"]:
                    continue
                errors.append((row["x_high"] - row["x_low"]) / 2 / 1.96)
                held.append(row["x_low"] <= truth[row[group]] <= row["x_high"])
                off.append(row["x"] - truth[row[group]])
    return float(np.mean(held)), float(np.mean(off) / np.mean(errors))


def coefficients(releases: list[dn.Release], table: pa.Table, column: str) -> tuple[float, float]:
    """Coverage and bias of the coefficient of a perturbed condition, or of a public one where ages are perturbed."""
    columns = {name: np.array(table[name].to_pylist(), dtype=object) for name in (*GROUPS, "occupation", "gender")}
    ages, half = table["age"].to_numpy().astype(float), sorted(set(columns["occupation"]))[::2]
    condition = {"occupation": half} if column == "occupation" else {"gender": "Female"}
    (name, values), held, off, errors = next(iter(condition.items())), [], [], []
    inside = np.isin(columns[name], values)
    for group in GROUPS:
        for value in sorted(set(columns[group])):
            some = columns[group] == value
            truth = ages[some & inside].mean() - ages[some & ~inside].mean()
            for release in releases:
                try:
                    (found,) = list(release.linear("age", [condition], where={group: value}).values())[1:]
                except dn.DeniableError:
                    continue  # so few rows that the perturbation drowns the model
                held.append(found.low <= truth <= found.high)
                off.append(found.value - truth)
                errors.append(found.stderr)
    return float(np.mean(held)), float(np.mean(off) / np.mean(errors))


def line(name: str, releases: list[dn.Release], table: pa.Table, method: str) -> str:
    options = METHODS[method]
    column = "age" if "numbers" in name else "occupation"
    cells = (
        [("", "")] * len(DECADES)
        if column == "age" or name == "retention"
        else [(f"{cover:.3f}", f"{bias:+.2f}") for cover, bias in counted(releases, table, options)]
    )
    for what in AGGREGATES:
        cover, bias = asked(releases, table, column, what, options)
        cells.append((f"{cover:.3f}", f"{bias:+.2f}"))
    cover, bias = coefficients(releases, table, column) if method == "inverse" else (0.0, 0.0)
    cells.append((f"{cover:.3f}" if cover else "", f"{bias:+.2f}"))
    return f"| {name} | {method} | " + " | ".join(f"{cover} ({bias})" if cover else "" for cover, bias in cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--rows", type=int, default=30_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table = census(given.rows, seed=11)
    heads = [f"count {a:,}+" for a, _ in DECADES] + [*AGGREGATES, "coefficient"]
    print("| mechanism | method | " + " | ".join(heads) + " |\n|---|---|" + "---|" * len(heads))
    for name, made in MADE.items():
        releases = [
            dn.publish(table, **{"mechanism": "uniform", **made}, key=number.to_bytes(32, "big"), shuffle=False)
            for number in range(given.draws)
        ]
        calibrated = any(part.marginal is not None for part in releases[0].manifest.parts)
        for method in METHODS if calibrated else ("inverse",):
            print(line(name, releases, table, method), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
