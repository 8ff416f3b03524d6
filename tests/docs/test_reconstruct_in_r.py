"""The R script of the how-to gives what deniable gives, and the R of "Into other tools" its sums and errors."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import deniable as dn
from deniable import mechanisms

HOW_TO = Path(__file__).resolve().parent.parent.parent / "docs" / "how-to"
SCRIPT = HOW_TO / "scripts" / "reconstruct.R"
JOBS = ["Nurse", "Cook", "Clerk, senior", "Driver", "Farmer"]
PRIVACY = dn.Privacy(rho1="2/5", rho2="3/5")


def has_r() -> bool:
    """Whether Rscript is there, with jsonlite."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(jsonlite)"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    not has_r(), reason="Rscript with jsonlite is missing: install r-base-core r-cran-jsonlite"
)


def table(missing: bool = False) -> pa.Table:
    rng = np.random.default_rng(3)
    job = rng.choice(JOBS, 3000, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    gone = rng.random(3000) < (0.1 if missing else 0)
    return pa.table({"sex": rng.choice(["F", "M"], 3000), "job": pa.array(job.tolist(), mask=gone)})


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["Rscript", str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("mechanism", ["uniform", "small-domain", "designed"])
@pytest.mark.parametrize("missing", ["none", "value", "exempt"])
def test_the_script_counts_as_deniable_does(mechanism, missing, tmp_path):
    given = {} if missing == "none" else {"missing": missing}
    release = dn.publish(
        table(missing != "none"), sensitive="job", privacy=PRIVACY, mechanism=mechanism, key=bytes(range(32)), **given
    )
    release.save(tmp_path / "release", format="csv")
    done = ran(str(tmp_path / "release"), "Nurse|Clerk, senior", "sex=F")
    assert done.returncode == 0, done.stderr
    found = {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}
    expected = release.count({"sex": "F", "job": ["Nurse", "Clerk, senior"]}, calibrate=False)
    assert found["count"] == pytest.approx(expected.value, abs=1e-4)
    assert found["stderr"] == pytest.approx(expected.stderr, abs=1e-4)


def test_what_the_script_does_not_know_it_refuses(tmp_path):
    made = {
        "several parts": {"mechanism": mechanisms.Retention({name: dn.Replace(coin=0.6) for name in ("sex", "job")})},
        "lineups": {"sensitive": "job", "privacy": PRIVACY, "mechanism": "lineup"},
        "hides its cells": {"sensitive": "job", "mechanism": mechanisms.Decoys(c=2)},
    }
    for words, options in made.items():
        folder = tmp_path / words
        dn.publish(table(), **{"mechanism": "uniform", **options}, key=bytes(32)).save(folder, format="csv")
        done = ran(str(folder), "Nurse")
        assert done.returncode != 0, words
        assert words in done.stderr, done.stderr
    folder = tmp_path / "parquet"
    dn.publish(table(), sensitive="job", privacy=PRIVACY, mechanism="uniform", key=bytes(32)).save(folder)
    assert "the rows are Parquet. Fix: dn.open_release(..).save(.., format='csv')" in ran(str(folder), "Nurse").stderr
    folder = tmp_path / "plain"
    dn.publish(table(), sensitive="job", privacy=PRIVACY, mechanism="uniform", key=bytes(32)).save(folder, format="csv")
    for arguments, words in ((["Nrse"], "Not a value of job"), (["Nurse", "sexF"], "Not a condition"), ([], "usage")):
        done = ran(str(folder), *arguments)
        assert done.returncode != 0
        assert words in done.stderr


def test_the_r_of_into_other_tools_gives_sums_and_robust_errors(tmp_path):
    (block,) = re.findall(
        r"^```r\n(.*?)^```", (HOW_TO / "into-other-tools.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    rng = np.random.default_rng(7)
    people = pa.table(
        {
            "smoker": rng.random(4000) < 0.3,
            "age": rng.integers(18, 80, 4000),
            "state": rng.choice(["ill", "well"], 4000),
        }
    )
    release = dn.publish(
        people, sensitive="state", privacy=dn.Privacy(rho1="3/5", rho2="4/5"), mechanism="designed", key=bytes(32)
    )
    rows = release.table.append_column("w_ill", pa.array(release.weights({"state": "ill"})))
    pyarrow.csv.write_csv(rows, tmp_path / "release-with-weights.csv")
    (tmp_path / "page.R").write_text("options(digits = 12)\n" + block, encoding="utf-8")
    done = subprocess.run(["Rscript", "page.R"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", done.stdout)]
    count = release.count({"state": "ill"}, calibrate=False)
    model = release.linear({"state": "ill"}, ["smoker", "age"], population=True)
    assert numbers[:2] == pytest.approx([count.value, count.stderr], rel=1e-6)
    assert numbers[-3:] == pytest.approx([one.stderr for one in model.values()], rel=1e-4)
