"""What an error costs in epsilon, and what epsilon costs in error."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable.cli.main import app
from deniable.core.histogram import Histogram
from deniable.lab.made_up import census
from deniable.planning.budgets import error_chart, error_curve
from deniable.planning.outlook import Outlook, learned_error, least_row_error
from deniable.planning.prediction import predicted_relative_error

ROWS = {f"v{rank}": 100_000 // rank for rank in range(1, 31)}
COUNTS = Histogram.of(ROWS)


def test_the_epsilon_that_is_needed_gives_the_error_and_less_does_not() -> None:
    for needed in dn.epsilon_needed(ROWS, "1%", "10%", columns=6):
        assert needed.epsilon is not None
        if needed.mechanism == "synthetic":
            at = [learned_error(0.01 * COUNTS.rows, 6, needed.epsilon * factor) for factor in (1, 0.97)]
        else:
            required = [dn.Privacy(epsilon=f"{needed.epsilon * factor:.6g}") for factor in (1, 0.97)]
            plans = [dn.plan(COUNTS, one, needed.mechanism) for one in required]
            at = [float(predicted_relative_error(plan, COUNTS, (0.01,))[0]) for plan in plans]
        assert at[0] <= 0.1 * 1.001 < at[1] * 1.01
        gamma = math.exp(needed.epsilon)
        assert needed.beliefs == pytest.approx([b * gamma / (1 - b + b * gamma) for b in (0.01, 0.1, 0.5)])


def test_a_stricter_error_needs_more_and_what_cannot_be_had_is_said() -> None:
    loose, tight = ({n.mechanism: n.epsilon for n in dn.epsilon_needed(ROWS, "1%", w)} for w in ("10%", "3%"))
    assert all(loose[name] < tight[name] for name in loose)
    (learned,) = [one for one in dn.epsilon_needed(ROWS, "1%", "0.05%") if one.mechanism == "synthetic"]
    assert learned.epsilon is None
    assert learned.error > 0.0005
    with pytest.raises(dn.DeniableError, match=r"No single value is as much as 60 %"):
        dn.epsilon_needed(ROWS, "60%", "5%")


def test_predicted_errors_of_learned_releases_are_those_that_are_measured() -> None:
    """Single values in groups of one public column, made up: the mean over questions within a factor of 1.6."""
    table = census(40_000, seed=5).select(["gender", "education", "marital", "workclass", "occupation"])
    occupation = np.array(table["occupation"].to_pylist())
    names = sorted(set(occupation.tolist()))
    release = dn.publish(
        table,
        sensitive="occupation",
        privacy=dn.Privacy(epsilon=1),
        mechanism="synthetic",
        domain=names,
        key=bytes(32),
        shuffle=False,
    )
    published = np.array(release.table["occupation"].to_pylist())
    ratios = []
    for column in ("gender", "education", "marital", "workclass"):
        groups = np.array(table[column].to_pylist())
        for group in set(groups.tolist()):
            there = groups == group
            for name in names:
                true = int((there & (occupation == name)).sum())
                if 200 <= true <= 1000:
                    off = abs(int((there & (published == name)).sum()) - true) / true
                    ratios.append(off / learned_error(true, 4, 1.0))
    assert len(ratios) > 100
    assert 1 / 1.6 < float(np.mean(ratios)) < 1.6


def test_no_channel_is_better_than_the_least_error_of_rows() -> None:
    for epsilon in (0.5, 1.0, 2.0, 3.0):
        rho2 = dn.Privacy(epsilon=epsilon).rho2
        for mechanism in ("uniform", "lineup"):
            plan = dn.plan(COUNTS, dn.Privacy(epsilon=epsilon), mechanism)
            (reached,) = predicted_relative_error(plan, COUNTS, (0.01,))
            assert reached > 0.6 * least_row_error(0.01 * COUNTS.rows, float(rho2), epsilon)


def test_the_outlook_sees_where_learning_loses() -> None:
    asked = dn.Privacy("1/13", "1/6")
    assert Outlook(100_000, 7, asked, 3.0, declared=False).learns
    assert "mostly noise" in Outlook(5_000, 7, asked, 3.0, declared=True).unlearned
    assert "not declared" in Outlook(25_000, 3, asked, 3.0, declared=False, sensitive=1).unlearned
    assert Outlook(25_000, 3, asked, 3.0, declared=True).learns
    assert "next to no budget" in Outlook(300, 3, dn.Privacy(rho2="1/3"), 3.0, declared=True).unlearned
    assert not Outlook(100_000, 7, asked, 3.0, declared=True, together=30).learns
    assert Outlook(100_000, 7, dn.Privacy("1/100", "1/2"), 3.0, declared=True).epsilon == 3.0


def test_the_chart_has_every_mechanism_that_something_bounds() -> None:
    curve = error_curve(COUNTS, 0.01, dn.Privacy("1/3", "1/2"), columns=5, points=3)
    names = {row["mechanism"] for row in curve}
    assert {"synthetic", "uniform", "lineup", "designed, floor", "lineup, floor", "identity, as required"} <= names
    for name in ("synthetic", "uniform", "lineup"):
        errors = [row["error"] for row in curve if row["mechanism"] == name]
        assert errors == sorted(errors, reverse=True)
    assert error_chart(curve, 0.01).names == tuple(sorted(names))
    assert {row["mechanism"] for row in error_curve(COUNTS, 0.01, points=2)} == {"synthetic", "uniform", "lineup"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("budgets") / "people.parquet"
    pq.write_table(pa.table({"sex": ["F", "M"] * 15_000, "ill": ["flu", "cold", "gout"] * 10_000}), path)
    return path


def run(*words: object) -> str:
    done = CliRunner().invoke(app, ["plan", *map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_an_error_is_the_owners_input(table: Path) -> None:
    shown = run(table, "--sensitive", "ill", "--error", "10% within 2%")
    assert "10 % becomes" in shown
    epsilon = shown.split("--epsilon ")[1].split()[0]
    told = json.loads(run(table, "--sensitive", "ill", "--error", "10% within 2%", "--json"))
    assert told["needed"][0]["mechanism"] == "synthetic"
    assert f"{told['needed'][0]['epsilon']:g}" == epsilon
    for wrong in ("5%", "1% in 5%", "x within 5%"):
        done = CliRunner().invoke(app, ["plan", str(table), "--sensitive", "ill", "--error", wrong])
        assert done.exit_code == 2
        assert "--error '1% within 5%'" in done.output


def test_a_comparison_fits_a_terminal_and_wide_tells_the_rest(table: Path) -> None:
    shown = run(table, "--sensitive", "ill", "--rho1", "2/5", "--rho2", "1/2", "--quiet")
    tables = [line for line in shown.splitlines() if line.startswith(("mechanism", "synthetic  ", "uniform  "))]
    assert len(tables) >= 3
    assert max(map(len, tables)) <= 100
    assert tables[0].split("  ")[0] == "mechanism"
    assert "10 % becomes" in tables[0]
    wide = run(table, "--sensitive", "ill", "--rho1", "2/5", "--rho2", "1/2", "--quiet", "--wide")
    assert "rows kept" in wide
    assert "reveals" in wide


def test_a_budget_is_a_requirement_of_a_plan(table: Path) -> None:
    shown = run(table, "--sensitive", "ill", "--epsilon", "1", "--quiet")
    assert shown.splitlines()[1].split()[:2] == ["synthetic", "1"]
