"""Line-ups: a row publishes a set of values in which the person's own stands, or does not (mathematics 12).

A posterior of rho2 on each of several values is as safe as on one, so a set tells more than a single value at the same
promise. The idea, the proof and what it gives up are in docs/explanation/line-ups.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from deniable.core import exact, lineup_exact
from deniable.core.errors import OptionError, RequirementError, option
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.lineup import LineUpDesign
from deniable.core.part import COUNT_EPSILON
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, worst_posterior
from deniable.core.probability import Probability, exact_number
from deniable.core.promise import LineUps
from deniable.mechanisms.base import Mechanism, Need
from deniable.mechanisms.lineup_choice import LEAST_ORDERS, by_amplification, by_frequency, sizes_for
from deniable.mechanisms.one_cell import allowed_amplification, limits_of, pairs_of
from deniable.mechanisms.posterior import Limits, rounded_up
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    check_histogram,
    exempt_positions,
    in_its_words,
    needs_values,
    own_limits,
    shares_told,
)
from deniable.mechanisms.view import beyond_rho1, checks_tell, coarse_counts

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
    name: ClassVar[str] = "lineup"
    reveals: ClassVar[str] = "rare values speak louder to those who know more than frequencies"

    def __post_init__(self) -> None:
        whole = isinstance(self.size, int) and not isinstance(self.size, bool)
        if self.size is not None and (not whole or self.size < 1):
            raise OptionError(f"size = {self.size!r} is not allowed: a line-up has 1, 2, 3, .. values. Fix: size=4.")
        self.exact_truth()

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
        return {"size": self.size, "truth": None if truth is None else str(truth)}

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
        design = by_frequency(histogram.counts, known, limits, self.size, truth, DEFAULT_TRUTH)
        if design is None:
            raise RequirementError(self._too_much(histogram, limits, known))
        return design, _frequency_guarantee(histogram, privacy, limits, design, public)

    def _too_much(self, histogram: Histogram, limits: Limits, known: Any) -> str:
        """What cannot be met, and the nearest that can."""
        wanted = ", ".join(
            f"{name} = {value}" for name, value in (("size", self.size), ("truth", self.exact_truth())) if value
        )
        free = by_frequency(histogram.counts, known, limits, None, None, DEFAULT_TRUTH) if wanted else None
        if free is not None:
            reached = f"size={free.size}, truth='{_readable(free)}'"
            return (
                f"Line-ups with {wanted} would let an attacker become surer than rho2. "
                f"Fix: {reached}, or a higher rho2."
            )
        return (
            "No line-up keeps this requirement: some value is almost as frequent as its rho2 allows to be believed. "
            f"Fix: raise rho2, or exempt the most frequent values with {option('exempt', '')}."
        )

    # -- any prior -----------------------------------------------------------------------------------------------------

    def _any_prior(self, histogram: Histogram, privacy: Privacy) -> tuple[LineUpDesign, Guarantee]:
        gamma = allowed_amplification(privacy)
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
    worst = lineup_exact.highest(design, histogram.counts, protected)
    sure = [] if privacy.rho1 is None else lineup_exact.surest(design, histogram.counts)
    gamma = lineup_exact.amplification(design)
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
    return lineup_exact.surest(design, public.counts + margin)


def _any_prior_guarantee(histogram: Histogram, privacy: Privacy, design: LineUpDesign) -> Guarantee:
    gamma = lineup_exact.amplification(design)
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
    by_public = lineup_exact.stays_by(design, np.maximum(known, 1), int(histogram.counts.sum()), doubt)
    stated, true = Fraction(int(by_public * 1000), 1000), lineup_exact.stays(design, histogram.counts)
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
