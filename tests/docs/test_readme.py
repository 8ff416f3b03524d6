"""What the README shows is what happens: five rows before and after, and every printed answer."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

import deniable as dn
from deniable.lab import made_up

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
MOST_WORDS = 450


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """The table of the demo, which is the same on every machine, as its CSV file is read."""
    path = tmp_path_factory.mktemp("readme") / "people.csv"
    pa.csv.write_csv(made_up.census(), path)
    return pa.csv.read_csv(path)


def shown(people: pa.Table, **options: Any) -> dn.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        privacy = dn.Privacy(rho1="1/13", rho2="1/3")
        return dn.publish(people, sensitive="occupation", privacy=privacy, seed=7, **options)


@pytest.mark.slow
def test_its_code_prints_what_it_shows(people: pa.Table, tmp_path: Path) -> None:
    code, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()  # type: ignore[union-attr]
    (tmp_path / "demo").mkdir()
    pa.csv.write_csv(people, tmp_path / "demo" / "people.csv")
    out = io.StringIO()
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, "README", "exec"), {})
    assert out.getvalue() == printed
    of_women = pc.equal(people["gender"], "Female")
    nursing = pc.is_in(people["occupation"], value_set=pa.array(["Registered nurse", "Nursing aide"]))
    assert f"In truth there are {pc.sum(pc.and_(of_women, nursing)).as_py():,}." in README


@pytest.mark.slow
def test_its_rows_are_those_of_that_release(people: pa.Table) -> None:
    published = shown(people, shuffle=False).table
    rows = re.findall(r"^\| (\d+) \| (\w+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", README, re.MULTILINE)
    columns = [people[name].to_pylist()[:5] for name in ("age", "gender", "education", "occupation")]
    after = published["occupation"].to_pylist()[:5]
    assert rows == [tuple(map(str, row)) for row in zip(*columns, after, strict=True)]


def test_its_picture_shows_the_figures_of_the_page() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "assets" / "make_errors.py"))
    assert (ROOT / "docs" / "assets" / "errors.svg").read_text("utf-8") == made["picture"]()
    alternative = re.search(r"!\[([^\]]+)\]", README).group(1)  # type: ignore[union-attr]
    by_promise = {}
    for name, promise, error in made["rows"]():
        by_promise.setdefault(promise, {})[name] = f"{100 * error:.2g}"
    field, weak = by_promise["rows, delta 1e-9"].values(), list(by_promise["frequencies only"].values())
    strong = by_promise["any attacker"]
    for words in (
        f"any attacker, {strong.pop('learned releases')} %",
        f"of the field {' to '.join(field)} %",
        f"frequencies only {weak[0]} to {weak[-1]} %",
        f"against any attacker {' and '.join(strong.values())} %",
    ):
        assert words in alternative


def test_it_is_read_in_a_minute() -> None:
    prose = re.sub(r"\]\([^)]*\)", "]", re.sub(r"```.*?```", "", README, flags=re.DOTALL))
    assert len(re.findall(r"[A-Za-z][\w'-]*", prose)) <= MOST_WORDS
