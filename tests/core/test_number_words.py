"""Numbers in sentences, as one says them."""

from __future__ import annotations

import pyarrow as pa

import deniable as dn
from deniable.core.errors import counted


def test_one_thing_is_not_several() -> None:
    assert counted(1, "draw") == "1 draw"
    assert counted(0, "draw") == "0 draws"
    assert counted(1, "degree of freedom") == "1 degree of freedom"
    assert counted(12_000, "degree of freedom") == "12,000 degrees of freedom"


def test_two_columns_are_both() -> None:
    table = pa.table({"a": ["x", "y"] * 100, "b": ["u", "v", "w", "x"] * 50, "c": ["k", "l"] * 100})
    for columns, number in ((("a", "b"), "Both perturbed columns"), (("a", "b", "c"), "All 3 perturbed columns")):
        mechanism = dn.mechanisms.Retention({name: dn.Replace(coin=0.5) for name in columns})
        release = dn.publish(table, mechanism=mechanism)
        assert any(line.startswith(f"{number} together: ") for line in release.manifest.guarantee["also"])


def test_a_table_of_one_row_has_one_row() -> None:
    assert "1 of 1 row (100 %)" in str(dn.risk(pa.table({"a": ["x"]}), "a"))
