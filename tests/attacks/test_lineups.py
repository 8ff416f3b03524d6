"""Line-ups attacked: an exact Bayesian reads every published row, and the promise holds against them."""

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.audit.verify.certificate import certificate
from deniable.core import lineup_exact
from deniable.core.lineup import TRUTH_STEP, LineUpDesign
from deniable.engines.batch.lineups import states_of
from deniable.mechanisms import Lineup

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
    lower = LineUpDesign(design.arcs, int(design.coin * 0.95) * TRUTH_STEP, design.orders, design.seed)
    believed, right = guesses(disease, states, lower, counts)
    assert right.sum() - believed.sum() > limit


def test_a_manifest_that_promises_more_than_its_integers_keep_is_refused():
    raw = json.loads(published()[1].manifest.to_json())
    assert certificate(raw).holds

    def broken(change):
        copy = json.loads(json.dumps(raw))
        change(copy["parts"][0], copy)
        return certificate(copy)

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
