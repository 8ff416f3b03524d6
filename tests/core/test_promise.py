"""Promises as data: what is written is read back, and nothing else is; no guarantee is made without one."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.errors import InternalError, ManifestError
from deniable.core.privacy import LargeSums, SmallSums
from deniable.core.promise import KINDS, Amplification, Frequency, Guarantee, Nothing, from_dict, to_dict

probabilities = st.fractions(Fraction(1, 10**6), Fraction(999, 1000), max_denominator=10**6)
factors = st.fractions(1, 10**12)
limits = st.tuples(st.integers(0, 10**6), probabilities, probabilities)
small = st.builds(SmallSums, probabilities, st.integers(1, 1000), probabilities)
large = st.builds(LargeSums, st.fractions(Fraction(1, 50), Fraction(1, 2)), st.integers(1, 10**9), probabilities)

STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "Fraction": factors,
    "Fraction | None": st.none() | factors,
    "tuple[Fraction | None, ...]": st.lists(st.none() | factors, max_size=4).map(tuple),
    "tuple[int, ...]": st.lists(st.integers(0, 10**6), max_size=4).map(tuple),
    "tuple[Limit, ...]": st.lists(limits, max_size=4).map(tuple),
    "tuple[Single, ...]": st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=4).map(tuple),
    "SmallSums | None": st.none() | small,
    "LargeSums | None": st.none() | large,
    "bool": st.booleans(),
    "int": st.integers(0, 10**9),
    "str": st.text(max_size=20),
}
NO_FRACTIONS = [0.5, 1, True, ["1/2"], {"1/2": 1}, "", "x", "1/0", "1/", "1/2/3", "inf", "1e999999999", "0x10"]
NO_SUMS = [{}, [], "x", 3, True]
WRONG: dict[str, list[Any]] = {
    "Fraction": [None, *NO_FRACTIONS],
    "Fraction | None": NO_FRACTIONS,
    "tuple[Fraction | None, ...]": [None, "", "12", {}, {"1": "2"}, 3, [0.5], [["1"]], ["x"], ["1/2", 1]],
    "tuple[int, ...]": [None, "", "12", {}, {"1": 2}, 3, [1.0], [True], ["1"], [[1]], [None]],
    "tuple[Limit, ...]": [
        *(None, "", {}, 3, ["abc"], [[0, "1/4"]], [[0, "1/4", "1/2", "1"]], [["0", "1/4", "1/2"]]),
        *([[0, 0.25, "1/2"]], [[0, "1/4", None]], [[True, "1/4", "1/2"]], [{"0": 1, "1/4": 2, "1/2": 3}]),
    ],
    "tuple[Single, ...]": [None, "", {}, 3, ["ab"], [[0]], [[0, 1, 2]], [[0, "1"]], [[True, 1]], [0, 1], [[0.0, 1]]],
    "SmallSums | None": [
        *NO_SUMS,
        {"error": "3/10", "below": 3},
        {"error": "3/10", "below": 3, "at_least": "3/5", "more": 1},
        {"error": 0.3, "below": 3, "at_least": "3/5"},
        {"error": "3/10", "below": 3.0, "at_least": "3/5"},
        {"error": "3/10", "below": 0, "at_least": "3/5"},
        {"error": "3", "below": 3, "at_least": "3/5"},
    ],
    "LargeSums | None": [
        *NO_SUMS,
        {"error": "1/10", "at_most": "1/20"},
        {"error": "1/10", "above": True, "at_most": "1/20"},
        {"error": "1/1000", "above": 1000, "at_most": "1/20"},
        {"error": "1/10", "above": 1000, "at_most": 0.05},
    ],
    "bool": [None, 0, 1, "true", []],
    "int": [None, True, 1.0, "1", [1], {}],
    "float": [None, True, "1", "nan", float("nan"), float("inf"), [1.0], 10**400],
    "str": [None, 1, True, ["x"], {}],
}


@st.composite
def promises(draw: st.DrawFn, kind: str) -> Any:
    """Any promise of a kind, by the types of its numbers; beliefs are probabilities."""
    made = {}
    for field in dataclasses.fields(KINDS[kind]):
        drawn = draw(STRATEGIES[str(field.type)])
        believed = field.name in ("rho1", "rho2") and drawn is not None
        made[field.name] = draw(probabilities) if believed else drawn
    return KINDS[kind](**made)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_promise_is_read_as_it_was_written(kind: str, data: st.DataObject) -> None:
    promise = data.draw(promises(kind))
    written = json.loads(json.dumps(to_dict(promise), allow_nan=False))
    assert written["kind"] == kind
    assert from_dict(written) == promise
    assert type(from_dict(written)) is KINDS[kind]
    assert to_dict(from_dict(written)) == to_dict(promise) == written


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_a_number_that_is_missing_or_too_many_is_named(kind: str, data: st.DataObject) -> None:
    written = to_dict(data.draw(promises(kind)))
    for name in set(written) - {"kind"}:
        with pytest.raises(ManifestError, match=rf"a promise of kind '{kind}' has other numbers \({name}\)"):
            from_dict({key: value for key, value in written.items() if key != name})
    with pytest.raises(ManifestError, match=rf"a promise of kind '{kind}' has other numbers \(epsilom\)"):
        from_dict({**written, "epsilom": "1"})


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3, deadline=None)
@given(data=st.data())
def test_a_number_of_another_type_is_refused(kind: str, data: st.DataObject) -> None:
    written = to_dict(data.draw(promises(kind)))
    for field in dataclasses.fields(KINDS[kind]):
        for wrong in WRONG[str(field.type)]:
            with pytest.raises(ManifestError, match=f"a promise of kind '{kind}' cannot be read"):
                from_dict({**written, field.name: wrong})


@pytest.mark.parametrize("kind", [None, "", "trust", "Amplification", "amplification ", 3, ["amplification"], True])
def test_a_promise_of_an_unknown_kind_is_refused(kind: Any) -> None:
    written = {**to_dict(Amplification(Fraction(3))), "kind": kind}
    with pytest.raises(ManifestError, match="states a promise of an unknown kind"):
        from_dict(written)
    with pytest.raises(ManifestError, match="states a promise of an unknown kind: 'None'"):
        from_dict({"gamma": "3", "rho1": None, "rho2": None})


def test_what_a_stranger_wrote_is_shown_in_part_only() -> None:
    with pytest.raises(ManifestError) as caught:
        from_dict({"kind": "x" * 10_000})
    assert len(str(caught.value)) < 120


# -- guarantees --------------------------------------------------------------------------------------------------------


def guarantee(*promises: Any, rho2: Fraction | None = Fraction(1, 2)) -> Guarantee:
    return Guarantee(promises=promises, adversary="frequency", rho1=None, rho2=rho2, worst=Fraction(1, 3), gamma=None)


def test_a_guarantee_needs_a_promise() -> None:
    with pytest.raises(InternalError, match="without a promise"):
        guarantee()
    with pytest.raises(TypeError, match="promises"):
        Guarantee(adversary="frequency", rho1=None, rho2=None, worst=Fraction(1), gamma=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Guarantee("frequency", None, None, Fraction(1), None)  # type: ignore[misc, arg-type]


class Trust(Amplification):
    """A promise of somebody's own, which no recheck knows."""


@pytest.mark.parametrize(
    "foreign",
    [
        None,
        "amplification",
        {"kind": "amplification", "gamma": "3", "rho1": None, "rho2": None},
        Amplification,
        Trust(Fraction(3)),
        SmallSums(),
    ],
)
def test_what_is_no_promise_is_refused(foreign: Any) -> None:
    with pytest.raises(InternalError, match=r"no promise that can be rechecked.*Amplification, Frequency, PerValue"):
        guarantee(foreign)
    with pytest.raises(InternalError, match="no promise that can be rechecked"):
        guarantee(Amplification(Fraction(3)), foreign)


def test_who_promises_nothing_states_no_bound() -> None:
    nothing = Nothing("published as it is")
    with pytest.raises(InternalError, match="states a rho2, and one of its parts promises nothing"):
        guarantee(nothing)
    with pytest.raises(InternalError, match="promises nothing"):
        guarantee(Frequency(None, Fraction(1, 2)), nothing)
    assert guarantee(nothing, rho2=None).promises == (nothing,)
