"""What could not be asked later is refused when publishing; what can be is answered, whatever its name."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.errors import ColumnError

N = 200
VALUES = pa.array(["a", "b", "c", "d"] * (N // 4))


def publish(columns: dict[str, pa.Array], out, **options):
    pq.write_table(pa.table(columns), out / "t.parquet")
    privacy = dn.Privacy(rho2="9/10")
    return dn.publish(
        str(out / "t.parquet"), sensitive="v", privacy=privacy, out=out / "r", **{"mechanism": "uniform", **options}
    )


@pytest.mark.parametrize("name", ["sort key", "a.b", "x[0]", "group a", "rows", " "])
def test_a_column_may_have_any_name(tmp_path, name: str) -> None:
    release = publish({name: pa.array(["x", "y"] * (N // 2)), "v": VALUES}, tmp_path)
    answered = release.sql(f'SELECT "{name}", COUNT(*) AS n FROM release GROUP BY "{name}"')
    assert answered["n"].to_pylist() == pytest.approx([N / 2, N / 2])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([["x"]] * N),
        pa.array([{"x": 1}] * N),
        pa.array([[("k", 1)]] * N, pa.map_(pa.string(), pa.int64())),
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1] * N, pa.int8())),
    ],
    ids=["list", "struct", "map", "extension"],
)
def test_public_columns_that_cannot_be_compared_are_refused(tmp_path, column: pa.Array) -> None:
    with pytest.raises(ColumnError, match="could not be asked"):
        publish({"p": column, "v": VALUES}, tmp_path)
    assert publish({"p": column, "v": VALUES}, tmp_path, drop=["p"]).manifest.rows == N


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([0, 2**63], pa.uint64(), "2\\^63"),
        ([1.0, float("inf")], pa.float64(), "infinite"),
        ([datetime.timedelta(1), datetime.timedelta(2)], pa.duration("us"), "cannot be sensitive"),
    ],
    ids=["uint64", "inf", "duration"],
)
def test_sensitive_values_that_could_not_be_asked_are_refused(tmp_path, values, kind, message: str) -> None:
    with pytest.raises(ColumnError, match=message):
        publish({"v": pa.array(values * (N // 2), kind)}, tmp_path)


def test_dates_outside_of_the_calendar_are_refused(tmp_path) -> None:
    with pytest.raises(ColumnError, match="years 1 to 9999"):
        publish({"v": pa.array([0, 2**62] * (N // 2), pa.int64()).view("timestamp[us]")}, tmp_path)


def test_views_of_strings_are_strings(tmp_path) -> None:
    release = publish({"p": pa.array(["x", "y"] * (N // 2), pa.string_view()), "v": VALUES}, tmp_path)
    assert release.count({"p": "x"}).value == pytest.approx(N / 2)
