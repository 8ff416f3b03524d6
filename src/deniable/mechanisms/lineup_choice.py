"""Which line-ups: inclusion, size and truth from a requirement, by predicted error (mathematics 12).

With prior f and pi = L f a member is believed at t/L + (1-t) f_x, so a larger set allows more truth, and tells less of
each value. The error that a design leaves follows from (J^-1)_xx; for choosing a size J is taken as that of sets drawn
in proportion, diag(pi - c pi^2) + c pi pi^T with c = 1 - 1/L, which needs no m x m matrix:

    Var_x = n (pi_x / t)^2 ((J^-1)_xx - (1 - t^2) / L^2) - f_x
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deniable.core import lineup_exact
from deniable.core.arrays import Floats, Ints
from deniable.core.exact import SCALE
from deniable.core.lineup import COIN, MOST_ENTRIES, TRUTH_STEP, LineUpDesign, orders_for
from deniable.core.lineup_arcs import ArcDesign, arcs_of
from deniable.core.lineup_blocks import BlockDesign
from deniable.core.profile import SELECTIVITIES
from deniable.mechanisms.lineup_spread import balanced_inverse, equal_inverse

LEAST_ORDERS = 8  # with fewer, some values are hardly ever told apart
LARGEST_INCLUSION = 0.75  # a value that always stands in the line-up cannot be counted: its rows look like all rows
SMALL_SIZES = 16  # sizes up to here are all tried, above only some
TRIED, LARGE, TRIED_IF_LARGE = 12, 2000, 4  # designs that are computed in full, fewer where there are many values
MARGIN = 4  # rows that are added to noisy counts: rare values stand in line-ups a little too often, never too rarely
SLACKS = (14, 4, 0)  # rows by which a value may be more frequent than the public count says
WORTH = 1.1  # a smaller slack must lower the error by more than a tenth
TRUTH_GRID, LOWERED_BY = 256, 4
EVERY_SIZE = 100  # sizes up to here are all tried for equal inclusion, where they cost little


class Candidate(NamedTuple):
    """A design, and its predicted error, to compare it by."""

    error: float
    design: ArcDesign


def sizes_for(m: int, size: int | None, *, least_orders: int = LEAST_ORDERS, all_up_to: int = SMALL_SIZES) -> list[int]:
    """The sizes that can be drawn: the one that is wanted, or all small ones and some larger ones."""
    most = min(int(LARGEST_INCLUSION * m), m - 1, MOST_ENTRIES // (least_orders * m))
    if size is not None:
        return [size] if 1 <= size <= most else []
    grown = {int(SMALL_SIZES * 1.25**step) for step in range(60)}
    return [one for one in range(1, most + 1) if one <= all_up_to or one in grown or one == most]


def designed(weights: Floats, size: int, truth: float) -> ArcDesign:
    """The design of inclusion in proportion to weights, its truth rounded down."""
    arcs = arcs_of(weights, size, max(LARGEST_INCLUSION, size / len(weights)))
    return ArcDesign(arcs, max(int(truth * COIN), 1) * TRUTH_STEP, orders_for(len(weights), size))


def predicted_error(share: Floats, inclusion: Floats, truth: float) -> float:
    """The relative error of counts at some selectivities, as a geometric mean, up to a factor of sqrt(n)."""
    size = float(inclusion.sum())
    c = 1 - 1 / size
    own = inclusion - c * inclusion**2
    ratio = inclusion / own
    inverse = 1 / own - c * ratio**2 / (1 + c * float((inclusion * ratio).sum()))
    variance = (inclusion / truth) ** 2 * (inverse - (1 - truth**2) / size**2) - share
    variance = np.maximum(variance, 1e-12)
    selectivities = [a for a in SELECTIVITIES if (share >= a).any()] or [float(np.median(share))]
    errors = [float(np.sqrt(variance / (share * a)).compress(share >= a).mean()) for a in selectivities]
    return float(np.exp(np.mean(np.log(errors))))


def largest_truth(design: LineUpDesign, prior: Floats, limits: Floats, slack: float) -> float:
    """The largest t at which no member of a set is believed above its limit, each value's own count raised by slack.

    f_x (t h + (1-t)) <= limit (t H + (1-t) n), with h = D(S | x in S) / D(S) and H = sum over S of f h: linear in t.
    Outside the set a belief only falls, as long as f_x <= limit n.
    """
    sets = design.sets
    h = sets.hits / sets.lengths[:, None]
    own, limit = prior[sets.members], limits[sets.members]
    own_h = own * h
    together = own_h.sum(axis=1, keepdims=True)
    if slack:
        own, own_h, together = own + slack, own_h + slack * h, together + slack * h
    starts = own - limit * (prior.sum() + slack)
    protected = limit < 1
    if (starts[protected] >= 0).any():
        return 0.0
    rises = own_h - limit * together
    bound = protected & (rises > 0)
    return float(np.min(-starts[bound] / (rises - starts)[bound], initial=1.0))


def by_frequency(
    counts: Ints,
    public: Ints,
    limits: list[Fraction | None],
    size: int | None,
    truth: Fraction | None,
    most_truth: Fraction,
) -> ArcDesign | None:
    """The design with the smallest predicted error whose posteriors, by the true counts, keep every limit exactly.

    It follows from ``public`` counts; the true ones check it, and where they do not let it pass, they decide what does.
    """
    bounds = np.array([1.0 if limit is None else float(limit) for limit in limits])
    base = np.maximum(public, 1) + float(MARGIN)
    searches = [
        _Search(counts, base, weights, tuple(limits), bounds, size, truth, float(truth or most_truth))
        for weights in _weightings(base, bounds)
    ]
    design = _best(searches, checked=False)
    if design is None or lineup_exact.keeps(design, counts, limits):
        return design
    return _best(searches, checked=True)


def _best(searches: list[_Search], *, checked: bool) -> ArcDesign | None:
    """The design of the largest slack whose error is about as small as that of any."""
    best: list[Candidate] = []
    for slack in SLACKS:
        made = [candidate for search in searches if (candidate := search.best(slack, checked)) is not None]
        best += sorted(made, key=lambda one: one.error)[:1]
    least = min((one.error for one in best), default=0.0)
    return next((one.design for one in best if one.error <= WORTH * least), None)


def _weightings(base: Floats, bounds: Floats) -> Iterator[Floats]:
    """Inclusion like the counts; and more of it for values that want a lower limit (pi_x >= f_x t / rho2_x)."""
    yield base
    protected = bounds[bounds < 1]
    if len(protected) and protected.min() < protected.max():
        yield base * np.where(bounds < 1, protected.max() / bounds, 1.0)


@dataclass(frozen=True, eq=False)
class _Search:
    """Designs of one weighting, by their size: the most likely first, until no other can be better."""

    counts: Ints
    base: Floats
    weights: Floats
    limits: tuple[Fraction | None, ...]
    bounds: Floats
    size: int | None
    truth: Fraction | None
    wanted: float
    sketches: dict[int, ArcDesign] = field(default_factory=dict)

    @cached_property
    def share(self) -> Floats:
        return self.base / self.base.sum()

    @cached_property
    def ranked(self) -> list[tuple[float, int]]:
        """Sizes by the error that they promise; without those that cannot be meant."""
        pairs = sorted((self._promised_error(one), one) for one in sizes_for(len(self.counts), self.size))
        possible = [pair for pair in pairs if np.isfinite(pair[0]) or self.size is not None]
        return possible[: TRIED if len(self.counts) <= LARGE else TRIED_IF_LARGE]

    def best(self, slack: int, checked: bool) -> Candidate | None:
        """The best design at this slack; ``checked``: of those that pass, their truth lowered as far as that needs."""
        best: Candidate | None = None
        for guess, size in self.ranked:
            if best is not None and guess > best.error:
                break
            design = self._sketched(size, slack)
            if design is not None and checked:
                design = self._checked(design)
            if design is not None:
                error = predicted_error(self.share, design.inclusion, design.share_true)
                best = Candidate(error, design) if best is None or error < best.error else best
        return best

    def _promised_error(self, size: int) -> float:
        """The error at the truth that pi = L f would allow; infinite where that is less than must be."""
        inclusion = arcs_of(self.weights, size, max(LARGEST_INCLUSION, size / len(self.weights))) / SCALE
        protected = self.bounds < 1
        given = (self.share / inclusion)[protected]
        room = np.where(given > self.share[protected], given - self.share[protected], np.inf)
        allowed = float(np.min((self.bounds - self.share)[protected] / room, initial=1.0))
        if allowed <= 1 / TRUTH_GRID or (self.truth is not None and allowed < 0.9 * self.wanted):
            return float("inf")
        return predicted_error(self.share, inclusion, min(allowed, self.wanted))

    def _sketched(self, size: int, slack: int) -> ArcDesign | None:
        if size not in self.sketches:
            self.sketches[size] = designed(self.weights, size, self.wanted)
        sketch = self.sketches[size]
        largest = largest_truth(sketch, self.base, self.bounds, slack)
        if self.truth is not None and largest < self.wanted:
            return None
        steps = min(int(largest * TRUTH_GRID), int(self.wanted * TRUTH_GRID))
        coin = steps * (COIN // TRUTH_GRID) if self.truth is None else int(self.truth * COIN)
        return sketch.with_coin(coin) if coin else None

    def _checked(self, design: ArcDesign) -> ArcDesign | None:
        """The design, its truth lowered until every posterior under the true counts keeps its limit, exactly."""
        step = LOWERED_BY * (COIN // TRUTH_GRID)
        while not lineup_exact.keeps(design, self.counts, self.limits):
            # As many steps at once as floating-point numbers say are needed, and one where they say none.
            most = largest_truth(design, self.counts.astype(np.float64), self.bounds, 0) * COIN
            steps = max(math.ceil((design.coin - most) / step), 1)
            coin = design.coin - steps * step
            if self.truth is not None or coin <= 0:
                return None
            design = design.with_coin(coin)
        return design


def by_amplification(m: int, gamma: Fraction, size: int | None, truth: Fraction | None) -> BlockDesign | None:
    """The design of equal inclusion whose exact amplification is at most gamma; nothing here depends on a table.

    t = (gamma-1) L / (m + (gamma-1) L). Of all sets of a size the error would be least near L = m / (gamma+1) (Ye and
    Barg 2018); blocks come close to that, and where there are many values a smaller one allows more of them.
    """
    odds = float(gamma) - 1
    limits = {one: odds * one / (m + odds * one) for one in sizes_for(m, size, least_orders=1, all_up_to=EVERY_SIZE)}
    if truth is not None:
        limits = {one: float(truth) for one, most in limits.items() if most >= float(truth)}
    if not limits:
        return None
    best = _least_error(m, limits)
    coin = max(int((limits[best] if truth is None else truth) * COIN), 1)
    design = BlockDesign(m, best, coin * TRUTH_STEP, orders_for(m, best))
    while not _keeps(design, gamma):
        if truth is not None or design.coin == 1:
            return None
        design = design.with_coin(design.coin - 1)
    return design


def equal_error(m: int, size: int, truth: float) -> float:
    """The deviation of a count over equally frequent values, for one row: the square root of the variance

    (pi / t)^2 ((J^-1)_xx - (1 - t^2) / L^2)
    """
    return _deviation(m, size, truth, equal_inverse(m, size, orders_for(m, size)))


def _deviation(m: int, size: int, truth: float, inverse: float) -> float:
    return size / m / truth * math.sqrt(inverse - (1 - truth**2) / size**2)


def _least_error(m: int, truths: dict[int, float]) -> int:
    """The size with the smallest error; no size is looked at whose sets would be worse even if J were balanced."""
    balanced = {one: _deviation(m, one, truth, balanced_inverse(m, one)) for one, truth in truths.items()}
    best, least = 0, math.inf
    for one in sorted(balanced, key=lambda size: (balanced[size], size)):
        if balanced[one] >= least and best:
            break
        error = equal_error(m, one, truths[one])
        best, least = (one, error) if error < least or not best else (best, least)
    return best


def _keeps(design: LineUpDesign, gamma: Fraction) -> bool:
    reached = lineup_exact.amplification(design)
    return reached is not None and reached <= gamma
