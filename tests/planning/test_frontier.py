"""Error against the informed attacker's gain: what is measured, what is withheld, the frontier, and what auto takes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable.audit.attacks.informed import InformedAttacker
from deniable.cli.main import app
from deniable.core.errors import OptionError, RequirementError
from deniable.core.histogram import Histogram
from deniable.lab.made_up import census
from deniable.mechanisms import Designed, Lineup, SmallDomain, Uniform
from deniable.planning.candidates import Candidate, candidate
from deniable.planning.comparison import Comparison
from deniable.planning.frontier import FRONTIER, distinct, frontier, judged, require_some, risk_chart
from deniable.planning.informed import against, informed_attacker
from deniable.planning.planner import compare
from deniable.planning.profiles import BySelectivity
from deniable.planning.tables import CodedTable

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


def test_the_choice_gains_an_attacker_no_more_than_the_paper_s_cells(found: Comparison) -> None:
    cells = next(one for one in found.candidates if one.name == "small-domain")
    assert found.recommended.risk <= cells.risk
    assert found.recommended.name == "lineup"
    for one in found.candidates:
        if one.withheld and "truth" not in one.withheld:
            assert one.risk > cells.risk
    better = [one for one in found.withheld if one.score < found.recommended.score]
    assert better, "what is withheld is more accurate: that is what the limit costs"


def test_line_ups_are_listed_with_their_sizes_and_truths(found: Comparison) -> None:
    designs = [one.lineups for one in found.candidates if one.lineups is not None]
    assert len({(one.size, one.truth) for one in designs}) == len(designs) >= 5
    assert {one.share_true for one in designs} >= {0.5, 1.0}
    labels = [one.label for one in found.candidates]
    assert len(set(labels)) == len(labels)
    assert all(one.withheld for one in found.candidates if one.lineups and one.lineups.share_true > Fraction(1, 2))
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


def test_the_limit_moves_the_choice_and_an_impossible_one_is_refused(
    table: CodedTable, attacker: InformedAttacker, found: Comparison
) -> None:
    def allowed(limit: float) -> list[Candidate]:
        every = judged(found.candidates, attacker, PRIVACY, limit, named=False)
        return [one for one in every if one.plan is not None and not one.withheld]

    least = min(one.risk for one in found.candidates if one.informed is not None)
    strict = allowed(least + 0.005)
    assert all(one.risk <= least + 0.005 for one in strict)
    assert min(one.score for one in strict) > found.recommended.score
    assert min(one.score for one in allowed(0.9)) <= found.recommended.score
    with pytest.raises(RequirementError, match="informed limit"):
        require_some(judged(found.candidates, attacker, PRIVACY, 0.001, named=False), 0.001)
    with pytest.raises(OptionError, match="public columns"):
        compare(table.histogram, PRIVACY, informed_limit=0.5)


def test_against_any_prior_line_ups_are_compared_with_the_same_cells(
    table: CodedTable, attacker: InformedAttacker
) -> None:
    privacy = dn.Privacy("1/10", "1/5", adversary="any-prior")
    any_prior = compare(table.histogram, privacy, attacker=attacker)
    cells = against(attacker, SmallDomain().plan(table.histogram, PRIVACY)).after.right
    assert any_prior.recommended.name == "lineup"
    assert any_prior.recommended.risk <= cells


def test_publishing_by_auto_takes_the_planner_s_choice(rows: pa.Table) -> None:
    release = dn.publish(rows, sensitive="occupation", privacy=PRIVACY, mechanism="auto", key=bytes(32))
    assert release.manifest.mechanism == "lineup"
    design = release.manifest.parts[0].lineups
    assert design is not None
    assert design.share_true <= 0.5
    with pytest.raises(OptionError, match="informed_limit"):
        dn.publish(rows, sensitive="occupation", privacy=PRIVACY, informed_limit="1/3", mechanism="uniform")


def test_without_public_columns_auto_takes_no_line_ups_and_no_limit(rows: pa.Table) -> None:
    alone = rows.select(["occupation"])
    release = dn.publish(alone, sensitive="occupation", privacy=PRIVACY, mechanism="auto", key=bytes(32))
    assert release.manifest.mechanism == Designed.name
    with pytest.raises(OptionError, match="public columns"):
        dn.publish(alone, sensitive="occupation", privacy=PRIVACY, mechanism="auto", informed_limit="1/3")


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
    assert "was not measured" in alone.output
    refused = CliRunner().invoke(app, [*base, "--no-table", "--informed-limit", "20%"])
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
