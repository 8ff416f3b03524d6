"""Error against the informed attacker's gain: what is measured, what is withheld, the frontier, and what auto takes."""

from __future__ import annotations

from collections import Counter
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
from deniable.mechanisms import Designed, Lineup, Uniform
from deniable.planning.candidates import candidate
from deniable.planning.comparison import FRONTIER, Comparison, distinct, frontier, risk_chart
from deniable.planning.informed import InformedAttacker, against, informed_attacker
from deniable.planning.planner import compare
from deniable.planning.pools import CodedTable
from deniable.planning.prediction import BySelectivity

PRIVACY = dn.Privacy("1/10", "1/5")


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return census(8_000, seed=3)


@pytest.fixture(scope="module")
def table(rows: pa.Table) -> CodedTable:
    return CodedTable.of(rows, "occupation")


@pytest.fixture(scope="module")
def attacker(table: CodedTable) -> InformedAttacker:
    found = informed_attacker(table)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def found(table: CodedTable, attacker: InformedAttacker) -> Comparison:
    return compare(table.histogram, PRIVACY, attacker=attacker)


def test_what_is_measured_is_listed_and_decides_nothing(table: CodedTable, found: Comparison) -> None:
    by_counts = compare(table.histogram, PRIVACY)
    assert found.recommended.label == by_counts.recommended.label
    assert found.recommended.lineups is None
    assert found.recommended.informed is not None
    assert by_counts.recommended.informed is None
    better = [one for one in found.withheld if one.score < found.recommended.score]
    assert better, "line-ups are more accurate: that is what naming them buys"
    assert all(one.lineups is not None for one in found.withheld)


def test_line_ups_are_listed_with_their_sizes_and_truths(found: Comparison) -> None:
    designs = [one.lineups for one in found.candidates if one.lineups is not None]
    assert len({(one.size, one.truth) for one in designs}) == len(designs) >= 5
    assert {one.share_true for one in designs} >= {0.5, 1.0}
    labels = [one.label for one in found.candidates]
    assert len(set(labels)) == len(labels)
    assert all(one.withheld for one in found.candidates if one.lineups)
    assert found.columns[6:8] == ["informed: right", "above rho2"]
    assert all(len(found.row(one)) == len(found.columns) for one in found.candidates if one.plan)


def test_more_truth_tells_an_informed_attacker_more(table: CodedTable, attacker: InformedAttacker) -> None:
    def right(size: int, truth: str) -> float:
        return against(attacker, Lineup(size, truth).plan(table.histogram, PRIVACY)).after.right

    assert right(12, "1") > right(12, "1/2") + 0.02 > right(12, "1/8") + 0.04
    assert right(6, "1/2") > right(12, "1/2") + 0.02


def test_the_frontier_holds_what_nobody_beats(found: Comparison) -> None:
    best = frontier(found.candidates)
    measured = [one for one in found.candidates if one.informed is not None]
    for one in measured:
        beaten = any(other.risk <= one.risk and other.score[0] < one.score[0] for other in measured)
        assert (one in best) == (not beaten)
    chart = risk_chart(found.candidates)
    assert chart.series[0].name == FRONTIER
    assert len(chart.series[0].points) == len(best)
    assert {series.name for series in chart.series[1:]} == {one.label for one in measured}


def test_against_any_prior_line_ups_may_be_taken(table: CodedTable) -> None:
    any_prior = compare(table.histogram, dn.Privacy("1/10", "1/5", adversary="any-prior"))
    assert any_prior.recommended.name == "lineup"
    assert not any_prior.withheld


def test_publishing_by_auto_takes_the_same_whatever_the_public_columns_say(rows: pa.Table) -> None:
    for table in (rows, rows.select(["occupation"])):
        release = dn.publish(table, sensitive="occupation", privacy=PRIVACY, mechanism="auto", key=bytes(32))
        assert release.manifest.mechanism == Designed.name


def test_the_command_shows_the_attacker_and_draws_the_chart(rows: pa.Table, tmp_path: Path) -> None:
    pq.write_table(rows, tmp_path / "t.parquet")
    base = ["plan", str(tmp_path / "t.parquet"), "--sensitive", "occupation", "--rho1", "1/10", "--rho2", "1/5"]
    drawn = ["--risk-chart", str(tmp_path / "risk.svg"), "--explain", "lineup"]
    done = CliRunner().invoke(app, [*base, *drawn])  # one sensitive column: public ones are looked at unasked
    assert done.exit_code == 0, done.output
    assert "without a release" in " ".join(done.output.split())
    assert "Not recommended: lineup" in done.output
    assert "believed at most" in done.output
    assert "<svg" in (tmp_path / "risk.svg").read_text()
    alone = CliRunner().invoke(app, [*base, "--no-table"])
    assert "without a release" not in " ".join(alone.output.split())
    assert "Not recommended: lineup" in alone.output
    refused = CliRunner().invoke(app, [*base, "--no-table", *drawn])
    assert refused.exit_code == 2
    assert "--table" in refused.output


def test_evaluate_shows_the_attacker_beside_the_errors(rows: pa.Table, tmp_path: Path) -> None:
    pq.write_table(rows, tmp_path / "t.parquet")
    options = ["--rho1", "1/10", "--rho2", "1/5", "--mechanism", "lineup", "--mechanism", "uniform", "--draws", "1"]
    command = ["evaluate", str(tmp_path / "t.parquet"), "--sensitive", "occupation", *options, "--workers", "1"]
    done = CliRunner().invoke(app, [*command, "--estimator", "inverse", "-q"])
    assert done.exit_code == 0, done.output
    assert "The informed attacker" in done.output
    assert "no release" in done.output


def test_line_ups_that_noise_makes_alike_are_listed_once() -> None:
    heights = np.random.default_rng(1).normal(170, 9, 3000).round(1).tolist()
    counts, privacy = Histogram.of(Counter(heights)), dn.Privacy(rho2="1/3")
    points = (Lineup(), Uniform(), Lineup(size=4), Lineup(size=6))
    planned = [candidate(one, counts, privacy, BySelectivity(counts, (0.001,))) for one in points]
    assert planned[0].label == planned[2].label  # by exact counts the first has three values
    assert distinct(planned) == [planned[0], planned[1], planned[3]]
