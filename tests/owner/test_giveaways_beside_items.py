"""An audit of lists names public columns that give items away, and no random one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.owner.decision import Point

ITEMS = "abcdefgh"
PRIVACY = dn.Privacy("1/20", "3/4")


def people(seed: int, planted: str = "") -> pa.Table:
    draw = np.random.default_rng(seed)
    lists = [[item for place, item in enumerate(ITEMS) if draw.random() < 0.05 + 0.06 * place] for _ in range(4_000)]
    columns = {"sex": draw.choice(["F", "M"], 4_000), "age": draw.integers(18, 90, 4_000), "drugs": lists}
    for item in planted:
        columns[f"takes {item}"] = ["yes" if item in held else "no" for held in lists]
    return pa.table(columns)


def about_columns(table: pa.Table) -> list[Point]:
    release = dn.publish(table, sensitive="drugs", mechanism="items", privacy=PRIVACY, key=bytes(32))
    points = [point for point in dn.audit(table, release).decision.open if point.part == "values in public columns"]
    assert points == [point for point in release.decision.open if point.part == "values in public columns"]
    return points


def test_a_column_that_says_who_has_an_item_is_named() -> None:
    (point,) = about_columns(people(1, "c"))
    assert point.says.startswith("'takes c' tells ")
    assert (point.grade, point.fix) == ("never", (("drop", "takes c"),))


def test_of_many_the_worst_is_spelt_out_and_all_are_named() -> None:
    (point,) = about_columns(people(1, "cdefg"))
    assert set(point.columns) == {f"takes {item}" for item in "cdefg"}
    assert point.says.endswith("The same goes for 4 more of the sensitive columns.")


@pytest.mark.parametrize("seed", range(3))
def test_random_columns_are_not(seed: int) -> None:
    assert about_columns(people(seed)) == []
