"""A manifest cannot choose to be checked for less: what it states and what was required must be what is promised."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.manifest import Manifest
from deniable.core.promise import KINDS, OTHER_KINDS
from deniable.core.sentence import sentence_of as written
from deniable.mechanisms import MECHANISMS
from deniable.mechanisms.retention import Retention
from deniable_verify import verify_tables
from deniable_verify.manifest import problems
from deniable_verify.promises import mechanisms
from deniable_verify.sentence import sentence_of

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
        ("decoys", both(promised(rho2=None), stated(rho2=None), required(rho2=None)), "^$"),
        ("decoys", both(promised(rho2=None), required(rho1="1/9")), "^$"),
        ("decoys", both(promised(rho2=None), required(exempt=["a"])), "^$"),
        ("decoys", both(promised(rho2=None), required(per_value=[["a", "1/9", "1/3"]])), "^$"),
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


# -- What contradicts itself: every sentence of ``problems``, and what just fits ---------------------------------------

GOOD = Path(__file__).parents[2] / "docs" / "reference" / "vectors" / "good"


def vector(name: str) -> dict[str, Any]:
    return json.loads((GOOD / name / "manifest.json").read_text("utf-8"))


def at(*path: Any, be: Any) -> Change:
    """Something else in one place."""

    def change(manifest: dict[str, Any]) -> None:
        inner: Any = manifest
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = be

    return change


def of_part(*path: Any, be: Any) -> Change:
    return at("parts", 0, *path, be=be)


def second(manifest: dict[str, Any]) -> None:
    """A second part, of a column of its own."""
    manifest["columns"].append({"name": "more", "type": "string", "role": "sensitive"})
    manifest["parts"].append(manifest["parts"][0] | {"columns": ["more"]})


def alone(manifest: dict[str, Any]) -> None:
    """Nothing but the column of its only part."""
    manifest["columns"] = manifest["columns"][-1:]


MORE, TWICE, PARTS = "more rows or columns", "a column is named twice", "not about its sensitive"
COUNTED, NOISE, MIXED = "one count per value", "none that a release can have", "not a probability distribution"
NUMBER, OWN_NUMBER, SHAPE = "no probability, or no ratio", "own requirement is no", "a row and a column per value"
CELLS, NO_CELLS, OUTSIDE, DECOYS = (
    "no column 'cell'",
    "rows are of several cells",
    "outside the release",
    "group of dec",
)
VALUE, RANGE, FEW = "not of its column's type", "does not go from a number", "fewer points than two"
ITEMS, ITEM, FIELDS, WIDTH = "and others are not", "something else than a column", "other fields", "a width of nothing"
LEVELS, TAU, LEDGER = "of columns that it does not see", "a tau that none", "a cost that is none"
SEEN, TABLES, GAPS = "sees a column twice", "not every table", "numbered without gaps"
EVEN, SAME = [[1 / 8] * 8] * 8, [0] * 16


def learned(*path: Any, be: Any) -> Change:
    return of_part("learned", *path, be=be)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("uniform", at("rows", be=2**48), ""),
        ("uniform", at("rows", be=2**48 + 1), MORE),
        ("uniform", lambda m: m["columns"].append(m["columns"][0]), TWICE),
        ("uniform", lambda m: m["parts"].append(m["parts"][0]), TWICE),
        ("uniform", at("columns", 0, "role", be="sensitive"), PARTS),
        ("uniform", second, ""),
        ("small-domain", second, CELLS),
        ("small-domain", lambda m: m["columns"].pop(), CELLS),
        ("small-domain", of_part("cells_published", be=False), NO_CELLS),
        ("uniform", at("columns", 0, "role", be="cell"), NO_CELLS),
        ("uniform", lambda m: m["parts"][0]["cells"].append(m["parts"][0]["cells"][0]), NO_CELLS),
        ("retention", lambda m: m["parts"][0]["cells"].append(m["parts"][0]["cells"][0]), NO_CELLS),
        ("uniform", at("data", "file", be="../x"), OUTSIDE),
        ("uniform", at("data", "file", be="x" * 100), ""),
        ("uniform", at("data", "file", be="x" * 101), OUTSIDE),
        ("uniform", at("data", "file", be="weights.parquet"), "two things"),
        ("uniform", at("data", "file", be="README.md"), "two things"),
        *[("uniform", at("guarantee", name, be=be), NUMBER) for name in ("rho1", "rho2") for be in ("0", "5/4", "x")],
        ("uniform", at("guarantee", "rho2", be="1"), ""),
        ("uniform", at("guarantee", "gamma", be="1"), ""),
        ("uniform", at("guarantee", "gamma", be="99/100"), NUMBER),
        ("uniform", at("privacy", "epsilon", be="x"), NUMBER),
        ("uniform", at("privacy", "rho1", be="0"), NUMBER),
        ("uniform", at("privacy", "per_value", be=[["a", "0", "1/2"]]), NUMBER),
        ("uniform", at("privacy", "per_value", be=[["a", "1/4", "3/2"]]), NUMBER),
        ("decoys-small-sums", at("privacy", "small_sums", "error", be="0"), NUMBER),
        ("decoys-small-sums", at("privacy", "large_sums", be={"error": "2", "above": 9, "at_most": "1/2"}), NUMBER),
        ("uniform", of_part("types", be=["string"] * 2), "one type per column"),
        ("uniform", of_part("mixture", be=EVEN), "nothing, or more than one thing"),
        ("uniform", of_part("cells", be=[]), "nothing, or more than one thing"),
        ("uniform", both(of_part("domain", be=[]), of_part("marginal", be=None)), "a domain is empty"),
        ("uniform", lambda m: m["parts"][0]["marginal"]["counts"].pop(), COUNTED),
        ("uniform", of_part("marginal", "counts", 0, be=-(2**53)), ""),
        ("uniform", of_part("marginal", "counts", 0, be=-(2**53) - 1), COUNTED),
        ("uniform", of_part("marginal", "epsilon", be=1e-6), ""),
        ("uniform", of_part("marginal", "epsilon", be=9e-7), NOISE),
        ("uniform", of_part("marginal", "epsilon", be=1e6), ""),
        ("uniform", of_part("marginal", "epsilon", be=1.1e6), NOISE),
        ("uniform", of_part("marginal", "variance", be=1e15), ""),
        ("uniform", of_part("marginal", "variance", be=1.1e15), NOISE),
        ("decoys", of_part("mixture", be=EVEN), ""),
        ("decoys", of_part("mixture", be=EVEN[1:]), SHAPE),
        ("decoys", of_part("mixture", be=[*EVEN[1:], [1 / 8] * 7]), SHAPE),
        ("decoys", of_part("mixture", be=[*EVEN[1:], [1 / 8 + 2e-4, *[1 / 8] * 7]]), MIXED),
        ("decoys", of_part("mixture", be=[*EVEN[1:], [1 / 8 - 2e-4, *[1 / 8] * 7]]), MIXED),
        ("decoys", of_part("mixture", be=[*EVEN[1:], [1 / 8 + 9e-5, *[1 / 8] * 7]]), ""),
        ("decoys", of_part("swapped", be=9), "swapped without a channel"),
        ("decoys", of_part("groups", "c", be=2**20), ""),
        ("decoys", of_part("groups", "c", be=2**20 + 1), DECOYS),
        ("decoys-small-sums", of_part("domain", be=[["a"], ["b"]]), ""),
        ("decoys-small-sums", of_part("domain", be=[["a"]]), DECOYS),
        ("uniform-of-bins", of_part("bins", be={"job": {"edges": [1, 2], "open_ends": False}}), "bins are of a column"),
        ("uniform-of-bins", of_part("bins", "age", "edges", be=[18.0, 40.0, 40.0, 90.0]), "bins do not rise"),
        *[("retention", of_part("requirement", name, be="0"), OWN_NUMBER) for name in ("rho1", "rho2")],
        ("retention", of_part("requirement", "s", be="x"), OWN_NUMBER),
        ("line-ups", of_part("columns", be=["job", "town"]), PARTS),
        ("retention", at("parts", 1, "domain", be=[[1]]), "a range of numbers lists values"),
        ("uniform", of_part("domain", 0, be=[1]), VALUE),
        ("uniform", of_part("domain", 0, be=["a", "a"]), VALUE),
        ("uniform", of_part("domain", 0, be=["b"]), "stands in the domain twice"),
        ("retention", at("parts", 1, "range", "low", be="0"), RANGE),
        ("retention", at("parts", 1, "range", "low", be=0.5), RANGE),
        ("retention", at("parts", 1, "range", "step", be=0.5), RANGE),
        ("retention", at("parts", 1, "range", "high", be=1), ""),
        ("retention", at("parts", 1, "range", "high", be=0), FEW),
        ("retention", at("parts", 1, "range", "high", be=2**24 - 1), ""),
        ("retention", at("parts", 1, "range", "high", be=2**24), FEW),
        ("retention", at("parts", 1, "range", "kind", be="date"), RANGE),
        ("items", of_part("item", be=None), ITEMS),
        ("items", of_part("item", "list", be="others"), ITEMS),
        ("items", of_part("item", "item", be="w"), ITEM),
        ("items", of_part("types", be=["string"]), VALUE),
        ("items", of_part("domain", be=[[True], [False]]), ITEM),
        ("items", of_part("cells", 0, "values", be=[1, 0]), ITEM),
        ("items", lambda m: [part["item"].update(most=3) for part in m["parts"]], ""),
        ("items", lambda m: [part["item"].update(most=4) for part in m["parts"]], "than there are"),
        ("uniform", at("labels", be={"none": [["a", "A"]]}), "it labels or recodes"),
        ("uniform", at("labels", be={"job": [["a", "A"], ["b", "B"]]}), ""),
        ("uniform", at("labels", be={"job": [["a", "A"], ["a", "B"]]}), "one code twice"),
        ("uniform", at("about", "columns", be={"none": "x"}), "it describes a column"),
        ("items", at("about", "columns", be={"ills": "x"}), ""),
        ("uniform", at("about", "date", be="2025-02-30"), "on a day that there was not"),
        ("uniform-recoded", at("recoded", "age", 0, "width", be=0), WIDTH),
        ("uniform-recoded", at("recoded", "age", be=[{"kind": "snap", "grid": 1}]), ""),
        ("uniform-recoded", at("recoded", "age", be=[{"kind": "snap", "grid": 0}]), WIDTH),
        ("uniform-recoded", at("recoded", "age", be=[{"kind": "snap", "limit": 1}]), FIELDS),
        ("synthetic", learned("codings", 1, "column", be="sex"), SEEN),
        ("synthetic", learned("codings", 1, "type", be="int64"), SEEN),
        ("synthetic", at("tables", be=None), TAU),
        ("synthetic", both(at("tables", be=None), at("data", be=None)), ""),
        ("synthetic", learned("tau", be=[0.1, 0.1]), TABLES),
        ("synthetic", learned("tau", be=[0.01, 3.0, 3.0]), ""),
        ("synthetic", learned("tau", be=[0.01, 3.0, 3.1]), TAU),
        ("synthetic", learned("tau", be=[0.009, 3.0, 3.0]), TAU),
        ("synthetic", learned("tables", 0, "epsilon", be=None), "do not come first"),
        ("synthetic", learned("tables", 2, "epsilon", be="1"), "do not come first"),
        ("synthetic", learned("tables", 1, "epsilon", be="1"), ""),
        ("synthetic", learned("tables", 1, "columns", be=[2]), LEVELS),
        ("synthetic", learned("tables", 1, "columns", be=[-1]), LEVELS),
        (
            "synthetic",
            both(learned("tables", 0, "columns", be=[1, 1]), learned("tables", 0, "places", be=[0] * 16)),
            LEVELS,
        ),
        ("synthetic", learned("tables", 1, "places", be=[0, 1]), "the level of each combination"),
        ("synthetic", learned("tables", 1, "places", be=[0, 2, -1]), GAPS),
        ("synthetic", learned("tables", 1, "places", be=[1, 2, -1]), GAPS),
        ("synthetic", learned("tables", 1, "places", be=[0, 0, -1]), ""),
        ("synthetic", learned("spent", 0, "epsilon", be="0"), LEDGER),
        ("synthetic", learned("spent", 0, "epsilon", be="1/0"), LEDGER),
        ("synthetic", learned("spent", 0, "delta", be="-1/9"), LEDGER),
        ("synthetic", learned("spent", 0, "delta", be="1"), LEDGER),
        ("synthetic", learned("spent", 0, "delta", be="8/9"), ""),
        ("synthetic", learned("tables", 0, "epsilon", be="0"), LEDGER),
        ("synthetic", of_part("marginal", be={"counts": [1] * 8, "epsilon": 1.0, "variance": 2.0}), "stands beside it"),
        ("small-domain", at("recoded", be={"cell": [{"kind": "snap", "grid": 1}]}), "it labels or recodes"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_told_by_what(name: str, change: Change, words: str) -> None:
    manifest = vector(name)
    assert list(problems(manifest)) == []
    change(manifest)
    found = next(problems(manifest), "")
    assert (words in found) if words else not found, found


@pytest.mark.parametrize(
    ("name", "change", "limit", "size"),
    [
        ("uniform", None, "MOST_COLUMNS", 3),
        ("uniform", alone, "MOST_COLUMNS", 1),
        ("uniform", None, "LARGEST_GRID", 8),
        ("decoys", None, "LARGEST_MIXTURE", 8),
    ],
)
def test_sizes_are_limited(monkeypatch: pytest.MonkeyPatch, name: str, change: Any, limit: str, size: int) -> None:
    manifest = vector(name)
    if change is not None:
        change(manifest)
    monkeypatch.setattr(f"deniable_verify.manifest.{limit}", size)
    assert list(problems(manifest)) == []
    monkeypatch.setattr(f"deniable_verify.manifest.{limit}", size - 1)
    assert list(problems(manifest))


def fails_of(manifest: dict[str, Any]) -> list[str]:
    """The checks of a manifest by itself that fail, but for what follows in words."""
    return [check.what for check in verify_tables(manifest, {}).failures if check.what != "sentence"]


def plus(path: tuple[Any, ...], percent: int) -> Change:
    """A number, or a fraction, so many per cent larger."""

    def change(manifest: dict[str, Any]) -> None:
        inner: Any = manifest
        for step in path[:-1]:
            inner = inner[step]
        before = inner[path[-1]]
        number = Fraction(before) * (100 + percent) / 100
        inner[path[-1]] = str(number) if isinstance(before, str) else float(number)

    return change


def sums_of(promised: Any, needed: Any) -> Change:
    return both(of_part("promise", "small_sums", be=promised), at("privacy", "small_sums", be=needed))


UNBOUNDED = ["part amplification", "posterior", "left out", "amplification"]
ODDS, SMALL_SUMS = ("parts", 0, "promise"), {"error": "3/10", "below": 2, "at_least": "1/2"}


@pytest.mark.parametrize(
    ("name", "change", "fails"),
    [
        # the ledger of a learned release
        *[("synthetic", of_part("promise", name, be=be), ["ledger"]) for name, be in (("together", 0), ("number", 0))],
        ("synthetic", of_part("promise", "number", be=2), ["ledger"]),
        ("synthetic", both(of_part("promise", "number", be=2), of_part("promise", "publications", be=2)), ["ledger"]),
        ("synthetic", of_part("promise", "together", be=2), ["ledger"]),
        ("synthetic", plus((*ODDS, "gamma"), -1), ["ledger"]),
        ("synthetic", plus((*ODDS, "epsilon"), 1), ["spent"]),
        ("synthetic", of_part("promise", "delta", be="1/9"), ["spent"]),
        ("synthetic", of_part("promise", "listed", be="threshold"), ["list of values"]),
        ("synthetic", of_part("promise", "listed", be="by heart"), ["list of values"]),
        ("synthetic", learned("other", be=True), ["list of values"]),
        ("synthetic", learned("tables", 1, "epsilon", be="1"), ["tables"]),
        ("synthetic", learned("spent", 0, "what", be="edges"), ["tables", "edges"]),
        ("synthetic-list-by-threshold", of_part("promise", "listed", be="declared"), ["list of values"]),
        ("synthetic-list-by-threshold", learned("other", be=False), []),
        ("synthetic-list-by-threshold", learned("spent", 0, "delta", be="1/9"), ["spent"]),
        ("synthetic", both(of_part("promise", "rho1", be="1/9"), of_part("promise", "rho2", be="1/2")), []),
        ("synthetic", both(of_part("promise", "rho1", be="1/8"), of_part("promise", "rho2", be="1/2")), ["posterior"]),
        ("synthetic", of_part("promise", "rho2", be="1/2"), ["posterior"]),
        ("synthetic", at("privacy", "epsilon", be="2"), []),
        ("synthetic", at("privacy", "epsilon", be="19/10"), ["budget"]),
        # noise, bins, the seed, the software, the whole release
        ("uniform", plus(("parts", 0, "marginal", "variance"), 1), ["noisy histogram"]),
        ("uniform", plus(("parts", 0, "marginal", "variance"), 100), []),
        ("uniform", plus(("parts", 0, "marginal", "variance"), 99_900), []),
        ("uniform", plus(("parts", 0, "marginal", "variance"), 100_000), ["noisy histogram"]),
        ("uniform", plus(("parts", 0, "marginal", "variance"), -100), ["noisy histogram"]),
        ("uniform-of-bins", of_part("bins", "age", "open_ends", be=True), ["bins"]),
        ("uniform-of-bins", of_part("bins", "age", "edges", 1, be=41.0), ["bins"]),
        ("uniform", at("randomness", "seed", be=1), ["randomness"]),
        ("uniform", at("randomness", "source", be="seed"), ["randomness"]),
        ("uniform", both(at("randomness", "seed", be=1), at("randomness", "source", be="seed")), []),
        ("uniform", at("software", "version", be="0.1.1"), ["software"]),
        ("uniform", at("software", "name", be="other"), ["software"]),
        ("uniform", at("guarantee", "epsilon", be=None), ["epsilon"]),
        ("uniform", at("guarantee", "gamma", be=None), ["epsilon"]),
        ("uniform", both(at("guarantee", "gamma", be=None), at("guarantee", "epsilon", be=None)), []),
        ("uniform", at("guarantee", "epsilon", be=1.0986), ["epsilon"]),
        ("uniform", plus(("guarantee", "gamma"), 1), ["epsilon"]),
        ("uniform", plus(("guarantee", "gamma"), -1), ["amplification", "epsilon"]),
        # requirements
        ("uniform", at("privacy", be=None), []),
        ("uniform", at("privacy", "rho1", be="1/5"), []),
        ("uniform", at("privacy", "rho1", be="1/3"), ["promise", "rho1"]),
        ("uniform", at("privacy", "rho2", be="3/5"), []),
        ("uniform", at("privacy", "rho2", be="2/5"), ["promise", "rho2"]),
        ("uniform-any-prior", at("privacy", "adversary", be="frequency"), []),
        ("decoys-small-sums", sums_of(SMALL_SUMS, SMALL_SUMS), []),
        ("decoys-small-sums", sums_of(None, SMALL_SUMS), ["promise", "required small sums"]),
        ("decoys-small-sums", of_part("groups", "c", be=3), ["decoy groups"]),
        ("retention-swapped", of_part("swapped", be=1501), ["swapped rows of 'job'"]),
        ("retention", at("parts", 0, "requirement", "rho1", be="1/5"), []),
        ("retention", at("parts", 0, "requirement", "rho1", be="1/3"), ["promise", "requirement of 'job'"]),
        ("retention", at("parts", 0, "requirement", "rho2", be="3/5"), []),
        ("retention", at("parts", 0, "requirement", "rho2", be="2/5"), ["promise", "requirement of 'job'"]),
        ("retention", at("parts", 0, "requirement", "s", be="2"), ["requirement of 'job'"]),
        ("retention", at("parts", 0, "requirement", be=None), []),
        # channels that are none
        ("uniform", of_part("cells", 0, "values", 0, be=8), ["channels"]),
        ("uniform", of_part("cells", 0, "values", 0, be=1), ["channels"]),
        ("uniform", of_part("cells", 0, "replace", 0, be=0), ["channels"]),
        ("uniform", lambda m: m["parts"][0]["cells"][0]["keep"].pop(), ["channels"]),
        (
            "uniform",
            of_part("cells", 0, "keep", 0, be=2**32),
            ["part amplification", "posterior", "left out", "amplification"],
        ),
        ("retention-swapped", of_part("swapped", be=1), ["no breach in 'job'"]),
        ("line-ups-any-prior", of_part("promise", "rho1", be=None), ["posterior"]),
        # single values and frequent ones that a promise leaves out
        ("designed-two-columns", of_part("promise", "loose", 0, be=[0, 7]), ["single values", "promise"]),
        ("designed-two-columns", lambda m: m["parts"][0]["promise"]["loose"].pop(0), ["single values"]),
        ("designed-two-columns", of_part("promise", "loose", 0, be=[0, 8]), ["promise"]),
        ("designed-two-columns", of_part("marginal", be=None), []),
        ("designed-two-columns", at("privacy", be=None), []),
        ("designed-two-columns", of_part("promise", "loose", 0, be=[2, 0]), ["promise"]),
        ("uniform-frequent-values", of_part("promise", "above", be=[]), ["left out"]),
        ("uniform-frequent-values", lambda m: m["parts"][0]["promise"]["above"].append(7), ["left out"]),
    ],
)
def test_of_other_numbers_these_checks_fail_and_no_others(name: str, change: Change, fails: list[str]) -> None:
    manifest = vector(name)
    assert fails_of(manifest) == []
    change(manifest)
    assert fails_of(manifest) == fails


LONG = ("x" * 38, "x" * 39)
FREQUENT = of_part("promise", "above", be=[0, 1])
NAMED_VALUES = of_part("promise", "exempt", be=list(range(7)))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *[(name, at("name", be="x")) for name in sorted(path.name for path in GOOD.iterdir())],
        ("designed", of_part("promise", "exempt", be=[1])),
        ("designed", NAMED_VALUES),
        ("designed", both(NAMED_VALUES, of_part("promise", "exempt", be=list(range(6))))),
        ("designed", both(of_part("promise", "exempt", be=[1]), of_part("marginal", be=None))),
        ("designed", both(FREQUENT, of_part("promise", "rho1", be="1/4"), of_part("promise", "exempt", be=[7]))),
        ("designed", of_part("promise", "per_value", be=[[0, "1/4", "1/2"], [3, "1/9", "1/2"]])),
        *[
            ("designed", both(of_part("promise", "exempt", be=[0]), of_part("domain", 0, be=["x" * n])))
            for n in (38, 39)
        ],
        ("uniform", both(FREQUENT, of_part("promise", "rho1", be="1/10"))),
        ("uniform", of_part("promise", "rho2", be="99999/100000")),
        ("uniform", of_part("marginal", be=None)),
        ("uniform", of_part("marginal", "epsilon", be=0.001)),
        ("uniform", of_part("cells", 0, "keep", be=[2**32 - 1] * 8)),
        ("uniform", of_part("cells", 0, "keep", be=[2**32] * 8)),
        ("uniform", of_part("cells", 0, "keep", be=[2**31, *[2**30] * 7])),
        ("uniform", of_part("requirement", be={"rho1": "1/4", "rho2": "1/2", "adversary": "frequency", "s": None})),
        ("uniform", of_part("swapped", be=9)),
        ("fine-grain", of_part("promise", "limits", be=[[0, "1/4", "2/5"]])),
        ("fine-grain", of_part("promise", "limits", be=[[0, "1/4", "2/5"], [1, "1/5", "2/5"]])),
        ("fine-grain-any-prior", of_part("promise", "limits", 0, be=[0, "1/5", "2/5"])),
        ("small-domain", both(of_part("promise", "exempt", be=[3]), FREQUENT, of_part("promise", "rho1", be="1/9"))),
        ("line-ups", of_part("promise", "exempt", be=[2, 5])),
        ("line-ups", both(FREQUENT, of_part("promise", "rho1", be="1/9"))),
        ("line-ups", of_part("promise", "gamma", be="9")),
        ("line-ups", of_part("lineups", "truth", be=2**32)),
        ("line-ups", of_part("lineups", "truth", be=2**31)),
        ("line-ups", of_part("promise", "per_value", be=[[0, "1/4", "1/2"]])),
        ("line-ups-any-prior", of_part("promise", "per_value", be=[[0, "1/4", "1/2"]])),
        ("line-ups-any-prior", of_part("lineups", "size", be=1)),
        ("decoys", of_part("promise", "c", be=2)),
        ("decoys", second),
        ("items", lambda m: [part["promise"].update(rho1="1/9", rho2="1/2") for part in m["parts"]]),
        ("items", lambda m: [part["promise"].update(rho1=None, rho2=None) for part in m["parts"]]),
        ("retention", at("parts", 1, "range", "keep", be=2**32 - 1)),
        ("retention", at("parts", 0, "cells", 0, "keep", 0, be=5)),
        ("synthetic", of_part("promise", "together", be=3)),
        ("synthetic", both(of_part("promise", "publications", be=4), of_part("promise", "number", be=3))),
        ("synthetic", both(of_part("promise", "rho1", be="1/9"), of_part("promise", "rho2", be="1/2"))),
        ("synthetic", of_part("promise", "listed", be="table")),
        ("synthetic-list-by-threshold", of_part("promise", "delta", be="12345/10000000")),
        ("designed-two-columns", of_part("promise", "loose", be=[[0, x] for x in range(8)])),
        ("designed-two-columns", of_part("promise", "loose", be=[[1, 2]])),
        ("designed-two-columns", both(of_part("promise", "loose", be=[]), of_part("promise", "exempt", be=[1, 20]))),
        ("designed-two-columns", of_part("domain", 0, be=["a very long value, of more than forty letters", "A"])),
    ],
)
def test_the_sentence_is_the_one_that_the_publisher_makes_of_the_same_numbers(name: str, change: Change) -> None:
    raw = vector(name)
    change(raw)
    manifest = Manifest.from_dict(raw)
    assert sentence_of(raw) == written(manifest.parts, raw["guarantee"]["adversary"])
