"""One weight a row: sums of weights are the counts, in the order of the table, whatever the mechanism."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable import mechanisms

N = 6000
PRIVACY = dn.Privacy(rho1="1/4", rho2="1/3")
MADE: dict[str, tuple[Any, Any]] = {
    "uniform": (mechanisms.Uniform(), PRIVACY),
    "small-domain": (mechanisms.SmallDomain(), PRIVACY),
    "fine-grain": (mechanisms.FineGrain(), dn.Privacy(per_value=dict.fromkeys("fghij", ("1/10", "1/4")))),
    "identity": (mechanisms.Identity(), PRIVACY),
    "designed": (mechanisms.Designed(), PRIVACY),
    "pram": (mechanisms.Pram(), None),
    "decoys": (mechanisms.Decoys(c=4), None),
    "retention": (
        mechanisms.Retention(
            {"disease": dn.Replace(coin=0.6), "age": dn.Replace(coin=0.5, low=18, high=89), "sex": dn.Replace(coin=0.9)}
        ),
        None,
    ),
    "retention, swapped": (
        mechanisms.Retention({"disease": dn.Replace(coin=0.5, replacing="swapping")}),
        None,
    ),
}
WHERES: list[dict[str, Any] | None] = [
    None,
    {"disease": "a"},
    {"sex": "F", "disease": ["a", "c"]},
    {"sex": "M", "age": dn.between(30, 50)},
    {"disease": dn.not_("b"), "age": dn.between(18, 60)},
]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    disease = rng.choice(list("abcdefghij"), N, p=np.arange(10, 0, -1) / 55)
    sex = np.where(rng.random(N) < np.where(disease < "d", 0.7, 0.4), "F", "M")
    return pa.table({"sex": sex, "age": rng.integers(18, 90, N), "disease": disease})


def publish(table: pa.Table, mechanism: Any, privacy: Any, **options: Any) -> dn.Release:
    sensitive = {} if mechanism.name == "retention" else {"sensitive": "disease"}
    return dn.publish(table, **sensitive, privacy=privacy, mechanism=mechanism, key=bytes(32), **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", WHERES, ids=str)
@pytest.mark.parametrize("name", MADE)
def test_they_add_up_to_the_count_and_its_variance(table: pa.Table, name: str, where: dict[str, Any] | None) -> None:
    release = publish(table, *MADE[name])
    weights = release.weights(where)
    calibrate = None if release.manifest.mechanism == "retention" else False
    count = release.count(where, calibrate=calibrate)
    assert len(weights) == release.table.num_rows
    assert weights.sum() == pytest.approx(count.value, rel=1e-9, abs=1e-6)
    spread = float((weights**2 - weights).sum())
    if name == "retention, swapped" and where is not None and "disease" in where:
        assert spread > count.variance  # rows that swap with each other err in opposite directions
    elif name != "retention, swapped":
        assert spread == pytest.approx(count.variance, rel=1e-6, abs=1e-6)


def test_a_weight_belongs_to_its_row(table: pa.Table) -> None:
    release = publish(table, *MADE["small-domain"])
    weights = release.weights({"sex": "F", "disease": "a"})
    sex = release.table["sex"].to_numpy(zero_copy_only=False)
    assert (weights[sex == "M"] == 0).all()
    by_group = release.group_by("sex", where={"disease": "a"}, calibrate=False).to_pydict()
    every = release.weights({"disease": "a"})
    for value, expected in zip(by_group["sex"], by_group["value"], strict=True):
        assert every[sex == value].sum() == pytest.approx(expected)


def test_decoys_of_several_columns_have_weights_too(table: pa.Table) -> None:
    town = np.random.default_rng(1).choice(list("uvwxyz"), N)
    release = dn.publish(
        table.append_column("town", pa.array(town)),
        sensitive=["disease", "town"],
        mechanism=mechanisms.Decoys(c=4),
        key=bytes(32),
    )
    where = {"disease": ["a", "b"], "town": "u", "sex": "F"}
    count = release.count(where, calibrate=False)
    weights = release.weights(where)
    assert weights.sum() == pytest.approx(count.value)
    assert float((weights**2 - weights).sum()) == pytest.approx(count.variance)


def test_missing_values_that_are_exempt_weigh_nothing_or_one(table: pa.Table) -> None:
    disease = np.where(np.arange(N) % 10 == 0, None, table["disease"].to_numpy(zero_copy_only=False))
    holed = table.set_column(2, "disease", pa.array(disease.tolist()))
    release = publish(holed, mechanisms.Uniform(), PRIVACY, missing="exempt")
    gone = release.table["disease"].is_null().to_numpy()
    assert (release.weights({"disease": "a"})[gone] == 0).all()
    assert (release.weights({"disease": None}) == gone).all()


def test_the_order_is_that_of_the_saved_table(table: pa.Table, tmp_path: Path) -> None:
    release = publish(table, *MADE["designed"])
    where = {"sex": "F", "disease": "a"}
    release.save(tmp_path / "parquet")
    release.save(tmp_path / "csv", format="csv")
    for form in ("parquet", "csv"):
        assert np.array_equal(dn.open_release(tmp_path / form).weights(where), release.weights(where))


def test_without_an_inverse_there_are_no_weights(table: pa.Table) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = publish(table, mechanisms.Redraw(), None)
    with pytest.raises(dn.DeniableError, match="Fix:"):
        release.weights({"disease": "a"})
