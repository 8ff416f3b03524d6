"""Rivals in experiments: what boxes answer, what requirements allow, and that nobody publishes a rival."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import OptionError, QuestionError
from deniable.core.privacy import Privacy
from deniable.lab import Generalize, Laplace, run_experiment, setting_named
from deniable.lab.anatomy import Anatomized
from deniable.lab.draws import stream_of
from deniable.lab.generalize import Generalized
from deniable.lab.laplace import NoisyAnswers
from deniable.lab.made_up import census
from deniable.lab.perturbed_generalization import SampledBoxes
from deniable.lab.settings import RIVALS, DecoyGroups
from deniable.planning.pools import CodedTable, QuestionPool, large_pool, sdr_pool, sql_pool

PRIVACY = Privacy("1/13", "1/6")


@pytest.fixture(scope="module")
def pool() -> QuestionPool:
    return sdr_pool(CodedTable.of(census(20_000, seed=5), "occupation"), conditions=60)


def mixed_table(n: int) -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table(
        {
            "sex": pa.array(rng.choice(["F", "M"], n), mask=rng.random(n) < 0.1),
            "age": pa.array(rng.integers(18, 30, n), mask=rng.random(n) < 0.1),
            "pay": rng.integers(0, 8, n) / 2,
            "disease": rng.choice(list("abcdefgh"), n),
        }
    )


QUESTIONS = """
SELECT COUNT(*) FROM release WHERE sex = 'F' AND disease = 'a'
SELECT COUNT(*) FROM release WHERE age BETWEEN 20 AND 24 AND disease IN ('a', 'b')
SELECT COUNT(*) FROM release WHERE age IS NULL AND sex = 'M'
SELECT COUNT(*) FROM release WHERE sex IS NULL AND pay BETWEEN 1 AND 2.5
SELECT COUNT(*) FROM release WHERE age >= 20 AND age <= 22 AND sex = 'M'
"""


def test_boxes_answer_as_if_their_rows_lay_evenly() -> None:
    """Box by box and row by row, as the definition has it; half numbers are measured, the others counted."""
    table = mixed_table(2_000)
    coded = CodedTable.of(table, "disease")
    asked = sql_pool(coded, QUESTIONS)
    answers = asked.pick(Generalized(10, 3).run(asked, stream_of(1, 0, "x")).answers[""])
    kept, boxed = Generalize(10, 3).group(coded, stream_of(1, 0, "x"))
    people = table.take(pa.array(kept)).to_pylist()
    boxes = [[people[row] for row in np.flatnonzero(boxed.groups == box)] for box in range(boxed.number)]

    def ages(box: list[dict[str, Any]], low: int, high: int) -> float:
        known = [row["age"] for row in box if row["age"] is not None]
        if not known:
            return 0.0
        inside = [low <= age <= high for age in range(min(known), max(known) + 1)]
        return float(np.mean(inside)) * len(known) / len(box)

    def missing(box: list[dict[str, Any]], name: str) -> float:
        return float(np.mean([row[name] is None for row in box]))

    def listed(box: list[dict[str, Any]], name: str, value: object) -> float:
        values = {row[name] for row in box}
        return (value in values) / len(values)

    def measured(box: list[dict[str, Any]], low: float, high: float) -> float:
        first, last = min(row["pay"] for row in box), max(row["pay"] for row in box)
        return (
            float(low <= first <= high) if first == last else max(min(high, last) - max(low, first), 0) / (last - first)
        )

    def count(box: list[dict[str, Any]], wanted: str) -> int:
        return sum(row["disease"] in wanted for row in box)

    expected = [
        sum(listed(box, "sex", "F") * count(box, "a") for box in boxes),
        sum(ages(box, 20, 24) * count(box, "ab") for box in boxes),
        sum(missing(box, "age") * listed(box, "sex", "M") * len(box) for box in boxes),
        sum(listed(box, "sex", None) * measured(box, 1, 2.5) * len(box) for box in boxes),
        sum(ages(box, 20, 22) * listed(box, "sex", "M") * len(box) for box in boxes),
    ]
    assert answers == pytest.approx(expected)


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_nobody_publishes_a_rival(rival: Any) -> None:
    table = pa.table({"sex": ["F", "M"] * 20, "disease": list("abcd") * 10})
    for mechanism in (rival.name, rival()):
        with pytest.raises(OptionError, match=f"{rival.name!r} is a rival.*evaluate.*plan --rivals.*deniable.lab"):
            dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="1/2"), mechanism=mechanism)
        with pytest.raises(OptionError, match="is a rival"):
            dn.plan({"a": 5, "b": 7}, dn.Privacy(rho2="3/4"), mechanism)
    with pytest.raises(OptionError, match="is a rival"):
        dn.publish(table, sensitive="disease", mechanism=f"{rival.name}:l=2")


def test_conditions_that_are_no_conjunction_are_refused_by_boxes_alone() -> None:
    question = "SELECT COUNT(*) FROM release WHERE (sex = 'F' OR age > 25) AND disease = 'a'"
    asked = sql_pool(CodedTable.of(mixed_table(2_000), "disease"), question)
    with pytest.raises(QuestionError, match="joined with AND"):
        Generalized(10, 3).run(asked, stream_of(1, 0, "x"))
    result = run_experiment(asked, [Generalized(10, 3), Anatomized(3)], draws=1)
    assert list(result.refused) == ["generalize"]


@pytest.mark.parametrize("make", [sdr_pool, large_pool])
def test_a_pool_knows_its_conditions(make: object) -> None:
    table = CodedTable.of(census(5_000, seed=3), "occupation")
    made = make(table, seed=2)  # type: ignore[operator]
    for rows, masks in list(zip(made.rows, made.masks, strict=True))[:50]:
        holds = np.ones(table.rows, bool)
        for name, mask in masks.items():
            holds &= mask[table.columns[name].codes]
        assert np.array_equal(np.flatnonzero(holds), rows)


def test_rivals_get_what_the_requirement_allows(pool: QuestionPool) -> None:
    assert setting_named("generalize", PRIVACY) == Generalized(10, 6, privacy=PRIVACY)
    assert setting_named("generalize", Privacy(rho2="1/20")) == Generalized(20, 20, privacy=Privacy(rho2="1/20"))
    assert setting_named("anatomy", Privacy(per_value={"x": ("1/9", "2/7")})).l == 4  # type: ignore[attr-defined]
    assert setting_named("laplace", PRIVACY) == NoisyAnswers(Laplace(), PRIVACY)
    assert setting_named("decoys:c=9", PRIVACY) == DecoyGroups(9, "decoys:c=9")
    assert setting_named("anatomy:l=8", PRIVACY).l == 8  # type: ignore[attr-defined]
    assert setting_named("small-domain:cost=bound", PRIVACY).mechanism.cost == "bound"  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="Did you mean 'anatomy'"):
        setting_named("anatomie", PRIVACY)
    with pytest.raises(OptionError, match="of values is evaluated"):
        setting_named("retention", PRIVACY)
    names = ("generalize", "anatomy", "laplace", "perturbed-generalization")
    everyone = Privacy("1/13", "1/6", adversary="any-prior")
    result = run_experiment(pool, [setting_named(name, everyone) for name in names], draws=1)
    assert set(result.refused) == {"generalize", "anatomy"}, "groups withstand only those who know frequencies"


def test_laplace_spends_its_budget_on_each_question_or_shares_it(pool: QuestionPool) -> None:
    setting = NoisyAnswers(Laplace(), PRIVACY)
    epsilons = setting.epsilons(pool)
    assert epsilons["budget for each"] == pytest.approx(math.log(Fraction(12, 5)))
    assert epsilons["budget shared"] * len(pool) == pytest.approx(epsilons["budget for each"])
    answers = setting.run(pool, stream_of(1, 0, "laplace")).answers
    for name, epsilon in epsilons.items():
        off = np.abs(answers[name] - pool.by_value @ pool.sets.T)
        # E|noise| = 1/epsilon, 3,000 draws of deviation 1/epsilon: 5.5 deviations are 0.1; 20 % off is 2 of these.
        assert off.mean() * epsilon == pytest.approx(1, abs=0.11)


@pytest.mark.long
def test_perturbed_generalization_is_unbiased_and_pays_for_its_sample(pool: QuestionPool) -> None:
    """Over draws the histogram is right; its spread is several times that of all rows perturbed."""
    loose = Privacy("1/13", "9/10")
    draws, table = 60, pool.table
    top = np.argsort(-table.histogram.counts)[:10]
    setting = SampledBoxes(10, loose)
    small = QuestionPool("one", table, pool.rows[:1], pool.sets, pool.condition[:1], pool.chosen[:1], pool.masks[:1])
    found = np.array([setting.run(small, stream_of(1, d, "pg")).histogram[""][top].sum() for d in range(draws)])
    truth = table.histogram.counts[top].sum()
    error = found.std(ddof=1) / np.sqrt(draws)
    assert error < 0.05 * truth / 5.5, "a bias of 5 % would be seen"
    assert abs(found.mean() - truth) < 5.5 * error  # Student's t, 59 degrees: false alarm below 1e-6
    result = run_experiment(pool, [setting, setting_named("uniform", loose, ("inverse",))], draws=2)
    coarse, fine = (result.row(*name).errors([0.005])[0] for name in ((setting.label,), ("uniform", "inverse")))
    assert coarse > 2 * fine
