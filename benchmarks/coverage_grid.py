"""How often 95 % intervals hold: mechanism x aggregate x method, and counts by their size and that of their group.

Run: python benchmarks/coverage_grid.py [--draws 20] [--rows 6000] [--tables all | made-up | real] [--counts]. A table
is published with every mechanism and fixed keys; a tenth of the releases, two at least, are asked for other aggregates
than counts. Counts are asked for every value of the sensitive column by random conditions on one to all public columns,
so that groups of a few rows and values that nobody of them has are there in numbers; everything else in SQL by groups.
The coefficient is that of a perturbed condition in a linear model of a public number. In brackets after other
aggregates than counts: the mean error, in mean standard errors; after counts how many of the intervals are all that is
possible, since nothing was learned. Real tables are those of DENIABLE_DATA or ../shared/data, so many rows of each;
tables are pooled.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from coverage import codes_of, data_folder

import deniable as dn
from deniable import mechanisms
from deniable.lab.made_up import census

SIZES = ((0, 1), (1, 10), (10, 100), (100, 10**9))  # of counts
GROUPS = ((1, 5), (5, 21), (21, 10**9))  # rows of the group that they are asked of
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
OTHERS = 10  # one release in so many is asked for other aggregates than counts


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


def sparse(rows: int) -> pa.Table:
    """40 values, most of them rare, in 400 towns of which most are small."""
    rng = np.random.default_rng(5)
    share = 1 / np.arange(1, 41) ** 1.3
    towns = rng.choice(400, rows, p=(weights := 1 / np.arange(5, 405)) / weights.sum())
    return pa.table(
        {
            "town": [f"t{town:03}" for town in towns],
            "kind": rng.choice(list("abc"), rows, p=[0.6, 0.3, 0.1]),
            "age": rng.integers(18, 90, rows),
            "value": [f"v{value:02}" for value in rng.choice(40, rows, p=share / share.sum())],
        }
    )


def bound(rows: int) -> pa.Table:
    """8 values that go with a public column closely."""
    rng = np.random.default_rng(6)
    street = rng.integers(0, 60, rows)
    value = np.where(rng.random(rows) < 0.5, street % 8, rng.integers(0, 8, rows))
    return pa.table(
        {
            "street": [f"s{one:02}" for one in street],
            "floor": rng.choice(list("1234"), rows, p=[0.4, 0.3, 0.2, 0.1]),
            "age": rng.integers(18, 90, rows),
            "value": [f"v{one}" for one in value],
        }
    )


def made_up(rows: int) -> list[Setting]:
    groups = ("education", "marital", "workclass", "race")
    census_like = census(rows, seed=11).select([*groups, "age", "occupation"])
    return [
        Setting(census_like, "occupation", "age", groups, dn.Privacy("1/13", "1/4")),
        Setting(sparse(rows), "value", "age", ("kind",), dn.Privacy("1/13", "1/4")),
        Setting(bound(rows), "value", "age", ("floor",), dn.Privacy(rho2="1/2")),
    ]


REAL = {
    "adult": ("occupation", "age", ("education", "marital_status"), ("1/7", "2/5")),
    "census_occ100k": ("occupation", "age", ("education", "marital"), ("1/13", "1/4")),
    "diabetes130": ("diag_1", "time_in_hospital", ("race", "age"), ("1/13", "1/4")),
    "adult, education": ("education", "age", ("occupation", "race"), ("1/7", "2/5")),
    "census_income_kdd": ("detailed_occupation_recode", "age", ("education", "marital_stat"), ("1/13", "1/4")),
}


def real(rows: int) -> list[Setting]:
    settings = []
    for name, (sensitive, number, groups, rho) in REAL.items():
        table = pq.read_table(data_folder() / f"{name.split(',')[0]}.parquet")
        table = table.select([*groups, number, "sex" if "sex" in table.column_names else "gender", sensitive])
        table = table.drop_null()
        some = np.sort(np.random.default_rng(3).permutation(table.num_rows)[:rows])
        settings.append(Setting(table.take(pa.array(some)), sensitive, number, groups, dn.Privacy(*rho)))
    return settings


def counted(releases: Iterable[dn.Release], setting: Setting, options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """By size of the count and of its group: whether counts lay in their intervals, and whether these say nothing."""
    table, sensitive = setting.table, setting.sensitive
    columns = {c: np.array(table[c].to_pylist(), dtype=object) for c in table.column_names if c != sensitive}
    rng, names = np.random.default_rng(1), list(columns)
    wheres, masks = [], []
    for _ in range(150):
        row, chosen = rng.integers(table.num_rows), rng.choice(names, rng.integers(1, len(names) + 1), replace=False)
        wheres.append({str(name): columns[name][row] for name in chosen})
        masks.append(np.logical_and.reduce([columns[name] == columns[name][row] for name in chosen]))
    domain, truth = codes_of(table, sensitive)
    actual = np.stack([np.bincount(truth[mask], minlength=len(domain)) for mask in masks])
    rows = np.broadcast_to(np.array([mask.sum() for mask in masks])[:, None], actual.shape)
    for release in releases:
        counts = release.count_many(wheres, every_value=True, **options)
        held = (counts.low <= actual) & (actual <= counts.high)
        nothing = (counts.low == 0) & (counts.high == rows)
        for (least, most), (few, many) in product(SIZES, GROUPS):
            some = (actual >= least) & (actual < most) & (rows >= few) & (rows < many)
            if some.any():
                yield f"{least:,}+ of {few}+", (held[some], nothing[some])


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
    sex = next((name for name in ("sex", "gender") if name in table.column_names), setting.groups[0])
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


def cells(name: str, settings: list[Setting], draws: int, counts_alone: bool) -> dict[str, dict[str, list[Any]]]:
    """Method -> what was asked -> pieces of (held, off, error), over all tables."""
    collected: dict[str, dict[str, list[Any]]] = {}
    for setting in settings:
        column = setting.number if name == NUMBERS else setting.sensitive
        try:
            releases = list(published(setting, name, 1 if counts_alone else max(2, draws // OTHERS)))
        except dn.DeniableError as problem:
            print(f"<!-- {name}: {problem} -->", file=sys.stderr)
            continue
        calibrated = any(part.marginal is not None for part in releases[0].manifest.parts)
        for method in METHODS if calibrated else ("inverse",):
            asked_for = [] if counts_alone else [questioned(releases, setting, column, METHODS[method])]
            if name != NUMBERS:
                asked_for.append(counted(published(setting, name, draws), setting, METHODS[method]))
            if method == "inverse" and not counts_alone:
                asked_for.append(coefficients(releases, setting, column))
            for what, piece in (pair for pairs in asked_for for pair in pairs):
                collected.setdefault(method, {}).setdefault(what, []).append(piece)
    return collected


def shown(pieces: list[Any]) -> str:
    parts = [np.concatenate([np.atleast_1d(piece[i]) for piece in pieces]) for i in range(len(pieces[0]))]
    if len(parts) == 2:
        return f"{parts[0].mean():.3f} ({100 * parts[1].mean():.0f} %)"
    held, off, error = parts
    usable = np.isfinite(error) & (error > 0)
    return f"{held.mean():.3f} ({off[usable].mean() / error[usable].mean():+.2f})" if usable.any() else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--tables", choices=("all", "made-up", "real"), default="all")
    parser.add_argument("--counts", action="store_true", help="ask for counts alone")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = [] if given.tables == "real" else made_up(given.rows)
    settings += [] if given.tables == "made-up" else real(given.rows)
    sizes = [f"{least:,}+ of {few}+" for (least, _), (few, _) in product(SIZES, GROUPS)]
    heads = [name for name in sizes if name not in ("10+ of 1+", "10+ of 5+", "100+ of 1+", "100+ of 5+")]
    tables: list[tuple[list[str], list[str]]] = [(heads, []), ([*AGGREGATES, "coefficient"], [])]
    for name in settings[0].publications():
        for method, pieces in cells(name, settings, given.draws, given.counts).items():
            for columns, lines in tables:
                row = " | ".join(shown(pieces[head]) if head in pieces else "" for head in columns)
                lines.append(f"| {name} | {method} | {row} |")
            print(f"{name}, {method}", file=sys.stderr, flush=True)
    for columns, lines in tables[: 1 if given.counts else 2]:
        print("| mechanism | method | " + " | ".join(columns) + " |\n|---|---|" + "---|" * len(columns))
        print("\n".join(lines) + "\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
