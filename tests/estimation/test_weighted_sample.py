"""Weighted estimates: worked numbers where nothing is perturbed, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import OptionError, QuestionError

ROWS = 400
TABLE = pa.table(
    {
        "w": [1.0, 2.0, 3.0, 4.0] * (ROWS // 4),
        "age": [20, 30, None, 50] * (ROWS // 4),
        "area": ["n", "n", "s", "s"] * (ROWS // 4),
        "house": [row // 8 for row in range(ROWS)],
        "ill": ["yes", "no", "yes", "no", "no", "yes", "no", "no"] * (ROWS // 8),
    }
)


def released(mechanism: str = "uniform", table: pa.Table = TABLE, rho2: str = "9/10") -> dn.Release:
    return dn.publish(table, sensitive="ill", privacy=rho2, mechanism=mechanism, key=bytes(32), marginals=False)


def test_public_conditions_have_no_error_of_the_randomization() -> None:
    survey = released().survey("w")
    north = survey.count({"area": "n"})
    assert north.value == pytest.approx(3 * ROWS / 4)
    assert north.randomization == pytest.approx(0, abs=1e-9)
    added = np.where(np.array(TABLE["area"].to_pylist()) == "n", TABLE["w"].to_numpy(), 0)
    assert north.sampling == pytest.approx(math.sqrt(ROWS * added.var(ddof=1)))
    mean = survey.mean("age")
    assert mean.value == pytest.approx((20 + 2 * 30 + 4 * 50) / 7)
    assert survey.sum("age", {"area": "n"}).value == pytest.approx((20 + 60) * ROWS / 4)
    assert survey.share({"area": "n"}).value == pytest.approx(0.3)


def test_weights_of_one_are_the_counts_of_the_release() -> None:
    table = TABLE.set_column(0, "w", pa.array([1.0] * ROWS))
    release = released(table=table)
    count, survey = release.count({"ill": "yes"}, calibrate=False), release.survey("w").count({"ill": "yes"})
    assert survey.value == pytest.approx(count.value)
    assert survey.randomization == pytest.approx(count.stderr)
    share, weighted = (
        release.share({"ill": "yes"}, {"area": "n"}),
        release.survey("w").share({"ill": "yes"}, {"area": "n"}),
    )
    assert weighted.value == pytest.approx(share.value)
    assert weighted.randomization == pytest.approx(share.stderr)
    asked = ("age", {"ill": "yes"})
    mean, weighted = release.mean(*asked, calibrate=False), release.survey("w").mean(*asked)
    assert weighted.value == pytest.approx(mean.value)
    assert weighted.randomization == pytest.approx(mean.stderr, rel=0.05)  # Fieller widens the other


def test_sql_adds_up_weights_with_the_error_of_the_randomization() -> None:
    release = released()
    survey = release.survey("w")
    row = release.sql(
        "SELECT SUM(w) FILTER (WHERE ill = 'yes') AS n, SUM(w) FILTER (WHERE ill = 'yes') / SUM(w) AS share, "
        "SUM(w * age) FILTER (WHERE ill = 'yes' AND age IS NOT NULL) / "
        "SUM(w) FILTER (WHERE ill = 'yes' AND age IS NOT NULL) AS mean FROM release",
        calibrate=False,
    ).to_pylist()[0]
    count, share = survey.count({"ill": "yes"}), survey.share({"ill": "yes"})
    assert row["n"] == pytest.approx(count.value)
    assert row["share"] == pytest.approx(share.value)
    assert row["mean"] == pytest.approx(survey.mean("age", {"ill": "yes"}).value)
    assert (row["n_high"] - row["n_low"]) / 2 == pytest.approx(1.96 * count.randomization, rel=0.02)
    assert (row["share_high"] - row["share_low"]) / 2 == pytest.approx(1.96 * share.randomization, rel=0.02)


def test_a_sensitive_number_is_averaged() -> None:
    numbers = pa.table({"w": [1.0, 3.0] * 300, "kids": [0, 1, 2, 3, 1, None] * 100})
    release = dn.publish(numbers, sensitive="kids", privacy="9/10", mechanism="uniform", key=bytes(32))
    survey = release.survey("w")
    assert survey.mean("kids").value == pytest.approx(
        (0 + 3 + 2 + 9 + 1) / (1 + 3 + 1 + 3 + 1), abs=6 * survey.mean("kids").stderr
    )
    assert survey.sum("kids").value == pytest.approx(1500, abs=6 * survey.sum("kids").stderr)
    assert survey.mean("kids").randomization > 0


def test_strata_and_clusters_are_the_formula() -> None:
    survey = released().survey("w", strata="area", clusters="house")
    count = survey.count()
    weights, area, house = (np.array(TABLE[name].to_pylist()) for name in ("w", "area", "house"))
    expected = 0.0
    for stratum in ("n", "s"):
        totals = [weights[(area == stratum) & (house == one)].sum() for one in range(ROWS // 8)]
        expected += len(totals) * np.var(totals, ddof=1)
    assert count.sampling == pytest.approx(math.sqrt(expected), abs=1e-6)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"weights": "ill"}, "sensitive"),
        ({"weights": "nothing"}, "nothing"),
        ({"weights": "area"}, "only numbers"),
        ({"weights": "age"}, "some rows have no weight"),
        ({"weights": "w", "strata": "ill"}, "strata and clusters are public"),
    ],
)
def test_what_is_no_design_is_refused(asked: dict[str, str], words: str) -> None:
    with pytest.raises((OptionError, QuestionError), match=words):
        released().survey(**asked)


def test_a_stratum_of_one_and_swapped_values_are_refused() -> None:
    lonely = TABLE.set_column(2, "area", pa.array(["a", *["b"] * (ROWS - 1)]))
    with pytest.raises(QuestionError, match="merge strata"):
        released(table=lonely).survey("w", strata="area").count()
    values = pa.array(["a", "b", "c", "d"] * (ROWS // 4))
    decoys = released("decoys:c=2", TABLE.set_column(4, "ill", values), "3/5")
    with pytest.raises(QuestionError, match="swapped among rows"):
        decoys.survey("w")
