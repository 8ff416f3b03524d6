"""An attacker, written apart from everything that plans: Bayes over published rows, the prior exactly as assumed.

For every mechanism and adversary that claims rho2, the attacker's belief in a protected value, averaged over all rows
that show the same thing, is how often the belief is right; it may not exceed rho2 beyond sampling error. When the coins
are raised by 5 %, it must.
"""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable import mechanisms
from deniable.core.channel import SCALE, Channel
from deniable.core.exact import posterior_other, posterior_same
from deniable.engines.local.kernel import Kernel
from deniable.engines.randomness import Keystream, Secret

N = 400_000
COUNTS = dict(zip("abcdefgh", (60_000, 56_000, 54_000, 52_000, 50_000, 48_000, 44_000, 36_000), strict=True))
RHO2 = 0.25
LIMIT = 6.0  # standard errors; with fewer than 200 comparisons a false alarm is less likely than 10^-6

CLAIMS = {
    "uniform": (mechanisms.Uniform(), dn.Privacy(rho2="1/4")),
    "uniform, any prior": (mechanisms.Uniform(), dn.Privacy(rho1="3/20", rho2="1/4", adversary="any-prior")),
    "small-domain": (mechanisms.SmallDomain(), dn.Privacy(rho2="1/4")),
    "fine-grain": (mechanisms.FineGrain(), dn.Privacy(rho2="1/4")),
    "identity": (mechanisms.Identity(), dn.Privacy(rho2="1/4")),
    "designed": (mechanisms.Designed(), dn.Privacy(rho2="1/4")),
}


@pytest.fixture(scope="module")
def original():
    values = np.repeat(list(COUNTS), list(COUNTS.values()))
    return np.random.default_rng(0).permutation(values)


def belief_over_limit(original, published, cells):
    """The largest excess, in standard errors, of "how often is it x among rows that show (cell, y)" over rho2."""
    worst = -np.inf
    for cell in np.unique(cells):
        for shown in np.unique(published[cells == cell]):
            rows = original[(cells == cell) & (published == shown)]
            for value in COUNTS:
                share, n = np.mean(rows == value), len(rows)
                if n >= 200:
                    worst = max(worst, (share - RHO2) / np.sqrt(RHO2 * (1 - RHO2) / n))
    return worst


@pytest.mark.parametrize("name", CLAIMS)
def test_the_attacker_is_never_surer_than_allowed(original, name):
    mechanism, privacy = CLAIMS[name]
    table = pa.table({"disease": original})
    release = dn.publish(table, sensitive="disease", privacy=privacy, mechanism=mechanism, key=bytes(32), shuffle=False)
    published = release.table["disease"].to_numpy(zero_copy_only=False)
    several = "cell" in release.table.column_names
    cells = release.table["cell"].to_numpy() if several else np.zeros(N, dtype=int)
    assert belief_over_limit(original, published, cells) < LIMIT


def raised(channel, factor):
    keep = np.minimum((channel.keep * factor).astype(np.int64), SCALE)
    return Channel(channel.values, keep, channel.replace)


@pytest.mark.parametrize("name", ["uniform", "fine-grain", "identity", "designed"])
def test_coins_raised_by_five_percent_are_caught_by_the_exact_posterior(name):
    """The attacker's belief, computed by enumeration: within the limit as planned, beyond it when coins are raised."""
    mechanism, privacy = CLAIMS[name]
    plan = dn.plan(COUNTS, privacy, mechanism=mechanism)
    (cell,) = plan.cells

    def surest(channel):
        return float(
            max(max(f(channel.keep, channel.replace, cell.rows.counts)) for f in (posterior_same, posterior_other))
        )

    assert surest(cell.channel) <= RHO2
    assert surest(cell.channel) > RHO2 * 0.97  # and nothing is wasted
    assert surest(raised(cell.channel, 1.05)) > RHO2


def test_the_row_counting_attacker_notices_raised_coins_too(original):
    """Power of the first test: the same counting, on rows that were perturbed with coins 5 % too high."""
    mechanism, privacy = CLAIMS["designed"]
    plan = dn.plan(COUNTS, privacy, mechanism=mechanism)
    (cell,) = plan.cells
    codes = np.searchsorted(list(COUNTS), original).astype(np.uint8)
    caught = []
    for key in range(8):  # eight times the rows: 5 % of a coin is little, and a standard error must be less
        stream = Keystream(Secret.from_key(bytes([key] * 32)), "attack")
        kernel = Kernel([raised(cell.channel, 1.05)], [np.arange(len(COUNTS))])
        caught.append(kernel.perturb(codes, stream.words(0, N)))
    published = np.array(list(COUNTS))[np.concatenate(caught)]
    assert belief_over_limit(np.tile(original, 8), published, np.zeros(8 * N, dtype=int)) > LIMIT
