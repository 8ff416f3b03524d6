"""Attacks on real releases of every mechanism, as an owner runs them: `deniable audit --attacks`.

Keys and seeds are fixed. "At most p" is tested as p + 5.5 standard deviations of the trials: false alarm below 1e-7.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable.cli.main import app
from deniable.mechanisms import Decoys, Redraw
from deniable.mechanisms.retention import Replace, Retention
from deniable.owner.attacks import AttackResult
from deniable.owner.audit import audit
from deniable.owner.scenes import known_of

N, M = 20_000, 10
KEY = b"\x09" * 32
SHARES = np.array([14, 13, 12, 11, 10, 10, 9, 8, 7, 6])
RHO2 = dn.Privacy(rho2="1/4")
PERTURBING: dict[str, Any] = {
    "uniform": {"mechanism": "uniform", "privacy": RHO2},
    "small-domain": {"mechanism": "small-domain", "privacy": RHO2},
    "fine-grain": {"mechanism": "fine-grain", "privacy": RHO2},
    "identity": {"mechanism": "identity", "privacy": RHO2},
    "designed": {"mechanism": "designed", "privacy": RHO2},
    "pram": {"mechanism": "pram", "privacy": RHO2},
    "redraw": {"mechanism": Redraw()},
    "decoys": {"mechanism": Decoys(c=4)},
    "lineup": {"mechanism": "lineup", "privacy": RHO2},
}


def table(seed: int = 1) -> pa.Table:
    """Half of the people are alone in their public values, the others come in threes; the side says a little."""
    rng = np.random.default_rng(seed)
    value = rng.permutation(np.repeat(np.arange(M), SHARES * N // 100))
    place = np.r_[np.arange(N // 2), N // 2 + np.arange(N // 2) // 3]
    side = np.where(rng.random(N) < 0.5, value % 3, rng.integers(0, 3, N))
    side[N // 2 :] = 0
    return pa.table({"place": place, "side": side, "value": value})


def played(rows: pa.Table, **options: Any) -> dict[str, list[AttackResult]]:
    release = dn.publish(rows, sensitive="value", key=KEY, **{"mechanism": "uniform", **options})
    found: dict[str, list[AttackResult]] = {}
    for attack in audit(rows, release, attacks=True).attacks:
        found.setdefault(attack.name, []).append(attack)
    return found


def at_most(result: AttackResult, bound: float) -> bool:
    return result.success <= bound + 5.5 * float(np.sqrt(bound * (1 - bound) / max(result.trials, 1)))


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return table()


@pytest.mark.parametrize("name", PERTURBING)
def test_no_attacker_of_one_perturbed_release_beats_its_bound(name: str, rows: pa.Table) -> None:
    found = played(rows, **PERTURBING[name])
    bound = 0.25
    assert {"linking", "homogeneity", "corruption", "repeated publication", "classifier", "duplicates"} <= set(found)
    assert found["linking"][0].trials == N
    assert at_most(found["linking"][0], bound)
    assert at_most(found["homogeneity"][0], bound)
    assert len(found["corruption"]) == 3
    assert all(at_most(result, bound) for result in found["corruption"])
    assert all(result.trials > 3_000 for result in found["corruption"]), "the people who come in threes"


@pytest.mark.parametrize("name", ["uniform", "designed", "small-domain"])
def test_linking_finds_the_right_rows_of_a_shuffled_release(name: str) -> None:
    """With everyone alone the success is sum over views of the largest joint probability, by the audit's posteriors.

    A join that missed the person's row would be right as often as the blind guess: 14 % instead of 38 to 50 %.
    """
    rows = table().set_column(0, "place", pa.array(np.arange(N)))
    release = dn.publish(rows, sensitive="value", privacy=dn.Privacy(rho2="1/2"), mechanism=name, key=KEY)
    found = audit(rows, release, attacks=True)
    posteriors = found.parts[0].posteriors
    views = release.table.select(["value", *(["cell"] if name == "small-domain" else [])]).to_pylist()
    place = {value: i for i, value in enumerate(found.parts[0].domain)}
    best = [max(posteriors.given(place[v["value"]], v.get("cell")).values()) for v in views[:4_000]]  # type: ignore[union-attr]
    predicted = float(np.mean([float(share) for share in best]))
    linking = next(attack for attack in found.attacks if attack.name == "linking")
    assert linking.baseline == pytest.approx(0.14)
    assert predicted > 0.3
    # The prediction is itself a mean of 4,000 rows that vary by less than 0.1; the rest is binomial.
    assert abs(linking.success - predicted) < 5.5 * np.sqrt(predicted * (1 - predicted) / N + 0.01 / 4_000)


@pytest.mark.parametrize("name", ["uniform", "small-domain", "designed"])
def test_publishing_again_under_fresh_keys_gives_values_away(name: str, rows: pa.Table) -> None:
    found = played(rows, **PERTURBING[name])
    once, again = found["linking"][0], found["repeated publication"][0]
    assert again.low > once.high
    redrawn = played(rows, **PERTURBING["redraw"])["repeated publication"][0]
    assert redrawn.success == pytest.approx(redrawn.baseline, abs=1e-12), "what says nothing says nothing ten times"


def test_a_classifier_learns_what_the_data_say_and_nothing_from_redrawn_values(rows: pa.Table) -> None:
    designed = played(rows, **PERTURBING["designed"])["classifier"][0]
    redrawn = played(rows, **PERTURBING["redraw"])["classifier"][0]
    assert designed.low > designed.baseline, "the side goes with the value"
    assert at_most(redrawn, redrawn.baseline)


def test_minimality_claims_nobody_where_decoys_are_symmetric(rows: pa.Table) -> None:
    result = played(rows, **PERTURBING["decoys"])["minimality"][0]
    assert result.trials == 0 or at_most(result, 0.25)


def test_columns_are_attacked_one_by_one_and_exempt_rows_are_left_out() -> None:
    rng = np.random.default_rng(6)
    gone = rng.random(2_000) < 0.1
    rows = pa.table(
        {
            "place": np.arange(2_000),
            "job": pa.array(rng.choice(list("abc"), 2_000), mask=gone),
            "pay": rng.integers(0, 30, 2_000),
        }
    )
    mechanism = Retention({"job": Replace(coin=0.5), "pay": Replace(coin=0.5, low=0, high=99)})
    release = dn.publish(rows, mechanism=mechanism, key=KEY, missing="exempt")
    found = {attack.name: attack for attack in audit(rows, release, attacks=True).attacks}
    assert found["linking (job)"].trials == int((~gone).sum())
    assert found["linking (pay)"].trials == 2_000
    assert found["linking (pay)"].success > 0.45, "half of the numbers are kept, and few others are drawn"


def test_known_members_are_a_share_of_the_others() -> None:
    groups = np.array([3, 3, 3, 3, 5, 5, 8])
    assert known_of(groups, 0).tolist() == [False] * 7
    assert known_of(groups, 1).tolist() == [False, True, True, True, False, True, False]
    assert known_of(groups, 0.5).tolist() == [False, False, False, True, False, False, False]
    assert known_of(groups[:0], 0.5).tolist() == []


def test_attacks_run_where_nothing_is_public_and_on_tiny_tables() -> None:
    for rows in (pa.table({"value": ["a", "b"] * 3}), pa.table({"age": [1, 2, 3, 4], "value": ["a", "b", "a", "b"]})):
        release = dn.publish(rows, sensitive="value", privacy=dn.Privacy("1/2", "3/4"), key=KEY, mechanism="uniform")
        found = audit(rows, release, attacks=True)
        assert found.attacks[0].name == "linking"
        json.dumps(found.to_dict(), allow_nan=False)


def test_the_command_plays_them_and_tells_the_same_twice(tmp_path: Path, rows: pa.Table) -> None:
    pq.write_table(rows, tmp_path / "t.parquet")
    dn.publish(rows, sensitive="value", privacy=RHO2, key=KEY, out=tmp_path / "release", mechanism="uniform")
    words = ["audit", str(tmp_path / "t.parquet"), str(tmp_path / "release"), "--attacks"]
    told = [json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout) for _ in range(2)]
    assert told[0] == told[1]
    assert {"linking", "corruption"} <= {attack["name"] for attack in told[0]["attacks"]}
    plain = CliRunner().invoke(app, words)
    assert plain.exit_code == told[0]["decision"]["verdict"].startswith("decide") * 3
    assert "Attacks, played on these rows" in plain.stdout
