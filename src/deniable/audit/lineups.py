"""What an attacker who knows how frequent each value is concludes from a line-up, over all sets that a row may show.

    Pr[x | S] = f_x P(S | x) / sum_k f_k P(S | k)

Sets and their probabilities are recomputed from the manifest, as ``verify`` does it; nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from deniable.audit.extremes import View
from deniable.audit.posteriors import Belief
from deniable.audit.repeats import least_likely
from deniable.audit.verify import lineups
from deniable.audit.verify.lineups import COINS, FULL, Line
from deniable.core.arrays import Counts, Floats, Ints


class Seen(NamedTuple):
    """One set: its members, what each weighs, what everyone else weighs, and the rows that show it."""

    view: View
    members: dict[int, int]
    blind: int
    rows: int


class LineUpPosteriors:
    """Every posterior of a release of line-ups, for the attacker whose prior is the frequency of each value.

    Args:
        design: of the line-ups, as the manifest has it.
        counts: how many rows hold each value.
    """

    def __init__(self, design: Mapping[str, Any], counts: Counts) -> None:
        self._design = design
        self._coin = design["truth"] * COINS // FULL
        self._counts = [int(count) for count in counts]
        self._total = sum(self._counts)

    @cached_property
    def amplification(self) -> Fraction | None:
        """max P(S | x) / P(S | x'); None where a set rules values out."""
        return lineups.amplification(self._design)

    @cached_property
    def beliefs(self) -> tuple[Belief, ...]:
        """The extremes for every value that has rows, in the order of the domain."""
        seen = [one for one in self._sets if one.rows]
        inside: dict[int, list[tuple[Fraction, View]]] = {}
        for one in seen:
            for x, weight in one.members.items():
                inside.setdefault(x, []).append((Fraction(self._counts[x] * weight, one.rows), one.view))
        outside = sorted(((Fraction(one.blind, one.rows), one) for one in seen), key=lambda pair: pair[0])
        return tuple(self._belief(x, inside.get(x, []), outside) for x, rows in enumerate(self._counts) if rows)

    @cached_property
    def _sets(self) -> list[Seen]:
        return [self._seen(line) for line in lineups.lines(self._design)]

    def _seen(self, line: Line) -> Seen:
        blind = (COINS - self._coin) * line.blind
        members = {x: self._coin * draws + blind for x, draws in zip(line.members, line.draws, strict=True)}
        rows = blind * self._total + sum(self._counts[x] * (weight - blind) for x, weight in members.items())
        return Seen((None, line.members), members, blind, rows)

    def _belief(self, x: int, inside: list[tuple[Fraction, View]], outside: list[tuple[Fraction, Seen]]) -> Belief:
        """Of the sets without x only those where everyone outside is likeliest and unlikeliest matter."""
        options = list(inside)
        for ratios in (outside, reversed(outside)):
            extreme = next(((ratio, one.view) for ratio, one in ratios if x not in one.members), None)
            if extreme is not None:
                options.append((self._counts[x] * extreme[0], extreme[1]))
        highest, lowest = max(options, key=lambda one: one[0]), min(options, key=lambda one: one[0])
        prior = Fraction(self._counts[x], self._total)
        return Belief(x, prior, *highest, *lowest, prior)

    @cached_property
    def held(self) -> Ints:
        """The rows of each value."""
        return np.array(self._counts)

    def against(self, x: int) -> Floats:
        """Of every value, how rarely it shows a set that has x (``repeats``); few are in all of these sets."""
        rows = self._with[[x]].indices
        inside, blind = self._members[rows], np.array([self._sets[row].blind for row in rows.tolist()], dtype=float)
        own = inside[:, [x]].toarray()[:, 0]
        return least_likely(inside, own, float((blind / own).min()))

    @cached_property
    def _members(self) -> sparse.csr_array:
        """What each member of each set weighs, [sets, values]."""
        weights = np.array([weight for one in self._sets for weight in one.members.values()], dtype=float)
        columns = np.array([x for one in self._sets for x in one.members])
        ends = np.cumsum([0, *(len(one.members) for one in self._sets)])
        return sparse.csr_array((weights, columns, ends), shape=(len(self._sets), len(self._counts)))

    @cached_property
    def _with(self) -> sparse.csr_array:
        return self._members.T.tocsr()
