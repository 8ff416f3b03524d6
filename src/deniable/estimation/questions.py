"""A question, resolved against a release: which public conditions to evaluate, and which sensitive values remain.

The truth of the k public leaves of a predicate is a k-bit pattern. For each pattern the predicate reduces to a set of
sensitive values; patterns with the same set form a *class*, patterns with the empty set are not counted at all. So any
mixture of public and sensitive conditions is a tally by class and state, and weights per class (mathematics 8).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import QuestionError, did_you_mean, listing
from deniable.core.tally import CodeMask
from deniable.estimation.mapped import Grouped, Mapped
from deniable.estimation.predicates import And, Leaf, Predicate, Where, conjunction, require_known
from deniable.estimation.published import Bools, Counter, Floats, Ints, Layout

MOST_ENTRIES = 2**26  # patterns x values


@dataclass(frozen=True, eq=False)
class Resolved:
    """A resolved predicate.

    Attributes:
        leaves: the public conditions, by column and distinct values.
        classes: pattern of their truth -> class, or -1.
        sets: the sensitive values of each class, [classes, m].
        narrowed: the same for further conditions on those rows, [conditions, classes, m].
    """

    leaves: tuple[CodeMask, ...]
    classes: Ints
    sets: Bools
    narrowed: Bools


def require_column(manifest: Layout, column: str) -> None:
    """Refuse a column that the release does not have."""
    known = [*manifest.public_columns, *manifest.sensitive_columns]
    if column not in known:
        near = did_you_mean(column, known)
        raise QuestionError(f"There is no column {column!r}.{near} The columns are: {listing(known, most=20)}.")


def sensitive_part(manifest: Layout, column: Grouped) -> list[Hashable]:
    """The value of one sensitive column, or of a function of it, at each position of the domain."""
    if isinstance(column, Mapped):
        return column.compute(pa.array(sensitive_part(manifest, column.column))).to_pylist()
    if len(manifest.sensitive_columns) == 1:
        return list(manifest.domain)
    place = list(manifest.sensitive_columns).index(column)
    return [value[place] for value in manifest.domain if isinstance(value, tuple)]


def domain_numbers(manifest: Layout, numbers: Mapped) -> Floats:
    """A number for each position of the domain; 0 where it is missing."""
    return as_numbers(numbers, pa.array(sensitive_part(manifest, numbers.column)))


def as_numbers(numbers: Mapped, values: pa.Array) -> Floats:
    """What is added up of each value; 0 for missing."""
    computed = numbers.compute(values)
    if not is_number(computed.type):
        raise QuestionError(
            f"{numbers.name!r} is of type {computed.type}: only numbers can be added up or averaged. Ask for counts by "
            f"value instead: group by {numbers.column!r}."
        )
    return pc.cast(computed, pa.float64(), safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)


def ends_of(numbers: pa.Array) -> tuple[float, float]:
    """The smallest and the largest of some numbers; 0 where there are none."""
    ends = pc.min_max(pc.cast(numbers, pa.float64(), safe=False)).as_py()
    return (0.0, 0.0) if ends["min"] is None else (ends["min"], ends["max"])


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def sensitive_mask(manifest: Layout, leaf: Leaf) -> Bools:
    """Which values of the domain satisfy a condition on a sensitive column."""
    parts = sensitive_part(manifest, leaf.column)
    distinct = list(dict.fromkeys(part for part in parts if part is not None))
    values = pa.array(distinct)
    require_known(leaf.column, values, leaf.named, sensitive=True)
    if leaf.missing and not leaf.named and None not in parts and not np.any(leaf.holds(values)):
        raise QuestionError(f"Column {leaf.column!r} has no missing values: there is nothing to count.")
    holds = dict(zip(distinct, leaf.holds(values).tolist(), strict=True))
    return np.array([leaf.missing if part is None else holds[part] for part in parts], dtype=bool)


def public_mask(counter: Counter, leaf: Leaf) -> Bools:
    """Which codes of a public column satisfy a condition; missing is the last code."""
    values = counter.distinct(leaf.column)
    require_known(leaf.column, values, leaf.named, sensitive=False)
    return np.append(leaf.holds(values), leaf.missing)


def _mapping(where: Where | None) -> Where:
    """What is asked for, refused where it is no mapping."""
    conjunction({} if isinstance(where, Mapping) else where)
    return where or {}


Truth = Callable[[Bools], Bools]  # bits of patterns [patterns, k] -> holds [patterns, m]


class Resolver:
    """Turns predicates into what a counter and the weights need."""

    def __init__(self, manifest: Layout, counter: Counter) -> None:
        self.manifest = manifest
        self.counter = counter
        self.m = len(manifest.domain)

    def resolve(self, where: Predicate, conditions: Sequence[Predicate] = ()) -> Resolved:
        """A condition, and further ones on the rows that satisfy it, all by the same classes of rows."""
        leaves: list[CodeMask] = []
        truths = [self._truth(merged(predicate), leaves) for predicate in (where, *conditions)]
        if len(leaves) > 20 or 2 ** len(leaves) * self.m * len(truths) > MOST_ENTRIES:
            raise QuestionError(
                f"The condition combines {len(leaves)} different conditions on public columns, more than can be "
                "answered at once. Fix: ask in parts, and add up the estimates of disjoint parts."
            )
        patterns = np.arange(2 ** len(leaves))
        bits = (patterns[:, None] >> np.arange(len(leaves))) & 1
        sets = np.empty((len(patterns), len(truths), self.m), bool)
        for place, truth in enumerate(truths):
            sets[:, place] = truth(bits.astype(bool))
        sets[:, 1:] &= sets[:, :1]
        classes, distinct = _classes(sets)
        return Resolved(tuple(leaves), classes, distinct[:, 0], distinct[:, 1:].swapaxes(0, 1))

    def conjunctions(self, wheres: Sequence[Where | None]) -> tuple[list[list[CodeMask]], Bools]:
        """Pools of questions, each as public leaves and one value set; a condition that many have is resolved once."""
        known: dict[tuple[str, type, Hashable], tuple[list[CodeMask], Bools, object]] = {}
        masks, sets = [], np.ones((len(wheres), self.m), bool)
        for own, where in zip(sets, wheres, strict=True):
            public: list[CodeMask] = []
            for column, condition in _mapping(where).items():
                key = (column, type(condition), condition if isinstance(condition, str | int) else id(condition))
                if key not in known:  # with the condition, so that no other object has its id
                    known[key] = (*self._conjunction(conjunction({column: condition})), condition)
                public += known[key][0]
                own &= known[key][1]
            masks.append(public)
        return masks, sets

    def _conjunction(self, predicate: And) -> tuple[list[CodeMask], Bools]:
        public: list[CodeMask] = []
        chosen: Bools = np.ones(self.m, bool)
        for leaf in predicate.parts:
            assert isinstance(leaf, Leaf)
            require_column(self.manifest, leaf.column)
            if leaf.column in self.manifest.sensitive_columns:
                chosen = chosen & sensitive_mask(self.manifest, leaf)
            else:
                public.append((leaf.column, public_mask(self.counter, leaf)))
        return public, chosen

    def _truth(self, node: Predicate, leaves: list[CodeMask]) -> Truth:
        if isinstance(node, Leaf):
            return self._leaf_truth(node, leaves)
        parts = [self._truth(part, leaves) for part in node.parts]
        join, neutral = (np.logical_and, True) if isinstance(node, And) else (np.logical_or, False)

        def combined(bits: Bools) -> Bools:
            result: Bools = np.full((len(bits), 1), neutral)
            for part in parts:
                result = join(result, part(bits))
            return result

        return combined

    def _leaf_truth(self, leaf: Leaf, leaves: list[CodeMask]) -> Truth:
        require_column(self.manifest, leaf.column)
        if leaf.column in self.manifest.sensitive_columns:
            mask = sensitive_mask(self.manifest, leaf)
            return lambda bits: mask[None, :]
        allowed = public_mask(self.counter, leaf)
        for place, (column, known) in enumerate(leaves):
            if column == leaf.column and np.array_equal(known, allowed):
                return lambda bits: bits[:, place, None]
        leaves.append((leaf.column, allowed))
        last = len(leaves) - 1
        return lambda bits: bits[:, last, None]


def _classes(sets: Bools) -> tuple[Ints, Bools]:
    """Number the distinct sets [patterns, conditions, m] whose first is not empty."""
    packed = np.packbits(sets.reshape(len(sets), -1), axis=1)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    distinct = sets[first]
    filled = distinct[:, 0].any(axis=1)
    if not filled.any():
        return np.full(len(sets), -1, np.int64), np.zeros((1, *sets.shape[1:]), bool)
    numbers = np.where(filled, np.cumsum(filled) - 1, -1)
    return numbers[inverse.reshape(-1)].astype(np.int64), distinct[filled]


def merged(node: Predicate) -> Predicate:
    """Flatten nested and / or, and join conditions on the same column into one: fewer patterns."""
    if isinstance(node, Leaf):
        return node
    kind = type(node)
    parts: list[Predicate] = []
    for part in node.parts:
        part = merged(part)
        parts.extend(part.parts if isinstance(part, kind) else [part])
    by_column: dict[str, list[Leaf]] = {}
    rest: list[Predicate] = []
    for part in parts:
        if isinstance(part, Leaf):
            by_column.setdefault(part.column, []).append(part)
        else:
            rest.append(part)
    joined = [_joined(leaves, kind is And) for leaves in by_column.values()]
    result = (*joined, *rest)
    return result[0] if len(result) == 1 else kind(result)


def _joined(leaves: Sequence[Leaf], both: bool) -> Leaf:
    if len(leaves) == 1:
        return leaves[0]

    def test(values: pa.Array) -> pa.Array:
        join = np.logical_and if both else np.logical_or
        return pa.array(join.reduce([leaf.holds(values) for leaf in leaves]), pa.bool_())

    missing = all(leaf.missing for leaf in leaves) if both else any(leaf.missing for leaf in leaves)
    named = tuple(value for leaf in leaves for value in leaf.named)
    return Leaf(leaves[0].column, test, missing, named)
