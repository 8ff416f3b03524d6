"""Shares and differences of 200 releases: how often their intervals hold the truth, and how large their errors are.

Each release answers for 80 towns, which share no row: 16,000 intervals. They hold the truth in 93 to 97 of 100; with
95 % coverage the standard error is 0.17 %, so that a false alarm is 11 standard errors away. The mean of ((estimate -
truth) / stderr)^2 is 1 with a standard error of sqrt(2 / 16000) = 0.011, and 0.013 for the tails that were measured:
0.068 is 5 of them. Power: without covariances, or with standard errors off by 5 % in either direction, the same
numbers fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable import mechanisms
from deniable.estimation.linear import Covariance, Linear, Term

pytestmark = pytest.mark.long
RELEASES, TOWNS, ROWS = 200, 80, 32_000
OFF = 0.068
QUESTION = (
    "SELECT town, COUNT(*) FILTER (WHERE job = 'a') / COUNT(*) AS share, "
    "COUNT(*) FILTER (WHERE job = 'a') - COUNT(*) FILTER (WHERE job = 'b') AS difference "
    "FROM release WHERE job IN ('a', 'b', 'c') AND sex = 'F' GROUP BY town ORDER BY town"
)
MADE: dict[str, tuple[Any, Any]] = {
    "uniform": (mechanisms.Uniform(), dn.Privacy(rho1="1/2", rho2="9/10", adversary="any-prior")),
    "small-domain, calibrated": (mechanisms.SmallDomain(), dn.Privacy(rho1="2/5", rho2="7/10")),
    "retention": (mechanisms.Retention({"job": dn.Replace(coin=0.7), "sex": dn.Replace(coin=0.9)}), None),
}


def truth(table: pa.Table) -> dict[str, np.ndarray[Any, Any]]:
    frame = table.to_pandas()
    inside = frame[frame.job.isin(["a", "b", "c"]) & (frame.sex == "F")].groupby("town").job
    a, b = (inside.apply(lambda jobs, job=job: (jobs == job).sum()).to_numpy() for job in "ab")
    return {"share": a / inside.size().to_numpy(), "difference": a - b}


def errors(name: str, releases: int = RELEASES) -> dict[str, np.ndarray[Any, Any]]:
    """(estimate - truth) / stderr of all releases and towns."""
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "town": np.arange(ROWS) % TOWNS,
            "sex": rng.choice(["F", "M"], ROWS, p=[0.8, 0.2]),
            "job": rng.choice(list("abcde"), ROWS, p=[0.35, 0.25, 0.2, 0.1, 0.1]),
        }
    )
    known, (mechanism, privacy) = truth(table), MADE[name]
    sensitive = {} if privacy is None else {"sensitive": "job", "domain": list("abcde")}
    off: dict[str, list[Any]] = {what: [] for what in known}
    for number in range(releases):
        release = dn.publish(
            table, **sensitive, privacy=privacy, mechanism=mechanism, key=number.to_bytes(32, "little")
        )
        answer = release.sql(QUESTION)
        for what, values in known.items():
            stderr = (answer[f"{what}_high"].to_numpy() - answer[f"{what}_low"].to_numpy()) / 2 / 1.959964
            off[what].append((answer[what].to_numpy() - values) / stderr)
    return {what: np.concatenate(parts) for what, parts in off.items()}


def holds(off: np.ndarray[Any, Any]) -> bool:
    return bool(0.93 < np.mean(np.abs(off) < 1.96) < 0.97) and abs(float(np.mean(off**2)) - 1) < OFF


@pytest.mark.long
@pytest.mark.parametrize("name", MADE)
def test_intervals_cover_as_they_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    off = errors(name)
    for what, values in off.items():
        covered, size = np.mean(np.abs(values) < 1.96), np.mean(values**2)
        assert holds(values), f"{what}: {covered:.4f} covered, mean square {size:.3f}"
        assert abs(values.mean()) < 5 / np.sqrt(len(values))
        assert not holds(values / 1.05)
        assert not holds(values / 0.95)

    counted = Linear.covariance

    def alone(self: Linear, one: Term, other: Term) -> Covariance:
        known = counted(self, one, other)
        return known if one == other else Covariance(0 * known.own, 0.0, 0 * known.raw)

    monkeypatch.setattr(Linear, "covariance", alone)
    for what, values in errors(name, 40).items():
        assert not holds(values), f"{what} is as good without covariances"
