"""The owner's audit: its figures equal enumeration, breaches are found, findings are graded, nothing is written."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable.cli.main import app
from deniable.core.channels import Channel
from deniable.core.errors import DeniableError
from deniable.core.exact import SCALE
from deniable.core.manifest import Manifest
from deniable.core.promise import DecoyGroups
from deniable.core.transforms import Quantiles
from deniable.mechanisms.decoys import Decoys
from deniable.mechanisms.small_domain import SmallDomain
from deniable.owner.assessment import Audit
from deniable.owner.audit import audit
from deniable.owner.findings import depends_on_order
from deniable.owner.parts import PartAudit
from deniable.planning.posteriors import Posteriors, limits_of

COUNTS = dict(zip("abcdefghij", [12, 8, 6, 5, 4, 3, 1, 1, 1, 1], strict=True))
KEY = b"\x05" * 32


def table(counts: dict[str, int] = COUNTS, times: int = 1, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    values = np.repeat(list(counts), [n * times for n in counts.values()])
    rng.shuffle(values)
    return pa.table({"age": rng.integers(20, 80, len(values)), "disease": values.tolist()})


def published(
    rows: pa.Table, mechanism: object = "uniform", rho1: str = "1/3", rho2: str = "2/3", **more: object
) -> dn.Release:
    privacy = dn.Privacy(rho1=rho1, rho2=rho2)
    return dn.publish(rows, sensitive="disease", privacy=privacy, mechanism=mechanism, key=KEY, **more)  # type: ignore[arg-type]


def planned_again(release: dn.Release, times: int) -> dn.Plan:
    """The plan of a release by cells, from the noisy histogram that it publishes."""
    part = release.manifest.parts[0]
    assert part.marginal is not None
    rows = dn.Histogram.of({value: count * times for value, count in COUNTS.items()})
    noisy = dn.Histogram(rows.domain, np.maximum(np.array(part.marginal.counts), 1))
    return SmallDomain().plan(rows, dn.Privacy(rho1="1/3", rho2="2/3"), public=noisy)


def forged(release: dn.Release, **changes: object) -> dn.Release:
    """The same rows with another manifest: what a faulty mechanism would have published."""
    manifest = dataclasses.replace(release.manifest, **changes)
    return dn.Release(manifest, table=release.table)


def kinds(found: Audit, grade: str) -> set[str]:
    return {finding.what for finding in found.findings if finding.grade == grade}


def brute_force(cells: list[tuple[dict[str, int], Channel]]) -> dict[str, Fraction]:
    """The largest posterior of each value, from the definition."""
    worst: dict[str, Fraction] = {}
    for rows, channel in cells:
        for y, w in zip(channel.values, channel.replace.tolist(), strict=True):
            joint = {
                x: rows[str(x)] * ((SCALE - k) * w + (k * SCALE if x == y else 0))
                for x, k in zip(channel.values, channel.keep.tolist(), strict=True)
            }
            for x, weight in joint.items():
                if rows[str(x)]:
                    worst[str(x)] = max(worst.get(str(x), Fraction(0)), Fraction(weight, sum(joint.values())))
    return worst


def test_figures_of_one_cell_equal_enumeration() -> None:
    release = published(table())
    found = audit(table(), release).parts[0]
    expected = brute_force([(COUNTS, release.manifest.parts[0].channels[0])])
    assert {str(found.domain[b.position]): b.highest for b in found.beliefs} == expected
    assert found.rows_from == "histogram"
    assert found.gamma == release.manifest.parts[0].channels[0].exact_gamma


def test_figures_of_cells_equal_enumeration_because_the_plan_is_made_again() -> None:
    release = published(table(times=400), SmallDomain())
    plan = planned_again(release, 400)
    assert len(plan.cells) > 1
    found = audit(table(times=400), release).parts[0]
    assert found.rows_from == "plan"
    expected = brute_force([({str(k): v for k, v in cell.rows.items()}, cell.channel) for cell in plan.cells])
    assert {str(found.domain[b.position]): b.highest for b in found.beliefs} == expected
    assert found.cells is not None
    assert found.cells.count == len(plan.cells)
    assert found.cells.smallest_domain == min(len(cell.rows) for cell in plan.cells)
    assert found.gamma is None


def test_what_cells_reveal_is_their_mutual_information_with_the_value() -> None:
    release = published(table(times=400), SmallDomain())
    plan = planned_again(release, 400)
    n = 400 * sum(COUNTS.values())
    bits = sum(
        rows / n * np.log2(rows / n / (400 * COUNTS[str(value)] / n * cell.size / n))
        for cell in plan.cells
        for value, rows in cell.rows.items()
        if rows
    )
    report = audit(table(times=400), release).parts[0].cells
    assert report is not None
    assert report.revealed == pytest.approx(bits)
    assert 0.2 < report.revealed < report.entropy


@pytest.mark.parametrize(
    "mechanism",
    [
        "uniform",
        "small-domain",
        "designed",
        "fine-grain",
        "identity",
        "pram",
        "redraw",
        "decoys:c=3",
    ],
)
def test_figures_equal_what_a_large_release_shows(mechanism: str) -> None:
    rows = table(times=3_000)
    release = published(rows, mechanism, shuffle=False)
    part = audit(rows, release).parts[0]
    assert isinstance(part.posteriors, Posteriors)
    # At most 400 comparisons at 6.5 standard deviations: false alarm below 1e-7.
    assert surprise(rows, release, part, part.posteriors) < 6.5
    cells = part.posteriors.cells
    if all((one.channel.keep > 0).all() for one in cells):
        # Power: coins that are off by 5 % are seen.
        off = [replace(one, channel=replace(one.channel, keep=one.channel.keep * 95 // 100)) for one in cells]
        assert surprise(rows, release, part, Posteriors(off, published=part.posteriors.shows_cell)) > 6.5


def surprise(rows: pa.Table, release: dn.Release, part: PartAudit, posteriors: Posteriors) -> float:
    """The largest deviation of what a release shows from the posteriors, in standard deviations.

    Of every view and value by themselves, and of the rows that show their own value, all together.
    """
    code = {value: place for place, value in enumerate(part.domain)}
    true = np.array([code[value] for value in rows.column("disease").to_pylist()])
    shown = np.array([code[value] for value in release.table.column("disease").to_pylist()])
    cells = np.array(release.table.column("cell").to_pylist()) if release.manifest.parts[0].cells_published else None
    found = []
    own = expected = variance = 0.0
    for cell, y in posteriors.views():
        among = true[(shown == y) & (True if cells is None else cells == cell)]
        for x, posterior in posteriors.given(y or 0, cell).items():
            p, n = float(posterior), len(among)
            if n * p * (1 - p) > 25:
                found.append(abs((among == x).mean() - p) / np.sqrt(p * (1 - p) / n))
            if x == y:
                own, expected, variance = own + (among == x).sum(), expected + n * p, variance + n * p * (1 - p)
    assert len(found) > 20
    return float(max(*found, abs(own - expected) / np.sqrt(variance)))


def test_decoys_are_at_most_one_in_c() -> None:
    rows = table(times=10)
    mechanism = Decoys(c=3)
    release = dn.publish(rows, sensitive="disease", mechanism=mechanism, key=KEY)
    plan = mechanism.plan(dn.Histogram.of({value: 10 * n for value, n in COUNTS.items()}), None)
    part = audit(rows, release, plan=plan).parts[0]
    assert part.worst_protected == Fraction(1, 3)
    assert part.cells is None


def test_decoys_bound_no_belief_whatever_it_is() -> None:
    """Three people in one group. Who knows two of them, holding a and b, and sees d knows that the third does not hold
    c: no factor bounds that, and the manifest claims none."""
    for third, seen in (("c", 0), ("d", 19)):  # 27 draws, 19 of which show what the third holds
        assert sum("d" in drawn for drawn in product(("a", "b", third), repeat=3)) == seen
    rows = pa.table({"disease": ["flu", "cold", "gout"] * 20, "sex": ["F", "M", "F"] * 20})
    release = dn.publish(rows, sensitive="disease", mechanism=Decoys(c=3), key=KEY)
    found = dn.audit(rows, release)
    assert release.manifest.guarantee["epsilon"] is None
    assert math.isinf(found.epsilon)
    assert "any belief" in {one.what for one in found.findings if one.grade == "caution"}


def test_decoy_rows_that_are_dropped_say_nothing() -> None:
    counts = {"a": 4, "b": 3, "c": 3, "d": 3}
    rows = table(counts)
    plan = Decoys(c=3, leftovers="drop").plan(dn.Histogram.of(counts), None)
    assert plan.parts[0].left_out == len(plan.cells) - 1
    channels = tuple(cell.channel for cell in plan.cells)
    positions = tuple(plan.positions(cell) for cell in plan.cells)
    uniform = dn.publish(rows, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), key=KEY, mechanism="uniform")
    part = dataclasses.replace(uniform.manifest.parts[0], channels=channels, cell_positions=positions)
    release = forged(uniform, parts=(part,), options=plan.options, privacy=None)
    assert audit(rows, release, plan=plan).parts[0].worst_protected == Fraction(1, 3)


def test_decoys_are_held_to_the_promise_of_one_in_c() -> None:
    rows = table(times=10)
    release = dn.publish(rows, sensitive="disease", mechanism=Decoys(c=3), key=KEY)
    plan = Decoys(c=3).plan(dn.Histogram.of({value: 10 * n for value, n in COUNTS.items()}), None)
    assert "requirement" in kinds(audit(rows, release), "info")
    part = dataclasses.replace(release.manifest.parts[0], promise=DecoyGroups(4))  # promises 1/4, and has groups of 3
    bolder = forged(release, parts=(part,))
    assert "upward breach" in kinds(audit(rows, bolder, plan=plan), "serious")


def test_a_release_without_a_requirement_is_held_to_the_rho2_that_it_states() -> None:
    rows = table(times=10)
    release = published(rows, rho2="3/4")
    for rho2, grade in (("3/4", "info"), ("1/2", "serious")):
        stated = forged(release, privacy=None, guarantee={**release.manifest.guarantee, "rho2": rho2})
        assert ("upward breach" in kinds(audit(rows, stated), "serious")) == (grade == "serious")
        assert ("requirement" in kinds(audit(rows, stated), "info")) == (grade == "info")


@pytest.mark.parametrize("bins", [[0, 10, 20, 50, 90], Quantiles(4)])
def test_numbers_that_were_published_as_intervals_are_audited_as_intervals(bins: Any) -> None:
    rng = np.random.default_rng(4)
    pay = np.r_[rng.integers(0, 50, 700), 7, 7]  # nobody is in the last bin of the list
    rows = pa.table({"age": rng.integers(0, 9, len(pay)), "pay": pay})
    release = dn.publish(
        rows, sensitive="pay", privacy=dn.Privacy(rho2="9/10"), bins={"pay": bins}, key=KEY, mechanism="uniform"
    )
    found = audit(rows, release)
    assert not found.serious
    binned = [str(value) for value in found.parts[0].domain]
    assert {str(found.parts[0].domain[b.position]) for b in found.parts[0].beliefs} == set(binned)
    assert sum(b.prior for b in found.parts[0].beliefs) == 1


def test_rows_of_another_table_are_noticed() -> None:
    rows = table(times=10)
    release = published(rows)
    assert not audit(rows, release).serious
    other = rows.set_column(0, "age", pa.array(np.arange(rows.num_rows) % 60 + 20))
    found = audit(other, release)
    assert "another table" in kinds(found, "serious")
    assert "another table" in kinds(audit(rows.slice(3), release), "serious")


def test_without_a_plan_the_rows_of_the_cells_are_estimated() -> None:
    rows = table(times=400)
    release = published(rows, SmallDomain())
    exact = audit(rows, release).parts[0]
    renamed = forged(release, mechanism="a mechanism from elsewhere")
    estimated = audit(rows, renamed).parts[0]
    assert estimated.rows_from == "estimate"
    for mine, truth in zip(estimated.beliefs, exact.beliefs, strict=True):
        assert float(mine.highest) == pytest.approx(float(truth.highest), abs=0.06)


def test_a_sound_release_has_no_serious_finding() -> None:
    found = audit(table(times=100), published(table(times=100)))
    assert not found.serious
    assert not found.parts[0].upward
    assert found.parts[0].worst_protected <= Fraction(2, 3)
    assert "requirement" in kinds(found, "info")


def test_an_upward_breach_is_serious_and_says_where() -> None:
    release = published(table(times=100))
    part = release.manifest.parts[0]
    bold = Channel(part.channels[0].values, part.channels[0].keep * 2, part.channels[0].replace)
    broken = forged(release, parts=(dataclasses.replace(part, channels=(bold,)),))
    found = audit(table(times=100), broken)
    assert "upward breach" in kinds(found, "serious")
    first = found.parts[0].upward[0]
    assert first.posterior > Fraction(2, 3)
    assert found.parts[0].domain[first.position] == "a"
    assert "Do not publish" in found.serious[0].advice


def test_a_posterior_of_exactly_rho2_is_no_breach() -> None:
    half = table({"x": 50, "y": 50})
    release = dn.publish(
        half, sensitive="disease", privacy=dn.Privacy(rho1="1/2", rho2="3/4"), key=KEY, mechanism="uniform"
    )
    belief = audit(half, release).parts[0].beliefs[0]
    exactly = {**release.manifest.privacy, "rho2": str(belief.highest)}
    assert not audit(half, forged(release, privacy=exactly)).parts[0].upward
    below = {**release.manifest.privacy, "rho2": str(belief.highest - Fraction(1, 10**12))}
    assert audit(half, forged(release, privacy=below)).parts[0].upward


def test_downward_breaches_of_cells_are_found_and_uniform_perturbation_has_none() -> None:
    counts = {"common": 700, **{f"rare{i}": 30 for i in range(10)}}
    rows = table(counts)
    privacy = {"rho1": "1/20", "rho2": "3/10", "adversary": "frequency", "per_value": [], "exempt": []}
    uniform = published(rows, rho1="1/20", rho2="3/10")
    assert not audit(rows, forged(uniform, privacy=privacy)).parts[0].downward
    # Two published cells, one without the common value: seeing it rules the value out.
    part = uniform.manifest.parts[0]
    places = [np.arange(0, 6), np.arange(1, 11)]
    channels = tuple(Channel.uniform([part.domain[i] for i in p], gamma=Fraction(2)) for p in places)
    split = dataclasses.replace(part, channels=channels, cell_positions=tuple(places), cells_published=True)
    cell = pa.array(np.arange(rows.num_rows) % 2)
    shown = uniform.table.append_column("cell", cell)
    forged_release = dn.Release(dataclasses.replace(uniform.manifest, parts=(split,)), table=shown)
    found = audit(rows, forged_release)
    assert found.parts[0].domain[found.parts[0].downward[0].position] == "common"
    assert found.parts[0].downward[0].posterior == 0
    assert "downward breach" in kinds(found, "caution")


def test_any_prior_that_is_promised_but_not_kept_is_serious() -> None:
    rows = table(times=50)
    release = published(rows, SmallDomain(cost="bound"))
    claims = {**release.manifest.privacy, "adversary": "any-prior"}
    assert "any belief" in kinds(audit(rows, forged(release, privacy=claims)), "serious")
    required = dn.Privacy("1/3", "2/3", adversary="any-prior")
    declared = sorted(set(rows["disease"].to_pylist()))
    kept = dn.publish(rows, sensitive="disease", privacy=required, domain=declared, key=KEY, mechanism="uniform")
    assert not audit(rows, kept).serious


def test_stronger_priors_make_a_rising_curve_that_starts_at_the_frequency() -> None:
    part = audit(table(times=10), published(table(times=10))).parts[0]
    by_label = {point.label: point for point in part.curve}
    assert list(by_label) == ["1x", "2x", "5x", "10x", "10 %", "rho1"]
    assert by_label["1x"].posterior == part.worst_protected
    steps = [by_label[label].posterior for label in ("1x", "2x", "5x", "10x")]
    assert steps == sorted(steps)
    assert by_label["rho1"].posterior <= Fraction(2, 3)


def test_per_value_requirements_and_exempt_values_are_read_from_the_manifest() -> None:
    stated = {"rho1": None, "rho2": None, "per_value": [["a", "1/10", "1/5"]], "exempt": []}
    assert limits_of(stated, ("a", "b")) == ((Fraction(1, 10), Fraction(1, 5)), None)
    common = {"rho1": None, "rho2": "1/2", "per_value": [], "exempt": [1]}
    assert limits_of(common, (1, "1", True)) == (None, (None, Fraction(1, 2)), (None, Fraction(1, 2)))


def test_a_seed_is_serious() -> None:
    with pytest.warns(UserWarning, match="seed"):
        release = dn.publish(
            table(), sensitive="disease", privacy=dn.Privacy("1/3", "2/3"), seed=1, mechanism="uniform"
        )
    assert "seed" in kinds(audit(table(), release), "serious")


def test_row_order_that_tells_the_value_is_serious_and_a_shuffled_release_passes() -> None:
    values = np.repeat(list("abcd"), 1000)
    ordered = pa.table({"age": np.random.default_rng(1).integers(20, 80, 4000), "disease": values.tolist()})
    privacy = dn.Privacy("1/2", "3/4")
    kept = dn.publish(ordered, sensitive="disease", privacy=privacy, key=KEY, shuffle=False, mechanism="uniform")
    found = audit(ordered, kept)
    assert "row order" in kinds(found, "serious")
    assert found.rows is not None
    assert found.rows.same_order
    mixed = audit(ordered, dn.publish(ordered, sensitive="disease", privacy=privacy, key=KEY, mechanism="uniform"))
    assert "row order" in kinds(mixed, "info")


def test_the_order_test_sees_a_drift_and_not_chance() -> None:
    rng = np.random.default_rng(2)
    n = 50_000
    assert not any(depends_on_order(rng.integers(0, m, n)) for m in (2, 7, 300, 10**9))
    assert depends_on_order((rng.random(n) < np.linspace(0.45, 0.55, n)).astype(np.int64))
    assert not depends_on_order(np.zeros(10, dtype=np.int64))


def test_rare_and_repeated_rows_are_counted() -> None:
    others = 400  # of one age and both diseases: they are neither rare nor one person
    rows = pa.table(
        {"age": [1, 2, 3, 3, 3] + [4] * others, "disease": ["a", "b", "a", "a", "a", *"ab" * (others // 2)]}
    )
    found = audit(
        rows, dn.publish(rows, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), key=KEY, mechanism="uniform")
    ).rows
    assert found is not None
    assert (found.unique, found.rare, found.repeated, found.repeated_rows) == (2, 5, 3, 3)
    assert found.repeated_posterior > 0.75


def test_a_cell_of_one_category_is_serious() -> None:
    rows = table(times=400)
    release = published(rows, SmallDomain())
    smallest = min(release.manifest.parts[0].channels, key=lambda channel: channel.m).values
    one_kind = {value: "cancer" if value in smallest else "other" for value in COUNTS}
    found = audit(rows, release, categories=one_kind)
    assert found.parts[0].cells is not None
    assert found.parts[0].cells.fewest_categories == 1
    assert "cells" in kinds(found, "serious")
    assert "cells" not in kinds(audit(rows, release), "serious")


def test_another_table_is_refused() -> None:
    release = published(table())
    with pytest.raises(DeniableError):
        audit(table({"zebra": 5, "a": 7}), release)


def test_the_audit_prints_and_becomes_json() -> None:
    found = audit(table(), published(table(), SmallDomain(cost="bound")))
    assert "For the owner" in str(found)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(plain["parts"][0]["values"]) == 10
    assert plain["findings"]
    assert plain["epsilon"] is None


def test_compound_and_numeric_columns_are_audited() -> None:
    rng = np.random.default_rng(8)
    rows = pa.table({"age": rng.integers(0, 9, 500), "x": rng.integers(0, 3, 500), "y": rng.choice(["u", "v"], 500)})
    release = dn.publish(rows, sensitive=["x", "y"], privacy=dn.Privacy(rho2="1/2"), key=KEY, mechanism="uniform")
    found = audit(rows, release)
    assert len(found.parts[0].beliefs) == 6
    assert not found.parts[0].upward


def test_the_command_prints_grades_and_refuses_the_release_folder(tmp_path: Path) -> None:
    rows = table(times=30)
    pq.write_table(rows, tmp_path / "table.parquet")
    published(rows, out=tmp_path / "release")
    before = sorted(os.listdir(tmp_path / "release"))

    def run(*words: object) -> Any:
        return CliRunner().invoke(app, ["audit", *map(str, words)])

    plain = run(tmp_path / "table.parquet", tmp_path / "release", "--details")
    assert plain.exit_code == 0, plain.stderr
    assert "[info] requirement" in plain.stdout
    told = json.loads(run(tmp_path / "table.parquet", tmp_path / "release", "--json").stdout)
    assert told["parts"][0]["upward"] == []
    inside = run(tmp_path / "table.parquet", tmp_path / "release", "--out", tmp_path / "release" / "audit.txt")
    assert inside.exit_code == 2
    assert "inside the release" in inside.stderr
    assert sorted(os.listdir(tmp_path / "release")) == before
    outside = run(tmp_path / "table.parquet", tmp_path / "release", "--out", tmp_path / "audit.txt")
    assert outside.exit_code == 0, outside.stderr
    assert (tmp_path / "audit.txt").stat().st_mode & 0o777 == 0o600


def test_the_command_refuses_to_be_redirected_into_the_release(tmp_path: Path) -> None:
    rows = table(times=30)
    pq.write_table(rows, tmp_path / "table.parquet")
    published(rows, out=tmp_path / "release")
    words = [sys.executable, "-m", "deniable", "audit", str(tmp_path / "table.parquet"), str(tmp_path / "release")]
    for place, code in (("release/audit.txt", 2), ("audit.txt", 0)):
        with (tmp_path / place).open("w") as file:
            done = subprocess.run(words, stdout=file, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert bool((tmp_path / place).stat().st_size) == (code == 0)
        assert ("inside the release" in done.stderr) == (code == 2)
        (tmp_path / place).unlink()  # the shell made it: a release with a file that its manifest does not name is none


def test_a_manifest_read_from_its_own_json_gives_the_same_audit() -> None:
    release = published(table(), SmallDomain(cost="bound"))
    again = dn.Release(Manifest.from_json(release.manifest.to_json()), table=release.table)
    assert audit(table(), again).to_dict() == audit(table(), release).to_dict()
