"""Published counts against the noisy histogram: no honest release fails more often than is said, forged ones do."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable_verify import Check, lineups
from deniable_verify.counts import (
    NODES,
    SCALES,
    WEIGHTS,
    Known,
    Noise,
    Sums,
    _bundles,
    _least,
    _length,
    _reached,
    _single,
    _sums,
    _whole,
    by_chance,
    channels_of,
    counts_by_rows,
    counts_check,
    estimate,
    possible_check,
)
from deniable_verify.folder import Rows
from deniable_verify.rows import _as_truth, tally

Part = dict[str, Any]
FULL = 2**32
Q = math.exp(-0.5)
VARIANCE = 2 * Q / (1 - Q) ** 2


def kept(coin: float, counts: tuple[int, ...]) -> Part:
    """A column of which values are kept by one coin, and replaced by any other."""
    m = len(counts)
    weights = np.full(m, FULL // m)
    weights[0] += FULL - weights.sum()
    cell = {"values": list(range(m)), "keep": [int(coin * FULL)] * m, "replace": weights.tolist()}
    return {
        "domain": [[f"v{place}"] for place in range(m)],
        "cells": [cell],
        "cells_published": False,
        "marginal": marginal(counts),
        "mixture": None,
        "groups": None,
        "swapped": None,
    }


def marginal(counts: tuple[int, ...], pooled: int = 1) -> Part:
    return {"counts": list(counts), "epsilon": 0.5, "variance": pooled * VARIANCE}


def checked(part: Part, shown: list[float], often: float = math.log(1e9)) -> Check:
    (check,) = counts_check(part, np.array(shown, dtype=np.float64), by_person=False, often=often)
    return check


def binomial(n: int, chance: float) -> np.ndarray:
    logs = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)]
    return np.exp([one + k * math.log(chance) + (n - k) * math.log1p(-chance) for k, one in enumerate(logs)])


@pytest.mark.parametrize("coin", [0.9, 0.99])
def test_an_honest_release_fails_less_often_than_is_said(coin: float) -> None:
    """26 and 474 rows of two values, all noise in the first count and all rows, summed up: 6 in a million failed."""
    rare, rows = 26, 500
    chances = np.convolve(binomial(rare, coin + (1 - coin) / 2), binomial(rows - rare, (1 - coin) / 2))
    looked_at = [y for y in range(rows + 1) if chances[y] > 1e-11]
    failed = 0.0
    for z in range(-45, 46):
        part = kept(coin, (rare + z, rows - rare))
        wrong = sum(chances[y] for y in looked_at if not checked(part, [y, rows - y]).holds)
        failed += math.tanh(0.25) * Q ** abs(z) * float(wrong)
    assert failed < 1e-9


@pytest.mark.parametrize(("m", "pooled"), [(2, 1), (50, 1), (5, 4)])
def test_noise_stays_within_what_is_said_of_it(m: int, pooled: int) -> None:
    rng, often = np.random.default_rng(m), math.log(20)
    noise = Noise.of(marginal((0,) * m, pooled), often)
    shape = (40_000, pooled, m)
    z = (rng.geometric(1 - Q, shape) - rng.geometric(1 - Q, shape)).sum(axis=1)
    lengths = np.sqrt((z**2).sum(axis=1))
    for rarity, length in noise.shells:
        assert (lengths > length).mean() < math.exp(-rarity)
    worst = [np.abs(z).max(axis=1) > noise.single, lengths > noise.shells[-1][1], np.abs(z.sum(axis=1)) > noise.total]
    assert all(0 < one.mean() < 0.05 for one in worst), "bounds that hold, and are reached"


def test_sums_stay_within_what_is_said_of_them() -> None:
    """Bernstein's inequality, with the variance known and seen: rare rows, whose sums are far from normal."""
    rng, rows, chance = np.random.default_rng(1), 400, 0.01
    sums = rng.binomial(rows, chance, 200_000)
    known = by_chance(rows * chance * (1 - chance), 1.0, math.log(100))
    assert 0 < (sums - rows * chance > known).mean() < 0.01
    seen = by_chance(sums, 1.0, math.log(100), seen=True)
    assert (np.abs(sums - rows * chance) > seen).mean() < 0.02


def published(mechanism: str, rows: int = 20_000, key: int = 1) -> tuple[Part, np.ndarray]:
    shares = 1 / np.arange(2, 12)
    jobs = np.random.default_rng(key).choice(10, rows, p=shares / shares.sum())
    privacy = None if mechanism.startswith("decoys") else dn.Privacy(rho2="2/3")
    options = {"mechanism": mechanism, "privacy": privacy, "key": bytes([key]) * 32}
    release = dn.publish(pa.table({"job": np.array(list("abcdefghij"))[jobs]}), sensitive="job", **options)
    raw, table = release.manifest.to_dict(), release.table
    (shown,) = tally(Rows(table.schema, table.num_rows, table=table), raw).shown
    return raw["parts"][0], shown[:-1]


SEEN = ["uniform", "fine-grain", "designed", "identity", "pram", "small-domain", "lineup", "decoys:c=2"]


@pytest.mark.parametrize("mechanism", SEEN)
def test_two_counts_that_are_exchanged_are_seen(mechanism: str) -> None:
    """Of cells and line-ups the sum of all counts alone was compared."""
    part, shown = published(mechanism)
    assert checked(part, shown.tolist()).holds
    counts = part["marginal"]["counts"]
    counts[0], counts[5] = counts[5], counts[0]
    assert "other rows" in checked(part, shown.tolist()).detail


@pytest.mark.parametrize("mechanism", ["small-domain", "lineup"])
def test_rows_that_are_moved_from_one_value_to_another_are_seen(mechanism: str) -> None:
    """A tenth of all rows is given the view that fewest rows have."""
    part, shown = published(mechanism)
    moved = np.floor(shown * 0.1)
    forged = shown - moved
    forged[int(np.argmin(shown))] += moved.sum()
    assert not checked(part, forged.tolist()).holds


def test_coins_that_are_stated_a_fifth_larger_are_seen() -> None:
    """From 60,000 rows on. Inside cells values are almost equally frequent, and line-ups follow the frequencies: there
    other coins make the same counts."""
    part, shown = published("uniform", 60_000)
    larger = copy.deepcopy(part)
    for cell in larger["cells"]:
        cell["keep"] = [keep * 6 // 5 for keep in cell["keep"]]
    assert checked(part, shown.tolist()).holds
    assert not checked(larger, shown.tolist()).holds


def test_rows_that_no_table_has_are_seen_without_a_histogram() -> None:
    """With coins of 1/5 every value is shown by 8 % of the rows at the least."""
    part = {**kept(0.2, (0,) * 10), "marginal": None}
    truth = np.array([8_000, 1_000, 200, 200, 200, 200, 100, 50, 50, 0.0])
    honest = np.round(0.2 * truth + 0.08 * truth.sum())
    assert [check.holds for shown in (honest, truth) for check in possible_check(part, shown)] == [True, False]


def test_many_values_are_compared_in_bundles_and_every_two_come_apart() -> None:
    rng, m = np.random.default_rng(3), 1_000
    truth = rng.integers(50, 400, m)
    truth[[3, 259]] = 20, 4_000  # in one bundle by one of the two ways
    part = kept(0.8, tuple((truth + rng.geometric(1 - Q, m) - rng.geometric(1 - Q, m)).tolist()))
    keeps = rng.binomial(truth, 0.8)
    shown = keeps + rng.multinomial(int((truth - keeps).sum()), np.full(m, 1 / m))
    assert checked(part, shown.tolist()).holds
    counts = part["marginal"]["counts"]
    counts[3], counts[259] = counts[259], counts[3]
    assert not checked(part, shown.tolist()).holds


# -- Sums, their variances and the noise, against what defines them ----------------------------------------------------


WEIGHED = np.array([[1.0, 0, 0], [0, 2, -1], [0.5, 1, 3]])
TOLD = Known(np.array([40.0, 25, 10]), np.array([44.0, 29, 14]), Noise(1, 1, ((0.0, 1.0),)))
OBSERVED = np.array([30.0, 30, 15])


def matrix(cell: Part) -> np.ndarray:
    """P[y][x]."""
    keep, replace = np.array(cell["keep"]) / FULL, np.array(cell["replace"]) / FULL
    return np.diag(keep) + np.outer(replace, 1 - keep)


def uneven() -> Part:
    """Coins and replacements that differ, in the order of another domain."""
    part = kept(0.5, (40, 25, 10))
    part["cells"][0] |= {"values": [2, 0, 1], "keep": [FULL // 2, FULL // 4, FULL // 8]}
    part["cells"][0]["replace"] = [FULL // 2, FULL // 4, FULL // 4]
    return part


def in_order(part: Part) -> np.ndarray:
    """The same channel, by places in the domain."""
    (cell,), made = part["cells"], np.zeros((3, 3))
    made[np.ix_(cell["values"], cell["values"])] = matrix(cell)
    return made


def same_sums(sums: Sums, shown: np.ndarray, p: np.ndarray, weights: np.ndarray, known: Known) -> None:
    """Every number of sums in which a row that shows y counts weights[y], of which values show y with p[y, x]."""
    means = weights @ p
    variances = (weights**2 @ p - means**2) @ known.most
    centred = means - means.mean(axis=1, keepdims=True)
    assert sums.off == pytest.approx(weights @ shown - means @ known.counts)
    assert sums.variance == pytest.approx(variances, abs=1e-9)
    assert sums.width == pytest.approx(np.ptp(weights, axis=1))
    assert sums.carries == pytest.approx(np.sqrt((centred**2).sum(axis=1)))


def test_sums_of_published_counts_and_of_estimates() -> None:
    part = uneven()
    p = in_order(part)
    counted, estimated = _sums(part, WEIGHED, OBSERVED, TOLD)
    same_sums(counted, OBSERVED, p, WEIGHED, TOLD)
    same_sums(estimated, OBSERVED, p, WEIGHED @ np.linalg.inv(p), TOLD)


def test_sums_by_a_matrix_of_the_whole_table() -> None:
    part = uneven() | {"cells": [], "mixture": in_order(uneven()).tolist()}
    p = np.array(part["mixture"])
    counted, estimated = _sums(part, WEIGHED, OBSERVED, TOLD)
    same_sums(counted, OBSERVED, p, WEIGHED, TOLD)
    same_sums(estimated, OBSERVED, p, WEIGHED @ np.linalg.inv(p), TOLD)
    flat = part | {"mixture": [[1 / 3] * 3] * 3}
    assert len(list(_sums(flat, WEIGHED, OBSERVED, TOLD))) == 1  # nothing to invert


def test_sums_of_groups_and_of_swapped_values_have_the_means_of_the_table() -> None:
    """Of groups a count varies by itself at most, of swapped values by nothing; neither is inverted."""
    for change, spread in (({"cells": [], "groups": {"c": 2}}, 1.0), ({"swapped": 75}, 0.0)):
        (sums,) = _sums(uneven() | change, WEIGHED, OBSERVED, TOLD)
        centred = WEIGHED - WEIGHED.mean(axis=1, keepdims=True)
        assert sums.off == pytest.approx(WEIGHED @ (OBSERVED - TOLD.counts))
        assert sums.carries == pytest.approx(np.sqrt((centred**2).sum(axis=1)))
        assert sums.variance == pytest.approx(spread * (WEIGHED**2 @ TOLD.most))
        assert sums.width == pytest.approx(spread * np.ptp(WEIGHED, axis=1))


def test_a_channel_that_keeps_nothing_of_a_value_is_not_inverted() -> None:
    part = uneven()
    part["cells"][0]["keep"][1] = 0
    assert len(list(_sums(part, WEIGHED, OBSERVED, TOLD))) == 1


def test_sums_of_cells_are_bounded_by_every_way_to_put_values_into_them() -> None:
    """Two cells of two and three values; the rows of each cell are known, and those of each value."""
    cells = [
        {"values": [0, 2], "keep": [FULL // 2, FULL // 4], "replace": [FULL // 2, FULL // 2]},
        {"values": [2, 0, 1], "keep": [FULL // 2, FULL // 4, FULL // 8], "replace": [FULL // 2, FULL // 4, FULL // 4]},
    ]
    part = uneven() | {"cells": cells, "cells_published": True}
    shown = np.array([12.0, 20, 10, 30, 3])
    (sums,) = _sums(part, WEIGHED, shown, TOLD)
    seen, worst = np.zeros(3), np.zeros(3)
    back = [WEIGHED[:, cell["values"]] @ np.linalg.inv(matrix(cell)) for cell in cells]
    for weights, o in zip(back, (shown[:2], shown[2:]), strict=True):
        seen += weights @ o
    assert sums.off == pytest.approx(seen - WEIGHED @ TOLD.counts)
    assert sums.width == pytest.approx(np.max([np.ptp(weights, axis=1) for weights in back], axis=0))
    varies = [w**2 @ matrix(cell) - WEIGHED[:, cell["values"]] ** 2 for w, cell in zip(back, cells, strict=True)]
    for first in range(33):  # rows of value 0 in the first cell, of 32; the others are of value 2
        inside = np.array([first, 32 - first])
        rest = np.array([max(14 - inside[1], 0), min(44 - first, 43), 29])
        rest[2] = max(43 - rest[0] - rest[1], 0)
        if inside[1] <= 14 and rest.sum() == 43:
            worst = np.maximum(worst, varies[0] @ inside + varies[1] @ rest)
    assert (sums.variance >= worst - 1e-9).all()
    assert (sums.variance <= 1.5 * worst + 1e-9).all()


@pytest.mark.parametrize(
    "design",
    [
        {"values": 3, "size": 2, "truth": FULL // 2, "orders": 2, "seed": 1},
        {"arcs": [FULL // 2, FULL // 4, FULL // 4], "truth": FULL // 4, "orders": 2, "seed": 1},
    ],
)
def test_sums_of_sets(design: Part) -> None:
    """A row adds the weights of the members of its set."""
    lines = list(lineups.lines(design))
    coin, p = design["truth"] / FULL, np.zeros((len(lines), 3))
    members = np.zeros((3, len(lines)))
    for number, (inside, blind, draws) in enumerate(lines):
        p[number] = (1 - coin) * blind
        p[number, list(inside)] += coin * np.array(draws)
        members[list(inside), number] = 1
    p /= 2**40 * design["orders"]
    assert p.sum(axis=0) == pytest.approx(np.ones(3))
    shown = np.arange(1.0, len(lines) + 1)
    (sums,) = _sums({"lineups": design}, WEIGHED, shown, TOLD)
    same_sums(sums, shown, p, WEIGHED @ members, TOLD)
    weights = np.vstack([np.eye(3), [1, 0, -1]])
    counted, estimated = _sums({"lineups": design}, weights, shown, TOLD)
    same_sums(counted, shown, p, weights @ members, TOLD)
    same_sums(estimated, shown, p, weights @ np.linalg.inv(members @ p) @ members, TOLD)


@pytest.mark.parametrize(("count", "epsilon", "often"), [(1, 0.5, 3.0), (7, 2.0, 20.0)])
def test_the_reach_of_noise_is_the_least_that_any_moment_gives(count: int, epsilon: float, often: float) -> None:
    z = np.arange(-20_000, 20_001)
    chances = math.log(math.tanh(epsilon / 2)) - epsilon * np.abs(z)
    t = epsilon * np.arange(1, 200) / 200
    moments = np.array([np.logaddexp.reduce(chances + one * z) for one in t])
    assert _reached(count, epsilon, often) == pytest.approx(((count * moments + often) / t).min(), rel=1e-6)
    assert _single(9, count, epsilon, often) == math.floor(_reached(count, epsilon, often + math.log(18))) + 1
    short = np.abs(z) <= 40
    squares = epsilon / 40 * np.arange(1, 200) / 200
    moments = np.array([np.logaddexp.reduce(chances[short] + one * z[short] ** 2) for one in squares])
    length = math.sqrt(((9 * np.maximum(moments, 0) + often) / squares).min())
    assert _length(9, 1, epsilon, 40, often) == pytest.approx(length, rel=1e-6)


def test_shells_of_noise_share_its_rarity() -> None:
    noise = Noise.of(marginal((0,) * 5), math.log(50), 3.0)
    apart = math.log(100)
    assert [rarity for rarity, _ in noise.shells] == pytest.approx(np.arange(8) * apart / 8)
    for (_, length), rarity in zip(noise.shells, np.arange(1, 9) * apart / 8, strict=True):
        single = _single(5, 1, 0.5, rarity + math.log(2))
        assert length == pytest.approx(_length(5, 1, 0.5, single, rarity + math.log(2)) + 3)
    assert noise.single == _single(5, 1, 0.5, apart + math.log(2))
    assert noise.total == pytest.approx(_reached(5, 0.5, apart + math.log(2)) + 3)


def test_estimates_and_what_a_row_adds_to_them() -> None:
    """P^-1 o; the sum of squares of its columns over the rows; the largest of its entries that differ."""
    (channel,) = channels_of(uneven())
    inverse = np.linalg.inv(matrix(uneven()["cells"][0]))
    estimates, squares, width = estimate(channel, OBSERVED)
    assert estimates == pytest.approx(inverse @ OBSERVED)
    assert squares == pytest.approx(inverse**2 @ OBSERVED)
    diagonal = 1 / channel.keep
    assert width == pytest.approx(diagonal - (inverse - np.diag(diagonal)).min(axis=1))


@pytest.mark.parametrize(("m", "bundles"), [(257, 256), (2**16, 256), (2**17, 128), (2**20, 16), (2**24, 16)])
def test_bundles(m: int, bundles: int) -> None:
    assert _bundles(m) == bundles


def test_evidence_of_all_values_together_is_an_average_over_alternatives() -> None:
    """Without noise: the mean over scales of products over values of the mean of exp(u o - e (e^u - 1))."""
    part = uneven()
    whole, counts = _whole(part), np.array([40.0, 25, 10])
    assert whole is not None
    expected, chances = in_order(part) @ counts, WEIGHTS / WEIGHTS.sum()
    by_scale = []
    for scale in SCALES:
        u = np.sqrt(scale / expected)[:, None] * NODES
        each = (chances * np.exp(u * OBSERVED[:, None] - expected[:, None] * np.expm1(u))).sum(axis=1)
        by_scale.append(each.prod())
    assert _least(whole, OBSERVED, counts, 0.0) == pytest.approx(math.log(np.mean(by_scale)))


@pytest.mark.parametrize("length", [1.0, 5.0])
def test_noise_of_a_length_takes_no_more_evidence_away_than_it_can(length: float) -> None:
    """No counts within the length of the noisy ones leave less than is said."""
    whole, counts = _whole(uneven()), np.array([40.0, 25, 10])
    assert whole is not None
    said, rng = _least(whole, OBSERVED * 2, counts * 2, length), np.random.default_rng(1)
    found = []
    for _ in range(200):
        off = rng.normal(size=3)
        off -= off.mean()
        off *= length / np.linalg.norm(off)
        found.append(_least(whole, OBSERVED * 2, counts * 2 + off, 0.0))
    assert said <= min(found) + 1e-9
    assert said > min(found) - 0.2


def test_rows_of_a_value_that_is_never_kept_tell_no_counts() -> None:
    part = uneven()
    part["cells"][0]["keep"][1] = 0
    counts, slack = counts_by_rows(part, OBSERVED)
    assert counts.tolist() == [0, 0, 0]
    assert slack == math.inf


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_public_column_is_the_truth_of_as_many_rows_as_show_it_so(share: float) -> None:
    part, rows = uneven(), np.array([30_000.0, 20_000, 10_000])
    p, table = in_order(part), np.zeros((4, 4))
    shown = p @ (rows / rows.sum())
    for value in range(3):  # rows whose public value is the true one, and rows of which it says nothing
        table[value, :3] = rows[value] * (share * p[:, value] + (1 - share) * shown)
    assert _as_truth(part, table) == pytest.approx(share, abs=1e-9)
    assert _as_truth(part, table / 1_000) is None  # too few rows to tell
    assert _as_truth(part | {"cells": part["cells"] * 2}, table) is None
    never = copy.deepcopy(part)
    never["cells"][0]["keep"][0] = 0
    assert _as_truth(never, table) is None
