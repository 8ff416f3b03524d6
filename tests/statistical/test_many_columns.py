"""One to four perturbed columns, published and asked as a user would: unbiased, right errors, intervals that cover.

1,000 releases under fixed keys. Five standard errors are a false alarm of 6e-7 each; a bias of 5 % of the count, errors
that are 25 % off and intervals made for 90 % are seen, which the tests assert of themselves where it is not evident.
"""

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Replace
from deniable.mechanisms.retention import Retention

pytestmark = pytest.mark.long
DRAWS = 1000
N = 2000
FIRST, LAST = datetime.date(2000, 1, 1), datetime.date(2019, 12, 31)
MECHANISM = Retention(
    {
        "job": Replace(coin=0.6),
        "age": Replace(coin=0.5, low=17, high=90),
        "born": Replace(coin=0.7, low=FIRST, high=LAST),
        "ill": Replace(coin=0.7, replacing="identity"),
    }
)
CONDITIONS = {
    "job": ["a", "b"],
    "age": dn.between(25, 70),
    "born": dn.between(FIRST, datetime.date(2013, 12, 31)),
    "ill": "no",
}
ORDERS = {"categories first": ["job", "age", "born", "ill"], "numbers first": ["age", "born", "ill", "job"]}


def people():
    rng = np.random.default_rng(3)
    age = np.clip(rng.normal(45, 16, N).astype(int), 17, 90)
    job = np.where(rng.random(N) < age / 100, "a", rng.choice(list("abcd"), N))
    ill = np.where(rng.random(N) < age / 300, "yes", "no")
    days = (rng.beta(2, 3, N) * (LAST - FIRST).days).astype(int)
    born = [FIRST + datetime.timedelta(int(day)) for day in days]
    return pa.table({"zip": rng.choice(list("xyz"), N), "job": job, "age": age, "born": born, "ill": ill})


def truth(where):
    inside = np.ones(N, bool)
    for name, condition in where.items():
        values = people()[name].to_pylist()
        if hasattr(condition, "low"):
            inside &= np.array([condition.low <= value <= condition.high for value in values])
        else:
            inside &= np.isin(values, condition)
    return int(inside.sum())


@pytest.fixture(scope="module")
def releases():
    table = people()
    return [
        dn.publish(table, mechanism=MECHANISM, key=i.to_bytes(32, "big"), shuffle=False, threads=1)
        for i in range(DRAWS)
    ]


def answered(releases, where):
    estimates = [release.count(where) for release in releases]
    return np.array([(estimate.value, estimate.variance) for estimate in estimates]).T


@pytest.mark.parametrize(("order", "public"), [("categories first", False), ("numbers first", True)])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_counts_are_unbiased_with_right_errors_and_intervals(releases, k, order, public):
    where = {name: CONDITIONS[name] for name in ORDERS[order][:k]} | ({"zip": ["x", "y"]} if public else {})
    value, variance = answered(releases, where)
    true = truth(where)
    spread = value.std() / math.sqrt(DRAWS)
    assert abs(value.mean() - true) < 5 * spread
    assert 5 * spread < 0.05 * true  # a bias of 5 % would be seen
    assert abs(variance.mean() / value.var() - 1) < 5 * math.sqrt(2 / DRAWS)
    covered = np.abs(value - true) <= 1.96 * np.sqrt(variance)
    assert abs(covered.mean() - 0.95) < 5 * math.sqrt(0.95 * 0.05 / DRAWS)
    narrow = np.abs(value - true) <= 1.645 * np.sqrt(variance)
    assert narrow.mean() < 0.95 - 2 * math.sqrt(0.95 * 0.05 / DRAWS)  # intervals for 90 % cover visibly less


def test_published_counts_as_they_are_would_be_noticed(releases):
    ages = [release.table["age"].to_numpy() for release in releases[:200]]
    naive = np.array([((age >= 25) & (age <= 70)).sum() for age in ages])
    assert abs(naive.mean() - truth({"age": CONDITIONS["age"]})) > 20 * naive.std() / math.sqrt(200)
