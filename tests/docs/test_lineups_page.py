"""The program on the page about line-ups, which does without deniable, gives what deniable gives."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.mechanisms import Lineup

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "explanation" / "line-ups.md"


JOBS = ["Secretary", "Nurse", "Cook", "Clerk", "Driver", "Farmer", "Miner", "Tailor"]
MANY = [f"Job {number:02d}" for number in range(80)]
CASES = {
    "frequency": (JOBS, dn.Privacy(rho1="1/4", rho2="1/3")),
    "any prior": (JOBS, dn.Privacy(rho1="1/4", rho2="1/3", adversary="any-prior")),
    "codes": (MANY, dn.Privacy(rho1="1/13", rho2="1/6", adversary="any-prior")),
    "codes by arcs": (MANY, dn.Privacy(rho1="1/13", rho2="1/6")),
}


@pytest.mark.parametrize("case", CASES)
def test_the_program_of_the_page_equals_deniable(case, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    jobs, privacy = CASES[case]
    share = np.arange(len(jobs), 0, -1) / np.arange(len(jobs) + 1).sum()
    table = pa.table({"gender": rng.choice(["Female", "Male"], 4000), "occupation": rng.choice(jobs, 4000, p=share)})
    release = dn.publish(
        table,
        sensitive="occupation",
        privacy=privacy,
        mechanism=Lineup(size=20 if case == "codes by arcs" else None),
        domain=jobs,
        key=bytes(32),
        out=tmp_path / "release",
    )
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    assert (tmp_path / "release" / "lineups.parquet").exists() == case.startswith("codes")
    of_women = program.replace('condition = "true"', "condition = \"gender = 'Female'\"")
    assert of_women != program
    for written, where in ((program, {}), (of_women, {"gender": "Female"})):
        names: dict[str, object] = {}
        exec(written, names)
        assert names["domain"] == sorted(jobs)
        for job, estimated in zip(names["domain"], names["f"], strict=True):
            counted = release.count(where={**where, "occupation": job}, calibrate=False)
            assert counted.value == pytest.approx(estimated, abs=1e-6)
