"""One requirement for attackers who know different things about people (THESIS 5.3.1).

Whoever knows a person's public columns, Z = z, believes other things beforehand than whoever does not: each value then
has a requirement (rho1, rho2) for every z. What a row shows is drawn without looking at public columns, so

    Pr[x | y, z] / (1 - Pr[x | y, z]) <= gamma_x Pr[x | z] / (1 - Pr[x | z])

and all of them are met by the smallest gamma_x = rho2 (1 - rho1) / (rho1 (1 - rho2)) over z.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

from deniable.core.errors import RequirementError
from deniable.core.privacy import Privacy, amplification_limit


def strictest(*requirements: Privacy) -> Privacy:
    """Each value's strictest requirement of several, to be met whatever was believed.

    Args:
        requirements: one for each thing that an attacker may know, with ``per_value``; of values that one of them does
            not name it requires nothing. ``tolerance`` makes them of the counts of groups.

    >>> from deniable import Privacy
    >>> from deniable.mechanisms import strictest
    >>> men = Privacy(per_value={"lung": ("1/2", "3/4"), "breast": ("1/50", "1/5")})
    >>> women = Privacy(per_value={"breast": ("1/10", "1/5")})
    >>> both = strictest(men, women)
    >>> both.per_value["breast"], both.per_value["lung"], both.adversary
    ((Fraction(1, 10), Fraction(1, 5)), (Fraction(1, 2), Fraction(3, 4)), 'any-prior')
    """
    if not requirements or not all(isinstance(one, Privacy) and one.per_value for one in requirements):
        raise RequirementError(
            "strictest takes requirements with per_value, one for each thing that an attacker may know. "
            "Fix: strictest(tolerance(counts_of_men, 3), tolerance(counts_of_women, 3))."
        )
    if any(one.rho1 is not None or one.rho2 is not None or one.sums for one in requirements):
        raise RequirementError(
            "strictest is about values' own requirements, and one of these has rho1, rho2 or sums. Fix: leave them out."
        )
    chosen: dict[Hashable, tuple[Fraction, Fraction]] = {}
    for one in requirements:
        for value, pair in one.per_value.items():
            if value not in chosen or amplification_limit(*pair) < amplification_limit(*chosen[value]):
                chosen[value] = pair
    return Privacy(per_value=chosen, adversary="any-prior")
