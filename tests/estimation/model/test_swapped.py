"""Swapped columns: what a row alone sees, what two rows share, and that stated errors are the real ones."""

import itertools
import math
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Replace
from deniable.estimation.aggregates import Computed, Count, summed
from deniable.estimation.answering import answer
from deniable.estimation.formula import Ratio
from deniable.estimation.model.swapped import Swapped, swapped_columns
from deniable.estimation.model.tensor import Factor
from deniable.estimation.question import Question
from deniable.estimation.sql.parsing import parse
from deniable.estimation.sql.scope import Scope
from deniable.mechanisms.retention import Retention

DRAWS = 1500
# A variance from 1500 draws is off by 5 sqrt(2/1500) = 18 % once in 10^6; one that is wrong by 40 % is always seen.
NOISE = 5 * math.sqrt(2 / DRAWS)


# -- the definition, all cases of a tiny table -------------------------------------------------------------------------


def cases(n, p):
    """Every way to publish n rows: its probability, and whose value each row shows."""
    for kept in itertools.product((True, False), repeat=n):
        moved = [i for i in range(n) if not kept[i]]
        chance = p ** (n - len(moved)) * (1 - p) ** len(moved) / math.factorial(len(moved))
        for order in itertools.permutations(moved):
            shown = list(range(n))
            for i, j in zip(moved, order, strict=True):
                shown[i] = j
            yield chance, shown


def moments(x, p):
    """The exact expectation of the published 0/1 column, and its covariance matrix."""
    mean, second = np.zeros(len(x)), np.zeros((len(x), len(x)))
    for chance, shown in cases(len(x), p):
        y = x[shown]
        mean += chance * y
        second += chance * np.outer(y, y)
    return mean, second - np.outer(mean, mean)


@pytest.mark.parametrize("p", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("ones", [1, 2, 3])
def test_a_row_alone_sees_a_coin_and_the_column_s_histogram(p, ones):
    n = 5
    x = np.array([1.0] * ones + [0.0] * (n - ones))
    mean, _ = moments(x, p)
    coin = p * (1 + (1 - p ** (n - 1)) / (n - 1))  # p, but for the chance to draw one's own value again
    assert np.allclose(mean, coin * x + (1 - coin) * ones / n)
    estimate = (mean - (1 - p) * ones / n) / p
    for some in itertools.product((0, 1), repeat=n):  # a condition on public columns
        assert abs((estimate - x) @ np.array(some)) <= n / (4 * (n - 1)) + 1e-9  # a quarter of a row, whatever n


@pytest.mark.parametrize("p", [0.05, 0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_two_rows_never_vary_together(p, n):
    for ones in range(1, n):
        _, joint = moments(np.array([1.0] * ones + [0.0] * (n - ones)), p)
        assert (joint[~np.eye(n, dtype=bool)] <= 1e-12).all()


@pytest.mark.parametrize("p", [0.3, 0.6])
def test_what_pairs_add_is_right_up_to_one_row_in_n(p):
    n, ones = 6, 3
    x = np.array([1.0] * ones + [0.0] * (n - ones))
    column = Swapped(0, Factor(p, np.array([0.5, 0.5])), n)
    _, joint = moments(x, p)
    for inside in (np.ones(n), np.array([1.0, 1, 0, 1, 0, 0]), np.array([0, 1.0, 1, 1, 1, 0])):
        exact = inside @ joint @ inside / p**2
        alone = inside @ np.diag(joint) / p**2
        cells = np.array([[[(inside * (1 - x)).sum(), (inside * x).sum()]]])
        added = column.of_condition(cells, np.array([[0.0, 1.0]]))[0]
        label = column.of_label(cells[:, 0], column.whole(cells[:, 0]))
        assert label[0, 1] == pytest.approx(added)
        assert added <= 0
        assert abs(alone + added - exact) < 2 / n * alone
    assert alone + added > 0
    everyone = np.array([[[n - ones, ones]]], float)
    alone = n * 0.25 * (1 - p**2) / p**2
    assert alone + column.of_condition(everyone, np.array([[0.0, 1.0]]))[0] == pytest.approx(0)


# -- through releases --------------------------------------------------------------------------------------------------

N = 240
MECHANISM = Retention(
    {
        "sex": Replace(coin=0.5, replacing="swapping"),
        "ill": Replace(coin=0.6, replacing="swapping"),
        "job": Replace(coin=0.7),
    }
)
QUESTIONS = {
    "public and swapped": "zip = 'x' AND sex = 'f'",
    "nearly all rows": "zip IN ('x', 'y') AND sex = 'f'",
    "two swapped": "sex = 'f' AND ill = 'yes'",
    "swapped and drawn": "sex = 'f' AND job = 'a'",
    "either but not both": "(zip = 'x' AND sex = 'f') OR (zip IN ('y', 'z') AND sex IN ('m', 'o'))",
    "swapped, either": "sex = 'f' OR ill = 'yes'",
}


def people():
    rng = np.random.default_rng(1)
    place = rng.choice(["x", "y", "z"], N, p=[0.5, 0.4, 0.1])
    sex = np.where((place == "x") & (rng.random(N) < 0.6), "f", rng.choice(["f", "m", "o"], N, p=[0.2, 0.6, 0.2]))
    ill = np.where((sex == "f") & (rng.random(N) < 0.5), "yes", rng.choice(["yes", "no"], N, p=[0.2, 0.8]))
    pay = np.where(place == "x", 30.0, -20.0) + rng.integers(0, 10, N)
    return pa.table({"zip": place, "pay": pay, "sex": sex, "ill": ill, "job": rng.choice(list("ab"), N)})


def published(table, number):
    return dn.publish(table, mechanism=MECHANISM, key=number.to_bytes(32, "big"), shuffle=False, threads=1)


@pytest.fixture(scope="module")
def release():
    return published(people(), 0)


@pytest.fixture(scope="module")
def releases():
    table = people()
    return [published(table, number) for number in range(DRAWS)]


@pytest.fixture(scope="module")
def answered(releases):
    """Each release's answers; every question is asked once."""
    return cache(lambda condition, value=None: _answered(releases, condition, value))


def _answered(releases, condition, value):
    """Each release's estimates and stated variances: of a count, or of the sum and mean of a column."""
    query = parse(f"SELECT COUNT(*) AS n FROM release WHERE {condition}", Scope.of(releases[0]))
    aggregates = (Count(),)
    if value is not None:
        total, present = summed(value, None)
        aggregates = (Computed(total), Computed(Ratio(total, present, (total,))))
    question = Question(query.where, aggregates=aggregates)
    answers = [answer(release, question).by_aggregate for release in releases]
    pairs = [[(one.value[0, 0], one.variance[0, 0]) for one in numbers.values()] for numbers in answers]
    return np.moveaxis(np.array(pairs), 0, -1)


def satisfying(condition):
    words = {"AND": "and", "OR": "or", " = ": " == ", "IN (": "in ("}
    for old, new in words.items():
        condition = condition.replace(old, new)
    return people().to_pandas().query(condition)


@pytest.mark.long
@pytest.mark.parametrize("question", QUESTIONS)
def test_stated_errors_are_the_real_ones(answered, question):
    ((value, variance),) = answered(QUESTIONS[question])
    true = len(satisfying(QUESTIONS[question]))
    assert abs(value.mean() - true) < 5 * value.std() / math.sqrt(DRAWS) + 0.5  # up to a quarter of a row per column
    assert abs(variance.mean() / value.var() - 1) < NOISE
    covered = np.abs(value - true) <= 1.96 * np.sqrt(variance)
    assert abs(covered.mean() - 0.95) < 5 * math.sqrt(0.95 * 0.05 / DRAWS) + 0.01  # counts of few rows are lumpy


@pytest.mark.long
def test_the_test_would_notice_errors_of_independent_rows(answered):
    """Power: what independent rows would vary is three times too much for a question about nearly all rows."""
    ((value, variance),) = answered(QUESTIONS["nearly all rows"])
    pairs = Swapped(0, Factor(0.5, np.array([0.5, 0.5])), N)
    alone = variance.mean() - pairs.of_condition(np.array([[[N * 0.45, N * 0.45]]]), np.array([[0.0, 1.0]]))[0]
    assert alone > 2 * value.var()


@pytest.mark.long
def test_sums_and_means_have_the_right_errors_too(answered):
    (total, variance), _ = answered("sex = 'f' AND job = 'a'", "pay")
    assert abs(variance.mean() / total.var() - 1) < NOISE
    _, (mean, variance) = answered("sex IN ('f', 'm')", "pay")
    assert abs(variance.mean() / mean.var() - 1) < NOISE + 0.05  # a ratio: Fieller's interval is a little wider
    # An exact count is no doubt about a mean: taken as that of independent rows, it would be 2.4 times too wide.
    _, (mean, variance) = answered("sex = 'o'", "pay")
    assert abs(variance.mean() / mean.var() - 1) < NOISE + 0.05


def test_groups_and_cubes_state_what_counts_state(release):
    grouped = release.group_by(["sex", "job"], {"zip": "x"}).to_pandas().set_index(["sex", "job"])
    one = release.count({"zip": "x", "sex": "f", "job": "a"})
    assert grouped.loc[("f", "a"), "value"] == pytest.approx(one.value)
    assert grouped.loc[("f", "a"), "stderr"] == pytest.approx(one.stderr)
    cells = release.cube({"sex": "f", "job": "a"}, {"zip": "x"}).to_pandas()
    row = cells[cells["sex"] & cells["job"]].iloc[0]
    assert row["stderr"] == pytest.approx(one.stderr)


def test_a_swapped_column_alone_is_exact(release):
    found = release.count({"sex": "f"})
    assert found.stderr < 1e-3
    assert found.low <= len(satisfying("sex = 'f'")) <= found.high


@pytest.mark.long
def test_one_swapped_column_of_which_some_rows_are_exempt():
    """500 draws: 32 % off is a false alarm of 1e-6; the variance of independent rows is 2.5 times too large."""
    rng = np.random.default_rng(5)
    place = rng.choice(["x", "y"], N, p=[0.7, 0.3])
    sex = pa.array(rng.choice(["f", "m"], N), mask=rng.random(N) < 0.2)
    table, swap = pa.table({"zip": place, "sex": sex}), Retention({"sex": Replace(coin=0.5, replacing="swapping")})
    inside = (place == "x") & np.array([value == "f" for value in sex.to_pylist()])
    for missing, slack in (("value", 0.0), ("exempt", 1.0)):  # exempt: the stated error may be larger, never smaller
        found = [
            dn.publish(
                table, mechanism=swap, key=i.to_bytes(32, "big"), shuffle=False, threads=1, missing=missing
            ).count({"zip": "x", "sex": "f"})
            for i in range(500)
        ]
        value, stated = np.array([one.value for one in found]), np.mean([one.stderr**2 for one in found])
        assert abs(value.mean() - inside.sum()) < 5 * value.std() / math.sqrt(500) + 0.25
        assert -0.32 < stated / value.var() - 1 < 0.32 + slack


def test_one_swapped_column_is_asked_about_in_every_way():
    swap = Retention({"sex": Replace(coin=0.5, replacing="swapping")})
    release = dn.publish(people().select(["zip", "pay", "sex"]), mechanism=swap, key=bytes(32))
    exact = [len(satisfying(f"sex = '{value}'")) for value in "fmo"]
    assert release.histogram()["value"].to_pylist() == pytest.approx(exact, abs=1e-3)
    where = {"zip": "x", "sex": "f"}
    one = release.count(where)
    assert release.cube({"sex": "f"}, {"zip": "x"})["value"].to_pylist()[1] == pytest.approx(one.value)
    by_zip = release.group_by("zip", {"sex": "f"}).to_pandas().set_index("zip")
    assert by_zip.loc["x", "stderr"] == pytest.approx(one.stderr)
    assert release.count(where, method="mle").value >= 0
    assert abs(release.sum("pay", where).value - satisfying("zip = 'x' AND sex = 'f'")["pay"].sum()) < 5 * 300
    assert release.count_many([where]).stderr == pytest.approx([one.stderr])


def test_a_joined_column_was_swapped_among_its_owner_s_rows():
    rng = np.random.default_rng(2)
    ids = pa.array(range(1000))
    swap = Retention({"sex": Replace(coin=0.5, replacing="swapping")})
    sex = pa.table({"id": ids, "sex": rng.choice(["f", "m"], 1000)})
    other = pa.table({"id": ids.slice(0, 100), "ill": rng.choice(["no", "yes"], 100)})
    left = dn.publish(sex, mechanism=swap, key=bytes(32))
    right = dn.publish(other, mechanism=Retention({"ill": Replace(coin=1.0)}), key=bytes(32))
    together = dn.join(left, right, on="id")
    assert swapped_columns(together.manifest) == {"sex": 1000}
    # 100 of 1000 rows: nine tenths of the variance of independent rows are left, not nothing
    independent = 100 * 0.25 * (1 - 0.5**2) / 0.5**2
    assert together.count({"sex": "f"}).stderr ** 2 == pytest.approx(0.9 * independent, rel=0.1)


# -- what publishes it -------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_engine_permutes_every_way_equally_often():
    """All 6 orders of three rows: 1200 draws, chi-square of 5 degrees; an order twice as frequent is always seen."""
    table = pa.table({"x": ["a", "b", "c"]})
    mechanism = Retention({"x": Replace(coin=0.05, replacing="swapping")})
    seen = dict.fromkeys(itertools.permutations("abc"), 0)
    for i in range(1200):
        release = dn.publish(table, mechanism=mechanism, key=i.to_bytes(32, "big"), shuffle=False, threads=1)
        seen[tuple(release.table["x"].to_pylist())] += 1
    expected = dict.fromkeys(seen, 0.0)
    for chance, shown in cases(3, 0.05):
        expected[tuple("abc"[j] for j in shown)] += 1200 * chance
    assert sum((seen[order] - expected[order]) ** 2 / expected[order] for order in seen) < 36.5  # chance 7.5e-7


def test_swapping_cannot_be_done_by_one_client():
    release = dn.publish(people(), mechanism=MECHANISM, key=bytes(32))
    row = {"zip": "x", "pay": 1.0, "sex": "f", "ill": "no", "job": "a"}
    with pytest.raises(dn.DeniableError, match=r"'sex'.*swapped.*whole table"):
        dn.respond(row, release)
