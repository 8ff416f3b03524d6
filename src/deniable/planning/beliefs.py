"""What attackers can make of a plan: how sure each adversary gets, against what they believed beforehand
(mathematics 2).

A belief b in a value grows to b L / (1 - b + b L), L the largest likelihood ratio of anything that a row can show:

- against all other values together, as frequent as they are, for one who knows the distribution and suspects more;
- against the least likely of them, which is the amplification gamma = e^epsilon, for any attacker at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.audit.posteriors import Posteriors, cells_from
from deniable.core import lineup_exact
from deniable.core.exact import downward_amplifications, own_amplifications
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.lineup import LineUpDesign
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, worst_posterior
from deniable.mechanisms.fine_grain import requirements_of
from deniable.mechanisms.requirement import in_its_words, protected_values
from deniable.mechanisms.small_domain.guarantee import surest_in_cells
from deniable.planning.chart import Chart, Point, Series

BEFORE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
KNOWS, ANY = "knows how frequent the other values are", "any attacker"


@dataclass(frozen=True)
class Beliefs:
    """How sure attackers can become of a protected value; infinite factors stand for certainty.

    Attributes:
        frequency: the largest posterior of one whose prior is each value's share of the rows.
        suspicion: L for one who believes some value at more than its share, and the others in proportion. Not a number
            where a mechanism has no channels to compute it from.
        gamma: L for any attacker.
        rho1: the belief that ``any_prior`` starts from: the requirement's, or the largest protected share.
    """

    frequency: float
    suspicion: float
    gamma: float
    rho1: float

    @property
    def any_prior(self) -> float:
        """The largest posterior of anyone who believed a value at up to rho1."""
        return grown(self.rho1, self.gamma)

    def curve(self, before: Sequence[float] = BEFORE) -> list[dict[str, float]]:
        """Posteriors against what attackers believed ``before``, for both kinds of attackers."""
        return [{"before": b, KNOWS: grown(b, self.suspicion), ANY: grown(b, self.gamma)} for b in before]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        points = [
            {name: None if math.isnan(number) else round(number, 4) for name, number in point.items()}
            for point in self.curve()
        ]
        return {"frequency": round(self.frequency, 4), "any-prior": round(self.any_prior, 4), "curve": points}


def grown(belief: float, factor: float) -> float:
    """b L / (1 - b + b L).

    >>> grown(0.2, 4 / 3), grown(0.2, math.inf), grown(0.0, math.inf)
    (0.25, 1.0, 0.0)
    """
    if math.isinf(factor):
        return 1.0 if belief else 0.0
    return belief * factor / (1 - belief + belief * factor)


def beliefs(plan: Plan) -> Beliefs:
    """What attackers can make of a plan's channels, the cell included where it is published.

        b  becomes  b L / (1 - b + b L),    L the largest likelihood ratio of anything that a row can show

    Args:
        plan: the plan.

    >>> import deniable as dn
    >>> plan = dn.plan({"flu": 600, "cold": 400}, dn.Privacy(rho1="3/5", rho2="3/4"), "uniform")
    >>> sure = dn.beliefs(plan)
    >>> round(sure.frequency, 3), round(sure.any_prior, 3)
    (0.75, 0.75)
    """
    rows = plan.histogram
    held = set(np.flatnonzero(_protected(rows, plan.privacy)).tolist())
    if plan.parts[0].lineups is not None:
        return _of_lineups(plan, plan.parts[0].lineups, held or set(range(rows.m)))
    pairs = _priors_and_posteriors(plan, held)
    highest = max(float(posterior) for _, posterior in pairs)
    factor = max(_ratio(prior, posterior) for prior, posterior in pairs)
    gamma = plan.guarantee.gamma
    return Beliefs(highest, factor, math.inf if gamma is None else float(gamma), starting_belief(rows, plan.privacy))


def _priors_and_posteriors(plan: Plan, held: set[int]) -> list[tuple[Fraction, Fraction]]:
    """The share and the largest posterior of every value that must be protected, of all where none must; values that
    are alike once."""
    published = [cell for number, cell in enumerate(plan.cells) if number != plan.parts[0].left_out]
    if len(published) > 1 and not plan.cells_published:
        cells = cells_from(
            [cell.channel for cell in published],
            [plan.positions(cell) for cell in published],
            [cell.rows.counts for cell in published],
        )
        every = Posteriors(cells, published=False).beliefs
        protected = [belief for belief in every if belief.position in held] or list(every)
        return list({(id(one.prior), id(one.highest)): (one.prior, one.highest) for one in protected}.values())
    rows = np.zeros(plan.histogram.m, dtype=np.int64)
    for cell in published:
        np.add.at(rows, plan.positions(cell), cell.rows.counts)
    occurring = np.flatnonzero(rows)
    guarded = occurring[np.isin(occurring, list(held))]
    chosen = guarded if len(guarded) else occurring
    sure, counted, total = surest_in_cells(plan.histogram, published), rows.tolist(), int(rows.sum())
    alike = {(counted[x], id(sure[x])): (counted[x], sure[x]) for x in chosen.tolist()}
    return [(Fraction(count, total), posterior) for count, posterior in alike.values()]


def _of_lineups(plan: Plan, design: LineUpDesign, held: set[int]) -> Beliefs:
    """The same over all sets of a design."""
    rows, sure = plan.histogram, lineup_exact.surest(design, plan.histogram.counts)
    counted = rows.counts.tolist()
    alike = {(counted[x], id(sure[x])): (counted[x], sure[x]) for x in held}.values()
    factor = max(_ratio(Fraction(count, rows.rows), posterior) for count, posterior in alike)
    gamma = plan.guarantee.gamma
    highest = float(max(posterior for _, posterior in alike))
    return Beliefs(highest, factor, math.inf if gamma is None else float(gamma), starting_belief(rows, plan.privacy))


def promised_beliefs(guarantee: Guarantee, rows: Histogram, privacy: Privacy | None) -> Beliefs:
    """The same of a mechanism without channels, as far as its promise says."""
    gamma = math.inf if guarantee.gamma is None else float(guarantee.gamma)
    return Beliefs(float(guarantee.worst), math.nan, gamma, starting_belief(rows, privacy))


def starting_belief(rows: Histogram, privacy: Privacy | None) -> float:
    """rho1: as required, the largest of single values' own, or the share of the most frequent protected value."""
    if privacy is not None and privacy.rho1 is not None:
        return float(privacy.rho1)
    if privacy is not None and privacy.per_value:
        return float(max(rho1 for rho1, _ in privacy.per_value.values()))
    return float(rows.relative[_protected(rows, privacy)].max(initial=0.0))


def _protected(rows: Histogram, privacy: Privacy | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if privacy is None:
        return np.ones(rows.m, dtype=bool)
    if privacy.per_value:
        named = in_its_words(rows, privacy).per_value
        return np.array([value in named and value not in privacy.exempt for value in rows.domain])
    return protected_values(rows, privacy)


def _ratio(prior: Fraction, posterior: Fraction) -> float:
    """L = (h / (1 - h)) / (f / (1 - f)): what turned the share f into the posterior h."""
    if posterior == 1:
        return 1.0 if prior == 1 else math.inf
    return float(posterior * (1 - prior) / ((1 - posterior) * prior)) if prior else 1.0


def value_rows(plan: Plan) -> list[dict[str, Any]]:
    """A plan of one cell, value by value: what is kept, and both directions of the guarantee (mathematics 2,
    "Fine-grain").

    Upward, a belief of up to rho1 grows to at most the first number; downward, one of rho2 or more falls to at least
    the second, whatever was believed of other values. A value that is not protected has neither.
    """
    (cell,) = plan.cells
    channel, rows = cell.channel, plan.histogram
    required = {} if plan.privacy is None else requirements_of(rows, plan.privacy)
    up, down = (f(channel.keep, channel.replace) for f in (own_amplifications, downward_amplifications))
    described = []
    for place, value in enumerate(rows.domain):
        row = {
            "value": value,
            "share": float(rows.frequency(value)),
            "coin": float(channel.coins[place]),
            "kept": float(channel.diagonal[place]),
        }
        if value in required:
            rho1, rho2 = required[value]
            for_it, against = up[place], down[place]
            lowest = Fraction(0) if against is None else rho2 / (rho2 + against * (1 - rho2))
            row |= {
                "rho1": float(rho1),
                "grows to": 1.0 if for_it is None else float(worst_posterior(rho1, for_it)),
                "rho2": float(rho2),
                "falls to": float(lowest),
                "downward": lowest >= rho1,
            }
        described.append(row)
    return described


def lineup_rows(plan: Plan) -> list[dict[str, Any]]:
    """A plan of line-ups, value by value: in how many it stands, and the largest belief in it over all of them."""
    design, rows = plan.parts[0].lineups, plan.histogram
    assert design is not None
    sure = lineup_exact.surest(design, rows.counts)
    return [
        {
            "value": value,
            "share": float(rows.frequency(value)),
            "stands in": float(design.inclusion[place]),
            "believed at most": float(sure[place]),
        }
        for place, value in enumerate(rows.domain)
    ]


def belief_chart(by_mechanism: dict[str, Beliefs]) -> Chart:
    """Posterior against what the attacker already believed: a line for each mechanism, a panel for each attacker."""
    series = []
    for panel in (KNOWS, ANY):
        for name, sure in by_mechanism.items():
            points = tuple(Point(at["before"], at[panel]) for at in sure.curve() if not math.isnan(at[panel]))
            if points:
                series.append(Series(name, points, panel=panel))
    return Chart(
        title="What a belief can become",
        x="believed before",
        y="believed after, at most",
        series=tuple(series),
        log_x=True,
        percent=True,
        percent_x=True,
    )
