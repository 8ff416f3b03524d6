"""Generalization: groups of k rows that look alike, with l-diverse values (k-anonymity; l-diversity; Mondrian).

Public values are shown as ranges and sets, coarse enough that at least k rows share each combination; the true
sensitive values stand beside them. k-anonymity alone says nothing about the values: a group that agrees gives
everybody in it away. "l different values" is little better, since one of them may have nearly all rows. What bounds
the attacker is the largest share in a group, so that is what l means here:

    Pr[x | group] = (rows of x in the group) / |group| <= 1/l

Groups are made by strict multidimensional partitioning (LeFevre, DeWitt, Ramakrishnan, ICDE 2006): a group is cut at
the median of its widest column, width being measured against the whole table's. Rows with the same value stay together,
so the halves are "at most the median" and the rest, or "below the median" and the rest, whichever is more even. Where
no half may stand (fewer than k rows, or a value with more than 1/l of them) the next column is tried, and a group that
no column can cut is final. Nothing is drawn, and the order of rows plays no part.

Rows are taken to lie evenly in their boxes (the usual uniformity assumption). A box whose rows are w with a wanted
sensitive value, and of which a condition covers the share p, answers

    sum over boxes of w p,    p = product over columns of (positions covered) / (positions of the box)

Positions are counted for whole numbers, dates and listed values, and measured for other numbers. Where rows lie
otherwise the estimate is biased, and nothing that is shown says by how much.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import InternalError, OptionError, QuestionError, TableError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.core.promise import Guarantee
from deniable.core.values import Bools, Codes, Counts, Floats, Ints, percent
from deniable.lab.draws import planning_stream
from deniable.lab.rival import Answered, Bound, Rival, Setting, diverse_bound, group_size, rows_kept, rows_to_suppress
from deniable.planning.pools import CodedTable, QuestionPool
from deniable.planning.prediction import Errors, Profile
from deniable.tables.encoding import Encoded, code_type, smallest
from deniable.tables.keys import Keystream

Kind = Literal["whole", "real", "listed"]


@dataclass(frozen=True)
class Generalize(Rival):
    """Groups of at least k rows that look alike, in which no value has more than 1/l of the rows (Mondrian).

    Attributes:
        k: how many rows a group has at least.
        l: a value has at most 1/l of a group's rows; 1 is plain k-anonymity. By its name alone, as many as rho2 asks
            for.

    >>> import deniable as dn
    >>> from deniable.lab import Generalize
    >>> Generalize(k=2, l=2).suppressed(dn.Histogram.of({"flu": 9, "gout": 3, "hiv": 2})).tolist()
    [4, 0, 0]
    """

    k: int = 10
    l: int = 6
    name: ClassVar[str] = "generalize"
    reveals: ClassVar[str] = "the exact values of a row's group; public columns only as ranges"
    biased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, value, what, fix in (("k", self.k, "row", 10), ("l", self.l, "value", 6)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise OptionError(
                    f"{name} = {value!r} is not allowed: a group has 1 {what} or more. Fix: {name}={fix}."
                )

    def fitted(self, privacy: Privacy | None) -> Generalize:
        """With as many values in a group as ``privacy`` asks for, and no fewer rows."""
        if privacy is None:
            return self
        return Generalize(max(self.k, group_size(privacy)), group_size(privacy))

    def suppressed(self, histogram: Histogram) -> Counts:
        """How many rows of each value of ``histogram`` no group can take: the fewest, of the most frequent values."""
        cut = rows_to_suppress(histogram, self.l)
        left = histogram.rows - int(cut.sum())
        if left < self.k:
            raise TableError(
                f"k = {self.k} is larger than the table: {left} rows can be published with l = {self.l}. "
                f"Fix: k={max(left, 1)} or less."
            )
        return cut

    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Bound:
        """What groups bound; refused when a requirement asks for more."""
        self.suppressed(histogram)
        alike, sure = f"at least {self.k} rows look alike in their public columns", percent(Fraction(1, self.l))
        sentence = (
            "An attacker who knows a person's public values and how frequent each sensitive value is, and nothing "
            f"more, becomes at most {sure} sure of that person's value: {alike}, and no value has more than {sure} of "
            "such a group."
        )
        if self.l == 1:
            sentence = f"Nothing is promised about values: {alike}, but they may all have the same value."
        return diverse_bound(self.name, self.l, 1, histogram, privacy, sentence)

    def group(self, table: CodedTable, stream: Keystream) -> tuple[Ints, Boxed]:
        """The rows that are grouped, and their groups; which rows are left out is drawn."""
        kept = rows_kept(table.codes, self.suppressed(table.histogram), stream.subkey("suppression"))
        return kept, Boxed.of(table, kept, self.k, self.l)

    def setting(self, label: str, privacy: Privacy) -> Setting:
        return Generalized(self.k, self.l, label, privacy)

    def errors(self, profile: Profile, privacy: Privacy, bound: Guarantee) -> Errors:
        return profile.errors_of(GeneralizeMoments(self))


@dataclass(frozen=True)
class Generalized(Setting):
    """Generalization in an experiment: rows are spread evenly in their boxes."""

    k: int
    l: int
    label: str = "generalize"
    privacy: Privacy | None = None

    def run(self, pool: QuestionPool, stream: Keystream) -> Answered:
        table, rival = pool.table, Generalize(self.k, self.l)
        begin = time.perf_counter()
        rival.guarantee(table.histogram, self.privacy)
        kept, boxed = rival.group(table, stream)
        drawn = time.perf_counter()
        counts = BoxCounts.of_codes(boxed.groups, table.codes[kept], table.m, boxed.number)
        answers = np.array([counts.by_value(share, table.m) for share in boxed.shares(pool)]) @ pool.sets.T
        answered = time.perf_counter()
        histogram = (table.histogram.counts - rival.suppressed(table.histogram)).astype(np.float64)
        return Answered({"": answers}, {"": histogram}, None, (drawn - begin, answered - drawn))


@dataclass(frozen=True)
class GeneralizeMoments:
    """Boxes need the public columns, so only a pool can tell. There is no chance in them: one run is exact."""

    mechanism: Generalize

    def variance_per_row(self, share: Floats, question: Floats) -> Floats:
        return np.full(share.shape, np.nan)

    def moments(self, pool: QuestionPool) -> tuple[Floats, Floats]:
        answers = Generalized(self.mechanism.k, self.mechanism.l).run(pool, planning_stream()).answers[""]
        return answers - pool.true_answers, np.zeros(answers.shape)


# -- boxes: what the rows of a group have in common --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Boxed:
    """Groups of some rows of a table, and their boxes, which are as tight as the rows allow; no two overlap.

    Attributes:
        axes: the public columns of these rows.
        groups: the group of each of them.
        number: how many groups there are.
    """

    axes: Mapping[str, Axis]
    groups: Ints
    number: int

    @classmethod
    def of(cls, table: CodedTable, rows: Ints, k: int, l: int) -> Boxed:
        """Groups of at least k of these rows, in which no value has more than 1/l."""
        axes = {name: axis_of(name, Encoded(own.values, own.codes[rows])) for name, own in table.columns.items()}
        groups = mondrian(list(axes.values()), table.codes[rows], k, l)
        return cls(axes, groups, int(groups.max()) + 1)

    def shares(self, pool: QuestionPool) -> Iterator[Floats]:
        """For each condition of a pool the share of every box, rows lying evenly in it."""
        boxes = {name: self.box(name) for name in self.axes}
        for masks in pool.masks:
            if masks is None:
                raise QuestionError(
                    "Boxes can be asked for conditions on single columns that are joined with AND, and for no others."
                )
            share = np.ones(self.number)
            for name, mask in masks.items():
                axis = self.axes[name]
                share *= boxes[name].satisfying(axis, np.append(mask[axis.order], mask[-1]))
            yield share

    def box(self, name: str) -> Ranges | Sets:
        """One column of all boxes."""
        axis, number = self.axes[name], self.number
        size = len(axis.values)
        if axis.kind == "listed":
            pairs = np.unique(self.groups * (size + 1) + axis.codes)
            return Sets(pairs // (size + 1), pairs % (size + 1), number)
        there = axis.codes < size
        low, high = np.full(number, size), np.full(number, -1)
        np.minimum.at(low, self.groups[there], axis.codes[there])
        np.maximum.at(high, self.groups[there], axis.codes[there])
        missing = np.bincount(self.groups[~there], minlength=number) / np.bincount(self.groups, minlength=number)
        lowest, highest = (np.where(high < 0, np.nan, axis.places[place]) for place in (low, high))
        return Ranges(lowest, highest, missing, axis.kind == "whole")


@dataclass(frozen=True, eq=False)
class Ranges:
    """A measured column of all boxes.

    Attributes:
        low, high: the ends of each box, both in; NaN where all its rows are missing.
        missing: the share of each box's rows in which the column is missing.
        whole: whether only whole numbers are positions.
    """

    low: Floats
    high: Floats
    missing: Floats
    whole: bool

    def covered(self, intervals: npt.ArrayLike) -> Floats:
        """The share of each box, missing rows apart, that lies in one of some intervals, which may not overlap.

        >>> boxes = Ranges(np.array([17.0]), np.array([26.0]), np.zeros(1), whole=True)
        >>> boxes.covered([[15, 18.5], [26, 26]]).round(3).tolist()
        [0.3]
        """
        total = np.zeros(len(self.low))
        for low, high in np.asarray(intervals, dtype=np.float64).reshape(-1, 2):
            if self.whole:
                shared = np.minimum(np.floor(high), self.high) - np.maximum(np.ceil(low), self.low) + 1
                part = np.maximum(shared, 0.0) / (self.high - self.low + 1)
            else:
                shared = np.minimum(high, self.high) - np.maximum(low, self.low)
                point = self.high == self.low
                width = np.where(point, 1.0, self.high - self.low)
                part = np.where(point, shared >= 0, np.maximum(shared, 0.0) / width)
            total += np.nan_to_num(part)
        return np.minimum(total, 1.0)

    def looks(self) -> Ints:
        """A number for each box: boxes that show the same range have one."""
        shown = np.stack([np.nan_to_num(self.low), np.nan_to_num(self.high), self.missing > 0, np.isnan(self.low)], 1)
        looks: Ints = np.unique(shown, axis=0, return_inverse=True)[1].reshape(-1)
        return looks

    def satisfying(self, axis: Axis, mask: Bools) -> Floats:
        """The share of each box's rows that satisfies a condition, given for every code of the axis: runs of
        neighbouring values that do are intervals, ends in."""
        holds = np.r_[False, mask[:-1], False]
        first = np.flatnonzero(holds[1:-1] & ~holds[:-2])
        last = np.flatnonzero(holds[1:-1] & ~holds[2:])
        covered = self.covered(np.stack([axis.places[first], axis.places[last]], axis=1))
        return (1 - self.missing) * covered + self.missing * float(mask[-1])


@dataclass(frozen=True, eq=False)
class Sets:
    """A listed column of all boxes: pairs of a box and the code of a value that it lists."""

    box: Ints
    value: Ints
    boxes: int

    def looks(self) -> Ints:
        """A number for each box: boxes that list the same values have one."""
        lists = np.split(self.value, np.flatnonzero(np.diff(self.box)) + 1)
        number: dict[bytes, int] = {}
        return np.array([number.setdefault(own.tobytes(), len(number)) for own in lists], dtype=np.int64)

    def satisfying(self, axis: Axis, mask: Bools) -> Floats:
        """The share of each box's listed values that satisfies a condition, given for every code of the axis."""
        listed = np.maximum(np.bincount(self.box, minlength=self.boxes), 1)
        return np.bincount(self.box, weights=mask[self.value], minlength=self.boxes) / listed


@dataclass(frozen=True, eq=False)
class BoxCounts:
    """How many rows of each box have each sensitive value: box, position in the domain, rows; and how many boxes."""

    box: Ints
    value: Ints
    rows: Ints
    boxes: int

    @classmethod
    def of_codes(cls, box: npt.ArrayLike, codes: npt.ArrayLike, m: int, boxes: int) -> BoxCounts:
        """From the box and the sensitive value of every published row."""
        pairs, rows = np.unique(np.asarray(box, np.int64) * m + np.asarray(codes, np.int64), return_counts=True)
        return cls(pairs // m, pairs % m, rows.astype(np.int64), boxes)

    def by_value(self, share: Floats, m: int) -> Floats:
        """An estimate for every sensitive value."""
        counts: Floats = np.bincount(self.value, weights=self.rows * share[self.box], minlength=m).astype(np.float64)
        return counts


# -- axes: every value of a public column has a place in an order ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Axis:
    """One public column. Whole numbers, dates and times have their own distances (``whole``), other numbers theirs
    (``real``); everything else is in the order of its sorted values, one step apart (``listed``).

    Attributes:
        kind: how distances are measured.
        values: the distinct values in order, without missing.
        codes: for each row where its value stands; ``len(values)`` where it is missing.
        places: how far along the axis each code is; one entry more than ``values``, for missing.
        order: where each of the values stood before it was put in order.
    """

    kind: Kind
    values: pa.Array
    codes: Codes
    places: Floats
    order: Ints


def kind_of(arrow: pa.DataType) -> Kind:
    """How distances are measured in a column of this type."""
    kinds = pa.types
    if kinds.is_integer(arrow) or kinds.is_date(arrow) or kinds.is_timestamp(arrow):
        return "whole"
    return "real" if kinds.is_floating(arrow) or kinds.is_decimal(arrow) else "listed"


def places_of(values: pa.Array) -> Floats:
    """Where numbers, dates (days) and times (their unit) stand; missing becomes NaN."""
    plain = values
    if pa.types.is_date32(values.type):
        plain = values.cast(pa.int32())
    elif pa.types.is_temporal(values.type):
        plain = values.cast(pa.int64())
    return np.asarray(plain.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def axis_of(name: str, column: Encoded) -> Axis:
    """A public column as an axis."""
    values, kind = column.values, kind_of(column.values.type)
    rank = np.full(len(values) + 1, -1, dtype=np.int64)
    if pa.types.is_floating(values.type):
        numbers = places_of(values)
        if np.isinf(numbers).any():
            raise TableError(f"The column {name!r} holds infinite numbers, which no range holds. Fix: drop={name!r}.")
        known = np.flatnonzero(~np.isnan(numbers))  # NaN is missing
        _, first, place = np.unique(numbers[known], return_index=True, return_inverse=True)  # 0.0 and -0.0 are one
        order, rank[known] = known[first], place
    else:
        order = _sorted(values)
        rank[order] = np.arange(len(order))
    ordered = values.take(pa.array(order))
    places = np.arange(len(order) + 1.0) if kind == "listed" else _with_missing(places_of(ordered))
    codes = smallest(np.where(rank < 0, len(order), rank), len(order) + 1)[column.codes]
    return Axis(kind, ordered, codes, places, order)


def _sorted(values: pa.Array) -> Ints:
    try:
        return np.asarray(pc.sort_indices(values).to_numpy(), dtype=np.int64)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        listed: list[Any] = values.to_pylist()
        return np.array(sorted(range(len(listed)), key=lambda i: repr(listed[i])), dtype=np.int64)


def _with_missing(places: Floats) -> Floats:
    """One place more, an average step after the last."""
    step = (places[-1] - places[0]) / (len(places) - 1) if len(places) > 1 else 1.0
    return np.append(places, (places[-1] if len(places) else 0.0) + step)


# -- Mondrian ----------------------------------------------------------------------------------------------------------


def mondrian(axes: Sequence[Axis], values: Codes, k: int, l: int) -> Ints:
    """The group of each row, numbered along the axes.

    Args:
        axes: the public columns.
        values: the sensitive value of each row, as a code.
        k: the fewest rows of a group.
        l: no value may have more than 1/l of a group's rows.
    """
    own = np.asarray(values)
    everybody: Codes = np.arange(len(own), dtype=np.uint32 if len(own) < 2**32 else np.int64)
    if len(own) < k or not diverse(own, l):
        raise InternalError("these rows cannot be grouped: they are too few, or a value has more than 1/l of them")
    space = _Space(axes)
    groups = np.empty(len(own), dtype=np.int64)
    waiting, number = [everybody], 0
    while waiting:
        rows = waiting.pop()
        left = space.cut(rows, own[rows], k, l) if len(rows) >= 2 * k else None
        if left is None:
            groups[rows] = number
            number += 1
        else:
            waiting += (rows[~left], rows[left])  # the lower half is taken next
    return groups


def diverse(values: Codes, l: int) -> bool:
    """Whether no value has more than 1/l of the rows: then no two equal ones stand n // l apart when sorted.

    >>> diverse(np.array([3, 1, 3, 2]), 2), diverse(np.array([3, 1, 3, 3]), 2)
    (True, False)
    """
    most = len(values) // l
    if l == 1 or most == 0:
        return l == 1
    ordered = np.sort(values)
    return not bool((ordered[most:] == ordered[:-most]).any())


class _Space:
    """All axes side by side."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        longest = max((len(axis.places) for axis in axes), default=0)
        kind = code_type(longest)
        self.codes = np.array([axis.codes for axis in axes], dtype=kind).reshape(len(axes), -1)
        self.places = np.array([np.pad(axis.places, (0, longest - len(axis.places))) for axis in axes])
        self.number = np.arange(len(axes))
        self.whole: Floats = np.ones(len(axes))
        if self.codes.size:
            widths = self._widths(self.codes)
            self.whole = np.where(widths > 0, widths, 1.0)

    def cut(self, rows: Codes, values: Codes, k: int, l: int) -> Bools | None:
        """Which rows go to the lower half; None where no cut is allowed."""
        inside = self.codes[:, rows]
        widths = self._widths(inside) / self.whole
        for axis in np.argsort(-widths, kind="stable"):
            if widths[axis] <= 0:
                return None
            for left in _halves(inside[axis], k):
                if diverse(values[left], l) and diverse(values[~left], l):
                    return left
        return None

    def _widths(self, inside: Codes) -> Floats:
        if not len(self.number):
            return np.zeros(0)
        high, low = inside.max(axis=1), inside.min(axis=1)
        widths: Floats = self.places[self.number, high] - self.places[self.number, low]
        return widths


def _halves(codes: Codes, k: int) -> list[Bools]:
    """The two cuts at the median that leave k rows on both sides, the more even one first."""
    middle = (len(codes) - 1) // 2
    median = np.partition(codes, middle)[middle]
    cuts = [(abs(2 * int(left.sum()) - len(codes)), left) for left in (codes <= median, codes < median)]
    allowed = [(off, left) for off, left in cuts if len(codes) - off >= 2 * k]
    return [left for _, left in sorted(allowed, key=lambda cut: cut[0])]
