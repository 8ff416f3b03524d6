"""Pools of questions: what is planned for, and what an experiment asks of the original and of every release alike.

A question is a condition on public columns and a set of sensitive values. SDR 10.9: A_1 = a_1 and .. and A_d = a_d and
SA = x, with d in {1, 2, 3} random columns and random values of them. A pool keeps the rows of each condition, so that a
draw is counted by one ``bincount`` over them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.arrays import Bools, Floats, Ints
from deniable.core.errors import OptionError, QuestionError, did_you_mean
from deniable.core.profile import QuestionProfile
from deniable.core.reading import small_text
from deniable.engines.batch.columns import mixed
from deniable.estimation.published import Counter
from deniable.estimation.questions import Resolved, Resolver
from deniable.estimation.sql.parsing import parse
from deniable.estimation.sql.scope import Scope
from deniable.planning.condition_rows import HELD, Condition, CountedRows, Rows, rows_of
from deniable.planning.tables import CodedTable

CONDITIONS = 200
QUESTIONS = 5000
MOST_COLUMNS = 3
SMALL = (1, 10)  # true rows, both ends in (SPLU 6.1)
LARGE = (0.005, 0.05)  # share of all rows, the upper end out (SPLU 6.1)
DISTINCT_KEYS = 2**62
POOLS = ("sdr", "splu", "FILE.sql")


@dataclass(frozen=True, eq=False)
class QuestionPool:
    """Questions about one table, with their true answers.

    Attributes:
        name: for the table of results.
        table: the original.
        rows: for each condition the rows that satisfy it.
        sets: value sets, [sets, m].
        condition, chosen: for each question its condition and its value set.
        masks: for each condition its columns, and which codes of each satisfy it; None where it is not a conjunction of
            columns, so that a release without single public values cannot be asked.
    """

    name: str
    table: CodedTable
    rows: Sequence[Rows]
    sets: Bools
    condition: Ints
    chosen: Ints
    masks: tuple[Mapping[str, Bools] | None, ...] = ()

    def __len__(self) -> int:
        return len(self.condition)

    @cached_property
    def _entries(self) -> tuple[Rows, Ints]:
        sizes = [len(rows) for rows in self.rows]
        return np.concatenate([np.zeros(0, np.int32), *self.rows]), np.repeat(np.arange(len(sizes)), sizes)

    def tally(self, states: npt.NDArray[Any], number: int) -> Floats:
        """Rows of every condition by state: [conditions, number of states]."""
        if isinstance(self.rows, CountedRows):
            return self.rows.tally(states, number)
        rows, condition = self._entries
        key = condition * number + states[rows]
        return np.bincount(key, minlength=len(self.rows) * number).reshape(len(self.rows), number).astype(np.float64)

    @cached_property
    def by_value(self) -> Floats:
        """The true rows of every condition by sensitive value."""
        return self.tally(self.table.codes, self.table.m)

    @cached_property
    def profile(self) -> QuestionProfile:
        """The questions as counts, for planning."""
        return QuestionProfile(self.table.domain, self.by_value, self.sets, self.condition, self.chosen)

    def pick(self, answers: Floats) -> Floats:
        """From answers [conditions, sets] those that are asked for."""
        return self.profile.pick(answers)

    @property
    def truth(self) -> Floats:
        """The true answer of every question."""
        return self.profile.truth

    @property
    def true_answers(self) -> Floats:
        """The true count of every value set under every condition, [conditions, sets]."""
        answers: Floats = self.by_value @ self.sets.T
        return answers

    def sizes(self, selectivities: Sequence[float]) -> tuple[int, ...]:
        """How many questions have an answer above 0 and of at least each share of all rows."""
        return tuple(int(((self.truth > 0) & (self.truth >= a * self.table.rows)).sum()) for a in selectivities)

    @cached_property
    def condition_rows(self) -> Floats:
        """N_R, the rows of every condition."""
        return self.by_value.sum(1)


def pools_named(table: CodedTable, name: str, seed: int = 1) -> list[QuestionPool]:
    """The pools that a user names: ``sdr``, ``splu`` (two of them), or a file of questions."""
    if name == "sdr":
        return [sdr_pool(table, seed=seed)]
    if name == "splu":
        return [small_pool(table, seed=seed), large_pool(table, seed=seed)]
    path = Path(name)
    if not path.is_file():
        raise OptionError(
            f"pool = {name!r} is neither a known pool nor a file.{did_you_mean(name, POOLS[:2])} "
            f"Fix: one of {', '.join(POOLS)}."
        )
    try:
        text = small_text(path)
    except (OSError, UnicodeDecodeError):
        raise OptionError(f"pool = {name!r} cannot be read as text. Fix: a file of SQL, in UTF-8.") from None
    return [sql_pool(table, text, name=path.name)]


def sdr_pool(table: CodedTable, *, conditions: int = CONDITIONS, seed: int = 1) -> QuestionPool:
    """Random conditions, each with every sensitive value (SDR 10.9)."""
    _require(table, conditions)
    rng = np.random.default_rng(seed)
    names = _usable(table)
    masks = []
    for _ in range(conditions):
        d = min(int(rng.integers(1, MOST_COLUMNS + 1)), len(names))
        columns = rng.choice(len(names), size=d, replace=False)
        equalities = dict[str, Bools]()
        for place in columns:
            column = table.columns[names[place]]
            value = rng.integers(len(column.values))
            equalities[names[place]] = np.arange(column.size) == value
        masks.append(equalities)
    condition, chosen = np.divmod(np.arange(conditions * table.m), table.m)
    rows = rows_of(table, [Condition.all_of(one) for one in masks])
    return QuestionPool("sdr", table, rows, np.eye(table.m, dtype=bool), condition, chosen, tuple(masks))


def small_pool(table: CodedTable, *, questions: int = QUESTIONS, seed: int = 1) -> QuestionPool:
    """Random questions of the same form with 1 to 10 true rows (SPLU 6.1)."""
    return sized_pool("splu-small", table, SMALL[0], SMALL[1], questions=questions, seed=seed)


def large_pool(table: CodedTable, *, questions: int = QUESTIONS, seed: int = 1) -> QuestionPool:
    """Random questions of the same form about 0.5 % to 5 % of all rows (SPLU 6.1)."""
    low, high = (share * table.rows for share in LARGE)
    return sized_pool("splu-large", table, math.ceil(low), math.ceil(high) - 1, questions=questions, seed=seed)


def sized_pool(
    name: str, table: CodedTable, low: int, high: int, *, questions: int = QUESTIONS, seed: int = 1
) -> QuestionPool:
    """Questions whose true answer lies in [low, high], distributed as if others had been thrown away.

    Instead of drawing until enough fit, all that fit are counted: a set of d columns with values of sizes s_1..s_d is
    drawn with probability 1/3 / C(k, d), each of its questions with 1 / (s_1 .. s_d m).
    """
    _require(table, questions)
    fitting, weights = _fitting(table, low, high)
    total = sum(weights)
    if total == 0:
        raise QuestionError(f"No question about this table has between {low:,} and {high:,} rows as its answer.")
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(fitting), size=questions, p=np.array(weights) / total)
    conditions: dict[tuple[tuple[str, ...], int], int] = {}
    condition, chosen = np.empty(questions, np.int64), np.empty(questions, np.int64)
    for question, place in enumerate(drawn):
        names, keys = fitting[place]
        key = int(keys[rng.integers(len(keys))])
        chosen[question] = key % table.m
        condition[question] = conditions.setdefault((names, key // table.m), len(conditions))
    masks = tuple(_masks_of(table, columns, key) for columns, key in conditions)
    rows = (
        _sorted_rows(table, list(conditions)) if table.rows <= HELD else rows_of(table, [*map(Condition.all_of, masks)])
    )
    return QuestionPool(name, table, rows, np.eye(table.m, dtype=bool), condition, chosen, masks)


def _fitting(table: CodedTable, low: int, high: int) -> tuple[list[tuple[tuple[str, ...], Ints]], list[float]]:
    """For each set of columns the questions that fit, as mixed-radix keys (value last), and their total probability."""
    usable = _usable(table)
    fitting, weights = [], []
    for d in range(1, min(MOST_COLUMNS, len(usable)) + 1):
        for names in combinations(usable, d):
            sizes = [table.columns[name].size for name in names]
            if math.prod(sizes) * table.m > DISTINCT_KEYS:
                continue
            there = _not_missing(table, names)
            digits = [table.columns[name].codes[there] for name in names]
            keys, counts = np.unique(mixed([*digits, table.codes[there]], [*sizes, table.m]), return_counts=True)
            fit = keys[(counts >= low) & (counts <= high)]
            if len(fit):
                values = math.prod(size - 1 for size in sizes)
                fitting.append((names, fit))
                weights.append(len(fit) / (math.comb(len(usable), d) * values * table.m))
    return fitting, weights


def _sorted_rows(table: CodedTable, conditions: Sequence[tuple[tuple[str, ...], int]]) -> tuple[Rows, ...]:
    """The rows of conditions that are given as columns and a mixed-radix key; one sort per set of columns."""
    rows: list[Rows] = [np.zeros(0, np.int32)] * len(conditions)
    by_columns: dict[tuple[str, ...], list[int]] = {}
    for place, (names, _) in enumerate(conditions):
        by_columns.setdefault(names, []).append(place)
    for names, places in by_columns.items():
        columns = [table.columns[name] for name in names]
        keys = mixed([column.codes for column in columns], [column.size for column in columns])
        order = np.argsort(keys, kind="stable").astype(np.int32)
        wanted = np.array([conditions[place][1] for place in places])
        first, last = (np.searchsorted(keys[order], wanted, side=side) for side in ("left", "right"))
        for place, start, stop in zip(places, first, last, strict=True):
            rows[place] = np.sort(order[start:stop])
    return tuple(rows)


def _masks_of(table: CodedTable, names: Sequence[str], key: int) -> dict[str, Bools]:
    """The columns of a condition that is given as a mixed-radix key."""
    masks = {}
    for name in reversed(names):
        key, value = divmod(key, table.columns[name].size)
        masks[name] = np.arange(table.columns[name].size) == value
    return masks


def sql_pool(table: CodedTable, text: str, *, name: str = "sql") -> QuestionPool:
    """The user's own questions, one ``SELECT COUNT(*) FROM release WHERE ..`` in each line.

    Empty lines and lines that begin with ``--`` are skipped. The text is read like any question to a release, so the
    original and the release are asked exactly the same thing.
    """
    conditions, sets, masks = [], [], []
    for number, line in enumerate(text.splitlines(), start=1):
        question = line.strip().rstrip(";")
        if not question or question.startswith("--"):
            continue
        try:
            condition, values, conjunction = _resolved(table, question)
        except QuestionError as problem:
            raise QuestionError(f"Line {number}: {problem}") from None
        conditions.append(condition)
        sets.append(values)
        masks.append(conjunction)
    if not conditions:
        raise QuestionError(
            "The file asks nothing. Fix: one question in each line, for example "
            f"SELECT COUNT(*) FROM release WHERE {table.sensitive} = '...'"
        )
    distinct, inverse = np.unique(np.array(sets), axis=0, return_inverse=True)
    rows, number = rows_of(table, conditions), len(conditions)
    return QuestionPool(name, table, rows, distinct, np.arange(number), inverse.reshape(-1), tuple(masks))


def _resolved(table: CodedTable, question: str) -> tuple[Condition, Bools, dict[str, Bools] | None]:
    known = pa.array([value for value in table.domain if value is not None])
    scope = Scope(table, cast(Counter, table), lambda column: known)
    query = parse(question, scope)
    if not query.is_count or scope.derived:
        raise QuestionError("A pool holds plain counts: SELECT COUNT(*) FROM release WHERE ..")
    condition = Resolver(table, cast(Counter, table)).resolve(query.where)
    if len(condition.sets) != 1:
        raise QuestionError(
            f"Join the condition on {table.sensitive!r} to those on public columns with AND; anything else is more "
            "than one count. Fix: ask in parts."
        )
    return Condition(condition.leaves, condition.classes), condition.sets[0], _conjunction(condition)


def _conjunction(condition: Resolved) -> dict[str, Bools] | None:
    """Which codes of each column are asked for, where all leaves must hold; None for any other formula."""
    if np.flatnonzero(condition.classes >= 0).tolist() != [len(condition.classes) - 1]:
        return None
    masks: dict[str, Bools] = {}
    for column, mask in condition.leaves:
        masks[column] = masks.get(column, np.ones(len(mask), bool)) & mask
    return masks


def _not_missing(table: CodedTable, names: Sequence[str]) -> Bools | slice:
    there = np.ones(table.rows, bool)
    for name in names:
        column = table.columns[name]
        there &= column.codes < len(column.values)
    return slice(None) if there.all() else there


def _usable(table: CodedTable) -> list[str]:
    return [name for name, column in table.columns.items() if len(column.values)]


def _require(table: CodedTable, number: int) -> None:
    if number < 1:
        raise OptionError(f"A pool of {number} is not allowed: ask at least 1.")
    if not _usable(table):
        raise OptionError("The table has no public column with values: there is nothing to put into a condition.")
