"""What estimation needs of a release: the public parameters, and someone who counts its rows.

Both are protocols, so that estimation depends on no engine: any store that can tally rows by dictionary codes will do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.channel import Channel

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Leaf = tuple[str, Bools]  # a public column, and which of its distinct values (missing last) satisfy a condition


class Parameters(Protocol):
    """The part of a manifest that estimates are computed from."""

    @property
    def domain(self) -> Sequence[Hashable]: ...
    @property
    def channels(self) -> Sequence[Channel]: ...
    @property
    def cell_positions(self) -> Sequence[npt.NDArray[Any]]: ...
    @property
    def cells_published(self) -> bool: ...
    @property
    def sensitive_columns(self) -> Sequence[str]: ...
    @property
    def public_columns(self) -> Sequence[str]: ...
    @property
    def rows(self) -> int: ...
    @property
    def marginal(self) -> Any: ...


class Moments(Protocol):
    """Of a numeric column, by [group, class, state]: rows that have a value, the sum, and the sum of squares."""

    @property
    def rows(self) -> Floats: ...
    @property
    def sums(self) -> Floats: ...
    @property
    def squares(self) -> Floats: ...


class Block(Protocol):
    """Rows of some groups, counted by [group, class, state]; a state is a cell and a published value of it."""

    @property
    def keys(self) -> Ints:
        """The groups: codes of the group columns, one row per group."""
        ...

    @property
    def counts(self) -> Floats: ...
    @property
    def moments(self) -> Mapping[str, Moments]: ...


class Counter(Protocol):
    """Counts the rows of a release. Codes of a column: positions in ``distinct``, and one more for missing."""

    @property
    def rows(self) -> int: ...

    def distinct(self, column: str) -> pa.Array:
        """The distinct values of a public column, without missing."""
        ...

    def tally(
        self, groups: Sequence[str], leaves: Sequence[Leaf], classes: Ints, values: Sequence[str] = ()
    ) -> Iterator[Block]:
        """Rows by group, class and state. Bit i of a row's pattern says whether it satisfies leaf i; ``classes`` maps
        a pattern to a class, or to -1: not counted."""
        ...

    def pool(self, questions: Sequence[Sequence[Leaf]]) -> Floats:
        """For each conjunction of leaves, the rows that satisfy it, by state."""
        ...


class Published(Protocol):
    """A release, as estimation sees it."""

    @property
    def manifest(self) -> Any: ...

    def counter(self) -> Counter: ...
