"""`deniable pool`, `join`, `breach`, `rows-needed` and `respond`: what the functions do, from a shell."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.mechanisms import Retention


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases of several owners: north and south have the same columns, jobs and diseases the same people."""
    folder = tmp_path_factory.mktemp("owners")
    how = {"privacy": dn.Privacy(rho1="1/2", rho2="3/4"), "mechanism": "uniform", "domain": ["cold", "flu", "hiv"]}
    for name, values, times in (("north", ["flu", "cold"], 100), ("south", ["flu", "hiv"], 150)):
        dn.publish(pa.table({"disease": values * times}), sensitive="disease", **how).save(folder / name)
    jobs = {"id": range(200), "job": ["cook", "nurse"] * 100}
    dn.publish(pa.table(jobs), sensitive="job", privacy=dn.Privacy(rho1="1/2", rho2="3/4"), mechanism="uniform").save(
        folder / "jobs"
    )
    ages = {"id": range(200), "age": [20, 30, 40, 50] * 50}
    mechanism = Retention({"age": dn.Replace(coin=0.5, low=17, high=90)})
    dn.publish(pa.table(ages), mechanism=mechanism).save(folder / "ages")
    return folder


def test_rows_of_two_owners_become_one_release(owners: Path, run, tmp_path: Path) -> None:
    done = run("pool", owners / "north", owners / "south", "--out", tmp_path / "both", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 500
    assert run("verify", tmp_path / "both").returncode == 0
    again = run("pool", owners / "north", owners / "south", "--out", tmp_path / "both")
    assert again.returncode == 2
    assert "--overwrite" in again.stderr or "overwrite" in again.stderr
    alone = run("pool", owners / "north", "--out", tmp_path / "one")
    assert alone.returncode == 2
    assert "two releases or more" in alone.stderr
    assert not (tmp_path / "one").exists()


def test_columns_of_two_owners_become_one_release(owners: Path, run, tmp_path: Path) -> None:
    done = run("join", owners / "jobs", owners / "ages", "--on", "id", "--out", tmp_path / "both")
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "both" / "data.parquet")
    assert table.num_rows == 200
    assert {"id", "job", "age"} <= set(table.column_names)
    assert run("join", owners / "jobs", owners / "ages", "--on", "town", "--out", tmp_path / "x").returncode == 2


def test_what_can_be_believed_afterwards(owners: Path, run) -> None:
    about = dn.breach(dn.open_release(owners / "ages"), {"age": dn.between(20, 30)}, rho1="1/10", rho2="1/2")
    done = run("breach", owners / "ages", "age=20..30", "--rho2", "1/2", "--json")
    found = json.loads(done.stdout)
    assert found["posterior"] == pytest.approx(about.posterior)
    assert done.returncode == (0 if about.holds else 1)
    assert run("breach", owners / "ages", "age=20..30", "--rho2", "11/100").returncode == 1
    value = json.loads(run("breach", owners / "north", "disease=hiv,flu", "--rho1", "1/2", "--json").stdout)
    assert value["columns"][0]["mass"] == pytest.approx(2 / 3, abs=1e-6)


def test_days_and_single_numbers_of_a_range_are_asked_about(owners: Path, run, tmp_path: Path) -> None:
    days = pa.array([date(1950, 1, 1) + timedelta(days=90 * row) for row in range(200)])
    ranged = Retention({"born": dn.Replace(coin=0.5, low=date(1940, 1, 1), high=date(2009, 12, 31))})
    release = dn.publish(pa.table({"born": days}), mechanism=ranged, out=tmp_path / "born")
    for words, asked in (
        ("born=1980-01-01..1985-12-31", dn.between(date(1980, 1, 1), date(1985, 12, 31))),
        ("born=1980-01-01", date(1980, 1, 1)),
    ):
        answered = json.loads(run("breach", tmp_path / "born", words, "--json").stdout)
        assert answered["posterior"] == pytest.approx(dn.breach(release, {"born": asked}).posterior), words
    ages = dn.open_release(owners / "ages")
    single = json.loads(run("breach", owners / "ages", "age=30", "--json").stdout)
    assert single["posterior"] == pytest.approx(dn.breach(ages, {"age": 30}).posterior)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("age",), "COLUMN=VALUES"),
        (("age=old..30",), "'old' is no end of a range"),
        (("age=20..30", "age=40..50"), "named twice"),
        (("id=3",), "public"),
        (("wage=3",), "no column"),
    ],
)
def test_a_belief_that_cannot_be_asked_about_is_one_message(owners: Path, run, words, message: str) -> None:
    done = run("breach", owners / "ages", *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_value_that_is_not_in_the_column_is_named(owners: Path, run) -> None:
    done = run("breach", owners / "north", "disease=hlv")
    assert done.returncode == 2
    assert "Did you mean 'hiv'" in done.stderr


def test_how_many_rows_are_needed(run) -> None:
    done = json.loads(run("rows-needed", "0.5", "--json").stdout)
    assert (done["theorem"], done["certain"], done["variance"]) == (590221, 73778, 38415)
    shown = run("rows-needed", "0.5", "0.8", "--mass", "0.1", "--mass", "0.5")
    assert "48,781" in shown.stdout
    assert "theorem" not in shown.stdout
    yes = json.loads(run("rows-needed", "0.5", "--boolean", "--json").stdout)
    assert all(yes[name] < done[name] for name in ("theorem", "certain", "variance"))
    assert run("rows-needed", "0").returncode == 2


def test_a_row_is_perturbed_before_it_leaves(owners: Path, run, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    done = run("respond", owners / "north", '{"disease": "hiv"}')
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["disease"] in ("cold", "flu", "hiv")
    monkeypatch.setattr("sys.stdin", io.StringIO('{"disease": "hiv"}\n\n' * 300))
    lines = run("respond", owners / "north", "-").stdout.splitlines()
    assert len(lines) == 300
    assert {json.loads(line)["disease"] for line in lines} == {"cold", "flu", "hiv"}
    wrong = run("respond", owners / "north", "disease: secret-hiv")
    assert wrong.returncode == 2
    assert "secret-hiv" not in wrong.stderr
