"""95 % intervals cover the truth 93 to 97 times in 100, over thousands of questions, in total and by size.

Keys are fixed, so the figures are too. `python benchmarks/coverage.py` prints the same for the real tables.
"""

import numpy as np
import pytest

import deniable as dn
from deniable.lab.made_up import census

RELEASES = 5
PUBLIC = ["age", "gender", "education", "marital", "race", "workclass", "country"]


@pytest.fixture(scope="module")
def pool():
    """Conditions on one to three public columns of the demo table, and the true counts of every occupation."""
    table = census(60_000, seed=11)
    frame = table.to_pandas()
    occupations, truth = np.unique(frame["occupation"].to_numpy(dtype=object), return_inverse=True)
    random = np.random.default_rng(7)
    wheres, actual = [], []
    for _ in range(80):
        row = frame.iloc[int(random.integers(len(frame)))]
        where = {str(c): row[c] for c in random.choice(PUBLIC, random.integers(1, 4), replace=False)}
        mask = np.logical_and.reduce([(frame[c] == v).to_numpy() for c, v in where.items()])
        wheres.append({c: v.item() if hasattr(v, "item") else v for c, v in where.items()})
        actual.append(np.bincount(truth[mask], minlength=len(occupations)))
    return table, wheres, np.array(actual), list(occupations)


@pytest.fixture(scope="module")
def releases(pool):
    table = pool[0]
    options = {"sensitive": "occupation", "privacy": dn.Privacy("1/13", "1/4"), "shuffle": False}
    return [dn.publish(table, key=bytes([i]) * 32, **{"mechanism": "uniform", **options}) for i in range(RELEASES)]


def coverage(releases, pool, **options):
    _, wheres, actual, occupations = pool
    inside = []
    for release in releases:
        assert list(release.manifest.parts[0].domain) == occupations
        found = release.count_many(wheres, every_value=True, **options)
        inside.append((found.low <= actual) & (actual <= found.high))
    return np.array(inside)


@pytest.mark.parametrize("calibrate", [False, True])
def test_intervals_cover_as_often_as_they_say(releases, pool, calibrate):
    inside, actual = coverage(releases, pool, calibrate=calibrate), pool[2]
    large = actual > 50
    assert large.sum() * RELEASES > 2000
    assert 0.93 < inside[:, large].mean() < 0.97
    for low, high in ((50, 100), (100, 1000), (1000, 10**9)):
        decade = (actual > low) & (actual <= high)
        assert 0.925 < inside[:, decade].mean() < 0.975


def test_calibrated_intervals_are_narrower(releases, pool):
    _, wheres, actual, _ = pool
    plain, tight = (releases[0].count_many(wheres, every_value=True, calibrate=c).stderr for c in (False, True))
    large = actual > 1000
    assert tight[large].mean() < 0.9 * plain[large].mean()


def test_shrunk_intervals_cover_too(releases, pool):
    inside, actual = coverage(releases, pool, method="shrunk"), pool[2]
    assert inside[:, actual > 50].mean() > 0.93


def test_the_test_notices_intervals_that_are_too_narrow(releases, pool):
    """Power: intervals made for 90 % cover less than 93 %."""
    inside, actual = coverage(releases, pool, calibrate=False, confidence=0.9), pool[2]
    assert inside[:, actual > 50].mean() < 0.93
