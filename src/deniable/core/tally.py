"""Tallies: rows of a release counted by group, class and state, and who counts them.

Codes of a column are positions in its distinct values, and one more for missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from deniable.core.values import Bools, Floats, Ints

CodeMask = tuple[str, Bools]  # a column, and which of its codes satisfy a condition


@dataclass(frozen=True)
class Moments:
    """Of a numeric column, by [group, class, state]: rows that have a value, sum, sum of squares."""

    rows: Floats
    sums: Floats
    squares: Floats


@dataclass(frozen=True)
class Block:
    """Some groups, their codes a row each, and their rows, counted by [group, class, state]."""

    keys: Ints
    counts: Floats
    moments: Mapping[str, Moments] = field(default_factory=dict)


@dataclass(frozen=True)
class CodedRows:
    """Every row by itself, in the order of the table: codes of some columns [rows, columns], pattern and state."""

    keys: Ints
    patterns: Ints
    states: Ints


@dataclass(frozen=True, eq=False)
class Derived:
    """A column that is computed from others of the same row.

    Attributes:
        name: what it is called.
        sources: the columns it is computed from.
        compute: equally long Arrow arrays, one for each source -> an array as long; it sees every combination once.
    """

    name: str
    sources: tuple[str, ...]
    compute: Callable[..., Any]


class Counter(Protocol):
    """Counts the published rows of a release."""

    @property
    def rows(self) -> int: ...

    def distinct(self, column: str) -> Any:
        """The distinct values of a column, without missing, as an Arrow array."""
        ...

    def tally(
        self,
        groups: Sequence[str],
        masks: Sequence[CodeMask],
        classes: Ints,
        values: Sequence[str] = (),
        *,
        states: bool = False,
    ) -> Iterator[Block]:
        """Rows by group, class and state. Bit i of a row's pattern says whether it satisfies mask i; ``classes`` maps
        a pattern to a class, or to -1: not counted. A state is a cell and a published value of the only part; there is
        one state unless ``states`` are wanted."""
        ...

    def coded(self, columns: Sequence[str], masks: Sequence[CodeMask], *, states: bool = False) -> CodedRows:
        """Every row's codes, pattern and state, as a tally sees them; the state is 0 unless ``states`` are wanted."""
        ...

    def conjunctions(self, questions: Sequence[Sequence[CodeMask]]) -> Floats:
        """For each conjunction of masks, the rows that satisfy it, by state of the only part."""
        ...

    def with_columns(self, derived: Sequence[Derived]) -> Counter:
        """A counter of the same rows that has some more columns, each computed from those before it."""
        ...
