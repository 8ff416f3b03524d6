"""Over 200 real releases the mean of the estimates is the truth, for every value, COUNT, SUM and AVG.

The whole path is tested: publish, then ask. A mean of 200 estimates has a standard error of stderr / sqrt(200); with
about 70 comparisons a threshold of 6.2 of these standard errors is crossed by chance less than once in 10^6 runs.
"""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Channel

RELEASES, N = 200, 24_000
LIMIT = 6.2
VALUES = list("abcdefgh")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    disease = rng.choice(VALUES, N, p=np.arange(8, 0, -1) / 36)
    sex = np.where(rng.random(N) < np.where(disease < "d", 0.7, 0.4), "F", "M")
    return pa.table({"sex": sex, "age": rng.integers(18, 90, N) + np.where(disease == "a", 5, 0), "disease": disease})


pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=["uniform", "small-domain", "designed"])
def releases(request, table):
    options = {"sensitive": "disease", "privacy": dn.Privacy("1/4", "1/2"), "mechanism": request.param, "threads": 1}
    return [dn.publish(table, key=i.to_bytes(32, "big"), **options) for i in range(RELEASES)]


def z_score(estimates, truth):
    values = np.array([estimate.value for estimate in estimates])
    return float((values.mean() - truth) / (values.std(ddof=1) / np.sqrt(len(values))))


@pytest.mark.parametrize("calibrate", [False, True])
def test_counts_are_unbiased_for_every_value_in_every_group(releases, table, calibrate):
    frame = table.to_pandas()
    wheres = [{"sex": sex, "disease": value} for value in VALUES for sex in "FM"]
    pools = [release.count_many(wheres, calibrate=calibrate) for release in releases]
    values, errors = (np.array([getattr(pool, what) for pool in pools]) for what in ("value", "stderr"))
    seen, claimed = values.std(0, ddof=1), np.sqrt((errors**2).mean(0))
    truth = [((frame.sex == where["sex"]) & (frame.disease == where["disease"])).sum() for where in wheres]
    assert (np.abs(values.mean(0) - truth) < LIMIT * seen / np.sqrt(RELEASES)).all()
    assert ((claimed / seen > 0.7) & (claimed / seen < 1.4)).all()  # 200 draws tell a spread to 5 %; six of these
    for place, where in enumerate(wheres):  # one by one they are the same
        one = releases[0].count(where, calibrate=calibrate)
        assert (one.value, one.stderr) == pytest.approx((values[0, place], errors[0, place]))


def test_sums_are_unbiased_and_averages_nearly(releases, table):
    frame = table.to_pandas()
    chosen = frame[frame.disease.isin(["a", "b"])]
    where = {"disease": ["a", "b"]}
    sums = [release.sum("age", where=where, calibrate=False) for release in releases]
    assert abs(z_score(sums, chosen.age.sum())) < LIMIT
    means = [release.mean("age", where=where, calibrate=False) for release in releases]
    assert abs(z_score(means, chosen.age.mean())) < LIMIT + 0.5  # a ratio: its bias is of a smaller order


def test_the_comparison_notices_coins_that_are_five_percent_off(table):
    """Power: reconstruct with coins 5 % too high and too low; the means must then miss the truth.

    Published counts are drawn by the release's own channel: what is tested is the comparison, not the engine.
    """
    release = dn.publish(
        table,
        sensitive="disease",
        privacy=dn.Privacy("1/4", "1/2"),
        marginals=False,
        key=bytes(32),
        mechanism="uniform",
    )
    channel = release.manifest.parts[0].channels[0]
    truth = np.array([count for _, count in sorted(Counter(table["disease"].to_pylist()).items())])
    rng, matrix = np.random.default_rng(1), channel.matrix()
    draws = 2 * RELEASES  # 5 % come to 7 standard errors of 200 releases, and to 10 of these
    observed = sum(rng.multinomial(rows, matrix[:, x], draws) for x, rows in enumerate(truth))

    def worst(factor):
        wrong = Channel.of(VALUES, channel.coins * factor)
        estimates = wrong.invert(observed)
        errors = estimates.mean(0) - truth
        return np.abs(errors / (estimates.std(0, ddof=1) / np.sqrt(draws))).max()

    assert worst(1.0) < LIMIT
    assert worst(1.05) > LIMIT
    assert worst(0.95) > LIMIT
