"""Measuring: exact noise in whole numbers, exact choices, exact thresholds, and what each of them costs (mathematics
14.1).

Two tables are neighbours when one person's sensitive value differs: two entries of a table of counts move by one. So
discrete Laplace noise of e in each entry costs 2e a table, and costs add up. Every number here is an integer or a
fraction: where the first digits of a uniform number do not decide what is drawn, more digits are read until they do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Protocol

import numpy as np

from deniable.core.errors import OptionError
from deniable.core.values import Counts, Floats, Ints, Words

DIGIT = 64  # bits of a word
GUARD = 32  # bits that a bound is computed with beyond those that are asked for
LEAST, MOST = Fraction(1, 100_000), Fraction(40)  # epsilon of one entry: 4,600,000 thresholds, and one
BLOCK = 1 << 20  # entries drawn at a time
FINE = 26  # levels of an ordered column that are measured; more become bands of about as many rows
RARE = 12.0  # standard deviations of noise: a level of fewer rows is merged with the other rare ones
JOINED = 0.7  # what it is worth to measure columns together, where rows are KNOWN times noise and root of values
KNOWN = 700.0
PIECES = 2**40  # an epsilon is a whole number of them


class Source(Protocol):
    """Uniform bits as a function of their position: a keystream."""

    def words(self, start: int, count: int) -> Words:
        """Words start, start + 1, ... start + count - 1, of 64 bits each."""
        ...


@dataclass(frozen=True, eq=False)
class Levels:
    """A function g of the public columns: the level of each public combination.

    Attributes:
        name: for people.
        codes: the level of every combination.
        size: how many levels there are.
        columns: the places of the public columns that decide it.
    """

    name: str
    codes: Ints
    size: int
    columns: tuple[int, ...] = ()


def exp_minus(x: Fraction, bits: int) -> tuple[int, int]:
    """Whole numbers around e^-x 2^bits, x >= 0, at most a few apart.

    >>> exp_minus(Fraction(1), 10), 1024 / math.e
    ((376, 377), 376.70854775955695)
    """
    if x > bits:  # less than 1
        return 0, 1
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    precision = bits + 2 * halvings + GUARD
    y = (x.numerator << precision) // (x.denominator << halvings)  # at most 1/2, rounded down by less than 1
    term, total, i = 1 << precision, 1 << precision, 0
    while term:  # each term is below the exact one by less than 2
        i += 1
        term = (term * y >> precision) // i
        total += -term if i % 2 else term
    low, high = total - 2 * i - 3, total + 2 * i + 2
    for _ in range(halvings):
        low, high = low * low >> precision, (high * high >> precision) + 1
    return max(low, 0) >> precision - bits, (high >> precision - bits) + 1


def epsilon_of(gamma: Fraction) -> Fraction:
    """The largest multiple of 2^-40 that is no more than ln gamma: what may be spent under an amplification.

    >>> epsilon = epsilon_of(Fraction(12, 5)); float(epsilon), math.log(12 / 5)
    (0.8754687373530032, 0.8754687373538999)
    """
    if gamma <= 1:
        return Fraction(0)
    pieces = int(math.log(gamma) * PIECES) + 2
    while not is_within(Fraction(pieces, PIECES), gamma):
        pieces -= 1
    return Fraction(pieces, PIECES)


def is_within(epsilon: Fraction, gamma: Fraction) -> bool:
    """Whether e^epsilon <= gamma, decided exactly; a tie does not occur, since e to a fraction is no fraction."""
    if epsilon <= 0:
        return gamma >= 1
    bits = DIGIT
    while True:
        low, high = exp_minus(epsilon, bits)
        if low * gamma.numerator >= gamma.denominator << bits:
            return True
        if high * gamma.numerator < gamma.denominator << bits:
            return False
        bits *= 2


def shared(epsilon: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """A budget in parts that go as weights, each a multiple of 2^-40, together never more than the whole.

    >>> [round(float(part), 6) for part in shared(Fraction(1), [1, 3])], sum(shared(Fraction(1), [1, 1, 1])) <= 1
    ([0.25, 0.75], True)
    """
    whole = [round(weight / max(weights) * 2**20) for weight in weights]
    return [Fraction(int(epsilon * PIECES * part / sum(whole)), PIECES) for part in whole]


def discrete_laplace(source: Source, size: int, epsilon: Fraction, digit: int = DIGIT) -> Ints:
    """Noise with P(k) = (1-a)/(1+a) a^|k|, a = e^-epsilon, exactly, given uniform bits.

        Pr[noise >= k] = Pr[noise <= -k] = T_k = a^k / (1+a),   k >= 1

    A word holds the first digits of a uniform number u; its first bit chooses the side (u or 1-u below 1/2), and the
    noise is the number of T_k above. Where a word equals the first digits of some T_k, further words decide; they come
    after the first ``size`` ones, in the order of the entries that need them.

    Args:
        source: the uniform bits.
        size: how many draws.
        epsilon: of one entry, exactly.
        digit: bits of each word that are used; fewer than 64 for enumerating all of them.
    """
    if not LEAST <= epsilon <= MOST:
        raise OptionError(
            f"epsilon = {float(epsilon):.3g} of one count is not allowed: choose {float(LEAST):g} to {float(MOST):g}. "
            "Fix: measure fewer tables, or allow a larger epsilon."
        )
    floors = _floors(epsilon, digit)
    noise = np.empty(size, dtype=np.int64)
    undecided: list[tuple[int, int]] = []
    for start in range(0, size, BLOCK):
        words = source.words(start, min(BLOCK, size - start)) >> np.uint64(DIGIT - digit)
        upper = words >> np.uint64(digit - 1) != 0
        words = np.where(upper, ~words & np.uint64(2**digit - 1), words)
        below = np.searchsorted(floors, words, side="right")
        reached = len(floors) - below
        noise[start : start + len(words)] = np.where(upper, reached, -reached)
        same = (floors[np.maximum(below - 1, 0)] == words) & (below > 0) | (words == 0)
        undecided += [(start + int(i), int(words[i])) for i in np.flatnonzero(same)]
    further = _further(source, size, digit)
    for entry, first in undecided:
        side = 1 if int(source.words(entry, 1)[0]) >> DIGIT - 1 else -1
        noise[entry] = side * _reached(first, digit, epsilon, further, mirrored=side > 0)
    return noise


def noisy(source: Source, counts: Counts, cost: Fraction) -> Ints:
    """A table of counts with noise, for a cost in all: half of it in each entry, since one person moves two."""
    return counts + discrete_laplace(source, counts.size, cost / 2).reshape(counts.shape)


def laplace_variance(epsilon: Fraction) -> float:
    """The variance of discrete Laplace noise, 2 a / (1-a)^2 with a = e^-epsilon.

    >>> round(laplace_variance(Fraction(1)), 4)
    1.8413
    """
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


def _further(source: Source, position: int, digit: int) -> Iterator[int]:
    while True:
        yield int(source.words(position, 1)[0]) >> DIGIT - digit
        position += 1


def _reached(first: int, bits: int, epsilon: Fraction, further: Iterator[int], *, mirrored: bool) -> int:
    """The number of T_k above a uniform number whose first digits are known, reading more until they decide."""
    digit, known = bits, first
    while True:
        low, high = 0, 1  # T_low is above; T_high is not, once the doubling stops
        while (above := _is_above(high, epsilon, known, bits)) is True:
            low, high = high, 2 * high
        while above is not None and high - low > 1:
            middle = (low + high) // 2
            above = _is_above(middle, epsilon, known, bits)
            low, high = (middle, high) if above else (low, middle)
        if above is not None:
            return low
        word = next(further)
        known = known << digit | (~word & 2**digit - 1 if mirrored else word)
        bits += digit


def _is_above(k: int, epsilon: Fraction, known: int, bits: int) -> bool | None:
    """Whether T_k is above every number that begins with these bits, or above none of them; None where some are."""
    low, high = _tail(k, epsilon, bits)
    return True if low > known else False if high <= known else None


def _tail(k: int, epsilon: Fraction, bits: int) -> tuple[int, int]:
    """Whole numbers around T_k 2^bits."""
    precision = bits + GUARD
    power_low, power_high = exp_minus(k * epsilon, precision)
    a_low, a_high = exp_minus(epsilon, precision)
    one = 1 << precision
    low = (power_low << bits) // (one + a_high)
    return low, -(-(power_high << bits) // (one + a_low))


@lru_cache(maxsize=16)
def _floors(epsilon: Fraction, digit: int) -> Words:
    """floor(T_k 2^digit) for k = 1, 2, ... until it is 0, in rising order."""
    guard = GUARD
    while True:
        guard *= 2
        precision = digit + guard
        low, high = exp_minus(epsilon, precision)
        one = 1 << precision
        tail_low, tail_high = (low << precision) // (one + high), -(-(high << precision) // (one + low))
        floors = []
        while tail_high >> guard and tail_high >> guard == tail_low >> guard:
            floors.append(tail_low >> guard)
            tail_low, tail_high = tail_low * low >> precision, (tail_high * high >> precision) + 1
        if tail_high >> guard == 0:
            return np.array(floors[::-1] or [0], dtype=np.uint64)


def choose(source: Source, scores: Sequence[int], epsilon: Fraction, sensitivity: int, digit: int = DIGIT) -> int:
    """One of some candidates by the exponential mechanism, exactly: Pr[i] ~ e^(epsilon q_i / (2 sensitivity)).

    Args:
        source: the uniform bits.
        scores: q_i, whole numbers; one person moves each by at most ``sensitivity``.
        epsilon: what the choice costs.
        sensitivity: see ``scores``.
        digit: bits of each word that are used.
    """
    rate, best = epsilon / (2 * sensitivity), max(scores)
    further, known, bits = _further(source, 0, digit), 0, 0
    while True:
        known, bits = known << digit | next(further), bits + digit
        precision = bits + GUARD
        of_score = {score: exp_minus(rate * (best - score), precision) for score in set(scores)}
        bounds = [of_score[score] for score in scores]
        total_low, total_high = sum(low for low, _ in bounds), sum(high for _, high in bounds)
        before_low = before_high = 0
        for place, (low, high) in enumerate(bounds):
            last = place == len(bounds) - 1
            if known * total_low >= before_high << bits and (
                last or (known + 1) * total_high <= before_low + low << bits
            ):
                return place
            before_low, before_high = before_low + low, before_high + high


def least_listed(epsilon: Fraction, delta: Fraction) -> int:
    """The smallest T with Pr[1 + noise > T] <= delta: a value of one row exceeds it with at most that probability.

    >>> least_listed(Fraction(1), Fraction(1, 10**6))
    14
    """
    bits = DIGIT + delta.denominator.bit_length()

    def is_rare(threshold: int) -> bool:
        return _tail(threshold, epsilon, bits)[1] * delta.denominator <= delta.numerator << bits

    low, high = 0, 1
    while not is_rare(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_rare(middle) else (middle, high)
    return high


def misfit_score(counts: Counts, expected: Ints) -> int:
    """How much a table of counts differs from what a model expects, sum |counts - expected|.

    One person moves two entries by one, so the score by at most ``MISFIT_SENSITIVITY``; ``expected`` are whole numbers
    that follow from what was published.
    """
    return int(np.abs(counts - expected).sum())


MISFIT_SENSITIVITY = 2


@dataclass(frozen=True)
class Measure:
    """What is measured by default: every column in one table, alone or together with others.

    Attributes:
        tables: the levels of every table.
        weights: its part of the budget.
        smooth: coarser levels of some tables, parameters beside the tables' own that cost nothing.
    """

    tables: list[Levels]
    weights: list[float]
    smooth: list[Levels]


def default_measure(
    rows: Counts, columns: Sequence[Levels], ordered: Sequence[bool], values: int, epsilon: float
) -> Measure:
    """What to measure, by public columns alone; each column brings an equal part of the budget to its table.

    An ordered column with many levels is measured in bands of about as many rows, which a smooth prior connects; of any
    other, levels too rare for the noise are merged. Then columns with few levels are measured together (``joined``).
    """
    if not columns:
        return Measure([], [], [])
    noise = math.sqrt(2) * 2 * len(columns) / epsilon
    alone, smooth = [], []
    for column, is_ordered in zip(columns, ordered, strict=True):
        sizes = np.bincount(column.codes, weights=rows, minlength=column.size).astype(np.float64)
        if is_ordered:
            table = _merged(column, bands(sizes, FINE))
            for width in (3, 9):
                if table.size >= 2 * width:
                    size = -(-table.size // width)
                    wide = Levels(f"{column.name} in bands", table.codes // width, size, column.columns)
                    smooth.append(wide)
        else:
            rare = sizes < RARE * noise
            merge = rare if rare.sum() > 1 else np.zeros(column.size, dtype=bool)
            table = _merged(column, np.where(merge, 0, np.cumsum(~merge) - (0 if merge.any() else 1)))
        if table.size > 1:
            alone.append(table)
    known = rows.sum() / (KNOWN * noise * math.sqrt(values))
    groups = joined(rows, alone, JOINED + math.log(max(known, 1e-9)) / 2)
    smooth += [one for group in groups if len(group) > 1 for one in group]
    return Measure([together(group) for group in groups], [len(group) / len(alone) for group in groups], smooth)


def joined(rows: Counts, alone: Sequence[Levels], allowed: float) -> list[tuple[Levels, ...]]:
    """Which columns share a table.

    Of k columns measured together in a table of K levels, with k parts of the budget, the count of a level of a column
    with K_a levels is a sum of K / K_a entries whose noise is a k-th: a variance of K / (K_a k^2) of that of a table of
    its own. The sum of the logarithms over the columns is (k - 1) ln K - 2 k ln k, below 0 for two columns up to
    K = 16; and what the columns do together is known besides, which is worth ``allowed`` a time. Among the groups that
    keep to it, those are joined whose rows spread most evenly over their levels.
    """

    def spread(group: tuple[Levels, ...]) -> float:
        k = len(group)
        return (k - 1) * math.log(math.prod(one.size for one in group)) - 2 * k * math.log(k)

    @cache
    def evenness(group: tuple[Levels, ...]) -> float:
        share = np.bincount(together(group).codes, weights=rows) / max(rows.sum(), 1)
        return -float((share * np.log(np.maximum(share, 1e-300))).sum())

    groups: list[tuple[Levels, ...]] = [(one,) for one in alone]
    while True:
        pairs = [
            (one, other)
            for one, other in itertools.combinations(groups, 2)
            if spread(one + other) - spread(one) - spread(other) <= allowed
        ]
        if not pairs:
            return groups
        one, other = max(pairs, key=lambda pair: evenness(pair[0] + pair[1]))
        groups = [group for group in groups if group not in (one, other)] + [one + other]


def together(columns: Sequence[Levels]) -> Levels:
    """The levels of some columns together."""
    if len(columns) == 1:
        return columns[0]
    codes = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        codes = codes * column.size + column.codes
    name = " x ".join(column.name for column in columns)
    size = math.prod(column.size for column in columns)
    return Levels(name, codes, size, tuple(place for column in columns for place in column.columns))


def _merged(column: Levels, to: Ints) -> Levels:
    return Levels(column.name, to[column.codes].astype(np.int64), int(to.max()) + 1, column.columns)


def bands(sizes: Floats, most: int) -> Ints:
    """Consecutive levels in at most so many bands of about as many rows."""
    if len(sizes) <= most:
        return np.arange(len(sizes))
    middle = (np.cumsum(sizes) - sizes / 2) / max(sizes.sum(), 1)
    return np.unique((middle * most).astype(np.int64), return_inverse=True)[1].astype(np.int64)
