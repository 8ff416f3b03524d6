"""Line-ups attacked: an exact Bayesian reads every published row, and the promise holds against them."""

import hashlib
import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core import lineups as lineup_exact
from deniable.mechanisms import Lineup
from deniable.tables.lineups import states_of
from deniable_verify import verify_tables

VALUES = np.array(list("abcdefghijklmnop"))
SHARES = np.array([70, 70, 68, 66, 64, 62, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60]) / 1000


def published(n=4000, **options):
    disease = np.random.default_rng(1).choice(VALUES, n, p=SHARES / SHARES.sum())
    table, privacy = pa.table({"disease": disease}), dn.Privacy(rho2="1/5")
    release = dn.publish(
        table, sensitive="disease", privacy=privacy, mechanism=Lineup(**options), key=bytes(32), shuffle=False
    )
    return disease, release


def guesses(disease, states, design, counts):
    """The surest guess about every row: how sure it is, and whether it is right."""
    believed, right = np.zeros(len(states)), np.zeros(len(states), bool)
    for state in np.unique(states):
        posterior = lineup_exact.posterior(design, counts, int(state))
        assert max(posterior) <= Fraction(1, 5)
        guess = int(np.argmax([float(belief) for belief in posterior]))
        mine = states == state
        believed[mine], right[mine] = float(posterior[guess]), disease[mine] == VALUES[guess]
    return believed, right


@pytest.mark.parametrize("options", [{}, {"truth": 1}, {"size": 4, "truth": "1/2"}])
def test_the_bayesian_is_never_surer_than_promised_and_right_as_often_as_they_believe(options):
    """Their best guess is right with the probability that they give it: the rows are what the certificate says."""
    disease, release = published(300_000, **options)
    design = release.manifest.parts[0].lineups
    counts = np.array([(disease == value).sum() for value in VALUES])
    states = states_of(release.table["disease"], design, pa.array(VALUES))
    believed, right = guesses(disease, states, design, counts)
    limit = 5.2 * np.sqrt((believed * (1 - believed)).sum())  # once in five million
    assert abs(right.sum() - believed.sum()) < limit
    # Who took the truth for 5 % less would be right visibly more often than they believe: the test has power.
    lower = design.with_coin(int(design.coin * 0.95))
    believed, right = guesses(disease, states, lower, counts)
    assert right.sum() - believed.sum() > limit


def test_a_manifest_that_promises_more_than_its_integers_keep_is_refused():
    raw = json.loads(published()[1].manifest.to_json())
    assert not verify_tables(raw, {}).failures

    def broken(change):
        copy = json.loads(json.dumps(raw))
        change(copy["parts"][0], copy)
        return verify_tables(copy, {})

    def truer(part, _):
        part["lineups"]["truth"] = 2**32 - 2**14

    def stays(part, _):
        part["promise"]["stays"] = "3/4"

    def gamma(part, _):
        part["promise"]["gamma"] = "3/2"

    def rho2(part, manifest):
        part["promise"]["rho2"] = manifest["guarantee"]["rho2"] = "1/12"

    def no_design(part, _):
        del part["lineups"]

    def arcs(part, _):
        part["lineups"]["arcs"][0] += 256

    def other(part, manifest):
        part["promise"]["adversary"] = manifest["guarantee"]["adversary"] = "any-prior"

    def other_kind(part, _):
        part["promise"] = {"kind": "frequency", "rho1": None, "rho2": "1/5", "exempt": [], "per_value": []}

    for change in (truer, stays, gamma, rho2, no_design, arcs, other, other_kind):
        assert not broken(change).holds, change.__name__


def test_what_is_promised_to_stay_of_a_belief_is_recomputed():
    names = [f"v{number:02d}" for number in range(20)]
    counts = [int(10_000 / (number + 1) ** 1.5) + 1 for number in range(20)]
    table = pa.table({"disease": [name for name, rows in zip(names, counts, strict=True) for _ in range(rows)]})
    asked = (dn.Privacy(rho2="1/2"), dn.Privacy(rho1="1/13", rho2="1/6", adversary="any-prior"))
    for privacy, domain in zip(asked, (None, names), strict=True):
        release = dn.publish(
            table, sensitive="disease", privacy=privacy, mechanism="lineup", domain=domain, key=bytes(32)
        )
        raw = json.loads(release.manifest.to_json())
        assert not verify_tables(raw, {}).failures
        part = raw["parts"][0]
        part["promise"]["stays"] = str(1 - Fraction(part["lineups"]["truth"], 2**32))  # as if all sets were as likely
        assert [check.what for check in verify_tables(raw, {}).failures] == ["downward"]


def test_against_any_prior_no_set_speaks_for_a_value_by_more_than_promised():
    """Every set, counted in plain Python from the manifest alone: draws are 2^18 coins times 2^40 numbers, 2^58."""
    privacy = dn.Privacy(rho1="1/13", rho2="1/6", adversary="any-prior")
    names = [f"v{number:02d}" for number in range(23)]
    table = pa.table({"disease": [names[row % 23] for row in range(500)]})
    release = dn.publish(table, sensitive="disease", privacy=privacy, mechanism="lineup", domain=names, key=bytes(32))
    part = json.loads(release.manifest.to_json())["parts"][0]
    m, size, orders, coin = 23, part["lineups"]["size"], part["lineups"]["orders"], part["lineups"]["truth"] >> 14
    draws = {}
    for order in range(orders):
        stream = hashlib.shake_256(f"deniable line-ups {part['lineups']['seed']} {order}".encode()).digest(8 * m)
        block = sorted(sorted(range(m), key=lambda x, s=stream: s[8 * x : 8 * x + 8][::-1])[:size])
        for x in range(m):
            shifts = [(s, (2**18 - coin) * share(s, m)) for s in range(m)]
            shifts += [(x - block[slot], coin * share(slot, size)) for slot in range(size)]
            for shift, number in shifts:
                shown = frozenset((shift + place) % m for place in block)
                draws[shown, x] = draws.get((shown, x), 0) + number
    assert all(sum(n for (_, x), n in draws.items() if x == value) == orders * 2**58 for value in range(m))
    ratios = [
        Fraction(max(given), min(given))
        for given in ([draws[shown, x] for x in range(m)] for shown in {shown for shown, _ in draws})
    ]
    assert max(ratios) == Fraction(part["promise"]["gamma"])
    assert max(ratios) <= privacy.gamma
    assert max(ratios) > privacy.gamma * Fraction(999, 1000)


def share(part: int, parts: int) -> int:
    """How many r below 2^40 have floor(r parts / 2^40) = part."""
    return -(-(part + 1) * 2**40 // parts) + (-part * 2**40 // parts)
