"""The audit of releases of groups: its figures equal what counting the published tables gives, and what people find."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.audit.audit import Audit
from deniable.audit.grouped import GroupRows
from deniable.mechanisms import Anatomy, Generalize
from deniable.owner.audit import audit
from deniable.rivals.generalize.boxes import cells_of

KEY = b"\x07" * 32


def people(n: int = 240, seed: int = 2) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.integers(20, 60, n),
            "city": rng.choice(["x", "y", "z"], n),
            "disease": rng.choice(["flu", "cold", "gout", "angina", "mumps"], n, p=[0.25, 0.25, 0.2, 0.2, 0.1]),
        }
    )


def released(table: pa.Table, mechanism: object, **more: object) -> dn.Release:
    release = dn.publish(table, sensitive="disease", mechanism=mechanism, key=KEY, **more)  # type: ignore[arg-type]
    assert release.manifest.form in ("buckets", "boxes")
    return release


def counted(release: dn.Release) -> dict[int, Counter[str]]:
    """Group -> value -> rows, from the tables as anyone reads them."""
    groups: dict[int, Counter[str]] = {}
    if release.manifest.form == "boxes":
        lines = [(row["cell"], row["disease"], 1) for row in release.table.to_pylist()]
    else:
        lines = [(row["cell"], row["disease"], row["rows"]) for row in release.groups.to_pylist()]
    for cell, value, rows in lines:
        groups.setdefault(cell, Counter())[value] += rows
    return groups


def kinds(found: Audit, grade: str) -> set[str]:
    return {finding.what for finding in found.findings if finding.grade == grade}


@pytest.mark.parametrize("mechanism", [Anatomy(3), Generalize(k=4, l=3), Generalize(k=4, l=1)], ids=repr)
def test_figures_equal_counting_the_published_groups(mechanism: object) -> None:
    table = people()
    release = released(table, mechanism)
    groups = counted(release)
    part = audit(table, release).parts[0]
    n = sum(sum(own.values()) for own in groups.values())
    assert {part.domain[belief.position] for belief in part.beliefs} == {v for own in groups.values() for v in own}
    for belief in part.beliefs:
        value = part.domain[belief.position]
        shares = {cell: Fraction(own[value], sum(own.values())) for cell, own in groups.items()}
        assert belief.prior == Fraction(sum(own[value] for own in groups.values()), n)
        assert belief.highest == max(shares.values()) == shares[belief.most_telling[0]]
        assert belief.lowest == min(shares.values()) == shares[belief.least_telling[0]]
        assert belief.most_telling[1] is None
    for cell, own in groups.items():
        told = {part.domain[x]: share for x, share in part.posteriors.given(None, cell).items()}
        assert told == {value: Fraction(rows, sum(own.values())) for value, rows in own.items()}


@pytest.mark.parametrize("mechanism", [Anatomy(3), Generalize(k=4, l=3)], ids=repr)
def test_what_groups_reveal_is_their_mutual_information_with_the_value(mechanism: object) -> None:
    table = people()
    release = released(table, mechanism)
    groups = counted(release)
    n = sum(sum(own.values()) for own in groups.values())
    totals: Counter[str] = sum(groups.values(), Counter())
    bits = sum(
        rows / n * math.log2(rows / n / (totals[value] / n * sum(own.values()) / n))
        for own in groups.values()
        for value, rows in own.items()
    )
    report = audit(table, release).parts[0].cells
    assert report is not None
    assert report.revealed == pytest.approx(bits)
    assert report.count == len(groups)
    assert report.smallest_rows == min(sum(own.values()) for own in groups.values())
    assert report.smallest_domain == min(len(own) for own in groups.values()) >= 3
    assert report.alike == 0


def test_posteriors_are_how_often_people_found_in_a_box_have_the_value() -> None:
    table = people(4_000)
    release = released(table, Generalize(k=6, l=3))
    assert release.manifest.form == "boxes"
    found, true = cells_of(release.groups, table), np.array(table["disease"].to_pylist())
    part = audit(table, release).parts[0]
    for cell in np.unique(found):
        for x, share in part.posteriors.given(None, int(cell)).items():
            assert Fraction(int((true[found == cell] == part.domain[x]).sum()), int((found == cell).sum())) == share


def test_groups_that_agree_are_serious_and_diverse_ones_are_not() -> None:
    rng = np.random.default_rng(5)
    age = rng.integers(0, 40, 2_000)
    table = pa.table({"age": age, "disease": np.array(list("abcd"))[age // 10].tolist()})
    alike = audit(table, released(table, Generalize(k=5, l=1)))
    assert "groups that agree" in kinds(alike, "serious")
    report = alike.parts[0].cells
    assert report is not None
    assert report.alike == 2_000
    assert alike.parts[0].worst_protected == 1
    diverse = audit(table, released(table, Generalize(k=5, l=3)))
    assert not diverse.serious
    assert {"known members"} <= kinds(diverse, "caution")
    assert diverse.parts[0].worst_protected <= Fraction(1, 3)


def test_a_group_beyond_the_requirement_is_a_breach() -> None:
    table = people()
    release = released(table, Anatomy(3), privacy=dn.Privacy(rho2="1/3"))
    assert "requirement" in kinds(audit(table, release), "info")
    stricter = dataclasses.replace(release.manifest, privacy={**release.manifest.privacy, "rho2": "1/5"})  # type: ignore[dict-item]
    broken = dn.Release(stricter, table=release.table, groups=release.groups)
    found = audit(table, broken)
    assert "upward breach" in kinds(found, "serious")
    assert "the row is in group" in str(found)


def test_amplification_counts_every_pair_of_values() -> None:
    whole = GroupRows(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([1, 3, 3, 1]))
    assert whole.amplification == 3
    apart = GroupRows(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([1, 3, 3]))
    assert apart.amplification is None


def test_rows_of_groups_are_looked_at_too() -> None:
    table = people()
    found = audit(table, released(table, Anatomy(3)))
    assert found.rows is not None
    assert found.rows.rows == 240
    assert found.rows.unique > 0
    moved = table.set_column(0, "age", pa.array(np.arange(240)))
    assert "another table" in kinds(audit(moved, released(table, Anatomy(3))), "serious")


def test_categories_are_counted_in_groups() -> None:
    table = people()
    release = released(table, Anatomy(3))
    same = dict.fromkeys(["flu", "cold", "gout", "angina", "mumps"], "illness")
    assert "groups of one category" in kinds(audit(table, release, categories=same), "serious")
    assert "groups of one category" not in kinds(audit(table, release), "serious")
