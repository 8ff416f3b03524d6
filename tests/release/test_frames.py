"""A release as a frame of pandas or polars: types stay, and pandas carries the manifest."""

import datetime as dt
import sys

import pyarrow as pa
import pytest

import deniable as dn

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def release():
    table = pa.table(
        {
            "age": pa.array([30, None, 50] * 200, pa.int16()),
            "rooms": pa.array([1, 2, 3] * 200, pa.uint8()),
            "owns": [True, None, False] * 200,
            "since": [dt.date(2020, 1, 1), dt.date(2021, 2, 3), None] * 200,
            "town": pa.array(["A", "B", "B"] * 200).dictionary_encode(),
            "income": pa.array([1.5, 2.5, None] * 200),
            "size": pa.array([0, 1, 1] * 200, pa.int8()),
        }
    )
    return dn.publish(
        table, sensitive="size", mechanism="uniform", privacy=dn.Privacy(rho2="9/10"), key=bytes(32), shuffle=False
    )


def test_a_frame_of_pandas_keeps_types_and_carries_the_manifest(release):
    frame = release.to_pandas()
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == {
        "age": "Int16",
        "rooms": "uint8",
        "owns": "boolean",
        "since": "datetime64[ms]",
        "town": "category" if pa.types.is_dictionary(release.table["town"].type) else str(frame["town"].dtype),
        "income": "float64",
        "size": "int8",
    }
    assert frame["age"].isna().sum() == 200
    assert frame["age"].sum() == 30 * 200 + 50 * 200
    assert frame["town"].tolist() == ["A", "B", "B"] * 200
    assert frame.attrs["deniable"] == release.manifest.to_dict()


def test_a_frame_of_polars_keeps_types(release):
    frame = release.to_polars()
    assert frame.schema["age"] == pl.Int16
    assert frame.schema["since"] == pl.Date
    assert frame.equals(pl.from_arrow(release.table))


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_what_is_not_installed_is_named(release, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(dn.DeniableError, match=f"pip install {name}"):
        getattr(release, f"to_{name}")()
