"""Single values of columns that were perturbed together: a bound for the tuple is none for each of its entries
(mathematics 13.6)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.audit.findings import Finding
from deniable.audit.posteriors import Posteriors
from deniable.core import values
from deniable.core.errors import shortened
from deniable.core.part import Part
from deniable.core.probability import percent
from deniable.core.promise import Amplification
from deniable.core.singles import single_values


@dataclass(frozen=True)
class SingleBelief:
    """How sure an attacker who knows the frequencies becomes of one column's value.

    Attributes:
        column, value: whose.
        prior, highest: before, and at most afterwards.
        covered: whether the promise of the release is about it.
    """

    column: str
    value: Hashable
    prior: Fraction
    highest: Fraction
    covered: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "value": values.to_json(self.value),
            "prior": float(self.prior),
            "highest": float(self.highest),
            "covered": self.covered,
        }


def single_beliefs(part: Part, posteriors: Posteriors) -> tuple[SingleBelief, ...]:
    """Beliefs in each column's values, by column; none where one column was perturbed alone."""
    beliefs = []
    for column in single_values(part.domain):
        rows = [0] * len(column.values)
        for place, number in posteriors.totals.items():
            rows[int(column.codes[place])] += number
        sure = posteriors.of_sets(column.codes)
        for place, value in enumerate(column.values):
            prior = Fraction(rows[place], max(posteriors.rows, 1))
            covered = _covered(part.promise, column.column, place, prior)
            beliefs.append(SingleBelief(part.columns[column.column], value, prior, sure[place], covered))
    return tuple(beliefs)


def _covered(promise: Any, column: int, place: int, prior: Fraction) -> bool:
    if isinstance(promise, Amplification):
        return promise.rho1 is not None and prior <= promise.rho1
    return hasattr(promise, "loose") and promise.rho2 is not None and (column, place) not in promise.loose


def about_singles(beliefs: Sequence[SingleBelief], rho2: Fraction | None) -> list[Finding]:
    """What is learnt of a column's value alone, beside the promise."""
    if not beliefs:
        return []
    covered = [belief for belief in beliefs if belief.covered]
    if rho2 is not None and (broken := [belief for belief in covered if belief.highest > rho2]):
        worst = max(broken, key=lambda belief: belief.highest)
        return [
            Finding(
                "serious",
                "single values",
                f"{len(broken)} values of one column alone can be believed above the bound. Worst: {_in_words(worst)}; "
                f"allowed are {percent(rho2)}.",
                "Do not publish this release. Check it with `deniable verify`, and publish the table anew.",
            )
        ]
    said = []
    if covered:
        worst = max(covered, key=lambda belief: belief.highest)
        detail = f"of one column alone the promise covers {len(covered)} values. Most exposed: {_in_words(worst)}."
        said.append(Finding("info", "single values", detail, ""))
    if rest := [belief for belief in beliefs if not belief.covered]:
        worst = max(rest, key=lambda belief: belief.highest)
        detail = f"{len(rest)} values of one column alone are not covered. Most exposed: {_in_words(worst)}."
        advice = "If a column's value is sensitive by itself, publish with a rho1 that covers it."
        said.append(Finding("caution", "single values, not covered", detail, advice))
    return said


def _in_words(belief: SingleBelief) -> str:
    name = shortened(belief.value, 40)
    return f"{belief.column} {name}, {percent(belief.prior)} before, up to {percent(belief.highest)} afterwards"
