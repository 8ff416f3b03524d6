"""A manifest cannot choose to be checked for less: what it states and what was required must be what is promised."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.promise import KINDS, OTHER_KINDS
from deniable.mechanisms import MECHANISMS
from deniable.mechanisms.retention import Retention
from deniable_verify import verify_tables
from deniable_verify.promises import mechanisms

Change = Callable[[dict[str, Any]], Any]
OWN = dict.fromkeys("abcdef", ("1/5", "2/5"))
SMALL = dn.SmallSums(error="3/10", below=2, at_least="1/2")
LARGE = dn.LargeSums(error="1/10", above=5000, at_most="1/20")
WAYS: dict[str, dict[str, Any]] = {
    "uniform": {"mechanism": "uniform", "privacy": dn.Privacy("1/4", "1/2")},
    "any-prior": {"mechanism": "uniform", "privacy": dn.Privacy("1/4", "1/2", adversary="any-prior")},
    "designed": {"mechanism": "designed", "privacy": dn.Privacy(rho2="1/2")},
    "exempt": {"mechanism": "designed", "privacy": dn.Privacy(rho2="1/2", exempt=["a"])},
    "of each value": {"mechanism": "designed", "privacy": dn.Privacy(per_value=OWN)},
    "fine-grain": {"mechanism": "fine-grain", "privacy": dn.Privacy(per_value=OWN)},
    "fine-grain for all": {"mechanism": "fine-grain", "privacy": dn.Privacy("1/4", "1/3", adversary="any-prior")},
    "small-domain": {"mechanism": "small-domain", "privacy": dn.Privacy(rho2="1/2")},
    "decoys": {"mechanism": "decoys:c=4", "privacy": dn.Privacy(rho2="1/4")},
    "small sums": {"mechanism": "decoys", "privacy": dn.Privacy(small_sums=SMALL)},
    "large sums": {"mechanism": "decoys", "privacy": dn.Privacy(large_sums=LARGE)},
    "retention": {"mechanism": Retention({"job": dn.Replace(privacy=dn.Privacy("1/4", "1/2"))})},
    "relative prior": {"mechanism": Retention({"job": dn.Replace(privacy=(3, "1/4", "3/4"))})},
}


@pytest.fixture(scope="module")
def honest() -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(5)
    shares = [0.2, 0.18, 0.16, 0.14, 0.12, 0.1, 0.06, 0.04]
    table = pa.table({"sex": rng.choice(["F", "M"], 8_000), "job": rng.choice(list("abcdefgh"), 8_000, p=shares)})
    manifests = {}
    for way, options in WAYS.items():
        sensitive = {} if isinstance(options["mechanism"], Retention) else {"sensitive": "job"}
        if getattr(options.get("privacy"), "adversary", "") == "any-prior" or way == "small sums":
            sensitive["domain"] = list("abcdefgh")
        manifests[way] = dn.publish(
            table, key=bytes(32), **sensitive, **{"mechanism": "uniform", **options}
        ).manifest.to_dict()
    return manifests


def failures(manifest: dict[str, Any]) -> str:
    return "\n".join(
        f"{check.what}: {check.detail}"
        for check in verify_tables(manifest, {}).failures
        if check.what != "sentence"  # which follows from the numbers that are changed here
    )


def promised(**numbers: Any) -> Change:
    """Other numbers of the promise."""
    return lambda manifest: manifest["parts"][0]["promise"].update(numbers)


def instead(kind: str, **numbers: Any) -> Change:
    """Another promise."""
    return lambda manifest: manifest["parts"][0].update(promise={"kind": kind, **numbers})


def stated(**numbers: Any) -> Change:
    return lambda manifest: manifest["guarantee"].update(numbers)


def required(**numbers: Any) -> Change:
    return lambda manifest: manifest["privacy"].update(numbers)


def both(*changes: Change) -> Change:
    return lambda manifest: [change(manifest) for change in changes]


def named(mechanism: str) -> Change:
    return lambda manifest: manifest["mechanism"].update(name=mechanism)


def more_kept(manifest: dict[str, Any]) -> None:
    for cell in manifest["parts"][0]["cells"]:
        cell["keep"] = [keep * 105 // 100 for keep in cell["keep"]]


FREQUENCY = {"rho1": "1/4", "rho2": "1/2", "exempt": [], "per_value": [], "above": [], "loose": []}


@pytest.mark.parametrize("way", WAYS)
def test_an_honest_manifest_holds(honest: dict[str, dict[str, Any]], way: str) -> None:
    assert failures(honest[way]) == ""


def test_every_mechanism_says_by_what_it_promises() -> None:
    kinds = mechanisms()
    assert set(kinds) == {*MECHANISMS, "collected"}  # rows that people perturbed themselves
    assert {kind for some in kinds.values() for kind in some} == {*KINDS, *OTHER_KINDS}


@pytest.mark.parametrize(
    ("way", "change", "words"),
    [
        # nothing, while rho2 is stated or required
        ("uniform", instead("nothing", why="no reason"), "rho2 = 1/2 is stated, and no promise is made of it"),
        ("uniform", both(instead("nothing", why=""), stated(rho2=None, gamma=None)), "required 1/2, and none is"),
        ("uniform", both(named("mine"), instead("nothing", why=""), stated(rho2=None, gamma=None)), "rho2: required"),
        ("retention", instead("nothing", why=""), "rho2 = 1/2 is required, and no promise is made of it"),
        # a weaker kind
        ("uniform", both(instead("frequency", **FREQUENCY), stated(gamma=None)), "uniform does not promise by freq"),
        ("any-prior", both(named("mine"), instead("frequency", **FREQUENCY)), "frequency is no promise against it"),
        (
            "any-prior",
            both(named("mine"), instead("relative-prior", s="1", rho1="1/4", rho2="1/2", like_column=True)),
            "relative-prior is no promise against it",
        ),
        (
            "uniform",
            both(named("mine"), instead("relative-prior", s="1", rho1="1/4", rho2="1/2", like_column=False)),
            "more is stated than of sets less than 1 times likelier",
        ),
        ("designed", instead("nothing", why=""), "designed does not promise by nothing"),
        (
            "designed",
            instead("amplification", gamma="1000", rho1=None, rho2=None, above=[]),
            "no promise is made of it",
        ),
        # the same kind with weaker numbers
        ("uniform", promised(rho2="2/3"), "rho2 = 1/2 is stated, and 2/3 promised"),
        ("uniform", promised(rho1="1/5"), "rho1 = 1/4 is stated, and 1/5 promised"),
        ("uniform", promised(rho1=None, rho2=None), "no promise is made of it"),
        ("uniform", both(promised(rho1="1/5"), stated(rho1="1/5")), "rho1: required 1/4, promised 1/5"),
        ("uniform", both(promised(rho1="1/5"), stated(rho1=None)), "rho1 = 1/4 is required, and 1/5 promised"),
        ("any-prior", both(promised(rho1="1/5"), stated(rho1=None)), "rho1: required 1/4, and none is promised"),
        ("uniform", both(more_kept, promised(gamma="1000"), stated(gamma=None)), "posterior: 'job': a belief of 0.25"),
        ("designed", promised(rho2="3/5"), "rho2 = 1/2 is stated, and 3/5 promised"),
        ("designed", promised(rho2=None), "no promise is made of it"),
        ("designed", promised(rho1="1/10"), "rho1 = None is stated, and 1/10 promised"),
        ("designed", promised(exempt=[0]), "values are left out that the requirement does not exempt"),
        ("exempt", promised(exempt=[0, 1]), "values are left out that the requirement does not exempt"),
        ("exempt", promised(exempt=[99]), "names a value that is not in the domain"),
        ("of each value", lambda m: m["parts"][0]["promise"]["per_value"].pop(), "own rho1 and rho2 are required"),
        ("fine-grain", lambda m: m["parts"][0]["promise"]["limits"].pop(), "own rho1 and rho2 are required"),
        ("fine-grain", lambda m: m["parts"][0]["promise"]["limits"][0].__setitem__(2, "1/2"), "own rho1 and rho2"),
        ("fine-grain", lambda m: m["parts"][0]["promise"]["limits"][0].__setitem__(1, "1/9"), "own rho1 and rho2"),
        ("fine-grain for all", lambda m: m["parts"][0]["promise"]["limits"].pop(), "does not exempt"),
        ("small-domain", promised(exempt=[0]), "values are left out that the requirement does not exempt"),
        ("small-domain", promised(above=[0]), "values are left out as more frequent than rho1, and none is required"),
        ("designed", promised(above=[0]), "values are left out as more frequent than rho1, and none is required"),
        ("designed", promised(loose=[[0, 0]]), "single values are left out that no column has"),
        ("small-domain", promised(rho2="3/5"), "rho2 = 1/2 is stated, and 3/5 promised"),
        ("decoys", promised(rho2=None), "no promise is made of it"),
        ("decoys", promised(rho2="1/3"), "rho2 = 1/4 is stated, and 1/3 promised"),
        ("small sums", promised(small_sums=None), "small sums are required, and others or none promised"),
        ("large sums", promised(large_sums={**LARGE.to_dict(), "at_most": "1/10"}), "large sums are required"),
        ("retention", promised(rho2="3/5"), "rho2 = 1/2 is required, and 3/5 promised"),
        ("retention", promised(rho1="1/5"), "rho1 = 1/4 is required, and 1/5 promised"),
        ("relative prior", promised(s="2"), "than of sets less than 2 times likelier"),
        ("relative prior", promised(rho2="4/5"), "rho2 = 3/4 is required, and 4/5 promised"),
        # what is required is more than what is stated
        ("uniform", required(adversary="any-prior"), "adversary: required any-prior, promised frequency"),
        ("uniform", required(rho2="1/3"), "rho2: required 1/3, promised 1/2"),
        ("uniform", required(per_value=[["a", "1/10", "1/9"]]), "own rho1 and rho2 are required"),
        # what cannot be read
        ("uniform", instead("trust", why="us"), "a promise of an unknown kind: 'trust'"),
        ("uniform", lambda m: m["parts"][0]["promise"].pop("gamma"), r"has other numbers \(gamma\)"),
        ("uniform", promised(sigma="1"), r"has other numbers \(sigma\)"),
        ("uniform", promised(rho2=0.5), "cannot be read"),
        ("uniform", promised(rho2="3/2"), "cannot be read"),
        ("fine-grain", lambda m: m["parts"][0]["promise"]["limits"][0].__setitem__(1, "0"), "cannot be read"),
        ("small sums", promised(small_sums={"error": "3/10", "below": 0, "at_least": "1/2"}), "cannot be read"),
    ],
)
def test_a_manifest_that_is_checked_for_less_than_it_says_fails(
    honest: dict[str, dict[str, Any]], way: str, change: Change, words: str
) -> None:
    manifest = copy.deepcopy(honest[way])
    change(manifest)
    assert re.search(words, failures(manifest)), failures(manifest)


def test_stronger_promises_than_required_are_fine(honest: dict[str, dict[str, Any]]) -> None:
    manifest = copy.deepcopy(honest["uniform"])
    both(required(rho1="1/5", rho2="2/3"), stated(rho2="3/5"))(manifest)
    assert failures(manifest) == ""


def test_a_mechanism_from_elsewhere_may_promise_by_any_kind_that_covers_what_it_states(
    honest: dict[str, dict[str, Any]],
) -> None:
    manifest = copy.deepcopy(honest["uniform"])
    both(named("mine"), instead("frequency", **FREQUENCY))(manifest)
    assert failures(manifest) == ""
    instead("per-value", limits=[[place, "1/4", "1/2"] for place in range(8)])(manifest)
    assert failures(manifest) == ""
