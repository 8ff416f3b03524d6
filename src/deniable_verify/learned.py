"""Values dealt from a model: its ledger, its tables, what was learned from them, and the rows (mathematics 14).

    Pr[s | q] = e^(o_s + sum_t theta_t[g_t(q), s]) / Z_q,    M[g, s] = sum of n_q Pr[s | q] over q in g

What was learned is not learned again, but held to what it has to be: the o are the shares that the noisy tables Y give,
and theta is where

    F = sum (M - Y)^2 / (2 V) + sum theta^2 / (2 tau^2)

cannot fall further: with g its gradient and H = J' V^-1 J + tau^-2 the curvature of its first part and its second, the
fall that twelve steps of conjugate gradients find, g' H^-1 g / 2, is at most F / 200 + 1/2. What was learned from other
tables, exact ones say, is off by the noise of these, ten to a thousand times as much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable_verify.checks import Check
from deniable_verify.numbers import Json, fraction

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNIT = 2.0**-16  # of parameters
MOST_LEVELS = 2**16
NUMBERS = ("table", "level", "value", "count", "theta")
STEPS, FALL, LEAST_FALL = 12, 1 / 200, 0.5
RARE, FLOOR = 2.0, 0.3  # standard deviations of noise
LEAST_TAU, MOST_TAU = 0.01, 3.0
FURTHEST, SPREAD, ROOM, SMALL = 48.0, 0.75, 50.0, 4.0  # rows by which dealing leaves the model
RARELY = math.log(1e9)
CHUNK = 2**22  # numbers of a matrix that are held at a time
MOST_WORK = 4e13  # products
MOST_COMBINATIONS = 2**26
SAID = (
    "how public columns were cut into levels and which tables were chosen for it, and digits of parameters that change "
    "no count by more than noise"
)


def ledger_problems(raw: Json, manifest: Json) -> Iterator[str]:
    """What is wrong with a learned part, the first thing first."""
    public = {column["name"]: column["type"] for column in manifest["columns"] if column["role"] == "public"}
    sizes, names = sizes_of(raw), [one["column"] for one in raw["codings"]]
    if len(set(names)) != len(names) or any(public.get(one["column"]) != one["type"] for one in raw["codings"]):
        yield "the model sees a column twice, or one that is not published"
    if any(size > MOST_LEVELS for size in sizes) or len(raw["tau"]) != len(raw["tables"]):
        yield "a column has too many levels, or not every table of the model has its tau"
    if any(not LEAST_TAU <= tau <= MOST_TAU for tau in raw["tau"]) or (
        manifest.get("tables") is None and manifest["data"]
    ):
        yield "the model has a tau that none is learned with, or no file of its tables"
    measured = [table["epsilon"] is not None for table in raw["tables"]]
    if measured != sorted(measured, reverse=True) or not any(measured):
        yield "measured tables do not come first"
    for table in raw["tables"]:
        columns, places = table["columns"], table["places"]
        if len(set(columns)) != len(columns) or any(not 0 <= column < len(sizes) for column in columns):
            yield "a table of the model is of columns that it does not see"
            return
        if len(places) != math.prod(sizes[column] for column in columns) or len(places) > MOST_LEVELS:
            yield "a table of the model does not say the level of each combination"
            return
        if (there := {place for place in places if place >= 0}) != set(range(len(there))):
            yield "the levels of a table of the model are not numbered without gaps"
    try:
        for line in raw["spent"]:
            if not fraction(line["epsilon"]) > 0 or not 0 <= fraction(line["delta"]) < 1:
                raise ValueError("cost")
        if any(fraction(table["epsilon"]) <= 0 for table in raw["tables"] if table["epsilon"] is not None):
            raise ValueError("cost")
    except (ValueError, ZeroDivisionError):
        yield "a line of the ledger has a cost that is none"


def sizes_of(raw: Json) -> list[int]:
    """How many levels each column has."""
    return [len(one["marks"]) + 1 + int(one["missing"]) for one in raw["codings"]]


def spent_of(raw: Json) -> tuple[Fraction, Fraction]:
    """What everything that was looked at cost together, epsilon and delta, where the value of one row changes."""
    return (
        sum((fraction(line["epsilon"]) for line in raw["spent"]), start=Fraction(0)),
        sum((fraction(line["delta"]) for line in raw["spent"]), start=Fraction(0)),
    )


def numbers_check(raw: Json, m: int, numbers: Mapping[str, Any]) -> list[Check]:
    """The file of tables has a row for every level and value, in the order of table, level and value."""
    sizes = [1, *(size_of(table) for table in raw["tables"])]
    right = all(len(numbers[name]) == sum(sizes) * m for name in NUMBERS)
    if right:
        made = {
            "table": np.repeat(np.arange(-1, len(sizes) - 1), np.array(sizes) * m),
            "level": np.concatenate([np.repeat(np.arange(size), m) for size in sizes]),
            "value": np.tile(np.arange(m), sum(sizes)),
        }
        right = all(np.array_equal(numbers[name], made[name]) for name in made)
        unmeasured = sum(size for size, table in zip(sizes[1:], raw["tables"], strict=True) if table["epsilon"] is None)
        counts = numbers["count"]
        right = right and not counts[:m].any() and not (unmeasured and counts[-unmeasured * m :].any())
    detail = f"{sum(sizes[1:]):,} levels of {len(sizes) - 1} tables by {m:,} values"
    return [Check("table of tables", right, detail if right else "has other levels or values than the manifest says")]


def size_of(table: Json) -> int:
    """How many levels a table has."""
    return max(table["places"], default=-1) + 1


class Combined:
    """Rows by combination of the levels of public columns, and by value."""

    def __init__(self, part: Json) -> None:
        self.raw, self.m = part["learned"], len(part["domain"])
        self.columns = [one["column"] for one in self.raw["codings"]]
        self.sizes = sizes_of(self.raw)
        self._keys: list[Any] = []
        self._times: list[Ints] = []

    def add(self, batch: Mapping[str, pa.Array], states: Ints) -> None:
        """Some rows; those whose value is missing and exempt stand for nothing."""
        codes = [level_codes(one, batch[one["column"]]) for one in self.raw["codings"]]
        rows = np.stack([*codes, states], axis=1).astype(np.int32)
        rows = rows[states < self.m]
        kept, times = np.unique(rows, axis=0, return_counts=True)
        self._keys.append(kept)
        self._times.append(times)
        if sum(map(len, self._keys)) > MOST_COMBINATIONS:
            self._merge()

    def _merge(self) -> None:
        keys = np.concatenate(self._keys) if self._keys else np.zeros((0, len(self.sizes) + 1), np.int32)
        known, place = np.unique(keys, axis=0, return_inverse=True)
        times = np.bincount(place.ravel(), weights=np.concatenate([*self._times, []]), minlength=len(known))
        self._keys, self._times = [known], [times.astype(np.int64)]

    def close(self) -> None:
        """Count combinations: their levels, their rows, and how many of these have each value, as triples."""
        self._merge()
        known, times = self._keys[0], self._times[0]
        self.codes, self.place = np.unique(known[:, :-1], axis=0, return_inverse=True)
        if known.shape[1] == 1:
            self.codes, self.place = np.zeros((1, 0), np.int32), np.zeros(len(known), np.int64)
        self.place, self.value, self.times = self.place.ravel(), known[:, -1].astype(np.int64), times
        self.rows = np.bincount(self.place, weights=times, minlength=len(self.codes))

    def levels(self) -> list[Ints]:
        """The level of each combination in each table."""
        made = []
        for table in self.raw["tables"]:
            at = np.zeros(len(self.codes), np.int64)
            for column in table["columns"]:
                at = at * self.sizes[column] + self.codes[:, column]
            made.append(np.array(table["places"])[at])
        return made


def level_codes(coding: Json, column: pa.Array) -> Ints:
    """The level of every row: numbers and dates by edges, other values by name; missing ones have the last."""
    from deniable_verify.folder import array_of, flat

    marks = array_of(coding["marks"], column.type)
    gone = flat(pc.is_null(column, nan_is_null=True))
    if coding["ordered"]:
        numbers, edges = as_numbers(column), as_numbers(marks)
        levels = np.searchsorted(edges, numbers, side="right").astype(np.int64)
    else:
        levels = flat(pc.index_in(column, value_set=marks).fill_null(len(marks))).astype(np.int64)
    levels[gone] = len(marks) + int(coding["missing"])
    return levels


def as_numbers(column: pa.Array) -> Any:
    """Numbers, dates and times as numbers in their order."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = (column.cast(pa.int32()) if kind.bit_width == 32 else column).cast(pa.int64())
    elif not pa.types.is_integer(kind):
        column = column.cast(pa.float64())
    from deniable_verify.folder import flat

    return flat(column.fill_null(0))


# -- The model ---------------------------------------------------------------------------------------------------------


class Model:
    """What was learned, its tables, and the sums that both are compared by.

    Values too rare for any table to tell of share their parameters: they are one value here (``together``), whose noise
    and share are those of all of them.
    """

    def __init__(self, raw: Json, combined: Combined, numbers: Mapping[str, Any]) -> None:
        m, levels = combined.m, combined.levels()
        sizes = [size_of(table) for table in raw["tables"]]
        self.rows, self.offsets = combined.rows, np.cumsum([0, *sizes])
        self.at = np.stack([level + start for level, start in zip(levels, self.offsets, strict=False)], axis=1)
        theta = np.asarray(numbers["theta"]) * UNIT
        self.base, self.theta = theta[:m], theta[m:].reshape(-1, m)
        epsilons = [float(fraction(table["epsilon"]) / 2) for table in raw["tables"] if table["epsilon"] is not None]
        variances = [2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2 for epsilon in epsilons]
        self.seen = int(self.offsets[len(epsilons)])
        self.noisy = np.asarray(numbers["count"], dtype=np.float64)[m : m + self.seen * m].reshape(-1, m)
        self.variance = np.repeat(variances, sizes[: len(epsilons)])
        self.tau = np.repeat(raw["tau"], sizes)
        weights = [1 / (size * variance) for size, variance in zip(sizes, variances, strict=False)]
        ends = self.offsets[: len(epsilons) + 1]
        counts = sum(
            weight * self.noisy[low:high].sum(axis=0)
            for weight, low, high in zip(weights, ends, ends[1:], strict=False)
        ) / sum(weights)
        shares = np.maximum(counts, FLOOR / math.sqrt(sum(weights)))
        self.shares = shares / shares.sum()
        self.work = float(len(self.rows)) * m * int(self.offsets[-1])

    def probabilities(self, theta: Floats, base: Floats, at: Any) -> Any:
        """Pr[s | q] of some combinations."""
        z = np.repeat(base[None, :].astype(np.float32), len(at), axis=0)
        for column in at.T:
            z += theta[column].astype(np.float32)
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        return z

    def pieces(self, m: int) -> Iterator[slice]:
        """Combinations, some at a time."""
        step = max(CHUNK // max(m, int(self.offsets[-1])), 1)
        for start in range(0, len(self.rows), step):
            yield slice(start, start + step)

    def added(self, at: Any, numbers: Any) -> Floats:
        """Numbers of combinations added up by level."""
        member = np.zeros((int(self.offsets[-1]), len(at)), np.float32)
        for column in at.T:
            member[column, np.arange(len(at))] = 1
        total: Floats = (member @ numbers).astype(np.float64)
        return total

    def expected(self, theta: Floats, base: Floats) -> Floats:
        """M [levels, values]."""
        total = np.zeros((len(theta), len(base)))
        for some in self.pieces(len(base)):
            at = self.at[some]
            total += self.added(at, self.probabilities(theta, base, at) * self.rows[some, None].astype(np.float32))
        return total

    def moved(self, theta: Floats, base: Floats, by: Floats) -> Floats:
        """How M moves with theta, J by: J is symmetric."""
        total = np.zeros_like(by)
        for some in self.pieces(len(base)):
            at = self.at[some]
            p = self.probabilities(theta, base, at)
            u = np.zeros_like(p)
            for column in at.T:
                u += by[column].astype(np.float32)
            u -= (p * u).sum(axis=1, keepdims=True)
            u *= p * self.rows[some, None].astype(np.float32)
            total += self.added(at, u)
        return total

    def together(self) -> tuple[Floats, Floats, Floats, Floats]:
        """theta, base, noisy counts and their variances, with the rare values as one."""
        m = len(self.base)
        rare = np.exp(self.base) * self.rows.sum() < RARE * math.sqrt(self.variance.min())
        own = np.where(rare, int((~rare).sum()), np.cumsum(~rare) - 1) if rare.sum() > 1 else np.arange(m)
        first = np.unique(own, return_index=True)[1]
        if not np.array_equal(self.theta[:, first][:, own], self.theta):
            raise ValueError("rare values do not share their parameters")
        pool = np.zeros((m, len(first)))
        pool[np.arange(m), own] = 1
        variance = self.variance[:, None] * pool.sum(axis=0)
        return self.theta[:, first], np.log(np.exp(self.base) @ pool), self.noisy @ pool, variance

    def fall(self) -> tuple[float, float]:
        """By how much F can still fall, by twelve steps of conjugate gradients, and F."""
        theta, base, noisy, variance = self.together()
        prior = 1 / self.tau[:, None] ** 2
        expected = self.expected(theta, base)
        miss = np.zeros_like(theta)
        miss[: self.seen] = (expected[: self.seen] - noisy) / variance
        value = float((miss[: self.seen] ** 2 * variance).sum() + (prior * theta**2).sum()) / 2
        gradient = self.moved(theta, base, miss) + prior * theta
        size = self.added_rows()[:, None]
        diagonal = (expected * (1 - np.minimum(expected / np.maximum(size, 1), 0.9))) ** 2 / variance.mean(axis=0)
        scale = 1 / (diagonal + prior)
        found, rest = np.zeros_like(theta), gradient.copy()
        along = scale * rest
        product = float((rest * along).sum())
        for _ in range(STEPS):
            if product <= 0:
                break
            pulled = np.zeros_like(along)
            pulled[: self.seen] = self.moved(theta, base, along)[: self.seen] / variance
            curved = self.moved(theta, base, pulled) + prior * along
            length = product / float((along * curved).sum())
            found, rest = found + length * along, rest - length * curved
            scaled = scale * rest
            before, product = product, float((rest * scaled).sum())
            along = scaled + product / before * along
        return float((gradient * found).sum()) / 2, value

    def added_rows(self) -> Floats:
        """The rows of every level."""
        sizes = np.zeros(int(self.offsets[-1]))
        for column in self.at.T:
            np.add.at(sizes, column, self.rows)
        return sizes


def model_checks(part: Json, combined: Combined, numbers: Mapping[str, Any] | None) -> Iterator[Check]:
    """The model against its tables, and the rows against the model."""
    raw = part["learned"]
    if numbers is None or not all(check.holds for check in numbers_check(raw, combined.m, numbers)):
        return
    model = Model(raw, combined, numbers)
    if (model.at < model.offsets[:-1]).any():
        yield Check("levels", False, "a row has levels that a table of the model does not have")
        return
    if model.work * STEPS > MOST_WORK:
        yield Check(
            "learning", None, f"{len(model.rows):,} combinations are too many to compute the model for them here"
        )
        return
    yield base_check(model)
    yield learning_check(model)
    yield from dealing_check(model, combined)
    yield Check("levels", None, SAID, required=False)


def base_check(model: Model) -> Check:
    """The logarithms of shares are those that the noisy tables give."""
    off = np.abs(np.exp(model.base) / model.shares - 1).max()
    return Check(
        "shares", bool(off < 1e-4), "those of the noisy tables" if off < 1e-4 else "are not those of the tables"
    )


def learning_check(model: Model) -> Check:
    """The parameters are those that are learned from these tables."""
    try:
        fall, value = model.fall()
    except ValueError as problem:
        return Check("learning", False, str(problem))
    most = FALL * value + LEAST_FALL
    detail = f"the objective can fall by {fall:.3g} of {value:.4g}, allowed {most:.3g}"
    wrong = f"the parameters are not those of the noisy tables: {detail}"
    return Check("learning", bool(fall <= most), detail if fall <= most else wrong)


def dealing_check(model: Model, combined: Combined) -> Iterator[Check]:
    """Rows are dealt so that counts of measured tables are the model's to within a few rows, all others to within
    chance."""
    m, columns = combined.m, combined.codes.shape[1]
    pairs = [(a, b) for a in range(columns) for b in range(a)][:45]
    expected = model.expected(model.theta, model.base)[: model.seen]
    counted = np.zeros_like(expected)
    for column in model.at.T[: sum(model.offsets < model.seen)]:
        np.add.at(counted, (column[combined.place], combined.value), combined.times)
    off = np.abs(counted - expected)
    room = SPREAD * float(np.minimum(expected, SMALL).sum()) + ROOM
    furthest, together = float(off.max(initial=0)), float((off**2).sum())
    right = furthest <= FURTHEST and together <= room
    numbers = f"off by {furthest:.3g} rows at most, allowed {FURTHEST:g}, squares {together:.4g}, allowed {room:.4g}"
    yield Check("dealing", right, numbers if right else f"the rows of measured tables are not the model's: {numbers}")
    worst = max((_beyond(model, combined, pair, m) for pair in pairs), default=0.0)
    said = f"groups of two columns are off by {worst:.2f} of what chance explains once in 10^9"
    yield Check("groups", worst <= 1, said if worst <= 1 else f"{said}: rows follow something that the model is not")


def _beyond(model: Model, combined: Combined, pair: Sequence[int], m: int) -> float:
    """How far the furthest count of two columns together by value is from the model's, in parts of chance."""
    key = combined.codes[:, pair[0]].astype(np.int64) * combined.sizes[pair[1]] + combined.codes[:, pair[1]]
    known, group = np.unique(key, return_inverse=True)
    group = group.ravel()
    often = RARELY + math.log(2 * len(known) * m * 45)
    expected, variance, counted = (np.zeros((len(known), m)) for _ in range(3))
    for some in model.pieces(m):
        p = model.probabilities(model.theta, model.base, model.at[some]).astype(np.float64)
        rows = model.rows[some, None]
        np.add.at(expected, group[some], p * rows)
        np.add.at(variance, group[some], p * (1 - p) * rows)
    np.add.at(counted, (group[combined.place], combined.value), combined.times)
    return float((np.abs(counted - expected) / (np.sqrt(2 * variance * often) + often / 3)).max(initial=0))
