"""`deniable risk`, and recodings on the command line."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

import deniable as dn


def test_risk_is_said_before_and_after(run, patients: Path) -> None:
    plain = json.loads(run("risk", patients, "--columns", "age,sex", "--json").stdout)
    assert plain["after"] is None
    assert plain["before"]["rows"] == 3000
    assert json.loads(run("risk", patients, "--columns", "age", "--columns", "sex", "--json").stdout) == plain
    done = run("risk", patients, "--columns", "age,sex", "--sensitive", "disease", "--recode", "age=bands:40")
    assert done.returncode == 0, done.stderr
    assert "Afterwards:" in done.stdout
    assert "l = 10" in done.stdout


def test_a_table_is_blanked_out_to_k_and_kept_private(run, patients: Path, tmp_path: Path) -> None:
    out = tmp_path / "safe.parquet"
    done = run("risk", patients, "--columns", "age, sex", "--suppress-to-k", "25", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    made = pq.read_table(out)
    assert min(Counter(zip(made["age"].to_pylist(), made["sex"].to_pylist(), strict=True)).values()) >= 25
    assert said["suppression"]["cells"]["age"] == made["age"].null_count
    assert made.column_names == ["name", "sex", "age", "disease"]
    assert stat.S_IMODE(os.stat(out).st_mode) == 0o600
    for words, message in (
        (["--out", tmp_path / "x.csv"], "nothing does"),
        (["--suppress-to-k", "3", "--out", tmp_path / "x.txt"], "no form"),
        (["--suppress-to-k", "3", "--out", patients], "is an input"),
        (["--recode", "age"], "cannot be read"),
        (["--recode", "age=bands:10", "--recode", "age=top:3"], "each column once"),
        (["--rare", "x"], "--rare 20"),
    ):
        failed = run("risk", patients, "--columns", "age,sex", *words)
        assert (failed.returncode, message in failed.stderr) == (2, True), failed.stderr


def test_publish_plan_and_evaluate_take_recodings(run, patients: Path, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('suppress = 50\n[recode]\nage = "top:80+bands:20"\n')
    table = [patients, "--sensitive", "disease", "--rho2", "1/3"]
    done = run(
        "publish",
        *table,
        "--drop",
        "name",
        "--recode",
        tmp_path / "r.toml",
        "--rare",
        "sex=10",
        "--out",
        tmp_path / "r",
    )
    assert done.returncode == 0, done.stderr
    release = dn.open_release(tmp_path / "r")
    assert set(release.manifest.recoded) == {"sex", "age", "disease"}
    assert set(release.table["age"].to_pylist()) == {"[0, 20)", "[20, 40)", "[40, 60)", "[60, 80)", "[80, 100)"}
    assert run("verify", tmp_path / "r").returncode == 0
    chapters = tmp_path / "h.csv"
    chapters.write_text("".join(f"{name},{name[0]}\n" for name in ("flu", "cold", "asthma", "diabetes", "gout")))
    failed = run("plan", *table, "--recode", f"disease=hierarchy:{chapters}")
    assert (failed.returncode, "does not list" in failed.stderr) == (2, True)
    planned = run("plan", *table, "--recode", "disease=prefix:1", "--json")
    assert planned.returncode == 0, planned.stderr
    measured = run(
        "evaluate",
        *table,
        "--drop",
        "name",
        "--recode",
        "age=bands:20",
        "--mechanism",
        "uniform",
        "--draws",
        "2",
        "--json",
    )
    assert measured.returncode == 0, measured.stderr


def test_a_public_copy_is_not_published_and_gone_when_recoded(run, patients: Path, tmp_path: Path) -> None:
    lines = patients.read_text().splitlines()
    copied = tmp_path / "copied.csv"
    copied.write_text("\n".join([f"{lines[0]},ward", *(f"{line},{line.rsplit(',', 1)[1][:2]}" for line in lines[1:])]))
    table = [copied, "--sensitive", "disease", "--rho2", "1/3", "--drop", "name"]
    done = run("publish", *table, "--out", tmp_path / "r")
    assert done.returncode == 1
    assert "'ward' tells the value of 'disease'" in done.stdout
    done = run("publish", *table, "--out", tmp_path / "r", "--despite", "A test.")
    assert done.returncode in (0, 3), done.stderr
    audited = run("audit", copied, tmp_path / "r", "--json")
    assert audited.returncode == 1
    assert json.loads(audited.stdout)["dependence"][0]["columns"][0]["column"] == "ward"
    (tmp_path / "h.csv").write_text(
        "".join(f"{ward},x\n" for ward in sorted({line[-2:] for line in copied.read_text().split()}))
    )
    fixed = run("publish", *table, "--recode", f"ward=hierarchy:{tmp_path / 'h.csv'}", "--out", tmp_path / "s")
    assert fixed.returncode in (0, 3), fixed.stderr
    assert "'ward'" not in fixed.stdout
    assert run("audit", copied, tmp_path / "s").returncode == fixed.returncode
