"""The SQL, Python and R of the how-to give what deniable gives, for the release that its names suppose."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "how-to" / "reconstruct-without-deniable.md"
NUMBER = re.compile(r"-?\d+\.\d+")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dn.Release:
    """A release as Parquet in the folder ``release``; beside it as CSV, in a folder ``csv/release``."""
    rng = np.random.default_rng(3)
    jobs = ["Secretary", "Nurse", "Cook", "Clerk", "Driver", "Farmer", "Miner", "Tailor"]
    share = np.array([20, 18, 15, 14, 12, 10, 6, 5]) / 100
    table = pa.table({"gender": rng.choice(["Female", "Male"], 4000), "occupation": rng.choice(jobs, 4000, p=share)})
    home = tmp_path_factory.mktemp("page")
    how = {"privacy": dn.Privacy(rho1="1/4", rho2="1/2"), "mechanism": "uniform", "key": bytes(32)}
    made = dn.publish(table, sensitive="occupation", out=home / "release", **how)
    made.save(home / "csv" / "release", format="csv")  # apart: a folder of both would not verify
    return made


def secretaries(release: dn.Release, **more: object) -> list[float]:
    answer = release.count({"occupation": "Secretary", **more}, calibrate=False)
    return [answer.value, answer.stderr]


def test_the_sql_of_the_page_equals_deniable(release, monkeypatch):
    monkeypatch.chdir(release.folder)
    found = duckdb.connect().execute(blocks("sql")[0]).fetchone()
    assert found == pytest.approx(secretaries(release, gender="Female"), rel=1e-9)


def test_the_database_of_the_page_equals_deniable(release, tmp_path):
    con = duckdb.connect(str(release.to_duckdb(tmp_path / "release.duckdb")), read_only=True)
    several, one = blocks("sql")[1].strip().splitlines()
    pair = release.count({"occupation": ["Secretary", "Clerk"], "gender": "Male"}, calibrate=False)
    rows = {gender: numbers for gender, *numbers in con.execute(several).fetchall()}
    assert rows["Male"] == pytest.approx([pair.value, pair.stderr])
    rows = {gender: numbers for gender, *numbers in con.execute(one).fetchall()}
    assert rows["Male"] == pytest.approx(secretaries(release, gender="Male"))


@pytest.mark.parametrize("place", [0, 1], ids=["pandas", "polars"])
def test_the_python_of_the_page_equals_deniable(release, place, monkeypatch, capsys):
    monkeypatch.chdir(release.folder.parent)
    exec(blocks("python")[place])
    found = [float(number) for number in NUMBER.findall(capsys.readouterr().out)]
    assert found == pytest.approx(secretaries(release, gender="Female"), rel=1e-6)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="Rscript is missing: install r-base-core")
def test_the_r_of_the_page_equals_deniable(release):
    home = release.folder.parent / "csv"
    program = f"options(digits = 12)\n{blocks('r')[0]}"
    done = subprocess.run(["Rscript", "-e", program], cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [float(number) for number in NUMBER.findall(done.stdout)]
    assert found == pytest.approx(secretaries(release, gender="Female"), rel=1e-6)
