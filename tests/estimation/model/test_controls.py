"""Several columns follow their histograms: without bias, with the errors that are stated, and far nearer.

Releases of one table by independent keys: the mean of z = (estimate - truth) / stderr over so many releases has the
standard error 1 / sqrt(releases), its mean square about sqrt(2 / releases); limits are 5.5 of them for each question.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import deniable as dn
from deniable.mechanisms import Retention

ROWS = 3000
QUICK, LONG = 60, 1000
IDENTITY = dn.Replace(coin=0.4, replacing="identity")


def table() -> pa.Table:
    rng = np.random.default_rng(6)
    job = rng.choice(6, ROWS, p=[0.35, 0.25, 0.2, 0.1, 0.06, 0.04])
    ill = (job + rng.choice(5, ROWS, p=[0.4, 0.25, 0.2, 0.1, 0.05])) % 5
    gone = rng.random(ROWS) < 0.1
    return pa.table(
        {
            "town": rng.choice(list("xyz"), ROWS, p=[0.6, 0.3, 0.1]),
            "pay": rng.integers(1, 50, ROWS),
            "job": [f"j{one}" for one in job],
            "ill": pa.array([f"i{one}" for one in ill], mask=gone),
        }
    )


MADE: dict[str, dict[str, Any]] = {
    "identity": {"mechanism": Retention({"job": IDENTITY, "ill": IDENTITY})},
    "one of them": {"mechanism": Retention({"job": IDENTITY, "ill": dn.Replace(coin=0.5)})},
    "exempt": {"mechanism": Retention({"job": IDENTITY, "ill": IDENTITY}), "missing": "exempt"},
    "swapped beside": {"mechanism": Retention({"job": IDENTITY, "ill": dn.Replace(coin=0.5, replacing="swapping")})},
}
QUESTIONS = {
    "whole": "SELECT job AS g, COUNT(*) AS n FROM release GROUP BY job",
    "by town": "SELECT town AS g, COUNT(*) AS n FROM release WHERE job IN ('j0', 'j4') GROUP BY town",
    "both": "SELECT town AS g, COUNT(*) AS n FROM release WHERE job = 'j1' AND ill IN ('i1', 'i2') GROUP BY town",
    "one with the other": "SELECT job AS g, COUNT(*) AS n FROM release WHERE ill = 'i0' AND town = 'x' GROUP BY job",
    "either": "SELECT town AS g, COUNT(*) AS n FROM release WHERE job = 'j0' OR ill = 'i2' GROUP BY town",
    "mixed": "SELECT 1 AS g, COUNT(*) AS n FROM release WHERE (job = 'j0' AND town = 'x') OR (ill = 'i2' AND pay > 20)",
    "pay": "SELECT town AS g, SUM(pay) AS n FROM release WHERE job IN ('j0', 'j1') AND ill <> 'i3' GROUP BY town",
    "difference": "SELECT town AS g, COUNT(*) FILTER (WHERE job = 'j0') - COUNT(*) FILTER (WHERE job = 'j1') AS n "
    "FROM release WHERE ill IN ('i0', 'i1', 'i2') GROUP BY town",
    "share": "SELECT town AS g, COUNT(*) FILTER (WHERE job = 'j0') / COUNT(*) AS n FROM release GROUP BY town",
}


@pytest.mark.parametrize(
    ("made", "releases"),
    [("swapped beside", QUICK), *(pytest.param(made, LONG, marks=pytest.mark.long) for made in MADE)],
)
def test_errors_are_as_large_as_stated(made: str, releases: int) -> None:
    import duckdb

    data, off = table(), {}
    with duckdb.connect() as database:
        database.register("release", data)
        truth = {name: dict(database.execute(question).fetchall()) for name, question in QUESTIONS.items()}
    for key in range(releases):
        release = dn.publish(data, **MADE[made], key=key.to_bytes(32, "big"), shuffle=False)
        for name, question in QUESTIONS.items():
            for row in release.sql(question, confidence=0.6826894921370859, method="inverse").to_pylist():
                if name in ("share", "pay", "difference") or row["n_low"] is None:  # whole numbers hide errors
                    error = (row["n_high"] - row["n_low"]) / 2
                else:
                    continue
                off.setdefault((name, row["g"]), []).append((row["n"] - truth[name][row["g"]]) / error)
        for name, where, groups in (
            ("whole", {}, ["job"]),
            ("by town", {"job": ["j0", "j4"]}, ["town"]),
            ("both", {"job": "j1", "ill": ["i1", "i2"]}, ["town"]),
            ("one with the other", {"ill": "i0", "town": "x"}, ["job"]),
        ):
            for row in release.group_by(groups, where=where).to_pylist():
                known = truth[name].get(row[groups[0]], 0)
                if row["stderr"] > 0 and known >= 20:
                    off.setdefault((name, row[groups[0]]), []).append((row["value"] - known) / row["stderr"])
    found = pd.DataFrame(
        {"mean": {k: np.mean(z) for k, z in off.items()}, "square": {k: np.mean(np.square(z)) for k, z in off.items()}}
    )
    assert len(found) > 15
    assert (found["mean"].abs() < 5.5 / np.sqrt(releases)).all(), found
    assert (found["square"] < 1 + 5.5 * np.sqrt(2 / releases)).all(), found
    assert (found["square"] > 1 - 5.5 * np.sqrt(2 / releases) - 0.4).all(), found  # histograms' tails are heavier


def test_the_histogram_of_each_column_is_used() -> None:
    release = dn.publish(table(), mechanism=Retention({"job": IDENTITY, "ill": IDENTITY}), key=bytes(32))
    with_it, without = (release.group_by("job", **options) for options in ({}, {"calibrate": False}))
    assert max(with_it["stderr"].to_pylist()) < 5
    assert min(without["stderr"].to_pylist()) > 15
    assert sum(with_it["value"].to_pylist()) == pytest.approx(ROWS, abs=5)
    joint = {"job": "j0", "ill": "i0"}
    assert release.count(joint).stderr < 0.95 * release.count(joint, calibrate=False).stderr
    nobody = release.sql("SELECT town, COUNT(*) AS n FROM release WHERE pay < 0 AND job = 'j0' GROUP BY town")
    assert nobody.num_rows == 0
    bare = dn.publish(table(), mechanism=Retention({"job": dn.Replace(0.5), "ill": dn.Replace(0.5)}), key=bytes(32))
    with pytest.raises(dn.DeniableError, match="needs the noisy histograms"):
        bare.count(joint, calibrate=True)
