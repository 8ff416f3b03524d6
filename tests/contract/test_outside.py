"""A package outside brings a mechanism, a promise of its own with its recheck, and a command; no file of ours changes.

Its files stand in ``outside/`` as an installation would have them; everything runs in processes of their own, since
entry points are read once.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OUTSIDE, ROOT = HERE / "outside", HERE.parents[1]
SAID = """
import json, sys
from pathlib import Path
import numpy as np
import pyarrow as pa
import deniable as dn
from tests.contract.partitioned import PartitionedEngine
from warner import FairCoin

out = Path(sys.argv[1])
rng = np.random.default_rng(3)
job = rng.choice(list("abcde"), 30_000, p=[0.4, 0.25, 0.15, 0.12, 0.08])
sex = np.where(rng.random(30_000) < np.where(job < "c", 0.7, 0.3), "F", "M")
table = pa.table({"sex": sex, "job": job})
asked = {"sensitive": "job", "domain": list("abcde"), "key": bytes(32)}
if __name__ == "__main__":
    plan = dn.plan(dict(zip("abcde", (400, 250, 150, 120, 80))), mechanism="fair-coin")
    release = dn.publish(table, **asked, mechanism="fair-coin", out=out / "good")
    same = dn.publish(table, **asked, mechanism="fair-coin", engine=PartitionedEngine())
    dn.publish(table, **asked, mechanism=FairCoin(shift=0.025), out=out / "bad")
    truth = int(((job == "b") & (sex == "F")).sum())
    count = release.count({"sex": "F", "job": "b"})
    audited = dn.audit(table, release)
    (out / "said.json").write_text(json.dumps({
        "planned": str(plan.guarantee), "sentence": release.manifest.guarantee["sentence"],
        "same": release.table.equals(same.table), "off": abs(count.value - truth) / count.stderr,
        "holds": dn.verify(out / "good").holds, "gamma": float(audited.parts[0].gamma),
    }))
"""


def run(*words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, (str(OUTSIDE), str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=check,
    )  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("outside")
    (home / "said.py").write_text(SAID)
    done = run(home / "said.py", home, check=False)
    assert done.returncode == 0, done.stderr
    return home


def test_it_imports_the_public_names_and_those_for_extensions_alone() -> None:
    for path, allowed in (("warner.py", {"deniable", "deniable.extend"}), ("warner_verify.py", {"deniable_verify"})):
        modules = {
            node.module or ""
            for node in ast.walk(ast.parse((OUTSIDE / path).read_text("utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
        ours = {module for module in modules if module.startswith("deniable")}
        assert {module if module.startswith("deniable.") else module.partition(".")[0] for module in ours} <= allowed


def test_it_plans_publishes_on_both_engines_answers_and_is_audited(home: Path) -> None:
    said = json.loads((home / "said.json").read_text())
    assert said["planned"].startswith("A fair coin decides")
    assert "multiplies the odds of any statement about a person by at most 6." in said["sentence"]
    assert said["same"]
    assert said["off"] < 6
    assert said["holds"]
    assert abs(said["gamma"] - 6) < 0.01


def test_its_recheck_finds_what_breaks_its_promise(home: Path) -> None:
    assert run("-m", "deniable", "verify", home / "good", check=False).returncode == 0
    bad = run("-m", "deniable", "verify", home / "bad", check=False)
    assert bad.returncode == 1
    assert "fair coin" in bad.stdout + bad.stderr


def test_without_the_package_its_promise_is_of_an_unknown_kind(home: Path) -> None:
    words = [sys.executable, "-m", "deniable", "verify", str(home / "good")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "fair-coin" in done.stdout + done.stderr


def test_plan_compares_it_and_its_command_is_one_of_ours(home: Path) -> None:
    table = home / "people.csv"
    table.write_text("sex,job\n" + "F,a\nM,b\nF,c\nM,a\n" * 250)
    assert "fair-coin" in run("-m", "deniable", "plan", table, "--sensitive", "job", "--rho2", "2/3").stdout
    assert "as many as there are rows" in run("-m", "deniable", "warner").stdout
