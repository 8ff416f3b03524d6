"""Findings about public columns that give sensitive values away: which, how much, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from deniable.audit.attacks.informed import NEARLY, Sureness
from deniable.audit.dependence import ALL, WITH, Dependence, Giveaway
from deniable.audit.findings import Finding
from deniable.core.errors import listing, shortened
from deniable.core.probability import percent

SERIOUS = 0.05  # of the people: so many more than by the frequencies are known for certain, or nearly
WORTH_A_WORD = 0.01
NAMED = 4  # columns


def about_dependence(dependence: Dependence | None, rho2: float | None, fixes: Mapping[str, str]) -> list[Finding]:
    """At most one finding about a sensitive column. ``fixes``: what to do about each public column."""
    if dependence is None:
        return []
    culprits = serious_ones(dependence, rho2)
    if culprits:
        return [
            Finding(
                "serious",
                "public columns",
                sentence_about(dependence, culprits, rho2),
                f"Publish again without that: {fix_of(culprits, dependence, fixes)}",
            )
        ]
    together = dependence.columns[-1]
    if rho2 is None or _more(together, dependence, "above_rho2") < WORTH_A_WORD:
        return []
    advice = "This is what the columns say about groups of people; make them coarser if that is too much."
    return [Finding("caution", "public columns", sentence_about(dependence, [together], rho2), advice)]


def serious_ones(dependence: Dependence, rho2: float | None) -> list[Giveaway]:
    """The columns that make values nearly certain; all together only where no single one does."""
    limit = "above_nearly" if rho2 is None or rho2 < NEARLY else "above_rho2"
    by_function = limit if rho2 is None else "above_rho2"
    single = [one for one in dependence.columns if one.column != ALL]
    culprits = [
        one
        for one in single
        if _more(one, dependence, limit) >= SERIOUS or (one.function and _more(one, dependence, by_function) >= SERIOUS)
    ]
    return culprits or [
        one for one in dependence.columns if one.column == ALL and _more(one, dependence, limit) >= SERIOUS
    ]


def sentence_about(dependence: Dependence, culprits: Sequence[Giveaway], rho2: float | None) -> str:
    """Who gives how much away, in one paragraph: the worst in figures, the others by name."""
    worst, *others = culprits
    name = worst.column if worst.column == ALL else shortened(worst.column)
    why = worst.function or f"explaining {percent(worst.gain.explained)} of what is uncertain"
    also = (
        f" So {'does' if len(others) == 1 else 'do'} {listing([one.column for one in others], NAMED)}."
        if others
        else ""
    )
    sample = "" if dependence.rows == dependence.of else f"a sample of {dependence.rows:,} of "
    people = max(worst.informed.people, 1)
    return (
        f"{name} give{'s' * (worst.column != ALL)} {shortened(dependence.sensitive)} away ({why}). Who knows that "
        f"and sees a person's row is {_shares(worst, dependence, rho2)}.{also} Learnt from some people and "
        f"tried on {people:,} others, in {sample}{dependence.of:,} rows; "
        f"shares are accurate to {percent(math.sqrt(0.25 / people) * 1.96)}."
    )


def fix_of(culprits: Sequence[Giveaway], dependence: Dependence, fixes: Mapping[str, str]) -> str:
    """What to do about them."""
    named = [one.column for one in culprits if one.column != ALL] or [
        one.column for one in sorted(dependence.columns, key=lambda one: -one.gain.mean) if one.column != ALL
    ]
    said = [fixes.get(name) or f"--drop {' or --drop '.join(name.split(WITH))}" for name in named[:NAMED]]
    return f"{'; '.join(said)}."


def _shares(one: Giveaway, dependence: Dependence, rho2: float | None) -> str:
    limits = [] if rho2 is None else [("above_rho2", f"rho2, {percent(rho2)},")]
    limits += [("above_nearly", percent(NEARLY))] if rho2 is None or rho2 < NEARLY else []
    return " and ".join(
        f"surer than {limit} of the truth about {percent(_share(one.informed.after, which))} of the people "
        f"({percent(_share(dependence.frequencies.after, which))} by the frequencies)"
        for which, limit in limits
    )


def _more(one: Giveaway, dependence: Dependence, which: str) -> float:
    return _share(one.informed.after, which) - _share(dependence.frequencies.after, which)


def _share(sure: Sureness, which: str) -> float:
    share = float(getattr(sure, which))
    return 0.0 if math.isnan(share) else share
