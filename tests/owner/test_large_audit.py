"""A table that is too large to hold is audited in batches: the same counts, and samples that say what all rows do."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.owner import reading as beside
from deniable.owner import reading as looking
from deniable.owner import scenes
from deniable.owner.reading import Numbering
from deniable.planning.informed import classes_by_code, in_classes

ROWS = 30_000


def people() -> pa.Table:
    draw = np.random.default_rng(3)
    value = np.minimum(draw.geometric(0.25, ROWS), 8)
    return pa.table(
        {
            "age": pa.array(draw.integers(17, 91, ROWS), mask=draw.random(ROWS) < 0.01),
            "chapter": [f"c{one // 3}" for one in value],
            "ward": pa.array(np.array(["a", "b", "c"])[draw.integers(0, 3, ROWS)]).dictionary_encode(),
            "weight": np.where(draw.random(ROWS) < 0.01, np.nan, draw.normal(70, 9, ROWS).round(1)),
            "disease": pa.array([f"d{one}" for one in value], mask=draw.random(ROWS) < 0.02),
        }
    )


def make_small(monkeypatch: pytest.MonkeyPatch, held: int = 4_000) -> None:
    """Let this table be a large one."""
    for module in (beside, looking, scenes):
        monkeypatch.setattr(module, "HELD", held)
    monkeypatch.setattr(beside, "BATCH", 1_500)
    monkeypatch.setattr("deniable.tables.counting.HELD", 3_000)


MECHANISMS: dict[str, dict[str, Any]] = {
    "uniform": {"mechanism": "uniform", "privacy": dn.Privacy(rho2="1/2")},
    "exempt, in order": {
        "mechanism": "uniform",
        "privacy": dn.Privacy(rho2="1/2"),
        "missing": "exempt",
        "shuffle": False,
    },
    "small-domain": {"mechanism": "small-domain", "privacy": dn.Privacy("1/3", "3/5")},
    "lineup": {"mechanism": "lineup", "privacy": dn.Privacy(rho2="3/5")},
}


@pytest.mark.parametrize("how", MECHANISMS)
def test_counts_of_a_large_table_are_those_of_a_held_one(how: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    table = people()
    dn.publish(table, sensitive="disease", key=bytes(32), out=tmp_path / "release", **MECHANISMS[how])
    held = dn.audit(table, tmp_path / "release").to_dict()
    make_small(monkeypatch)
    large = dn.audit(table, tmp_path / "release").to_dict()
    for name in ("parts", "pairs", "rows", "findings", "dependence"):
        assert json.dumps(large[name], default=str) == json.dumps(held[name], default=str), name
    for one, other in zip(large["informed"], held["informed"], strict=True):
        people_attacked = min(one["people"], other["people"])
        assert abs(one["after"]["right"] - other["after"]["right"]) < 6 / np.sqrt(people_attacked)


def test_attacks_on_a_large_table_are_played_on_a_sample_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people()
    release = dn.publish(table, sensitive="disease", key=bytes(32), mechanism="uniform", privacy=dn.Privacy(rho2="1/2"))
    held = {
        attack.name + attack.note.partition(";")[0]: attack for attack in dn.audit(table, release, attacks=True).attacks
    }
    make_small(monkeypatch, 8_000)
    for attack in dn.audit(table, release, attacks=True).attacks:
        assert "of 30,000 people, drawn with all who share their public values" in attack.note
        assert attack.trials < 0.4 * ROWS
    large = {attack.name: attack for attack in dn.audit(table, release, attacks=True).attacks}
    for one in held.values():
        other = large[one.name]
        if one.name in ("linking", "homogeneity", "repeated publication"):
            assert abs(one.success - other.success) < 6 * np.sqrt(0.25 / other.trials)
    alone = next(one for one in held.values() if one.name == "linking").note.partition(" %")[0]
    assert abs(float(alone) - float(large["linking"].note.partition(" %")[0])) < 6 * 50 / np.sqrt(8_000)


def test_of_combinations_of_very_many_rows_some_rows_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people().select(["ward", "disease"])
    release = dn.publish(table, sensitive="disease", key=bytes(32), mechanism="uniform", privacy=dn.Privacy(rho2="1/2"))
    make_small(monkeypatch)
    monkeypatch.setattr(scenes, "LARGE", 1_000)
    linking = dn.audit(table, release, attacks=True).attacks[0]
    assert abs(linking.trials - 4_000) < 6 * np.sqrt(4_000)


def test_a_release_of_another_table_is_noticed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people()
    release = dn.publish(table, sensitive="disease", key=bytes(32), mechanism="uniform", privacy=dn.Privacy(rho2="1/2"))
    make_small(monkeypatch)
    rows = dn.audit(table.slice(0, ROWS - 7), release).rows
    assert rows is not None
    assert rows.foreign == 7


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string(), pa.date32()])
def test_values_are_numbered_as_one_dictionary_has_them(kind: pa.DataType) -> None:
    drawn = np.random.default_rng(1).integers(0, 300, 5_000)
    column = pa.array(drawn, mask=drawn % 17 == 0).cast(pa.int32()).cast(kind)
    if kind == pa.float64():
        column = pa.array([float("nan") if one is not None and one % 5 == 0 else one for one in column.to_pylist()])
    numbering = Numbering(kind)
    codes = np.concatenate([numbering.codes(column.slice(start, 700)) for start in range(0, len(column), 700)])
    assert np.array_equal(codes, column.dictionary_encode(null_encoding="encode").indices.to_numpy())


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_classes_by_code_are_the_classes_of_rows(missing: float) -> None:
    draw = np.random.default_rng(8)
    for rows in (1, 2, 37, 5_000):
        numbers = np.where(draw.random(rows) < missing, np.nan, draw.normal(size=rows).round(1))
        known, codes = np.unique(numbers, return_inverse=True)
        counts = np.bincount(codes, minlength=len(known))
        for given in (None, numbers):
            by_code = classes_by_code(counts, None if given is None else known, 20, 7)
            assert np.array_equal(by_code[codes], in_classes(codes, given, 20, 7))


def test_what_is_not_looked_at_in_a_large_table_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people().select(["age", "disease"])
    release = dn.publish(table, sensitive="disease", privacy="9/10", mechanism="uniform", key=bytes(32))
    assert "not looked at" not in _rows_together(table, release)
    monkeypatch.setattr("deniable.owner.joining.MOST_ROWS", 1_000)
    assert "it was not looked at here" in _rows_together(table, release)


def _rows_together(table: pa.Table, release: dn.Release) -> str:
    return " ".join(finding.detail for finding in dn.audit(table, release).findings if finding.what == "rows together")


def test_more_rows_than_32_bits_count_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people().select(["age", "disease"])
    release = dn.publish(table, sensitive="disease", privacy="9/10", mechanism="uniform", key=bytes(32))
    monkeypatch.setattr(beside, "MOST", ROWS - 1)
    with pytest.raises(dn.DeniableError, match=r"counts up to 29,999 rows, and this table has 30,000"):
        dn.audit(table, release)
