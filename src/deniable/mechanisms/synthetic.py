"""Learned releases: values dealt from a model of the public columns, which was learned from noisy tables (mathematics
14).

Public columns are published as they are. Two tables are neighbours when one person's value differs; all that depends on
values leaves through a ledger, and its sum, epsilon, bounds what anyone can learn of one person:

    Pr[R | T] <= e^epsilon Pr[R | T']        so that a belief r becomes at most r gamma / (1 + r (gamma - 1))

for every prior and every statement about the value, against whoever knows all other rows; gamma = e^epsilon as in
THESIS Thm 1, with the release R in the place of y.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from deniable.core.errors import OptionError, RequirementError, option
from deniable.core.histogram import Histogram
from deniable.core.learned import ROUNDED, Coding, Dealt, Learned, LearnedTable, Spent
from deniable.core.part import Part
from deniable.core.plan import Plan, PlannedPart
from deniable.core.privacy import Privacy, amplification_limit, gamma_below, worst_posterior
from deniable.core.promise import Guarantee
from deniable.core.sentence import SHOWN_BELIEFS, odds_grow
from deniable.core.values import Counts, Ints, percent, rounded
from deniable.learned import dealing, measuring
from deniable.learned.ledger import Ledger, Purpose, require_within
from deniable.learned.levels import ColumnCounts, Crossed, coding_of, table_of
from deniable.learned.measuring import PIECES, Levels, epsilon_of, laplace_variance
from deniable.learned.model import Fitted, Learner
from deniable.mechanisms.base import Mechanism, Need
from deniable.mechanisms.requirement import (
    DISTRIBUTION,
    PUBLIC_COLUMNS,
    check_histogram,
    named_values,
    nothing_covered,
    refuse_sums,
)

LARGEST_COST = Fraction(1, 50)  # of the noisy share of the most frequent value, where rho1 is left out
LARGEST_MARGIN = 3  # standard deviations of noise that are added to it
SMALLEST = Fraction(1, 200)  # epsilon of one row from which something is learned: counts are off by thousands
EDGES_SHARE = Fraction(1, 10)  # of the budget, for the edges of bins that are not declared
LIST_SHARE = Fraction(1, 12)  # of the budget, for the list of values where none is declared
LOOKS = (
    "Further releases of the same people: what they cost adds up, and the factors of the odds multiply; a ledger keeps "
    "the sum."
)
EXEMPT_ROWS = "Who has no value: such rows are published without one, as they are."
TOGETHER = "How many rows a person or a group has follows from no value, so the most of them is said."
NOT_MEASURED = (
    "Nothing of a person, but not everything about groups either: what no noisy table shows of a group is the model's "
    "guess, and its interval says how far that may be off."
)


# -- The promise -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OddsOfAnyone:
    """Everything that depends on values satisfies Pr[R | T] <= gamma Pr[R | T'] + delta for one person's values.

    Attributes:
        gamma: what the odds of any statement about one person can be multiplied by.
        epsilon: what was spent where the value of one row changes.
        delta: the probability that the list of values tells of one person.
        together: how many rows one person, or group, has at the most; gamma covers all of them.
        rho1, rho2: the belief beforehand, and what it becomes at most; None where only epsilon was required.
        listed: where the list of values comes from: ``declared``, a noisy ``threshold``, or the ``table`` as it is.
        publications: how many releases of a series gamma and delta cover together.
        number: which of them this is.
    """

    kind: ClassVar[str] = "odds"

    gamma: Fraction
    epsilon: Fraction
    delta: Fraction
    together: int
    rho1: Fraction | None
    rho2: Fraction | None
    listed: str
    publications: int = 1
    number: int = 1

    def sentence(self, part: Part, adversary: str) -> str:
        """In words, with what usual beliefs become."""
        whose = "one person's value"
        if self.together > 1:
            whose = f"the values of one person or group, {self.together:,} rows at the most,"
        what, so_far = "this release multiplies", ""
        if self.publications > 1:
            what = f"the {self.publications:,} releases that its series may have multiply, all together,"
            so_far = f" This is number {self.number:,}: {percent(Fraction(self.number, self.publications))} is spent."
        required = ""
        if self.rho1 is not None and self.rho2 is not None:
            required = f" No belief of up to {percent(self.rho1)} becomes surer than {percent(self.rho2)}."
        odds = odds_grow(
            f"Whatever anyone knows or believes, all other rows included, {what} the odds of any statement about "
            f"{whose}",
            self.gamma,
            float(self.epsilon * self.together * self.publications),
        )
        delta = float(rounded(self.delta, up=True, digits=2))
        return f"{odds}{required}{so_far}{_LISTED[self.listed].format(delta=delta)}"


_LISTED = {
    "declared": "",
    "threshold": " A value that one person alone has is in the list of values with probability {delta:.2g} at most.",
    "table": " Excepted is the list of values: that a value is in it tells that somebody has it.",
}


# -- The budget of a release, and the list of its values ---------------------------------------------------------------


@dataclass(frozen=True)
class Instalment:
    """A part of a budget that a series of releases shares: the ``number`` of a release, of ``publications`` in all."""

    number: int = 1
    publications: int = 1


@dataclass(frozen=True)
class Budget:
    """What may be spent.

    Attributes:
        gamma: of one person.
        epsilon: where the value of one row changes, everything included.
        rho1, rho2: the beliefs that gamma follows from; None where epsilon was required.
        together: rows of one person at the most.
        instalment: of which gamma is the whole, and epsilon one part.
    """

    gamma: Fraction
    epsilon: Fraction
    rho1: Fraction | None
    rho2: Fraction | None
    together: int
    instalment: Instalment


def budget_of(
    privacy: Privacy | None,
    histogram: Histogram,
    together: int,
    ledger: Ledger,
    instalment: Instalment | None = None,
    limit: float = math.inf,
) -> Budget:
    """The budget that a requirement leaves, or a ``limit`` on epsilon. Where rho1 is left out it is the noisy share of
    the most frequent value, exempt ones aside, which is paid for: the bound then holds outcome by outcome."""
    rho1, rho2 = _stated(privacy)
    assert privacy is not None
    if rho1 is None and instalment is not None:
        raise RequirementError(
            "rho1 is left out, and would be another one for each table of a series, which has one budget for all. "
            f"Fix: {option('rho1', '1/20')}, or {worded_epsilon()}."
        )
    if rho1 is None:
        named, _ = named_values(histogram, privacy)
        if not named.any():
            raise nothing_covered()
        rho1 = _largest_share(histogram.counts * named, histogram.rows, ledger)
    if rho1 >= rho2:
        raise RequirementError(
            f"rho2 = {rho2} cannot be promised for every value: the most frequent one may be {percent(rho1)} of the "
            f"rows, by a count with noise. Fix: {option('rho1', '1/20')}, up to which beliefs are protected, or "
            f"{worded_epsilon()}."
        )
    gamma = amplification_limit(rho1, rho2)
    if limit < math.log(gamma):
        gamma = gamma_below(Fraction(limit))
    whole = epsilon_of(gamma)
    part = instalment or Instalment()
    epsilon = Fraction(int(whole / (together * part.publications) * PIECES), PIECES)
    if epsilon <= max(2 * ledger.epsilon, SMALLEST):
        raise RequirementError(
            f"A budget of epsilon {float(whole):.3g}"
            + (f" for up to {together:,} rows of one person or group" if together > 1 else "")
            + (f" in each of {part.publications:,} publications" if part.publications > 1 else "")
            + f" is too small to learn anything from. Fix: {worded_epsilon()}, or {option('rho1', '1/20')}"
            + ("; or fewer rows of whoever has most." if together > 1 else ".")
        )
    if privacy.budget is not None:
        return Budget(gamma, epsilon, None, None, together, part)
    return Budget(gamma, epsilon, rho1, rho2, together, part)


def _stated(privacy: Privacy | None) -> tuple[Fraction | None, Fraction]:
    """The beliefs of a requirement before and after; the strictest ones where values have their own."""
    if privacy is None:
        raise RequirementError(
            f"mechanism 'synthetic' needs a requirement. Fix: {option('privacy', '1/6')}, how sure anyone may become, "
            f"or {worded_epsilon()}."
        )
    refuse_sums(privacy)
    if privacy.per_value:
        return min(privacy.per_value.values(), key=lambda pair: amplification_limit(*pair))
    assert privacy.rho2 is not None
    return privacy.rho1, privacy.rho2


def edges_cost(
    privacy: Privacy | None, count: int, columns: int, together: int, instalment: Instalment | None
) -> Fraction:
    """What the edges of one of some columns may cost, by the requirement alone; where rho1 is left out, as if the
    ``count`` bins had equally many rows."""
    rho1, rho2 = _stated(privacy)
    rho1 = Fraction(1, count) if rho1 is None else rho1
    if rho1 >= rho2:
        raise RequirementError(
            f"rho2 = {rho2} cannot be promised for {count} bins of equally many rows. Fix: more bins, "
            f"{option('rho1', '1/20')}, up to which beliefs are protected, or {worded_epsilon()}."
        )
    whole = epsilon_of(amplification_limit(rho1, rho2))
    parts = columns * together * (instalment or Instalment()).publications
    return Fraction(int(EDGES_SHARE * whole / parts * PIECES), PIECES)


def worded_epsilon() -> str:
    """The option for a budget by itself."""
    return option("epsilon", "1")


def largest_margin() -> float:
    """Rows that are added to the count of the most frequent value, which has noise."""
    return LARGEST_MARGIN * laplace_variance(LARGEST_COST) ** 0.5


def _largest_share(counts: Counts, rows: int, ledger: Ledger) -> Fraction:
    most = ledger.largest(counts, LARGEST_COST) + int(largest_margin()) + 1
    share = Fraction(max(most, 1), max(rows, 1))
    return min(Fraction(int(share * 10_000) + 1, 10_000), Fraction(1))


# -- The mechanism -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Synthetic(Mechanism):
    """Values dealt from a model that was learned from noisy tables: the strongest promise, against any attacker.

    Attributes:
        tables: which public columns, or which of them together, are counted by value; left out: each, and pairs of
            them where the budget allows it.
        listing: the list of values where none is declared: ``threshold``: those with enough rows, by a noisy count;
            ``table``: as it is, which the promise then excepts.
        delta: the probability at most that a threshold lists a value of one person.

    >>> import deniable as dn
    >>> import pyarrow as pa
    >>> table = pa.table({"sex": ["F", "M"] * 5000, "ill": ["flu", "flu", "cold", "hiv", "flu"] * 2000})
    >>> asked = {"sensitive": "ill", "privacy": dn.Privacy(epsilon=1), "domain": ["cold", "flu", "hiv"]}
    >>> release = dn.publish(table, mechanism="synthetic", **asked)
    >>> release.manifest.guarantee["adversary"], 5_500 < release.count({"ill": "flu"}).value < 6_500
    ('any-prior', True)
    """

    tables: tuple[tuple[str, ...], ...] | None = None
    listing: Literal["threshold", "table"] = "threshold"
    delta: float = 1e-6

    name: ClassVar[str] = "synthetic"
    reveals: ClassVar[str] = "noisy tables of public columns by value, and what a model makes of them"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.listing not in ("threshold", "table"):
            raise OptionError(f"listing = {self.listing!r} is not known: choose 'threshold' or 'table'.")
        if not 0 < self.delta <= 1e-3:
            raise OptionError(f"delta = {self.delta} is not allowed: choose a probability up to 0.001, such as 1e-6.")

    def layout(self, columns: tuple[str, ...]) -> tuple[Need, ...]:
        """Counts of the public columns by value are asked for, of all sensitive columns together."""
        return (Need(columns, noisy="asked", crossed=True),)

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """From a histogram alone: one table, of the values, for all of the budget, without its noise."""
        check_histogram(histogram, privacy)
        ledger = Ledger(_Nothing())
        budget = budget_of(privacy, histogram, 1, ledger)
        left = budget.epsilon - ledger.epsilon
        ledger.spent.append(Spent("table", "", left))
        shares = np.maximum(histogram.counts, 1) / max(histogram.rows, 1)
        table = LearnedTable(
            (), np.zeros(1, np.int64), left, histogram.counts[None, :], np.zeros((1, histogram.m), np.int64)
        )
        base = np.round(np.log(shares) / ROUNDED).astype(np.int64)
        learned = Learned((), (table,), tuple(ledger.spent), (1.0,), base)
        return plan_of(self, PlannedPart(histogram=histogram, learned=learned), budget, privacy)


# -- Its steps, as publishing takes them: list values, read columns as levels, measure and learn, plan ----------------


def values_listed(
    mechanism: Synthetic, names: Sequence[str], counts: Sequence[Counts], ledger: Ledger, budget: Budget
) -> list[Ints]:
    """The places of the values of each column that are listed, by their noisy counts."""
    cost = Fraction(int(LIST_SHARE * (budget.epsilon - ledger.epsilon) / len(names) * PIECES), PIECES)
    delta = Fraction(str(mechanism.delta)) / (len(names) * budget.together)
    return [ledger.listed(name, mine, cost, delta, budget.together) for name, mine in zip(names, counts, strict=True)]


def codings_for(mechanism: Synthetic, columns: Sequence[ColumnCounts], budget: Budget) -> list[Coding]:
    """How public columns are read: those that ``tables`` names, or all that have more than one value."""
    wanted = None if mechanism.tables is None else {name for names in mechanism.tables for name in names}
    known = {column.name for column in columns}
    for name in wanted or ():
        if name not in known:
            raise OptionError(
                f"tables names {name!r}, which is no public column. Fix: some of {', '.join(sorted(known))}."
            )
    several = [column for column in columns if len(column.values) + (column.missing > 0) > 1]
    seen = [column for column in several if wanted is None or column.name in wanted]
    noise = laplace_variance(budget.epsilon / (2 * max(len(seen), 1))) ** 0.5
    return [coding_of(column, noise) for column in seen]


def learn(
    mechanism: Synthetic, crossed: Crossed, codings: Sequence[Coding], ledger: Ledger, budget: Budget, source: Purpose
) -> tuple[Learned, Dealt]:
    """Measure, learn, deal: what is published of the model, and what each public combination gets."""
    sizes = [coding.size for coding in codings]
    columns = [_dense(Levels(one.column, crossed.codes[:, i], one.size, (i,))) for i, one in enumerate(codings)]
    rows, m = crossed.rows, crossed.counts.shape[1]
    left = budget.epsilon - ledger.epsilon
    plan = _measure(mechanism, rows, columns, [one.ordered for one in codings], m, left)
    tables, smooth = list(map(_dense, plan.tables)), list(map(_dense, plan.smooth))
    costs = measuring.shared(left, plan.weights)
    noisy = [ledger.table(crossed, table, cost) for table, cost in zip(tables, costs, strict=True)]
    require_within(ledger, budget.epsilon)
    variances = [laplace_variance(cost / 2) for cost in costs]
    learner = Learner(rows, tables, noisy, variances, smooth)
    fitted = learner.fit()
    base = np.round(fitted.base / ROUNDED).astype(np.int64)
    fitted = dataclasses.replace(fitted, base=np.asarray(base * ROUNDED, dtype=np.float64))
    published = _published(fitted, [*tables, *smooth], noisy, costs, crossed.codes, sizes)
    counted = Learned(tuple(codings), published, tuple(ledger.spent), tuple(fitted.tau.tolist()), base)
    dealt = dealing.dealt(rows, lambda q: learner.design.shares(fitted, q), tables, m, source)
    return counted, Dealt(crossed.keys, dealt.indptr, dealt.indices.astype(np.int64), dealt.data)


def _measure(
    mechanism: Synthetic, rows: Counts, columns: list[Levels], ordered: list[bool], m: int, left: Fraction
) -> measuring.Measure:
    if mechanism.tables is None:
        plan = measuring.default_measure(rows, columns, ordered, m, float(left))
    else:
        place = {column.name: number for number, column in enumerate(columns)}
        named = [[columns[place[name]] for name in names if name in place] for names in mechanism.tables]
        tables = [measuring.together(some) for some in named if some]
        plan = measuring.Measure(tables, [1.0] * len(tables), [])
    if plan.tables:
        return plan
    return measuring.Measure([Levels("", np.zeros(len(rows), np.int64), 1)], [1.0], [])


def plan_of(
    mechanism: Synthetic,
    part: PlannedPart,
    budget: Budget,
    privacy: Privacy | None,
    listed: str = "declared",
    *,
    exempt: bool = False,
) -> Plan:
    """The plan of what was learned.

    Args:
        part: with the model.
        budget, privacy: what was required.
        listed: where the list of values comes from.
        exempt: whether missing values are published as they are.
    """
    assert part.learned is not None
    spent, shared = part.learned.epsilon, budget.instalment
    promise = OddsOfAnyone(
        gamma=budget.gamma,
        epsilon=spent,
        delta=part.learned.delta * budget.together * shared.publications,
        together=budget.together,
        rho1=budget.rho1,
        rho2=budget.rho2,
        listed=listed,
        publications=shared.publications,
        number=shared.number,
    )
    guarantee = Guarantee(
        promises=(promise,),  # type: ignore[arg-type]  # of a kind that a registry names
        adversary="any-prior",
        rho1=budget.rho1,
        rho2=budget.rho2,
        worst=worst_posterior(budget.rho1 or SHOWN_BELIEFS[1], budget.gamma),
        gamma=budget.gamma,
        also=(
            "It is differential privacy for the sensitive values of one person, with the public columns known: for "
            "sets and categories of values as for single ones.",
            *([TOGETHER] if budget.together > 1 else []),
        ),
        not_protected=(PUBLIC_COLUMNS, DISTRIBUTION, LOOKS, NOT_MEASURED, *([EXEMPT_ROWS] if exempt else [])),
    )
    return Plan(mechanism.name, (part,), privacy, guarantee, mechanism.options)


def _dense(levels: Levels) -> Levels:
    """The levels that occur, numbered without gaps."""
    known, codes = np.unique(levels.codes, return_inverse=True)
    return Levels(levels.name, codes.ravel().astype(np.int64), max(len(known), 1), levels.columns)


def _published(
    fitted: Fitted,
    levels: Sequence[Levels],
    noisy: Sequence[Ints],
    costs: Sequence[Fraction],
    codes: Ints,
    sizes: Sequence[int],
) -> tuple[LearnedTable, ...]:
    """Every table of the model with its parameters, measured ones with their counts."""
    ends = np.cumsum([0, *(one.size for one in levels)])
    tables = []
    for number, one in enumerate(levels):
        theta = np.round(fitted.theta[ends[number] : ends[number + 1]] / ROUNDED).astype(np.int64)
        measured = number < len(noisy)
        tables.append(
            dataclasses.replace(
                table_of(one, codes, sizes),
                epsilon=costs[number] if measured else None,
                counts=noisy[number] if measured else None,
                theta=theta,
            )
        )
    return tuple(tables)


class _Nothing:
    """Noise of 0 for plans that nobody publishes: what an owner looks at."""

    def subkey(self, *purpose: str) -> _Nothing:
        return self

    def words(self, start: int, count: int) -> np.ndarray:
        return np.full(count, 2**62, dtype=np.uint64)  # the middle of the lower half: within the first step
