"""What could not be asked later is refused when publishing; what can be is answered, whatever its name."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.errors import ColumnError, OptionError, OutputError

N = 200
VALUES = pa.array(["a", "b", "c", "d"] * (N // 4))
RANGE = dn.mechanisms.Retention({"v": dn.Replace(coin=0.5, low=-5, high=5, step=0.01)})
MECHANISMS = {
    "uniform": {"mechanism": "uniform"},
    "lineup": {"mechanism": "lineup"},
    "range": {"mechanism": RANGE, "sensitive": None, "privacy": None},
}


class Named(pa.ExtensionType):
    """A type of others, as Arrow's own manual makes them: it cannot be looked up by a hash."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "tests.named")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def publish(columns: dict[str, pa.Array], out, **options):
    pq.write_table(pa.table(columns), out / "t.parquet")
    common = {"sensitive": "v", "privacy": dn.Privacy(rho2="9/10"), "mechanism": "uniform", "out": out / "r"}
    return dn.publish(str(out / "t.parquet"), **{**common, **options})


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


@pytest.mark.parametrize(
    "column",
    [
        pa.array([(1, 2, 3)] * N, pa.month_day_nano_interval()),
        pa.ExtensionArray.from_storage(Named(), pa.array(["x"] * N)),
    ],
    ids=["months and days", "extension without a hash"],
)
def test_columns_that_no_file_holds_are_refused(column: pa.Array) -> None:
    with pytest.raises(ColumnError, match="could not be asked"):
        dn.publish(pa.table({"p": column, "v": VALUES}), sensitive="v", mechanism="uniform", privacy="9/10")
    with pytest.raises(ColumnError, match="cannot be sensitive"):
        dn.publish(pa.table({"p": VALUES, "v": column}), sensitive="v", mechanism="uniform", privacy="9/10")


def test_public_dates_may_lie_outside_of_the_years_that_python_has(tmp_path) -> None:
    days = pa.array([-800_000, 0, 1, 5_000_000] * (N // 4), pa.int32()).cast(pa.date32())
    release = publish({"p": days, "v": VALUES}, tmp_path, shuffle=False)
    assert release.table["p"].combine_chunks().equals(days)
    with pytest.raises(OptionError, match=r"'p'.*before the year 0"):
        publish({"p": days, "v": VALUES}, tmp_path, format="csv", overwrite=True)
    assert dn.open_release(tmp_path / "r").manifest.data.format == "parquet"


def test_a_time_that_parquet_does_not_hold_is_refused_without_its_value(tmp_path) -> None:
    times = pa.array([0, 1, 2, 2**62] * (N // 4), pa.timestamp("s"))
    with pytest.raises(OutputError, match="cannot hold") as refused:
        dn.publish(
            pa.table({"p": times, "v": VALUES}),
            sensitive="v",
            mechanism="uniform",
            privacy=dn.Privacy("1/3", "1/2"),
            out=tmp_path / "r",
        )
    assert str(2**62) not in str(refused.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("width", [32, 64, 128, 256])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_decimals_of_any_width_may_be_public_and_sensitive(tmp_path, width: int, mechanism: str) -> None:
    kind = getattr(pa, f"decimal{width}")(7, 2)
    values = pa.array([Decimal("1.10"), Decimal("-2.00"), Decimal("0.01"), Decimal("0.00")] * (N // 4), kind)
    release = publish(
        {"p": values, "v": values.take(pa.array([row * 3 // 4 for row in range(N)]))},
        tmp_path,
        key=bytes(32),
        **MECHANISMS[mechanism],
    )
    assert sorted(release.table["p"].to_pylist()) == sorted(values.to_pylist())
    assert release.count({"p": Decimal("1.10")}).value == pytest.approx(N / 4)
    dn.verify(tmp_path / "r")
    estimate = release.count({"v": Decimal("1.10")})
    assert estimate.low <= N / 4 <= estimate.high


def test_dates_outside_of_the_calendar_are_refused(tmp_path) -> None:
    with pytest.raises(ColumnError, match="years 1 to 9999"):
        publish({"v": pa.array([0, 2**62] * (N // 2), pa.int64()).view("timestamp[us]")}, tmp_path)


def test_views_of_strings_are_strings(tmp_path) -> None:
    release = publish({"p": pa.array(["x", "y"] * (N // 2), pa.string_view()), "v": VALUES}, tmp_path)
    assert release.count({"p": "x"}).value == pytest.approx(N / 2)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_a_range_of_short_floats_holds_the_numbers_that_its_manifest_lists(tmp_path, kind) -> None:
    values = pa.array([0.1, 0.2, 0.3, 0.7] * (N // 4), kind)
    tenths = dn.mechanisms.Retention({"v": dn.Replace(coin=0.5, low=0, high=1, step=0.1)})
    whole = {"mechanism": tenths, "sensitive": None, "privacy": None, "key": bytes(32)}
    release = publish({"p": VALUES, "v": values}, tmp_path, **whole)
    assert release.table["v"].type == pa.float64()  # points are decimals, which shorter floats do not hold
    assert set(release.table["v"].to_pylist()) <= {number / 10 for number in range(11)}
    dn.verify(tmp_path / "r")
    estimate = release.count({"v": dn.between(0.05, 0.35)})
    assert estimate.low <= 3 * N / 4 <= estimate.high


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        (pa.array([2**53, 2**53 + 3] * (N // 2)), 2**53, 2**53 + 3, None),
        (pa.array([2**63 - 10, 2**63 - 1] * (N // 2), pa.uint64()), 2**63 - 10, 2**63 - 1, None),
        (pa.array([Decimal("0.10"), Decimal("9" * 25)] * (N // 2), pa.decimal128(30, 2)), 0, Decimal("9" * 25), None),
        (pa.array([1e17, 1e17 + 64] * (N // 2)), 1e17, 1e17 + 64, 1),
    ],
    ids=["int64", "uint64", "decimal", "double"],
)
def test_ranges_whose_points_answers_could_not_tell_apart_are_refused(tmp_path, values, low, high, step) -> None:
    wanted = dn.mechanisms.Retention({"v": dn.Replace(coin=0.5, low=low, high=high, step=step)})
    with pytest.raises(OptionError, match=r"'v'.* 53 bits"):
        publish({"p": VALUES, "v": values}, tmp_path, mechanism=wanted, sensitive=None, privacy=None)
