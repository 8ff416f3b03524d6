"""An audit of lists names public columns that give items away, and no random one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn

ITEMS = "abcdefgh"
PRIVACY = dn.Privacy("1/20", "3/4")


def people(seed: int, planted: str = "") -> pa.Table:
    draw = np.random.default_rng(seed)
    lists = [[item for place, item in enumerate(ITEMS) if draw.random() < 0.05 + 0.06 * place] for _ in range(4_000)]
    columns = {"sex": draw.choice(["F", "M"], 4_000), "age": draw.integers(18, 90, 4_000), "drugs": lists}
    for item in planted:
        columns[f"takes {item}"] = ["yes" if item in held else "no" for held in lists]
    return pa.table(columns)


def about_columns(table: pa.Table) -> list[str]:
    release = dn.publish(table, sensitive="drugs", mechanism="items", privacy=PRIVACY, key=bytes(32))
    findings = dn.audit(table, release).findings
    assert all(finding.grade == "serious" for finding in findings if finding.what == "public columns")
    return [finding.detail for finding in findings if finding.what == "public columns"]


def test_a_column_that_says_who_has_an_item_is_named() -> None:
    (detail,) = about_columns(people(1, "c"))
    assert detail.startswith("'takes c' gives 'drugs=c' away (each of its values has one sensitive value).")


def test_of_many_the_first_few_are_spelt_out() -> None:
    *spelt, rest = about_columns(people(1, "cdefg"))
    assert [detail[:18] for detail in spelt] == [f"'takes {item}' gives 'd" for item in "cde"]
    assert rest == "2 more items are given away like these."


@pytest.mark.parametrize("seed", range(3))
def test_random_columns_are_not(seed: int) -> None:
    assert about_columns(people(seed)) == []
