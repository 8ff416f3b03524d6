"""The plain SQL of the how-to gives what deniable gives, with and without published cells."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "how-to" / "reconstruct-without-deniable.md"


def sql_block() -> str:
    (block,) = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return block


@pytest.mark.parametrize("mechanism", ["uniform", "small-domain"])
def test_the_sql_of_the_page_equals_deniable(mechanism, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    jobs = ["Secretary", "Nurse", "Cook", "Clerk", "Driver", "Farmer", "Miner", "Tailor"]
    share = np.array([20, 18, 15, 14, 12, 10, 6, 5]) / 100
    table = pa.table({"gender": rng.choice(["Female", "Male"], 4000), "occupation": rng.choice(jobs, 4000, p=share)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a seed is meant to be loud
        release = dn.publish(
            table, sensitive="occupation", privacy=dn.Privacy(rho1="1/4", rho2="1/2"), mechanism=mechanism, seed=5
        )
    release.save(tmp_path / "release")
    monkeypatch.chdir(tmp_path)
    text = sql_block()
    assert len(text.strip().splitlines()) <= 10
    if "cell" in release.table.column_names:
        text = text.replace("= weight.value", "= weight.value AND row.cell = weight.cell")
    value, stderr = duckdb.connect().execute(text).fetchone()
    expected = release.count(where={"gender": "Female", "occupation": "Secretary"}, calibrate=False)
    assert value == pytest.approx(expected.value, rel=1e-9)
    assert stderr == pytest.approx(expected.stderr, rel=1e-9)
