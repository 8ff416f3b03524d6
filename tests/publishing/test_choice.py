"""What is published by when no mechanism is named, and what the owner is told of it."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import RequirementError
from deniable.core.histogram import Histogram
from deniable.core.values import percent
from deniable.lab.made_up import census
from deniable.mechanisms import Uniform
from deniable.planning.planner import compare, standard_mechanisms
from deniable.publishing import parts

VALUES = [f"v{number}" for number in range(10)]
WEIGHTS = (300, 200, 150, 100, 80, 60, 50, 30, 20, 10)
COLUMN = [value for value, rows in zip(VALUES, WEIGHTS, strict=True) for _ in range(2 * rows)]
TABLE = pa.table({"id": [f"i{n}" for n in range(2000)], "sex": ["F", "M"] * 1000, "v": COLUMN})
COUNTS = Histogram.of(dict(zip(VALUES, (2 * rows for rows in WEIGHTS), strict=True)))
PRIVACY = dn.Privacy(rho2="1/2")


def test_enough_rows_are_learned_from_against_any_attacker() -> None:
    """As its sentence says; the choice knows numbers of rows and columns, and no value."""
    table = census(20_000, seed=3).select(["gender", "education", "occupation"])
    asked = {"sensitive": "occupation", "privacy": dn.Privacy("1/13", "1/3"), "key": bytes(32)}
    release = dn.publish(table, **asked)
    assert release.manifest.mechanism == release.choice.mechanism == "synthetic"
    assert release.manifest.guarantee["adversary"] == "any-prior"
    assert release.choice.chosen.startswith("synthetic: it holds against any attacker, and counts of 1 % of the rows")
    named = dn.publish(table, mechanism="synthetic", **asked)
    assert release.manifest.guarantee == named.manifest.guarantee
    assert named.choice.chosen == ""


def test_the_choice_is_the_same_whatever_the_values_are() -> None:
    plain = census(20_000, seed=3).select(["gender", "education", "occupation"])
    shuffled = plain.set_column(2, "occupation", pa.array(sorted(plain["occupation"].to_pylist())))
    rare = plain.set_column(2, "occupation", pa.array([f"v{min(row, 30)}" for row in range(20_000)]))
    chosen = {
        dn.publish(table, sensitive="occupation", privacy=dn.Privacy("1/13", "1/3")).choice.chosen
        for table in (plain, shuffled, rare)
    }
    assert len(chosen) == 1


def test_nothing_is_taken_above_the_limit_on_epsilon() -> None:
    for rho1, rho2 in (("1/100", "1/2"), ("1/13", "1/6"), (None, "2/5")):
        for limit in (None, 3, 2):
            for table in (TABLE.drop(["id"]), pa.concat_tables([TABLE.drop(["id"])] * 20)):
                asked = {"sensitive": "v", "privacy": dn.Privacy(rho1, rho2), "domain": VALUES}
                release = dn.publish(table, **asked, epsilon_limit=limit)
                said = re.search(r"\(epsilon ([0-9.]+)\): a belief", release.manifest.guarantee["sentence"])
                assert said is not None or limit is None
                assert limit is None or float(said[1]) <= limit + 0.005
                release.verify()


def test_an_epsilon_that_is_required_is_the_limit() -> None:
    release = dn.publish(TABLE, sensitive="v", drop="id", privacy=dn.Privacy(epsilon=5), domain=VALUES)
    assert release.manifest.mechanism == "synthetic"
    assert 3 < math.log(Fraction(release.manifest.guarantee["gamma"])) <= 5


def test_few_rows_are_perturbed_one_by_one_and_it_is_said_why() -> None:
    table = TABLE.drop(["id"]).take(list(range(0, 2000, 7)))
    release = dn.publish(table, sensitive="v", privacy=dn.Privacy("1/3", "2/3"), domain=VALUES)
    assert release.manifest.mechanism != "synthetic"
    assert "not synthetic: so few rows that tables by value would be mostly noise" in release.choice.chosen
    undeclared = dn.publish(TABLE, sensitive="v", drop="id", privacy=dn.Privacy("1/3", "2/3"))
    assert "not synthetic: of values that are not declared a learned release lists" in undeclared.choice.chosen


def test_the_planner_chooses_among_what_goes_row_by_row() -> None:
    best = compare(COUNTS, PRIVACY, limit=3.0, without=("synthetic",)).recommended.name
    assert dn.plan(COUNTS, PRIVACY).mechanism == best
    release = dn.publish(TABLE, sensitive="v", privacy=PRIVACY, drop=["id", "sex"], key=bytes(32))
    assert release.manifest.mechanism == release.choice.mechanism == best
    assert release.choice.chosen.startswith(f"{best}:epsilon=2: of ")
    assert "predicted error is the smallest (next: " in release.choice.chosen
    named = dn.publish(TABLE, sensitive="v", privacy=PRIVACY, drop="id", mechanism="uniform")
    assert named.manifest.mechanism == "uniform"
    assert named.choice.chosen == ""


def test_anyone_can_repeat_the_choice_from_the_release() -> None:
    for number in range(5):
        release = dn.publish(TABLE, sensitive="v", privacy=PRIVACY, drop=["id", "sex"], key=bytes([number]) * 32)
        marginal = release.manifest.parts[0].marginal
        assert marginal is not None
        shown = Histogram.of(dict(zip(VALUES, (max(rows, 1) for rows in marginal.counts), strict=True)))
        mechanisms = standard_mechanisms(None, PRIVACY, 3.0, only_bounded=True)
        repeated = compare(shown, PRIVACY, mechanisms=mechanisms, without=("synthetic",), noisy=True, limit=3.0)
        assert release.manifest.mechanism == repeated.recommended.name
        assert release.choice.chosen.startswith(repeated.in_one_line())


def test_what_does_not_go_with_a_row_id_is_not_compared() -> None:
    without = compare(COUNTS, PRIVACY, without=("small-domain",))
    assert "small-domain" in {one.name for one in compare(COUNTS, PRIVACY).candidates}
    assert "small-domain" not in {one.name for one in without.candidates}
    seen: list[tuple[str, ...]] = []

    def noted(*_: object, without: tuple[str, ...], noisy: bool, limit: float) -> object:
        assert noisy
        assert limit == 3
        seen.append(without)
        return compare(COUNTS, PRIVACY)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "planners_choice", noted)
        dn.publish(TABLE, sensitive="v", privacy=PRIVACY, row_id="id")
        dn.publish(TABLE, sensitive="v", privacy=PRIVACY, drop="id")
        dn.publish(TABLE, sensitive="v", privacy=PRIVACY, person="id")
    assert seen == [("small-domain", "synthetic"), ("synthetic",), ("synthetic",)]


def test_a_series_goes_on_with_what_was_chosen_first(tmp_path: Path) -> None:
    first, second = (
        dn.publish(TABLE, sensitive="v", privacy=PRIVACY, row_id="id", series=tmp_path / "s", shuffle=False)
        for _ in range(2)
    )
    assert first.manifest.mechanism == second.manifest.mechanism != "uniform"
    assert first.table.equals(second.table)


def test_the_next_best_is_taken_where_the_best_cannot_be_published() -> None:
    best = compare(COUNTS, PRIVACY, limit=3.0, without=("synthetic",)).recommended

    def refusing(mechanism: object, request: object) -> object:
        if mechanism == best.mechanism:
            raise RequirementError("no room")
        return plain(mechanism, request)  # type: ignore[arg-type]

    plain = parts._prepared
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "_prepared", refusing)
        release = dn.publish(TABLE, sensitive="v", privacy=PRIVACY, drop=["id", "sex"])
    assert release.manifest.mechanism != best.name
    assert f"{best.label} meets the requirement on paper" in release.choice.chosen
    release.verify()


def test_what_is_said_to_be_chosen_is_what_was_published() -> None:
    table = pa.table({"sex": ["F", "M"] * 12, "v": ["a", "b", "c"] * 8})
    for number in range(20):  # plans are chosen by noisy counts and made of exact ones, and so few rows differ
        release = dn.publish(table, sensitive="v", privacy=dn.Privacy(rho2="2/3"), key=bytes([number] * 32))
        design = release.manifest.parts[0].lineups
        if design is not None:
            assert f", truth {percent(design.share_true)}" in release.choice.chosen.partition(": ")[0]


def test_shares_that_a_refusal_names_are_said_to_have_noise() -> None:
    table = pa.table({"sex": ["F", "M"] * 12, "v": ["a", "b", "c"] * 8})
    with pytest.raises(RequirementError, match=r"shares are those that a plan is made from.*with noise"):
        dn.publish(table, sensitive="v", privacy=dn.Privacy(rho2="1/6"))
    with pytest.raises(RequirementError, match=r"^No mechanism meets this requirement:(?s:.*)epsilon_limit=None,"):
        dn.plan({"a": 8, "b": 8, "c": 8}, dn.Privacy(rho2="1/6"))


def test_a_requirement_is_needed_to_choose_for() -> None:
    for call in (lambda: dn.publish(TABLE, sensitive="v", drop="id"), lambda: dn.plan(COUNTS)):
        with pytest.raises(RequirementError, match="needs a requirement"):
            call()


def test_expected_errors_are_those_of_the_channel() -> None:
    table = pa.table({"v": ["a"] * 6000 + ["b"] * 4000})
    release = dn.publish(table, sensitive="v", privacy=dn.Privacy(rho2="3/4"), mechanism=Uniform(), marginals=False)
    p = float(release.manifest.parts[0].channels[0].coins[0])
    per_row = (1 - p**2) / (4 * p**2)  # a weight (1[y = x] - (1-p)/2) / p has two values; so it has this variance
    for share, error in release.choice.expected.items():
        sds = [math.sqrt(share * 10_000 / frequency * per_row) for frequency in (0.6, 0.4)]
        assert error == pytest.approx(math.sqrt(2 / math.pi) * sum(sds) / 2 / (share * 10_000), rel=1e-9)
    assert list(release.choice.expected) == [0.001, 0.01, 0.1]
    assert release.choice.in_words.endswith("of 1,000 (10 %).")


def test_values_that_are_not_covered_are_named() -> None:
    release = dn.publish(TABLE, sensitive="v", privacy=dn.Privacy(rho1="1/8", rho2="1/2"), drop="id")
    for value in ("'v0'", "'v1'", "'v2'"):
        assert value in release.choice.not_covered
    assert release.choice.not_covered.startswith("Not covered: ")
    assert release.manifest.guarantee["sentence"].endswith(release.choice.not_covered)
    assert dn.publish(TABLE, sensitive="v", privacy=PRIVACY, drop="id").choice.not_covered == ""


@pytest.mark.long
def test_columns_with_more_values_than_one_can_learn_about_are_still_chosen_for() -> None:
    table = pa.table({"sex": ["F", "M"] * 4500, "v": [f"v{number % 3000}" for number in range(9000)]})
    release = dn.publish(table, sensitive="v", privacy=dn.Privacy(rho2="1/3"), key=bytes(32))
    assert release.choice.chosen.startswith("designed:epsilon=2: ")
    assert release.choice.in_words == ""
    required = dn.Privacy("1/30", "1/3", adversary="any-prior")
    release = dn.publish(table, sensitive="v", privacy=required, domain=sorted(set(table["v"].to_pylist())))
    assert release.manifest.mechanism == "synthetic"


def test_the_order_of_rows_with_ids_does_not_change_the_choice_or_the_draws() -> None:
    turned = TABLE.take(list(range(TABLE.num_rows))[::-1])
    one, two = (
        dn.publish(table, sensitive="v", privacy=PRIVACY, row_id="id", key=bytes(32), shuffle=False)
        for table in (TABLE, turned)
    )
    assert one.manifest.mechanism == two.manifest.mechanism
    assert one.table["v"].to_pylist() == two.table["v"].to_pylist()[::-1]
