"""A histogram, the only thing a mechanism ever sees of a table, and the questions that matter to someone, as counts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from deniable.core.errors import OptionError, TableError, did_you_mean, listing, shortened
from deniable.core.values import Bools, Counts, Floats, Ints

# -- A histogram: the only thing a mechanism ever sees of a table ------------------------------------------------------


def _plain(value: Any) -> Any:
    """A value as Python has it: missing ones of other libraries are None."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if plain != plain else plain  # noqa: PLR0124


def _positions_in(domain: tuple[Hashable, ...]) -> dict[Hashable, int]:
    """Where each value stands; refused where one stands twice."""
    positions = {value: position for position, value in enumerate(domain)}
    if len(positions) != len(domain):
        twice = [value for position, value in enumerate(domain) if positions[value] != position]
        raise TableError(f"A domain names each value once; named twice: {listing(twice)}.")
    return positions


@dataclass(frozen=True, eq=False)
class Histogram(Mapping[Hashable, int]):
    """How many rows hold each value of a domain; a mapping value -> rows that keeps the domain's order.

    Attributes:
        domain: the values.
        counts: f, the rows of each of them.

    >>> import deniable as dn
    >>> rows = dn.Histogram.of({"flu": 120, "hiv": 7})
    >>> rows.rows, rows["hiv"], rows.domain
    (127, 7, ('flu', 'hiv'))
    """

    domain: tuple[Hashable, ...]
    counts: Counts

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts)
        if counts.shape != (len(self.domain),):
            raise TableError(f"A histogram needs one count per value: {len(self.domain)} values, {counts.size} counts.")
        if "_positions" not in self.__dict__:
            object.__setattr__(self, "_positions", _positions_in(self.domain))
        if not np.issubdtype(counts.dtype, np.integer) and not np.array_equal(counts, counts.astype(np.int64)):
            raise TableError("A histogram holds whole numbers of rows.")
        if (counts < 0).any():
            value = self.domain[int(np.argmin(counts))]
            raise TableError(f"The count of {shortened(value)} is negative: counts are numbers of rows.")
        frozen = counts.astype(np.int64)
        frozen.setflags(write=False)
        object.__setattr__(self, "counts", frozen)

    @classmethod
    def of(cls, rows: Mapping[Hashable, int] | Histogram | Any) -> Histogram:
        """A histogram from ``rows``, any mapping value -> number of rows, or a pandas Series, in its order."""
        if isinstance(rows, Histogram):
            return rows
        try:
            if not isinstance(rows, Mapping) and hasattr(rows, "items") and hasattr(rows, "index"):
                return cls(tuple(_plain(value) for value, _ in rows.items()), np.array([n for _, n in rows.items()]))
            counts = np.array(list(rows.values()))
            return cls(tuple(rows), counts if len(counts) else np.zeros(0, np.int64))
        except (TypeError, ValueError):
            raise TableError("A histogram is a mapping value -> number of rows.") from None

    def with_counts(self, counts: Counts) -> Histogram:
        """Other ``counts`` of the same values, in their order; where they stand is not looked up again.

        >>> import numpy as np
        >>> import deniable as dn
        >>> dn.Histogram.of({"flu": 120, "hiv": 7}).with_counts(np.array([5, 2]))["hiv"]
        2
        """
        other = object.__new__(Histogram)
        for name, kept in (("domain", self.domain), ("counts", counts), ("_positions", self._positions)):  # type: ignore[attr-defined]
            object.__setattr__(other, name, kept)
        other.__post_init__()
        return other

    @cached_property
    def rows(self) -> int:
        """n, the number of rows, added up once: it is asked for with every value."""
        return int(self.counts.sum())

    @property
    def m(self) -> int:
        """The size of the domain."""
        return len(self.domain)

    @property
    def relative(self) -> Floats:
        """f_i / n."""
        return self.counts / max(self.rows, 1)

    def frequency(self, value: Hashable) -> Fraction:
        """The exact relative frequency of ``value``, f_i / n."""
        return Fraction(self[value], self.rows)

    def position(self, value: Hashable) -> int:
        """Where ``value`` stands in the domain."""
        try:
            return self._positions[value]  # type: ignore[attr-defined]
        except KeyError:
            raise TableError(
                f"{shortened(value)} is not a value of this column.{did_you_mean(value, self.domain)}"
            ) from None

    def __reduce__(self) -> tuple[type[Histogram], tuple[tuple[Hashable, ...], Counts]]:
        return Histogram, (self.domain, self.counts)  # made anew, so that a copy cannot be written to either

    def __getitem__(self, value: Hashable) -> int:
        # A Mapping must raise KeyError, or `in` and `get` break.
        return int(self.counts[self._positions[value]])  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.domain)

    def __len__(self) -> int:
        return len(self.domain)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    def __hash__(self) -> int:
        return hash((self.domain, self.counts.tobytes()))


# -- The questions that matter to someone, as counts: what a mechanism may optimise for without seeing rows ------------


SELECTIVITIES = (0.001, 0.005, 0.01)  # shares of all rows that counts are about, where nothing else is said


@dataclass(frozen=True, eq=False, repr=False)
class QuestionProfile:
    """Counts of rows that satisfy a public condition and hold one of some values, many at once.

    It is made from the original table and holds exact counts: it is for the table's owner, and never published.

    Attributes:
        domain: the sensitive values, in the order of the columns below.
        by_value: the rows of each condition by their true value, [conditions, m].
        sets: the value sets, [sets, m].
        condition, chosen: for each question its condition and its value set.
    """

    domain: tuple[Hashable, ...]
    by_value: Floats
    sets: Bools
    condition: Ints
    chosen: Ints

    def __repr__(self) -> str:
        return f"QuestionProfile({len(self):,} questions)"

    def __len__(self) -> int:
        return len(self.condition)

    def pick(self, answers: Floats) -> Floats:
        """From ``answers`` [conditions, sets] those that are asked for."""
        picked: Floats = answers[self.condition, self.chosen]
        return picked

    @cached_property
    def truth(self) -> Floats:
        """The true answer of every question."""
        return self.pick(self.by_value @ self.sets.T)

    def in_order(self, domain: Sequence[Hashable]) -> QuestionProfile:
        """The same questions over a ``domain`` in another order, or with more values, which no question's rows hold."""
        if tuple(domain) == self.domain:
            return self
        place = {value: i for i, value in enumerate(self.domain)}
        unknown = [value for value in self.domain if value not in set(domain)]
        if unknown:
            raise OptionError(
                f"The questions are about {listing(unknown)}, which the sensitive column does not have. "
                "Fix: make the profile from the table that is published."
            )
        order = np.array([place.get(value, len(place)) for value in domain])
        extended = np.pad(self.by_value, ((0, 0), (0, 1))), np.pad(self.sets, ((0, 0), (0, 1)))
        return QuestionProfile(tuple(domain), extended[0][:, order], extended[1][:, order], self.condition, self.chosen)
