"""What is learnt about one sensitive column, or several that were perturbed as one."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.audit.breaches import Breach, CurvePoint, Limits, protects
from deniable.audit.cells import CellReport
from deniable.audit.extremes import View
from deniable.audit.findings import namer, view_in_words
from deniable.audit.lineups import LineUpPosteriors
from deniable.audit.posteriors import Belief, Posteriors
from deniable.audit.singles import SingleBelief
from deniable.core import values
from deniable.core.probability import percent

WORST_SHOWN = 5


@dataclass(frozen=True)
class PartAudit:
    """What is learnt about one sensitive column, or several that were perturbed as one.

    Attributes:
        columns, domain: the column(s) and their values.
        posteriors: every posterior, on demand.
        beliefs: the extremes for every value that occurs, against the frequency adversary.
        limits: the requirement for each value.
        upward, downward: what breaks it.
        curve: what stronger beliefs grow to.
        gamma: the amplification, cells included; None when unbounded.
        cells: what the cells reveal, where they are published.
        rows_from: where the rows of each cell are known from: ``"histogram"`` (one cell), ``"plan"``, ``"estimate"``,
            or ``"line-ups"`` where there are no cells.
        singles: of columns that were perturbed together, what is learnt about each one's values.
    """

    columns: tuple[str, ...]
    domain: tuple[Hashable, ...]
    posteriors: Posteriors | LineUpPosteriors
    limits: Limits
    upward: tuple[Breach, ...]
    downward: tuple[Breach, ...]
    curve: tuple[CurvePoint, ...]
    gamma: Fraction | None
    cells: CellReport | None
    rows_from: str
    singles: tuple[SingleBelief, ...] = ()

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        return self.posteriors.beliefs

    @property
    def worst(self) -> tuple[Belief, ...]:
        """The values an attacker can become surest of, protected ones first."""
        return tuple(sorted(self.beliefs, key=lambda belief: (not self._protects(belief), -belief.highest)))

    @property
    def worst_protected(self) -> Fraction:
        """The largest posterior of a protected value; of any value where nothing is required."""
        required = self.rho2 is not None
        chosen = [belief for belief in self.beliefs if not required or self._protects(belief)]
        return max((belief.highest for belief in chosen), default=Fraction(0))

    @property
    def rho2(self) -> Fraction | None:
        """How sure one may become of a protected value, the largest of several; None where nothing is required."""
        return max((limit[1] for limit in self.limits if limit is not None), default=None)

    def _protects(self, belief: Belief) -> bool:
        return protects(self.limits[belief.position], belief.prior)

    def to_dict(self) -> dict[str, Any]:
        domain = [values.to_json(value) for value in self.domain]

        def published(view: View) -> Any:
            shown = view[1]
            return [domain[x] for x in shown] if isinstance(shown, tuple) else None if shown is None else domain[shown]

        def breach(one: Breach) -> dict[str, Any]:
            return {
                "value": domain[one.position],
                "prior": float(one.prior),
                "posterior": float(one.posterior),
                "allowed": float(one.allowed),
                "published": published(one.view),
                "cell": one.view[0],
            }

        return {
            "columns": list(self.columns),
            "gamma": None if self.gamma is None else float(self.gamma),
            "epsilon": None if self.gamma is None else math.log(self.gamma),
            "worst_posterior": float(self.worst_protected),
            "values": [
                {
                    "value": domain[belief.position],
                    "prior": float(belief.prior),
                    "highest": float(belief.highest),
                    "lowest": float(belief.lowest),
                    "cell_only": float(belief.cell_only),
                    "protected": self._protects(belief),
                }
                for belief in self.beliefs
            ],
            "upward": [breach(one) for one in self.upward],
            "downward": [breach(one) for one in self.downward],
            "stronger_priors": [
                {
                    "belief": point.label,
                    "value": domain[point.position],
                    "prior": float(point.prior),
                    "posterior": float(point.posterior),
                }
                for point in self.curve
            ],
            "single_values": [belief.to_dict() for belief in self.singles],
            "cells": None if self.cells is None else {**self.cells.__dict__, "rows_from": self.rows_from},
        }

    def worst_rows(self) -> list[tuple[str, ...]]:
        """The values an attacker can become surest of: column, value, belief before, belief after, and when."""
        name = namer(self.domain)
        return [
            (
                ", ".join(self.columns),
                name(belief.position),
                percent(belief.prior),
                percent(belief.highest),
                view_in_words(belief.most_telling, name),
            )
            for belief in self.worst[:WORST_SHOWN]
        ]

    def lines(self) -> list[str]:
        """The same and more as text, for ``str`` of an audit."""
        name = namer(self.domain)
        text = [f"{', '.join(self.columns)}: {len(self.domain):,} values"]
        text += [
            f"  {value}: {prior} before, up to {sure} when {seen}" for _, value, prior, sure, seen in self.worst_rows()
        ]
        text += [
            f"  believed at {percent(p.prior)} ({p.label}): up to {percent(p.posterior)} ({name(p.position)})"
            for p in self.curve
        ]
        text.append(f"  epsilon: {'unbounded' if self.gamma is None else f'{math.log(self.gamma):.4g}'}")
        return text
