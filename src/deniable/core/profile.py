"""The questions that matter to someone, as counts: what a mechanism may optimise for without seeing rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.core.arrays import Bools, Floats, Ints
from deniable.core.errors import OptionError, listing

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
