"""SDR and THESIS 4.4: from 100,000 to 500,000 rows by resampling, how fast it is, and how far from the best."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.lab import Anatomy
from deniable.lab.anatomy import anatomy_groups
from deniable.lab.draws import draw_plan, stream_of
from deniable.mechanisms import Mechanism, SmallDomain, Uniform
from deniable.mechanisms.partitioning import Group, OrdersKind, Sums, balance, error_bound
from deniable.planning.candidates import Chart, lines
from deniable.planning.pools import CodedTable
from reproduction.criteria import limit
from reproduction.five_pools import RHO1, RHO2
from reproduction.items import Item, near, per_cent, slashed, yes
from reproduction.resampling import SIZES, resampled
from reproduction.zipf import zipf

# rows: initial groups, cells, values in a cell, gamma of a cell
TABLE_3 = {
    100_000: (17, 15, 15.0, 2.6),
    200_000: (18, 8, 20.9, 2.7),
    300_000: (19, 10, 17.3, 2.6),
    400_000: (20, 11, 17.0, 2.6),
    500_000: (20, 12, 18.4, 2.8),
}
COLUMNS = ("groups", "cells", "values in a cell", "gamma of a cell")
SAMPLES = 10
EXAMPLE_1 = (12, 8, 6, 5, 4, 3, 1, 1, 1, 1)
DELTA = 0.05


def statistics(census: pa.Table, rows: int, seed: int) -> tuple[float, ...]:
    """Groups, cells, and means over cells of values and gamma, for one sample; L = 6."""
    histogram = CodedTable.of(resampled(census, rows, seed), "occupation").histogram
    cells = SmallDomain(cost="bound", orders="band").plan(histogram, Privacy(RHO1, RHO2)).cells
    groups = len(balance(histogram.counts, np.ones(histogram.m, bool)))
    values = float(np.mean([cell.channel.m for cell in cells]))
    gamma = float(np.mean([float(cell.channel.gamma) for cell in cells if cell.channel.gamma is not None]))
    return groups, len(cells), values, gamma


def table_3(census: pa.Table) -> Item:
    """Groups and cells of PP for 100,000 to 500,000 rows, L = 6."""
    rows, outside, name_3 = [], [], "SDR Table 3 (THESIS Table 4)"
    for size, paper in TABLE_3.items():
        drawn = [statistics(census, size, seed) for seed in range(1, SAMPLES + 1 if size > census.num_rows else 2)]
        for name, printed, ours in zip(COLUMNS, paper, zip(*drawn, strict=True), strict=True):
            slack = 0.0 if name == COLUMNS[0] else limit(name_3, "of_the_range") * printed
            if not min(ours) - slack <= printed <= max(ours) + slack:
                outside.append(f"{name} at {size:,}")
        shown = [_range(ours) for ours in zip(*drawn, strict=True)]
        rows.append((f"{size:,}", *(f"{p:g} / {o}" for p, o in zip(paper, shown, strict=True))))
    return Item(
        name_3,
        "Initial groups, cells, and means over cells of values and gamma, the paper's / ours; rho2 = 1/6, the paper's "
        f"cost and orders. OCC-100k is the paper's own sample; of the larger ones {SAMPLES} are drawn from it with "
        "replacement, and the smallest and largest figures are shown.",
        ("rows", *COLUMNS),
        tuple(rows),
        not outside,
        "Groups follow from the sample alone: the paper's number should lie in the range of ours. Cells also depend on "
        "how ties are ordered, which is not said: read as within a tenth of the range. "
        + (f"Outside: {'; '.join(outside)}." if outside else "All do."),
    )


def _range(numbers: tuple[float, ...]) -> str:
    low, high = (f"{number:.3g}" for number in (min(numbers), max(numbers)))
    return low if low == high else f"{low}-{high}"


def _timed(work: Mechanism | int, table: CodedTable, privacy: Privacy, label: str) -> float:
    """Seconds to plan and draw, or to group for Anatomy."""
    begin = time.perf_counter()
    if isinstance(work, int):
        suppressed = Anatomy(work).suppressed(table.histogram)
        anatomy_groups(table.codes, table.m, work, stream_of(1, 0, label), suppressed)
    else:
        draw_plan(table, work.plan(table.histogram, privacy), stream_of(1, 0, label), None)
    return time.perf_counter() - begin


def figure_5(census: pa.Table) -> Item:
    """Run times for both columns and all sizes."""
    rows, longest, drawn = [], 0.0, {}
    for column, privacy, size in (
        ("occupation", Privacy(RHO1, RHO2), 6),
        ("education", Privacy(Fraction(1, 30), Fraction(1, 10)), 10),
    ):
        for number in SIZES:
            table = CodedTable.of(resampled(census, number), column)
            work: dict[str, Mechanism | int] = {
                "uniform": Uniform(),
                "small-domain": SmallDomain(cost="bound", orders="band"),
                "Anatomy": size,
            }
            seconds = {name: _timed(one, table, privacy, f"{column} {number}") for name, one in work.items()}
            longest = max(longest, seconds["small-domain"])
            if column == "occupation":
                drawn[number] = tuple(seconds.values())
            rows.append((column, f"{number:,}", *(f"{second:.2f}" for second in seconds.values())))
    within = longest <= limit("SDR Figure 5 (THESIS Figure 20)", "seconds")
    return Item(
        "SDR Figure 5 (THESIS Figure 20)",
        "Seconds to plan and to draw all rows in memory, L = 6 for occupation and 10 for education; OCC and EDU, "
        "resampled. This machine's, when the page was written.",
        ("column", "rows", "uniform", "small-domain", "Anatomy"),
        tuple(rows),
        within,
        f"The paper: no more than 30 s for small-domain on every table ({yes(within)}: at most {longest:.2f} s).",
        Chart("Seconds to plan and draw", "rows", "seconds", lines(("uniform", "small-domain", "Anatomy"), drawn)),
    )


def figure_6(census: pa.Table) -> list[Item]:
    """The distributions themselves: CENSUS, and Zipf."""
    shares = {}
    for column in ("occupation", "education"):
        histogram = CodedTable.of(resampled(census, 300_000), column).histogram
        shares[column] = np.sort(histogram.relative)[::-1]
    most = {column: float(share[0]) for column, share in shares.items()}
    rare = int((shares["education"] < 1 / 30).sum())
    name = "SDR Figure 6 (THESIS Figure 15)"
    close = {column: limit(name, column) for column in most}
    same = near(most["occupation"], 0.07, close["occupation"]) and near(most["education"], 0.27, close["education"])
    same &= rare == 9
    first = Item(
        name,
        "Relative frequencies, most frequent first; OCC and EDU resampled to 300,000 rows.",
        ("", "values", "the five most frequent", "below 1/30"),
        tuple(
            (column, str(len(share)), slashed(100 * share[:5], ".1f") + " %", str(int((share < 1 / 30).sum())))
            for column, share in shares.items()
        ),
        same,
        f"The paper: at most 7 % for occupation (here {per_cent(most['occupation'])}), 27 % for education (here "
        f"{per_cent(most['education'])}), and 9 educations below 3.33 % (here {rare}).",
    )
    left = {skew: zipf(50, skew) for skew in (1, 2, 3)}
    nine = left[3].m == 9
    second = Item(
        "THESIS Figure 16",
        "Zipf distributions over 50 values, relative frequencies cut to 0.1 %.",
        ("lambda", "values left", "the five most frequent"),
        tuple((str(skew), str(one.m), slashed(100 * one.relative[:5], ".1f") + " %") for skew, one in left.items()),
        nine,
        f"The thesis: 9 values are left at lambda = 3 (here {left[3].m}), and the distribution is more skewed than "
        f"education's ({yes(float(left[2].relative[0]) > most['education'])} from lambda = 2).",
    )
    return [first, second]


def optimal_bound(groups: list[Group], rho2: float, rows: int) -> float:
    """The smallest error bound of any partition of the groups into cells: a dynamic program over sets of groups.

    All values are protected. 2^t sets of t groups, 3^t steps: for up to some 17 groups.

    O(S) = min over subsets C of S that hold S's first group of O(S - C) + bound(C)
    """
    t, m = len(groups), 1 + max(int(group.positions.max()) for group in groups)
    counts = np.zeros((t, m))
    for place, group in enumerate(groups):
        counts[place, group.positions] = group.counts
    sets = np.arange(1, 2**t)
    held = ((sets[:, None] >> np.arange(t)) & 1).astype(np.float64) @ counts
    sums = Sums(held.sum(1), held.max(1), (held > 0).sum(1).astype(np.float64), held.sum(1), np.zeros(len(sets)))
    price = np.concatenate(([0.0], error_bound(sums, rho2, rows, DELTA)))
    best = np.full(2**t, np.inf)
    best[0] = 0.0
    for whole in range(1, 2**t):
        first = whole & -whole
        rest = _subsets(whole ^ first)
        best[whole] = (best[whole ^ first ^ rest] + price[rest | first]).min()
    return float(best[-1])


def _subsets(whole: int) -> npt.NDArray[np.int64]:
    """All subsets of a set of bits."""
    subsets = np.zeros(1, np.int64)
    while whole:
        bit = whole & -whole
        subsets = np.concatenate((subsets, subsets | bit))
        whole ^= bit
    return subsets


def from_the_optimum(census: pa.Table) -> Item:
    """The heuristic's bound beside the smallest there is, over the initial groups."""
    tables = {
        "SDR Example 1, 42 rows": (Histogram(tuple(range(10)), np.array(EXAMPLE_1)), Privacy("1/3", "2/3")),
        "OCC, 2,000 rows": (_occupation(census, 2_000), Privacy(None, RHO2)),
        "OCC, 10,000 rows": (_occupation(census, 10_000), Privacy(None, RHO2)),
        "OCC, 100,000 rows": (_occupation(census, 100_000), Privacy(None, RHO2)),
    }
    rows, above = [], []
    for name, (histogram, privacy) in tables.items():
        assert privacy.rho2 is not None
        groups = balance(histogram.counts, np.ones(histogram.m, bool))
        best = optimal_bound(groups, float(privacy.rho2), histogram.rows)
        bounds = [plan_bound(histogram, privacy, orders) for orders in get_args(OrdersKind)[::-1]]
        above.append([bound / best - 1 for bound in bounds])
        rows.append((name, str(len(groups)), *(f"{bound:.4f}" for bound in (*bounds, best))))
    worst = [max(column) for column in zip(*above, strict=True)]
    return Item(
        "How far small-domain is from the best partition",
        "The paper's error bound of the cells found by its own orders, by all orders that we try, and of the best "
        "partition of the initial groups into cells whatsoever, by a dynamic program over all sets of groups.",
        ("table", "groups", "its orders", "our orders", "best"),
        tuple(rows),
        None,
        "The paper calls an efficient optimum unlikely and gives no distance from it. Here the merge along its "
        f"orders is at most {per_cent(worst[0])} above the best, and along ours at most {per_cent(worst[1])}. The "
        "groups themselves are given: what balancing rows otherwise would gain is not looked at.",
    )


def _occupation(census: pa.Table, rows: int) -> Histogram:
    return CodedTable.of(census.slice(0, rows), "occupation").histogram


def plan_bound(histogram: Histogram, privacy: Privacy, orders: OrdersKind) -> float:
    """The error bound of the cells that small-domain finds; all values are protected."""
    assert privacy.rho2 is not None
    plan = SmallDomain(cost="bound", orders=orders).plan(histogram, privacy)
    columns = [(cell.size, int(cell.rows.counts.max()), cell.channel.m, 0, 0) for cell in plan.cells]
    sums = Sums(*np.array(columns, dtype=np.float64).T)
    return float(error_bound(sums, float(privacy.rho2), histogram.rows, DELTA).sum())
