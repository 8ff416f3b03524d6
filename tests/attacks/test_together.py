"""Rows together and columns together: attackers who know the exact counts of the table, and combine all that they see.

The attackers' arithmetic is written here anew: enumeration, a random walk over the tables that the rows can have come
from, proportional fitting, and plain loops over rows.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Channel, Replace
from deniable.mechanisms.retention import Retention
from deniable.owner.together import true_among_shown

Floats = np.ndarray[Any, np.dtype[np.float64]]


def drawn(rng: np.random.Generator, p: Floats, held: Floats) -> Floats:
    """What a channel of ours shows of each row: written down here, as a matrix."""
    shown = [rng.choice(len(p), p=p[:, x]) for x in np.repeat(np.arange(len(held)), held)]
    return np.bincount(shown, minlength=len(held))


def enumerated(p: Floats, held: list[int], shown: list[int]) -> Floats:
    """The share of true ones among the rows that show a value, over all arrangements of the held values."""
    rows = [y for y, count in enumerate(shown) for _ in range(count)]
    whole, own = 0.0, np.zeros(len(held))
    for arranged in set(itertools.permutations([x for x, count in enumerate(held) for _ in range(count)])):
        weight = math.prod(p[y][x] for x, y in zip(arranged, rows, strict=True))
        whole += weight
        for x, y in zip(arranged, rows, strict=True):
            own[y] += weight * (x == y)
    return own / whole / np.maximum(shown, 1)


@pytest.mark.parametrize("seed", range(8))
def test_small_tables_are_what_enumeration_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 5))
    channel = Channel.of(list(range(m)), rng.uniform(0.05, 0.95, m), rng.uniform(0.1, 1, m))
    held = rng.multinomial(6, np.ones(m) / m)
    shown = drawn(rng, channel.matrix(), held)
    found = true_among_shown(channel, held, shown)
    assert found == pytest.approx(enumerated(channel.matrix(), held.tolist(), shown.tolist()), abs=1e-9)


def walked(p: Floats, held: Floats, shown: Floats, steps: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Metropolis: rows exchange their true values; the shares, and their errors from twenty stretches of the walk."""
    rows = np.repeat(np.arange(len(shown)), shown).tolist()
    true = np.repeat(np.arange(len(held)), held)
    rng.shuffle(true)
    true, p_list = true.tolist(), p.tolist()
    pairs, chances = rng.integers(0, len(rows), (steps, 2)).tolist(), rng.random(steps).tolist()
    own, stretches = [0] * len(shown), []
    for step, ((i, j), chance) in enumerate(zip(pairs, chances, strict=True)):
        now = p_list[rows[i]][true[i]] * p_list[rows[j]][true[j]]
        then = p_list[rows[i]][true[j]] * p_list[rows[j]][true[i]]
        if then >= now * chance:
            true[i], true[j] = true[j], true[i]
        if step % 50 == 0:
            for x, y in zip(true, rows, strict=True):
                own[y] += x == y
        if (step + 1) % (steps // 20) == 0:
            stretches.append([count / (steps // 20 // 50) for count in own])
            own = [0] * len(shown)
    kept = np.array(stretches[1:]) / np.maximum(shown, 1)
    return kept.mean(0), kept.std(0, ddof=1) / math.sqrt(len(kept))


def test_middle_sized_tables_are_what_a_random_walk_gives() -> None:
    rng = np.random.default_rng(4)
    channel = Channel.of(list(range(14)), rng.uniform(0.2, 0.6, 14))
    held = np.array([1] * 8 + [2, 3, 5, 8, 13, 21])
    shown = drawn(rng, channel.matrix(), held)
    found = true_among_shown(channel, held, shown)
    mean, error = walked(channel.matrix(), held, shown, 200_000, rng)
    assert (np.abs(found - mean) < 7 * error + 0.003)[shown > 0].all()
    alone = np.array([channel.matrix()[x, x] * held[x] / (channel.matrix()[x] @ held) for x in range(14)])
    assert (np.abs(alone - mean) > 7 * error + 0.003)[shown > 0].any()  # looked at one by one, rows say something else


def test_large_counts_are_what_proportional_fitting_gives() -> None:
    """f_x P[y][x] scaled to the margins f and g is the likeliest table, and large tables are near it."""
    rng = np.random.default_rng(5)
    channel = Channel.of(list(range(6)), rng.uniform(0.2, 0.6, 6))
    held = np.array([300, 500, 700, 900, 800, 400])
    shown = drawn(rng, channel.matrix(), held)
    table = channel.matrix() * held
    for _ in range(500):
        table *= (shown / table.sum(1))[:, None]
        table *= held / table.sum(0)
    assert true_among_shown(channel, held, shown) == pytest.approx(np.diag(table) / shown, abs=2e-3)


def figure(said: str) -> float:
    (found,) = re.findall(r"becomes (?:up to )?([\d.]+) % sure", said)
    return float(found) / 100


def test_whoever_knows_that_everyone_differs_is_right_more_often_than_promised_and_the_owner_is_told() -> None:
    """2,000 people, each with a value of their own, at most 1/3 sure: rows that nobody else shows are true 42.8 %."""
    names = [f"v{number:04d}" for number in range(2000)]
    rows = pa.table({"value": names})
    right = guesses = 0
    for key in range(12):
        release = dn.publish(
            rows,
            sensitive="value",
            privacy=dn.Privacy("1/2000", "1/3"),
            key=bytes([key]) * 32,
            shuffle=False,
            mechanism="uniform",
        )
        shown = release.table["value"].to_pylist()
        counted = dict(zip(*np.unique(shown, return_counts=True), strict=True))
        alone = {value for value, count in counted.items() if count == 1}
        guesses += len(alone)
        right += sum(held == seen for held, seen in zip(names, shown, strict=True) if seen in alone)
    share = right / guesses
    assert abs(share - 3 / 7) < 5.1 * math.sqrt(0.24 / guesses)
    assert share > 1.1 / 3  # more than a tenth above the promise, and seen to be
    (warning,) = [said for said in release.warnings if said.startswith("Rows together")]
    assert figure(warning) == pytest.approx(share, abs=0.02)
    (finding,) = [finding for finding in dn.audit(rows, release).findings if finding.what == "rows together"]
    assert finding.grade == "caution"
    assert figure(finding.detail) == figure(warning)


def test_tables_whose_values_are_frequent_are_not_warned_about() -> None:
    rng = np.random.default_rng(6)
    rows = pa.table({"value": rng.choice(list("abcdefgh"), 4000), "sex": rng.choice(["F", "M"], 4000)})
    for mechanism in ("uniform", "designed", "small-domain"):
        release = dn.publish(rows, sensitive="value", privacy=dn.Privacy(rho2="1/3"), mechanism=mechanism)
        assert not [said for said in release.warnings if "together" in said]
        findings = [finding for finding in dn.audit(rows, release).findings if finding.what == "rows together"]
        assert all(finding.grade == "info" for finding in findings)


def correlated(n: int) -> pa.Table:
    """Five columns that say nearly the same: one in ten is ill, and most of these have every mark of it."""
    rng = np.random.default_rng(7)
    ill = rng.random(n) < 0.1
    marks = {
        name: np.where(np.where(rng.random(n) < 0.95, ill, ~ill), "yes", rng.choice(["no", "never"], n))
        for name in ("hiv", "drug", "ward", "diet", "test")
    }
    return pa.table(marks)


def test_columns_that_speak_for_each_other_are_seen_together() -> None:
    """The posterior of each published row, by plain loops over the original rows."""
    rows = correlated(400)
    columns = {name: Replace(privacy=dn.Privacy("1/5", "3/5")) for name in rows.column_names}
    release = dn.publish(rows, mechanism=Retention(columns), key=bytes(32))
    chances = []
    for part in release.manifest.parts:
        domain, matrix = list(part.domain), part.channels[0].matrix()
        chances.append({(y, x): matrix[j, i] for j, y in enumerate(domain) for i, x in enumerate(domain)})
    original = [tuple(row.values()) for row in rows.to_pylist()]
    best: dict[str, float] = dict.fromkeys(rows.column_names, 0.0)
    for shown in {tuple(row.values()) for row in release.table.to_pylist()}:
        weights = [math.prod(p[y, x] for p, y, x in zip(chances, shown, held, strict=True)) for held in original]
        for place, name in enumerate(rows.column_names):
            own = sum(weight for weight, held in zip(weights, original, strict=True) if held[place] == "yes")
            best[name] = max(best[name], own / sum(weights))
    findings = [finding for finding in dn.audit(rows, release).findings if finding.what == "all columns together"]
    assert {re.findall(r"in '(\w+)'", finding.detail)[0] for finding in findings} == set(rows.column_names)
    for finding in findings:
        (name,) = re.findall(r"in '(\w+)'", finding.detail)
        assert finding.grade == "caution"
        assert figure(finding.detail) == pytest.approx(best[name], abs=6e-4)
        assert best[name] > 0.8  # 60 % are promised of each column


def test_columns_that_have_nothing_to_do_with_each_other_are_not_warned_about() -> None:
    rng = np.random.default_rng(8)
    rows = pa.table({name: rng.choice(list("abcd"), 3000) for name in ("one", "two", "three")})
    columns = {name: Replace(privacy=dn.Privacy("1/2", "3/4")) for name in rows.column_names}
    release = dn.publish(rows, mechanism=Retention(columns), key=bytes(32))
    findings = [finding for finding in dn.audit(rows, release).findings if finding.what == "all columns together"]
    assert all(finding.grade == "info" for finding in findings)


def test_two_columns_in_decoy_groups_that_say_the_same_are_reported() -> None:
    """Each column has groups of its own: who shows the same in both is believed far above a third."""
    rng = np.random.default_rng(8)
    held = rng.choice(20, 3_000)
    rows = pa.table({"one": [f"a{value}" for value in held], "other": [f"b{value}" for value in held]})
    decoys = dn.mechanisms.Decoys(c=3)
    release = dn.publish(rows, sensitive=["one", "other"], mechanism=decoys, key=bytes(32), shuffle=False)
    shown = [np.array([int(value[1:]) for value in release.table[name].to_pylist()]) for name in ("one", "other")]
    agree = shown[0] == shown[1]
    right = float((shown[0] == held)[agree].mean())
    assert right > 0.7
    found = [one for one in dn.audit(rows, release).findings if one.what == "all columns together"]
    assert [one.grade for one in found] == ["caution", "caution"]
    # P[x][x] = 1/3, and a row of z shows x with 1/3 of the share of its groups that have x: 2/19 on average.
    by_hand = (1 / 9) / (1 / 9 + 19 * (2 / 19 / 3) ** 2)
    assert abs(right - by_hand) < 5 * math.sqrt(by_hand * (1 - by_hand) / agree.sum()) + 0.03
    for one in found:
        assert by_hand - 0.02 < figure(one.detail) < by_hand + 0.15  # the worst value is above the average
