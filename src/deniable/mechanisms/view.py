"""What plans are computed from: the noisy histogram of a release, never its exact counts (mathematics 13.4).

Every number of a release is a function of its noisy histogram and of the owner's options. The requirement is kept for
the true counts all the same: a bound is the noisy count and a margin, the smallest of a short list that covers the true
one. Which margin it was, and no more, is what such a check tells of the table. Where values are frequent one margin
serves all of them; in sparse columns that would leave nothing to keep, and each value has its own, of a coarser list.

Without a noisy histogram (an owner who plans, and publishes nothing) everything is computed from the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from itertools import chain

import numpy as np

from deniable.core.arrays import Bools, Counts
from deniable.core.channel import Channel
from deniable.core.errors import RequirementError, option, shortened
from deniable.core.exact import SCALE, different, distinct
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy, worst_posterior
from deniable.mechanisms.requirement import (
    named_values,
    needs_rho1,
    protected_values,
    require_covered,
    require_feasible,
)

Bound = Callable[[int], Sequence[Fraction]]  # each value's posterior at the most, with so many rows more than are shown

# Rows. Steps are coarse: whoever finds out which one was taken by brute force is left with six candidates or more.
COMMON_MARGINS = tuple(8 << 2 * k for k in range(19))  # for all values together
OWN_MARGINS = tuple(2 << 2 * k for k in range(20))  # for each value by itself
GRID, COARSE_BITS = 8, 8  # rows and significant bits, of counts that are rounded up
SPARSE = 512  # rows a value on average, below which each value has its own margin
CHECKED = (
    "How frequent values are, to within some rows: coins, and whatever else the release is made by, are computed from "
    "the histogram with noise, and lowered in steps where the exact counts would break the promise. Whoever computes "
    "them again sees where that histogram, made to add up to all rows, is too low, or for a value near its rho1 too "
    "high, by more than {} rows, and whether the promise would have been kept without a step."
)


def checks_tell(
    histogram: Histogram, public: Histogram | None, margins: Sequence[int] | None = None
) -> tuple[str, ...]:
    """What a release gives away whose plan is made from noisy counts and checked against the exact ones."""
    steps = ", ".join(map(str, (margins or margins_for(histogram))[:3]))
    return () if public is None else (CHECKED.format(f"{steps}, .."),)


def covered_values(histogram: Histogram, privacy: Privacy, public: Histogram | None) -> Bools:
    """The values that a plan protects: all that the requirement does, and perhaps some that noise makes look so.

    Refused where the requirement protects none, or one that is as frequent as it may be believed already.
    """
    true = protected_values(histogram, privacy)
    require_covered(histogram, true)
    require_feasible(histogram, privacy, true)
    return widened(histogram, privacy, public, true)


def widened(histogram: Histogram, privacy: Privacy, public: Histogram | None, true: Bools) -> Bools:
    """The values that are up to rho1 by noisy counts and a margin, the smallest at which the ``true`` ones are."""
    named, most = named_values(histogram, privacy)
    if public is None or most is None:
        return true
    masks = (named & (public.counts - margin <= most) for margin in margins_for(histogram))
    return next(mask for mask in masks if not (true & ~mask).any())


def upper_counts(histogram: Histogram, public: Histogram | None, which: Bools | None = None) -> Counts:
    """Counts that are never below the true ones of ``which`` values (left out: of all)."""
    if public is None:
        return histogram.counts
    # Bounds that add up to little more than all rows, whose number is known, would leave hardly any table.
    start = public.counts + max(-((public.rows - histogram.rows) // histogram.m), 0)
    short = np.where(True if which is None else which, histogram.counts - start, 0)
    if is_sparse(histogram):
        margins = np.array(OWN_MARGINS)
        own: Counts = start + margins[np.searchsorted(margins, short)]
        return own
    common: Counts = start + next(margin for margin in COMMON_MARGINS if margin >= short.max(initial=0))
    return common


def margins_for(histogram: Histogram) -> tuple[int, ...]:
    """The margins that bounds on single counts are tried with."""
    return OWN_MARGINS if is_sparse(histogram) else COMMON_MARGINS


def is_sparse(histogram: Histogram) -> bool:
    """Whether noise of a few rows matters to most values."""
    return histogram.rows < SPARSE * histogram.m


def coarse_counts(counts: Counts, step: int = GRID) -> Counts:
    """Above each count: the next multiple of ``step`` rows, then at most 8 significant bits, so rounded up by less than
    1 % where values are frequent. No exact count can be read from them (mathematics 11.6)."""
    multiples = (counts // step + 1) * step
    length = np.frexp(multiples.astype(np.float64))[1]
    unit = np.left_shift(np.int64(1), np.maximum(length - COARSE_BITS, 0).astype(np.int64))
    coarse: Counts = -(-multiples // unit) * unit
    return coarse


def strongest_belief(histogram: Histogram, privacy: Privacy, public: Histogram | None) -> Fraction:
    """What an attacker may believe beforehand: rho1 as required, or the largest share of a protected value."""
    assert privacy.rho2 is not None
    if privacy.adversary == "any-prior":
        return needs_rho1(privacy)
    protected = protected_values(histogram, privacy)
    require_covered(histogram, protected)
    if privacy.rho1 is not None:
        return privacy.rho1
    require_feasible(histogram, privacy, protected)
    return largest_share(histogram, public, protected, privacy.rho2)


def largest_share(histogram: Histogram, public: Histogram | None, protected: Bools, rho2: Fraction) -> Fraction:
    """A bound on the share of the most frequent protected value; refused where it leaves no room below rho2."""
    counts = upper_counts(histogram, public, protected)
    place = int(np.argmax(np.where(protected, counts, -1)))
    bound = Fraction(int(counts[place]), histogram.rows)
    if bound >= rho2:
        raise too_close(histogram.domain[place], rho2)
    return bound


def too_close(value: Hashable, rho2: Fraction) -> RequirementError:
    """What noise leaves no room for."""
    return RequirementError(
        f"rho2 = {rho2} is too close to the share of rows of {shortened(value)}: plans are made from a histogram with "
        "noise of a few rows, so that they give no count away, and that leaves no room. Fix: raise rho2, exempt that "
        f"value with {option('exempt', '')}, or publish more rows."
    )


def beyond_rho1(
    histogram: Histogram, privacy: Privacy, public: Histogram | None, sure: Sequence[Fraction], bound: Bound
) -> tuple[int, ...]:
    """Positions of values that are not covered, being more frequent than rho1; ``sure`` has each value's posterior.

    From the noisy histogram: those that a margin brings above rho1 and, by ``bound``, their posterior above rho2. The
    margin is the first of a short list with which no true posterior of the others is above it.
    """
    named, most = named_values(histogram, privacy)
    if most is None or privacy.rho2 is None:
        return ()
    if public is None:
        return tuple(np.flatnonzero(named & ~protected_values(histogram, privacy)).tolist())
    open_ended = named & _above(sure, privacy.rho2)
    margins = margins_for(histogram)

    def near(margin: int) -> Bools:
        above_rho1: Bools = named & (public.counts + margin > most)
        return above_rho1

    masks = chain((near(margin) & _above(bound(margin), privacy.rho2) for margin in margins), map(near, margins))
    return tuple(np.flatnonzero(next(mask for mask in masks if not (open_ended & ~mask).any())).tolist())


def _above(sure: Sequence[Fraction], rho2: Fraction) -> Bools:
    high = {id(posterior): posterior > rho2 for posterior in different(sure)}
    return np.array([high[id(posterior)] for posterior in sure])


def beyond_rho1_at(
    histogram: Histogram, privacy: Privacy, public: Histogram | None, gammas: Sequence[Fraction | None]
) -> tuple[int, ...]:
    """The same where posteriors are bounded by values' amplifications alone; none against any prior."""
    if privacy.adversary == "any-prior":
        return ()

    def posteriors(counts: Counts) -> list[Fraction]:
        known: dict[tuple[int, int], Fraction] = {}
        pairs = [(min(f, histogram.rows), gamma) for f, gamma in zip(counts.tolist(), gammas, strict=True)]
        for f, gamma in pairs:
            if (f, id(gamma)) not in known:
                share = Fraction(f, histogram.rows)
                known[f, id(gamma)] = Fraction(1) if gamma is None else worst_posterior(share, gamma)
        return [known[f, id(gamma)] for f, gamma in pairs]

    def bound(margin: int) -> list[Fraction]:
        return posteriors(histogram.counts if public is None else public.counts + margin)

    return beyond_rho1(histogram, privacy, public, posteriors(histogram.counts), bound)


def bound_by(channel: Channel, public: Histogram | None, rows: int) -> Bound:
    """Posteriors by noisy counts that are raised by a margin."""

    def bound(margin: int) -> list[Fraction]:
        return [] if public is None else surest_bound(channel, public.counts + margin, rows)

    return bound


def surest_bound(channel: Channel, counts: Counts, rows: int) -> list[Fraction]:
    """At least max_y Pr[x | y], for counts that are never below the true ones (mathematics 5).

        Pr[x | x] <= u_x (K_x S + (S-K_x) W_x) / (u_x K_x S + W_x T),    Pr[x | y] <= u_x (S-K_x) / T

    with upper counts u and T = n S - sum_k u_k K_k, which is never above sum_k f_k (S-K_k).
    """
    alike = distinct(counts, channel.keep, channel.replace)
    least = rows * SCALE - sum(times * u * k for (u, k, _), times in zip(alike.rows, alike.times, strict=True))
    if least <= 0:
        return [Fraction(1)] * channel.m
    bounds = []
    for u, k, w in alike.rows:
        mine, seen = u * (k * SCALE + (SCALE - k) * w), u * k * SCALE + w * least
        same = Fraction(mine, seen) if seen else Fraction(0)
        bounds.append(min(max(same, Fraction(u * (SCALE - k), least)), Fraction(1)))
    return alike.of_all(bounds)
