"""What public columns give away: each of them, all together, and who stands out in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from deniable.core.errors import counted
from deniable.core.values import Bools, Codes, Floats, Ints, percent
from deniable.planning.attackers import Shown
from deniable.planning.informed import (
    ENTRIES,
    POWERS,
    Informed,
    InformedAttacker,
    beliefs_of,
    surprise,
)

# -- How well a public column predicts the sensitive value of rows that it was not learnt from -------------------------
# A column's value v says how likely each sensitive value x is, learnt from half of the rows and tried on the other
# half:
#
#     p(x | v) = (n_vx + a p_x) / (n_v + a),     gain = mean of log p(x | v) - log p_x over rows that were not learnt
# from
#
# with a chosen by the rows of the other half. A column that says nothing gains nothing, however many values it has:
# what it seems to say about the rows that it was learnt from is not what it says about others. A gain of more than six
# standard errors is no chance.


ALARM = 6.0  # standard errors
LEAST = 1e-4  # of the uncertainty: less is rounding
DENSE = 4  # pairs of values a row: of more, most never occur
SMOOTHING = (0.5, 2.0, 8.0, 32.0, 128.0, 512.0, 2048.0)


@dataclass(frozen=True)
class Gain:
    """How much less surprising sensitive values are to someone who knows a column.

    Attributes:
        mean, error: nats a row, and the standard error.
        surprise: of someone who knows the frequencies only.
        smoothing: the a that explains other rows best.
    """

    mean: float
    error: float
    surprise: float
    smoothing: float

    @property
    def is_real(self) -> bool:
        return self.mean > max(ALARM * self.error, LEAST * self.surprise)

    @property
    def explained(self) -> float:
        """The share of the uncertainty that is gone."""
        return max(self.mean, 0.0) / self.surprise if self.surprise > 0 else 0.0


def gain_of(codes: Codes, original: Ints, m: int, first: Bools) -> Gain:
    """Learn from each half, try it on the other; ``first`` are the rows of one half."""
    halves = [np.flatnonzero(first), np.flatnonzero(~first)]
    gains, plain = [], []
    for learnt, tried in (halves, halves[::-1]):
        with_value, in_all = _seen(codes, original, m, learnt, tried)
        # As learnt, without smoothing: a column that is always the same must gain exactly nothing.
        share = np.maximum(np.bincount(original[learnt], minlength=m), 0.5)[original[tried]] / len(learnt)
        known = np.log(share)
        plain.append(-known)
        gains.append(np.array([np.log((with_value + a * share) / (in_all + a)) - known for a in SMOOTHING]))
    chosen = [int(np.argmax(gains[1 - side].mean(axis=1))) for side in (0, 1)]  # by the rows of the other half
    every = np.concatenate([gains[0][chosen[0]], gains[1][chosen[1]]])
    error = float(every.std() / np.sqrt(len(every)))
    return Gain(float(every.mean()), error, float(np.concatenate(plain).mean()), SMOOTHING[chosen[0]])


def prior_of(original: Ints, m: int) -> Floats:
    """How frequent each value is among some rows; none is impossible."""
    counts = np.bincount(original, minlength=m) + 0.5
    prior: Floats = counts / counts.sum()
    return prior


def _seen(codes: Codes, original: Ints, m: int, learnt: Ints, tried: Ints) -> tuple[Floats, Floats]:
    """For each row that is tried: rows learnt from with its value of the column; first those with its own result."""
    size = int(codes.max(initial=0)) + 1
    in_all = np.bincount(codes[learnt], minlength=size)[codes[tried]].astype(np.float64)
    keys = codes.astype(np.int64) * m + original
    if size * m <= DENSE * len(keys):
        return np.bincount(keys[learnt], minlength=size * m)[keys[tried]].astype(np.float64), in_all
    known, rows = np.unique(keys[learnt], return_counts=True)
    place = np.minimum(np.searchsorted(known, keys[tried]), max(len(known) - 1, 0))
    there = known[place] == keys[tried]
    return np.where(there, rows[place], 0).astype(np.float64), in_all


# -- Public columns that are functions of the sensitive one, or it of them: an ICD chapter beside an ICD code ----------


DETERMINES = "each of its values has one sensitive value"
FOLLOWS = "each sensitive value has one of its values"
NEARLY_DETERMINES, NEARLY_FOLLOWS = f"nearly {DETERMINES}", f"nearly {FOLLOWS}"
NEARLY_ALL = 0.95  # of the disagreement that independent columns would have is gone
NO_CHANCE = 20.7  # -log of the probability by which chance makes a function: 1e-9


@dataclass(frozen=True, eq=False)
class Meetings:
    """How a public column's values and sensitive ones meet.

    Attributes:
        column, original: the rows of each value of the public column, and of each sensitive one.
        by_column: of each value of the column, the rows with its most frequent sensitive value; all added up.
        by_original: the same the other way round.
    """

    column: Ints
    original: Ints
    by_column: int
    by_original: int

    @classmethod
    def of(cls, codes: Codes, original: Codes) -> Meetings:
        """From the codes of all rows."""
        column, values = np.bincount(codes), np.bincount(original)
        pairs, rows = np.unique(codes.astype(np.int64) * len(values) + original, return_counts=True)
        largest, most = np.zeros(len(column), np.int64), np.zeros(len(values), np.int64)
        if len(pairs):
            np.maximum.at(largest, pairs // len(values), rows)
            np.maximum.at(most, pairs % len(values), rows)
        return cls(column, values, int(largest.sum()), int(most.sum()))

    @property
    def function(self) -> str:
        """Whether one of them is a function of the other, exactly or nearly, and by no chance; empty where not."""
        forth = _agreement(self.column, self.original, self.by_column)
        back = _agreement(self.original, self.column, self.by_original)
        if max(forth, back) < NEARLY_ALL:
            return ""
        exact, nearly = (DETERMINES, NEARLY_DETERMINES) if forth >= back else (FOLLOWS, NEARLY_FOLLOWS)
        return exact if max(forth, back) == 1 else nearly


def functions_of(columns: Mapping[str, Codes], original: Ints) -> dict[str, str]:
    """Columns that determine the sensitive value or follow from it, exactly or nearly, and by no chance."""
    functions = {name: Meetings.of(codes, original).function for name, codes in columns.items()}
    return {name: function for name, function in functions.items() if function}


def _agreement(arguments: Ints, results: Ints, agreeing: int) -> float:
    """How nearly the one column is a function of the other: 1 where it is, 0 where that says nothing, or is chance.

    Rows beyond the first of each argument must agree with its most frequent result; compared with the most frequent
    result of all rows.
    """
    rows = int(arguments.sum())
    again = rows - int((arguments > 0).sum())
    if not again or not _is_no_chance(arguments, results):
        return 0.0
    return 1 - ((rows - agreeing) / again) / (1 - results.max() / rows)


def _is_no_chance(arguments: Ints, results: Ints) -> bool:
    """Whether independent columns with these rows of each value would not be a function from the one to the other."""
    rows = arguments.sum()
    again = rows - (arguments > 0).sum()
    agree = float(((results / rows) ** 2).sum()) if rows else 1.0
    return bool(agree < 1 and again * -np.log(agree) > NO_CHANCE)


# -- Who stands out: how many rows share a combination of columns that an attacker may know, and what that tells -------
#     k = the rows of the smallest combination;   l = the fewest different sensitive values in a combination
#
# A row that is alone in columns that someone knows is found by them. Its sensitive value stays deniable in a release;
# in the table itself it does not.


TELLING = 3  # columns that are named as those that find most rows
STEPS = (2, 3, 5, 10, 20)  # rows in groups smaller than these are counted
DENSE_COMBINATIONS = 2**25  # combinations that are counted in an array, at the most, and for each row; more are sorted
DENSE_BY_ROW = 4


@dataclass(frozen=True)
class Exposure:
    """What a set of columns exposes.

    Attributes:
        rows, groups: how many rows, and how many combinations they have.
        k: the rows of the smallest combination; 0 where there are no rows.
        unique: rows that are alone in their combination.
        below: size -> rows in combinations of fewer rows.
        l: the fewest different sensitive values in a combination; None where no sensitive column was given.
        alike: rows in combinations of two rows or more that all have one sensitive value; None likewise.
        alone_without: column -> rows that would be alone if it were not known.
    """

    rows: int
    groups: int
    k: int
    unique: int
    below: Mapping[int, int]
    l: int | None
    alike: int | None
    alone_without: Mapping[str, int]

    @classmethod
    def of(cls, columns: Mapping[str, Codes], sensitive: Codes | None = None) -> Exposure:
        """From coded columns, and the coded sensitive column."""
        rows = len(next(iter(columns.values()))) if columns else 0
        group = combined(list(columns.values()), rows)
        sizes = np.bincount(group)
        own = sizes[group]
        l, alike = (None, None) if sensitive is None else _diversity(group, sizes, sensitive)
        without = {}
        for name in columns if len(columns) > 1 else ():
            others = combined([codes for other, codes in columns.items() if other != name], rows)
            without[name] = int((np.bincount(others) == 1).sum())
        return cls(
            rows=rows,
            groups=len(sizes),
            k=int(sizes.min(initial=rows)),
            unique=int((sizes == 1).sum()),
            below={size: int((own < size).sum()) for size in STEPS},
            l=l,
            alike=alike,
            alone_without=without,
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            **vars(self),
            "below": {str(size): rows for size, rows in self.below.items()},
            "alone_without": dict(self.alone_without),
        }

    def lines(self) -> list[str]:
        """For people."""
        total = max(self.rows, 1)
        lines = [
            f"{self.unique:,} of {counted(self.rows, 'row')} ({percent(self.unique / total)}) are alone in these "
            f"columns: whoever knows them finds the row. k = {self.k:,}.",
            "Rows in groups of fewer than "
            + ", ".join(f"{size}: {rows:,} ({percent(rows / total)})" for size, rows in self.below.items() if size > 2)
            + ".",
        ]
        if self.l is not None and self.alike is not None:
            lines.append(
                f"l = {self.l:,}; {self.alike:,} rows ({percent(self.alike / total)}) share these columns with others "
                "and have the same sensitive value as all of them."
            )
        if self.alone_without:
            telling = sorted(self.alone_without.items(), key=lambda one: one[1])[:TELLING]
            without = ", ".join(f"{rows:,} without {name}" for name, rows in telling)
            lines.append(f"The columns that find most rows: alone are {without}.")
        return lines


def combined(columns: Sequence[Codes], rows: int) -> Ints:
    """The number of each row's combination of codes, counted from 0 without gaps."""
    total = np.zeros(rows, dtype=np.int64)
    for codes in columns:
        size = int(codes.max(initial=0)) + 1
        total = total * size + codes
        total = _without_gaps(total)
    return total


def _without_gaps(numbers: Ints) -> Ints:
    if int(numbers.max(initial=0)) < min(DENSE_COMBINATIONS, DENSE_BY_ROW * len(numbers)):
        there = np.bincount(numbers) > 0
        places: Ints = (np.cumsum(there) - 1)[numbers]
        return places
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def _diversity(group: Ints, sizes: Ints, sensitive: Codes) -> tuple[int, int]:
    """l, and the rows in groups of several rows that all have one value."""
    if not len(group):
        return 0, 0
    m = int(sensitive.max()) + 1
    pairs = np.unique(group * m + sensitive)
    values = np.bincount(pairs // m, minlength=len(sizes))
    return int(values.min()), int(sizes[(values == 1) & (sizes > 1)].sum())


# -- What public columns give away: each of them, and all together -----------------------------------------------------
# What a column says about others' rows is learnt and tried on rows that it was not learnt from (``gains``). What it
# means for a release is the posterior of an attacker who believes that and sees the published value
# (``attacks.informed``). Columns that tell only together are looked for in pairs, and as one combination of all.


TEMPERED, ATTACKED = 4_000, 8_000  # people, at most
LISTED = 12  # columns, the most telling ones; all of them count together
FEWEST = 40  # rows: of fewer nothing can be learnt
SEED = 2010  # the same table gives the same figures
ALL = "all public columns together"
WITH = " with "  # between the names of a pair
PAIRED, PAIR_ROWS = 12, 20_000  # columns, the smallest ones, and rows that pairs are looked for in
MORE_TOGETHER = 1.5  # times what the two say one by one, and at least this share of the uncertainty:
WORTH = 0.01


@dataclass(frozen=True)
class Giveaway:
    """What one public column, or all together, give away.

    Attributes:
        column: its name, or ``ALL``.
        gain: how well it predicts.
        informed: how sure someone becomes who knows it, with and without the published row.
        function: ``DETERMINES``, ``FOLLOWS``, one of them nearly, or empty.
        carried: the share of the people whose value someone who knows it is sure of without any row (``sure_at``).
    """

    column: str
    gain: Gain
    informed: Informed
    function: str = ""
    carried: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "column": self.column,
            "explained": round(self.gain.explained, 4),
            "standard_errors": round(self.gain.mean / self.gain.error, 1) if self.gain.error > 0 else None,
            "function": self.function or None,
            "carried": round(self.carried, 4),
            **self.informed.to_dict(),
        }


@dataclass(frozen=True)
class Dependence:
    """What the public columns of a release give away about one sensitive column.

    Attributes:
        sensitive: its name.
        columns: the most telling ones that give something away, the worst first; all together come last.
        frequencies: how sure someone becomes who knows the frequencies only.
        rows: how many were looked at, of ``of`` rows.
        rho2: what is required.
        carried: the share of the people whose value the frequencies alone make sure of.
    """

    sensitive: str
    columns: tuple[Giveaway, ...]
    frequencies: Informed
    rows: int
    of: int
    rho2: float | None = None
    carried: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "sensitive": self.sensitive,
            "columns": [one.to_dict() for one in self.columns],
            "frequencies": self.frequencies.to_dict(),
            "rows": self.rows,
            "of": self.of,
        }


def dependence(
    sensitive: str,
    columns: Mapping[str, Codes],
    original: Ints,
    m: int,
    shown: Shown,
    rho2: float | None,
    *,
    functions: Mapping[str, str] | None = None,
    classes: Mapping[str, Codes] | None = None,
    of: int | None = None,
    entries: int = ENTRIES,
    prior: Floats | None = None,
    counted: Bools | None = None,
) -> Dependence | None:
    """What public columns give away; None where they say nothing.

    Args:
        sensitive: the name of the sensitive column.
        columns: public columns of some rows, coded 0, 1, ..
        original: the sensitive values of these rows, of ``m``.
        m: how many values there are.
        shown: what a published row shows.
        rho2: what is required.
        functions: columns that are functions in one way or the other, as all rows show; left out, as these rows do.
        classes: columns of numbers in classes, to be learnt from where that says more than single numbers do.
        of: how many rows there are, where these are a sample.
        entries: beliefs that are held at once, people x values.
        prior: the frequencies that attackers know; left out, they learn them from some of these rows.
        counted: which values are protected: people of another one are learnt from, and nobody is asked about them.
    """
    if len(original) < FEWEST or not columns or m < 2:
        return None
    exact = functions_of(columns, original) if functions is None else functions
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(original))
    first = np.zeros(len(original), dtype=bool)
    first[order[: len(order) // 2]] = True
    gains = {name: gain_of(codes, original, m, first) for name, codes in columns.items()}
    columns = dict(columns)
    for name, codes in (classes or {}).items():
        coarse = gain_of(codes, original, m, first)
        if coarse.mean > gains[name].mean:
            columns[name], gains[name] = codes, coarse
    together = combined(list(columns.values()), len(original))
    joint = gain_of(together, original, m, first)
    for name, codes in _pairs(columns, gains, original, m, first).items():
        columns[name], gains[name] = codes, gain_of(codes, original, m, first)
    telling = [name for name in columns if gains[name].is_real or name in exact]
    if not telling and not joint.is_real:
        return None
    judge = _Judge.of(original, m, order, shown, rho2, entries, prior, counted)
    if not len(judge.attacked):
        return None
    telling.sort(key=lambda name: (name not in exact, -gains[name].mean))
    giveaways = []
    for place, name in enumerate(telling):
        ratios = judge.learn(columns[name], gains[name].smoothing, alone=WITH in name)
        if place < LISTED:
            sure = judge.sure(ratios), exact.get(name, ""), judge.carried(ratios)
            giveaways.append(Giveaway(name, gains[name], *sure))
    if len(columns) > 1:
        if joint.is_real:
            judge.learn(together, joint.smoothing, alone=True)
        best = max([joint, *gains.values()], key=lambda one: one.mean)
        ratios = judge.best_ratios()
        giveaways.append(Giveaway(ALL, best, judge.sure(ratios), carried=judge.carried(ratios)))
    blind = np.zeros_like(judge.total)
    people, known = (len(original), of or len(original)), (rho2, judge.carried(blind))
    return Dependence(sensitive, tuple(giveaways), judge.sure(blind), *people, *known)


def _pairs(
    columns: Mapping[str, Codes], gains: Mapping[str, Gain], original: Ints, m: int, first: Bools
) -> dict[str, Codes]:
    """Pairs of columns that say far more together than one by one; looked for in some rows, among the smallest."""
    sizes = {name: int(codes.max(initial=0)) + 1 for name, codes in columns.items()}
    some = slice(0, PAIR_ROWS)
    pairs = {}
    smallest = sorted(sizes, key=lambda name: sizes[name])[:PAIRED]
    for one, other in combinations([name for name in columns if name in smallest], 2):
        if min(sizes[one], sizes[other]) < 2 or sizes[one] * sizes[other] * 4 > min(len(original), PAIR_ROWS):
            continue
        both = columns[one].astype(np.int64) * sizes[other] + columns[other]
        gain = gain_of(both[some], original[some], m, first[some])
        alone = max(gains[one].mean, 0) + max(gains[other].mean, 0)
        if gain.is_real and gain.explained > WORTH and gain.mean > MORE_TOGETHER * alone:
            pairs[f"{one}{WITH}{other}"] = both
    return pairs


@dataclass(eq=False)
class _Judge:
    """How sure attackers become of some people; others decide how much weight their knowledge deserves.

    What columns say is added up as they are looked at: log p(x | v) - log p_x, [people, values].
    """

    original: Ints
    learnt: Ints
    tempered: Ints
    attacked: Ints
    prior: Floats
    shown: Shown
    rho2: float | None
    total: Floats
    best: tuple[float, Floats] | None = None

    @classmethod
    def of(
        cls,
        original: Ints,
        m: int,
        order: Ints,
        shown: Shown,
        rho2: float | None,
        entries: int,
        prior: Floats | None,
        counted: Bools | None,
    ) -> _Judge:
        learnt, others = np.split(order, [len(order) // 2])
        most = max(20, entries // m)
        tempered, attacked = np.split(others, [min(TEMPERED, len(others) // 2)])
        if counted is not None:
            attacked = attacked[counted[original[attacked]]]
        tempered, attacked = tempered[: most // 2], attacked[: min(ATTACKED, most)]
        total = np.zeros((len(tempered) + len(attacked), m))
        prior = prior_of(original[learnt], m) if prior is None else prior
        return cls(original, learnt, tempered, attacked, prior, shown, rho2, total)

    def learn(self, codes: Codes, smoothing: float, *, alone: bool = False) -> Floats:
        """What one column says; where it stands for several it is not added up with them."""
        ratios = self._ratios(codes, smoothing)
        if not alone:
            self.total += ratios
        self._note(ratios)
        return ratios

    def best_ratios(self) -> Floats:
        """What all columns say: their sum, weighed, or the best of them alone."""
        for power in POWERS:
            self._note(power * self.total)
        assert self.best is not None
        return self.best[1]

    def _note(self, ratios: Floats) -> None:
        beliefs = beliefs_of(np.log(self.prior) + ratios[: len(self.tempered)])
        surprised = surprise(beliefs, self.original[self.tempered])
        if self.best is None or surprised < self.best[0]:
            self.best = surprised, ratios

    def sure(self, ratios: Floats) -> Informed:
        """How sure one becomes who knows this."""
        attacker = InformedAttacker(self._beliefs(ratios), self.original[self.attacked])
        return attacker.against(self.shown, self.rho2, np.random.default_rng(SEED))

    def carried(self, ratios: Floats) -> float:
        """The share of the people whose value one is sure of who knows this, and sees no row."""
        own = self._beliefs(ratios)[np.arange(len(self.attacked)), self.original[self.attacked]]
        return float((own > sure_at(self.rho2)).mean())

    def _beliefs(self, ratios: Floats) -> Floats:
        return beliefs_of(np.log(self.prior) + ratios[len(self.tempered) :])

    def _ratios(self, codes: Codes, smoothing: float) -> Floats:
        m, learnt = len(self.prior), self.learnt
        used, own = np.unique(codes[np.concatenate([self.tempered, self.attacked])], return_inverse=True)
        place = np.minimum(np.searchsorted(used, codes[learnt]), len(used) - 1)
        there = used[place] == codes[learnt]
        counts = np.bincount(place[there] * m + self.original[learnt][there], minlength=len(used) * m)
        rows = counts.reshape(len(used), m).astype(np.float64)
        belief = (rows + smoothing * self.prior) / (rows.sum(axis=1, keepdims=True) + smoothing)
        ratios: Floats = (np.log(belief) - np.log(self.prior))[own]
        return ratios


# -- Which public columns carry the sensitive value --------------------------------------------------------------------
# A column carries it where knowing the column alone makes sure of the value, and the frequencies do not: half of what
# rho2 leaves deniable is gone before any row is seen. What people of a kind have in common is no such thing: it is
# known without the release. A column that is a function of the sensitive one, or it of that, carries it where it brings
# people above rho2 who were not.


CARRIED = 0.05  # of the people: so many more than by the frequencies
UNSTATED = 0.5  # what counts as rho2 where none is required


def sure_at(rho2: float | None) -> float:
    """The belief from which on someone is sure of a value."""
    return (1 + (UNSTATED if rho2 is None else rho2)) / 2


def carriers(dependence: Dependence) -> list[Giveaway]:
    """The columns that carry the sensitive value, the worst first; all together only where no single one does.

    A pair of which one carries it alone says nothing new.
    """
    single = [one for one in dependence.columns if one.column != ALL and _carries(one, dependence)]
    named = {one.column for one in single if WITH not in one.column}
    single = [one for one in single if WITH not in one.column or not named & set(one.column.split(WITH))]
    if single:
        return sorted(single, key=lambda one: -carried_by(one, dependence))
    return [one for one in dependence.columns if one.column == ALL and _carries(one, dependence)]


def carried_by(one: Giveaway, dependence: Dependence) -> float:
    """The share of the people whose value a column makes sure of, beyond those whose value the frequencies do."""
    return one.carried - dependence.carried


def _carries(one: Giveaway, dependence: Dependence) -> bool:
    more = carried_by(one, dependence)
    if one.function and not math.isnan(one.informed.after.above_rho2):
        more = max(more, one.informed.after.above_rho2 - dependence.frequencies.after.above_rho2)
    return more >= CARRIED
