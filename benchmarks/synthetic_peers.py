"""Learned releases beside every other mechanism and the best synthetic data of the field, on real tables.

    python benchmarks/synthetic_peers.py [TABLE ..] [--draws 10] [--others 2] [--rivals 1] [--rows N]
    python benchmarks/synthetic_peers.py [TABLE ..] --coverage [--draws 20] [--questions 40]

A table for each pool of questions is printed: pool 1 has one to three conditions on random levels of random columns,
pool 2 two or three conditions of a random row; each is asked with every value. Shown are mean relative errors of counts
of at least .1, .5 and 1 % of the rows, and apart those of counts of 10 to 100 people. Everything is published and asked
as users do: (1/13, 1/6), against any attacker (epsilon ln 2.4) or one who knows frequencies. "Model" are the expected
counts of the published parameters, of which published rows are dealt. AIM, MST and PrivBayes (dpmm) synthesize at the
same epsilon and delta 1e-9, in an environment of their own (``peers``): whole tables, and values for the public columns
as they are. The second command prints how often 95 % intervals hold, by the true count. Reads the folder DENIABLE_DATA.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from peers import run_peer

import deniable as dn
from deniable.learned.levels import level_codes

ROWS, QUESTIONS = 100_000, 200
COUNTS = (1, 10, 30, 100, 1000, 10**9)
SELECTIVITIES = (0.001, 0.005, 0.01)
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
ANY = dn.Privacy("1/13", "1/6", adversary="any-prior")
EPSILON = float(np.log(12 / 5))
OURS: dict[tuple[str, str], dn.Privacy] = {
    ("uniform", "any attacker"): ANY,
    ("lineup", "any attacker"): ANY,
    **{
        (name, "frequencies only"): dn.Privacy("1/13", "1/6")
        for name in ("uniform", "small-domain", "fine-grain", "designed", "lineup", "decoys")
    },
}
RIVAL = """
import json, sys
import numpy as np, pandas as pd
from dpmm.pipelines import {pipeline} as Pipeline
codes = np.load(sys.argv[1])
names = [f"c{{j}}" for j in range(codes.shape[1])]
frame = pd.DataFrame(codes, columns=names)
sizes = dict(zip(names, map(int, json.loads(sys.argv[3]))))
made = Pipeline(epsilon=float(sys.argv[4]), delta=1e-9, disable_processing=True, n_jobs=1, max_model_size=80)
made.fit(frame, domain=sizes, random_state=int(sys.argv[5]))
whole = made.generate(n_records=len(frame), random_state=int(sys.argv[5]))
given = made.gen.generate(n_records=len(frame), condition_records=frame[names[:-1]].copy())
np.save(sys.argv[2], np.stack([whole[names].to_numpy(), given[names].to_numpy()]))
print(json.dumps(len(frame)))
"""
RIVALS = {"AIM": "AIMPipeline", "MST": "MSTPipeline", "PrivBayes": "PrivBayesPipeline"}


class Table:
    """A real table, its codes, and the questions that it is asked."""

    def __init__(self, which: str, rows: int = ROWS) -> None:
        file, sensitive, names = TABLES[which]
        table = pq.read_table(Path(os.environ["DENIABLE_DATA"], f"{file}.parquet"))
        table = table.filter(pc.is_valid(table[sensitive]))
        if rows > ROWS:  # drawn again and again: the same people, as often as it takes
            table = table.take(np.random.default_rng(3).integers(0, table.num_rows, rows))
        table = table.slice(0, rows)
        names = names or [name for name in table.column_names if name != sensitive]
        filled = {name: pc.fill_null(table[name], "?") if table[name].null_count else table[name] for name in names}
        self.arrow = pa.table({**filled, sensitive: table[sensitive]})
        self.which, self.names, self.sensitive, self.n = which, names, sensitive, table.num_rows
        coded = [np.unique(self.arrow[name].to_numpy(), return_inverse=True) for name in [*names, sensitive]]
        self.values = [values.tolist() for values, _ in coded]
        self.codes = np.stack([codes for _, codes in coded], axis=1)
        self.m = len(self.values[-1])
        self.pools = [self._asked(self._random_levels, 11), self._asked(self._of_a_row, 77)]
        self.true = [self.counts(self.codes, pool) for pool in self.pools]

    def _asked(self, draw: Callable[[Any], dict[int, int]], seed: int) -> list[dict[int, int]]:
        rng, asked = np.random.default_rng(seed), []
        while len(asked) < QUESTIONS:
            where = draw(rng)
            if self.mask(self.codes, where).any():
                asked.append(where)
        return asked

    def _random_levels(self, rng: Any) -> dict[int, int]:
        chosen = rng.choice(len(self.names), rng.integers(1, 4), replace=False)
        return {int(c): int(rng.integers(len(self.values[c]))) for c in chosen}

    def _of_a_row(self, rng: Any) -> dict[int, int]:
        row = self.codes[rng.integers(self.n)]
        return {int(c): int(row[c]) for c in rng.choice(len(self.names), rng.integers(2, 4), replace=False)}

    @staticmethod
    def mask(codes: Any, where: dict[int, int]) -> Any:
        return np.logical_and.reduce([codes[:, column] == code for column, code in where.items()])

    def counts(self, codes: Any, pool: list[dict[int, int]]) -> Any:
        """Rows of each question with every value [questions, values]."""
        return np.stack([np.bincount(codes[self.mask(codes, where), -1], minlength=self.m) for where in pool])

    def wheres(self, pool: list[dict[int, int]]) -> list[dict[str, Any]]:
        """The questions, as they are asked."""
        return [{self.names[column]: self.values[column][code] for column, code in where.items()} for where in pool]

    def publish(self, mechanism: str, privacy: dn.Privacy, key: int) -> dn.Release:
        """A release, its rows in the table's order."""
        declared = {"domain": self.values[-1]} if privacy is ANY else {}
        return dn.publish(
            self.arrow,
            sensitive=self.sensitive,
            mechanism=mechanism,
            privacy=privacy,
            key=key.to_bytes(32, "big"),
            shuffle=False,
            **declared,
        )


def expected(table: Table, release: dn.Release, pool: list[dict[int, int]]) -> Any:
    """Counts by the model that the release publishes: its parameters added up for every row, exponentiated, shared."""
    part = release.manifest.parts[0]
    learned = part.learned
    assert learned is not None
    assert learned.base is not None
    levels = np.stack([level_codes(coding, table.arrow[coding.column]) for coding in learned.codings], axis=1)
    distinct, of = np.unique(levels, axis=0, return_inverse=True)
    logits = np.tile(learned.base * 2.0**-16, (len(distinct), 1))
    for one in learned.tables:
        assert one.theta is not None
        logits += one.theta[one.levels(distinct, learned.sizes)] * 2.0**-16
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    place = [part.domain.index(value) for value in table.values[-1]]
    return np.stack(
        [np.bincount(of.ravel()[table.mask(table.codes, where)], minlength=len(distinct)) @ shares for where in pool]
    )[:, place]


def errors(estimates: Any, true: Any, n: int) -> list[float]:
    """Mean relative errors of counts of at least each selectivity, and of those of 10 to 100 people."""
    relative = np.abs(estimates - true) / np.maximum(true, 1)
    some = [true >= share * n for share in SELECTIVITIES] + [(true >= 10) & (true < 100)]
    return [float(relative[one].mean()) for one in some]


def both(table: Table, answers: Callable[[int], Any]) -> list[list[float]]:
    return [errors(answers(number), table.true[number], table.n) for number in (0, 1)]


def asked(table: Table, release: dn.Release) -> list[list[float]]:
    """Errors of what a release answers."""
    place = [release.manifest.parts[0].domain.index(value) for value in table.values[-1]]
    pools = [table.wheres(pool) for pool in table.pools]
    return both(table, lambda number: release.count_many(pools[number], every_value=True).value[:, place])


def rival(table: Table, pipeline: str, seed: int) -> tuple[list[list[list[float]]], str]:
    """Errors of counting the rows of a synthetic table, and of one whose public columns were given; or why not."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "given.npy"), Path(folder, "made.npy")
        np.save(given, table.codes)
        sizes = json.dumps([len(values) for values in table.values])
        script = RIVAL.format(pipeline=pipeline)
        done, note = run_peer("dpmm", script, str(given), str(made), sizes, str(EPSILON), str(seed), timeout=3600)
        if done is None:
            return [], note
        return [
            both(table, lambda number, codes=codes: table.counts(codes, table.pools[number]))  # type: ignore[misc]
            for codes in np.load(made).astype(np.int64)
        ], ""


def measured(table: Table, draws: int, others: int, rivals: int) -> Iterator[tuple[str, str, Any]]:
    """(what, promise, errors [draws, pools, sizes] or why there are none)."""
    answers, model = [], []
    for key in range(draws):
        release = table.publish("synthetic", ANY, key)
        answers.append(asked(table, release))
        model.append(both(table, lambda number, one=release: expected(table, one, table.pools[number])))  # type: ignore[misc]
    yield "**learned** (`synthetic`): rows counted", "any attacker", answers
    yield "its model", "any attacker", model
    for (name, adversary), privacy in OURS.items() if others else ():
        try:
            yield name, adversary, [asked(table, table.publish(name, privacy, key)) for key in range(others)]
        except dn.DeniableError as error:
            yield name, adversary, str(error).split(". ")[0]
    for name, pipeline in RIVALS.items():
        found = [rival(table, pipeline, seed) for seed in range(rivals)]
        for place, how in enumerate(("whole table", "given public columns") if found else ()):
            some = [one[place] for one, _ in found if one]
            yield f"{name} (dpmm), {how}", "rows, delta 1e-9", some or found[0][1]
    shares = np.bincount(table.codes[:, -1], minlength=table.m) / table.n
    independent = both(table, lambda number: table.true[number].sum(axis=1, keepdims=True) * shares)
    yield "exact frequencies, values independent of columns", "none", [independent]


def shown(found: Any) -> str:
    if isinstance(found, str):
        return f"| {found} | | "
    mean = np.mean(found, axis=0)
    cells = [" / ".join(f"{error:.3f}"[1:] if error < 1 else f"{error:.2f}" for error in pool[:3]) for pool in mean]
    return f"| {cells[0]} | {cells[1]} | {mean[0][3]:.2f}, {mean[1][3]:.2f} "


def held(table: Table, draws: int, questions: int) -> list[list[bool]]:
    """Whether intervals hold, by the true count, of some questions of both pools with every value."""
    found: list[list[bool]] = [[] for _ in COUNTS[1:]]
    for key in range(draws):
        release = table.publish("synthetic", ANY, key)
        place = [release.manifest.parts[0].domain.index(value) for value in table.values[-1]]
        for pool, true in zip(table.pools, table.true, strict=True):
            asked = release.count_many(table.wheres(pool[:questions]), every_value=True)
            own = true[:questions]
            inside = (asked.low[:, place] <= own) & (own <= asked.high[:, place])
            for size, (least, most) in enumerate(itertools.pairwise(COUNTS)):
                found[size] += inside[(own >= least) & (own < most)].tolist()
    return found


def print_coverage(tables: list[str], rows: int, draws: int, questions: int) -> None:
    heads = [
        f"{least:,} to {most:,}" if most < COUNTS[-1] else f"{least:,}+" for least, most in itertools.pairwise(COUNTS)
    ]
    print(f"| table | {' | '.join(heads)} |\n|{'---|' * len(COUNTS)}")
    for which in tables:
        cells = held(Table(which, rows), draws, questions)
        print(f"| {which} | {' | '.join(f'{np.mean(one):.3f} ({len(one):,})' for one in cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="*", default=["occ", "edu"], help=", ".join(TABLES))
    parser.add_argument("--draws", type=int, default=10, help="learned releases")
    parser.add_argument("--others", type=int, default=2, help="releases of every other mechanism; 0: none")
    parser.add_argument("--rivals", type=int, default=1, help="synthetic tables of each rival; 0: none")
    parser.add_argument("--coverage", action="store_true", help="how often intervals hold")
    parser.add_argument("--questions", type=int, default=40, help="of each pool, for --coverage")
    parser.add_argument("--rows", type=int, default=ROWS, help="more than 100,000 are drawn with replacement")
    options = parser.parse_args()
    if options.coverage:
        print_coverage(options.table, options.rows, options.draws, options.questions)
        return
    for which in options.table:
        table = Table(which, options.rows)
        print(f"\n{which}: {table.n:,} rows, {table.m} values, {len(table.names)} public columns\n")
        print("| | promise | pool 1 | pool 2 | 10 to 100 people |\n|---|---|---|---|---|")
        for what, promise, found in measured(table, options.draws, options.others, options.rivals):
            print(f"| {what} | {promise} {shown(found)}|", flush=True)


if __name__ == "__main__":
    main()
