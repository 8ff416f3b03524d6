"""A generalized release: what is published, what can be asked, and how it is verified."""

from __future__ import annotations

import datetime
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.errors import (
    ColumnError,
    OptionError,
    QuestionError,
    RequirementError,
    TableError,
    VerificationError,
)
from deniable.engines.local.engine import LocalEngine
from deniable.mechanisms import Generalize
from deniable.rivals.generalize.axes import axes_of_rows
from deniable.rivals.generalize.boxes import cells_of
from deniable.rivals.generalize.mondrian import mondrian

KEY = bytes(range(32))
N = 3_000
MECHANISM = Generalize(k=10, l=3)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(4)
    days = [datetime.date(1950, 1, 1) + datetime.timedelta(days=int(day)) for day in rng.integers(0, 9_000, N)]
    return pa.table(
        {
            "sex": pa.array(rng.choice(["F", "M"], N), mask=rng.random(N) < 0.1),
            "age": pa.array(rng.integers(18, 90, N), mask=rng.random(N) < 0.05),
            "pay": rng.gamma(2.0, 1000.0, N).round(2),
            "born": pa.array(days),
            "disease": rng.choice(list("abcdefgh"), N),
        }
    )


def published(table: pa.Table, **options: Any) -> dn.Release:
    options = {"sensitive": "disease", "mechanism": MECHANISM, "key": KEY, **options}
    release = dn.publish(table, **options)
    assert release.manifest.form == "boxes"
    return release


def test_rows_of_a_group_look_alike_and_lie_in_its_box(table: pa.Table) -> None:
    release = published(table)
    shown = release.table
    assert shown.column_names == ["sex", "age", "pay", "born", "disease", "cell"]
    looks = shown.group_by(["cell", "sex", "age", "pay", "born"]).aggregate([]).num_rows
    assert looks == release.groups.num_rows > 20
    cells = cells_of(release.groups, table)
    pairs = sorted(zip(cells.tolist(), table["disease"].to_pylist(), strict=True))
    assert pairs == sorted(zip(shown["cell"].to_pylist(), shown["disease"].to_pylist(), strict=True))


def test_nothing_says_whose_a_value_is(table: pa.Table) -> None:
    """Rows of a group are in random order: their values agree with the original order no more than by chance."""
    release = published(table)
    cells = cells_of(release.groups, table)
    first = published(table, key=bytes(32)).table
    assert not first["disease"].equals(release.table["disease"])
    same = total = 0
    for cell in range(release.groups.num_rows):
        before = table["disease"].to_numpy(zero_copy_only=False)[cells == cell]
        inside = release.table["cell"].to_numpy() == cell
        after = release.table["disease"].to_numpy(zero_copy_only=False)[inside]
        same, total = same + int((before == after).sum()), total + len(before)
    # About 1/8 to 1/3 of the places agree by chance (3,000 rows, deviation below 0.01); all of them without shuffling.
    assert same / total < 0.4
    with pytest.raises(OptionError, match="shuffled"):
        published(table, shuffle=False)


def test_groups_do_not_depend_on_the_order_of_rows(table: pa.Table) -> None:
    order = np.random.default_rng(1).permutation(N)
    assert published(table.take(pa.array(order))).groups.equals(published(table).groups)


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_release_is_saved_opened_and_verified(table: pa.Table, tmp_path: Path, format: str) -> None:
    privacy = dn.Privacy(rho2="1/3")
    release = published(table, out=tmp_path / "r", format=format, privacy=privacy)
    opened = dn.open_release(tmp_path / "r")
    assert opened.manifest.form == "boxes"
    assert opened.table.equals(release.table)
    assert opened.groups.equals(release.groups)
    where = {"age": dn.between(30, 50), "disease": "a"}
    assert opened.count(where) == published(table, privacy=privacy).count(where)
    text = str(dn.verify(tmp_path / "r"))
    for check in ("group sizes", "shares", "boxes", "looks", "requirement"):
        assert f"ok   {check}" in text
    assert "as if its rows lay evenly" in (tmp_path / "r" / "README.md").read_text()


def spoil(folder: Path, change: Any, *, data: Any = None, groups: Any = None) -> None:
    """Change a release and make its digests fit again, as someone would who wants it to pass."""
    import hashlib

    raw = json.loads((folder / "manifest.json").read_text())
    for name, edit in (("data.parquet", data), ("groups.parquet", groups)):
        if edit is not None:
            pq.write_table(edit(pq.read_table(folder / name)), folder / name)
    raw["data"]["sha256"] = hashlib.sha256((folder / "data.parquet").read_bytes()).hexdigest()
    raw["groups"]["sha256"] = hashlib.sha256((folder / "groups.parquet").read_bytes()).hexdigest()
    change(raw)
    (folder / "manifest.json").write_text(json.dumps(raw))


def one_value(table: pa.Table) -> pa.Table:
    """The first group agrees."""
    pairs = zip(table["cell"].to_pylist(), table["disease"].to_pylist(), strict=True)
    values = ["a" if cell == 0 else value for cell, value in pairs]
    return table.set_column(table.column_names.index("disease"), "disease", pa.array(values))


def one_look_more(table: pa.Table) -> pa.Table:
    values = ["17", *table["age"].to_pylist()[1:]]
    return table.set_column(table.column_names.index("age"), "age", pa.array(values))


@pytest.mark.parametrize(
    ("words", "change", "files"),
    [
        ("group sizes", lambda raw: raw["parts"][0]["promise"].update(k=500), {}),
        ("shares", lambda raw: raw["parts"][0]["promise"].update(l=8), {}),
        ("shares", lambda raw: None, {"data": one_value}),
        ("looks", lambda raw: None, {"data": one_look_more}),
        ("boxes", lambda raw: None, {"groups": lambda boxes: boxes.slice(1)}),
        ("requirement", lambda raw: raw["privacy"].update(rho2="1/8"), {}),
        ("groups.parquet was changed", lambda raw: raw["groups"].update(sha256="0" * 64), {}),
        ("groups: manifest.json names no data file", lambda raw: raw.update(groups=None), {}),
    ],
)
def test_what_does_not_hold_is_found(table: pa.Table, tmp_path: Path, words: str, change: Any, files: Any) -> None:
    published(table, out=tmp_path / "r", privacy=dn.Privacy(rho2="1/3"))
    spoil(tmp_path / "r", lambda raw: None)
    assert dn.verify(tmp_path / "r").holds
    spoil(tmp_path / "r", change, **files)
    with pytest.raises(VerificationError, match=words):
        dn.verify(tmp_path / "r")


def by_hand(release: dn.Release, holds: Any, values: set[str]) -> float:
    """Box by box, position by position: ages one by one, everything else as published."""
    counts: dict[int, int] = {}
    for cell, value in zip(*(release.table[name].to_pylist() for name in ("cell", "disease")), strict=True):
        counts[cell] = counts.get(cell, 0) + (value in values)
    total = 0.0
    for box in release.groups.to_pylist():
        sexes = box["sex values"]
        ages = [] if box["age low"] is None else range(box["age low"], box["age high"] + 1)
        missing = box["age missing"] / box["rows"]
        share = sum(
            ((1 - missing) * np.mean([holds(sex, age) for age in ages]) if ages else 0) + missing * holds(sex, None)
            for sex in sexes
        ) / len(sexes)
        total += share * counts[box["cell"]]
    return total


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ({}, lambda sex, age: True),
        ({"sex": "F"}, lambda sex, age: sex == "F"),
        ({"sex": None}, lambda sex, age: sex is None),
        ({"sex": dn.not_("F")}, lambda sex, age: sex != "F"),
        ({"age": dn.between(30, 41)}, lambda sex, age: age is not None and 30 <= age <= 41),
        (
            {"age": dn.between(30.5, 41), "sex": ["F", "M"]},
            lambda s, a: a is not None and 31 <= a <= 41 and s is not None,
        ),
        ({"age": [20, 21, 55, 21]}, lambda sex, age: age in (20, 21, 55)),
        ({"age": [20, None]}, lambda sex, age: age in (20, None)),
        ({"age": dn.not_(20)}, lambda sex, age: age != 20),
        ({"age": None}, lambda sex, age: age is None),
    ],
)
def test_counts_take_the_share_of_each_box(table: pa.Table, where: dict[str, Any], holds: Any) -> None:
    release = published(table.select(["sex", "age", "disease"]))
    estimate = release.count({**where, "disease": ["a", "b"]})
    assert estimate.value == pytest.approx(by_hand(release, holds, {"a", "b"}))
    assert estimate.low <= estimate.value <= estimate.high
    assert release.count().value == N
    assert release.count().stderr == 0


def test_dates_and_real_numbers_are_asked_by_their_distance(table: pa.Table) -> None:
    release = published(table)
    born = table["born"].to_pylist()
    truth = sum(datetime.date(1955, 1, 1) <= day <= datetime.date(1964, 12, 31) for day in born)
    as_text = release.count({"born": dn.between("1955-01-01", "1964-12-31")})
    assert as_text == release.count({"born": dn.between(datetime.date(1955, 1, 1), datetime.date(1964, 12, 31))})
    # Dates are uniform, so the assumption holds: about 1,200 rows; 5.5 deviations of a binomial are 150.
    assert abs(as_text.value - truth) < 150
    low, high = min(table["pay"].to_pylist()), max(table["pay"].to_pylist())
    assert release.count({"pay": dn.between(low, high)}).value == pytest.approx(N)
    halves = [release.count({"pay": dn.between(low, 900)}).value, release.count({"pay": dn.between(900, high)}).value]
    assert sum(halves) == pytest.approx(N)
    for single in (900.0, [low, 900.0], dn.not_(900.0), dn.between(900, 900)):  # answered "0 (95 %: 0 to 0)"
        with pytest.raises(dn.DeniableError, match="do not tell how many rows have exactly"):
            release.count({"pay": single})
    assert release.count({"pay": high + 1}).value == 0


def test_suppressed_rows_are_of_the_most_frequent_value_and_the_share_holds(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    table = pa.table({"x": rng.integers(0, 50, 400), "d": ["a"] * 200 + rng.choice(list("bcde"), 200).tolist()})
    release = published(table, sensitive="d", mechanism=Generalize(k=5, l=3), out=tmp_path / "r")
    assert release.table["d"].to_pylist().count("a") == 100
    assert release.manifest.rows == 300
    assert dn.verify(tmp_path / "r").holds
    again = published(table, sensitive="d", mechanism=Generalize(k=5, l=3))
    assert again.table.equals(release.table)


def test_several_sensitive_columns_and_missing_values(table: pa.Table) -> None:
    release = published(table, sensitive=["disease", "sex"], mechanism=Generalize(k=5, l=2))
    frame = table.to_pandas()
    estimate = release.count({"disease": "a", "sex": "F"})
    assert estimate.value == int(((frame["disease"] == "a") & (frame["sex"] == "F")).sum())
    assert estimate.stderr == 0


def test_questions_that_cannot_be_answered_are_refused(table: pa.Table) -> None:
    release = published(table)
    for ask in (lambda: release.sum("age"), lambda: release.group_by("sex"), lambda: release.sql("SELECT 1")):
        with pytest.raises(QuestionError, match="'generalize' answers count"):
            ask()
    with pytest.raises(QuestionError, match="count"):
        release.cube({"a": {"sex": "F"}})
    with pytest.raises(ColumnError, match=r"no column 'agee'.*age"):
        release.count({"agee": 3})
    with pytest.raises(QuestionError, match="not a value of column 'sex'"):
        release.count({"sex": "f"})
    with pytest.raises(QuestionError, match=r"on 'age': 'young' cannot be compared .* Fix: ask for values of"):
        release.count({"age": "young"})
    with pytest.raises(QuestionError, match="not a value of column 'disease'"):
        release.count({"disease": "z"})


@pytest.mark.parametrize("mechanism", ["generalize:k=5,l=2", "anatomy:l=2"])
def test_a_confidence_that_is_none_is_refused(table: pa.Table, mechanism: str) -> None:
    release = dn.publish(table, sensitive="disease", mechanism=mechanism, key=KEY)
    for confidence in (0, 1, 2):
        with pytest.raises(OptionError, match="confidence"):
            release.count(confidence=confidence)


def test_what_cannot_be_published_is_refused(table: pa.Table) -> None:
    with pytest.raises(ColumnError, match="needs a public column"):
        published(table.select(["disease"]))
    with pytest.raises(ColumnError, match="'cell'"):
        published(table.rename_columns(["cell", "age", "pay", "born", "disease"]))
    with pytest.raises(TableError, match="k = 10 is larger"):
        published(table.slice(0, 9), mechanism=Generalize(k=10, l=1))
    with pytest.raises(RequirementError, match="8 different values"):
        published(table, mechanism=Generalize(k=10, l=9))
    with pytest.raises(OptionError, match="'generalize' takes no"):
        published(table, row_id="born")


def test_values_of_suppressed_rows_only_are_on_no_axis() -> None:
    """The axes are those of the rows that are published: as if the others had never been there."""
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 2, 2, 3, 0, None, 4]), pa.array(["d", "x", "b", "a", "c"]))
    whole = pa.table({"age": [50, 18, 18, 90, 51, None, 20], "job": codes})
    kept = np.array([4, 1, 5, 2])
    made = axes_of_rows(LocalEngine().open(whole), whole.column_names, kept)
    plain = whole.take(kept).cast(pa.schema({"age": pa.int64(), "job": pa.string()}))
    for name, axis in axes_of_rows(LocalEngine().open(plain), plain.column_names, np.arange(4)).items():
        assert made[name].values.to_pylist() == axis.values.to_pylist()
        assert made[name].codes.tolist() == axis.codes.tolist()
        assert made[name].places.tolist() == axis.places.tolist()


def test_a_row_takes_few_bytes() -> None:
    """What NumPy holds at most while rows are grouped; with every code in 64 bits it was 192 bytes a row."""
    rows, rng = 100_000, np.random.default_rng(0)
    made = {"age": rng.integers(17, 91, rows), "score": rng.integers(0, 10**6, rows)}
    made |= {"sex": rng.choice(["F", "M"], rows), "job": rng.choice([f"job {i}" for i in range(16)], rows)}
    whole, values = LocalEngine().open(pa.table(made)), rng.integers(0, 50, rows).astype(np.uint8)
    tracemalloc.start()
    try:
        axes = axes_of_rows(whole, list(made), rng.permutation(rows))
        mondrian(list(axes.values()), values, 1_000, 6)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / rows < 140
