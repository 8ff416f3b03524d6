"""Perturbed generalization: what one perturbed row of a box says of a person, what is published, and how it answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channel import Channel
from deniable.core.errors import (
    ColumnError,
    OptionError,
    QuestionError,
    RequirementError,
    TableError,
    VerificationError,
)
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.core.promise import OneOfBox
from deniable.engines.randomness import Keystream, Secret
from deniable.mechanisms import MECHANISMS, PerturbedGeneralization, mechanism_named
from deniable.owner.samples import of_a_person
from deniable.rivals.generalize.boxes import cells_of
from deniable.rivals.perturbed_generalization.estimate import BoxSample
from deniable.rivals.perturbed_generalization.mechanism import one_of_each, perturbed, row_amplification

COUNTS = Histogram(tuple("abcdefgh"), np.array([3001, 2003, 1499, 1201, 1009, 701, 411, 175]))
PRIVACY = Privacy("1/4", "1/2")
N = 3000


def people() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "age": rng.integers(20, 80, N),
            "sex": rng.choice(["F", "M"], N),
            "job": rng.choice(list("abcdef"), N, p=[0.25, 0.2, 0.2, 0.15, 0.1, 0.1]),
        }
    )


def published(table: pa.Table, **options: Any) -> dn.Release:
    given = {"sensitive": "job", "mechanism": "perturbed-generalization:k=5", "privacy": PRIVACY, "key": bytes(32)}
    return dn.publish(table, **{**given, **options})


def test_a_box_of_k_rows_lets_the_channel_keep_more() -> None:
    assert MECHANISMS["perturbed-generalization"] is PerturbedGeneralization
    # (1/5, 1/4) allows gamma = 4/3; one row of 6 is drawn, so the channel may have 1 + 6/3 = 3, and 3/(2+3) stay.
    few = Histogram(tuple("abc"), np.array([30, 40, 30]))
    channel = PerturbedGeneralization(k=6).channel(few, Privacy("1/5", "1/4", adversary="any-prior"))
    assert channel.diagonal == pytest.approx([0.6] * 3, abs=1e-8)
    assert row_amplification(channel, 6) <= Fraction(4, 3)
    assert row_amplification(channel, 6) > Fraction(4, 3) * (1 - Fraction(1, 10**7))
    assert mechanism_named("perturbed-generalization").fitted(Privacy(rho2="1/20")) == PerturbedGeneralization(20)


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_whoever_knows_all_others_of_a_box_learns_no_more_than_is_promised(rows: int) -> None:
    """Brute force over all that the others can have: max P'(y | x) / P'(y | x') is 1 + (gamma - 1) / n exactly."""
    channel = Channel.uniform(tuple("abcd"), gamma=Fraction(7))
    scale = 2**32
    keep, replace = channel.keep.tolist(), channel.replace.tolist()
    exact = [[keep[x] * scale * (x == y) + (scale - keep[x]) * replace[y] for x in range(4)] for y in range(4)]
    worst = Fraction(0)
    for others in combinations_with_replacement(range(4), rows - 1):
        for row in exact:
            said = [own + sum(row[other] for other in others) for own in row]
            worst = max(worst, Fraction(max(said), min(said)))
    assert worst == row_amplification(channel, rows)


def test_to_who_knows_frequencies_a_box_is_a_channel_of_coins() -> None:
    channel, shares = Channel.uniform(tuple("abc"), gamma=Fraction(9)), np.array([0.5, 0.3, 0.2])
    matrix = channel.matrix()
    mixed = matrix / 5 + 0.8 * (matrix @ shares)[:, None]
    assert of_a_person(channel, shares, 5).matrix() == pytest.approx(mixed, abs=1e-8)


def test_the_guarantee_is_that_of_the_integers_and_says_what_is_left_out() -> None:
    mechanism = PerturbedGeneralization(k=4)
    guarantee = mechanism.guarantee(COUNTS, Privacy("1/5", "1/3"))
    (promise,) = guarantee.promises
    assert isinstance(promise, OneOfBox)
    assert promise.k == 4
    assert promise.gamma == guarantee.gamma == row_amplification(mechanism.channel(COUNTS, Privacy("1/5", "1/3")), 4)
    assert guarantee.worst <= Fraction(1, 3)
    assert promise.above == (0, 1), "30 and 20.03 % of the rows"
    assert "2 values" in " ".join(guarantee.not_protected)
    every = mechanism.guarantee(COUNTS, Privacy(rho2="1/2"))
    assert every.rho1 is not None
    assert Fraction(3001, 10_000) - Fraction(1, 1000) < every.rho1 + Fraction(1, 100)
    assert every.worst <= Fraction(1, 2)


def test_one_row_of_each_box_is_published(tmp_path: Path) -> None:
    table = people()
    release = published(table, out=tmp_path / "r")
    boxes = release.groups.num_rows
    assert release.table.num_rows == release.manifest.rows == boxes
    assert sorted(release.table["cell"].to_pylist()) == list(range(boxes))
    cells = cells_of(release.groups, table)
    assert np.array_equal(np.bincount(cells), release.groups["rows"].to_numpy())
    assert min(release.groups["rows"].to_pylist()) >= 5
    assert dn.verify(tmp_path / "r").holds
    again = published(table)
    assert again.table.equals(release.table)
    other = published(table, key=bytes([1]) * 32)
    assert not other.table["job"].equals(release.table["job"])
    assert other.groups.equals(release.groups), "boxes depend on public columns only"
    reordered = table.set_column(2, "job", pa.array(table["job"].to_pylist()[::-1]))
    assert published(reordered).groups.equals(release.groups)


def _keep(raw: dict[str, Any]) -> None:
    raw["parts"][0]["cells"][0]["keep"] = [k * 105 // 100 for k in raw["parts"][0]["cells"][0]["keep"]]


def _k(raw: dict[str, Any]) -> None:
    raw["parts"][0]["promise"]["k"] = 50


def _gamma(raw: dict[str, Any]) -> None:
    raw["guarantee"]["gamma"] = "2"


def _plain(raw: dict[str, Any]) -> None:
    promise = raw["parts"][0]["promise"]
    promise["kind"] = "amplification"
    del promise["k"]


@pytest.mark.parametrize("change", [_keep, _k, _gamma, _plain])
def test_verify_finds_what_was_changed(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    published(people(), out=tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(VerificationError):
        dn.verify(tmp_path / "r")


def test_answers_are_right_on_average_and_their_intervals_cover() -> None:
    """Boxes as a table has them, 200 samples: the mean is within 5 standard errors, and nine of ten intervals cover."""
    table = people()
    codes = np.array([list("abcdef").index(value) for value in table["job"].to_pylist()])
    made = published(table)
    groups, sizes = cells_of(made.groups, table), made.groups["rows"].to_numpy()
    channel = made.manifest.parts[0].channels[0]
    women = made.groups["sex values"].to_pylist()
    share = np.array([float(values == ["F"]) for values in women])
    wanted = np.array([True, True, False, False, False, False])
    inside = share[groups] > 0
    truth = float((wanted[codes] & inside).sum())
    values, covered = [], 0
    for number in range(200):
        stream = Keystream(Secret.from_key(bytes([number]) * 32), "test")
        member = one_of_each(groups, stream.subkey("sample"))
        shown = perturbed(channel, codes[member], stream.subkey("draws")).astype(np.int64)
        value, variance = BoxSample(channel, shown, sizes).count(share, wanted)
        values.append(value)
        covered += abs(value - truth) <= 1.96 * np.sqrt(variance)
    error = np.std(values, ddof=1) / np.sqrt(200)
    assert error < 0.02 * truth, "a bias of a tenth would be seen"
    assert abs(np.mean(values) - truth) < 5.5 * error
    assert covered >= 174  # of 200 at 95 %: fewer come once in a million


def test_a_count_is_asked_like_any_other_and_more_is_refused() -> None:
    release = published(people())
    estimate = release.count(where={"sex": "F", "job": ["a", "b"], "age": dn.between(30, 60)})
    assert estimate.low <= estimate.value <= estimate.high
    everyone = release.count(where={"job": list("abcdef")})
    assert everyone.value == pytest.approx(N)
    assert everyone.stderr < 1e-6
    with pytest.raises(QuestionError, match="count"):
        release.sql("SELECT sex, COUNT(*) AS n FROM release GROUP BY sex")


def test_the_audit_finds_no_breach_and_attackers_are_rarely_right() -> None:
    table = people()
    report = dn.audit(table, published(table), attacks=True)
    assert not report.serious
    (part,) = report.parts
    assert part.gamma is not None
    assert part.gamma <= 3
    names = [attack.name for attack in report.attacks]
    assert names.count("corruption") == 3
    assert {"linking", "homogeneity", "classifier"} <= set(names)
    for attack in report.attacks:
        assert attack.low < 1 / 2, attack


def test_what_it_cannot_do_is_refused() -> None:
    table = people()
    with pytest.raises(OptionError, match="k = 0"):
        PerturbedGeneralization(k=0)
    with pytest.raises(TableError, match="k = 5000"):
        published(table, mechanism="perturbed-generalization:k=5000")
    with pytest.raises(ColumnError, match="public column"):
        published(table.select(["job"]))
    with pytest.raises(OptionError, match="shuffle"):
        published(table, shuffle=False)
    with pytest.raises(RequirementError, match="needs a requirement"):
        published(table, privacy=None)
    with pytest.raises(RequirementError, match="fine-grain"):
        published(table, privacy=Privacy(per_value={"a": ("1/4", "1/2")}))
    everyone = Privacy("1/4", "1/2", adversary="any-prior")
    with pytest.raises(OptionError, match="not declared"):
        published(table, privacy=everyone)
    assert published(table, privacy=everyone, domain=list("abcdef")).manifest.guarantee["adversary"] == "any-prior"
    with pytest.raises(RequirementError, match="cannot be met"):
        published(table, privacy=Privacy(rho2="1/6"))
