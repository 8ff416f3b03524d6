"""Every kind of promise has a recheck, which accepts an honest release and sees 5 % more than was promised."""

from __future__ import annotations

import copy
import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core import promise
from deniable.core.promise import KINDS, OTHER_KINDS, to_dict
from deniable.mechanisms import SmallDomain
from deniable.mechanisms.retention import Retention
from deniable_verify import Check, lineups
from deniable_verify.coverage import _pays_for_histogram, at_least, noise_slack, surest_at_least
from deniable_verify.lineups import _draws_before
from deniable_verify.numbers import (
    FULL,
    belief_after,
    factor,
    fraction,
    grid,
    is_within,
    percent,
    points,
    range_amplification,
    rounded_up,
)
from deniable_verify.promises import OWN, promise_of
from deniable_verify.promises.cells import _beliefs
from deniable_verify.promises.decoys import miss
from deniable_verify.promises.items import row_amplification
from deniable_verify.promises.relative_prior import swapped_coin

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


# -- The numbers themselves, against what defines them -----------------------------------------------------------------


def test_whether_odds_of_an_epsilon_stay_within_a_factor_is_decided_to_the_last_digit() -> None:
    with localcontext() as context:
        context.prec = 120
        for epsilon in (Fraction(1, 1000), Fraction(1), Fraction(7, 3), Fraction(40), Fraction(600)):
            exact = (Decimal(epsilon.numerator) / epsilon.denominator).exp()
            for digits in (3, 17, 60):
                below = Fraction(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits), rounding=ROUND_FLOOR))
                step = Fraction(10) ** (exact.adjusted() - digits)
                assert not is_within(epsilon, below)
                assert is_within(epsilon, below + step)
    assert is_within(Fraction(0), Fraction(1))
    assert is_within(Fraction(-1), Fraction(1))
    assert not is_within(Fraction(0), Fraction(99, 100))
    assert not is_within(Fraction(601), Fraction(10) ** 299)


@pytest.mark.parametrize(
    ("function", "numbers", "result"),
    [
        (percent, [Fraction(1)], "100 %"),
        (percent, [Fraction(2)], "200 %"),
        (percent, [1 / 3], "33.3 %"),
        (percent, [1 / 3, 6], "33.3333 %"),
        (percent, [Fraction(99_999, 100_000)], "99.999 %"),
        (percent, [0.55, 1], "60 %"),
        (percent, [0.95, 1], "95 %"),
        (percent, [1e-7], "1e-05 %"),
        (factor, [Fraction(1)], "1"),
        (factor, [Fraction(1001, 1000)], "1.01"),
        (factor, [Fraction(10, 3)], "3.34"),
        (factor, [Fraction(100, 3)], "33.4"),
        (factor, [Fraction(1001)], "1,010"),
        (rounded_up, [Fraction(1, 3), 2], Fraction(34, 100)),
        (rounded_up, [Fraction(1, 2), 3], Fraction(1, 2)),
        (rounded_up, [Fraction(1, 900), 2], Fraction(12, 10_000)),
        (rounded_up, [Fraction(1, 10), 1], Fraction(1, 10)),
        (rounded_up, [Fraction(0), 3], 0),
        (belief_after, [Fraction(1, 4), Fraction(3)], Fraction(1, 2)),
        (range_amplification, [FULL, 3], None),
        (range_amplification, [FULL // 4, 3], 1 + Fraction(FULL, 3 * (FULL // 3))),
        (swapped_coin, [FULL // 2, 1], 1),
        (swapped_coin, [FULL // 2, 2], Fraction(3, 4)),
        (swapped_coin, [FULL // 2, 3], Fraction(11, 16)),
        (swapped_coin, [FULL // 2, 4097], Fraction(4097, 8192)),
        (swapped_coin, [FULL, 2], 1),
        (grid, [{"kind": "number", "low": 0, "high": 1, "step": 0.1}], (0, Fraction(1, 10), 11)),
        (grid, [{"kind": "date", "low": "2024-02-28", "high": "2024-03-01", "step": 1}], (738_944, 1, 3)),
        (points, [{"kind": "integer", "low": 1, "high": 9, "step": 2, "missing": True}], 6),
    ],
)
def test_numbers_come_out_as_they_are_defined(function: Any, numbers: list[Any], result: Any) -> None:
    assert function(*numbers) == result


@pytest.mark.parametrize("written", ["9" * 300, "-7/8", "0" * 2_000, "1/1"])
def test_fractions_are_read(written: str) -> None:
    assert fraction(written) == Fraction(written)


@pytest.mark.parametrize("written", ["1" + "0" * 300, "-1" + "0" * 300, "0" * 2_001, "1.5", " 1", "1e9", 1, None])
def test_other_texts_are_no_fractions(written: Any) -> None:
    with pytest.raises(ValueError, match="no fraction"):
        fraction(written)


KEEP, REPLACE = [FULL // 2, FULL // 4, FULL // 8], [FULL // 4, FULL // 2, FULL // 4]
CELL = {"values": [0, 1, 2], "keep": KEEP, "replace": REPLACE}
SHOWN = [
    [Fraction(k, FULL) * (x == y) + Fraction((FULL - k) * w, FULL**2) for x, k in enumerate(KEEP)]
    for y, w in enumerate(REPLACE)
]


@pytest.mark.parametrize("counts", [[50, 30, 20], [3, 90, 7], [0, 1, 40], [0, 0, 0]])
def test_a_value_is_believed_as_much_as_the_fewest_of_its_rows_and_the_most_of_all_others_say(
    counts: list[int],
) -> None:
    part = {"cells": [CELL], "marginal": {"counts": counts, "epsilon": 7.0}}
    assert noise_slack(part) == 2
    for x, belief in surest_at_least(part).items():
        fewest = [max(count - 2, 0) if y == x else count + 2 for y, count in enumerate(counts)]
        seen = sum(shown * count for shown, count in zip(SHOWN[x], fewest, strict=True))
        assert belief == SHOWN[x][x] * fewest[x] / seen


@pytest.mark.parametrize("inside", [[True, False, False], [False, True, True], [False, False, True]])
def test_of_several_values_together_the_surest_row_is_taken(inside: list[bool]) -> None:
    counts = [50, 30, 20]
    beliefs = [
        sum(p * f for p, f, own in zip(row, counts, inside, strict=True) if own)
        / sum(p * f for p, f in zip(row, counts, strict=True))
        for row in SHOWN
    ]
    assert at_least(CELL, counts, inside, 0) == max(beliefs)
    # Two rows more or less of each count, and four of the three together, to the disadvantage of what is inside
    replaced = [(f * (FULL - k), own) for f, k, own in zip(counts, KEEP, inside, strict=True)]
    mine = sum(one for one, own in replaced if own) - 4 * FULL
    others = sum(one for one, own in replaced if not own) + 4 * FULL
    least = []
    for f, k, w, own in zip(counts, KEEP, REPLACE, inside, strict=True):
        kept, missed = ((f - 2) * k * FULL, 0) if own else (0, (f + 2) * k * FULL)
        least.append(Fraction(kept + w * mine, kept + missed + w * (mine + others)))
    assert at_least(CELL, counts, inside, 2) == max(least) < max(beliefs)


DESIGNS = [
    {"values": 5, "size": 2, "truth": FULL // 2, "orders": 2, "seed": 1},
    {"arcs": [FULL // 2, FULL // 2, FULL // 4, FULL // 4, FULL // 2], "truth": FULL // 4, "orders": 2, "seed": 1},
]


def likelihoods(design: dict[str, Any], line: Any) -> list[Fraction]:
    """P(S | x) of a set for every value, up to one factor."""
    (members, blind, draws), coin = line, Fraction(design["truth"], FULL)
    return [(1 - coin) * blind + coin * dict(zip(members, draws, strict=True)).get(x, 0) for x in range(5)]


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("slack", [0, 3])
def test_what_sets_tell_at_the_least_is_what_their_draws_say(design: dict[str, Any], slack: int) -> None:
    """P(S | x) of every set by its draws; the belief in a value inside it, and what it leaves of one outside."""
    counts, coin = [40, 2, 30, 20, 10], Fraction(design["truth"], FULL)
    assert lineups.is_design(design, 5)
    surest, left = [Fraction(0)] * 5, [1 - coin]
    for members, blind, draws in lineups.lines(design):
        likely = likelihoods(design, (members, blind, draws))
        for x in range(5):
            fewest = [max(f - slack, 0) if y == x else f + slack for y, f in enumerate(counts)]
            seen = sum(f * p for f, p in zip(fewest, likely, strict=True))
            if x in members:
                surest[x] = max(surest[x], fewest[x] * likely[x] / seen)
        inside = sum(max(counts[x] - slack, 0) * coin * own for x, own in zip(members, draws, strict=True))
        outside = (1 - coin) * blind * sum(f + slack for f in counts)
        left.append(outside / (outside + inside))
    assert lineups.surest_at_least(design, counts, slack) == surest
    if not slack:
        shown = [likelihoods(design, line) for line in lineups.lines(design)]
        sets = [[f * p / sum(map(mul, counts, one)) for f, p in zip(counts, one, strict=True)] for one in shown]
        assert lineups.surest(design, counts) == [max(sure) for sure in zip(*sets, strict=True)]
    assert lineups.stays_at_most(design, counts, slack) == min(left[1:])


@pytest.mark.parametrize(
    "change",
    [
        {"truth": 0},
        {"truth": FULL + FULL // 2},
        {"truth": FULL // 2 + 1},
        {"orders": 3},
        {"orders": 0},
        {"size": 0},
        {"size": 5},
        {"values": 6},
        {"values": 5, "orders": 128},
    ],
)
def test_integers_that_no_coin_or_order_can_have_are_no_design(change: dict[str, int]) -> None:
    assert lineups.is_design({**DESIGNS[0], "truth": FULL, "orders": 64}, 5)
    assert lineups.is_design({**DESIGNS[0], "truth": 2**14, "orders": 1, "size": 1}, 5)
    assert not lineups.is_design(DESIGNS[0] | change, 5)


@pytest.mark.parametrize(
    "arcs",
    [
        [FULL // 2] * 4,
        [FULL // 2, FULL // 2, FULL // 4, FULL // 4, FULL // 4],
        [0, FULL, FULL // 2, FULL // 4, FULL // 4],
        [FULL * 5 // 4, FULL // 4, FULL // 4, FULL // 8, FULL // 8],
        [FULL // 2 + 1, FULL // 2 - 1, FULL // 4, FULL // 4, FULL // 2],
        [FULL] * 5,
    ],
)
def test_arcs_that_make_no_whole_sets_are_no_design(arcs: list[int]) -> None:
    assert lineups.is_design(DESIGNS[1], 5)
    assert lineups.is_design(DESIGNS[1] | {"arcs": [FULL, FULL // 4, FULL // 4, FULL // 4, FULL // 4]}, 5)
    assert not lineups.is_design(DESIGNS[1] | {"arcs": arcs}, 5)


@pytest.mark.parametrize(("rows", "c"), [(4, 3), (10, 100), (334, 3)])
@pytest.mark.parametrize("error", [Fraction(1, 2), Fraction(1, 10), Fraction(1)])
@pytest.mark.parametrize("strictly", [True, False])
def test_sums_are_missed_as_often_as_a_binomial_has_tails(rows: int, c: int, error: Fraction, strictly: bool) -> None:
    n, missed = c * rows, Fraction(0)
    for k in range(n + 1):
        if abs(k - rows) > error * rows or (not strictly and abs(k - rows) == error * rows):
            missed += Fraction(math.comb(n, k) * (c - 1) ** (n - k), c**n)
    found = miss(rows, c, error, strictly=strictly)
    assert found == missed if n <= 1000 else abs(found - missed) < Fraction(1, 10**12)


@pytest.mark.parametrize("below", [1, 2, 3, 4])
def test_small_sums_are_held_to_the_count_that_is_missed_least(honest: dict[str, dict[str, Any]], below: int) -> None:
    missed = [miss(rows, 4, Fraction(3, 10), strictly=True) for rows in range(1, 6)]
    least = min(missed[:below])
    for chance, holds in ((least, True), (least * Fraction(1001, 1000), False)):
        manifest = copy.deepcopy(honest["decoys"])
        manifest["parts"][0]["marginal"] = None
        manifest["parts"][0]["promise"]["small_sums"] = {"error": "3/10", "below": below, "at_least": str(chance)}
        assert (broken(manifest) == []) is holds


def test_large_sums_are_held_to_their_chance(honest: dict[str, dict[str, Any]]) -> None:
    reached = miss(50, 4, Fraction(1, 10), strictly=False)
    for chance, holds in ((reached, True), (reached * Fraction(999, 1000), False)):
        manifest = copy.deepcopy(honest["decoys"])
        manifest["parts"][0]["promise"]["large_sums"] = {"error": "1/10", "above": 50, "at_most": str(chance)}
        assert (broken(manifest) == []) is holds


@pytest.mark.parametrize("rho2", [Fraction(1, 2), Fraction(1, 5)])
def test_the_strongest_belief_in_a_value_is_the_one_that_its_own_rows_raise_to_the_bound(rho2: Fraction) -> None:
    for x, belief in enumerate(_beliefs(CELL, rho2)):
        least = min(SHOWN[x][k] for k in range(3) if k != x)
        assert belief * SHOWN[x][x] == rho2 * (belief * SHOWN[x][x] + (1 - belief) * least)
    assert _beliefs({"keep": [FULL], "replace": [FULL]}, rho2) == [rho2]
    assert _beliefs({"keep": [FULL, FULL], "replace": [FULL // 2, FULL // 2]}, rho2) == [0, 0]


@pytest.mark.parametrize(
    ("rho1", "rho2", "gamma", "epsilon", "pays"),
    [
        ("1/4", "9/10", "100", 1.09, True),  # odds grow by 27 at most, and rows take 3 of them: e^(2 epsilon) <= 9
        ("1/4", "9/10", "100", 1.10, False),
        ("1/4", "9/10", "9", 0.54, True),
        ("1/4", "9/10", "9", 0.56, False),
        ("1/4", "1", "9", 0.54, True),
        ("1/4", "1", "9", 0.56, False),
        (None, "9/10", "100", 0.1, False),
        ("1/4", "9/10", None, 0.1, False),
    ],
)
def test_rows_and_the_noisy_histogram_stay_within_what_is_stated_together(
    rho1: str | None, rho2: str, gamma: str | None, epsilon: float, pays: bool
) -> None:
    stated = {"rho1": rho1, "rho2": rho2, "gamma": gamma}
    cell = {"values": [0, 1], "keep": [FULL // 2] * 2, "replace": [FULL // 2] * 2}
    part = {"swapped": None, "range": None, "cells": [cell], "marginal": {"epsilon": epsilon}}
    assert _pays_for_histogram(stated, part) is pays
    assert not _pays_for_histogram(stated, part | {"swapped": 9})


def test_draws_before_an_offset_are_counted_up() -> None:
    offset, arc = np.arange(5), np.full(5, 3)
    assert _draws_before(offset, arc).tolist() == [0, -(-(2**40) // 3), -(-(2**41) // 3), 2**40, 2**40]


def test_an_item_that_nobody_is_ever_shown_with_tells_nothing() -> None:
    never = {"cells": [{"keep": [FULL // 2, 0], "replace": [FULL, 0]}], "item": {"most": 1}}
    assert row_amplification([never]) == 1
    always = {"cells": [{"keep": [FULL, FULL // 2], "replace": [FULL // 2, FULL // 2]}], "item": {"most": 1}}
    assert row_amplification([always]) is None


@pytest.mark.parametrize(("more", "holds"), [(Fraction(0), True), (Fraction(-1, 10**9), False)])
@pytest.mark.parametrize("kind", ["amplification", "frequency"])
def test_a_belief_may_be_as_sure_as_is_promised_and_no_surer(
    honest: dict[str, dict[str, Any]], kind: str, more: Fraction, holds: bool
) -> None:
    manifest = copy.deepcopy(honest[kind])
    part = manifest["parts"][0]
    part["promise"] |= {"rho1": None if kind == "frequency" else "1/1000", "above": []}
    part["promise"]["rho2"] = str(max(surest_at_least(part).values()) + more)
    assert (broken(manifest) == []) is holds
