"""An attacker, written apart from everything that plans: Bayes over published rows, the prior exactly at the bound.

For every mechanism and adversary that claims it, how often a value is right among all rows that show the same thing is
what the attacker believes after seeing it; it may not exceed rho2 beyond sampling error. When the coins are raised by
5 %, it must. The attacker of a claim "frequency" knows the table's distribution; the one of a claim "rho1" believes a
value at exactly its rho1 and gives the rest to the one value that makes it stand out most.

Power: with coins 5 % too high the posterior exceeds rho2 by 11 to 17 standard errors of the rows here, whatever the
claim. With fewer than 1,000 comparisons a false alarm at 6 is less likely than 10^-6.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable import mechanisms

N = 400_000
COUNTS = dict(zip("abcdefgh", (60_000, 56_000, 54_000, 52_000, 50_000, 48_000, 44_000, 36_000), strict=True))
SHARES = np.array(list(COUNTS.values())) / N
RHO2 = 0.5
FULL = 2**32
LIMIT = 6.0  # standard errors
RAISED = 1.05
TIMES = 4  # as many rows as the table has, for a standard error well below what 5 % of a coin does

ALL = dn.Privacy(rho2="1/2")
ANYONE = dn.Privacy(rho1="3/20", rho2="1/2", adversary="any-prior")
OWN = {value: (f"{15 + k}/100", f"{44 + 4 * k}/100") for k, value in enumerate(COUNTS)}
TOLERANCE = mechanisms.tolerance(dn.Histogram.of(COUNTS), 3)


class Claim(NamedTuple):
    mechanism: object
    privacy: dn.Privacy
    prior: str = "frequency"


CLAIMS = {
    "uniform": Claim(mechanisms.Uniform(), ALL),
    "uniform, any prior": Claim(mechanisms.Uniform(), ANYONE, "rho1"),
    "small-domain": Claim(mechanisms.SmallDomain(), ALL),
    "fine-grain": Claim(mechanisms.FineGrain(), ALL, "rho1"),
    "fine-grain, any prior": Claim(mechanisms.FineGrain(), ANYONE, "rho1"),
    "fine-grain, each its own": Claim(mechanisms.FineGrain(), dn.Privacy(per_value=OWN), "rho1"),
    "fine-grain, each its own, any prior": Claim(
        mechanisms.FineGrain(), dn.Privacy(per_value=OWN, adversary="any-prior"), "rho1"
    ),
    "fine-grain, tolerance": Claim(mechanisms.FineGrain(), TOLERANCE, "rho1"),
    "identity": Claim(mechanisms.Identity(), ALL),
    "designed": Claim(mechanisms.Designed(), ALL),
    "designed, tolerance": Claim(mechanisms.Designed(), TOLERANCE),
    "pram": Claim(mechanisms.Pram(), ALL),
    "decoys": Claim(mechanisms.Decoys(c=2), ALL),
}


@pytest.fixture(scope="module")
def original():
    return np.random.default_rng(0).permutation(np.repeat(np.arange(len(COUNTS)), list(COUNTS.values())))


def allowed(privacy, shares):
    """Each value's own limit; 1 where there is none. Nobody may become more than theta times as sure, if that is it."""
    if privacy.theta is not None:
        return np.minimum(float(privacy.theta) * shares, 1.0)
    if privacy.per_value:
        return np.array([float(privacy.per_value[value][1]) for value in COUNTS])
    return np.full(len(COUNTS), RHO2)


def excess(original, published, cells, limits):
    """The largest excess, in standard errors, of "how often is it x among rows that show (cell, y)" over x's limit."""
    m = len(COUNTS)
    views = cells.astype(np.int64) * m + published
    table = np.bincount(views * m + original, minlength=(int(views.max()) + 1) * m).reshape(-1, m)
    shown = table.sum(1)
    table, shown = table[shown >= 200], shown[shown >= 200, None]
    return float(((table / shown - limits) / np.sqrt(limits * (1 - limits) / shown + 1e-300)).max())


def perturbed(codes, channel, raised, rng):
    """The channel's integers, read as the manifest has them: below `keep` a value stays, else `replace` draws one."""
    keep = np.minimum((channel.keep * raised).astype(np.int64), FULL)
    stays = rng.integers(0, FULL, len(codes)) < keep[codes]
    drawn = np.searchsorted(np.cumsum(channel.replace), rng.integers(0, FULL, len(codes)), side="right")
    return np.where(stays, codes, drawn)


def attack_by_frequency(plan, original, raised, rng):
    """The table's own rows, dealt to the plan's cells at random and perturbed."""
    published, cells = np.empty(N, dtype=np.int64), np.empty(N, dtype=np.int64)
    for value in range(len(COUNTS)):
        rows = rng.permutation(np.flatnonzero(original == value))
        ends = np.cumsum([cell.rows.get(list(COUNTS)[value], 0) for cell in plan.cells])
        for number, some in enumerate(np.split(rows, ends[:-1])):
            cells[some] = number
    for number, cell in enumerate(plan.cells):
        inside = np.flatnonzero(cells == number)
        places = plan.positions(cell)
        local = np.searchsorted(places, original[inside])
        assert (np.diff(places) > 0).all()
        published[inside] = places[perturbed(local, cell.channel, raised, rng)]
    return published, cells if plan.cells_published else np.zeros(N, dtype=np.int64)


def attacks_at_rho1(plan, privacy, raised, rng):
    """For each value x: x at exactly its rho1, and all the rest one value, that with the largest coin of the others."""
    (cell,) = plan.cells
    channel, names = cell.channel, list(COUNTS)
    for x, name in enumerate(names):
        rho1 = float(SHARES[x])
        if privacy.theta is None and privacy.per_value:
            rho1 = float(privacy.per_value[name][0])
        elif privacy.adversary == "any-prior":
            rho1 = float(privacy.rho1)
        other = max((k for k in range(len(names)) if k != x), key=lambda k: channel.keep[k])
        rows = np.where(np.arange(TIMES * N) < round(rho1 * TIMES * N), x, other)
        yield x, rows, perturbed(rows, channel, raised, rng)


def strongest_attack(claim, original, raised, seed=1):
    plan = dn.plan(COUNTS, claim.privacy, mechanism=claim.mechanism)
    rng, limits = np.random.default_rng(seed), allowed(claim.privacy, SHARES)
    if claim.prior == "frequency":
        drawn = [attack_by_frequency(plan, original, raised, rng) for _ in range(TIMES)]
        published, cells = (np.concatenate(part) for part in zip(*drawn, strict=True))
        return excess(np.tile(original, TIMES), published, cells, limits)
    worst = -np.inf
    for x, rows, published in attacks_at_rho1(plan, claim.privacy, raised, rng):
        only_x = np.where(np.arange(len(COUNTS)) == x, limits, 1.0)
        worst = max(worst, excess(rows, published, np.zeros(len(rows)), only_x))
    return worst


@pytest.mark.parametrize("name", CLAIMS)
def test_the_attacker_of_a_release_is_never_surer_than_allowed(original, name):
    """The rows that `publish` makes, in their order, against the true ones."""
    mechanism, privacy, _ = CLAIMS[name]
    table = pa.table({"disease": np.array(list(COUNTS))[original]})
    declared = {"domain": list(COUNTS)} if privacy.adversary == "any-prior" else {}
    release = dn.publish(
        table, sensitive="disease", privacy=privacy, mechanism=mechanism, key=bytes(32), shuffle=False, **declared
    )
    published = np.searchsorted(list(COUNTS), release.table["disease"].to_numpy(zero_copy_only=False))
    several = "cell" in release.table.column_names
    cells = release.table["cell"].to_numpy() if several else np.zeros(N)
    assert excess(original, published, cells, allowed(privacy, SHARES)) < LIMIT


@pytest.mark.parametrize("name", CLAIMS)
def test_the_attacker_with_the_prior_at_the_bound_is_never_surer_than_allowed(original, name):
    assert strongest_attack(CLAIMS[name], original, 1.0) < LIMIT


@pytest.mark.parametrize("name", [name for name in CLAIMS if name != "decoys"])  # decoy groups have no coins
def test_the_attacker_notices_coins_that_are_five_per_cent_too_high(original, name):
    assert strongest_attack(CLAIMS[name], original, RAISED) > LIMIT


def test_the_attacker_notices_decoy_groups_that_are_too_small(original):
    """Groups of 2 where groups of 3 were promised."""
    plan = dn.plan(COUNTS, mechanism=mechanisms.Decoys(c=2))
    published, cells = attack_by_frequency(plan, original, 1.0, np.random.default_rng(1))
    assert excess(original, published, cells, np.full(len(COUNTS), 1 / 3)) > LIMIT
