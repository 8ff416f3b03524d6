"""Recodings: how a column is made coarser before it is published, row by row.

Each step is a function of the row's value and of what the owner chose, but for ``Rare``, which looks at how many rows
have a value. Steps are plain data: a manifest records them, and whoever has the table can take them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

from deniable.core.errors import OptionError, shortened
from deniable.core.numbers import Number, as_printed, number_text, require_number, require_whole, stepped

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
