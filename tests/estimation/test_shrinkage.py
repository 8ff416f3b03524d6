"""Shrunk estimates: smaller errors than the inverse, intervals that still cover, and never far from independence."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from deniable.core.channels import Channel


@pytest.fixture(scope="module")
def town_release(request):
    """40 values, 20 towns x 10 jobs, relative spread .5 around independence, gamma 3: a hard release."""
    rng = np.random.default_rng(21)
    n, m = 60_000, 40
    share = rng.dirichlet(np.full(m, 4.0))
    town, job = rng.integers(0, 20, n), rng.integers(0, 10, n)
    local = share * rng.gamma(8, 1 / 8, (20, m))[:, None, :] * rng.gamma(8, 1 / 8, (10, m))[None, :, :]
    edges = (local / local.sum(-1, keepdims=True)).cumsum(-1)
    truth = np.minimum((rng.random(n)[:, None] > edges[town, job]).sum(1), m - 1)
    return rng, pa.table({"town": town, "job": job}), truth


def test_what_is_drawn_towards_an_estimate_from_the_same_rows_is_as_uncertain_as_it(new_release):
    """Without a histogram independence is estimated from all rows: about all of them nothing is known better than by
    the inverse, and the more rows a question has, the more of its error is in both."""
    rng = np.random.default_rng(3)
    n, m = 1_500, 4
    truth = rng.choice(m, n, p=[0.4, 0.3, 0.2, 0.1])
    table = pa.table({"town": rng.choice(3, n, p=[0.9, 0.05, 0.05]), "job": rng.integers(0, 4, n)})
    domain = list(range(m))
    cells = [(Channel.uniform(domain, gamma=Fraction(4)), domain)]
    release = new_release(rng, table, truth, domain, cells, marginal=False)
    for value in domain:
        shrunk, inverse = (release.count({"disease": value}, method=method) for method in ("shrunk", "inverse"))
        assert shrunk.value == pytest.approx(inverse.value, rel=1e-3)
        assert shrunk.stderr >= inverse.stderr
        shrunk, inverse = (
            release.count({"disease": value, "town": 0}, method=method) for method in ("shrunk", "inverse")
        )
        assert shrunk.stderr >= 0.93 * inverse.stderr


@pytest.mark.parametrize("marginal", [True, False])
def test_shrunk_beats_the_inverse_and_covers(town_release, new_release, marginal):
    rng, table, truth = town_release
    domain = list(range(40))
    cells = [(Channel.uniform(domain, gamma=Fraction(3)), domain)]
    release = new_release(rng, table, truth, domain, cells, marginal=marginal)
    wheres = [{"town": t} for t in range(20)] + [{"job": j, "town": t} for j in range(10) for t in range(20)]
    town, job = (table[name].to_numpy() for name in ("town", "job"))
    actual = np.stack(
        [np.bincount(truth[(town == w["town"]) & (job == w.get("job", job))], minlength=40) for w in wheres]
    )
    shrunk = release.count_many(wheres, every_value=True, method="shrunk")
    inverse = release.count_many(wheres, every_value=True)
    independent = actual.sum(1, keepdims=True) * np.bincount(truth, minlength=40) / len(truth)
    errors = [np.sqrt(((x - actual) ** 2).mean()) for x in (shrunk.value, inverse.value, independent)]
    assert errors[0] < 0.6 * errors[1]
    if marginal:  # without it, the distribution itself has to be estimated from the perturbed rows
        assert errors[0] < 1.02 * errors[2]
    covered = ((shrunk.low <= actual) & (actual <= shrunk.high)).mean()
    assert covered > 0.93
    assert (shrunk.high - shrunk.low).mean() < 0.7 * (inverse.high - inverse.low).mean()
