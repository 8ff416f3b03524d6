"""What can be said of a publication before any sensitive value is looked at: whether to learn, or go row by row.

What is taken is published, so it may tell nothing of the values that is not paid for. The outlook knows the number of
rows and of public columns, whether the values are declared, and what is required; where rho1 is left out, it takes half
of rho2. The errors of both ways follow in closed form:

    learned      sd^2 = 1 / (1/s^2 + 1/(t mu)^2) + c mu + (f mu)^2,    s = 3.1 k / epsilon
    row by row   sd^2 >= n_q 4 gamma / (gamma - 1)^2 + mu / rho2

for a count of mu rows among n_q that a question looks at. s is the noise of an entry of k tables, t how far counts are
from independence, c what a model leaves of the table's own chance, f its misfit: measured on five real tables of 1,000
to 100,000 rows at epsilon .4 to 2.5 (``benchmarks/outlook.py``). 4 gamma / (gamma - 1)^2 a row is the least that any
channel adds, whatever it is (Ye and Barg 2018), and mu / rho2 about what the limit on posteriors costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from deniable.core.histogram import SELECTIVITIES
from deniable.core.privacy import Privacy, amplification_limit
from deniable.core.values import percent
from deniable.learned.measuring import least_listed
from deniable.mechanisms.synthetic import LARGEST_COST, LIST_SHARE, largest_margin

NORMAL_MEAN = math.sqrt(2 / math.pi)
ENTRY, ASSOCIATION, CHANCE, MISFIT = 3.1, 0.4, 0.1, 0.002
SHARE = 0.05  # of the rows that a question looks at has its value
LISTED = 0.01  # of the rows: a value of so many must be listed, or learning says too little of it
LEAST_EPSILON = 0.1  # of a person, that anything is learned from
CLEAR = 0.15  # of a count of ``LISTED`` of the rows: the noise of an entry, or single values are told row by row
TIE = 1.25  # the stronger promise is taken at up to so many times the error
COLUMNS = 8  # public columns, where nothing is known of them
DELTA = Fraction(1, 10**6)


def learned_error(count: float, columns: int, epsilon: float) -> float:
    """The relative error to expect of a count of so many rows from a learned release.

    >>> round(learned_error(600, 7, 0.875), 3)
    0.034
    """
    entry, apart = ENTRY * max(columns, 1) / epsilon, ASSOCIATION * count
    noise = 1 / (1 / entry**2 + 1 / apart**2)
    return NORMAL_MEAN * math.sqrt(noise + CHANCE * count + (MISFIT * count) ** 2) / count


def least_row_error(count: float, rho2: float, epsilon: float) -> float:
    """The same of rows that are perturbed one by one, at least, at an epsilon against any attacker.

    >>> round(least_row_error(600, 1 / 6, 3), 3)
    0.105
    """
    draws = 0.0 if math.isinf(epsilon) else 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    return NORMAL_MEAN * math.sqrt((draws / SHARE + 1 / rho2) / count)


@dataclass(frozen=True)
class Outlook:
    """A publication before it looks at values.

    Attributes:
        rows, columns: of the table; of the public columns those that are published.
        privacy: what is required.
        limit: on epsilon against any attacker; infinite where it is lifted.
        declared: whether every sensitive column has its values declared.
        sensitive: how many sensitive columns have no declared values.
        together: rows that one person or group has at the most.
    """

    rows: int
    columns: int
    privacy: Privacy
    limit: float
    declared: bool
    sensitive: int = 1
    together: int = 1

    @property
    def rho1(self) -> Fraction | None:
        """What may be believed beforehand: as required, or what share the most frequent value is taken to have, with a
        margin for noise."""
        if self.privacy.rho1 is not None or self.privacy.rho2 is None:
            return self.privacy.rho1
        return self.privacy.rho2 / 2 + Fraction(largest_margin() / max(self.rows, 1))

    @property
    def epsilon(self) -> float:
        """What a learned release may spend on a person, as far as that is known; 0 where that is nothing."""
        pairs = list(self.privacy.per_value.values())
        if self.rho1 is not None and self.privacy.rho2 is not None:
            pairs.append((self.rho1, self.privacy.rho2))
        if not pairs:
            return self.limit
        gamma = min(amplification_limit(rho1, rho2) if rho1 < rho2 else Fraction(1) for rho1, rho2 in pairs)
        return min(math.log(gamma), self.limit)

    @property
    def row_epsilon(self) -> float:
        """What a row may spend against any attacker."""
        return self.epsilon if self.privacy.adversary == "any-prior" else self.limit

    @property
    def listed_from(self) -> int:
        """How many rows a value needs to be listed, where values are not declared."""
        left = Fraction(self.epsilon) / self.together - (LARGEST_COST if self.privacy.rho1 is None else 0)
        cost = LIST_SHARE * max(left, Fraction(1, 1000)) / self.sensitive
        return least_listed(cost / 2, DELTA / (self.sensitive * self.together)) + self.together - 1

    @property
    def _entry(self) -> float:
        """The noise of an entry of a table."""
        return ENTRY * max(self.columns, 1) * self.together / self.epsilon

    @property
    def unlearned(self) -> str:
        """Why learning would say too little; nothing where it does not."""
        if self.epsilon < LEAST_EPSILON:
            return "so few rows leave next to no budget, whatever is learned"
        if self.privacy.adversary == "frequency" and self._entry > CLEAR * LISTED * self.rows:
            return "so few rows that tables by value would be mostly noise"
        if self.declared or self.listed_from <= LISTED * self.rows:
            return ""
        return (
            f"of values that are not declared a learned release lists those of about {self.listed_from:,} rows or more"
        )

    def errors(self, selectivities: Sequence[float] = SELECTIVITIES) -> list[tuple[float, float]]:
        """Of counts of these shares of the rows: learned, and row by row at least."""
        rho2 = float(max([self.privacy.rho2 or 0, *(rho2 for _, rho2 in self.privacy.per_value.values())]))
        return [
            (
                learned_error(share * self.rows, self.columns, self.epsilon / self.together),
                least_row_error(share * self.rows, rho2, self.row_epsilon),
            )
            for share in selectivities
        ]

    @property
    def learns(self) -> bool:
        """Whether to learn: where its errors are the smaller, or as small at a stronger promise."""
        if self.privacy.adversary == "any-prior" and not self.declared:  # rows would tell which values there are
            return True
        if self.unlearned or not self.rows:
            return False
        ratios = [math.log(learned / by_row) for learned, by_row in self.errors()]
        return sum(ratios) / len(ratios) <= math.log(TIE)

    @property
    def in_words(self) -> str:
        """Why a learned release was taken."""
        ((learned, by_row),) = self.errors((LISTED,))
        limit = "" if math.isinf(self.row_epsilon) else f" at epsilon {self.row_epsilon:.3g}"
        return (
            f"synthetic: it holds against any attacker, and counts of {percent(LISTED)} of the rows are off by about "
            f"{percent(learned, 2)} (row by row{limit} by {percent(by_row, 2)} at least)"
        )


def limit_for(privacy: Privacy, limit: Fraction | None) -> float:
    """The limit on epsilon against any attacker: none where it is lifted, and never below an epsilon that is itself
    what is required."""
    if limit is None:
        return math.inf
    return float(max(limit, privacy.budget or limit))
