"""Published counts against the noisy histogram: no honest release fails more often than is said, forged ones do."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable_verify import Check
from deniable_verify.counts import Noise, by_chance, counts_check, possible_check
from deniable_verify.folder import Rows
from deniable_verify.rows import tally

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
