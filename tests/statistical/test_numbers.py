"""Sums, averages, deviations and quantiles of perturbed numbers, and of public ones under perturbed conditions.

Each mechanism publishes a table of 24 towns 300 times: the towns share no row, so that errors are independent, 7,200 of
them. The mean of (error / stderr)^2 is 1 with a standard error of sqrt(2 / 7200) = 0.017, and five of them are 0.085:
standard errors that are off by 5 % in either direction fail. Sums have no bias: a tenth of a standard error fails.
Ratios of estimates from 500 rows have a little, below a quarter of one. Deviations are looked at as the variances that
their intervals are roots of. That of a public column has a standard error up to 6 % too wide, and is held to 8 %.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable import mechanisms

TOWNS, ROWS, RELEASES = 24, 12_000, 300
PRIVACY = dn.Privacy("1/4", "3/5")
MADE: dict[str, dict[str, Any]] = {
    "range": {"mechanism": mechanisms.Retention({"age": dn.Replace(coin=0.6, low=20, high=79)})},
    "uniform": {"sensitive": "age", "privacy": PRIVACY, "mechanism": "uniform"},
    "small-domain": {"sensitive": "age", "privacy": PRIVACY, "mechanism": "small-domain"},
    "line-ups": {"sensitive": "age", "privacy": PRIVACY, "mechanism": "lineup"},
}
QUESTION = (
    "SELECT town, SUM(age) AS s, AVG(age) AS a, STDDEV(age) AS d, AVG(pay) AS p, STDDEV(pay) AS v "
    "FROM release WHERE age >= 30 GROUP BY town ORDER BY town"
)
QUANTILES = "SELECT town, MEDIAN(pay) AS m, QUANTILE_CONT(age, 0.75) AS q FROM release WHERE age >= 30 GROUP BY town"


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(9)
    age = np.clip(np.round(rng.gamma(8, 6, ROWS) / 10) * 10, 20, 70).astype(int)
    return pa.table(
        {"town": np.arange(ROWS) % TOWNS, "age": age, "pay": np.round(rng.gamma(3, 900, ROWS) + 20 * age, 1)}
    )


def truth(table: pa.Table) -> dict[str, Any]:
    inside = table.to_pandas().query("age >= 30").groupby("town")
    age, pay = inside.age, inside.pay
    known = {"s": age.sum(), "a": age.mean(), "d": age.std(), "p": pay.mean(), "v": pay.std()}
    return {name: values.to_numpy() for name, values in known.items()}


def ends(answer: pa.Table, what: str) -> tuple[Any, Any, Any]:
    """An estimate and its interval."""
    value, low, high = (answer[name].to_numpy() for name in (what, f"{what}_low", f"{what}_high"))
    return value, low, high


def holds(off: Any, bias: float, what: str) -> bool:
    return abs(float(np.mean(off**2)) - 1) < (0.13 if what == "v" else 0.085) and abs(float(np.mean(off))) < bias


@pytest.mark.long
@pytest.mark.parametrize("name", MADE)
def test_errors_are_as_large_as_they_say(table: pa.Table, name: str) -> None:
    known, off = truth(table), {what: [] for what in truth(table)}
    for number in range(RELEASES):
        release = dn.publish(
            table, **{"mechanism": "uniform", **MADE[name]}, key=number.to_bytes(32, "big"), shuffle=False
        )
        answer = release.sql(QUESTION)
        for what, values in known.items():
            power = 2 if what in "dv" else 1
            value, low, high, true = (numbers**power for numbers in (*ends(answer, what), values))
            off[what].append((value - true) / ((high - low) / 2 / 1.959964))
    for what, parts in off.items():
        errors = np.concatenate(parts)
        bias = 5 / np.sqrt(len(errors)) if what == "s" else 0.25
        assert holds(errors, bias, what), (what, np.mean(errors**2), np.mean(errors))
        seen = 0.08 if what == "v" else 0.05
        assert not holds(errors / np.sqrt(np.mean(errors**2)) / (1 + seen), bias, what)
        assert not holds(errors / np.sqrt(np.mean(errors**2)) / (1 - seen), bias, what)
        assert not holds(errors + np.sign(np.mean(errors)) * (0.1 if what == "s" else 0.5), bias, what)


@pytest.mark.long
@pytest.mark.parametrize("name", MADE)
def test_quantiles_lie_in_their_intervals(table: pa.Table, name: str) -> None:
    """A continuous column in 95 of 100 (192 intervals); a coarse one at least as often."""
    inside = table.to_pandas().query("age >= 30").groupby("town")
    known = {"m": inside.pay.median().to_numpy(), "q": inside.age.quantile(0.75).to_numpy()}
    covered: dict[str, list[Any]] = {"m": [], "q": []}
    for number in range(8):
        release = dn.publish(
            table, **{"mechanism": "uniform", **MADE[name]}, key=number.to_bytes(32, "little"), shuffle=False
        )
        answer = release.sql(QUANTILES).sort_by("town")
        for what, values in known.items():
            low, high = (answer[f"{what}_{end}"].to_numpy() for end in ("low", "high"))
            covered[what].append((low <= values) & (values <= high))
            assert (low < high).any(), "an interval is not a point"
    assert 0.87 < np.mean(covered["m"]) < 0.995
    assert np.mean(covered["q"]) > 0.87


def test_a_sum_over_every_value_is_what_single_counts_add_up_to(table: pa.Table) -> None:
    """By hand: the sum is the counts by value times the values, calibrated or not."""
    for name in ("uniform", "small-domain", "line-ups"):
        release = dn.publish(table, **{"mechanism": "uniform", **MADE[name]}, key=bytes(32))
        counts = release.histogram({"town": 3}, calibrate=False).to_pandas()
        total = release.sum("age", {"town": 3}, calibrate=False)
        assert total.value == pytest.approx((counts.age * counts.value).sum())
        average = release.mean("age", {"town": 3}, calibrate=False)
        assert average.value == pytest.approx(total.value / 500)
        assert average.stderr == pytest.approx(total.stderr / 500)


def test_numbers_in_bins_are_known_to_their_bin(table: pa.Table) -> None:
    privacy = dn.Privacy("2/5", "7/10")
    binned = {"sensitive": "pay", "privacy": privacy, "mechanism": "uniform", "key": bytes(32)}
    release = dn.publish(table, **{"mechanism": "uniform", **binned}, bins={"pay": [0, 2000, 4000, 6000, 30_000]})
    average, truly = release.mean("pay"), float(np.mean(table["pay"].to_numpy()))
    assert average.low < truly < average.high
    widths = 2000 * release.share({"pay": "[6000, 30000]"}).value * 5 + 1000  # half of 2,000, or half of 24,000
    assert average.high - average.value == pytest.approx(widths, rel=0.2)
    again = release.sql("SELECT AVG(pay) AS a, SUM(pay) AS s FROM release").to_pylist()[0]
    assert (again["a"], again["a_low"]) == pytest.approx((average.value, average.low))
    assert again["s"] == pytest.approx(release.sum("pay").value)
    opened = dn.publish(table, **{"mechanism": "uniform", **binned}, bins={"pay": dn.Quantiles(4)})
    with pytest.raises(dn.DeniableError, match="open"):
        opened.mean("pay")
