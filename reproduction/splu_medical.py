"""SPLU 6.3: Figures 10 and 11 need CADRMP, which cannot be had; two medical tables of its size stand in for it.

CADRMP has 42,264 rows and 1,346 diseases, the most frequent just above a tenth of the rows. Stand-ins: first diagnoses
of diabetes130, 42,264 rows of it, and made-up reports with 1,346 symptoms, as vaccine surveillance has them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from deniable.lab.anatomy import Anatomized
from deniable.lab.laplace import Noisy
from deniable.lab.settings import Independent, Redrawn
from deniable.planning.candidates import Chart, line
from deniable.planning.pools import CodedTable, sized_pool, small_pool
from reproduction.criteria import limit
from reproduction.items import Item, data_table, with_spread, yes
from reproduction.splu_settings import LINE_UP, PUBLISHED, AsPublished, Errors, LinedUp, measured

DIABETES = "diabetes130.parquet"
ROWS, SYMPTOMS = 42_264, 1346
SIZES = (2, 4, 9)
QUESTIONS = 1000
LARGE = 9  # c = l
COLUMNS = ("race", "gender", "age", "admission_type_id", "discharge_disposition_id", "medical_specialty", "readmitted")
BINS = tuple((share / 100, (share + 1) / 100) for share in range(1, 9))
TABLES = {"diagnoses": "diag_1 of diabetes130", "symptoms": "made-up reports"}


def medical(data: str | Path | None, draws: int) -> list[Item]:
    """Figures 10 and 11 on both tables."""
    tables = {"diagnoses": diagnoses(data_table(DIABETES, data)), "symptoms": symptoms()}
    return [figure_10(tables, draws), figure_11(tables, draws)]


def diagnoses(table: pa.Table, seed: int = 1) -> CodedTable:
    """As many rows of diabetes130 as CADRMP has, with a few public columns."""
    chosen = np.sort(np.random.default_rng(seed).choice(table.num_rows, size=ROWS, replace=False))
    return CodedTable.of(table.select([*COLUMNS, "diag_1"]).take(pa.array(chosen)), "diag_1")


def symptoms(seed: int = 1) -> CodedTable:
    """Made-up reports: symptoms as frequent as i^-1, the first about a tenth of the rows, more or less so by the public
    columns."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, SYMPTOMS + 1)
    share = np.minimum(share / share.sum(), 0.08)
    public = {"sex": 3, "age": 10, "maker": 12, "serious": 2, "notifier": 6}
    columns = {name: rng.choice(k, size=ROWS, p=rng.dirichlet(np.full(k, 2.0))) for name, k in public.items()}
    tilts = {name: rng.normal(0, 0.3, (public[name], SYMPTOMS)) for name in ("sex", "age", "maker")}
    kinds, kind = np.unique(np.stack([columns[name] for name in tilts]), axis=1, return_inverse=True)
    drawn = np.empty(ROWS, np.int64)
    for number, values in enumerate(kinds.T):
        likely = share * np.exp(sum(tilt[value] for tilt, value in zip(tilts.values(), values, strict=True)))
        alike = np.flatnonzero(kind.reshape(-1) == number)
        drawn[alike] = rng.choice(SYMPTOMS, size=len(alike), p=likely / likely.sum())
    return CodedTable.of(pa.table({**columns, "symptom": drawn}), "symptom")


def figure_10(tables: Mapping[str, CodedTable], draws: int) -> Item:
    """Small counts against c."""
    small = ((1.0, 11.0),)
    by_table: dict[str, dict[int, Errors]] = {}
    same: dict[str, Errors] = {}
    for name, table in tables.items():
        pool = small_pool(table, questions=QUESTIONS)
        by_table[name] = {c: measured(pool, [AsPublished(c), Anatomized(c), LinedUp(c)], small, draws) for c in SIZES}
        rivals = [Redrawn(), Noisy(math.log(2), "ln 2"), Noisy(math.log(3), "ln 3"), Independent()]
        same[name] = measured(pool, rivals, small, draws)
    splu = {name: [errors[PUBLISHED][0].mean for errors in by_size.values()] for name, by_size in by_table.items()}
    rises = all(all(a < b for a, b in pairwise(errors)) for errors in splu.values())
    above = {
        name: [
            c
            for c in SIZES
            if by_size[c][PUBLISHED][0].mean > max(by_size[c]["anatomy"][0].mean, same[name]["redraw"][0].mean)
        ]
        for name, by_size in by_table.items()
    }
    judged = {c for c in SIZES if c >= limit("SPLU Figure 10, on stand-ins", "from_c")}
    clear = all(judged <= set(sizes) for sizes in above.values())
    quiet = all(errors["ln 3"][0].mean < errors["redraw"][0].mean for errors in same.values())
    told = "; ".join(f"{name}: c = {', '.join(map(str, sizes)) or 'none'}" for name, sizes in above.items())
    rows = [
        (TABLES[name], f"c = {c}", *(with_spread(errors[kind][0], 0) for kind in (PUBLISHED, "anatomy", LINE_UP)))
        for name, by_size in by_table.items()
        for c, errors in by_size.items()
    ]
    rows += [
        (TABLES[name], f"{kind}, whatever c", with_spread(errors[0], 0), "", "")
        for name in same
        for kind, errors in same[name].items()
    ]
    return Item(
        "SPLU Figure 10, on stand-ins",
        f"Mean relative error of {QUESTIONS:,} questions with 1 to 10 true rows; {draws} draws. {_about(tables)}",
        ("table", "", PUBLISHED, "Anatomy", "line-up, rho2 = 1/c"),
        tuple(rows),
        rises and clear and quiet,
        f"The paper, on CADRMP: the error grows with c ({yes(rises)}), is clearly above the other methods' from c = 4 "
        f"on ({yes(clear)}; above Anatomy and DBR at {told}), and Laplace's at epsilon = ln 3 is small ({yes(quiet)}). "
        "Large errors are what small-sum privacy wants.",
        Chart(
            "Error of counts of 1 to 10 rows, medical tables",
            "group size c",
            "mean relative error",
            tuple(
                series
                for name, by_size in by_table.items()
                for series in (
                    line(shown, {c: errors[kind][0] for c, errors in by_size.items()}, panel=TABLES[name])
                    for kind, shown in ((PUBLISHED, PUBLISHED), ("anatomy", "Anatomy"), (LINE_UP, LINE_UP))
                )
            ),
            log_y=True,
            percent=True,
        ),
        draws=draws,
    )


def figure_11(tables: Mapping[str, CodedTable], draws: int) -> Item:
    """Large counts by selectivity, c = l = 9."""
    by_table: dict[str, Errors] = {}
    for name, table in tables.items():
        low, high = math.ceil(BINS[0][0] * table.rows), math.ceil(BINS[-1][1] * table.rows) - 1
        pool = sized_pool("splu-medical", table, low, high, questions=QUESTIONS)
        ends = (*((low * table.rows, high * table.rows) for low, high in BINS), (0.0, np.inf))
        settings = [AsPublished(LARGE), Anatomized(LARGE), LinedUp(LARGE), Redrawn(), Independent()]
        by_table[name] = measured(pool, settings, ends, draws)
    overall = {name: {kind: errors[-1].mean for kind, errors in by_name.items()} for name, by_name in by_table.items()}
    small = all(
        max(errors[PUBLISHED], errors["anatomy"]) <= limit("SPLU Figure 11, on stand-ins", "error")
        for errors in overall.values()
    )
    rows = [
        (TABLES[name], kind, *("" if math.isnan(error.mean) else with_spread(error, 0) for error in errors))
        for name, by_name in by_table.items()
        for kind, errors in by_name.items()
    ]
    return Item(
        "SPLU Figure 11, on stand-ins",
        f"Mean relative error of {QUESTIONS:,} questions by selectivity, c = l = {LARGE}; {draws} draws. "
        f"{_about(tables)}",
        ("table", "", *(f"{100 * low:g}-{100 * high:g} %" for low, high in BINS), "all"),
        tuple(rows),
        small,
        f"The paper, on CADRMP: errors from below 10 % to below 30 % (over all questions {yes(small)} for decoys and "
        "Anatomy), without a clear trend, and much alike for the three methods. Independence is as good: with a "
        "diagnosis that public columns hardly tell about, large sums teach little beyond the histogram. Line-ups are "
        "by inversion, with no histogram beside them: where the most frequent value is almost as frequent as a bound "
        "of 1/9 lets it be believed, hardly any row may be made around its value, and sums are noise.",
        draws=draws,
    )


def _about(tables: Mapping[str, CodedTable]) -> str:
    return (
        "; ".join(
            f"{TABLES[name]}: {table.rows:,} rows, {table.m:,} values, the most frequent "
            f"{100 * table.histogram.counts.max() / table.rows:.1f} %"
            for name, table in tables.items()
        )
        + "."
    )
