"""The stated requirement against the posteriors: who is protected, what breaks, and what stronger beliefs grow to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.audit.extremes import View
from deniable.audit.posteriors import Belief
from deniable.core import values

FACTORS = (1, 2, 5, 10)
TENTH = Fraction(1, 10)
Limit = tuple[Fraction | None, Fraction] | None
Limits = tuple[Limit, ...]


@dataclass(frozen=True)
class Breach:
    """A belief that changes more than the requirement allows.

    Attributes:
        position: the value's place in the domain.
        prior, posterior: before and after seeing ``view``.
        allowed: the bound that is crossed: rho2 (upward) or rho1 (downward).
    """

    position: int
    prior: Fraction
    posterior: Fraction
    allowed: Fraction
    view: View


@dataclass(frozen=True)
class CurvePoint:
    """The worst that a belief stronger than the frequency can grow to.

    Attributes:
        label: which belief: ``"2x"`` is twice the value's frequency, ``"10 %"`` one in ten, ``"rho1"`` the
            requirement's own.
        position: the value for which it is worst.
        prior, posterior: that belief, before and after.
    """

    label: str
    position: int
    prior: Fraction
    posterior: Fraction


def limits_of(privacy: Mapping[str, Any] | None, domain: Sequence[Hashable]) -> Limits:
    """For each value its (rho1, rho2) as the manifest states them, rho1 None for "its frequency"; None: exempt."""
    if privacy is None:
        return (None,) * len(domain)
    exempt = {_key(value) for value in privacy["exempt"]}
    fine = {_key(value): (Fraction(low), Fraction(high)) for value, low, high in privacy["per_value"]}
    rho1 = None if privacy["rho1"] is None else Fraction(privacy["rho1"])
    common = None if privacy["rho2"] is None or fine else (rho1, Fraction(privacy["rho2"]))
    keys = [_key(values.to_json(value)) for value in domain]
    return tuple(None if key in exempt else fine.get(key, common) for key in keys)


def upward(beliefs: Sequence[Belief], limits: Limits) -> tuple[Breach, ...]:
    """Values believed at most at rho1 beforehand that can be believed above rho2 afterwards, worst first."""
    breaches = [
        Breach(belief.position, belief.prior, belief.highest, limit[1], belief.most_telling)
        for belief in beliefs
        if (limit := limits[belief.position]) is not None
        and protects(limit, belief.prior)
        and belief.highest > limit[1]
    ]
    return tuple(sorted(breaches, key=lambda breach: breach.allowed - breach.posterior))


def downward(beliefs: Sequence[Belief], limits: Limits) -> tuple[Breach, ...]:
    """Values believed at least at rho2 beforehand that can be believed below rho1 afterwards, worst first."""
    breaches = []
    for belief in beliefs:
        limit = limits[belief.position]
        if limit is not None and limit[0] is not None and belief.prior >= limit[1] and belief.lowest < limit[0]:
            breaches.append(Breach(belief.position, belief.prior, belief.lowest, limit[0], belief.least_telling))
    return tuple(sorted(breaches, key=lambda breach: breach.posterior - breach.allowed))


def protects(limit: Limit, share: Fraction | float) -> bool:
    """Whether a requirement speaks of a value: its share of the rows is at most rho1 (mathematics 2, "Protected
    values")."""
    return limit is not None and (limit[0] is None or share <= limit[0])


def curve(beliefs: Sequence[Belief], limits: Limits) -> tuple[CurvePoint, ...]:
    """The worst posterior over all values in question for beliefs at 1, 2, 5 and 10 times the frequency, at 10 % (which
    shows how a rare value fares) and at rho1.

    In question are the protected values, or all of them where nothing is required. Beliefs stop at 1/2: whoever starts
    above it already knows.
    """
    required = any(limit is not None for limit in limits)
    chosen = []
    for belief in beliefs:
        limit = limits[belief.position]
        if not required or protects(limit, belief.prior):
            chosen.append((belief, None if limit is None else limit[0]))
    points = []
    for factor in FACTORS:
        stronger = [(b, min(factor * b.prior, max(b.prior, Fraction(1, 2)))) for b, _ in chosen]
        points += _worst(f"{factor}x", stronger)
    points += _worst("10 %", [(b, TENTH) for b, _ in chosen if b.prior <= TENTH])
    points += _worst("rho1", [(b, max(rho1, b.prior)) for b, rho1 in chosen if rho1 is not None])
    return tuple(points)


def _worst(label: str, priors: Sequence[tuple[Belief, Fraction]]) -> list[CurvePoint]:
    points = [CurvePoint(label, belief.position, prior, belief.at_prior(prior)) for belief, prior in priors]
    return [max(points, key=lambda point: point.posterior)] if points else []


def _key(value: Any) -> Hashable:
    """Values of a manifest, so that True is not 1 and 1 is not "1"."""
    return (type(value).__name__, value)
