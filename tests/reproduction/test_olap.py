"""`deniable reproduce olap`: the parts on made-up tables, and Adult's figures where the table is there."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deniable.core.exact import joint_limit, joint_posterior
from deniable.estimation.model.tensor import Factor, Tensor
from deniable.planning.prediction import Spread
from reproduction import olap, olap_zipf
from reproduction.items import ADULT, data_table

FOLDER = Path(os.environ.get("DENIABLE_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_adult = pytest.mark.skipif(
    not (FOLDER / ADULT).exists(), reason=f"needs {ADULT}: set DENIABLE_DATA to the folder that holds it"
)


def test_drawing_bits_is_drawing_values_and_masses_five_per_cent_off_would_show() -> None:
    rng = np.random.default_rng(2)
    n, coin, b = 1_000_000, 0.5, olap.masses()[0]
    ages = rng.integers(17, 60, n)
    published = np.where(rng.random(n) < coin, ages, rng.integers(17, 91, n))
    seen, true = (olap_zipf.shares(((each >= 25) & (each <= 45))[:, None]) for each in (published, ages))
    off = [Tensor((Factor(coin, np.array([1 - m, m])),)).invert(seen)[1] - true[1] for m in (b, 1.05 * b)]
    assert abs(off[0]) < 0.005 < abs(off[1]), "five standard errors"


def test_inside_the_simplex_iteration_and_inversion_are_the_same_estimate() -> None:
    b = olap_zipf.half(100_000)[1]
    _, iterative, inverse = olap_zipf.l1_errors(olap_zipf.zipf_bits(100_000, 2), [b, b], 0.5, 5, "same")
    assert inverse.mean < 0.02
    assert iterative.mean == pytest.approx(inverse.mean, abs=1e-4)


@pytest.mark.parametrize("rows", [1_000, 10_000, 100_000])
def test_zipf_tables_are_the_paper_s(rows: int) -> None:
    share = olap_zipf.frequencies(rows)
    assert len(share) == rows // 10
    assert 4.9 < rows * share[-1] < 5.5
    assert olap_zipf.zipf_bits(rows, 4).mean() == pytest.approx(0.5, abs=0.06)


def test_the_error_of_one_count_is_what_the_binomial_says() -> None:
    n, coin, b = 100_000, 0.2, 0.5
    error, share = olap_zipf.count_errors(n, b, coin, 20_000)
    kept, other = coin + (1 - coin) * b, (1 - coin) * b
    variance = (share * kept * (1 - kept) + (1 - share) * other * (1 - other)) / n / coin**2
    assert error == pytest.approx(math.sqrt(2 * variance / math.pi), rel=0.04)


@pytest.mark.long
def test_zipf_errors_fall_like_the_root_of_n_and_flatten_with_columns() -> None:
    by_rows = olap_zipf.figure_10(12, sizes=(1_000, 10_000), k=3)
    assert by_rows.agrees, by_rows.rows
    by_columns = olap_zipf.figure_9(3, rows=300, columns=(1, 2, 3, 5, 6))
    assert by_columns.agrees, by_columns.rows
    assert olap_zipf.figures_11_12().agrees


def test_few_columns_do_not_count_as_flattening() -> None:
    assert not olap_zipf.figure_9(3, rows=30_000, columns=(1, 2, 3, 4)).agrees


@pytest.mark.parametrize(("rho1", "k"), [(0.5, 2), (0.2, 2), (0.5, 3), (0.1, 3)])
def test_the_coin_of_theorem_5_just_reaches_the_posterior(rho1: float, k: int) -> None:
    s = rho1 * 10**k  # the set believed at exactly rho1
    coin = olap.coin_without_breach(s, rho1, k)
    assert joint_limit([coin] * k, [0.1] * k, rho1, 0.95) == pytest.approx(s, rel=1e-6)
    assert joint_posterior(rho1, [coin] * k, [0.1] * k) == pytest.approx(0.95, abs=1e-6)
    assert joint_posterior(rho1, [1.05 * coin] * k, [0.1] * k) > 0.951


def test_relative_priors_of_small_integer_columns_do_not_overflow() -> None:
    rng = np.random.default_rng(3)
    ages, hours = rng.integers(17, 91, 5_000), rng.integers(1, 101, 5_000)
    table = pa.table({"age": pa.array(ages, pa.int8()), "hours_per_week": pa.array(hours, pa.int8())})
    tally, _ = np.histogramdd(np.stack([ages, hours], axis=1), bins=10, range=[(17, 90), (1, 100)])
    found = olap.largest_relative_prior(table, ["age", "hours_per_week"])
    assert found == pytest.approx(tally.max() / 5_000 * 100)


def test_trees_are_measured_on_the_test_rows_with_the_class_public_and_perturbed() -> None:
    pytest.importorskip("sklearn")
    from reproduction import olap_trees

    rng = np.random.default_rng(4)
    n = 8_000
    age, job = rng.integers(17, 91, n), rng.choice(["clerk", "nurse", "smith"], n)
    rich = ((age > 50) & (job == "clerk")) ^ (rng.random(n) < 0.05)
    split = np.where(np.arange(n) < 6_000, "train", "test")
    table = pa.table({"age": age, "job": job, "income": np.where(rich, ">50K", "<=50K"), "split": split})
    lines = [part.make() for part in olap_trees.tree_parts(table, 2, coins=(0.6,))]
    item = olap_trees.trees(table, lines, 2)
    assert item.verdict == "ours"
    assert [row[:2] for row in item.rows] == [("0.6", "public"), ("0.6", "perturbed")]
    assert "2,000 test rows" in item.about
    assert all(float(row[2].split()[0]) > 92 for row in item.rows), item.rows


def test_a_lead_counts_only_beyond_its_noise() -> None:
    pytest.importorskip("sklearn")
    from reproduction.olap_trees import beyond_noise

    assert beyond_noise(Spread(0.02, 0.01, 6), 1)
    assert not beyond_noise(Spread(0.02, 0.02, 6), 1)
    assert not beyond_noise(Spread(0.02, 0.01, 6), -1)
    assert not beyond_noise(Spread(0.02, 0.0, 1), 1), "one draw has no spread"


@needs_adult
def test_adult_s_figures() -> None:
    table = data_table(ADULT, FOLDER)
    train = table.filter(pc.equal(table["split"], "train"))
    bits = olap.satisfied(train)
    found = olap.measured(bits, 2)
    zero = {k: olap.independence(bits[:, :k]) for k in (1, 2, 3, 4)}
    assert olap.never_worse(found.values(), 1.01)
    assert all(line[1].mean < line[0].mean / 2 for (coin, _), line in found.items() if coin >= 0.3)
    two, three = (olap.against_coin(f"OLAP Figure {k + 2}", found, k, zero[k]) for k in (2, 3))
    assert "age, fnlwgt of Adult" in two.about
    assert "age, fnlwgt, hours_per_week of Adult" in three.about
    assert two.agrees
    assert not three.agrees, "an l1 distance of .13 to .17 at p = .3 is not low"
    assert len(olap.against_columns(found, zero).rows) == 36
    privacy = olap.coins_without_breach("OLAP Figure 13", train, 2)
    assert privacy.columns[-1] == "our largest: s = 8.96"
    assert not privacy.agrees, "the paper's coin does not hold for every rho1 above a half"
