"""What a release lets others believe about values and ranges that are asked about."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Replace
from deniable.mechanisms.retention import Retention

KEY = bytes(range(32))


def release(missing="value"):
    rng = np.random.default_rng(0)
    n = 500
    table = pa.table(
        {
            "zip": rng.choice(list("xyz"), n),
            "age": pa.array(rng.integers(0, 10, n), mask=rng.random(n) < 0.1),
            "job": rng.choice(list("abcd"), n),
            "ill": rng.choice(["no", "yes"], n),
        }
    )
    columns = {
        "age": Replace(coin=0.6, low=0, high=9),
        "job": Replace(coin=0.3),
        "ill": Replace(coin=0.5, replacing="swapping"),
    }
    return dn.publish(table, mechanism=Retention(columns), key=KEY, missing=missing)


def after(prior, sets, coins):
    """Pr[X in S | Y in S] for a joint prior over uniform columns, by enumeration."""
    seen = prior
    for axis, (inside, coin) in enumerate(zip(sets, coins, strict=True)):
        m = len(inside)
        channel = coin * np.eye(m) + (1 - coin) / m
        lands = channel[np.array(inside, bool)].sum(0)  # Pr[Y in S | X = x]
        seen = seen * lands.reshape([-1 if a == axis else 1 for a in range(prior.ndim)])
    inside = np.ix_(*[np.flatnonzero(each) for each in sets])
    return seen[inside].sum() / seen.sum()


def test_no_prior_exceeds_the_posterior_and_one_reaches_it():
    found = dn.breach(release("exempt"), {"age": dn.between(2, 4), "job": ["a", "b"]}, rho1="1/5")
    assert found.masses == pytest.approx((0.3, 0.5))
    sets = [np.isin(np.arange(10), [2, 3, 4]), np.isin(np.arange(4), [0, 1])]
    rng = np.random.default_rng(1)
    for _ in range(300):
        prior = rng.dirichlet(np.full(40, 0.2)).reshape(10, 4)
        inside = np.ix_(*[np.flatnonzero(each) for each in sets])
        share = prior[inside].sum()
        weighted = prior * 0.8 / (1 - share)
        weighted[inside] = prior[inside] * 0.2 / share
        assert after(weighted, sets, (0.6, 0.3)) <= found.posterior + 1e-9
    worst = np.zeros((10, 4))
    worst[2, 0], worst[9, 3] = 0.2, 0.8  # whoever is not in S is outside of both sets
    assert after(worst, sets, (0.6, 0.3)) == pytest.approx(found.posterior, abs=1e-6)
    assert after(worst, sets, (0.63, 0.3)) > found.posterior + 0.01  # a coin 5 % larger would be seen


def test_whoever_sees_which_value_of_a_set_is_shown_is_no_surer_than_said():
    """A belief may lie on one value of the set, which the row then shows: Pr[X in S | y] for every y."""
    asked = dn.breach(release("exempt"), {"age": dn.between(2, 4), "job": ["a", "b"]}, rho1="1/5", rho2="4/5")
    ages, jobs = (coin * np.eye(m) + (1 - coin) / m for coin, m in ((0.6, 10), (0.3, 4)))
    inside = np.outer(np.isin(np.arange(10), [2, 3, 4]), np.isin(np.arange(4), [0, 1]))
    rng = np.random.default_rng(1)
    priors = [np.zeros((10, 4)), *(rng.dirichlet(np.full(40, 0.1)).reshape(10, 4) for _ in range(200))]
    priors[0][2, 0], priors[0][9, 3] = 0.2, 0.8
    surest = []
    for prior in priors:
        share = prior[inside].sum()
        belief = np.where(inside, prior * 0.2 / share, prior * 0.8 / (1 - share))
        shown = np.einsum("ax,by,xy->abxy", ages, jobs, belief)
        surest.append((shown[..., inside].sum(-1) / shown.sum((-1, -2))).max())
    assert max(surest) <= asked.seen + 1e-9
    assert surest[0] == pytest.approx(asked.seen, abs=1e-6)
    assert asked.posterior < asked.rho2 < asked.seen
    assert not asked.holds


def test_what_is_covered_is_where_rho2_is_reached():
    found = dn.breach(release(), {"job": "a"}, rho1="1/10", rho2="1/2")
    assert found.masses == pytest.approx((0.25,))
    edge = dn.breach(release(), {"job": "a"}, rho1=found.covered, rho2=Fraction(999, 1000))
    assert edge.posterior == pytest.approx(0.5)
    assert found.holds == (found.covered > 0.1)
    assert found.limit == pytest.approx(0.5 * 0.9 * 0.7 / (0.5 * (0.7 * 0.25 + 0.3)), rel=1e-6)


def test_missing_is_a_value_where_it_is_one():
    assert dn.breach(release(), {"age": None}).masses == pytest.approx((1 / 11,))
    with pytest.raises(dn.DeniableError, match="exempt"):
        dn.breach(release("exempt"), {"age": None})


def test_it_is_said_in_words():
    said = str(dn.breach(release().manifest, {"age": 3, "ill": "yes"}))
    for piece in ("Believed at 10 %", "'age' (coin 60 %", "however these columns", "'ill' is swapped", "Theorem 5"):
        assert piece in said


@pytest.mark.parametrize("n", [2, 4])
def test_a_swapped_value_comes_back_more_often_among_few_rows(n):
    """Every coin and permutation of n rows, half of which hold "yes": how often one that shows "yes" holds it."""
    jobs = ["yes", "no"] * (n // 2)
    yes = range(0, n, 2)
    few = dn.publish(
        pa.table({"ill": jobs}), mechanism=Retention({"ill": Replace(coin=0.5, replacing="swapping")}), key=KEY
    )
    shows = Fraction(0)
    for kept in itertools.product([True, False], repeat=n):
        moved = [row for row in range(n) if not kept[row]]
        drawn = [dict(zip(moved, order, strict=True)).get(0, 0) for order in itertools.permutations(moved)]
        shows += Fraction(sum(row in yes for row in drawn), len(drawn) * 2**n)
    about = dn.breach(few, {"ill": "yes"}, rho1="1/2")
    assert about.posterior == pytest.approx(float(shows), abs=1e-6)  # half hold it, so Pr[holds | shows] is the same


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"zip": "x"}, "'zip' is public"),
        ({"jobs": "a"}, "Did you mean 'job'"),
        ({}, "names no column"),
        ({"job": list("abcd")}, "every value"),
        ({"age": dn.between(20, 30)}, "no value"),
        ({"job": "z"}, "not a value"),
    ],
)
def test_questions_that_make_no_sense_are_refused(where, words):
    with pytest.raises(dn.DeniableError, match=words):
        dn.breach(release(), where)


def test_beliefs_and_releases_that_do_not_fit_are_refused():
    with pytest.raises(dn.DeniableError, match="not below rho2"):
        dn.breach(release(), {"job": "a"}, rho1="1/2", rho2="1/3")
    with pytest.raises(dn.DeniableError, match="got str"):
        dn.breach("release", {"job": "a"})
    table = pa.table({"job": list("abcdefgh") * 60})
    decoys = dn.publish(table, sensitive="job", mechanism="decoys:c=4", key=KEY)
    with pytest.raises(dn.DeniableError, match="no coin"):
        dn.breach(decoys, {"job": "a"})
