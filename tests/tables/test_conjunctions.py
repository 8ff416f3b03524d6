"""Conjunctions of conditions by state: counted from cubes or row by row, as a loop over the rows counts them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.tally import CodeMask
from deniable.tables import counting
from deniable.tables.counting import CodeCounter
from deniable.tables.encoding import Encoded

SIZES = {"a": 3, "b": 4, "c": 2}
STATES = 5


def by_hand(codes: dict[str, np.ndarray], states: np.ndarray, question: list[CodeMask]) -> list[int]:
    counts = [0] * STATES
    for row, state in enumerate(states):
        if all(mask[codes[column][row]] for column, mask in question):
            counts[state] += 1
    return counts


@st.composite
def asked_of_tables(draw: st.DrawFn) -> tuple[dict[str, np.ndarray], np.ndarray, list[list[CodeMask]]]:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(0, 40))
    codes = {name: random.integers(0, size + 1, rows).astype(np.uint8) for name, size in SIZES.items()}
    names = st.lists(st.sampled_from(sorted(SIZES)), max_size=4)  # a column may be asked about twice
    questions = [
        [(name, random.random(SIZES[name] + 1) < 0.6) for name in draw(names)] for _ in range(draw(st.integers(1, 5)))
    ]
    return codes, random.integers(0, STATES, rows).astype(np.uint8), questions


def counter_of(codes: dict[str, np.ndarray], states: np.ndarray) -> CodeCounter:
    columns = {name: Encoded(pa.array(range(size)), codes[name]) for name, size in SIZES.items()}
    return CodeCounter(columns.__getitem__, lambda: states, STATES, len(states))


@settings(max_examples=200, deadline=None)
@given(asked_of_tables())
def test_cubes_and_rows_give_the_same_counts(case) -> None:
    codes, states, questions = case
    wanted = [by_hand(codes, states, question) for question in questions]
    counter = counter_of(codes, states)
    for _ in range(40):  # the first few row by row, then from cubes
        assert counter.conjunctions(questions).tolist() == wanted


def test_a_cube_is_counted_once_it_pays(monkeypatch) -> None:
    random = np.random.default_rng(0)
    codes = {name: random.integers(0, size, 10).astype(np.uint8) for name, size in SIZES.items()}
    counter = counter_of(codes, random.integers(0, STATES, 10).astype(np.uint8))
    question = [("a", np.array([True, False, True, False])), ("b", np.ones(5, bool))]
    entries, cubes = (SIZES["a"] + 1) * (SIZES["b"] + 1) * STATES, []
    plain = CodeCounter._count_cube
    monkeypatch.setattr(CodeCounter, "_count_cube", lambda self, *what: cubes.append(what) or plain(self, *what))
    for number in range(1, 15):
        counter.conjunctions([question])
        assert len(cubes) == (number * 10 >= entries)


def test_columns_with_too_many_combinations_are_counted_as_well(monkeypatch) -> None:
    random = np.random.default_rng(1)
    codes = {name: random.integers(0, size, 30).astype(np.uint8) for name, size in SIZES.items()}
    states = random.integers(0, STATES, 30).astype(np.uint8)
    question = [("a", np.array([True, False, True, False])), ("b", np.array([True, True, False, False, False]))]
    wanted = by_hand(codes, states, question)
    for most in (10, 30, 1000):  # combinations are more; entries of a cube are; neither
        monkeypatch.setattr(counting, "DENSE_ENTRIES", most)
        counter = counter_of(codes, states)
        for _ in range(5):
            assert counter.conjunctions([question])[0].tolist() == wanted
