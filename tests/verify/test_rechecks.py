"""Every kind of promise has a recheck, which accepts an honest release and sees 5 % more than was promised."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core import promise
from deniable.core.promise import KINDS, OTHER_KINDS, to_dict
from deniable.mechanisms import SmallDomain
from deniable.mechanisms.retention import Retention
from deniable_verify import Check
from deniable_verify.numbers import FULL
from deniable_verify.promises import OWN, promise_of

N = 40_000
LIMITS = dict.fromkeys("abcdef", ("1/5", "2/5"))
WAYS: dict[str, dict[str, Any]] = {
    "amplification": {"mechanism": "uniform", "privacy": dn.Privacy("1/4", "1/2")},
    "amplification of a range": {"mechanism": Retention({"age": dn.Replace(coin=0.4, low=0, high=99)})},
    "amplification of a column": {"mechanism": Retention({"job": dn.Replace(privacy=dn.Privacy("1/4", "1/2"))})},
    "frequency": {"mechanism": "designed", "privacy": dn.Privacy(rho2="1/2")},
    "frequency without a requirement": {"mechanism": "pram:coin=0.5"},
    "frequency of each value": {"mechanism": "designed", "privacy": dn.Privacy(per_value=LIMITS)},
    "per-value": {"mechanism": "fine-grain", "privacy": dn.Privacy(per_value=LIMITS)},
    "per-value for all": {"mechanism": "fine-grain", "privacy": dn.Privacy("1/4", "1/3", adversary="any-prior")},
    "cells": {"mechanism": "small-domain", "privacy": dn.Privacy(rho2="1/2")},
    "relative-prior": {"mechanism": Retention({"job": dn.Replace(privacy=(3, "1/4", "3/4"))})},
    "relative-prior of a range": {
        "mechanism": Retention({"age": dn.Replace(privacy=(20, "1/10", "1/2"), low=0, high=99)})
    },
    "relative-prior of swapped values": {"mechanism": Retention({"job": dn.Replace(coin=0.5, replacing="swapping")})},
    "relative-prior like the column": {"mechanism": Retention({"job": dn.Replace(coin=0.5, replacing="identity")})},
    "line-ups": {"mechanism": "lineup", "privacy": dn.Privacy(rho2="1/2")},
    "line-ups for all": {"mechanism": "lineup", "privacy": dn.Privacy("1/4", "1/2", adversary="any-prior")},
    "items": {"mechanism": "items:separator=;,most=1", "privacy": dn.Privacy("1/4", "1/2")},
    "items within a budget": {"mechanism": "items:separator=;,most=2,budget=3"},
    "decoys": {"mechanism": "decoys:c=4", "privacy": dn.Privacy(rho2="1/4")},
    "nothing": {"mechanism": Retention({"job": dn.Replace(coin=1.0)})},
}
OF_CHANNELS = [way for way in WAYS if way.split()[0] != "nothing"]


def named(way: str) -> str:
    return way.split(maxsplit=1)[0]


def table() -> pa.Table:
    rng = np.random.default_rng(5)
    shares = [0.2, 0.18, 0.16, 0.14, 0.12, 0.1, 0.06, 0.04]
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], N),
            "age": rng.integers(0, 100, N),
            "job": rng.choice(list("abcdefgh"), N, p=shares),
        }
    )


@pytest.fixture(scope="module")
def honest() -> dict[str, dict[str, Any]]:
    """The manifest of a release of every kind."""
    manifests = {}
    for way, options in WAYS.items():
        sensitive = {} if isinstance(options["mechanism"], Retention) else {"sensitive": "job"}
        if getattr(options.get("privacy"), "adversary", "") == "any-prior" or way == "small sums":
            sensitive["domain"] = list("abcdefgh")
        manifests[way] = dn.publish(
            table(), key=bytes(32), **sensitive, **{"mechanism": "uniform", **options}
        ).manifest.to_dict()
    return manifests


def rechecked(manifest: dict[str, Any]) -> list[Check]:
    part = manifest["parts"][0]  # of lists one item, whose promise is about all of them
    stated, kind = promise_of(part["promise"], part)
    return kind.recheck(stated, part, manifest)


def broken(manifest: dict[str, Any]) -> list[str]:
    return [check.what for check in rechecked(manifest) if check.holds is False]


def more_kept(part: dict[str, Any], percent: int) -> None:
    """The same part with coins raised by so much, or where cells are hidden, its shares of values shown as they are."""
    if part["range"] is not None:
        part["range"]["keep"] = part["range"]["keep"] * (100 + percent) // 100
    if "lineups" in part:  # a coin of 18 bits decides whether a set is made around the row's value
        part["lineups"]["truth"] = min(part["lineups"]["truth"] * (100 + percent) // 100, FULL) >> 14 << 14
    for cell in part["cells"]:
        cell["keep"] = [min(keep * (100 + percent) // 100, FULL - 1) for keep in cell["keep"]]
    if not part["cells"] and part["mixture"] is not None:
        for place, row in enumerate(part["mixture"]):
            row[place] *= 1 + percent / 100


def test_every_kind_of_promise_has_a_recheck_and_is_rechecked_here() -> None:
    assert {*OWN, "nothing"} == {*KINDS, *OTHER_KINDS}
    assert {named(way) for way in WAYS} == set(KINDS), "the odds of learned releases: tests/mechanisms"


@pytest.mark.parametrize("way", WAYS)
def test_an_honest_release_is_accepted(honest: dict[str, dict[str, Any]], way: str) -> None:
    assert honest[way]["parts"][0]["promise"]["kind"] == named(way)
    assert broken(honest[way]) == []
    assert rechecked(honest[way])


@pytest.mark.parametrize("way", OF_CHANNELS)
def test_coins_that_are_raised_by_5_percent_are_rejected(honest: dict[str, dict[str, Any]], way: str) -> None:
    manifest = copy.deepcopy(honest[way])
    more_kept(manifest["parts"][0], 5)
    assert broken(manifest)


@pytest.mark.parametrize("way", [way for way in OF_CHANNELS if way != "decoys"])
def test_coins_that_are_lowered_by_5_percent_keep_the_promise(honest: dict[str, dict[str, Any]], way: str) -> None:
    manifest = copy.deepcopy(honest[way])
    more_kept(manifest["parts"][0], -5)
    assert broken(manifest) == []


LOWERED = [
    *[(way, "gamma") for way in OF_CHANNELS if named(way) == "amplification"],
    ("cells", "gammas"),
    *[(way, "rho2") for way in ("amplification", "amplification of a column", "frequency")],
    *[("frequency without a requirement", "rho2"), ("decoys", "rho2")],
    *[("items", "rho2"), ("items", "gamma"), ("items within a budget", "gamma")],
    *[("line-ups", "rho2"), ("line-ups for all", "rho2"), ("line-ups for all", "gamma")],
    *[(way, "rho2") for way in OF_CHANNELS if named(way) == "relative-prior"],
    *[("per-value", "limits"), ("per-value for all", "limits"), ("frequency of each value", "per_value")],
]


@pytest.mark.parametrize(("way", "number"), LOWERED)
def test_a_number_that_is_promised_5_percent_lower_is_rejected(
    honest: dict[str, dict[str, Any]], way: str, number: str
) -> None:
    manifest = copy.deepcopy(honest[way])
    stated = manifest["parts"][0]["promise"]
    stated[number] = lowered(stated[number])
    assert broken(manifest)


def lowered(number: Any) -> Any:
    """A number, a list of numbers, or the rho2 of each value's limit, 5 % lower."""
    if isinstance(number, str):
        return str(Fraction(number) * 95 / 100)
    return [[*item[:2], lowered(item[2])] if isinstance(item, list) else lowered(item) for item in number]


@pytest.mark.parametrize("way", [way for way in OF_CHANNELS if named(way) == "relative-prior"])
@pytest.mark.parametrize("number", ["s", "rho1"])
def test_a_relative_prior_that_is_promised_5_percent_higher_is_rejected(
    honest: dict[str, dict[str, Any]], way: str, number: str
) -> None:
    manifest = copy.deepcopy(honest[way])
    stated = manifest["parts"][0]["promise"]
    stated[number] = str(Fraction(stated[number]) * 105 / 100)
    assert broken(manifest)


def test_replacements_unlike_the_column_are_rejected(honest: dict[str, dict[str, Any]]) -> None:
    manifest = copy.deepcopy(honest["relative-prior like the column"])
    (cell,) = manifest["parts"][0]["cells"]
    cell["replace"] = cell["replace"][::-1]
    assert broken(manifest) == ["replacements of 'job'"]


def test_a_small_cell_that_keeps_too_much_is_rejected_whatever_its_gamma(honest: dict[str, dict[str, Any]]) -> None:
    manifest = copy.deepcopy(honest["cells"])
    part = manifest["parts"][0]
    for cell in part["cells"]:
        cell["keep"] = [FULL * 9 // 10] * len(cell["keep"])
    part["promise"]["gammas"] = ["1000000"] * len(part["cells"])
    assert broken(manifest) == ["posterior in cells"]
    part["promise"]["gammas"].pop()
    assert broken(manifest) == ["cell amplification"]


def test_without_a_noisy_histogram_posteriors_are_said_to_be_not_checked(honest: dict[str, dict[str, Any]]) -> None:
    manifest = copy.deepcopy(honest["frequency"])
    manifest["parts"][0]["marginal"] = None
    (check,) = rechecked(manifest)
    assert check.holds is None
    assert check.required


@pytest.mark.parametrize("kind", ["frequency", "per-value", "cells", "relative-prior"])
def test_a_promise_about_channels_does_not_hold_where_there_are_none(
    honest: dict[str, dict[str, Any]], kind: str
) -> None:
    manifest = copy.deepcopy(honest[kind])
    manifest["parts"][0]["cells"] = []
    assert broken(manifest)


@pytest.mark.parametrize(
    ("sums", "holds"),
    [
        ({"small_sums": {"error": "3/10", "below": 2, "at_least": "1/2"}}, True),
        ({"small_sums": {"error": "3/10", "below": 2, "at_least": "19/20"}}, False),
        ({"large_sums": {"error": "1/10", "above": 5000, "at_most": "1/20"}}, True),
        ({"large_sums": {"error": "1/10", "above": 50, "at_most": "1/20"}}, False),
    ],
)
def test_sums_are_recomputed_from_binomial_tails(
    honest: dict[str, dict[str, Any]], sums: dict[str, Any], holds: bool
) -> None:
    manifest = copy.deepcopy(honest["decoys"])
    part = manifest["parts"][0]
    part["marginal"] = None
    part["promise"] |= sums
    assert (broken(manifest) == []) == holds


def test_small_sums_do_not_hold_beside_a_noisy_histogram(honest: dict[str, dict[str, Any]]) -> None:
    manifest = copy.deepcopy(honest["decoys"])
    manifest["parts"][0]["promise"]["small_sums"] = {"error": "3/10", "below": 2, "at_least": "1/2"}
    assert manifest["parts"][0]["marginal"] is not None
    assert broken(manifest) == ["small sums"]


@pytest.mark.parametrize("key", range(4))
def test_coins_of_their_own_in_a_cell_pass_and_half_as_many_replacements_do_not(key: int) -> None:
    """The cell of the rarest values has a large gamma, which rare values may have: it does not cover a share of 1/2."""
    jobs = np.repeat([f"job {number}" for number in range(4)], [1211, 430, 226, 133])
    mechanism = SmallDomain(channels="fine-grain")
    release = dn.publish(
        pa.table({"job": jobs}), sensitive="job", privacy="81/100", mechanism=mechanism, key=bytes([key]) * 32
    )
    release.verify()
    manifest = release.manifest.to_dict()
    part = manifest["parts"][0]
    assert len(part["cells"]) == 2
    for cell in part["cells"]:
        cell["keep"] = [FULL - (FULL - keep) // 2 for keep in cell["keep"]]
    part["promise"]["gammas"] = ["1000000"] * len(part["cells"])
    assert broken(manifest) == ["posterior in cells"]


def held_in_cells(cells: list[dict[str, list[int]]], exempt: tuple[int, ...] = ()) -> bool:
    part = {"cells": cells, "columns": ["job"], "domain": [[value] for value in "abcd"], "marginal": None}
    stated = to_dict(promise.Cells(Fraction(1, 2), (None,) * len(cells), None, exempt))
    checks = rechecked({"parts": [{**part, "promise": stated}], "rows": N, "privacy": {"rho1": None}})
    return next(check for check in checks if check.what == "posterior in cells").holds


@pytest.mark.parametrize(
    ("keep", "exempt", "holds"),
    [
        ([FULL, FULL], (0, 1), True),  # nobody is covered: a cell that keeps everything was refused
        ([FULL, FULL], (0,), False),
        ([FULL, FULL], (), False),
        ([FULL // 2, FULL], (0, 1), True),
        ([FULL // 2, FULL], (1,), False),  # who shows the covered value has it
        ([FULL, FULL // 2], (1,), True),  # who shows it may have the other one
        ([0, 0], (), True),
        ([FULL // 100, FULL // 100], (), False),  # of two values that are covered one has half of the rows
    ],
)
def test_cells_are_held_to_what_is_covered_of_their_values(
    keep: list[int], exempt: tuple[int, ...], holds: bool
) -> None:
    own = {"values": [0, 1], "keep": keep, "replace": [FULL // 2, FULL // 2]}
    other = {"values": [2, 3], "keep": [0, 0], "replace": [FULL // 2, FULL // 2]}
    assert held_in_cells([own, other], exempt) is holds


def test_a_value_that_is_never_drawn_hides_no_others() -> None:
    """A forger could add one to every cell: any coins of the others had some frequencies, with all rows of that one."""
    cell = {"values": [0, 1, 2], "keep": [0, FULL - 9, FULL - 9], "replace": [0, FULL // 2, FULL // 2]}
    assert not held_in_cells([cell])
    assert not held_in_cells([cell], (1,))
    assert held_in_cells([cell], (0, 1, 2))


@pytest.mark.parametrize(("rho2", "holds"), [("9/10", False), ("1", True)])
def test_a_cell_of_one_value_keeps_no_bound_below_certainty(rho2: str, holds: bool) -> None:
    part = {"cells": [{"values": [0], "keep": [FULL], "replace": [FULL]}], "marginal": None, "columns": ["job"]}
    said = to_dict(promise.Cells(Fraction(rho2), (Fraction(1),)))
    checks = rechecked({"parts": [{**part, "domain": [["a"]], "promise": said}]})
    assert [check.holds for check in checks if check.what == "posterior in cells"] == [holds]


def test_line_ups_against_any_prior_must_state_how_much_they_amplify(honest: dict[str, dict[str, Any]]) -> None:
    manifest = copy.deepcopy(honest["line-ups for all"])
    manifest["parts"][0]["promise"]["gamma"] = None
    assert "gamma" in broken(manifest)
    by_frequency = copy.deepcopy(honest["line-ups"])
    by_frequency["parts"][0]["promise"]["gamma"] = None
    assert "gamma" not in broken(by_frequency)  # who knows the frequencies is held to posteriors


def test_the_belief_that_cells_are_said_to_cover_is_the_strongest_that_stays_at_rho2(
    honest: dict[str, dict[str, Any]],
) -> None:
    """By the matrix of each cell: b P[x][x] = rho2 (b P[x][x] + (1 - b) P[x][k]) for the k that shows x least often."""
    manifest = honest["cells"]
    rho2, strongest = 0.5, []
    for cell in manifest["parts"][0]["cells"]:
        keep, replace = np.array(cell["keep"]) / FULL, np.array(cell["replace"]) / FULL
        shown = np.diag(keep) + np.outer(replace, 1 - keep)
        for x in range(len(keep)):
            least = min(shown[x][k] for k in range(len(keep)) if k != x)
            strongest.append(rho2 * least / (rho2 * least + (1 - rho2) * shown[x][x]))
    (detail,) = [check.detail for check in rechecked(manifest) if check.what == "posterior in cells"]
    assert f"a belief of up to {min(strongest):.4g} stays below 0.5" in detail
