"""What one mechanism would do for a table: its guarantee, what attackers can make of it, and its predicted errors, or
why it cannot.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from deniable.core.errors import DeniableError, counted
from deniable.core.exact import downward_amplifications, own_amplifications
from deniable.core.histogram import Histogram
from deniable.core.lineups import LineUpDesign, surest_in_lineups
from deniable.core.part import COUNT_EPSILON
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, worst_posterior
from deniable.core.promise import Guarantee
from deniable.core.values import Ints, percent
from deniable.mechanisms import Mechanism
from deniable.mechanisms.fine_grain import requirements_of
from deniable.mechanisms.requirement import SPARSE, in_its_words, protected_values, upper_counts
from deniable.mechanisms.small_domain import surest_in_cells
from deniable.planning.outlook import COLUMNS
from deniable.planning.posteriors import Posteriors, cells_from
from deniable.planning.prediction import Errors, Profile, Spread
from deniable.tables.keys import Keystream, Secret, discrete_laplace, discrete_laplace_variance

# -- A chart as plain data: what is measured, not how it is drawn (report.figures draws it) ----------------------------


INDEPENDENCE = "independence"  # the line to beat has this name in every chart, and its own look


@dataclass(frozen=True)
class Point:
    """A measured number at x; ``deviation`` is that over draws, 0 where nothing was drawn."""

    x: float
    y: float
    deviation: float = 0.0


@dataclass(frozen=True)
class Series:
    """A line of points.

    Attributes:
        paper: the paper's own figures at the same places, where it prints them.
        panel: charts with several panels show each series in its own; the same name in two panels looks the same.
    """

    name: str
    points: tuple[Point, ...]
    paper: tuple[Point, ...] = ()
    panel: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart: lines over x, or a cloud of points around the diagonal.

    Attributes:
        percent: whether y is a share, to be shown in per cent.
        percent_x: the same of x.
        from_zero: whether a linear y begins at 0.
        cloud: points (true, estimated) instead of lines; the diagonal is where estimates are right.
    """

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    percent: bool = False
    percent_x: bool = False
    from_zero: bool = True
    cloud: bool = False

    @property
    def panels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(series.panel for series in self.series))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(series.name for series in self.series))

    @property
    def described(self) -> str:
        """The chart in a sentence, for those who cannot see it."""
        lines = "; ".join(self.names)
        panels = f" Panels: {'; '.join(self.panels)}." if len(self.panels) > 1 else ""
        paper = " Crosses: the paper's figures." if any(series.paper for series in self.series) else ""
        kind = "A cloud of points" if self.cloud else "Lines"
        return f"{self.title}. {kind} of {self.y} against {self.x}: {lines}.{panels}{paper}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; numbers that do not exist are left out."""
        return {
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "log_x": self.log_x,
            "log_y": self.log_y,
            "percent": self.percent,
            "kind": "cloud" if self.cloud else "lines",
            "series": [
                {
                    "name": series.name,
                    "panel": series.panel,
                    "points": [_plain(point) for point in series.points],
                    "paper": [[point.x, point.y] for point in series.paper],
                }
                for series in self.series
            ],
        }


def line(
    name: str,
    numbers: Mapping[float, Spread | float],
    *,
    paper: Mapping[float, float] | None = None,
    panel: str = "",
) -> Series:
    """A series from x -> number or spread; what is not a number is left out.

    >>> line("a", {1: 2.0, 2: float("nan")}).points
    (Point(x=1, y=2.0, deviation=0.0),)
    """
    points = tuple(
        Point(x, number.mean, number.deviation) if isinstance(number, Spread) else Point(x, float(number))
        for x, number in numbers.items()
    )
    kept = tuple(point for point in points if math.isfinite(point.y))
    return Series(name, kept, tuple(Point(x, y) for x, y in (paper or {}).items()), panel)


def lines(
    names: Sequence[str],
    rows: Mapping[Any, Sequence[Spread | float]],
    *,
    papers: Mapping[Any, Sequence[float]] | None = None,
    panel: str = "",
) -> tuple[Series, ...]:
    """A series for each name, from x -> their numbers in the order of the names; of the first also the paper's."""
    return tuple(
        line(
            name,
            {x: numbers[place] for x, numbers in rows.items()},
            paper={x: printed[place] for x, printed in (papers or {}).items() if place < len(printed)},
            panel=panel,
        )
        for place, name in enumerate(names)
    )


def level(name: str, y: float | Spread, xs: Iterable[float], *, panel: str = "") -> Series:
    """A number that does not depend on x, as a line from the first x to the last."""
    ends = sorted(xs)
    return line(name, {ends[0]: y, ends[-1]: y}, panel=panel)


def cloud(name: str, pairs: Sequence[tuple[float, float]], *, panel: str = "") -> Series:
    """Points (true, estimated)."""
    return Series(name, tuple(Point(true, estimated) for true, estimated in pairs), (), panel)


def _plain(point: Point) -> list[float]:
    return [point.x, point.y, point.deviation] if point.deviation else [point.x, point.y]


# -- What attackers can make of a plan: how sure each adversary gets, against what they believed beforehand ------------
# (mathematics 2).
#
# A belief b in a value grows to b L / (1 - b + b L), L the largest likelihood ratio of anything that a row can show:
#
# - against all other values together, as frequent as they are, for one who knows the distribution and suspects more;
# - against the least likely of them, which is the amplification gamma = e^epsilon, for any attacker at all.


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
    if plan.parts[0].learned is not None:
        return promised_beliefs(plan.guarantee, rows, plan.privacy)
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
    rows, sure = plan.histogram, surest_in_lineups(design, plan.histogram.counts)
    counted = rows.counts.tolist()
    alike = {(counted[x], id(sure[x])): (counted[x], sure[x]) for x in held}.values()
    factor = max(_ratio(Fraction(count, rows.rows), posterior) for count, posterior in alike)
    gamma = plan.guarantee.gamma
    highest = float(max(posterior for _, posterior in alike))
    return Beliefs(highest, factor, math.inf if gamma is None else float(gamma), starting_belief(rows, plan.privacy))


def promised_beliefs(guarantee: Guarantee, rows: Histogram, privacy: Privacy | None) -> Beliefs:
    """The same of a mechanism without channels, as far as its promise says."""
    gamma = math.inf if guarantee.gamma is None else float(guarantee.gamma)
    factor = math.nan if guarantee.adversary == "frequency" else gamma
    return Beliefs(float(guarantee.worst), factor, gamma, starting_belief(rows, privacy))


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
    sure = surest_in_lineups(design, rows.counts)
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


# -- What one mechanism would do for a table: its guarantee and predicted errors, or why it cannot ---------------------


MARGINAL_VARIANCE = discrete_laplace_variance(COUNT_EPSILON)  # of the noise on the published histogram
EXACT = 1e-9  # a relative error that only rounding makes
NOISE_DRAWS = 400  # of the noise, some of which are planned from where it matters
NOISE_ENTRIES = 2**22  # of all draws: with more values there are fewer draws, which are more alike
MANY_PLANS, FEW_PLANS = 11, 3  # from such draws, where two of them show that plans differ
MANY_VALUES = 10_000  # few plans for more
STEADY = 1.02  # how much larger one's coin may be than the other's, where they do not
TINY = 1e-9  # a coin that keeps no row
LARGEST_MIXED = 2000  # values; hidden groups or line-ups of more are not inverted only to predict their error


def label_of(name: str, plan: Plan) -> str:
    """A mechanism's name; of line-ups also their size and truth, which tell them apart, and of decoys what to write
    where the number of rows is no multiple of their size."""
    design, limit = plan.parts[0].lineups, plan.options.get("epsilon")
    name = name if limit is None else f"{name}:epsilon={limit}"
    if design is None:
        return name if plan.parts[0].left_out is None else f"{name}:leftovers=drop"
    return f"{name}, {counted(design.size, 'value')}, truth {percent(design.share_true)}"


@dataclass(frozen=True)
class Candidate:
    """A mechanism for this table.

    Attributes:
        plan: how; None where it refuses, and for rivals that have no channels.
        guarantee: what it promises; None where it refuses.
        refusal: why it does not apply.
        errors: predicted mean relative errors, one for each selectivity; not a number where there is no prediction.
        rival: listed to be compared with, and never recommended.
        biased: whether its answers have a bias that only a pool of questions shows.
        beliefs: how sure each adversary can become; None where it refuses, and until ``with_beliefs``.
        withheld: why ``auto`` does not take it although it meets the requirement.
        noise: epsilon of the noisy histogram that is published beside its rows.
    """

    mechanism: Mechanism
    plan: Plan | None
    guarantee: Guarantee | None
    refusal: str
    errors: Errors
    seconds: float
    rival: bool = False
    biased: bool = False
    beliefs: Beliefs | None = None
    withheld: str = ""
    noise: float = 0.0

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def lineups(self) -> LineUpDesign | None:
        """The design of its line-ups, where it publishes line-ups."""
        return None if self.plan is None else self.plan.parts[0].lineups

    @property
    def label(self) -> str:
        """What it is called beside others."""
        return self.name if self.plan is None else label_of(self.name, self.plan)

    @property
    def epsilon(self) -> float:
        """Against any attacker: of rows, and of the noisy counts beside them."""
        return math.inf if self.guarantee is None else self.guarantee.epsilon + self.noise

    @property
    def score(self) -> tuple[float, float]:
        """Smaller is better: the geometric mean of the predicted errors, then epsilon.

        Questions that are answered exactly, those about public columns alone, say nothing about a mechanism.
        """
        known = [error for error in self.errors if not math.isnan(error)]
        errors = [error for error in known if error > EXACT]
        if not errors:
            return (0.0 if known else math.inf, self.epsilon)
        return (math.exp(sum(map(math.log, errors)) / len(errors)), self.epsilon)

    def _drawn(self) -> dict[str, Any]:
        """How rows are drawn: cells and coins, or the size and the truth of line-ups."""
        none = {"cells": None, "coin": None, "kept": None}
        if self.lineups is not None:
            return {**none, "size": self.lineups.size, "truth": round(self.lineups.share_true, 4)}
        if self.plan is None:
            return none
        coin, kept = round(self.plan.average_coin, 4), round(self.plan.record_utility, 4)
        return {"cells": len(self.plan.cells), "coin": coin, "kept": kept}

    def to_dict(self) -> dict[str, Any]:
        if self.guarantee is None:
            return {"mechanism": self.name, "rival": self.rival, "refused": self.refusal}
        return {
            "mechanism": self.name,
            "label": self.label,
            "rival": self.rival,
            "adversary": self.guarantee.adversary,
            **self._drawn(),
            "worst": round(float(self.guarantee.worst), 4),
            **({} if self.beliefs is None else {"worst_posterior": self.beliefs.to_dict()}),
            "epsilon": None if math.isinf(self.epsilon) else round(self.epsilon, 3),
            "errors": [None if math.isnan(error) else round(error, 4) for error in self.errors],
            "biased": self.biased,
            "reveals": self.mechanism.reveals,
            "guarantee": str(self.guarantee),
            "seconds": round(self.seconds, 3),
            **({"withheld": self.withheld} if self.withheld else {}),
        }


def candidate(
    mechanism: Mechanism,
    counts: Histogram,
    privacy: Privacy,
    profile: Profile,
    *,
    noisy: bool = False,
    columns: int = COLUMNS,
) -> Candidate:
    """A mechanism: its plan, and the errors that follow from it; ``noisy`` counts are planned from as they stand, and
    a model is learned from so many public ``columns``."""
    calibrated = marginal_variance(privacy) is not None

    def made() -> tuple[Plan | None, Guarantee, Errors]:
        drawn = [mechanism.plan(counts, privacy, public=counts)] if noisy else drawn_plans(mechanism, counts, privacy)
        plan = middling(drawn)
        if plan.parts[0].learned is not None:
            return plan, plan.guarantee, profile.learned(columns, plan.guarantee.epsilon)
        return plan, plan.guarantee, mean_errors(drawn, lambda one: errors_of(one, profile, calibrated=calibrated))

    one = timed(mechanism, made)
    beside = calibrated and one.plan is not None and one.plan.parts[0].learned is None
    return replace(one, noise=2 * COUNT_EPSILON) if beside else one


def as_published(mechanism: Mechanism, counts: Histogram, privacy: Privacy | None) -> Plan:
    """The plan that a release would have, as far as that can be said before its noise is drawn: of ``drawn_plans`` the
    one that keeps a middling number of rows."""
    return middling(drawn_plans(mechanism, counts, privacy))


def drawn_plans(mechanism: Mechanism, counts: Histogram, privacy: Privacy | None) -> list[Plan]:
    """Plans that a release may have, one for each of some draws of the noise; one plan where the noise hardly matters.

    Releases are planned from counts with noise (mathematics 13.4). Where all values are frequent that changes nothing
    one can see. Where some are rare, a coin for all of them must do for the one that the noise understates most, and
    rows are kept far less often than exact counts would allow, in some releases half as often as in others; and cells
    are others for every draw.
    """
    knows = privacy is None or marginal_variance(privacy) is not None
    if not (knows and counts.counts.min() < SPARSE) or mechanism.learns:
        return [mechanism.plan(counts, privacy)]
    noisy = _with_noise(counts)
    middle = mechanism.plan(counts, privacy, public=noisy[len(noisy) // 2])
    if len(middle.cells) != 1 and not middle.cells_published:  # line-ups and groups: coins say nothing of their errors
        return [middle]
    unkind = mechanism.plan(counts, privacy, public=noisy[len(noisy) * 9 // 10])
    if 1 / STEADY <= unkind.average_coin / max(middle.average_coin, TINY) <= STEADY:
        return [middle]
    number = MANY_PLANS if counts.m <= MANY_VALUES else FEW_PLANS
    return [mechanism.plan(counts, privacy, public=public) for public in _evenly(noisy, number)]


def middling(plans: Sequence[Plan]) -> Plan:
    """The plan that keeps a middling number of rows."""
    return plans[0] if len(plans) == 1 else sorted(plans, key=lambda one: one.average_coin)[len(plans) // 2]


def mean_errors(plans: Sequence[Plan], errors: Callable[[Plan], Errors]) -> Errors:
    """The errors to expect before the noise is drawn: the mean over the plans that it may lead to."""
    return tuple(np.mean([errors(plan) for plan in plans], axis=0).tolist())


@lru_cache(maxsize=1)  # every mechanism of a comparison is planned from the same draws
def _with_noise(counts: Histogram) -> list[Histogram]:
    """The histogram with noise, many draws of it from kind to unkind: always the same, so that a comparison can be
    repeated.

    Unkind is noise that understates a value by much: its bound is then a large multiple of its noisy share.
    """
    draws = [counts.with_counts(np.maximum(counts.counts + noise, 1)) for noise in _noise(counts.m)]
    return sorted(draws, key=lambda public: float((upper_counts(counts, public) / public.counts).max()))


def _noise(m: int) -> list[Ints]:
    stream = Keystream(Secret.from_key(bytes(32)), "planner")
    number = max(min(NOISE_DRAWS, NOISE_ENTRIES // m), MANY_PLANS)
    return [discrete_laplace(stream.subkey(str(draw)), m, COUNT_EPSILON) for draw in range(number)]


def _evenly(ordered: Sequence[Histogram], number: int) -> list[Histogram]:
    """So many that speak for all: evenly from the first to the last."""
    return [ordered[int((place + 0.5) / number * len(ordered))] for place in range(number)]


def errors_of(plan: Plan, profile: Profile, *, calibrated: bool) -> Errors:
    """The errors that follow from a plan; not numbers where predicting them would take too long."""
    hidden = len(plan.cells) > 1 and not plan.cells_published
    if (hidden or plan.parts[0].lineups is not None) and plan.histogram.m > LARGEST_MIXED:
        return (math.nan,) * len(profile.selectivities)
    return profile.channels(plan, MARGINAL_VARIANCE if calibrated else None)


def with_beliefs(one: Candidate, counts: Histogram, privacy: Privacy) -> Candidate:
    """The same candidate, with how sure each adversary can become."""
    if one.guarantee is None:
        return one
    sure = promised_beliefs(one.guarantee, counts, privacy) if one.plan is None else beliefs(one.plan)
    return replace(one, beliefs=sure)


def marginal_variance(privacy: Privacy) -> float | None:
    """Of the noisy histogram that a release publishes by default, if it publishes one."""
    return MARGINAL_VARIANCE if privacy.adversary == "frequency" and privacy.small_sums is None else None


def timed(
    mechanism: Any,
    make: Callable[[], tuple[Plan | None, Guarantee, Errors]],
    *,
    rival: bool = False,
    biased: bool = False,
) -> Candidate:
    begin = time.perf_counter()
    try:
        plan, promised, errors = make()
    except DeniableError as refused:
        return Candidate(mechanism, None, None, str(refused), (), time.perf_counter() - begin, rival, biased)
    return Candidate(mechanism, plan, promised, "", errors, time.perf_counter() - begin, rival, biased)
