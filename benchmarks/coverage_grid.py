"""How often 95 % intervals hold, and how far estimates are off on average: mechanism x aggregate x method.

Run: python benchmarks/coverage_grid.py [--draws 6] [--rows 30000] [--tables made-up | real]. A table is published with
every mechanism and fixed keys, ten times as often for counts. These are asked by random conditions on one to three
public columns with every value of the sensitive one, everything else in SQL by groups; the coefficient is that of a
perturbed condition in a linear model of a public number, within each group. In brackets: the mean error, in mean
standard errors. Real tables are the four of DENIABLE_DATA or ../shared/data, so many rows of each, and are pooled.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from coverage import actual_counts, codes_of, conditions, data_folder

import deniable as dn
from deniable import mechanisms
from deniable.lab.made_up import census

DECADES = ((1, 10), (10, 100), (100, 1000), (1000, 10**9))
AGGREGATES = {
    "share": "COUNT(*) FILTER (WHERE {inside}) / COUNT(*)",
    "difference": "COUNT(*) FILTER (WHERE {inside}) - COUNT(*) FILTER (WHERE NOT ({inside}))",
    "sum": "SUM({number}) FILTER (WHERE {inside})",
    "mean": "AVG({number}) FILTER (WHERE {inside})",
    "deviation": "STDDEV({number}) FILTER (WHERE {inside})",
    "median": "MEDIAN({number}) FILTER (WHERE {inside})",
}
METHODS: dict[str, dict[str, Any]] = {"inverse": {"calibrate": False}, "calibrated": {}}
NUMBERS = "retention of numbers"
COUNTED = 10  # times as many releases for counts: few questions have large ones, and these share their rows


@dataclass(frozen=True)
class Setting:
    """A table, and what is asked of it."""

    table: pa.Table
    sensitive: str
    number: str
    groups: tuple[str, ...]
    privacy: dn.Privacy

    def publications(self) -> dict[str, dict[str, Any]]:
        one: dict[str, Any] = {"sensitive": self.sensitive, "privacy": self.privacy}
        names = {"line-ups": "lineup"}
        low, high = pc.min_max(self.table[self.number]).as_py().values()
        return {
            **{
                name: {**one, "mechanism": names.get(name, name)}
                for name in ("uniform", "small-domain", "fine-grain", "designed", "line-ups")
            },
            "decoys": {"sensitive": self.sensitive, "mechanism": mechanisms.Decoys(c=5)},
            "retention": {"mechanism": mechanisms.Retention({self.sensitive: dn.Replace(coin=0.4)})},
            NUMBERS: {"mechanism": mechanisms.Retention({self.number: dn.Replace(coin=0.5, low=low, high=high)})},
        }

    @property
    def half(self) -> list[Any]:
        """Every other value of the sensitive column."""
        return sorted(set(self.table[self.sensitive].to_pylist()))[::2]

    def inside(self, column: str) -> str:
        """A condition on a perturbed column."""
        if column == self.number:
            return f"{column} >= {pc.quantile(self.table[column], 0.5)[0].as_py():g}"
        return f"{column} IN (SELECT value FROM half)"


def made_up(rows: int) -> list[Setting]:
    groups = ("education", "marital", "workclass", "race")
    return [Setting(census(rows, seed=11), "occupation", "age", groups, dn.Privacy("1/13", "1/4"))]


REAL = {
    "adult": ("occupation", "age", ("education", "marital_status"), ("1/7", "2/5")),
    "census_occ100k": ("occupation", "age", ("education", "marital"), ("1/13", "1/4")),
    "diabetes130": ("diag_1", "time_in_hospital", ("race", "age"), ("1/13", "1/4")),
    "census_income_kdd": ("detailed_occupation_recode", "age", ("education", "marital_stat"), ("1/13", "1/4")),
}


def real(rows: int) -> list[Setting]:
    settings = []
    for name, (sensitive, number, groups, rho) in REAL.items():
        table = pq.read_table(data_folder() / f"{name}.parquet")
        table = table.select([*groups, number, "sex" if "sex" in table.column_names else "gender", sensitive])
        table = table.drop_null()
        some = np.sort(np.random.default_rng(3).permutation(table.num_rows)[:rows])
        settings.append(Setting(table.take(pa.array(some)), sensitive, number, groups, dn.Privacy(*rho)))
    return settings


def counted(releases: Iterable[dn.Release], setting: Setting, options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """By decade: whether counts lay in their intervals, how far they were off, and their standard errors."""
    table, sensitive = setting.table, setting.sensitive
    columns = {c: np.array(table[c].to_pylist(), dtype=object) for c in table.column_names if c != sensitive}
    wheres = conditions(np.random.default_rng(1), columns, 120)
    domain, truth = codes_of(table, sensitive)
    actual = actual_counts(columns, wheres, truth, len(domain))
    for release in releases:
        counts = release.count_many(wheres, every_value=True, **options)
        held = (counts.low <= actual) & (actual <= counts.high)
        for least, most in DECADES:
            some = (actual >= least) & (actual < most)
            yield f"count {least:,}+", (held[some], (counts.value - actual)[some], counts.stderr[some])


def questioned(
    releases: list[dn.Release], setting: Setting, column: str, options: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """The same of every aggregate in SQL, over groups of public columns."""
    import duckdb

    half = pa.table({"value": pa.array(setting.half)})
    for (what, text), group in ((item, group) for item in AGGREGATES.items() for group in setting.groups):
        formula = text.format(inside=setting.inside(column), number=setting.number)
        question = f"SELECT {group}, {formula} AS x FROM release GROUP BY {group} ORDER BY {group}"
        with duckdb.connect() as connection:
            connection.register("release", setting.table)
            connection.register("half", half)
            truth = {row[0]: row[1] for row in connection.execute(question).fetchall()}
        for release in releases:
            for row in release.sql(question, tables={"half": half}, **options).to_pylist():
                true = truth.get(row[group])
                if row["x"] is None or true is None or row["x_low"] == row["x_high"]:
                    continue
                error = (row["x_high"] - row["x_low"]) / 2 / 1.96
                yield what, (row["x_low"] <= true <= row["x_high"], row["x"] - true, error)


def coefficients(releases: list[dn.Release], setting: Setting, column: str) -> Iterator[tuple[str, Any]]:
    """The same of the coefficient of a perturbed condition, or of a public one where numbers are perturbed."""
    table = setting.table
    ages = table[setting.number].to_numpy().astype(float)
    sex = next(name for name in ("sex", "gender") if name in table.column_names)
    name, values = (setting.sensitive, setting.half) if column == setting.sensitive else (sex, [table[sex][0].as_py()])
    inside = np.isin(np.array(table[name].to_pylist(), dtype=object), values)
    for group in setting.groups:
        codes = np.array(table[group].to_pylist(), dtype=object)
        for value in sorted(set(codes)):
            some = codes == value
            if not (some & inside).any() or not (some & ~inside).any():
                continue
            truth = ages[some & inside].mean() - ages[some & ~inside].mean()
            for release in releases:
                try:
                    model = release.linear(setting.number, [{name: values}], where={group: value})
                except dn.DeniableError:
                    continue  # so few rows that the perturbation drowns the model
                (estimate,) = list(model.values())[1:]
                yield "coefficient", (estimate.low <= truth <= estimate.high, estimate.value - truth, estimate.stderr)


def published(setting: Setting, name: str, draws: int) -> Iterator[dn.Release]:
    """Releases of one mechanism, by fixed keys."""
    made = setting.publications()[name]
    for number in range(draws):
        yield dn.publish(setting.table, **made, key=number.to_bytes(32, "big"), shuffle=False)


def cells(name: str, settings: list[Setting], draws: int) -> dict[str, dict[str, list[Any]]]:
    """Method -> what was asked -> pieces of (held, off, error), over all tables."""
    collected: dict[str, dict[str, list[Any]]] = {}
    for setting in settings:
        column = setting.number if name == NUMBERS else setting.sensitive
        try:
            releases = list(published(setting, name, draws))
        except dn.DeniableError as problem:
            print(f"<!-- {name}: {problem} -->", file=sys.stderr)
            continue
        calibrated = any(part.marginal is not None for part in releases[0].manifest.parts)
        for method in METHODS if calibrated else ("inverse",):
            asked_for = [questioned(releases, setting, column, METHODS[method])]
            if name not in ("retention", NUMBERS):
                asked_for.append(counted(published(setting, name, COUNTED * draws), setting, METHODS[method]))
            if method == "inverse":
                asked_for.append(coefficients(releases, setting, column))
            for what, piece in (pair for pairs in asked_for for pair in pairs):
                collected.setdefault(method, {}).setdefault(what, []).append(piece)
    return collected


def shown(pieces: list[Any]) -> str:
    held, off, error = (np.concatenate([np.atleast_1d(piece[i]) for piece in pieces]) for i in range(3))
    usable = np.isfinite(error) & (error > 0)
    if not usable.any():
        return ""
    bias = off[usable].mean() / error[usable].mean() if len(pieces) else 0.0
    return f"{held.mean():.3f} ({bias:+.2f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--tables", choices=("made-up", "real"), default="made-up")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = (real if given.tables == "real" else made_up)(given.rows)
    heads = [f"count {a:,}+" for a, _ in DECADES] + [*AGGREGATES, "coefficient"]
    print("| mechanism | method | " + " | ".join(heads) + " |\n|---|---|" + "---|" * len(heads))
    for name in settings[0].publications():
        for method, pieces in cells(name, settings, given.draws).items():
            row = " | ".join(shown(pieces[head]) if head in pieces else "" for head in heads)
            print(f"| {name} | {method} | {row} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
