"""The same ten questions in DuckDB, pandas, R, psql and the page of `deniable explore`: one table for the docs.

    python docs/how-to/scripts/ten_questions.py

writes it into any-tool.md. It needs duckdb, pandas, R with jsonlite, psql, and Chromium with playwright.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import deniable as dn

HERE = Path(__file__).resolve().parent
PAGE, PACKAGE = HERE.parent / "any-tool.md", HERE.parents[2] / "r" / "deniable"
BEGIN, END = "<!-- ten questions: made by scripts/ten_questions.py -->", "<!-- end of ten questions -->"
JOBS = ["nurse", "cook", "clerk", "driver", "judge", "farmer"]


@dataclass(frozen=True)
class Question:
    """How many people have one of some jobs, and satisfy conditions on public columns: texts, or a range of ages."""

    words: str
    jobs: tuple[str, ...]
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ages: tuple[int, int] | None = None

    @property
    def public(self) -> list[str]:
        """The public conditions in SQL."""
        listed = [f"{name} IN {in_sql(values)}" for name, values in self.texts.items()]
        return [*listed, *([] if self.ages is None else ["age BETWEEN {} AND {}".format(*self.ages)])]


def in_sql(values: tuple[str, ...]) -> str:
    return "(" + ", ".join(f"'{value}'" for value in values) + ")"


QUESTIONS = (
    Question("nurses", ("nurse",)),
    Question("nurses and cooks", ("nurse", "cook")),
    Question("women who are nurses", ("nurse",), {"gender": ("F",)}),
    Question("nurses aged 30 to 40", ("nurse",), ages=(30, 40)),
    Question("clerks in the north", ("clerk",), {"region": ("north",)}),
    Question("all but judges", ("nurse", "cook", "clerk", "driver", "farmer")),
    Question("male drivers above 60", ("driver",), {"gender": ("M",)}, (61, 89)),
    Question("farmers in the north or south", ("farmer",), {"region": ("north", "south")}),
    Question("judges", ("judge",)),
    Question("young women who nurse, cook or drive", ("nurse", "cook", "driver"), {"gender": ("F",)}, (18, 29)),
)


def published(folder: Path) -> dn.Release:
    """A made-up table, published as line-ups under a fixed key, so that the page is the same whenever it is made."""
    rng = np.random.Generator(np.random.PCG64(11))
    n = 20_000
    people = pa.table(
        {
            "gender": rng.choice(["F", "M"], n).tolist(),
            "age": rng.integers(18, 90, n),
            "region": rng.choice(["north", "east", "south", "west"], n).tolist(),
            "job": rng.choice(JOBS, n, p=[0.25, 0.2, 0.2, 0.18, 0.05, 0.12]).tolist(),
        }
    )
    return dn.publish(
        people,
        sensitive="job",
        privacy=dn.Privacy(rho2="1/2"),
        mechanism="lineup",
        marginals=False,
        key=bytes(range(32)),
        format="csv",
        out=folder,
    )


def in_duckdb(folder: Path) -> list[float]:
    """The rows joined with the weights beside them."""
    import duckdb

    counts = []
    with duckdb.connect() as database:
        for name in ("data", "weights"):
            database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_csv('{folder / name}.csv', header = true)")
        for question in QUESTIONS:
            listed = f"FROM weights WHERE value_job IN {in_sql(question.jobs)}"
            weighed = f"SELECT shown_job, SUM(w) AS w {listed} GROUP BY shown_job"
            where = " AND ".join(question.public) or "TRUE"
            text = f"SELECT SUM(w) FROM data JOIN ({weighed}) AS asked ON data.job = asked.shown_job WHERE {where}"
            counts.append(float(database.execute(text).fetchone()[0]))  # type: ignore[index]
    return counts


def in_pandas(folder: Path) -> list[float]:
    """The same with frames."""
    import pandas as pd

    data, weights = pd.read_csv(folder / "data.csv"), pd.read_csv(folder / "weights.csv")
    counts = []
    for question in QUESTIONS:
        asked = weights[weights.value_job.isin(question.jobs)].groupby("shown_job").w.sum()
        rows = data
        for name, values in question.texts.items():
            rows = rows[rows[name].isin(values)]
        if question.ages is not None:
            rows = rows[rows.age.between(*question.ages)]
        counts.append(float(rows.job.map(asked).sum()))
    return counts


def in_r(folder: Path) -> list[float]:
    """The R package, read from its source."""
    lines = [f'source("{PACKAGE / "R" / "release.R"}")', f'release <- read_release("{folder}")', "n <- c()"]
    for question in QUESTIONS:
        conditions = [f"{name} = c({', '.join(map(json.dumps, values))})" for name, values in question.texts.items()]
        conditions += [] if question.ages is None else ["age = between({}, {})".format(*question.ages)]
        conditions.append(f"job = c({', '.join(map(json.dumps, question.jobs))})")
        lines.append(f"n <- c(n, sum(weights.deniable_release(release, list({', '.join(conditions)}))))")
    lines.append('cat(format(n, digits = 15), sep = "\\n")')
    done = subprocess.run(["Rscript", "-e", "\n".join(lines)], capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


def in_psql(folder: Path) -> list[float]:
    """psql, asking `deniable serve`."""
    command = [sys.executable, "-m", "deniable", "serve", str(folder), "--port", "0", "--json"]
    counts = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            started = json.loads(server.stdout.readline())
            address = "host=127.0.0.1 port={port} dbname=release user=analyst password={token}".format(**started)
            for question in QUESTIONS:
                where = " AND ".join([*question.public, f"job IN {in_sql(question.jobs)}"])
                text = f"SELECT COUNT(*) AS n FROM release WHERE {where}"
                done = subprocess.run(["psql", address, "-tAc", text], capture_output=True, text=True, check=True)
                counts.append(float(done.stdout.split("|")[0]))
        finally:
            server.terminate()
    return counts


def in_the_page(folder: Path) -> list[float]:
    """The page of `deniable explore`, opened in Chromium."""
    from playwright.sync_api import sync_playwright

    from deniable.analyst import explore

    page_file = explore.write(dn.open_release(folder), folder.parent / "explore.html")
    wheres: list[dict[str, Any]] = []
    for question in QUESTIONS:
        where: dict[str, Any] = {name: list(values) for name, values in question.texts.items()}
        where |= {} if question.ages is None else {"age": {"from": question.ages[0], "to": question.ages[1]}}
        wheres.append({**where, "job": list(question.jobs)})
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"])
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.evaluate("deniable.ready")
        counts = page.evaluate("(wheres) => wheres.map((where) => deniable.count(where).value)", wheres)
        browser.close()
    return [float(number) for number in counts]


TOOLS: dict[str, Callable[[Path], list[float]]] = {
    "DuckDB": in_duckdb,
    "pandas": in_pandas,
    "R": in_r,
    "psql": in_psql,
    "browser": in_the_page,
}


def intervals(release: dn.Release) -> list[tuple[float, float]]:
    """The ends that deniable gives."""
    answers = []
    for question in QUESTIONS:
        where: dict[str, Any] = {name: list(values) for name, values in question.texts.items()}
        where |= {} if question.ages is None else {"age": dn.between(*question.ages)}
        one = release.count({**where, "job": list(question.jobs)})
        answers.append((one.low, one.high))
    return answers


def table(counts: dict[str, list[float]], ends: list[tuple[float, float]]) -> str:
    """The table in Markdown."""
    lines = [f"| how many are | {' | '.join(counts)} | 95 % |", "|---|" + "---:|" * (len(counts) + 1)]
    for place, question in enumerate(QUESTIONS):
        numbers = " | ".join(f"{own[place]:,.2f}" for own in counts.values())
        low, high = ends[place]
        lines.append(f"| {question.words} | {numbers} | {low:,.0f} to {high:,.0f} |")
    return "\n".join(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "release")
        release = published(folder)
        made = table({name: tool(folder) for name, tool in TOOLS.items()}, intervals(release))
    text = PAGE.read_text(encoding="utf-8")
    whole = re.sub(
        f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}\n\n{made}\n\n{END}", text, flags=re.DOTALL
    )
    PAGE.write_text(whole, encoding="utf-8")


if __name__ == "__main__":
    main()
