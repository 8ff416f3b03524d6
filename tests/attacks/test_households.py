"""Several rows of one person, and groups whose members' values follow from each other: attacked by who knows all other
rows, and how households agree."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import RequirementError
from deniable.mechanisms import Synthetic

HOUSES, SIZE, OTHERS = 300, 4, 196  # a household of four in each street, and people whom the attacker knows
AGREE, ILL = 0.8, 0.3
RHO1, RHO2 = Fraction(2, 5), Fraction(3, 5)


def streets(seed: int) -> pa.Table:
    """A street a household: whether its members are ill they have in common in four of five cases."""
    rng = np.random.default_rng(seed)
    common = np.repeat(rng.random(HOUSES) < ILL, SIZE)
    ill = np.where(rng.random(HOUSES * SIZE) < AGREE, common, ~common)
    street = np.concatenate([np.repeat(np.arange(HOUSES), SIZE), np.repeat(np.arange(HOUSES), OTHERS)])
    house = np.concatenate([np.repeat(np.arange(HOUSES), SIZE), np.arange(HOUSES * OTHERS) + HOUSES])
    known = np.tile(np.arange(OTHERS) % 2 == 0, HOUSES)
    names = np.char.add("street ", street.astype(str))
    return pa.table({"street": names, "house": house, "ill": np.where(np.concatenate([ill, known]), "yes", "no")})


def log_laplace(noise: Any, epsilon: float) -> Any:
    """Discrete Laplace noise, up to a constant."""
    return -epsilon * np.abs(noise)


def surest(release: dn.Release) -> tuple[Any, Any]:
    """What the attacker believes of each member of each household, and of all four being ill: beforehand, afterwards.

    They know all other rows, and that of a household's 16 possible values each has probability
    sum over c of Pr[c] .8^(agree with c) .2^(others).
    """
    learned = release.manifest.parts[0].learned
    assert learned is not None
    (table,) = learned.measured
    assert table.counts is not None
    assert table.epsilon is not None
    level = {mark: table.places[number] for number, mark in enumerate(learned.codings[0].marks)}
    noisy = table.counts[[level[f"street {number}"] for number in range(HOUSES)]]
    yes, no = (release.manifest.parts[0].domain.index(value) for value in ("yes", "no"))
    tuples = np.array(list(itertools.product([0, 1], repeat=SIZE)))
    sick = tuples.sum(axis=1)
    before = ILL * AGREE**sick * (1 - AGREE) ** (SIZE - sick) + (1 - ILL) * AGREE ** (SIZE - sick) * (1 - AGREE) ** sick
    each = float(table.epsilon) / 2
    told = log_laplace(noisy[:, [yes]] - OTHERS // 2 - sick, each)
    told = told + log_laplace(noisy[:, [no]] - OTHERS // 2 - (SIZE - sick), each)
    after = before * np.exp(told - told.max(axis=1, keepdims=True))
    after /= after.sum(axis=1, keepdims=True)
    statements = np.column_stack([tuples, sick == SIZE, sick >= 2, sick == 0]).astype(float)
    return before @ statements, after @ statements


def published(table: pa.Table, run: int, **options: Any) -> dn.Release:
    return dn.publish(
        table,
        sensitive="ill",
        mechanism=Synthetic(tables=(("street",),)),
        privacy=dn.Privacy(rho1=RHO1, rho2=RHO2),
        domain=["yes", "no"],
        key=run.to_bytes(32, "big"),
        **options,
    )


def test_a_household_stays_below_the_promised_bound() -> None:
    """Without ``group=`` half of the households are known too well; with it nobody is, whatever is said of them."""
    table = streets(1)
    before, alone = surest(published(table, 1, drop="house"))
    single, gamma = before[0], float(RHO2 / (1 - RHO2) * (1 - RHO1) / RHO1)
    assert single < RHO1  # so that it is covered
    assert np.mean(alone[:, :SIZE].max(axis=1) > RHO2) > 0.15
    release = published(table, 1, group="house")
    before, after = surest(release)
    for prior, posterior in zip(before, after.T, strict=True):
        odds = prior / (1 - prior)
        assert posterior.max() <= odds * gamma / (1 + odds * gamma) + 1e-9
        assert posterior.min() >= odds / gamma / (1 + odds / gamma) - 1e-9
    assert after[:, :SIZE].max() <= RHO2
    assert after[:, :SIZE].max() > single + 0.08  # the attacker sees what there is to see
    assert release.verify().holds


def test_the_budget_of_a_group_is_shared_by_its_rows() -> None:
    """gamma^(1/k) for each of k rows, and the sentence is about all of them."""
    alone, group = (published(streets(1), 1, **one) for one in ({"drop": "house"}, {"group": "house"}))
    spent = [release.manifest.parts[0].learned.epsilon for release in (alone, group)]  # type: ignore[union-attr]
    assert float(spent[1] * SIZE) == pytest.approx(float(spent[0]))
    promise = group.manifest.parts[0].promise
    assert (promise.together, promise.gamma) == (SIZE, alone.manifest.parts[0].promise.gamma)
    assert math.exp(promise.epsilon * SIZE) <= promise.gamma
    sentence = group.manifest.guarantee["sentence"]
    assert "the values of one person or group, 4 rows at the most" in sentence
    assert any("follows from no value" in line for line in group.manifest.guarantee["also"])
    assert "house" not in group.table.column_names


@pytest.mark.parametrize("named", ["person", "group", "both"])
def test_the_most_rows_of_a_person_or_a_group_count(named: str) -> None:
    rng = np.random.default_rng(0)
    person = np.concatenate([np.zeros(7, int), rng.integers(1, 10**9, 4_993)])
    group = np.concatenate([np.zeros(5, int), np.arange(4_995) // 3 + 1])
    table = pa.table(
        {"sex": rng.choice(["F", "M"], 5_000), "ill": rng.choice(["a", "b"], 5_000), "p": person, "g": group}
    )
    owners = {"person": {"person": "p", "drop": "g"}, "group": {"group": "g", "drop": "p"}}
    options: Any = owners.get(named, {"person": "p", "group": "g"})
    asked = {"sensitive": "ill", "mechanism": "synthetic", "privacy": dn.Privacy(epsilon=2)}
    release = dn.publish(table, key=bytes(32), **asked, **options)
    assert release.manifest.parts[0].promise.together == (5 if named == "group" else 7)


def test_a_number_of_rows_tells_of_no_value() -> None:
    """Tables that differ in values alone, missing ones among them, are planned for the same number of rows."""
    table, rows = streets(2), HOUSES * (SIZE + OTHERS)
    gone = pa.array(np.where(np.arange(rows) % 5 == 0, None, table["ill"].to_numpy(zero_copy_only=False)))
    for missing in ("value", "exempt"):
        options: dict[str, Any] = {"group": "house", "missing": missing}
        asked = {"sensitive": "ill", "mechanism": "synthetic", "privacy": dn.Privacy(epsilon=2)}
        both = [dn.publish(one, **asked, **options) for one in (table, table.set_column(2, "ill", gone))]
        assert [one.manifest.parts[0].promise.together for one in both] == [SIZE, SIZE]


def test_another_grouping_of_the_same_rows_is_drawn_afresh() -> None:
    """Else noise of one size beside the same noise of another one would tell the exact counts."""
    table = streets(3)
    pairs = table.set_column(1, "house", pa.array(np.arange(table.num_rows) // 2))
    noisy = []
    for one in (table, pairs):
        learned = published(one, 3, group="house").manifest.parts[0].learned
        assert learned is not None
        (measured,) = learned.measured
        assert measured.counts is not None
        noisy.append(measured.counts[:, 0])  # whose own standard deviation is a tenth of the noise's
    assert abs(np.corrcoef(*noisy)[0, 1]) < 0.2


def test_too_many_rows_of_one_person_are_refused_with_what_to_do() -> None:
    table = pa.table({"sex": ["F", "M"] * 500, "ill": ["a", "b", "c", "a"] * 250, "p": [1] * 1_000})
    with pytest.raises(RequirementError, match="1,000 rows of one person") as refused:
        dn.publish(
            table, sensitive="ill", person="p", mechanism="synthetic", privacy=dn.Privacy(rho1="1/20", rho2="1/19")
        )
    assert "Fix" in str(refused.value)
