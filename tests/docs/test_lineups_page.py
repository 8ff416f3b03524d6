"""The program on the page about line-ups, which does without deniable, gives what deniable gives."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "explanation" / "line-ups.md"


@pytest.mark.parametrize("adversary", ["frequency", "any-prior"])
def test_the_program_of_the_page_equals_deniable(adversary, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    jobs = ["Secretary", "Nurse", "Cook", "Clerk", "Driver", "Farmer", "Miner", "Tailor"]
    share = np.array([20, 18, 15, 14, 12, 10, 6, 5]) / 100
    table = pa.table({"gender": rng.choice(["Female", "Male"], 4000), "occupation": rng.choice(jobs, 4000, p=share)})
    privacy = dn.Privacy(rho1="1/4", rho2="1/3", adversary=adversary)
    release = dn.publish(
        table,
        sensitive="occupation",
        privacy=privacy,
        mechanism="lineup",
        domain=jobs,
        key=bytes(32),
        out=tmp_path / "release",
    )
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(program, names)
    assert names["domain"] == sorted(jobs)
    for job, estimated in zip(names["domain"], names["f"], strict=True):
        assert release.count(where={"occupation": job}, calibrate=False).value == pytest.approx(estimated, abs=1e-6)
