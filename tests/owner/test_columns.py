"""Columns that are perturbed one by one: own requirements, ranges in intervals, what two columns say together."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Channel, Replace
from deniable.core.exact import SCALE
from deniable.mechanisms.retention import Retention
from deniable.owner.parts import pair_posteriors

KEY = b"\x06" * 32
N = 6000


def table(n: int = N) -> pa.Table:
    rng = np.random.default_rng(9)
    school = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    years = np.where(rng.random(n) < 0.95, 8 + 2 * school, rng.integers(8, 16, n))
    return pa.table(
        {
            "zip": rng.integers(0, 3, n),
            "school": np.array(list("abcd"))[school],
            "years": years,
            "pay": rng.integers(0, 5000, n),
            "eye": rng.choice(["blue", "brown"], n),
        }
    )


COLUMNS = {
    "school": Replace(privacy=(3, "1/4", "3/4")),
    "years": Replace(coin=0.6, low=8, high=16),
    "pay": Replace(coin=0.5, low=0, high=5000),
    "eye": Replace(coin=0.5),
}


def published(columns: dict[str, Replace] = COLUMNS) -> dn.Release:
    others = [name for name in table().column_names if name not in (*columns, "zip")]
    return dn.publish(table(), mechanism=Retention(columns), drop=others, key=KEY)


def findings(found: object, what: str, column: str) -> list[str]:
    return [f.grade for f in found.findings if f.what == what and f.detail.startswith(repr(column))]  # type: ignore[attr-defined]


def test_every_column_is_audited_ranges_too_and_epsilons_add_up_to_the_release_s() -> None:
    release = published()
    found = dn.audit(table(), release)
    assert sorted(part.columns[0] for part in found.parts) == sorted(COLUMNS)
    assert found.epsilon == pytest.approx(release.manifest.guarantee["epsilon"], rel=1e-9)
    assert "not listed" not in {finding.what for finding in found.findings}
    json.dumps(found.to_dict())


def test_the_intervals_of_a_range_hold_all_rows_and_all_replacements() -> None:
    found = {part.columns[0]: part for part in dn.audit(table(), published()).parts}
    years = found["years"]
    assert years.domain == tuple(str(year) for year in range(8, 17))
    pay = table()["pay"].to_numpy()
    cell = found["pay"].posteriors.cells[0]
    assert len(found["pay"].domain) == 50
    assert sum(cell.replace) == SCALE
    unit = sum(cell.rows) // N
    for label, rows, weight in zip(found["pay"].domain, cell.rows, cell.replace, strict=True):
        low, high = map(int, str(label).split(" to "))
        assert rows == unit * ((pay >= low) & (pay <= high)).sum()
        assert weight / SCALE == pytest.approx((high - low + 1) / 5001, abs=1e-8)


def test_dates_and_missing_numbers_are_audited() -> None:
    days = [datetime.date(2000, 1, 1) + datetime.timedelta(i % 900) for i in range(2000)]
    numbers = [None if i % 5 == 0 else i % 7 for i in range(2000)]
    rows = pa.table({"born": days, "x": pa.array(numbers, pa.int32())})
    columns = {
        "born": Replace(coin=0.5, low=datetime.date(2000, 1, 1), high=datetime.date(2003, 12, 31)),
        "x": Replace(coin=0.5, low=0, high=6),
    }
    for missing, domain in (("value", 8), ("exempt", 7)):
        release = dn.publish(rows, mechanism=Retention(columns), key=KEY, missing=missing)
        found = {part.columns[0]: part for part in dn.audit(rows, release).parts}
        assert str(found["born"].domain[0]).startswith("2000-01-01 to 2000-")
        assert len(found["x"].domain) == domain
        shares = {str(found["x"].domain[b.position]): b.prior for b in found["x"].beliefs}
        assert shares["3"] == Fraction(numbers.count(3), 2000 if missing == "value" else 1600)


def test_a_column_s_own_requirement_is_checked() -> None:
    found = dn.audit(table(), published())
    school = next(part for part in found.parts if part.columns == ("school",))
    assert findings(found, "requirement", "school") == ["info"]
    assert any("'school': holds" in finding.detail for finding in found.findings)
    # a: 40 % of the rows, believed above rho1 beforehand; the others are protected
    assert [limit is not None for limit in school.limits] == [True] * 4
    assert not found.serious


@pytest.mark.parametrize("asked", [(3, "1/4", "3/4"), dn.Privacy("1/4", "3/4")])
@pytest.mark.parametrize("replacing", ["uniform", "identity"])
def test_a_coin_that_breaks_the_column_s_requirement_is_serious(asked: object, replacing: str) -> None:
    columns = {"school": Replace(privacy=asked, replacing=replacing), "eye": Replace(coin=0.5)}  # type: ignore[arg-type]
    release = published(columns)
    assert not dn.audit(table(), release).serious
    part = release.manifest.parts[0]
    bold = Channel(part.channels[0].values, np.full(4, int(0.9 * SCALE)), part.channels[0].replace)
    parts = (dataclasses.replace(part, channels=(bold,)), *release.manifest.parts[1:])
    forged = dn.Release(dataclasses.replace(release.manifest, parts=parts), table=release.table)
    assert findings(dn.audit(table(), forged), "upward breach", "school") == ["serious"]
    with pytest.raises(dn.VerificationError, match="'school'"):
        forged.verify()


def test_s_leaves_out_values_that_are_likelier_than_their_share_of_replacements() -> None:
    columns = {"school": Replace(privacy=(1, "9/20", "1/2")), "eye": Replace(coin=0.5)}
    found = dn.audit(table(), published(columns))
    school = next(part for part in found.parts if part.columns == ("school",))
    assert [limit is not None for limit in school.limits] == [False, False, True, True]  # 4 x share < 1


def test_two_columns_together_equal_enumeration() -> None:
    rng = np.random.default_rng(2)
    joint = rng.integers(0, 30, (3, 4))
    one = Channel.of(tuple("abc"), 0.6, np.array([0.5, 0.3, 0.2]))
    other = Channel.of(tuple("wxyz"), 0.3, np.array([0.1, 0.2, 0.3, 0.4]))
    alone, together = pair_posteriors(joint, one, other)
    for x in range(3):
        views = [
            joint[x]
            @ other.matrix()[y]
            * one.matrix()[a, x]
            / sum(joint[k] @ other.matrix()[y] * one.matrix()[a, k] for k in range(3))
            for a, y in product(range(3), range(4))
        ]
        assert together[x] == pytest.approx(max(views))
        row = joint.sum(1)
        assert alone[x] == pytest.approx(max(one.matrix()[a, x] * row[x] / (one.matrix()[a] @ row) for a in range(3)))


def test_columns_that_say_the_same_are_reported_and_independent_ones_are_not() -> None:
    found = dn.audit(table(), published())
    assert findings(found, "correlated columns", "school") == ["caution"]
    said = next(f.detail for f in found.findings if f.what == "correlated columns" and f.detail.startswith("'school'"))
    assert "'school' and 'years'" in said
    assert "75 % are allowed of this column alone" in said
    assert findings(found, "correlated columns", "eye") == []
    pair = next(pair for pair in found.pairs if pair.columns == ("school", "years"))
    assert pair.together > 0.75 > pair.alone


def test_a_swapped_column_has_no_epsilon() -> None:
    found = dn.audit(table(), published({"school": Replace(coin=0.5, replacing="swapping"), "eye": Replace(coin=0.5)}))
    assert math.isinf(found.epsilon)
    assert any("exact histogram of 'school'" in finding.detail for finding in found.findings)


def test_two_swapped_columns_of_few_rows_say_what_enumeration_of_coins_and_permutations_gives() -> None:
    """Six rows, both columns alike: a value comes back to its own row more often than the coin keeps it."""
    rows = pa.table({"one": list("xyxyxy"), "other": list("xyxyxy")})
    swapped = Replace(coin=0.5, replacing="swapping")
    found = dn.audit(rows, dn.publish(rows, mechanism=Retention({"one": swapped, "other": swapped}), key=KEY))
    own = Fraction(0)
    for kept in product([True, False], repeat=6):
        moved = [row for row in range(6) if not kept[row]]
        from_x = Fraction(sum(row % 2 == 0 for row in moved), max(len(moved), 1))
        own += (Fraction(1) if kept[0] else from_x) / 2**6  # row 0 holds x and shows x
    for pair in found.pairs:
        assert pair.alone == pytest.approx(float(own), abs=1e-6)
        assert pair.together == pytest.approx(float(own**2 / (own**2 + (1 - own) ** 2)), abs=1e-6)
