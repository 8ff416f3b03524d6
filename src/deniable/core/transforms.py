"""How columns are read before anything else is done: made coarser, numbers as intervals, lists as columns of yes and
no.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from deniable.core.errors import OptionError, shortened
from deniable.core.promise import OneOfItems
from deniable.core.values import (
    Floats,
    Ints,
    Number,
    as_printed,
    number_text,
    percent,
    require_number,
    require_whole,
    stepped,
)

# -- Recodings: how a column is made coarser before it is published, row by row ----------------------------------------
# Each step is a function of the row's value and of what the owner chose, but for ``Rare``, which looks at how many rows
# have a value. Steps are plain data: a manifest records them, and whoever has the table can take them again.


Unit = Literal["year", "quarter", "month"]
UNITS: tuple[Unit, ...] = get_args(Unit)
MOST_EDGES = 10_000
MOST_LEAVES = 2**20
MOST_STEPS = 8
OTHER = "(rare)"


@dataclass(frozen=True)
class Bands:
    """A number as the interval of equal width that it lies in: [start + k width, start + (k + 1) width)."""

    kind: ClassVar[str] = "bands"
    width: Number
    start: Number = 0

    def __post_init__(self) -> None:
        require_number(self.width, "bands: the width", above=0)
        require_number(self.start, "bands: the start")

    def edge(self, place: int) -> Number:
        """Where an interval begins, reckoned in decimals: 3 * 0.1 is 0.3.

        >>> Bands(0.1, -0.3).edge(3)
        0.0
        """
        return stepped(self.start, place, self.width)

    def label(self, place: int) -> str:
        """The text of an interval.

        >>> Bands(10).label(3)
        '[30, 40)'
        """
        return f"[{number_text(self.edge(place))}, {number_text(self.edge(place + 1))})"

    def __str__(self) -> str:
        return f"in bands of {number_text(self.width)}, such as {self.label(0)}"


@dataclass(frozen=True)
class Edges:
    """A number as the interval between given edges that it lies in; the first and the last are open."""

    kind: ClassVar[str] = "edges"
    edges: tuple[Number, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.edges) <= MOST_EDGES:
            raise OptionError(f"bands take 1 to {MOST_EDGES:,} edges; got {len(self.edges):,}.")
        for edge in self.edges:
            require_number(edge, "bands: an edge")
        object.__setattr__(self, "edges", tuple(as_printed(edge) for edge in self.edges))
        if any(low >= high for low, high in pairwise(self.edges)):
            raise OptionError(f"bands {shortened(self.edges)} do not rise. Fix: give edges in rising order.")

    @property
    def labels(self) -> tuple[str, ...]:
        """The intervals, in order.

        >>> Edges((18, 65)).labels
        ('below 18', '[18, 65)', '65 and above')
        """
        text = [number_text(edge) for edge in self.edges]
        inner = (f"[{low}, {high})" for low, high in pairwise(text))
        return (f"below {text[0]}", *inner, f"{text[-1]} and above")

    def __str__(self) -> str:
        return f"in {len(self.labels):,} bands, from '{self.labels[0]}' to '{self.labels[-1]}'"


@dataclass(frozen=True)
class Prefix:
    """The first characters of a text; of a whole number once it is written with ``pad`` digits."""

    kind: ClassVar[str] = "prefix"
    length: int
    pad: int | None = None

    def __post_init__(self) -> None:
        require_whole(self.length, "prefix: the length", 1, 1000)
        if self.pad is not None:
            require_whole(self.pad, "prefix: pad", self.length, 30)

    def __str__(self) -> str:
        of = "" if self.pad is None else f" of {self.pad} digits"
        return f"its first {self.length} character{'s' * (self.length > 1)}{of}"


@dataclass(frozen=True)
class Top:
    """Numbers above a limit as the limit."""

    kind: ClassVar[str] = "top"
    limit: Number

    def __post_init__(self) -> None:
        require_number(self.limit, "top: the limit")

    def __str__(self) -> str:
        return f"{number_text(self.limit)} stands for that and more"


@dataclass(frozen=True)
class Bottom:
    """Numbers below a limit as the limit."""

    kind: ClassVar[str] = "bottom"
    limit: Number

    def __post_init__(self) -> None:
        require_number(self.limit, "bottom: the limit")

    def __str__(self) -> str:
        return f"{number_text(self.limit)} stands for that and less"


@dataclass(frozen=True)
class Snap:
    """The multiple of ``grid`` that is nearest to a number; of two the larger one."""

    kind: ClassVar[str] = "snap"
    grid: Number

    def __post_init__(self) -> None:
        require_number(self.grid, "snap: the grid", above=0)

    def __str__(self) -> str:
        return f"rounded to multiples of {number_text(self.grid)}"


@dataclass(frozen=True)
class Calendar:
    """The year, quarter or month of a date: 2024, '2024-Q1', '2024-03'.

    >>> import deniable as dn
    >>> print(dn.month)
    the month of its date
    """

    kind: ClassVar[str] = "calendar"
    unit: Unit

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise OptionError(f"A date is recoded by {', '.join(UNITS)}; {shortened(self.unit)} is none of them.")

    def __str__(self) -> str:
        return f"the {self.unit} of its date"


@dataclass(frozen=True)
class Hierarchy:
    """A category for each value, by its text; ``other`` is for values that are not listed, which else are refused."""

    kind: ClassVar[str] = "hierarchy"
    map: tuple[tuple[str, str], ...]
    other: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.map) <= MOST_LEAVES:
            raise OptionError(f"A hierarchy lists 1 to {MOST_LEAVES:,} values; this one has {len(self.map):,}.")
        texts = [text for pair in self.map for text in pair]
        if any(isinstance(pair, str) or len(pair) != 2 for pair in self.map):
            raise OptionError("A hierarchy is made of pairs: a value and its category.")
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.other, str | None):
            raise OptionError("A hierarchy maps texts to texts. Fix: write values and categories as texts.")
        if len({value for value, _ in self.map}) != len(self.map):
            raise OptionError("A hierarchy lists a value twice. Fix: list each value once.")

    @property
    def categories(self) -> tuple[str, ...]:
        """What values become, in the order of first appearance."""
        listed = dict.fromkeys(category for _, category in self.map)
        return (*listed, *([] if self.other is None or self.other in listed else [self.other]))

    def __str__(self) -> str:
        return f"one of {len(self.categories):,} categories; recoded in manifest.json says which values each holds"


@dataclass(frozen=True)
class Rare:
    """Values that fewer than ``below`` rows have are read as one: ``into``, or missing where that is None.

    Where all that become ``into`` are fewer together, the next rarest join them. What is merged depends on the table.
    """

    kind: ClassVar[str] = "rare"
    below: int
    into: str | None = OTHER

    def __post_init__(self) -> None:
        require_whole(self.below, "rare: the number of rows", 2, 2**31)
        if not isinstance(self.into, str | None):
            raise OptionError("rare: values are merged into a text, or into None for missing.")

    def __str__(self) -> str:
        name = "missing" if self.into is None else f"'{self.into}'"
        return f"values of fewer than {self.below:,} rows are {name}"


Step = Bands | Edges | Prefix | Top | Bottom | Snap | Calendar | Hierarchy | Rare
KINDS: dict[str, type[Step]] = {kind.kind: kind for kind in get_args(Step)}
Steps = Mapping[str, tuple[Step, ...]]

year, quarter, month = (Calendar(unit) for unit in UNITS)


def bands(width: Number | Sequence[Number], start: Number = 0) -> Bands | Edges:
    """A column of numbers as intervals: of one width, or between edges.

    Args:
        width: of every interval, or a list of edges; the first and the last interval are then open.
        start: where one of the intervals begins.

    >>> import deniable as dn
    >>> print(dn.bands(10))
    in bands of 10, such as [0, 10)
    >>> dn.bands([18, 65]).labels
    ('below 18', '[18, 65)', '65 and above')
    """
    if isinstance(width, Sequence) and not isinstance(width, str):
        if start != 0:
            raise OptionError("bands: edges have no start. Fix: leave start out, or give a width.")
        return Edges(tuple(width))
    return Bands(width, start)


def prefix(length: int, pad: int | None = None) -> Prefix:
    """The first ``length`` characters of a text, or of a whole number written with ``pad`` digits.

    >>> import deniable as dn
    >>> print(dn.prefix(3, pad=5))
    its first 3 characters of 5 digits
    """
    return Prefix(length, pad)


def top(limit: Number) -> Top:
    """Numbers above ``limit`` as ``limit``.

    >>> import deniable as dn
    >>> print(dn.top(150000))
    150000 stands for that and more
    """
    return Top(limit)


def bottom(limit: Number) -> Bottom:
    """Numbers below ``limit`` as ``limit``.

    >>> import deniable as dn
    >>> print(dn.bottom(0))
    0 stands for that and less
    """
    return Bottom(limit)


def snap(grid: Number) -> Snap:
    """Numbers rounded to multiples of ``grid``.

    >>> import deniable as dn
    >>> print(dn.snap(1000))
    rounded to multiples of 1000
    """
    return Snap(grid)


def said(steps: Sequence[Step]) -> str:
    """What became of a column, in words.

    >>> said((top(90), bands(10)))
    '90 stands for that and more; in bands of 10, such as [0, 10)'
    """
    return "; ".join(map(str, steps))


def step_dict(step: Step) -> dict[str, Any]:
    """A step as JSON has it."""
    return {"kind": step.kind, **{name: _plain(getattr(step, name)) for name in step.__dataclass_fields__}}


def step_of(raw: Mapping[str, Any]) -> Step:
    """What ``step_dict`` wrote; an ``OptionError`` where it is no step."""
    kind = KINDS.get(raw.get("kind", ""))
    if kind is None or set(raw) != {"kind", *kind.__dataclass_fields__}:
        raise OptionError(f"A recoding of the kind {shortened(raw.get('kind'))} is not known, or has other fields.")
    return kind(**{name: _tuples(value) for name, value in raw.items() if name != "kind"})


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


# -- Bins: intervals that turn a sensitive number into a category, so that every mechanism applies to it ---------------


MOST = 10_000
# Rows for each bin and each edge, where edges are drawn: the noise of a rank is then a tenth of a bin, and numbers far
# from all rows, of which there are many, are drawn less than once in a million times.
FEWEST_ROWS = 50
EDGES_EPSILON = 1.0  # of all edges of a column together


@dataclass(frozen=True)
class Bins:
    """Half-open intervals [e_0, e_1), [e_1, e_2), ...; the last one is closed.

    Attributes:
        edges: e_0, e_1, .. in rising order.
        open_ends: whether the first and the last interval hold everything beyond, too.

    >>> import deniable as dn
    >>> dn.Bins((0, 10, 20)).labels
    ('[0, 10)', '[10, 20]')
    >>> dn.Bins.equal_width(0, 1, 4).edges
    (0.0, 0.25, 0.5, 0.75, 1.0)
    """

    edges: tuple[float, ...]
    open_ends: bool = False

    def __post_init__(self) -> None:
        if not 3 <= len(self.edges) <= MOST + 1:
            raise OptionError(
                f"bins need 3 to {MOST + 1:,} edges (2 bins or more); got {len(self.edges)}. Fix: 0, 10, 20."
            )
        if not all(math.isfinite(edge) for edge in self.edges):
            raise OptionError("bins: every edge must be a finite number.")
        edges = tuple(as_printed(edge) for edge in self.edges)
        wrong = next((i for i in range(1, len(edges)) if edges[i] <= edges[i - 1]), None)
        if wrong is not None:
            raise OptionError(
                f"bins overlap: edge {edges[wrong]:g} follows {edges[wrong - 1]:g}. Fix: give edges in rising order."
            )
        object.__setattr__(self, "edges", edges)

    @classmethod
    def equal_width(cls, low: float, high: float, count: int) -> Bins:
        """``count`` bins of equal width from ``low`` to ``high``; they depend on no row of the table."""
        if count < 2 or not low < high:
            raise OptionError(
                f"bins: equal from {low:g} to {high:g}, {count} of them, are none. Fix: a lower end below the upper "
                "one, and 2 bins or more."
            )
        return cls(tuple(float(edge) for edge in np.linspace(low, high, count + 1)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins as text, in order."""
        text = [f"{edge:.15g}" for edge in self.edges]
        last = len(text) - 2
        if self.open_ends:
            inner = [f"[{low}, {high})" for low, high in pairwise(text[1:-1])]
            return (f"below {text[1]}", *inner, f"{text[-2]} and above")
        return tuple(f"[{text[i]}, {text[i + 1]}{']' if i == last else ')'}" for i in range(last + 1))

    def places(self, numbers: Floats) -> Ints:
        """The bin of each of the ``numbers``; -1 where it lies outside all of them."""
        edges = np.array(self.edges, dtype=np.float64)
        if self.open_ends:
            inner = np.searchsorted(edges[1:-1], numbers, side="right")
            return np.where(np.isnan(numbers), -1, inner).astype(np.int64)
        places = np.searchsorted(edges, numbers, side="right") - 1
        places[numbers == edges[-1]] = len(edges) - 2
        places[(numbers < edges[0]) | (numbers > edges[-1]) | np.isnan(numbers)] = -1
        return places.astype(np.int64)


@dataclass(frozen=True)
class Quantiles:
    """Bins of about equally many rows, whose edges do not depend on single rows.

    Each edge is drawn among round numbers (three digits), which depend on no row, by the exponential mechanism:

        Pr[e]  ~  exp( -epsilon' |rows below e - q n| / 2 ),    epsilon' = 1 / (number of edges)

    One row more, less or other changes a rank by at most 1, so it changes the chance of any set of edges by at most a
    factor of e: epsilon 1 for all edges together. The first and the last bin are open, since their ends would be the
    table's extremes.

    Attributes:
        count: how many bins, 2 to 1000.

    >>> import numpy as np
    >>> import deniable as dn
    >>> ages = np.arange(1000) % 100
    >>> len(dn.Quantiles(4).bins(ages.astype(float), np.array([0.3, 0.5, 0.7]), whole=True).labels)
    4
    """

    count: int

    def __post_init__(self) -> None:
        if not 2 <= self.count <= 1000:
            raise OptionError(f"bins: quantiles, {self.count} of them, are not allowed. Fix: 2 to 1000 of them.")

    def bins(self, numbers: Floats, chance: Floats, *, whole: bool = False) -> Bins:
        """Edges near the quantiles.

        Args:
            numbers: the column; missing ones are not a number.
            chance: a number from [0, 1) for each of the ``count - 1`` edges, secret and used once.
            whole: whether the column holds whole numbers only, and so edges are whole.
        """
        known = np.sort(numbers[np.isfinite(numbers)])
        if len(known) < self.fewest:
            raise OptionError(
                f"Quantiles(count={self.count}) needs {self.fewest:,} numbers: with fewer the noise that keeps single "
                "rows out of the edges is too large. Fix: ask for fewer bins, or give edges yourself."
            )
        grid = round_numbers(whole)
        shares = np.arange(1, self.count) / self.count
        chances = (edge_chances(known, grid, share, self.epsilon) for share in shares)
        drawn = {float(grid[_drawn(edge, number)]) for edge, number in zip(chances, chance, strict=True)}
        edges = sorted(drawn)
        bins = Bins((edges[0] - 1, *edges, edges[-1] + 1), open_ends=True)
        if len(np.unique(bins.places(known))) <= len(edges):  # a bin without rows: many rows hold the same number
            raise OptionError(
                "The column takes too few different numbers for so many quantile bins. "
                "Fix: ask for fewer bins, or give edges yourself."
            )
        return bins

    @property
    def fewest(self) -> int:
        """How many numbers it takes."""
        return FEWEST_ROWS * self.count * (self.count - 1)

    @property
    def epsilon(self) -> float:
        """Of one edge."""
        return EDGES_EPSILON / (self.count - 1)


@cache
def round_numbers(whole: bool) -> Floats:
    """All numbers of three digits from 1e-6 to 1e15, their negatives, and 0, in order."""
    positive = np.array([float(f"{digits}e{power}") for power in range(-8, 13) for digits in range(100, 1000)])
    grid = np.concatenate([-positive[::-1], [0.0], positive])
    return grid[grid == np.floor(grid)] if whole else grid


def edge_chances(known: Floats, grid: Floats, share: float, epsilon: float) -> Floats:
    """The probability of each round number to become the edge at a share of the (sorted) numbers."""
    off = np.abs(np.searchsorted(known, grid, side="left") - share * len(known))
    weights = np.exp(-epsilon / 2 * (off - off.min()))
    chances: Floats = weights / weights.sum()
    return chances


def _drawn(chances: Floats, number: float) -> int:
    return min(int(np.searchsorted(np.cumsum(chances), number, side="right")), len(chances) - 1)


BinsLike = Bins | Quantiles | Sequence[float]


def as_bins(given: BinsLike) -> Bins | Quantiles:
    """Bins from a list of edges, or as they are."""
    if isinstance(given, Bins | Quantiles):
        return given
    try:
        return Bins(tuple(float(edge) for edge in given))
    except (TypeError, ValueError):
        raise OptionError(
            f"bins = {shortened(given)} is not understood. Fix: a list of edges, Bins.equal_width(low, high, count), "
            "or Quantiles(count)."
        ) from None


def require_fixed(bins: Mapping[str, BinsLike], what: str) -> None:
    """Refuse quantiles where something else must know the same edges: they are drawn anew for every release."""
    drawn = [column for column, given in bins.items() if isinstance(given, Quantiles)]
    if drawn:
        raise OptionError(
            f"bins of {drawn[0]!r} are quantiles, drawn anew for every release, and {what} needs to know them before. "
            "Fix: give edges."
        )


# -- Columns of lists: each possible item becomes a column of yes and no, and a row has one budget for all of them -----
# An item that a person has is published as yes with probability a, one that they have not with b. Two lists of at most
# k of the m items differ in at most k items of the one and k of the other, and items are perturbed independently, so
#
#     P(row | list) / P(row | list') <= (a / b)^i ((1 - b) / (1 - a))^j,    i, j <= k,  i + j <= m    (mathematics 15)


Beyond = Literal["refuse", "first"]
MOST_ITEMS = 1_000


@dataclass(frozen=True)
class Unfolding:
    """How a column of lists is read.

    Attributes:
        most: how many items of a list count; None: all of them.
        beyond: what is done with a list of more: it is refused, or its first ``most`` items count.
        separator: what stands between the items of a text; None: a text is a JSON array.
    """

    most: int | None = None
    beyond: Beyond = "refuse"
    separator: str | None = None

    def __post_init__(self) -> None:
        if self.most is not None and (not isinstance(self.most, int) or isinstance(self.most, bool) or self.most < 1):
            raise OptionError(f"most = {self.most!r} is not allowed: how many items of a list count, 1 or more.")
        if self.beyond not in get_args(Beyond):
            raise OptionError(f"beyond = {self.beyond!r} is not known: choose one of {', '.join(get_args(Beyond))}.")
        if self.beyond == "first" and self.most is None:
            raise OptionError("beyond = 'first' says what to do with lists of more than most items. Fix: most=3.")
        if self.separator is not None and (not isinstance(self.separator, str) or not self.separator):
            raise OptionError(
                f"separator = {shortened(self.separator)} is not allowed: a text such as ';', or nothing for JSON."
            )


@dataclass(frozen=True)
class ListItem:
    """One item of a column of lists, which is published as a column of yes and no.

    Attributes:
        list: the column of lists.
        item: as text.
        most, beyond, separator: as for ``Unfolding``; ``most`` is at most the number of items.
    """

    list: str
    item: str
    most: int
    beyond: Beyond
    separator: str | None

    @property
    def column(self) -> str:
        """Its column in the release."""
        return item_column(self.list, self.item)

    @property
    def unfolding(self) -> Unfolding:
        """How its list was read."""
        return Unfolding(self.most, self.beyond, self.separator)


def item_column(column: str, item: str) -> str:
    """What the column of an item is called.

    >>> item_column("diagnoses", "E11")
    'diagnoses=E11'
    """
    return f"{column}={item}"


def differing(m: int, most: int) -> tuple[int, int]:
    """How many items two lists can differ in: the most of one kind, and what is then left for the other.

    >>> differing(50, 3), differing(5, 3), differing(5, 5)
    ((3, 3), (3, 2), (5, 0))
    """
    one = min(most, m)
    return one, min(most, m - one)


def list_gamma(present: Fraction, absent: Fraction, m: int, most: int) -> Fraction:
    """The amplification of a whole list, from the chance a of a yes where an item is ``present``, and b where it is
    ``absent``.

    >>> list_gamma(Fraction(3, 4), Fraction(1, 4), m=50, most=2)
    Fraction(81, 1)
    """
    ratios = sorted([present / absent, (1 - absent) / (1 - present)], reverse=True)
    larger, smaller = differing(m, most)
    return ratios[0] ** larger * ratios[1] ** smaller


def list_sentence(promise: OneOfItems, item: ListItem | None) -> str:
    """What is promised of a list beside the factor of odds, for people; nothing where that is all."""
    which = "a person's list" if item is None else f"a person's list of {item.list!r}"
    if promise.rho1 is not None and promise.rho2 is not None:
        return (
            f"Nobody who believed something about {which} at up to {percent(promise.rho1)} beforehand, of one item or "
            f"of several together, becomes surer of it than {percent(promise.rho2)}."
        )
    return ""
