"""What public columns give away: how well each of them, and all together, predict the sensitive value of others' rows.

A column's value v says how likely each sensitive value x is, learnt from half of the rows and tried on the other half:

    p(x | v) = (n_vx + a p_x) / (n_v + a),     gain = mean of log p(x | v) - log p_x over rows that were not learnt from

with a chosen by the rows of the other half. A column that says nothing gains nothing, however many values it has: what
it seems to say about the rows that it was learnt from is not what it says about others. A gain of more than six
standard errors is no chance. What it means for a release is then the posterior of an attacker who believes p(x | v) and
sees the published value (``informed``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.audit.attacks.informed import ENTRIES, POWERS, Informed, InformedAttacker, beliefs_of, surprise
from deniable.audit.attacks.shown import Shown
from deniable.audit.exposure import combined
from deniable.core.arrays import Bools, Codes, Floats, Ints

ALARM = 6.0  # standard errors
SMOOTHING = (0.5, 2.0, 8.0, 32.0, 128.0, 512.0, 2048.0)
TEMPERED, ATTACKED = 4_000, 8_000  # people, at most
LISTED = 12  # columns, the most telling ones; all of them count together
FEWEST = 40  # rows: of fewer nothing can be learnt
SEED = 2010  # the same table gives the same figures
ALL = "all public columns together"
DETERMINES = "each of its values has one sensitive value"
FOLLOWS = "each sensitive value has one of its values"
NO_CHANCE = 20.7  # -log of the probability by which chance makes a function: 1e-9


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
        return self.mean > ALARM * self.error

    @property
    def explained(self) -> float:
        """The share of the uncertainty that is gone."""
        return max(self.mean, 0.0) / self.surprise if self.surprise > 0 else 0.0


def gain_of(codes: Codes, original: Ints, m: int, first: Bools) -> Gain:
    """Learn from each half, try it on the other; ``first`` are the rows of one half."""
    halves = [np.flatnonzero(first), np.flatnonzero(~first)]
    gains, plain = [], []
    for learnt, tried in (halves, halves[::-1]):
        prior = prior_of(original[learnt], m)
        with_value, in_all = _seen(codes, original, m, learnt, tried)
        share = prior[original[tried]]
        plain.append(-np.log(share))
        gains.append(np.array([np.log((with_value + a * share) / (in_all + a)) - np.log(share) for a in SMOOTHING]))
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
    known, rows = np.unique(keys[learnt], return_counts=True)
    place = np.minimum(np.searchsorted(known, keys[tried]), max(len(known) - 1, 0))
    there = known[place] == keys[tried]
    return np.where(there, rows[place], 0).astype(np.float64), in_all


@dataclass(frozen=True)
class Functions:
    """Columns that determine the sensitive value, and columns that follow from it (coarser copies)."""

    determine: tuple[str, ...] = ()
    follow: tuple[str, ...] = ()

    def says(self, name: str) -> str:
        return DETERMINES if name in self.determine else FOLLOWS if name in self.follow else ""


def functions_of(columns: Mapping[str, Codes], original: Ints) -> Functions:
    """Which columns are functions of the sensitive value, or it of them, in all of these rows and by no chance.

    Rows beyond the first of each value must agree with it; independent ones do so with the probability sum p^2.
    """
    m = int(original.max(initial=0)) + 1
    determine, follow = [], []
    for name, codes in columns.items():
        pairs = len(np.unique(codes.astype(np.int64) * m + original))
        own, theirs = (np.bincount(values) for values in (codes, original))
        if pairs == (own > 0).sum() and _is_no_chance(own, theirs):
            determine.append(name)
        elif pairs == (theirs > 0).sum() and _is_no_chance(theirs, own):
            follow.append(name)
    return Functions(tuple(determine), tuple(follow))


def _is_no_chance(arguments: Ints, results: Ints) -> bool:
    """Whether independent columns with these rows of each value would not be a function from the one to the other."""
    rows = arguments.sum()
    again = rows - (arguments > 0).sum()
    agree = float(((results / rows) ** 2).sum()) if rows else 1.0
    return bool(agree < 1 and again * -np.log(agree) > NO_CHANCE)


@dataclass(frozen=True)
class Giveaway:
    """What one public column, or all together, give away.

    Attributes:
        column: its name, or ``ALL``.
        gain: how well it predicts.
        informed: how sure someone becomes who knows it, with and without the published row.
        function: ``DETERMINES``, ``FOLLOWS`` or empty.
    """

    column: str
    gain: Gain
    informed: Informed
    function: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "column": self.column,
            "explained": round(self.gain.explained, 4),
            "standard_errors": round(self.gain.mean / self.gain.error, 1) if self.gain.error > 0 else None,
            "function": self.function or None,
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
    """

    sensitive: str
    columns: tuple[Giveaway, ...]
    frequencies: Informed
    rows: int
    of: int

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
    functions: Functions | None = None,
    classes: Mapping[str, Codes] | None = None,
    of: int | None = None,
    entries: int = ENTRIES,
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
    telling = [name for name in columns if gains[name].is_real or name in (*exact.determine, *exact.follow)]
    if not telling and not joint.is_real:
        return None
    judge = _Judge.of(original, m, order, shown, rho2, entries)
    telling.sort(key=lambda name: (not exact.says(name), -gains[name].mean))
    found = []
    for place, name in enumerate(telling):
        ratios = judge.learn(columns[name], gains[name].smoothing)
        if place < LISTED:
            found.append(Giveaway(name, gains[name], judge.sure(ratios), exact.says(name)))
    if len(columns) > 1:
        if joint.is_real:
            judge.learn(together, joint.smoothing, alone=True)
        best = max([joint, *gains.values()], key=lambda one: one.mean)
        found.append(Giveaway(ALL, best, judge.surest()))
    return Dependence(sensitive, tuple(found), judge.frequencies(), len(original), of or len(original))


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
    def of(cls, original: Ints, m: int, order: Ints, shown: Shown, rho2: float | None, entries: int) -> _Judge:
        learnt, others = np.split(order, [len(order) // 2])
        most = max(20, entries // m)
        tempered, attacked = np.split(others, [min(TEMPERED, len(others) // 2)])
        tempered, attacked = tempered[: most // 2], attacked[: min(ATTACKED, most)]
        total = np.zeros((len(tempered) + len(attacked), m))
        return cls(original, learnt, tempered, attacked, prior_of(original[learnt], m), shown, rho2, total)

    def learn(self, codes: Codes, smoothing: float, *, alone: bool = False) -> Floats:
        """What one column says; where it stands for several it is not added up with them."""
        ratios = self._ratios(codes, smoothing)
        if not alone:
            self.total += ratios
        self._note(ratios)
        return ratios

    def surest(self) -> Informed:
        """With what all columns say: their sum, weighed, or the best of them alone."""
        for power in POWERS:
            self._note(power * self.total)
        assert self.best is not None
        return self.sure(self.best[1])

    def frequencies(self) -> Informed:
        """With the frequencies only."""
        return self.sure(np.zeros_like(self.total))

    def _note(self, ratios: Floats) -> None:
        beliefs = beliefs_of(np.log(self.prior) + ratios[: len(self.tempered)])
        surprised = surprise(beliefs, self.original[self.tempered])
        if self.best is None or surprised < self.best[0]:
            self.best = surprised, ratios

    def sure(self, ratios: Floats) -> Informed:
        """How sure one becomes who knows this."""
        beliefs = beliefs_of(np.log(self.prior) + ratios[len(self.tempered) :])
        attacker = InformedAttacker(beliefs, self.original[self.attacked])
        return attacker.against(self.shown, self.rho2, np.random.default_rng(SEED))

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
