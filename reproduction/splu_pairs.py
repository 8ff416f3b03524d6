"""SPLU 6.4 and 6.5: two sensitive columns, grouped independently of each other, and what it all costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.part import GroupingKind
from deniable.estimation.decoys import Others, several_columns
from deniable.lab.draws import decoys_planned, draw_plan, stream_of
from deniable.mechanisms.decoys import Decoys
from deniable.planning.candidates import INDEPENDENCE, Chart, level, lines
from deniable.planning.pools import CodedTable
from deniable.planning.prediction import Spread, relative_error, spread
from reproduction.criteria import limit
from reproduction.items import Item, with_spread, yes
from reproduction.resampling import resampled
from reproduction.splu_iteration import splu_iteration
from reproduction.splu_settings import lineups_planned

Floats = npt.NDArray[np.float64]
SIZES = (2, 4, 5, 6, 8)
INTERVALS = 10
SHARES = (0.001, 0.007)
KINDS = (
    "as SPLU runs it",
    *(f"fixed point, a {others}" for others in get_args(Others)),
    "line-ups, rho2 = 1/c each",
)
PARTITIONED = 500_000  # SPLU 6.5


@dataclass(frozen=True, eq=False)
class Pairs:
    """Age in intervals and occupation, and the pairs of values that are asked about."""

    ages: CodedTable
    occupation: CodedTable
    joint: Floats
    chosen: tuple[npt.NDArray[np.int64], ...]

    @classmethod
    def of(cls, census: pa.Table) -> Pairs:
        occupation = CodedTable.of(census, "occupation")
        ages = CodedTable.of(pa.table({"age": intervals(census["age"].to_numpy(), INTERVALS)}), "age")
        joint = _pairs(ages.codes, occupation.codes, occupation.m)
        low, high = (share * occupation.rows for share in SHARES)
        return cls(ages, occupation, joint, np.nonzero((joint >= low) & (joint < high)))

    def shown(self, c: int, draw: int, grouping: GroupingKind) -> Floats:
        """What rows show of each pair in one release: [pairs, Q, first value, second value]."""
        stream, published = stream_of(1, draw, f"two columns, {c}"), []
        for table in (self.ages, self.occupation):
            plan = decoys_planned(Decoys(c=c, leftovers="drop", grouping=grouping), table.histogram)
            published.append(draw_plan(table, plan, stream.subkey(table.sensitive), None).published)
        both = _pairs(published[0], published[1], self.occupation.m)
        shown = both[self.chosen]
        first, second = both.sum(1)[self.chosen[0]], both.sum(0)[self.chosen[1]]
        states = np.stack([both.sum() - first - second + shown, second - shown, first - shown, shown], axis=1)
        observed = np.zeros((len(shown), 2, 2, 2))
        observed[:, 1] = states.reshape(-1, 2, 2)  # no public condition: every row is in Q
        return observed

    def lined_up(self, c: int, draw: int) -> Floats:
        """The pairs by line-ups of each column, drawn independently: both inversions, one after the other."""
        stream, shown, both = stream_of(1, draw, f"two columns of line-ups, {c}"), [], []
        for table in (self.ages, self.occupation):
            plan, states = lineups_planned(table.histogram, Fraction(1, c))
            shown.append(draw_plan(table, plan, stream.subkey(table.sensitive), None).states.astype(np.int64))
            both.append(states)
        counts = np.bincount(shown[0] * both[1].count + shown[1], minlength=both[0].count * both[1].count)
        rows: Floats = both[1].invert(counts.reshape(both[0].count, both[1].count).astype(np.float64))
        return both[0].invert(np.ascontiguousarray(rows.T)).T[self.chosen]

    def errors(self, c: int, draw: int) -> tuple[float, ...]:
        """Mean relative error by SPLU's iteration, at the fixed point with either a, and of line-ups."""
        published = splu_iteration(self.shown(c, draw, "anatomy"), (c, c)).rows
        mixed = self.shown(c, draw, "mixed")
        fixed = [several_columns(mixed, (c, c), others=others) for others in get_args(Others)]
        true = self.joint[self.chosen]
        estimates = [*(rows[:, 1, 1, 1] for rows in (published, *fixed)), self.lined_up(c, draw)]
        return tuple(float(relative_error(estimate, true).mean()) for estimate in estimates)

    @property
    def independence(self) -> float:
        """The error of multiplying the two columns' own distributions."""
        alone = np.outer(self.ages.histogram.counts, self.occupation.histogram.counts) / self.occupation.rows
        return float(relative_error(alone[self.chosen], self.joint[self.chosen]).mean())


def figure_12(census: pa.Table, draws: int, one_column: dict[int, Spread]) -> Item:
    """Two sensitive columns; ``one_column`` is the error with one of them, for some group sizes."""
    pairs = Pairs.of(census)
    by_size = {}
    for c in SIZES:
        drawn = [pairs.errors(c, draw) for draw in range(draws)]
        by_size[c] = [spread(column) for column in zip(*drawn, strict=True)]
    zero = pairs.independence
    both = [c for c in SIZES if c in one_column]
    matched = [c for c in both if by_size[c][0].mean <= limit("SPLU Figure 12", "factor") * one_column[c].mean]
    can = bool(matched)
    rows = [
        (str(c), *map(with_spread, errors), with_spread(one_column[c]) if c in one_column else "")
        for c, errors in by_size.items()
    ]
    return Item(
        "SPLU Figure 12",
        f"Two sensitive columns, age in {INTERVALS} intervals of about equal size and occupation: mean relative error "
        f"of all {len(pairs.chosen[0])} pairs of selectivity 0.1 to 0.7 %; OCC-100k, {draws} draws. As SPLU runs it: "
        "Anatomy's groups, from the published counts to a change of 1 %; beside it mixed groups, the fixed point, and "
        "line-ups of each column by itself, inverted.",
        ("c", *KINDS, "one column (Figure 9)"),
        (*rows, (INDEPENDENCE, f"{100 * zero:.1f} %", "", "", "", "")),
        can,
        "The paper: although few rows are counted, the accuracy can match that with one sensitive column (read as an "
        f"error at most a quarter larger at some group size; {yes(can)}, at c = "
        f"{', '.join(map(str, matched)) or 'none'} of {', '.join(map(str, both))}). It matches because the iteration "
        "is left early: the larger the groups, the sooner it stops, and the nearer its answer stays to the product of "
        f"the two published distributions, which is off by {100 * zero:.1f} % and needs no joint release. At the fixed "
        "point the noise of so small counts shows.",
        Chart(
            "Two sensitive columns: error of pairs",
            "group size c",
            "mean relative error",
            (*lines(KINDS, by_size), level(INDEPENDENCE, zero, by_size)),
            log_y=True,
            percent=True,
        ),
        draws=draws,
    )


def section_6_5(census: pa.Table) -> Item:
    """Time to partition, time and rounds to answer."""
    histogram = CodedTable.of(resampled(census, PARTITIONED), "occupation")
    partition = {}
    for c in range(2, 11, 2):
        begin = time.perf_counter()
        plan = Decoys(c=c, leftovers="drop", grouping="anatomy").plan(histogram.histogram, None)
        draw_plan(histogram, plan, stream_of(1, 0, f"overhead {c}"), None)
        partition[c] = time.perf_counter() - begin
    pairs, rounds, answering = Pairs.of(census), [], 0.0
    for c in SIZES:
        observed = pairs.shown(c, 0, "anatomy")
        begin = time.perf_counter()
        rounds.append(splu_iteration(observed, (c, c)).rounds)
        answering += time.perf_counter() - begin
    taken = np.concatenate(rounds)
    quick = max(partition.values()) <= limit("SPLU section 6.5", "seconds")
    skewed = float(taken.mean()) > float(np.median(taken))
    rows = (
        *((f"grouping and drawing 500k rows, c = {c}, seconds", "< 10", f"{s:.2f}") for c, s in partition.items()),
        ("iterations, median", "16", f"{np.median(taken):.0f}"),
        ("iterations, mean", "325", f"{taken.mean():.0f}"),
        ("milliseconds to iterate, a question", "< 1", f"{1000 * answering / len(taken):.2f}"),
    )
    return Item(
        "SPLU section 6.5",
        "What it costs: grouping and drawing 500,000 rows (OCC resampled) in memory, and the iterations of questions "
        f"about two sensitive columns ({len(taken):,} of them, c = {', '.join(map(str, SIZES))}). Seconds are this "
        "machine's, when the page was written.",
        ("", "paper", "ours"),
        rows,
        quick and skewed,
        f"The paper: within 10 s for every c ({yes(quick)}); half of the questions are done after a few rounds, and a "
        f"few take so many that the mean is far above the median ({yes(skewed)}). How many depends on the questions, "
        "which the paper does not list.",
    )


def intervals(values: npt.NDArray[np.integer], number: int) -> npt.NDArray[np.int64]:
    """The number of each value's interval, so many intervals of about equal numbers of rows."""
    edges = np.unique(np.quantile(values, np.arange(1, number) / number))
    return np.searchsorted(edges, values, side="right").astype(np.int64)


def _pairs(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], m: int) -> Floats:
    counts = np.bincount(first.astype(np.int64) * m + second)
    full = np.zeros((int(first.max()) + 1) * m)
    full[: len(counts)] = counts
    return full.reshape(-1, m)
