"""The planner: every mechanism, on selectivities and on a pool; rivals where they are asked for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from deniable.core.errors import RequirementError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.lab.made_up import census
from deniable.mechanisms import Designed, SmallDomain, Uniform
from deniable.planning.candidates import Candidate, candidate
from deniable.planning.planner import compare
from deniable.planning.pools import CodedTable, QuestionPool, sdr_pool
from deniable.planning.prediction import Profile

PRIVACY = Privacy("1/10", "1/5")
STANDARD = {"uniform", "small-domain", "fine-grain", "identity", "designed"}


@pytest.fixture(scope="module")
def pool() -> QuestionPool:
    return sdr_pool(CodedTable.of(census(10_000, seed=3), "occupation"), conditions=40)


def one_rival(counts: Histogram, privacy: Privacy, profile: Profile) -> list[Candidate]:
    return [replace(candidate(Uniform(), counts, privacy, profile), rival=True, biased=profile.sizes is None)]


def test_the_recommended_one_is_first_and_the_pool_s_questions_are_counted(pool: QuestionPool) -> None:
    for questions in (None, pool):
        found = compare(pool.table.histogram, PRIVACY, pool=questions)
        assert {one.name for one in found.candidates} == {
            "uniform",
            "small-domain",
            "fine-grain",
            "identity",
            "designed",
            "lineup",
            "synthetic",
        }
        scores = [one.score for one in found.candidates if not one.withheld]
        assert scores == sorted(scores)
        assert [one.name for one in found.withheld] == ["synthetic"]
        assert "mostly noise" in found.withheld[0].withheld
        bounded = compare(pool.table.histogram, PRIVACY, pool=questions, limit=3.0)
        assert all(one.epsilon <= 3 for one in bounded.usable)
        assert {"small-domain", "lineup"} <= {one.name for one in bounded.withheld}
        assert all("above 3" in one.withheld for one in bounded.withheld if one.name != "synthetic")
        assert (found.questions is None) == (found.independence is None) == (questions is None)
    assert found.questions is not None
    assert found.questions[0] == (pool.truth > 0).sum()
    assert "over the whole pool" in found.reason


def test_rivals_are_listed_only_where_they_are_given_and_never_recommended(pool: QuestionPool) -> None:
    counts = pool.table.histogram
    assert compare(counts, PRIVACY).rivals == ()
    found = compare(counts, PRIVACY, mechanisms=[Designed()], rivals=one_rival)
    assert [one.name for one in found.rivals] == ["uniform"]
    assert found.rivals[0].beliefs is not None
    assert found.recommended.name == "designed"


def test_where_nothing_applies_every_reason_is_given(pool: QuestionPool) -> None:
    impossible = Privacy("1/10", "1/5", adversary="any-prior")
    with pytest.raises(RequirementError, match="- designed: ") as refused:
        compare(
            pool.table.histogram, impossible, mechanisms=[Designed(), Designed(replacing="frequency"), SmallDomain()]
        )
    assert str(refused.value).count("\n- ") == 2, "a reason that two share is given once"
    assert "\n- small-domain: " in str(refused.value)


def test_errors_are_finite_where_a_value_is_frequent_enough(pool: QuestionPool) -> None:
    found = compare(pool.table.histogram, PRIVACY, selectivities=(0.001, 0.5))
    assert all(math.isfinite(one.errors[0]) and math.isnan(one.errors[1]) for one in found.candidates)
