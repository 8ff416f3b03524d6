"""Generalization: what it promises, what it says it does not, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from deniable.core.errors import OptionError, RequirementError, TableError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms import MECHANISMS, Anatomy, Generalize, Mechanism, mechanism_named
from deniable.rivals.base import Rival

COUNTS = Histogram(tuple("abcdefgh"), np.array([3001, 2003, 1499, 1201, 1009, 701, 411, 175]))


def test_it_is_a_mechanism_like_any_other_without_a_plan_of_channels() -> None:
    assert MECHANISMS["generalize"] is Generalize
    made = mechanism_named("generalize")
    assert isinstance(made, Mechanism)
    assert isinstance(made, Rival)
    assert made.options == {"k": 10, "l": 6}
    with pytest.raises(OptionError, match=r"dn\.publish"):
        made.plan(COUNTS, None)


@pytest.mark.parametrize(("option", "value"), [("k", 0), ("k", -3), ("k", True), ("k", 2.5), ("l", 0), ("l", False)])
def test_bad_options_are_named(option: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"{option} = {value}"):
        Generalize(**{option: value})  # type: ignore[arg-type]


def test_it_promises_the_largest_share_and_says_what_it_does_not() -> None:
    guarantee = Generalize(k=5, l=3).guarantee(COUNTS, Privacy(rho2="1/3"))
    assert guarantee.worst == Fraction(1, 3)
    assert guarantee.gamma is None
    assert "at least 5 rows" in guarantee.sentence
    limits = " ".join(guarantee.not_protected)
    for words in ("of one kind", "others in the group", "exact count", "ranges and sets", "rule out"):
        assert words in limits
    assert "Public columns are published as they are" not in limits
    assert "left out" not in limits
    assert "left out" in " ".join(Generalize(k=5, l=4).guarantee(COUNTS, None).not_protected)


def test_plain_k_anonymity_promises_nothing_about_values() -> None:
    guarantee = Generalize(k=5, l=1).guarantee(COUNTS, None)
    assert guarantee.worst == 1
    assert guarantee.sentence.startswith("Nothing is promised")
    assert not Generalize(k=5, l=1).suppressed(COUNTS).any()


@pytest.mark.parametrize("l", [2, 3, 5, 8])
def test_it_suppresses_what_anatomy_does(l: int) -> None:
    assert np.array_equal(Generalize(k=1, l=l).suppressed(COUNTS), Anatomy(l=l).suppressed(COUNTS))


def test_a_requirement_is_checked_and_never_weakened() -> None:
    with pytest.raises(RequirementError, match="l=6"):
        Generalize(l=3).guarantee(COUNTS, Privacy(rho2="1/6"))
    with pytest.raises(RequirementError, match="l=2"):
        Generalize(l=1).guarantee(COUNTS, Privacy(rho2="1/2"))
    with pytest.raises(RequirementError, match="l=5"):
        Generalize(l=3).guarantee(COUNTS, Privacy(per_value={"h": ("1/10", "2/9")}))
    with pytest.raises(RequirementError, match=r"'generalize'.*any-prior"):
        Generalize(l=3).guarantee(COUNTS, Privacy(rho1="1/9", rho2="1/3", adversary="any-prior"))
    with pytest.raises(RequirementError, match="more than rho2 allows"):  # it is stated, though no value is covered
        Generalize(l=1).guarantee(COUNTS, Privacy(rho2="1/6", exempt=tuple("abcdefgh")))


def test_tables_that_are_too_small_are_refused() -> None:
    few = Histogram.of({"a": 5, "b": 3, "c": 2, "d": 0})
    with pytest.raises(RequirementError, match="l = 4 is too large: the sensitive column has 3 different values"):
        Generalize(k=2, l=4).guarantee(few, None)
    with pytest.raises(TableError, match=r"k = 11 is larger than the table.*k=10"):
        Generalize(k=11, l=1).guarantee(few, None)
    with pytest.raises(TableError, match="k = 7 is larger"):
        Generalize(k=7, l=3).guarantee(few, None)  # 2 rows of each value are left
    with pytest.raises(TableError, match="no rows"):
        Generalize().guarantee(Histogram.of({"a": 0, "b": 0}), None)


@pytest.mark.parametrize("mechanism", [Generalize(k=2, l=2), Anatomy(l=2)])
def test_a_protected_value_is_not_given_away_by_leaving_its_rows_out(mechanism):
    """Whoever is missing has the value that was left out: 6 of the 9 rows of "a"."""
    rows = Histogram.of({"a": 9, "b": 2, "c": 1})
    for privacy in (Privacy(rho2="1/2"), Privacy(rho1="3/4", rho2="4/5"), Privacy(per_value={"a": ("3/4", "4/5")})):
        with pytest.raises(RequirementError, match="leaves rows of 'a' out, which the requirement protects"):
            mechanism.guarantee(rows, privacy)
    for privacy in (Privacy(rho2="1/2", exempt="a"), Privacy(rho1="1/4", rho2="1/2")):
        assert any("missing from the release" in line for line in mechanism.guarantee(rows, privacy).not_protected)
