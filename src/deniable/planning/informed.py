"""The informed attacker: someone who has learnt Pr[value | public columns], and then sees the row of a person."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.plan import Plan, PlannedPart
from deniable.core.values import Bools, Codes, Counts, Floats, Ints, percent
from deniable.planning.attackers import ChannelRows, LineUpRows, Shown, column_scores, seen_together
from deniable.planning.pools import CodedTable
from deniable.tables.encoding import Encoded

# -- The informed attacker: someone who has learnt Pr[value | public columns], and then sees the row of a person -------
# What they know beforehand comes from other people of the same population, or from the release itself; each person's
# row is then one more piece of evidence:
#
#     Pr[x | public columns, view]  ~  Pr[x | public columns] Pr[view | x]
#
# No promise of the ``frequency`` adversary is about this attacker, who knows more, so it is measured: how often the
# likeliest value is right, and of how many people the true value is believed above rho2, 1/2 and 90 %; beside the same
# without a release. What is learnt is a naive Bayes classifier, whose columns say the same thing more than once: their
# joint weight is the power of it that explains some people best who are neither learnt from nor attacked.


ENTRIES = 2**22  # beliefs that are held at once: people x values
LEARNT_FROM, TEMPERED, ATTACKED = 200_000, 4_000, 10_000  # people, at most
POWERS = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)
HALF, NEARLY = 0.5, 0.9
POPULATION, RELEASE = "other people", "the release"


@dataclass(frozen=True)
class Sureness:
    """How sure attackers are of the truth, as shares of the people.

    Attributes:
        right: of whom the likeliest value is the true one.
        above_rho2, above_half, above_nearly: of whom the true value is believed above rho2, 1/2 and 90 %; not a number
            where there is no rho2.
    """

    right: float
    above_rho2: float
    above_half: float
    above_nearly: float

    @classmethod
    def of(cls, beliefs: Floats, original: Ints, rho2: float | None) -> Sureness:
        """From beliefs [people, values] that add up to 1."""
        if not len(original):
            return cls(*[float("nan")] * 4)
        return cls.judged(beliefs[np.arange(len(original)), original], beliefs.argmax(1) == original, rho2)

    @classmethod
    def judged(cls, own: Floats, right: Bools, rho2: float | None) -> Sureness:
        """From how much the truth is believed of each of the people, and whether nothing is believed more."""
        sure = [float("nan") if limit is None else float((own > limit).mean()) for limit in (rho2, HALF, NEARLY)]
        return cls(float(right.mean()), *sure)

    def to_dict(self) -> dict[str, float | None]:
        """As JSON has it."""
        return {name: None if math.isnan(number) else round(number, 4) for name, number in vars(self).items()}

    def texts(self) -> list[str]:
        """In per cent: right, above rho2, above 1/2, above 90 %."""
        return ["" if math.isnan(number) else percent(number) for number in vars(self).values()]


SURE = ("right", "above rho2", "above 50 %", "above 90 %")  # the heads of ``texts``
COLUMNS = ("learnt from", *SURE, *(f"{head}, no release" for head in SURE), "people")  # the heads of ``row``


@dataclass(frozen=True)
class Informed:
    """What an informed attacker believes with and without a release.

    Attributes:
        after, before: with the person's row, and without it.
        people: how many were attacked.
        learnt_from: where the attacker's knowledge comes from.
    """

    after: Sureness
    before: Sureness
    people: int
    learnt_from: str = POPULATION

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "learnt_from": self.learnt_from,
            "people": self.people,
            "after": self.after.to_dict(),
            "without": self.before.to_dict(),
        }

    def __str__(self) -> str:
        after, before = self.after.texts(), self.before.texts()
        certain = ", ".join(
            f"{head} of {now} ({then})" for head, now, then in zip(SURE[1:], after[1:], before[1:], strict=True) if now
        )
        return (
            f"Whoever has learnt from {self.learnt_from} which values go with which public columns, and sees a "
            f"person's row, is right about {after[0]} of {self.people:,} people ({before[0]} without the row), and "
            f"sure of the truth {certain}."
        )

    def row(self) -> list[str]:
        """For a table: where the knowledge comes from, how sure with the person's row and without it, people."""
        return [self.learnt_from, *self.after.texts(), *self.before.texts(), f"{self.people:,}"]


@dataclass(frozen=True, eq=False)
class InformedAttacker:
    """Beliefs about some people, before anything is shown of them.

    Attributes:
        beliefs: [people, values], each row adds up to 1.
        original: the true value of each.
        learnt_from: where the beliefs come from.
    """

    beliefs: Floats
    original: Ints
    learnt_from: str = POPULATION

    def against(self, shown: Shown, rho2: float | None, rng: np.random.Generator) -> Informed:
        """What the attacker believes when a row is drawn for everyone; where there are few people, several rows each.

        So how often the attacker is right differs between mechanisms by what they show, and little by chance.
        """
        again = max(1, min(ATTACKED // max(len(self.original), 1), ENTRIES // max(self.beliefs.size, 1)))
        original, people = np.tile(self.original, again), np.tile(np.arange(len(self.original)), again)
        after = shown.judged(self.beliefs, people, shown.draw(original, rng), original)
        return Informed(
            Sureness.judged(*after, rho2) if len(original) else Sureness.of(self.beliefs, self.original, rho2),
            Sureness.of(self.beliefs, self.original, rho2),
            len(self.original),
            self.learnt_from,
        )


def from_population(
    columns: Sequence[Ints], original: Ints, m: int, rng: np.random.Generator
) -> InformedAttacker | None:
    """An attacker who knows other people: half of them, as many as are needed; None where nothing can be learnt.

    Args:
        columns: public columns, coded 0, 1, ..
        original: the true value of each person.
        m: how many values there are.
        rng: chooses who is learnt from, and who is attacked.
    """
    if not columns or len(original) < 4:
        return None
    order = rng.permutation(len(original))
    known, others = order[: min(len(order) // 2, LEARNT_FROM)], order[len(order) // 2 :]
    prior = np.bincount(original[known], minlength=m) + 0.5
    seen = seen_together([column[known] for column in columns], original[known], m, columns)
    return _attacker(columns, original, others, seen, np.eye(m), prior / prior.sum(), POPULATION)


def from_release(
    seen: Sequence[Floats],
    weights: Floats,
    prior: Floats,
    columns: Sequence[Ints],
    original: Ints,
    rng: np.random.Generator,
) -> InformedAttacker | None:
    """An attacker who knows the release: how often its views and columns go together (``seen_together``), and how much
    each view counts for each value (``weights``)."""
    if not columns or len(original) < 4 or not any(rows.any() for rows in seen):
        return None
    return _attacker(columns, original, rng.permutation(len(original)), seen, weights, prior, RELEASE)


def _attacker(
    columns: Sequence[Ints],
    original: Ints,
    others: Ints,
    seen: Sequence[Floats],
    weights: Floats,
    prior: Floats,
    learnt_from: str,
) -> InformedAttacker:
    """Learn, find the power on some of the others, and believe it of some more."""
    m = len(prior)
    most = max(2, ENTRIES // m)
    tempered, attacked = np.split(others[: TEMPERED + ATTACKED], [min(TEMPERED, len(others) // 2)])
    tempered, attacked = tempered[:most], attacked[:most]
    both = np.concatenate([tempered, attacked])
    scores = column_scores(seen, weights, prior, [column[both] for column in columns])
    with np.errstate(divide="ignore"):
        start = np.log(prior)
    first, rest = scores[: len(tempered)], scores[len(tempered) :]
    power = min(POWERS, key=lambda one: surprise(beliefs_of(start + one * first), original[tempered]))
    return InformedAttacker(beliefs_of(start + power * rest), original[attacked], learnt_from)


def beliefs_of(scores: Floats) -> Floats:
    """exp(scores), each row made to add up to 1."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    beliefs: Floats = raised / raised.sum(axis=1, keepdims=True)
    return beliefs


def surprise(beliefs: Floats, original: Ints) -> float:
    """The mean of -log of what was believed of the truth."""
    own = beliefs[np.arange(len(original)), original]
    return float(-np.log(np.maximum(own, 1e-300)).mean()) if len(original) else 0.0


def in_classes(codes: Ints, numbers: Floats | None, most: int, classes: int) -> Ints:
    """A column of many values as a classifier learns from it: numbers in classes of equal size, rare values as one."""
    if numbers is not None:
        edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, classes + 1)[1:-1]))
        return np.searchsorted(edges, numbers, side="right").astype(np.int64)
    return classes_by_code(np.bincount(codes), None, most, classes)[codes].astype(np.int64)


def classes_by_code(rows: Counts, numbers: Floats | None, most: int, classes: int) -> Codes:
    """``in_classes`` of a column of which only the rows of each code are known, and its number: the class of a code."""
    if numbers is None:
        place = np.full(len(rows), most - 1)
        frequent = np.argsort(-rows, kind="stable")[: most - 1]
        place[frequent] = np.arange(len(frequent))
        return place.astype(np.int16)
    edges = np.unique(_quantiles(rows, numbers, np.linspace(0, 1, classes + 1)[1:-1]))
    return np.searchsorted(edges, numbers, side="right").astype(np.int16)


def _quantiles(rows: Counts, numbers: Floats, shares: Floats) -> Floats:
    """Of numbers that occur in so many rows each: what ``np.nanquantile`` says of all rows."""
    there = ~np.isnan(numbers)
    order = np.argsort(numbers[there])
    values, ends = numbers[there][order], np.cumsum(rows[there][order])
    if not len(ends) or not ends[-1]:
        return np.full(len(shares), np.nan)
    position = shares * (ends[-1] - 1)
    below, above = (
        values[np.searchsorted(ends, place, side="right")] for place in (np.floor(position), np.ceil(position))
    )
    parts = position - np.floor(position)
    return np.array([np.quantile(pair, part) for pair, part in zip(np.stack([below, above], 1), parts, strict=True)])


# -- The informed attacker and plans: what someone who has learnt Pr[value | public columns] makes of each mechanism.


SEED = 2010  # the same table gives the same figures
MOST_PEOPLE = 2**20  # that an attacker learns from, or attacks
MANY, CLASSES = 50, 20  # a public column of more values is learnt from in so many classes


def informed_attacker(table: CodedTable) -> InformedAttacker | None:
    """Someone who knows half of the people of a table, and attacks some others; None without public columns.

    Of a large table as many people are looked at as are needed, drawn by chance.
    """
    columns, codes = list(table.columns.values()), table.codes
    if table.rows > MOST_PEOPLE:
        some = spread_rows(table.rows, MOST_PEOPLE, SEED)
        columns, codes = [Encoded(one.values, one.codes[some]) for one in columns], codes[some]
    return attacker_of(columns, codes.astype(np.int64), table.m)


def spread_rows(rows: int, number: int, seed: int) -> Ints:
    """So many rows, one by chance from each of as many stretches of equal length."""
    edges = np.arange(number + 1) * rows // number
    return edges[:-1] + (np.random.default_rng(seed).random(number) * np.diff(edges)).astype(np.int64)


def attacker_of(columns: Sequence[Encoded], original: Ints, m: int) -> InformedAttacker | None:
    """The same from public columns and the code of each row's value."""
    known = [learnt_from(column) for column in columns]
    return from_population(known, original, m, np.random.default_rng(SEED))


def against(attacker: InformedAttacker, plan: Plan) -> Informed:
    """What the attacker makes of the rows that a plan publishes."""
    rho2 = None if plan.privacy is None or plan.privacy.rho2 is None else float(plan.privacy.rho2)
    return attacker.against(shown_by(plan), rho2, np.random.default_rng(SEED))


def shown_by(plan: Plan) -> Shown:
    """What a row of a plan's release shows."""
    return shown_by_part(plan.parts[0])


def shown_by_part(part: PlannedPart) -> Shown:
    """What a row of a release shows of one part, which has a list of values."""
    assert part.histogram is not None
    if part.lineups is not None:
        return LineUpRows(part.lineups)
    published = [cell for number, cell in enumerate(part.cells) if number != part.left_out]
    return ChannelRows.of(
        part.histogram.m,
        [cell.channel for cell in published],
        [part.positions(cell) for cell in published],
        [np.maximum(cell.rows.counts, 1e-9) for cell in published],
        cells_shown=part.cells_published,
    )


def learnt_from(column: Encoded) -> Ints:
    """A public column as attackers learn from it: numbers of many values in classes, rare values of others as one."""
    codes = column.codes.astype(np.int64)
    return codes if column.size <= MANY else in_classes(codes, _numbers(column, codes), MANY, CLASSES)


def classes_of(columns: Mapping[str, Encoded]) -> dict[str, Ints]:
    """Columns of many numbers or dates in classes of equal size: what single numbers are too rare to say."""
    classes = {}
    for name, column in columns.items():
        codes = column.codes.astype(np.int64)
        numbers = _numbers(column, codes) if column.size > CLASSES else None
        if numbers is not None and np.isfinite(numbers).any():
            classes[name] = in_classes(codes, np.where(np.isinf(numbers), np.nan, numbers), MANY, CLASSES)
    return classes


def _numbers(column: Encoded, codes: Ints) -> Floats | None:
    kind = column.values.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = Encoded(column.values.cast(pa.timestamp("s"), safe=False).cast(pa.int64()), column.codes)
        kind = pa.int64()
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    known = pc.cast(column.values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    numbers: Floats = np.append(known, np.nan)[codes]
    return numbers
