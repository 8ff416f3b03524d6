"""A predicate over public and independently perturbed columns: bits of a row's pattern, and a tensor channel
(mathematics 6).

Every condition is one bit. For constant coins the channel of a column, seen through the conditions on it, is again a
coin with replacing masses b, so

    w(pattern) = A^-T t,    t[pattern] = whether the predicate holds,    E[w | original row] = 1[it satisfies]

for any combination by and / or. The channel of a column of decoy groups (a matrix) or of line-ups is not so simple when
seen through conditions; rows are tallied by what such a *wide* column shows, and t and w have an axis for it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from deniable.core.errors import QuestionError
from deniable.core.part import Part
from deniable.core.tally import CodeMask
from deniable.estimation.calibration import Control
from deniable.estimation.mapped import Grouped, Mapped, column_of
from deniable.estimation.model.columns import PerturbedColumn
from deniable.estimation.model.tensor import Factor, Tensor
from deniable.estimation.predicates import And, Leaf, Predicate
from deniable.estimation.published import Bools, Counter, Floats, Ints
from deniable.estimation.questions import public_mask, require_column

MOST_COLUMNS = 16
MOST_CONDITIONS = 20
MOST_LABELS = 2**22
MOST_SHOWN = 2**24  # combinations of what rows show, where line-ups are among it


def is_joint(manifest: Any) -> bool:
    """Whether a release has several parts, a range of numbers or a swapped column: then this module answers."""
    return len(manifest.parts) > 1 or any(part.range is not None or part.swapped for part in manifest.parts)


@dataclass(frozen=True, eq=False)
class Bits:
    """The conditions on one column: consecutive bits of a row's pattern, and what they are worth."""

    name: str
    leaves: tuple[Leaf, ...]
    column: PerturbedColumn | None  # None: a public column

    def factor(self) -> Factor | None:
        """The column's channel over the 2^l truth patterns of its conditions; None for a public column."""
        if self.column is None:
            return None
        masses = np.bincount(self._patterns(), weights=self.column.masses, minlength=2 ** len(self.leaves))
        fixed = 2 ** len(self.leaves) if self.column.exempt else 0
        return Factor(self.column.coin, masses.astype(np.float64), fixed)

    def shares(self, often: Floats, *, wide: bool) -> Floats:
        """How often the column has its states, from how often it has its values."""
        assert self.column is not None
        if wide:
            return often
        size = 2 ** len(self.leaves) * (1 + int(self.column.exempt))
        return np.bincount(self.states(), weights=often, minlength=size).astype(np.float64)

    def states(self) -> Ints:
        """Which of the channel's states each value goes to, missing ones that are exempt last."""
        assert self.column is not None
        if not self.column.exempt:
            return self._patterns()
        of_missing = sum(leaf.missing << place for place, leaf in enumerate(self.leaves))
        return np.append(self._patterns(), 2 ** len(self.leaves) + of_missing)

    def _patterns(self) -> Ints:
        """Which conditions each value satisfies."""
        assert self.column is not None
        patterns = np.zeros(len(self.column.masses), np.int64)
        for place, leaf in enumerate(self.leaves):
            patterns |= self.column.mask(leaf).astype(np.int64) << place
        return patterns


_totals: WeakKeyDictionary[Counter, dict[str, Floats]] = WeakKeyDictionary()


def totals_of(counter: Counter, column: PerturbedColumn) -> Floats:
    """How many rows of the table show each state of a column; kept as long as the counter lives."""
    if column.source is not None:
        own, places = column.source
        return np.bincount(places, weights=totals_of(counter, own), minlength=column.factor().size).astype(np.float64)
    known = _totals.setdefault(counter, {})
    if column.name not in known:
        total = np.zeros(column.factor().published)
        for block in counter.tally((column.name,), (), np.zeros(1, np.int64)):
            np.add.at(total, column.states(counter.distinct(column.name))[block.keys[:, 0]], block.counts[:, 0, 0])
        known[column.name] = total
    return known[column.name]


def often_of(counter: Counter, column: PerturbedColumn) -> Floats:
    """How often the table has each value of a column, as nearly as its rows tell."""
    total = totals_of(counter, column)
    likely = np.maximum(column.factor().invert(total), 0.0) + 1e-15 * max(total.sum(), 1.0)
    return np.asarray(likely / likely.sum())


def control_of(manifest: Any, counter: Counter, column: PerturbedColumn) -> Control | None:
    """The noisy histogram of a column, where one is published; a swapped column shows its exact one."""
    part: Part = manifest.part_of(column.name)
    if part.marginal is None or part.swapped is not None or None in part.domain[:-1]:
        return None
    total = totals_of(counter, column)
    counts = np.append(np.asarray(part.marginal.counts, np.float64), total[len(total) - int(column.exempt) :])
    return Control.of(total, counts, float(part.marginal.variance), np.arange(len(counts)) < part.m)


@dataclass(eq=False)
class Conditions:
    """A predicate over public and independently perturbed columns, resolved against a release."""

    manifest: Any
    counter: Counter
    predicate: Predicate
    numbers: Sequence[Mapped] = ()
    bits: list[Bits] = field(default_factory=list)
    wide: list[Bits] = field(default_factory=list)

    def __post_init__(self) -> None:
        by_column: dict[str, list[Leaf]] = {one.column: [] for one in self.numbers}
        for leaf in {id(leaf): leaf for leaf in leaves_of(self.predicate)}.values():
            require_column(self.manifest, leaf.column)
            by_column.setdefault(leaf.column, []).append(leaf)
        for name, leaves in by_column.items():
            column = perturbed_column(self.manifest, name) if name in self.manifest.sensitive_columns else None
            added_up = any(one.column == name for one in self.numbers)
            wide = column is not None and (column.hidden or added_up)
            (self.wide if wide else self.bits).append(Bits(name, tuple(leaves), column))
        # Public columns first: their bits index the outer axis, the perturbed ones' the tensor's.
        self.bits.sort(key=lambda bits: bits.column is not None)
        perturbed = sum(bits.column is not None for bits in self.bits) + len(self.wide)
        if perturbed > MOST_COLUMNS or len(self.flat) > MOST_CONDITIONS:
            raise QuestionError(
                f"The question combines {perturbed} perturbed columns and {len(self.flat)} conditions; at most "
                f"{MOST_COLUMNS} columns and {MOST_CONDITIONS} conditions can be answered. Fix: ask about fewer."
            )

    @cached_property
    def flat(self) -> list[tuple[CodeMask, Leaf | None]]:
        """One entry per bit, the pattern's highest first: the mask over published values, and the condition."""
        entries: list[tuple[CodeMask, Leaf | None]] = []
        for bits in self.bits:
            name = bits.name
            values = self.counter.distinct(name)
            if bits.column is not None and bits.column.exempt:
                missing = np.append(np.zeros(len(values), bool), True)
                entries.append(((name, missing), None))
            for leaf in reversed(bits.leaves):  # within a column the first condition is the lowest bit
                if bits.column is None:
                    entries.append(((name, public_mask(self.counter, leaf)), leaf))
                else:
                    bits.column.require(leaf)
                    entries.append(((name, np.append(leaf.holds(values), leaf.missing)), leaf))
        return entries

    @cached_property
    def tensor(self) -> Tensor:
        return Tensor(tuple(factor for bits in self.bits if (factor := bits.factor()) is not None))

    @cached_property
    def values(self) -> Tensor:
        """The channels of wide columns, over their values."""
        tensor = Tensor(tuple(bits.column.factor() for bits in self.wide if bits.column is not None))
        patterns = 2 ** len(self.flat)
        if patterns * math.prod(tensor.shape) > MOST_LABELS or patterns * math.prod(tensor.published) > MOST_SHOWN:
            raise QuestionError("The question has more combinations of values than can be answered. Fix: ask in parts.")
        return tensor

    @cached_property
    def whole(self) -> Tensor:
        return Tensor((*self.tensor.factors, *self.values.factors))

    @property
    def perturbed_names(self) -> list[str]:
        """The columns of the tensor's factors."""
        return [bits.name for bits in self.bits if bits.column is not None]

    @property
    def wide_names(self) -> list[str]:
        return [bits.name for bits in self.wide]

    def wide_places(self, keys: Ints) -> Ints:
        """Where published codes [groups, wide columns] stand among the combinations of values."""
        columns = [bits.column for bits in self.wide if bits.column is not None]
        return places(self.counter, columns, self.values.published, keys)

    @cached_property
    def truth(self) -> Floats:
        """t over patterns: [public patterns, states of the first perturbed column, .., values of wide columns]."""
        return self.truth_of(self.predicate)

    def truth_of(self, predicate: Predicate) -> Floats:
        """The same of a part of the predicate."""
        result = np.broadcast_to(_evaluate(predicate, self._known), (2 ** len(self.flat), *self.values.shape))
        return result.reshape(-1, *self.whole.shape).astype(np.float64)

    def possible(self, predicate: Predicate) -> Bools:
        """Patterns whose public columns allow a condition, whatever the perturbed ones hold. Nothing is negated in it:
        if it can hold, then it does where all conditions on those do."""
        public = {id(leaf) for bits in self.bits if bits.column is None for leaf in bits.leaves}
        known = {key: holds.reshape(-1) if key in public else np.array(True) for key, holds in self._known.items()}
        return np.broadcast_to(_evaluate(predicate, known), 2 ** len(self.flat))

    def numbers_of(self, numbers: Mapped) -> Floats:
        """What is added up of a column, in the shape of a truth."""
        axis = self.wide_names.index(numbers.column)
        column = self.wide[axis].column
        assert column is not None
        return column.numbers(numbers).reshape(-1, *[1] * (len(self.wide) - 1 - axis))

    @cached_property
    def _known(self) -> dict[int, Bools]:
        """For each condition in which patterns it holds."""
        number = len(self.flat)
        patterns = np.arange(2**number)
        known = {
            id(leaf): ((patterns >> (number - 1 - place)) & 1).astype(bool).reshape(-1, *[1] * len(self.wide))
            for place, (_, leaf) in enumerate(self.flat)
            if leaf is not None
        }
        for axis, bits in enumerate(self.wide):
            assert bits.column is not None
            for leaf in bits.leaves:
                bits.column.require(leaf)
                mask = bits.column.states_of(leaf)
                known[id(leaf)] = mask.reshape(-1, *[1] * (len(self.wide) - 1 - axis))
        return known

    def weights_of(self, truth: Floats) -> Floats:
        """w of a truth t, for each pattern; exactly t where public columns decide it."""
        axes = tuple(range(1, truth.ndim))
        most = truth.max(axis=axes, keepdims=True)
        return np.where(truth.min(axis=axes, keepdims=True) == most, most, self.whole.weights(truth))

    @cached_property
    def leaves(self) -> list[CodeMask]:
        """The conditions in the order that a counter numbers bits: lowest first."""
        return [leaf for leaf, _ in reversed(self.flat)]

    @cached_property
    def classes(self) -> Ints:
        """Every pattern is a class of its own."""
        return np.arange(2 ** len(self.flat), dtype=np.int64)

    def by_pattern(self, per_public: Any) -> Floats:
        """A number per public pattern, repeated for all patterns of the perturbed columns."""
        return np.repeat(np.asarray(per_public, np.float64).reshape(-1), math.prod(self.tensor.shape))


def perturbed_column(manifest: Any, name: str) -> PerturbedColumn:
    """A sensitive column that was perturbed by itself."""
    part: Part = manifest.part_of(name)
    if len(part.columns) > 1:
        raise QuestionError(f"{name!r} is compounded with other columns, which this question cannot combine.")
    return PerturbedColumn.of(part, manifest.types[name])


def places(counter: Counter, columns: Sequence[PerturbedColumn], shape: Sequence[int], keys: Ints) -> Ints:
    """Where published codes [groups, columns] stand among the combinations of the columns' values."""
    place = np.zeros(len(keys), np.int64)
    for i, (column, size) in enumerate(zip(columns, shape, strict=True)):
        codes = column.states(counter.distinct(column.name))
        place = place * size + codes[keys[:, i]]
    return place


def leaves_of(node: Predicate) -> list[Leaf]:
    if isinstance(node, Leaf):
        return [node]
    return [leaf for part in node.parts for leaf in leaves_of(part)]


def _evaluate(node: Predicate, known: Mapping[int, Bools]) -> Bools:
    if isinstance(node, Leaf):
        return known[id(node)]
    join, result = (np.logical_and, np.array(True)) if isinstance(node, And) else (np.logical_or, np.array(False))
    for part in node.parts:
        result = join(result, _evaluate(part, known))
    return result


@dataclass(frozen=True, eq=False)
class Labels:
    """Perturbed columns that answers are grouped by: every combination of their values is a group.

    Attributes:
        names: the columns.
        columns: their values, or those of functions of them.
    """

    names: tuple[str, ...]
    columns: tuple[PerturbedColumn, ...]

    @classmethod
    def of(cls, manifest: Any, groups: Sequence[Grouped]) -> Labels:
        columns = []
        names = tuple(column_of(group) for group in groups)
        if len(set(names)) < len(names):
            raise QuestionError("One perturbed column is grouped by in two ways. Fix: group by one of them.")
        for group, name in zip(groups, names, strict=True):
            column = perturbed_column(manifest, name)
            columns.append(column.mapped(group) if isinstance(group, Mapped) else column)
        labels = cls(names, tuple(columns))
        if math.prod(labels.tensor.shape) > MOST_LABELS or math.prod(labels.tensor.published) > MOST_SHOWN:
            raise QuestionError(
                f"Grouping by {', '.join(names)} gives {math.prod(labels.tensor.published):,} groups; at most "
                f"{MOST_LABELS:,} can be answered. Fix: group by fewer columns, or count ranges with between."
            )
        return labels

    @cached_property
    def tensor(self) -> Tensor:
        return Tensor(tuple(column.factor() for column in self.columns))

    def positions(self, counter: Counter, keys: Ints) -> Ints:
        """Where published codes [groups, names] stand among the combinations."""
        return places(counter, self.columns, self.tensor.published, keys)

    def chosen(self, predicate: Predicate) -> tuple[Predicate, Ints]:
        """The predicate without its conditions on these columns, and the combinations that satisfy those."""
        parts = predicate.parts if isinstance(predicate, And) else (predicate,)
        inside = [np.ones(size, bool) for size in self.tensor.shape]
        rest: list[Predicate] = []
        for part in parts:
            named = {leaf.column for leaf in leaves_of(part)} & set(self.names)
            if not named:
                rest.append(part)
            elif isinstance(part, Leaf):
                column = self.columns[self.names.index(part.column)]
                if column.source is not None:
                    raise QuestionError(
                        f"{part.column!r} is in a condition, and a function of it is grouped by. Fix: group by "
                        f"{part.column!r} itself, or leave the condition out and drop groups with HAVING."
                    )
                column.require(part)
                inside[self.names.index(part.column)] &= column.states_of(part)
            else:
                raise QuestionError(
                    f"{', '.join(sorted(named))} is grouped by and also stands inside an OR. Fix: ask without the "
                    "group, or without the OR."
                )
        every = np.ones(1, bool)
        for mask in inside:
            every = (every[:, None] & mask[None, :]).reshape(-1)
        return And(tuple(rest)), np.flatnonzero(every)

    def values(self, chosen: Ints) -> tuple[tuple[Hashable, ...], ...]:
        if not self.names:
            return ((),)
        at = np.unravel_index(chosen, self.tensor.shape)
        lists = [column.label(place) for column, place in zip(self.columns, at, strict=True)]
        return tuple(zip(*lists, strict=True))
