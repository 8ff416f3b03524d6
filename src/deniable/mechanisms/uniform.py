"""Uniform perturbation: keep with one coin, else draw uniformly from the domain (mathematics 3, SDR Eq. 4-5).

    p = (gamma - 1) / (m - 1 + gamma);    P = gamma / (m-1+gamma) on, 1 / (m-1+gamma) off the diagonal

The channel is at most gamma-amplifying with gamma = rho2 (1-rho1) / (rho1 (1-rho2)), so (rho1, rho2)-privacy holds
against any prior up to rho1, for any predicate, upward and downward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from deniable.core.channels import Channel
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, amplification_limit, largest_prior, worst_posterior
from deniable.core.promise import Amplification, Guarantee
from deniable.core.values import percent
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    beyond_rho1_at,
    check_histogram,
    checks_tell,
    needs_rho2,
    strongest_belief,
)


@dataclass(frozen=True)
class Uniform(Mechanism):
    """One coin for all values, and a uniform replacement (mathematics 3, SDR Eq. 4-5).

        p = (gamma - 1) / (m - 1 + gamma),    gamma = rho2 (1-rho1) / (rho1 (1-rho2))

    >>> import deniable as dn
    >>> from deniable.mechanisms import Uniform
    >>> required = dn.Privacy(rho1="1/5", rho2="1/4", adversary="any-prior")
    >>> plan = dn.plan({"flu": 10, "cold": 10, "hiv": 10}, required, Uniform())
    >>> plan.cells[0].channel.diagonal.round(4).tolist()
    [0.4, 0.4, 0.4]
    """

    name: ClassVar[str] = "uniform"
    reveals: ClassVar[str] = "nothing beyond the columns"

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        privacy = needs_rho2(privacy, self.name)
        check_histogram(histogram, privacy)
        assert privacy.rho2 is not None
        limit = amplification_limit(strongest_belief(histogram, privacy, public), privacy.rho2)
        channel = Channel.uniform(histogram.domain, gamma=limit, coarse=privacy.rho1 is None)
        gamma = channel.exact_gamma
        assert gamma is not None
        above = _above(histogram, privacy, public, gamma)
        promised = amplification_guarantee(privacy, gamma, above, checks_tell(histogram, public))
        return Plan.of_channel(self.name, histogram, channel, promised, privacy=privacy)


def _above(histogram: Histogram, privacy: Privacy, public: Histogram | None, gamma: Fraction) -> tuple[int, ...]:
    """Values that whoever knows how frequent they are can believe at more than rho2 afterwards: those more frequent
    than rho1, and of the exempt ones those more frequent than what the coin covers."""
    gammas = [gamma] * histogram.m
    above = beyond_rho1_at(histogram, privacy, public, gammas)
    if not privacy.exempt:
        return above
    named = frozenset(value for value in histogram.domain if value not in privacy.exempt)
    of_exempt = replace(privacy, rho1=_covered(privacy, gamma), exempt=named)
    return tuple(sorted({*above, *beyond_rho1_at(histogram, of_exempt, public, gammas)}))


def _covered(privacy: Privacy, gamma: Fraction) -> Fraction:
    """The belief beforehand that is promised for: as required, or as large as the coin allows."""
    assert privacy.rho2 is not None
    return _readable(largest_prior(privacy.rho2, gamma)) if privacy.rho1 is None else privacy.rho1


def amplification_guarantee(
    privacy: Privacy, gamma: Fraction, above: tuple[int, ...], not_hidden: tuple[str, ...] = ()
) -> Guarantee:
    """What one channel over the whole domain promises through its amplification alone (THESIS Thm 1)."""
    assert privacy.rho2 is not None
    covered = largest_prior(privacy.rho2, gamma)
    rho1 = _covered(privacy, gamma)
    also = (
        f"Whatever an attacker believed beforehand, up to {percent(rho1)}, the published value makes of it at most "
        f"{percent(privacy.rho2)}: for any statement about the value, upward and downward.",
        f"The published value satisfies epsilon-local differential privacy with epsilon = ln gamma = "
        f"{math.log(gamma):.4g}.",
    )
    return Guarantee(
        promises=(Amplification(gamma, rho1, privacy.rho2, above),),
        adversary=privacy.adversary,
        rho1=rho1,
        rho2=privacy.rho2,
        worst=worst_posterior(covered if privacy.rho1 is None else rho1, gamma),
        gamma=gamma,
        also=also,
        not_protected=(
            *EVERY_RELEASE,
            f"Beliefs above {percent(rho1)} before the release: they can grow beyond {percent(privacy.rho2)}.",
            *not_hidden,
        ),
    )


def _readable(prior: Fraction) -> Fraction:
    """A prior rounded down to four digits: a bound that people can read, still covered."""
    return max(Fraction(int(prior * 10_000), 10_000), Fraction(1, 10_000) if prior >= Fraction(1, 10_000) else prior)
