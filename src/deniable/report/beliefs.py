"""Beliefs beside the promised one: of someone who has learnt from the public columns, and of someone with a hunch."""

from __future__ import annotations

from fractions import Fraction

from deniable.core.probability import percent
from deniable.report.evidence import Evidence

HUNCH = 0.1  # what someone may believe who knows a person a little


def other_attackers(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Beside the promise: who has learnt from the public columns, and who has a hunch."""
    items = []
    if evidence.audit is not None and evidence.audit["informed"]:
        surest = max(evidence.audit["informed"], key=lambda one: one["after"]["right"] or 0.0)
        before, above = surest["without"]["right"], surest["after"]["above_rho2"]
        also = "" if above is None else f"; surer of the truth than rho2 about {percent(above)}"
        meaning = f"is right about so many people from their row, {percent(before or 0.0)} without it{also}"
        items.append(("An informed attacker", percent(surest["after"]["right"] or 0.0), meaning))
    gamma = evidence.manifest.guarantee["gamma"]
    most = "up to 100 %" if gamma is None else percent(grown(HUNCH, Fraction(gamma)))
    meaning = f"what a belief of {percent(HUNCH)} in a value can become, at most"
    return [*items, (f"From a hunch of {percent(HUNCH)}", most, meaning)]


def grown(belief: float, gamma: Fraction) -> float:
    """b gamma / (1 - b + b gamma): what a belief b grows to at the amplification gamma (mathematics 2)."""
    return belief * float(gamma) / (1 - belief + belief * float(gamma))
