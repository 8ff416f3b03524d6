"""One channel for the whole table, chosen by its user and not for a requirement: what it promises, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from deniable.core import exact
from deniable.core.channel import Channel
from deniable.core.errors import RequirementError, shortened
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, amplification_limit
from deniable.core.probability import percent
from deniable.core.promise import Frequency, Promise
from deniable.core.promise_numbers import Single
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    frequency_promise,
    needs_rho1,
    protected_values,
    refuse_sums,
    require_covered,
    require_feasible,
    require_values,
)
from deniable.mechanisms.singles import channel_for_singles
from deniable.mechanisms.view import beyond_rho1, surest_bound, upper_counts

Limits = list[Fraction | None]  # each value's largest posterior; None: exempt


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
) -> Plan:
    """A plan with this channel; refused, with the ``fix``, when it does not meet a requirement that is given."""
    limits = limits_of(histogram, privacy)
    channel, loose = channel_for_singles(histogram, channel, privacy, public)
    sure = surest(channel, histogram)
    check_posteriors(name, histogram, limits, sure, fix)
    bound = _reached(histogram, privacy, channel, public, sure)
    guarantee = Guarantee(
        promises=(_promise(histogram, privacy, public, sure, loose, bound),),
        adversary="frequency",
        rho1=None if privacy is None else privacy.rho1,
        rho2=None if privacy is None else privacy.rho2,
        worst=bound,
        gamma=channel.exact_gamma,
        not_protected=(*EVERY_RELEASE, *not_hidden),
    )
    return Plan.of_channel(name, histogram, channel, guarantee, privacy=privacy, options=options)


def refuse_any_prior(name: str, privacy: Privacy | None) -> None:
    """Refuse what a replacing distribution that follows the table cannot promise (mathematics 13.3)."""
    refuse_sums(privacy)
    if privacy is not None and privacy.adversary == "any-prior":
        raise RequirementError(
            f"mechanism {name!r} does not withstand adversary 'any-prior': it replaces values by how frequent they are "
            "in the table, and that is evidence itself. Fix: mechanism 'uniform', 'fine-grain' or 'lineup', or "
            "adversary='frequency'."
        )


def _reached(
    histogram: Histogram, privacy: Privacy | None, channel: Channel, public: Histogram | None, sure: list[Fraction]
) -> Fraction:
    """How sure an attacker becomes at most: as required; where nothing is, in whole per cent, from public numbers."""
    if privacy is not None:
        limits = limits_of(histogram, privacy)
        if public is None:
            return max(belief for belief, limit in exact.different_pairs(sure, limits) if limit is not None)
        return max(limit for limit in exact.different(limits) if limit is not None)
    if public is None:
        return max(exact.different(sure))
    bounds = surest_bound(channel, upper_counts(histogram, public), histogram.rows)
    return Fraction(math.ceil(100 * max(exact.different(bounds))), 100)


def _promise(
    histogram: Histogram,
    privacy: Privacy | None,
    public: Histogram | None,
    sure: list[Fraction],
    loose: tuple[Single, ...],
    bound: Fraction,
) -> Promise:
    """What is required; where nothing is, the posterior that is reached, in whole per cent."""
    if privacy is None:
        return Frequency(None, Fraction(math.ceil(100 * bound), 100), loose=loose)
    return frequency_promise(histogram, privacy, beyond_rho1(histogram, privacy, public, sure), loose)


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


def limits_of(histogram: Histogram, privacy: Privacy | None) -> Limits:
    """The largest posterior of each value that the requirement allows an attacker who knows the frequencies."""
    refuse_sums(privacy)
    limits: Limits = [None] * histogram.m
    if privacy is None:
        return limits
    if privacy.rho2 is not None:
        mask = protected_values(histogram, privacy)
        require_covered(histogram, mask)
        require_feasible(histogram, privacy, mask)
        limits = [privacy.rho2 if protected else None for protected in mask.tolist()]
    require_values("per_value", privacy.per_value, histogram, RequirementError)
    for value, (rho1, rho2) in privacy.per_value.items():
        if histogram[value] <= rho1 * histogram.rows:
            limits[histogram.position(value)] = rho2
    if all(limit is None for limit in limits):
        raise RequirementError("No value is protected: every value of the table is exempt. Fix: raise rho1.")
    return limits


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
