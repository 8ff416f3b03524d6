"""Heaped numbers: found with the posterior by hand and by simulation, no alarm at even ones, and gone on their grid."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import NumberRange
from deniable.owner.heaping import Heap, about_heap, heap_of

ROWS = 6_000
WAGES = NumberRange("integer", 0, 99_999, 1, keep=2**31)


def salaries(heaped: float, unit: int = 1_000, seed: int = 0, rows: int = ROWS) -> np.ndarray:
    draw = np.random.default_rng(seed)
    exact = draw.integers(0, 100_000, rows)
    return np.where(draw.random(rows) < heaped, exact // unit * unit, exact)


def counted(numbers: np.ndarray) -> np.ndarray:
    return np.bincount(numbers, minlength=100_000)


def retention(table: pa.Table, **options: object) -> dn.Release:
    how = {"coin": 0.5, "low": 0, "high": 99_999, **options}
    return dn.publish(table, mechanism=dn.mechanisms.Retention({"salary": dn.Replace(**how)}), key=bytes(32))


def test_the_posterior_is_the_formula_by_hand() -> None:
    # 60 % of rows on 0.1 % of the points, coin 1/2: 0.3 / (0.3 + 0.0005)
    assert Heap("x", "", 1.0, 0.6, 0.001, 0.5).posterior == pytest.approx(0.3 / 0.3005)
    heap = heap_of("salary", counted(salaries(0.6)), WAGES)
    assert heap is not None
    assert (heap.what, heap.step, heap.expected) == ("multiples of 1,000", 1000, 0.001)
    assert heap.share == pytest.approx(0.6, abs=0.04)


@pytest.mark.parametrize("seed", range(8))
def test_even_numbers_are_no_heap(seed: int) -> None:
    draw = np.random.default_rng(seed)
    assert heap_of("salary", counted(salaries(0.0, seed=seed)), WAGES) is None
    bell = np.clip(draw.normal(50_000, 9_000, ROWS), 0, 99_999).astype(np.int64)
    assert heap_of("salary", counted(bell), WAGES) is None
    ages = NumberRange("integer", 17, 90, 1, keep=2**31)
    assert heap_of("age", np.bincount(draw.integers(0, 74, ROWS), minlength=74), ages) is None


def test_what_is_published_on_a_heap_is_as_often_true_as_said() -> None:
    table = pa.table({"salary": salaries(0.6)})
    how = dn.mechanisms.Retention({"salary": dn.Replace(coin=0.5, low=0, high=99_999)})
    release = dn.publish(table, mechanism=how, key=bytes(32), shuffle=False)
    before, after = (np.asarray(one["salary"]) for one in (table, release.table))
    on_heap = after % 1000 == 0
    right = float((before[on_heap] == after[on_heap]).mean())
    heap = heap_of("salary", counted(before), WAGES)
    assert heap is not None
    error = np.sqrt(heap.posterior * (1 - heap.posterior) / on_heap.sum())
    assert abs(right - heap.posterior) < 6 * error
    assert heap.posterior > 0.99


def test_publish_warns_audit_finds_it_and_the_grid_is_the_fix() -> None:
    table = pa.table({"salary": salaries(0.6), "sex": ["F", "M"] * (ROWS // 2)})
    heaped = retention(table)
    (warning,) = [warning for warning in heaped.warnings if warning.startswith("Heaped numbers")]
    assert "multiples of 1,000" in warning
    assert "step=1000" in warning
    assert heaped.decision.verdict == "must not be published"
    (finding,) = [finding for finding in dn.audit(table, heaped).serious if finding.what == "heaped numbers"]
    assert "99.8 %" in finding.detail
    on_grid = retention(table, step=1_000)
    assert not any("Heaped" in warning for warning in on_grid.warnings)
    assert not any(finding.what == "heaped numbers" for finding in dn.audit(table, on_grid).findings)


def test_a_column_that_was_snapped_has_its_multiples_as_grid() -> None:
    table = pa.table({"salary": salaries(0.6, rows=2_000)})
    how = dn.mechanisms.Retention({"salary": dn.Replace(coin=0.5, low=0, high=100_000)})
    release = dn.publish(table, mechanism=how, recode={"salary": dn.snap(1000)}, key=bytes(32))
    assert release.manifest.parts[0].range.step == 1000
    assert (np.asarray(release.table["salary"]) % 1000 == 0).all()
    assert not any("Heaped" in warning for warning in release.warnings)
    dn.audit(table, release)


def test_dates_pile_up_on_the_first() -> None:
    draw = np.random.default_rng(1)
    days = draw.integers(0, 3_652, ROWS).astype("timedelta64[D]") + np.datetime64("2010-01-01")
    first = np.where(draw.random(ROWS) < 0.5, days.astype("datetime64[M]").astype("datetime64[D]"), days)
    low, high = datetime.date(2010, 1, 1), datetime.date(2019, 12, 31)
    how = dn.mechanisms.Retention({"seen": dn.Replace(coin=0.5, low=low, high=high)})
    release = dn.publish(pa.table({"seen": first}), mechanism=how, key=bytes(32))
    (warning,) = [warning for warning in release.warnings if warning.startswith("Heaped numbers")]
    assert "the first of a month" in warning
    assert "dn.month" in warning
    even = dn.publish(pa.table({"seen": days}), mechanism=how, key=bytes(32))
    assert not any("Heaped" in warning for warning in even.warnings)


def test_little_is_a_caution_and_what_is_not_perturbed_is_said_elsewhere() -> None:
    heap = Heap("x", "multiples of 10", 10.0, 0.4, 0.1, 0.3)
    assert [finding.grade for finding in about_heap(heap, None)] == ["caution"]
    assert [finding.grade for finding in about_heap(heap, 0.5)] == ["serious"]
    assert about_heap(Heap("x", "", 10.0, 0.4, 0.1, 1.0), None) == []
    assert about_heap(None, None) == []
