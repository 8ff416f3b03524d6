"""Small-domain randomization: split the rows into cells of few values and perturb each within its own (mathematics 4,
SDR).

    rho1_i = largest relative frequency in cell i of a protected value,  gamma_i = rho2 (1-rho1_i) / (rho1_i (1-rho2))

If every cell meets (rho1_i, rho2), so does the table, for someone who knows how frequent each value is (SDR Cor. 1).
The cell of a row is published, and is evidence too: docs/explanation/small-domain.md says what it reveals.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

from deniable.core.arrays import Bools, Floats
from deniable.core.errors import OptionError, RequirementError, did_you_mean, option
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.requirement import (
    check_histogram,
    needs_rho2,
)
from deniable.mechanisms.singles import covered_singles, loose_singles
from deniable.mechanisms.small_domain.balance import Group, balance, joined
from deniable.mechanisms.small_domain.channels import (
    CHANNELS,
    ChannelKind,
)
from deniable.mechanisms.small_domain.cost import COSTS, CostName, cost_named, weights_for
from deniable.mechanisms.small_domain.guarantee import bound_in_cells, cells_guarantee, surest_in_cells
from deniable.mechanisms.small_domain.merge import Rules, merge
from deniable.mechanisms.small_domain.options import problems_of, rules_for
from deniable.mechanisms.small_domain.rearrange import ORDERS, OrdersKind
from deniable.mechanisms.small_domain.seating import Seating
from deniable.mechanisms.view import OWN_MARGINS, beyond_rho1, checks_tell, covered_values


@dataclass(frozen=True)
class SmallDomain(Mechanism):
    """Cells of few values, each perturbed within its own: balance, rearrange, merge, then a channel for each (SDR).

        rho1_i = largest share of a protected value in cell i,    gamma_i = rho2 (1-rho1_i) / (rho1_i (1-rho2))

    Attributes:
        cost: what the merge minimises: ``"relative"``, the summed variance of reconstructed count / true count;
            ``"variance"``, that of the reconstructed counts; ``"bound"``, the paper's error bound.
        orders: which orders of the groups the merge tries, to keep the cheapest: ``"all"`` that are known here, or
            ``"band"``, the paper's alone. A smaller bound is not a smaller error: with all orders the paper's cost
            merges even more, and the error grows.
        delta: the error bound holds with probability 1 - delta; used by ``"bound"`` alone.
        channels: ``"uniform"``, one coin for a cell, or ``"fine-grain"``, one for each of its values.
        keep_apart: sets of values; no cell may consist of values of one such set alone.
        categories: value -> category, for ``min_categories``.
        min_categories: how many categories each cell must hold.
        min_rows: how many rows each cell must hold: in small cells someone who knows the cell's contents can combine
            rows. Default: 1 for the paper's cost, otherwise 100, or a twentieth of the table if that is less.

    >>> import deniable as dn
    >>> from deniable.mechanisms import SmallDomain
    >>> rows = dict(zip("abcdefghij", [12, 8, 6, 5, 4, 3, 1, 1, 1, 1]))
    >>> plan = dn.plan(rows, dn.Privacy(rho1="1/3", rho2="2/3"), SmallDomain(cost="bound"))
    >>> [dict(cell.rows) for cell in plan.cells]
    [{'a': 12, 'b': 8, 'c': 6, 'd': 4, 'e': 4, 'f': 2}, {'d': 1, 'f': 1, 'g': 1, 'h': 1, 'i': 1, 'j': 1}]
    """

    name: ClassVar[str] = "small-domain"
    reveals: ClassVar[str] = "the cell: a row's value is one of the cell's"

    cost: CostName = "relative"
    orders: OrdersKind = "all"
    delta: float = 0.05
    channels: ChannelKind = "uniform"
    keep_apart: tuple[tuple[Hashable, ...], ...] = ()
    categories: Mapping[Hashable, Hashable] | None = None
    min_categories: int = 1
    min_rows: int | None = None

    def __post_init__(self) -> None:
        apart = tuple((values,) if isinstance(values, str) else tuple(values) for values in self.keep_apart)
        object.__setattr__(self, "keep_apart", apart)
        problems = [
            f"{option} = {value!r} is not known: choose {' or '.join(map(repr, known))}.{did_you_mean(value, known)}"
            for option, value, known in (
                ("cost", self.cost, COSTS),
                ("orders", self.orders, tuple(ORDERS)),
                ("channels", self.channels, CHANNELS),
            )
            if value not in known
        ]
        if not 0 < self.delta < 1:
            problems.append(f"delta = {self.delta} is not allowed: it must lie strictly between 0 and 1.")
        least = self.min_rows
        if least is not None and (isinstance(least, bool) or not isinstance(least, int) or least < 1):
            problems.append(f"min_rows = {least!r} is not allowed: choose a whole number from 1 on, or leave it out.")
        problems += problems_of(apart, self.categories, self.min_categories)
        if problems:
            raise OptionError("\n".join(problems))

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        privacy = needs_rho2(privacy, self.name)
        assert privacy.rho2 is not None
        if privacy.adversary == "any-prior":
            raise RequirementError(
                "adversary 'any-prior' cannot be met by mechanism 'small-domain': a row's cell is published and is "
                "evidence that depends on the table, so a belief can grow before the value is even looked at. Fix: "
                f"{option('mechanism', 'uniform')}, or {option('adversary', 'frequency')}."
            )
        check_histogram(histogram, privacy)
        protected = covered_values(histogram, privacy, public)
        shown = histogram if public is None else public
        rules = rules_for(shown, self.keep_apart, self.categories, self.min_categories, self._least_rows(histogram))
        weights = weights_for(self.cost, shown.counts)
        covered = covered_singles(histogram, privacy, public)
        seating = Seating(histogram, public is not None, protected, privacy.rho2, self.channels, weights, covered)
        cells, planned = seating.cells(self._merged(shown, protected, weights, privacy.rho2, rules))
        seen = [
            Cell(Histogram(cell.channel.values, group.counts), cell.channel)
            for cell, group in zip(cells, planned, strict=True)
        ]
        above = beyond_rho1(
            histogram, privacy, public, surest_in_cells(histogram, cells), partial(bound_in_cells, histogram, seen)
        )
        promised = cells_guarantee(
            shown,
            privacy,
            tuple(seen),
            protected,
            above,
            loose_singles(covered),
            checks_tell(histogram, public, OWN_MARGINS),
            noisy=public is not None,
        )
        return Plan.of_cells(
            self.name,
            histogram,
            tuple(cells),
            promised,
            privacy=privacy,
            options=self.options,
            cells_published=True,
        )

    def _least_rows(self, histogram: Histogram) -> int:
        if self.min_rows is not None:
            return self.min_rows
        return 1 if self.cost == "bound" else max(1, min(100, histogram.rows // 20))

    def _merged(
        self, histogram: Histogram, protected: Bools, weights: Floats, rho2: Fraction, rules: Rules
    ) -> list[Group]:
        """Balance, rearrange in several ways, merge each, keep the cheapest."""
        cost = cost_named(self.cost, rho2=float(rho2), rows=histogram.rows, delta=self.delta)
        groups = balance(histogram.counts, protected)
        merges = []
        for order in dict.fromkeys(tuple(order.tolist()) for _, order in ORDERS[self.orders](groups, histogram.m)):
            arranged = [groups[k] for k in order]
            merges.append((merge(arranged, protected, weights, cost, rules), arranged))
        best, arranged = min(merges, key=lambda pair: pair[0].cost)
        if best.cost == float("inf"):
            raise RequirementError(
                f"rho2 = {rho2} cannot be met with a useful coin: the most frequent protected value is as frequent to "
                "nine digits. Fix: raise rho2."
            )
        return [joined(arranged[start:stop]) for start, stop in zip(best.cuts, best.cuts[1:], strict=False)]
