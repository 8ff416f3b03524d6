"""95 % intervals cover the truth 93 to 97 times in 100, over thousands of questions, in total and by size.

Keys are fixed, so the figures are too. `python benchmarks/coverage.py` prints the same for the real tables.
"""

import numpy as np
import pytest

import deniable as dn
from deniable.lab.made_up import census

RELEASES = 20
SIZES = ((50, 10**9), (50, 100), (100, 1000), (1000, 10**9))
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


def judged(releases, pool, **options):
    """How often counts over 50 are in their intervals, and below them, by size.

    An interval is cut at 0 and at the rows that are asked about, and of an estimate beyond these says what it says of
    them: no count within two standard errors of one is outside on that side. So how often intervals hold is measured
    where neither end is near; of all others, how often the truth is below them. Ends are whole numbers, and are moved
    out by a part of a jump where few weights decide: intervals hold a little more often for it.
    """
    _, wheres, actual, _ = pool
    asked, free, inside, below = actual.sum(axis=1, keepdims=True), [], [], []
    for release in releases:
        found = release.count_many(wheres, every_value=True, **options)
        plain = 2 * release.count_many(wheres, every_value=True, calibrate=options["calibrate"]).stderr
        free.append((actual > np.maximum(plain, 50)) & (asked - actual > plain))
        inside.append((found.low <= actual) & (actual <= found.high))
        below.append(actual < found.low)
    free, inside, below = map(np.array, (free, inside, below))
    sizes = {(low, high): (actual > low) & (actual <= high) for low, high in SIZES}
    held = {size: inside[free & where].mean() for size, where in sizes.items() if (free & where).sum() > 1000}
    return held, {size: below[:, where].mean() for size, where in sizes.items()}


@pytest.mark.parametrize("calibrate", [False, True])
def test_intervals_cover_as_often_as_they_say(releases, pool, calibrate):
    """20 releases, between which the rates have standard errors of .004 (in total) to .007 (a size)."""
    held, below = judged(releases, pool, calibrate=calibrate)
    assert list(held) == [SIZES[0], *SIZES[2:]]  # none from 50 to 100 is so far from 0
    assert 0.93 < held[SIZES[0]] < 0.97
    assert all(0.925 < rate < 0.975 for rate in held.values())
    assert all(0.0175 < rate < 0.036 for rate in below.values())


def test_calibrated_intervals_are_narrower(releases, pool):
    _, wheres, actual, _ = pool
    plain, tight = (releases[0].count_many(wheres, every_value=True, calibrate=c).stderr for c in (False, True))
    large = actual > 1000
    assert tight[large].mean() < 0.9 * plain[large].mean()


def test_shrunk_intervals_cover_too(releases, pool):
    inside, actual = coverage(releases, pool, method="shrunk"), pool[2]
    assert inside[:, actual > 50].mean() > 0.93


@pytest.mark.parametrize("calibrate", [False, True])
def test_the_test_notices_intervals_that_are_too_narrow(releases, pool, calibrate):
    """Power: intervals for 92.23 %, 10 % shorter, hold too rarely, and too often lie above counts of 50 to 100."""
    held, below = judged(releases, pool, calibrate=calibrate, confidence=0.9223)
    assert held[SIZES[0]] < 0.93
    assert below[SIZES[1]] > 0.036
