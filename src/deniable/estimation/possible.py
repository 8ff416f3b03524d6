"""Which numbers the rows of a question may have, by its conditions and groups alone.

A row that satisfies a condition has, of each column, a value that the condition leaves, whatever its other columns
hold; so an average lies among the numbers of the values that are left, and no estimate of it has to leave them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.values import Bools, Floats, Ints
from deniable.estimation.linear import Narrowed, Term
from deniable.estimation.mapped import Grouped, Mapped
from deniable.estimation.model.columns import sensitive_values
from deniable.estimation.predicates import And, Leaf, Predicate
from deniable.estimation.published import Published, source_of
from deniable.estimation.question import Question

Labels = tuple[tuple[Hashable, ...], ...]
Range = tuple[Floats, Floats]  # smallest and largest number [groups or 1, labels or 1]; NaN where there is none


def values_left(node: Predicate, column: str, values: pa.Array) -> Bools:
    """Which values of a column rows may have that satisfy a condition; the last one says it of missing ones."""
    if isinstance(node, Leaf):
        own = node.column == column
        return np.append(node.holds(values), node.missing) if own else np.ones(len(values) + 1, bool)
    join = np.logical_and if isinstance(node, And) else np.logical_or
    parts = [values_left(part, column, values) for part in node.parts]
    return join.reduce(np.reshape(parts, (len(parts), len(values) + 1)).astype(bool), axis=0)


@dataclass(frozen=True, eq=False)
class Possible:
    """What is possible in the answer to a question.

    Attributes:
        published: the release, with the columns that the question computes.
        question: its condition and its groups.
    """

    published: Published
    question: Question
    _known: dict[Term, tuple[str, Floats, Bools, Range]] = field(default_factory=dict)

    def range(self, keys: Ints, labels: Labels, term: Term) -> Range:
        """The smallest and the largest number that a term adds up, in public groups (codes) and sensitive ones."""
        if term not in self._known:  # answers come in blocks
            self._known[term] = self._left(term)
        column, numbers, left, (low, high) = self._known[term]
        for axis, own, theirs in self._groups(column, keys, labels):
            ends = [np.full(max(own.max(), theirs.max(initial=0)) + 1, end) for end in (np.inf, -np.inf)]
            np.minimum.at(ends[0], own[left], numbers[left])
            np.maximum.at(ends[1], own[left], numbers[left])
            lower, upper = (np.expand_dims(end[theirs], 1 - axis) for end in ends)
            low, high = np.maximum(low, lower), np.minimum(high, upper)
        return np.where(low <= high, low, np.nan), np.where(low <= high, high, np.nan)

    def _left(self, term: Term) -> tuple[str, Floats, Bools, Range]:
        """The column that a term adds up, a number for each value, which of them conditions leave, and their ends."""
        narrowed = term.narrowed or Narrowed(And(()))
        column, compute = self._read(term.column or narrowed.numbers or "")
        every = self._values(column)
        numbers = pc.cast(compute(with_missing(every)), pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        left = values_left(And((self.question.where, narrowed.condition)), column, every) & ~np.isnan(numbers)
        ends = numbers[left].min(initial=np.inf), numbers[left].max(initial=-np.inf)
        return column, numbers, left, (np.full((1, 1), ends[0]), np.full((1, 1), ends[1]))

    def _groups(self, column: str, keys: Ints, labels: Labels) -> list[tuple[int, Ints, Ints]]:
        """Of the groups that are functions of a column: their axis, and the codes of its values and of the answer's."""
        result = []
        for axis, groups in enumerate(self._by_axis):
            for place, group in enumerate(groups):
                source, compute = self._read(group)
                if source != column:
                    continue
                computed = compute(with_missing(self._values(column)))
                if axis == 0:
                    known = self.published.counter().distinct(str(group))
                    own = pc.index_in(computed, value_set=known, skip_nulls=True).fill_null(len(known))
                    result.append((axis, own.to_numpy().astype(np.int64), keys[:, place]))
                    continue
                code: dict[Hashable, int] = {}
                own_codes = [code.setdefault(value, len(code)) for value in computed.to_pylist()]
                theirs = [code.setdefault(label[place], len(code)) for label in labels]
                result.append((axis, np.array(own_codes, np.int64), np.array(theirs, np.int64)))
        return result

    @cached_property
    def _by_axis(self) -> tuple[Sequence[Grouped], Sequence[Grouped]]:
        """The groups that are public, and those that are sensitive."""
        sensitive, groups = self.published.manifest.sensitive_columns, self.question.groups
        hidden = [group for group in groups if isinstance(group, Mapped) or group in sensitive]
        return [group for group in groups if group not in hidden], hidden

    def _read(self, what: Grouped) -> tuple[str, Callable[[pa.Array], pa.Array]]:
        """The column that something is a function of, and the function."""
        if isinstance(what, Mapped):
            return what.column, what.compute
        derived = source_of(self.published, what)
        return (what, lambda values: values) if derived is None else (derived.sources[0], derived.compute)

    def _values(self, column: str) -> pa.Array:
        if column in self.published.manifest.sensitive_columns:
            return sensitive_values(self.published.manifest, column)
        return self.published.counter().distinct(column)


def with_missing(values: pa.Array) -> pa.Array:
    """Some values, and a missing one as the last."""
    return pa.concat_arrays([values, pa.nulls(1, values.type)])
