"""Warnings for the owner: identifiers among the public columns, and row orders that give values away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.tables.dataset import LocalEngine
from deniable.tables.inspection import OrderWatch, identifier_warnings


def watched(codes: np.ndarray, m: int, pieces: int = 1) -> OrderWatch:
    watch = OrderWatch(m)
    for part in np.array_split(codes, pieces):
        watch.update(part)
    return watch


def test_columns_of_different_strings_or_integers_look_like_identifiers():
    n = 200
    table = pa.table(
        {
            "id": range(n),
            "name": [f"p{i}" for i in range(n)],
            "coded": pa.array([f"p{i}" for i in range(n)]).dictionary_encode(),
            "height": np.linspace(1, 2, n),
            "town": ["a", "b"] * (n // 2),
        }
    )
    found = identifier_warnings(LocalEngine().open(table), table.schema.names)
    assert [warning.split("'")[1] for warning in found] == ["id", "name", "coded"]
    assert found[0].startswith("The column 'id' looks like an identifier: 100 % of its values are different.")
    assert "Fix: drop='id'" in found[0]
    assert not identifier_warnings(LocalEngine().open(table), ["town"])


@pytest.mark.parametrize(("distinct", "warned"), [(89, 0), (90, 1)])
def test_nine_tenths_different_is_the_limit(distinct, warned):
    table = pa.table({"a": [*range(distinct), *[0] * (100 - distinct)]})
    assert len(identifier_warnings(LocalEngine().open(table), ["a"])) == warned


def test_small_tables_and_empty_ones_raise_no_identifier_warning():
    assert not identifier_warnings(LocalEngine().open(pa.table({"a": range(49)})), ["a"])
    assert not identifier_warnings(LocalEngine().open(pa.table({"a": pa.array([], pa.int64())})), ["a"])


def test_a_sample_is_named_as_such():
    message = identifier_warnings(LocalEngine().open(pa.table({"a": range(500)})), ["a"], sample_rows=100)[0]
    assert "of the first 100 rows" in message


@pytest.mark.parametrize("m", [2, 10, 5000])
def test_a_random_order_raises_no_warning(m):
    codes = np.random.default_rng(m).integers(0, m, 5000)
    assert not watched(codes, m).warnings("disease")


def test_the_equality_score_is_standard_normal_under_random_order():
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1, 2], [300, 80, 20])
    scores = [watched(rng.permutation(codes), 3).z_equal for _ in range(2000)]
    # 6 standard errors: the mean has 1/sqrt(2000), the standard deviation 1/sqrt(4000).
    assert abs(np.mean(scores)) < 6 / np.sqrt(2000)
    assert abs(np.std(scores) - 1) < 6 / np.sqrt(4000)


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (np.sort(np.arange(600) % 3), "the rows are sorted by it"),
        (np.arange(600)[::-1], "the rows are sorted by it"),
        (np.tile([0, 0, 0, 1, 1, 1, 2, 2, 2], 60), "more often than by chance"),
        (np.arange(600) % 2, "less often than by chance"),
        (np.where(np.arange(600) % 10 == 9, 0, np.arange(600)), "mostly rise"),
    ],
)
def test_orders_that_give_values_away_are_named(codes, words):
    found = watched(codes, 600).warnings("disease")
    assert len(found) == 1
    assert found[0].startswith("The order of the rows predicts 'disease'")
    assert words in found[0]
    assert "Fix: shuffle the rows" in found[0]


def test_the_verdict_does_not_depend_on_batches():
    codes = np.random.default_rng(3).integers(0, 5, 1000).astype(np.uint8)
    whole, parts = watched(codes, 5), watched(codes, 5, pieces=37)
    assert (whole.z_equal, whole.z_steps) == (parts.z_equal, parts.z_steps)


def test_no_rows_and_one_row_are_no_order():
    assert not OrderWatch(3).warnings("a")
    assert not watched(np.array([1]), 3).warnings("a")
    assert not watched(np.zeros(500, np.uint8), 1).warnings("a")


@pytest.mark.parametrize("cuts", [[0, 500], [250], [1, 499], [100, 100, 400]])
def test_watches_of_parts_of_a_table_are_merged_into_that_of_the_whole(cuts):
    codes = np.sort(np.random.default_rng(3).integers(0, 4, 500))
    codes[200:] = codes[200:][::-1]
    whole, *parts = watched(codes, 4), *(watched(part, 4) for part in np.split(codes, cuts))
    merged = OrderWatch(4)
    for part in parts:
        merged.merge(part)
    assert vars(merged).keys() == vars(whole).keys()
    assert all(np.array_equal(vars(merged)[name], vars(whole)[name]) for name in vars(whole))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_a_document_in_place_of_a_value_is_refused_before_it_costs_memory(kind: pa.DataType) -> None:
    """A cell may come to stand in every row: one of 10 MB took 3.6 GB."""
    jobs = ["nurse", "clerk"] * 50
    notes = pa.array(["short"] * 99 + ["y" * 32_768]).cast(kind)
    asked: dict[str, Any] = {"sensitive": "job", "privacy": "2/3", "mechanism": "uniform"}
    with pytest.raises(dn.DeniableError, match=r"the column 'note'.* has 32,768 bytes, more than the 32,767"):
        dn.publish(pa.table({"job": jobs, "note": notes}), **asked)
    with pytest.raises(dn.DeniableError, match="row 100, has 32,768 bytes"):
        dn.publish(pa.table({"note": ["a", "b"] * 50, "job": ["x"] * 99 + ["y" * 32_768]}), **asked)
    release = dn.publish(pa.table({"job": jobs, "note": notes}), drop=["note"], **asked)
    assert release.table.column_names == ["job"]
    whole = pa.table({"job": jobs, "note": ["short"] * 99 + ["y" * 32_767]})
    assert dn.publish(whole, **asked).table.num_rows == 100
