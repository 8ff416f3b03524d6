"""A question to a release, and its answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from deniable.core.values import Ints
from deniable.estimation.aggregates import Aggregate, Count
from deniable.estimation.asking import Options
from deniable.estimation.estimate import Estimate
from deniable.estimation.mapped import Grouped
from deniable.estimation.model.weighed import Answers
from deniable.estimation.predicates import EVERYTHING, Predicate


@dataclass(frozen=True)
class Question:
    """Aggregates over the rows that satisfy a condition, by group.

    Attributes:
        where: the condition.
        groups: columns, public or sensitive, and functions of sensitive ones, that answers are grouped by.
        aggregates: what is asked of each group.
        options: how to answer.
        first: so many rows of the result are wanted, whichever come first; None: all. More may be answered.
    """

    where: Predicate = EVERYTHING
    groups: tuple[Grouped, ...] = ()
    aggregates: tuple[Aggregate, ...] = (Count(),)
    options: Options = field(default_factory=Options)
    first: int | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """Codes of the public group columns, values of the sensitive ones, and a number per aggregate, group and value."""

    question: Question
    keys: Ints
    labels: tuple[tuple[Hashable, ...], ...]
    by_aggregate: Mapping[Aggregate, Answers]

    def estimate(self) -> Estimate:
        """The one estimate of a question with one aggregate and without groups."""
        numbers = self.by_aggregate[self.question.aggregates[0]]
        return Estimate(
            float(numbers.value[0, 0]),
            float(np.sqrt(numbers.variance[0, 0])),
            self.question.options.confidence,
            float(numbers.smallest[0, 0]),
            float(numbers.largest[0, 0]),
            self.question.options.said,
            float(np.sqrt(numbers.raw[0, 0])),
            None if numbers.cumulants is None else tuple(float(one[0, 0]) for one in numbers.cumulants.numbers()),
            numbers.whole,
        )
