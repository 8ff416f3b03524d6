"""What public columns give away: each of them, and all together.

What a column says about others' rows is learnt and tried on rows that it was not learnt from (``gains``). What it means
for a release is the posterior of an attacker who believes that and sees the published value (``attacks.informed``).
Columns that tell only together are looked for in pairs, and as one combination of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from deniable.audit.attacks.informed import ENTRIES, POWERS, Informed, InformedAttacker, beliefs_of, surprise
from deniable.audit.attacks.shown import Shown
from deniable.audit.exposure import combined
from deniable.audit.functional import functions_of
from deniable.audit.gains import Gain, gain_of, prior_of
from deniable.core.arrays import Bools, Codes, Floats, Ints

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
    functions: Mapping[str, str] | None = None,
    classes: Mapping[str, Codes] | None = None,
    of: int | None = None,
    entries: int = ENTRIES,
    prior: Floats | None = None,
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
    judge = _Judge.of(original, m, order, shown, rho2, entries, prior)
    telling.sort(key=lambda name: (name not in exact, -gains[name].mean))
    giveaways = []
    for place, name in enumerate(telling):
        ratios = judge.learn(columns[name], gains[name].smoothing, alone=WITH in name)
        if place < LISTED:
            giveaways.append(Giveaway(name, gains[name], judge.sure(ratios), exact.get(name, "")))
    if len(columns) > 1:
        if joint.is_real:
            judge.learn(together, joint.smoothing, alone=True)
        best = max([joint, *gains.values()], key=lambda one: one.mean)
        giveaways.append(Giveaway(ALL, best, judge.surest()))
    return Dependence(sensitive, tuple(giveaways), judge.frequencies(), len(original), of or len(original))


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
    ) -> _Judge:
        learnt, others = np.split(order, [len(order) // 2])
        most = max(20, entries // m)
        tempered, attacked = np.split(others, [min(TEMPERED, len(others) // 2)])
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
