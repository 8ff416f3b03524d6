"""One channel for the whole table, chosen by its user and not for a requirement: what it promises, exactly."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from deniable.core import exact
from deniable.core.arrays import Counts
from deniable.core.channel import Channel
from deniable.core.errors import RequirementError, option, shortened, worded
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, amplification_limit
from deniable.core.probability import percent
from deniable.core.promise import Frequency, Promise
from deniable.core.promise_numbers import Single
from deniable.mechanisms.posterior import Limits
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    frequency_promise,
    needs_rho1,
    refuse_sums,
    shares_told,
)
from deniable.mechanisms.singles import channel_for_singles
from deniable.mechanisms.view import beyond_rho1, bound_by, checks_tell, covered_values, surest_bound, upper_counts


def plan_of_channel(
    name: str,
    histogram: Histogram,
    privacy: Privacy | None,
    channel: Channel,
    *,
    public: Histogram | None,
    fix: str,
    options: Mapping[str, Any],
    not_hidden: tuple[str, ...] = (),
    invariant: Counts | None = None,
) -> Plan:
    """A plan with this channel; refused, with the ``fix``, when it does not meet a requirement that is given.

    Where coins must be lowered, a channel that leaves ``invariant`` counts as they are still does.
    """
    limits = limits_of(histogram, privacy, public)
    channel, loose = channel_for_singles(histogram, channel, privacy, public, invariant)
    sure = surest(channel, histogram)
    check_posteriors(name, histogram, limits, sure, fix)
    bound = _reached(histogram, limits, channel, public, sure)
    guarantee = Guarantee(
        promises=(_promise(histogram, privacy, public, channel, sure, loose, bound),),
        adversary="frequency",
        rho1=None if privacy is None else privacy.rho1,
        rho2=None if privacy is None else privacy.rho2,
        worst=bound,
        gamma=channel.exact_gamma,
        not_protected=(
            *EVERY_RELEASE,
            *shares_told(histogram, privacy),
            *checks_tell(histogram, public),
            *not_hidden,
        ),
    )
    return Plan.of_channel(name, histogram, channel, guarantee, privacy=privacy, options=options)


def refuse_any_prior(name: str, privacy: Privacy | None) -> None:
    """Refuse what a replacing distribution that follows the table cannot promise (mathematics 13.3)."""
    refuse_sums(privacy)
    if privacy is not None and privacy.adversary == "any-prior":
        raise RequirementError(
            f"mechanism {name!r} does not withstand adversary 'any-prior': it replaces values by how frequent they are "
            "in the table, and that is evidence itself. Fix: mechanism 'uniform', 'fine-grain' or 'lineup', or "
            f"{option('adversary', 'frequency')}."
        )


def _reached(
    histogram: Histogram, limits: Limits, channel: Channel, public: Histogram | None, sure: list[Fraction]
) -> Fraction:
    """How sure an attacker becomes at most: as required; where nothing is, in whole per cent, from public numbers."""
    required = [limit for limit in exact.different(limits) if limit is not None]
    if required:
        if public is None:
            return max(belief for belief, limit in exact.different_pairs(sure, limits) if limit is not None)
        return max(required)
    if public is None:
        return max(exact.different(sure))
    bounds = surest_bound(channel, upper_counts(histogram, public), histogram.rows)
    return Fraction(math.ceil(100 * max(exact.different(bounds))), 100)


def _promise(
    histogram: Histogram,
    privacy: Privacy | None,
    public: Histogram | None,
    channel: Channel,
    sure: list[Fraction],
    loose: tuple[Single, ...],
    bound: Fraction,
) -> Promise:
    """What is required; where nothing is, the posterior that is reached, in whole per cent."""
    if privacy is None:
        return Frequency(None, Fraction(math.ceil(100 * bound), 100), loose=loose)
    above = beyond_rho1(histogram, privacy, public, sure, bound_by(channel, public, histogram.rows))
    return frequency_promise(histogram, privacy, above, loose)


def surest(channel: Channel, histogram: Histogram) -> list[Fraction]:
    """max over y of Pr[x | y] for each x, for an attacker whose prior is the histogram (mathematics 2)."""
    return exact.surest(channel.keep, channel.replace, histogram.counts)


def check_posteriors(name: str, histogram: Histogram, limits: Limits, sure: Sequence[Fraction], fix: str) -> None:
    """Refuse, with the ``fix``, what lets an attacker become surer of a value than its limit."""
    if not any(limit is not None and posterior > limit for limit, posterior in exact.different_pairs(limits, sure)):
        return
    for x, (limit, posterior) in enumerate(zip(limits, sure, strict=True)):
        if limit is not None and posterior > limit:
            raise RequirementError(
                f"mechanism {name!r} lets an attacker become {percent(posterior)} sure of "
                f"{shortened(histogram.domain[x])}; {percent(limit)} is required. {fix}"
            )


def limits_of(histogram: Histogram, privacy: Privacy | None, public: Histogram | None = None) -> Limits:
    """The largest posterior of each value that the requirement allows an attacker who knows the frequencies.

    By noisy counts where there are such: a value near its rho1 may then be protected that need not be.
    """
    refuse_sums(privacy)
    if privacy is None:
        return [None] * histogram.m
    covered = zip(histogram.domain, covered_values(histogram, privacy, public).tolist(), strict=True)
    if not privacy.per_value:
        return [privacy.rho2 if mine else None for _, mine in covered]
    return [_own_limit(value, histogram, privacy, public) if mine else None for value, mine in covered]


def _own_limit(value: Hashable, histogram: Histogram, privacy: Privacy, public: Histogram | None) -> Fraction:
    """As required; the tolerance rule is kept for the share of the rows itself where nothing is published."""
    share, limit = histogram.frequency(value), privacy.own_limit(value)
    if privacy.theta is not None and public is None:
        limit = min(privacy.per_value[value][1], privacy.theta * share)
    if share >= limit > 0:
        raise RequirementError(
            f"rho2 = {limit} of {shortened(value)} cannot be met: it is {percent(share)} of the rows. Fix: a higher "
            f"rho2 (or {option('theta')}) for it, or leave it out of per_value."
        )
    if privacy.theta is not None and share and limit > privacy.theta * share:
        raise RequirementError(
            f"{option('theta')} = {privacy.theta} is kept for the counts that the requirement was made of, and "
            f"{shortened(value)} is less frequent here. Fix: {worded('tolerance(counts, theta)', '--tolerance')} with "
            "the counts of this table."
        )
    return limit


def allowed_amplification(privacy: Privacy) -> Fraction:
    """The largest amplification that keeps every pair of a requirement against any prior."""
    return min(amplification_limit(rho1, rho2) for rho1, rho2 in pairs_of(privacy))


def pairs_of(privacy: Privacy) -> list[tuple[Fraction, Fraction]]:
    """Every (rho1, rho2) of a requirement against any prior, which needs rho1."""
    refuse_sums(privacy)
    pairs = [*privacy.per_value.values()]
    if privacy.rho2 is not None:
        pairs.append((needs_rho1(privacy), privacy.rho2))
    return pairs
