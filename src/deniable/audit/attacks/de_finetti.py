"""De Finetti's attack and the foreground attack: someone who learns from all groups which value of a group is whose.

Invented against Anatomy (Kifer 2009; Wong et al. 2011; SPLU 3): a group says which l values its rows have, and
independence within the group is only what nobody has looked into. Which public values go with which sensitive value is
learnt from all groups together, and tells members of one group apart:

    Pr[v | row r of group g] ~ N_g[v] prod_c Pr[x_c | v],    Pr[x_c = k | v] from the rows, weighed by the left side

*Foreground* takes one step, from rows that are all alike in their group. *De Finetti* goes on to the fixed point, and
after every step lets the members of a group share out its values: each value of g is had by N_g[v] of its rows. Decoy
groups are not published, so neither applies to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.audit.attacks.result import AttackResult, blind_guess, judged
from deniable.core.arrays import Codes, Floats

ROUNDS = 20
SHARING = 3  # times that rows and values of a group are made to add up, in every round
SMOOTHING = 1.0


@dataclass(frozen=True, eq=False)
class Buckets:
    """Groups that show which values their rows have, and the public columns of every row.

    Attributes:
        groups: the group of each published row.
        shares: of each group the share of its rows that have each value, [groups, values].
        columns: the public columns of the published rows, coded 0, 1, ...
    """

    groups: Codes
    shares: Floats
    columns: Sequence[Codes]

    def learnt(self, rounds: int, *, sharing: bool) -> list[Floats]:
        """log Pr[category | value] of each public column, [values, categories]."""
        weights = self.shares[self.groups]
        tables = self._tables(weights)
        for _ in range(rounds - 1):
            weights = _normal(self.shares[self.groups] * _likely(tables, self.columns))
            for _ in range(SHARING if sharing else 0):
                weights = _normal(weights * self._missing(weights))
            tables = self._tables(weights)
        return tables

    def _missing(self, weights: Floats) -> Floats:
        """By how much each value of a group is had by too few or too many of its rows."""
        sums = np.zeros_like(self.shares)
        np.add.at(sums, self.groups, weights)
        sizes = np.bincount(self.groups, minlength=len(self.shares))[:, None]
        factor = np.divide(self.shares * sizes, sums, out=np.ones_like(sums), where=sums > 0)
        result: Floats = factor[self.groups]
        return result

    def _tables(self, weights: Floats) -> list[Floats]:
        tables = []
        for column in self.columns:
            counts = np.zeros((int(column.max(initial=0)) + 1, weights.shape[1]))
            np.add.at(counts, column, weights)
            overall = counts.sum(1, keepdims=True) / max(float(counts.sum()), 1.0)
            tables.append(np.log((counts + SMOOTHING * overall + 1e-12) / (counts.sum(0) + SMOOTHING)).T)
        return tables


def de_finetti(buckets: Buckets, people: Sequence[Codes], located: Codes, original: Codes) -> AttackResult:
    """Guess for each person the value of their group that fits their public values best, learnt to the fixed point.

    Args:
        buckets: the release.
        people: the public columns of the people, coded as in ``buckets``.
        located: the group of each person.
        original: for each person, their true value.
    """
    tables = buckets.learnt(ROUNDS, sharing=True)
    return _played("de Finetti", buckets, tables, people, located, original)


def foreground(buckets: Buckets, people: Sequence[Codes], located: Codes, original: Codes) -> AttackResult:
    """The same by one step: what all groups say about each public value, without looking into them again."""
    tables = buckets.learnt(1, sharing=False)
    return _played("foreground", buckets, tables, people, located, original)


def _played(
    name: str, buckets: Buckets, tables: list[Floats], people: Sequence[Codes], located: Codes, original: Codes
) -> AttackResult:
    guess = (buckets.shares[located] * _likely(tables, people)).argmax(1) if len(located) else np.zeros(0, np.int64)
    certain = "people whose group is known; which value of it is theirs is learnt from all groups"
    return judged(name, guess == original, blind_guess(original), certain)


def _likely(tables: Sequence[Floats], columns: Sequence[Codes]) -> Floats:
    """prod_c Pr[x_c | v], up to a factor for each row; a category that no row has says nothing."""
    score = np.zeros((len(columns[0]), len(tables[0])))
    for table, column in zip(tables, columns, strict=True):
        known = column < table.shape[1]
        score += np.where(known[:, None], table.T[np.where(known, column, 0)], 0.0)
    likely: Floats = np.exp(score - score.max(1, keepdims=True))
    return likely


def _normal(weights: Floats) -> Floats:
    total = weights.sum(1, keepdims=True)
    normal: Floats = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return normal
