"""Pools of questions: what is asked, and that the true answers are true."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest

from deniable.core.errors import ColumnError, OptionError, QuestionError
from deniable.lab.made_up import census
from deniable.planning.pools import CodedTable, QuestionPool, large_pool, sdr_pool, small_pool, sql_pool


@pytest.fixture(scope="module")
def people() -> pa.Table:
    return census(4000, seed=3)


@pytest.fixture(scope="module")
def coded(people: pa.Table) -> CodedTable:
    return CodedTable.of(people, "occupation")


def test_codes_keep_every_row_and_missing_is_a_value() -> None:
    table = pa.table({"sex": ["F", "M", None, "F"], "disease": ["flu", None, "cold", "flu"]})
    coded = CodedTable.of(table, "disease")
    assert dict(coded.histogram) == {"cold": 1, "flu": 2, None: 1}
    assert [coded.domain[code] for code in coded.codes] == ["flu", None, "cold", "flu"]


def test_an_unknown_column_is_named(people: pa.Table) -> None:
    with pytest.raises(ColumnError, match="occupation"):
        CodedTable.of(people, "ocupation")


def test_sdr_conditions_are_equalities_on_up_to_three_columns_with_every_value(coded: CodedTable) -> None:
    pool = sdr_pool(coded, conditions=60)
    assert len(pool) == 60 * coded.m
    assert np.array_equal(np.bincount(pool.condition), np.full(60, coded.m))
    shapes = set()
    for rows in pool.rows:
        if len(rows) > 30:
            fixed = [name for name, column in coded.columns.items() if len(np.unique(column.codes[rows])) == 1]
            equal = np.ones(coded.rows, bool)
            for name in fixed:
                equal &= coded.columns[name].codes == coded.columns[name].codes[rows[0]]
            assert np.array_equal(np.flatnonzero(equal), rows), "a condition is the rows that agree in some columns"
            shapes.add(len(fixed))
    assert shapes <= {1, 2, 3}
    assert len(shapes) >= 2


def test_true_answers_equal_counting_by_hand(coded: CodedTable) -> None:
    pool = sdr_pool(coded, conditions=20)
    for question in range(0, len(pool), 37):
        rows, value = pool.rows[pool.condition[question]], pool.chosen[question]
        assert pool.truth[question] == (coded.codes[rows] == value).sum()


def test_pools_repeat_by_seed(coded: CodedTable) -> None:
    for make in (sdr_pool, small_pool):
        first, again, other = make(coded, seed=1), make(coded, seed=1), make(coded, seed=2)
        assert np.array_equal(first.truth, again.truth)
        assert not np.array_equal(first.truth, other.truth)


def test_splu_pools_hold_their_sizes(coded: CodedTable) -> None:
    small, large = small_pool(coded, questions=500), large_pool(coded, questions=500)
    assert len(small) == len(large) == 500
    assert small.truth.min() >= 1
    assert small.truth.max() <= 10
    assert large.truth.min() >= 0.005 * coded.rows
    assert large.truth.max() < 0.05 * coded.rows


def test_questions_of_a_size_are_distributed_as_if_others_were_thrown_away() -> None:
    rng = np.random.default_rng(4)
    table = pa.table({"a": rng.integers(2, size=60), "b": rng.integers(3, size=60), "x": rng.integers(4, size=60)})
    coded = CodedTable.of(table, "x")
    pool = small_pool(coded, questions=20_000)
    a, b, x = (table[name].to_numpy() for name in ("a", "b", "x"))
    expected: dict[tuple[tuple[int, ...], int], float] = {}
    for names in [*combinations(("a", "b"), 1), ("a", "b")]:
        sizes = {"a": 2, "b": 3}
        for values, value in product(product(*(range(sizes[name]) for name in names)), range(4)):
            rows = np.ones(60, bool)
            for name, wanted in zip(names, values, strict=True):
                rows &= {"a": a, "b": b}[name] == wanted
            if 1 <= (rows & (x == value)).sum() <= 10:
                columns = 2 if len(names) == 1 else 1
                chance = 1 / (columns * np.prod([sizes[name] for name in names]) * 4)
                key = (tuple(np.flatnonzero(rows).tolist()), value)
                expected[key] = expected.get(key, 0.0) + chance
    total = sum(expected.values())
    asked = zip(pool.condition, pool.chosen, strict=True)
    drawn = Counter((tuple(pool.rows[condition].tolist()), int(value)) for condition, value in asked)
    assert set(drawn) <= set(expected)
    shares = {key: 20_000 * chance / total for key, chance in expected.items()}
    statistic = sum((drawn[key] - share) ** 2 / share for key, share in shares.items())
    freedom = len(shares) - 1
    assert statistic < freedom + 6 * np.sqrt(2 * freedom) + 12, "chi-square, false alarm below 1e-6"


def test_a_file_of_sql_is_read_like_questions_to_a_release(people: pa.Table, coded: CodedTable) -> None:
    pool = sql_pool(
        coded,
        """
        -- young women, and an or among public columns
        SELECT COUNT(*) FROM release WHERE gender = 'Female' AND age < 30 AND occupation = 'Secretary';
        SELECT COUNT(*) FROM release WHERE (age > 70 OR marital = 'Widowed') AND occupation IN ('Cook', 'Cleaner')
        SELECT COUNT(*) FROM release
        """,
    )
    frame = people.to_pandas()
    first = frame[(frame.gender == "Female") & (frame.age < 30) & (frame.occupation == "Secretary")]
    second = frame[((frame.age > 70) | (frame.marital == "Widowed")) & frame.occupation.isin(["Cook", "Cleaner"])]
    assert pool.truth.tolist() == [len(first), len(second), 4000]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT COUNT(*) FROM release WHERE age = 30 OR occupation = 'Cook'", "Line 1: .*AND"),
        ("\nSELECT AVG(age) FROM release", "Line 2: .*plain counts"),
        ("SELECT COUNT(*) FROM release WHERE occupation = 'Astronaut'", "Astronaut"),
        ("-- nothing", "asks nothing"),
    ],
)
def test_a_file_of_sql_with_a_mistake_says_where_and_what(coded: CodedTable, text: str, says: str) -> None:
    with pytest.raises(QuestionError, match=says):
        sql_pool(coded, text)


def test_a_pool_needs_conditions_and_questions(coded: CodedTable) -> None:
    with pytest.raises(OptionError, match="at least 1"):
        sdr_pool(coded, conditions=0)
    with pytest.raises(OptionError, match="no public column"):
        sdr_pool(CodedTable({}, "x", coded.histogram, coded.codes))
    with pytest.raises(QuestionError, match="No question"):
        large_pool(CodedTable.of(pa.table({"a": ["p"] * 4, "x": ["u"] * 4}), "x"))


def test_a_tally_counts_states_of_conditions(coded: CodedTable) -> None:
    pool: QuestionPool = sdr_pool(coded, conditions=5)
    assert np.array_equal(pool.tally(coded.codes, coded.m), pool.by_value)
    assert np.array_equal(pool.by_value.sum(1), pool.condition_rows)
