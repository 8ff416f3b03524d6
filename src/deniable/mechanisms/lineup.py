"""Line-ups: a row publishes a set of values in which the person's own stands, or does not (mathematics 12)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from deniable.core import exact
from deniable.core import lineups as designs
from deniable.core.designs import ArcDesign, BlockDesign, arcs_of
from deniable.core.errors import OptionError, RequirementError, option
from deniable.core.exact import SCALE
from deniable.core.histogram import SELECTIVITIES, Histogram
from deniable.core.lineups import (
    COIN,
    MOST_ENTRIES,
    TRUTH_STEP,
    LineUpDesign,
    keeps,
    lineup_amplification,
    orders_for,
    public_order,
)
from deniable.core.part import COUNT_EPSILON
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, exact_epsilon, gamma_below, worst_posterior
from deniable.core.promise import Guarantee, LineUps
from deniable.core.values import Floats, Ints, Probability, exact_number
from deniable.mechanisms.base import Mechanism, Need
from deniable.mechanisms.one_cell import Limits, allowed_amplification, limits_of, pairs_of, rounded_up
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    beyond_rho1,
    check_histogram,
    checks_tell,
    coarse_counts,
    exempt_positions,
    in_its_words,
    needs_values,
    own_limits,
    shares_told,
)

# -- How well sets of equal inclusion tell values apart, for any size, without making the sets (mathematics 12) --------
# The error of counts follows from the mean of 1/lambda over the eigenvalues of J. J of shifted blocks is circulant, so
# they are the squared Fourier transforms of the blocks, a mean over blocks:
#
#     lambda_j = sum over k of |sum over b in block k of e^(2 pi i j b / m)|^2 / (K m)


SINGULAR = 1e-12  # of an eigenvalue, against the mean of all


def equal_inverse(m: int, size: int, orders: int) -> float:
    """(J^-1)_xx of a design by blocks, the same for all values: 1/L^2 from the vector of ones, and all others; infinite
    where J cannot be inverted.

    >>> round(equal_inverse(4, 1, 64), 1)
    4.0
    """
    spectrum = np.zeros(m)
    for order in _orders(m, orders_for(m, 1))[:orders]:
        block = np.zeros(m)
        block[order[:size]] = 1.0
        spectrum += np.abs(np.fft.fft(block)) ** 2
    spectrum = spectrum[1:] / (orders * m)
    if spectrum.min() <= SINGULAR * spectrum.mean():
        return float("inf")
    return 1 / size**2 + float(np.sum(1 / spectrum)) / m


@lru_cache(maxsize=1)
def _orders(m: int, orders: int) -> tuple[Ints, ...]:
    """All public orders, which many sizes share."""
    return tuple(public_order(0, number, m) for number in range(orders))


def balanced_inverse(m: int, size: int) -> float:
    """The same if all eigenvalues but the first were alike, as of all sets of a size; no design has less.

    >>> round(balanced_inverse(4, 1), 3)
    4.0
    """
    return 1 / size**2 + (m - 1) / m * (m - 1) / (size - size**2 / m)


# -- Which line-ups: inclusion, size and truth from a requirement, by predicted error (mathematics 12) -----------------
# With prior f and pi = L f a member is believed at t/L + (1-t) f_x, so a larger set allows more truth, and tells less
# of each value. The error that a design leaves follows from (J^-1)_xx; for choosing a size J is taken as that of sets
# drawn in proportion, diag(pi - c pi^2) + c pi pi^T with c = 1 - 1/L, which needs no m x m matrix:
#
#     Var_x = n (pi_x / t)^2 ((J^-1)_xx - (1 - t^2) / L^2) - f_x


LEAST_ORDERS = 8  # with fewer, some values are hardly ever told apart
FLOORS = (0.002, 0.005, 0.01, 0.02, 0.04, 0.08)  # shares of the rows that no value is taken to have less of
TRIED_FLOORS = 3  # of them, those that promise most
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
    gamma: Fraction | None = None,
) -> ArcDesign | None:
    """The design with the smallest predicted error whose posteriors, by the true counts, keep every limit exactly.

    It follows from ``public`` counts; the true ones check it, and where they do not let it pass, they decide what does.
    With ``gamma`` no likelihood of a set is more than so many times another one, whatever anyone believes: a value that
    is in too few sets would speak too loud, so inclusion has a floor.
    """
    bounds = np.array([1.0 if limit is None else float(limit) for limit in limits])
    base = np.maximum(public, 1) + float(MARGIN)
    weightings = list(_weightings(base, bounds))
    if gamma is not None:
        floors = [*(floor * base.sum() for floor in FLOORS), float(base.max())]
        weightings += [np.maximum(weights, floor) for weights in weightings for floor in floors]
    searches = [
        _Search(counts, base, weights, tuple(limits), bounds, size, truth, float(truth or most_truth), gamma)
        for weights in weightings
    ]
    if gamma is not None:
        searches = sorted((one for one in searches if one.ranked), key=lambda one: one.ranked[0])[:TRIED_FLOORS]
    design = _best(searches, checked=False)
    if design is None or keeps(design, counts, limits):
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
    gamma: Fraction | None = None
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
        allowed = float(np.min((self.bounds - self.share)[protected] / room, initial=self._most_truth(inclusion)))
        if allowed <= 1 / TRUTH_GRID or (self.truth is not None and allowed < 0.9 * self.wanted):
            return float("inf")
        return predicted_error(self.share, inclusion, min(allowed, self.wanted))

    def _sketched(self, size: int, slack: int) -> ArcDesign | None:
        if size not in self.sketches:
            self.sketches[size] = designed(self.weights, size, self.wanted)
        sketch = self.sketches[size]
        largest = min(largest_truth(sketch, self.base, self.bounds, slack), self._most_truth(sketch.inclusion))
        if self.truth is not None and largest < self.wanted:
            return None
        steps = min(int(largest * TRUTH_GRID), int(self.wanted * TRUTH_GRID))
        coin = steps * (COIN // TRUTH_GRID) if self.truth is None else int(self.truth * COIN)
        design = sketch.with_coin(coin) if coin else None
        while design is not None and self.gamma is not None and not _keeps(design, self.gamma):
            lower = design.coin - COIN // TRUTH_GRID  # inclusion is rounded to whole steps
            design = sketch.with_coin(lower) if self.truth is None and lower > 0 else None
        return design

    def _most_truth(self, inclusion: Floats) -> float:
        """The largest t with 1 + t / ((1-t) pi_x) <= gamma for all x."""
        if self.gamma is None:
            return 1.0
        odds = (float(self.gamma) - 1) * float(inclusion.min())
        return odds / (1 + odds)

    def _checked(self, design: ArcDesign) -> ArcDesign | None:
        """The design, its truth lowered until every posterior under the true counts keeps its limit, exactly."""
        step = LOWERED_BY * (COIN // TRUTH_GRID)
        while not keeps(design, self.counts, self.limits):
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
    reached = lineup_amplification(design)
    return reached is not None and reached <= gamma


# -- Line-ups: a row publishes a set of values in which the person's own stands, or does not (mathematics 12) ----------
# A posterior of rho2 on each of several values is as safe as on one, so a set tells more than a single value at the
# same promise. The idea, the proof and what it gives up are in docs/explanation/line-ups.md.


DEFAULT_TRUTH = Fraction(1, 2)
DOUBT = 8 * math.sqrt(2) / COUNT_EPSILON  # rows: eight standard deviations of the noise of public counts
INFORMED = (
    "Someone who has learned how values go with public columns, from this release or elsewhere, combines that with a "
    "line-up: right guesses about single people become more frequent."
)
LIST_IS_EVIDENCE = (
    "The list of values: it is evidence, too, unless it was declared before anyone looked at the table (domain=)."
)
RULED_OUT = "A value that does not stand in a person's line-up is ruled out for certain: every line-up holds the truth."


@dataclass(frozen=True)
class Lineup(Mechanism):
    """Each row publishes a set of values; a coin decides whether it is made around the row's value.

    Attributes:
        size: how many values a line-up has; left out: chosen by predicted error.
        truth: the share of line-ups that are made around the value. Left out: 1/2 or less against who knows the
            frequencies; what the amplification allows against any prior.
        epsilon: the odds of no statement about a person may grow by more than e^epsilon by their row, whatever anyone
            believes: no value is then included too rarely. Left out: only what is required bounds them.

    >>> import deniable as dn
    >>> from deniable.core.histogram import Histogram
    >>> from deniable.mechanisms import Lineup
    >>> rows = Histogram.of({name: 100 for name in "abcdefghijklmnopqrst"})
    >>> plan = Lineup(size=4).plan(rows, dn.Privacy(rho2="1/5"))
    >>> plan.parts[0].lineups.size, plan.parts[0].lineups.share_true
    (4, 0.5)
    """

    size: int | None = None
    truth: Probability | None = None
    epsilon: Probability | None = field(default=None, metadata={"later": True})
    name: ClassVar[str] = "lineup"
    reveals: ClassVar[str] = "rare values speak louder to those who know more than frequencies"

    def __post_init__(self) -> None:
        whole = isinstance(self.size, int) and not isinstance(self.size, bool)
        if self.size is not None and (not whole or self.size < 1):
            raise OptionError(f"size = {self.size!r} is not allowed: a line-up has 1, 2, 3, .. values. Fix: size=4.")
        self.exact_truth()
        self._gamma()

    def exact_truth(self) -> Fraction | None:
        """The truth as a fraction, 1 included."""
        if self.truth is None:
            return None
        try:
            share = exact_number(self.truth, "truth")
        except RequirementError:
            share = Fraction(0)
        if not 0 < share <= 1:
            raise OptionError(
                f"truth = {self.truth!r} is not allowed: it is the share of line-ups made around the person's value, "
                "above 0 and at most 1. Fix: truth='1/2'."
            )
        return share

    @property
    def options(self) -> dict[str, Any]:
        truth = self.exact_truth()
        stated = {} if self.epsilon is None else {"epsilon": str(self.epsilon)}
        return {"size": self.size, "truth": None if truth is None else str(truth), **stated}

    def _gamma(self) -> Fraction | None:
        """What ``epsilon`` allows a row to multiply odds by; None where it bounds nothing."""
        return None if self.epsilon is None else gamma_below(exact_epsilon(self.epsilon))

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        privacy = in_its_words(histogram, needs_values(privacy, self.name))
        check_histogram(histogram, privacy)
        if public is not None and public.domain != histogram.domain:
            raise OptionError("public must be a histogram of the same values, in the same order.")
        self._check_size(histogram.m, LEAST_ORDERS if privacy.adversary == "frequency" else 1)
        if privacy.adversary == "any-prior":
            design, promised = self._any_prior(histogram, privacy)
        else:
            design, promised = self._frequency(histogram, privacy, public)
        return Plan.of_cells(self.name, histogram, (), promised, privacy=privacy, options=self.options, lineups=design)

    def _check_size(self, m: int, least_orders: int) -> None:
        if not sizes_for(m, self.size, least_orders=least_orders):
            most = max(sizes_for(m, None, least_orders=least_orders), default=0)
            raise OptionError(
                f"size = {self.size} is not possible with {m:,} values: line-ups of 1 to {most:,} can be drawn so that "
                f"every value can still be counted. Fix: size={max(min(self.size or 1, most), 1)}, or leave it out."
                if most
                else f"mechanism {self.name!r} cannot draw line-ups from {m:,} values. Fix: mechanism 'uniform', or "
                "group rare values."
            )

    def layout(self, columns: tuple[str, ...]) -> tuple[Need, ...]:
        """One part, of one column: a line-up of several columns together would promise nothing for each of them."""
        if len(columns) > 1:
            raise OptionError(
                f"mechanism {self.name!r} is for one sensitive column; {len(columns)} are named. Fix: name one, or "
                "compound them into one column first."
            )
        return (Need(columns),)

    # -- who knows the frequencies -----------------------------------------------------------------------------------

    def _frequency(
        self, histogram: Histogram, privacy: Privacy, public: Histogram | None
    ) -> tuple[LineUpDesign, Guarantee]:
        limits = limits_of(histogram, privacy, public)
        known = coarse_counts(histogram.counts) if public is None else public.counts
        truth = self.exact_truth()
        design = by_frequency(histogram.counts, known, limits, self.size, truth, DEFAULT_TRUTH, self._gamma())
        if design is None:
            raise RequirementError(self._too_much(histogram, limits, known))
        return design, _frequency_guarantee(histogram, privacy, limits, design, public)

    def _too_much(self, histogram: Histogram, limits: Limits, known: Any) -> str:
        """What cannot be met, and the nearest that can."""
        wanted = ", ".join(
            f"{name} = {value}" for name, value in (("size", self.size), ("truth", self.exact_truth())) if value
        )
        free = (
            by_frequency(histogram.counts, known, limits, None, None, DEFAULT_TRUTH, self._gamma()) if wanted else None
        )
        if free is not None:
            reached = f"size={free.size}, truth='{_readable(free)}'"
            return (
                f"Line-ups with {wanted} would let an attacker become surer than rho2. "
                f"Fix: {reached}, or a higher rho2."
            )
        return (
            "No line-up keeps this requirement: some value is almost as frequent as its rho2 allows to be believed. "
            f"Fix: raise {'rho2' if self.epsilon is None else 'rho2 or epsilon'}, or exempt the most frequent values "
            f"with {option('exempt', '')}."
        )

    # -- any prior -----------------------------------------------------------------------------------------------------

    def _any_prior(self, histogram: Histogram, privacy: Privacy) -> tuple[LineUpDesign, Guarantee]:
        gamma = allowed_amplification(privacy)
        gamma = min(gamma, self._gamma() or gamma)
        design = by_amplification(histogram.m, gamma, self.size, self.exact_truth())
        if design is None:
            raise RequirementError(
                f"Line-ups with truth = {self.exact_truth()} amplify beliefs by more than {float(gamma):.4g}, which is "
                "all that rho1 and rho2 allow against adversary 'any-prior'. Fix: leave truth out, or a smaller one."
            )
        return design, _any_prior_guarantee(histogram, privacy, design)


def _readable(design: LineUpDesign) -> Fraction:
    """The truth as a fraction of 256, rounded down."""
    return Fraction(design.truth * 256 // 2**32, 256)


def _frequency_guarantee(
    histogram: Histogram, privacy: Privacy, limits: Limits, design: LineUpDesign, public: Histogram | None
) -> Guarantee:
    protected = np.array([x for x, limit in enumerate(limits) if limit is not None])
    highest = max(limit for limit in exact.different(limits) if limit is not None)
    worst = designs.highest(design, histogram.counts, protected)
    sure = [] if privacy.rho1 is None else designs.surest_in_lineups(design, histogram.counts)
    gamma = designs.lineup_amplification(design)
    stays = _stays(design, histogram, public)
    above = beyond_rho1(histogram, privacy, public, sure, partial(_surest_by, design, public))
    promise = LineUps(
        "frequency",
        privacy.rho1,
        privacy.rho2,
        gamma,
        stays,
        exempt_positions(histogram, privacy),
        own_limits(histogram, privacy.per_value),
        above,
    )
    return Guarantee(
        promises=(promise,),
        adversary="frequency",
        rho1=None if privacy.per_value else privacy.rho1,
        rho2=None if privacy.per_value else privacy.rho2,
        worst=highest if public is not None else min(rounded_up(worst), highest),
        gamma=gamma,
        also=_downward(stays),
        not_protected=(
            *EVERY_RELEASE,
            *_stronger(design, gamma),
            INFORMED,
            *shares_told(histogram, privacy),
            *checks_tell(histogram, public),
            *_exempt(histogram.m - len(protected), histogram.m),
        ),
    )


def _surest_by(design: LineUpDesign, public: Histogram | None, margin: int) -> list[Fraction]:
    """Posteriors by noisy counts that are raised by a margin."""
    assert public is not None
    return designs.surest_in_lineups(design, public.counts + margin)


def _any_prior_guarantee(histogram: Histogram, privacy: Privacy, design: LineUpDesign) -> Guarantee:
    gamma = designs.lineup_amplification(design)
    assert gamma is not None
    pairs = pairs_of(privacy)
    rho1, rho2 = (privacy.rho1, privacy.rho2) if privacy.rho2 is not None else (None, None)
    return Guarantee(
        promises=(
            LineUps(
                "any-prior",
                rho1,
                rho2,
                gamma,
                1 / gamma,
                (),
                own_limits(histogram, privacy.per_value),
            ),
        ),
        adversary="any-prior",
        rho1=rho1,
        rho2=rho2,
        worst=max(worst_posterior(low, gamma) for low, _ in pairs),
        gamma=gamma,
        also=(
            *_downward(1 / gamma),
            "It holds for any statement about the value, upward and downward; each row satisfies epsilon-local "
            "differential privacy with epsilon = ln gamma.",
        ),
        not_protected=(*EVERY_RELEASE, LIST_IS_EVIDENCE, INFORMED),
    )


def _exempt(number: int, m: int) -> tuple[str, ...]:
    return (f"{number:,} of {m:,} values are exempt: there is no promise for them.",) if number else ()


def _stays(design: LineUpDesign, histogram: Histogram, public: Histogram | None) -> Fraction:
    """The share of a belief that no line-up takes from who knows the frequencies, rounded down.

    Like the design it follows from the public counts, with room for their noise; the true ones only check it.
    """
    known, doubt = (coarse_counts(histogram.counts), 0.0) if public is None else (public.counts, DOUBT)
    by_public = designs.stays_by(design, np.maximum(known, 1), int(histogram.counts.sum()), doubt)
    stated, true = Fraction(int(by_public * 1000), 1000), designs.stays(design, histogram.counts)
    return stated if stated <= true else Fraction(int(true * 100), 100)


def _downward(stays: Fraction) -> tuple[str, ...]:
    if not stays:
        return ()
    left = int(1000 * stays) / 10  # rounded down: percent would round to the nearest
    return (f"No belief falls below {left:g} % of what it was: nothing is ever ruled out.",)


def _stronger(design: LineUpDesign, gamma: Fraction | None) -> tuple[str, ...]:
    """How far the promise falls short against someone who knows more than the distribution."""
    if gamma is None:
        return (RULED_OUT,)
    factor = f"{int(float(f'{float(gamma):.2g}')):,}" if gamma >= 10 else f"{float(gamma):.2g}"
    return (
        "An attacker who knows more about a person than how frequent each value is: seeing a rare value in a line-up "
        f"can speak for it by a factor of up to {factor}.",
    )
