"""What a published group says about its members, where groups hold true values (Anatomy, generalization;
mathematics 9).

Rows show no value of their own, only their group g, so whoever finds a person's row knows

    Pr[x | g] = N_g[x] / N_g

with N_g[x] rows of x in the group. Exact fractions of published counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse

from deniable.audit.cells import CellReport
from deniable.audit.extremes import View
from deniable.audit.posteriors import Belief
from deniable.audit.repeats import least_likely
from deniable.core.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class GroupRows:
    """How many rows of a group have a value: one entry for each pair that occurs.

    Attributes:
        group: which group, by its published number.
        value: which value, by its place in the domain.
        rows: how many rows.
    """

    group: Ints
    value: Ints
    rows: Ints

    @cached_property
    def sizes(self) -> Ints:
        """The rows of each group, by its number."""
        return np.bincount(self.group, weights=self.rows).astype(np.int64)

    @cached_property
    def totals(self) -> Ints:
        """The rows of each value."""
        return np.bincount(self.value, weights=self.rows).astype(np.int64)

    @cached_property
    def used(self) -> Ints:
        """The groups that have rows."""
        return np.flatnonzero(self.sizes)

    def given(self, y: int | None = None, cell: int | None = None) -> dict[int, Fraction]:
        """Pr[x | group] for each value x of the group ``cell``."""
        inside = np.flatnonzero(self.group == cell)
        return {int(self.value[i]): Fraction(int(self.rows[i]), int(self.sizes[cell])) for i in inside}

    def views(self) -> Iterator[View]:
        """Everything that a row can show: its group."""
        yield from ((int(group), None) for group in self.used)

    @cached_property
    def beliefs(self) -> tuple[Belief, ...]:
        """The extremes for every value that has rows, in the order of the domain."""
        share = self.rows / self.sizes[self.group]
        order = np.lexsort((self.group, share, self.value))
        starts = np.flatnonzero(np.r_[True, np.diff(self.value[order]) != 0])
        ends = np.r_[starts[1:], len(order)]
        n = int(self.rows.sum())
        beliefs = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            least, most = order[start], order[end - 1]
            low, low_at = self._share(least), int(self.group[least])
            if end - start < len(self.used):
                missing = np.setdiff1d(self.used, self.group[order[start:end]])
                low, low_at = Fraction(0), int(missing[0])
            x = int(self.value[most])
            high, at = self._share(most), (int(self.group[most]), None)
            beliefs.append(Belief(x, Fraction(int(self.totals[x]), n), high, at, low, (low_at, None), high))
        return tuple(beliefs)

    def _share(self, entry: int) -> Fraction:
        return Fraction(int(self.rows[entry]), int(self.sizes[self.group[entry]]))

    @cached_property
    def amplification(self) -> Fraction | None:
        """max over groups and values x, x' of Pr[g | x] / Pr[g | x'], Pr[g | x] = N_g[x] / N[x]; None: unbounded."""
        values = int((self.totals > 0).sum())
        if (np.bincount(self.group)[self.used] < values).any():
            return None
        by_group: dict[int, list[Fraction]] = {}
        for group, value, rows in zip(self.group.tolist(), self.value.tolist(), self.rows.tolist(), strict=True):
            by_group.setdefault(group, []).append(Fraction(rows, int(self.totals[value])))
        return max(max(own) / min(own) for own in by_group.values())

    def likelihood(self, m: int) -> Floats:
        """Pr[group | value], one row per group: what finding someone's group says."""
        likelihood = np.zeros((len(self.sizes), m))
        likelihood[self.group, self.value] = self.rows / self.totals[self.value]
        return likelihood

    def totals_of(self, m: int) -> Ints:
        """The rows of each value of a domain of m."""
        return np.r_[self.totals, np.zeros(m - len(self.totals), np.int64)]

    @property
    def held(self) -> Ints:
        """The rows of each value."""
        return self.totals

    def against(self, x: int) -> Floats:
        """Of every value, how little its rows are in a group that has x (``repeats``)."""
        inside = self._likelihood[self.group[self.value == x]]
        return least_likely(inside, inside[:, [x]].toarray()[:, 0])

    @cached_property
    def _likelihood(self) -> sparse.csr_array:
        return sparse.csr_array((self.rows / self.totals[self.value], (self.group, self.value)))

    def report(self, domain: Sequence[Hashable], categories: Mapping[Hashable, Hashable] | None) -> CellReport:
        """What the groups reveal together: entropy before and after, the smallest of them, those that agree."""
        n = int(self.rows.sum())
        before = self.totals[self.totals > 0] / n
        entropy = float(-(before * np.log2(before)).sum())
        shares = self.rows / self.sizes[self.group]
        remaining = float(-(self.rows / n * np.log2(shares)).sum())
        different = np.bincount(self.group)
        alike = int(self.sizes[self.used][different[self.used] == 1].sum())
        fewest = None
        if categories is not None:
            kinds = {value: i for i, value in enumerate(dict.fromkeys(categories.get(v, v) for v in domain))}
            kind = np.array([kinds[categories.get(v, v)] for v in domain])[self.value]
            fewest = int(np.bincount(np.unique(self.group * len(kinds) + kind) // len(kinds))[self.used].min())
        return CellReport(
            count=len(self.used),
            entropy=entropy,
            revealed=max(entropy - remaining, 0.0),
            smallest_domain=int(different[self.used].min()),
            smallest_rows=int(self.sizes[self.used].min()),
            fewest_categories=fewest,
            alike=alike,
        )
