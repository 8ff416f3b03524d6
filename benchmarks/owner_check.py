"""What an owner is told, on real and made-up tables: what is planted is found, random columns never, and the fix works.

Each table gets random columns of 2 to many values beside its own. It is published and audited; columns that the audit
names are left out or made coarser, and it is published again, until the audit has nothing serious to say about them.

    make owner-check                                   the tables of DENIABLE_DATA, if it is there, and made-up ones
    python benchmarks/owner_check.py --rows 10000000   one made-up table of so many rows: seconds and memory
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import deniable as dn
from deniable.owner.public import ALL, carriers

RANDOM = ("random_2", "random_50", "random_1000", "random_many", "random_number")
MOST_ROUNDS = 6


@dataclass(frozen=True)
class Case:
    """A table, what is sensitive in it, and the columns that give it away (none: there must be nothing to say)."""

    name: str
    table: Callable[[], pa.Table]
    sensitive: str
    rho2: str
    planted: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    recode: dict[str, object] = field(default_factory=dict)


def with_random(table: pa.Table) -> pa.Table:
    """The table with columns that say nothing."""
    draw, rows = np.random.default_rng(7), table.num_rows
    for name, size in zip(RANDOM[:4], (2, 50, 1000, max(rows // 2, 2)), strict=True):
        table = table.append_column(name, pa.array(draw.integers(0, size, rows)))
    return table.append_column(RANDOM[4], pa.array(draw.normal(size=rows)))


def made_up(rows: int, seed: int, planted: Callable[[np.ndarray, np.random.Generator], dict[str, object]]) -> pa.Table:
    """People with a code of 20 values, and columns that are made from it."""
    draw = np.random.default_rng(seed)
    code = draw.choice(20, rows, p=draw.dirichlet(np.full(20, 4.0)))
    columns = {"sex": draw.choice(["F", "M"], rows), "age": draw.integers(18, 90, rows), **planted(code, draw)}
    return pa.table({**columns, "code": [f"{chr(65 + value // 5)}{value % 5}" for value in code.tolist()]})


def xor(code: np.ndarray, draw: np.random.Generator) -> dict[str, object]:
    one = draw.integers(0, 20, len(code))
    return {"one": one, "other": (code + one) % 20}


def copied(code: np.ndarray, draw: np.random.Generator) -> dict[str, object]:
    return {"copy": np.where(draw.random(len(code)) < 0.9, code, draw.integers(0, 20, len(code)))}


def paid(code: np.ndarray, draw: np.random.Generator) -> dict[str, object]:
    return {"salary": 10_000.0 * code + draw.normal(0, 2_000, len(code))}


def of_made_up() -> Iterator[Case]:
    rows = 12_000
    yield Case("nothing planted", lambda: made_up(rows, 1, lambda code, draw: {}), "code", "1/2")
    chapters = lambda code, draw: {"chapter": code // 5}  # noqa: E731
    yield Case("a chapter beside a code", lambda: made_up(rows, 2, chapters), "code", "1/2", ("chapter",))
    finer = lambda code, draw: {"finer": code * 10 + draw.integers(0, 10, len(code))}  # noqa: E731
    yield Case("a finer code", lambda: made_up(rows, 3, finer), "code", "1/2", ("finer",))
    yield Case("two that tell together", lambda: made_up(rows, 4, xor), "code", "1/2", ("one with other",))
    yield Case("a copy, right in 9 of 10", lambda: made_up(rows, 5, copied), "code", "1/2", ("copy",))
    wide = {"salary": dn.bands(1_000_000)}
    yield Case("a salary by code", lambda: made_up(rows, 6, paid), "code", "1/2", ("salary",), recode=wide)


def of_real(home: Path) -> Iterator[Case]:
    def read(name: str) -> Callable[[], pa.Table]:
        return lambda: pq.read_table(home / f"{name}.parquet")

    def with_chapter(name: str, column: str) -> Callable[[], pa.Table]:
        def made() -> pa.Table:
            table = read(name)()
            codes = [None if value is None else str(value)[:1] for value in table[column].to_pylist()]
            return table.append_column("chapter", pa.array(codes))

        return made

    yield Case("adult: education", read("adult"), "education", "1/2", ("education_num",))
    yield Case("adult: occupation", read("adult"), "occupation", "1/3", ("workclass",))
    yield Case("census: occupation", read("census_occ100k"), "occupation", "1/3")
    yield Case(
        "census: with a chapter", with_chapter("census_occ100k", "occupation"), "occupation", "1/3", ("chapter",)
    )
    industry = "detailed_industry_recode"
    yield Case("census-income: industry", read("census_income_kdd"), industry, "3/4", ("major_industry_code",))
    ids = ("encounter_id", "patient_nbr")
    made = with_chapter("diabetes130", "diag_1")
    yield Case("diabetes: diagnosis with a chapter", made, "diag_1", "1/3", ("chapter",), ids)


def culprits_of(report: dn.audit, rho2: float) -> list[str]:
    """The public columns that an audit's serious findings are about."""
    return [one.column for found in report.dependence for one in carriers(found)]


def checked(case: Case) -> list[str]:
    """What went wrong with a case; it prints a line for each round."""
    table, wrong, rho2 = with_random(case.table()), [], float(dn.Privacy(rho2=case.rho2).rho2 or 1)
    drop, recode = list(case.drop), {}
    for turn in range(MOST_ROUNDS):
        start = time.perf_counter()
        release = dn.publish(
            table,
            sensitive=case.sensitive,
            privacy=dn.Privacy(rho2=case.rho2),
            mechanism="designed",
            drop=drop,
            recode=recode,
        )
        published = time.perf_counter()
        report = dn.audit(table, release)
        named = culprits_of(report, rho2)
        warned = any(warning.startswith("Public columns") for warning in release.warnings)
        seconds = f"{published - start:.1f} s + {time.perf_counter() - published:.1f} s"
        print(
            f"{case.name} | {', '.join(named) or 'nothing serious'} | {'warned' if warned else ''} | {seconds}",
            flush=True,
        )
        wrong += [f"{case.name}: false alarm at {name}" for name in named if name in RANDOM]
        if turn == 0:
            wrong += [f"{case.name}: {name} was not found" for name in case.planted if name not in named]
            wrong += [f"{case.name}: {name} was named" for name in named if not case.planted]
            wrong += [f"{case.name}: publish did not warn"] if case.planted and not warned else []
        if not named:
            return wrong
        recode = {**recode, **{name: how for name, how in case.recode.items() if name in named}}
        drop += [name.split(" with ")[0] for name in named if name not in (*recode, ALL)]
        if named == [ALL]:  # no single one: the most telling, or else any that is not random
            single = [one.column for one in report.dependence[0].columns if one.column != ALL]
            drop += (
                single or [name for name in table.column_names if name not in (*RANDOM, *drop, case.sensitive)][-1:]
            )[:1]
    return [*wrong, f"{case.name}: still serious after {MOST_ROUNDS} rounds"]


def large(rows: int) -> None:
    """One made-up table in a file: what the check adds to publishing it."""
    with tempfile.TemporaryDirectory() as home:
        path = Path(home, "large.parquet")
        schema = made_up(10, 0, lambda code, draw: {"chapter": code // 5}).schema
        with pq.ParquetWriter(path, schema) as writer:
            for number in range(0, rows, 500_000):
                size = min(500_000, rows - number)
                writer.write_table(made_up(size, 100 + number, lambda code, draw: {"chapter": code // 5}))
        start = time.perf_counter()
        seen: list[str] = []
        release = dn.publish(
            path,
            sensitive="code",
            privacy=dn.Privacy(rho2="1/2"),
            out=Path(home, "release"),
            progress=lambda done, total, what: seen.append(what) if what not in seen else None,
            mechanism="uniform",
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{rows:,} rows: published and checked in {time.perf_counter() - start:.1f} s, peak {peak:.0f} MB; {seen}"
        )
        print(*(warning for warning in release.warnings if warning.startswith("Public")), sep="\n")


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, default=Path("../shared/data"))
    options.add_argument("--rows", type=int)
    given = options.parse_args()
    if given.rows:
        large(given.rows)
        return 0
    cases = list(of_made_up())
    if given.data.is_dir():
        cases += of_real(given.data)
    else:
        print(f"{given.data} is not there: made-up tables only.")
    print("table | named by the audit | at publish | publish + audit")
    wrong = [line for case in cases for line in checked(case)]
    print(
        "\n".join(wrong) or f"{len(cases)} tables: what was planted was found, no random column was, every fix passed."
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
