"""Zipf tables and the error of a reconstructed histogram (THESIS 4.4.1, Def. 2): no public columns, many draws."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from deniable.core.channels import Channel
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.lab.draws import draw_plan, stream_of
from deniable.lab.experiments import reconstruction_error
from deniable.lab.rival import estimated
from deniable.mechanisms import Lineup, SmallDomain, Uniform
from deniable.planning.candidates import Chart, lines
from deniable.planning.pools import CodedTable
from deniable.planning.prediction import Spread, spread
from deniable.tables.encoding import smallest
from deniable.tables.sampler import Kernel
from reproduction.criteria import limit
from reproduction.items import Item, with_spread

ROWS = 300_000
DRAWS = 20
RHO1, RHO2 = Fraction(1, 13), Fraction(1, 6)
GRID = 1000  # the thesis' relative frequencies have three decimals

# (m, lambda): small-domain, uniform; THESIS Tables 5 and 6
ZIPF = {(50, 1): (36.5, 99.4), (75, 1): (14.0, 155.1), (100, 1): (17.7, 221.0), (150, 1): (22.8, 370.9)}
ZIPF |= {(50, 2): (26.7, 174.5), (50, 3): (12.0, 44.8)}


def zipf(m: int, skew: float, *, rows: int = ROWS, grid: int = GRID, rounded: bool = False) -> Histogram:
    """f_i ~ i^-skew, relative frequencies cut (or rounded) to 1/grid; values that lose all their rows are left out.

    >>> zipf(50, 3).m
    9
    """
    share = np.arange(1, m + 1) ** -float(skew)
    steps = share / share.sum() * grid
    kept = (np.round(steps) if rounded else np.floor(steps + 1e-9)).astype(np.int64)
    kept = kept[kept > 0]
    return Histogram(tuple(range(1, len(kept) + 1)), kept * (rows // grid))


def table_of(histogram: Histogram) -> CodedTable:
    """A table with this histogram and no other column."""
    codes = smallest(np.repeat(np.arange(histogram.m), histogram.counts), histogram.m)
    return CodedTable({}, "value", histogram, codes)


def plan_error(plan: Plan, *, draws: int = DRAWS, seed: int = 1) -> Spread:
    """The reconstruction error of a plan, by inversion, over draws."""
    return plan_errors(plan, (0.0,), draws=draws, seed=seed)[0]


def plan_errors(
    plan: Plan, selectivities: tuple[float, ...], *, draws: int = DRAWS, seed: int = 1
) -> tuple[Spread, ...]:
    """The same for values of relative frequency >= s."""
    table, single = table_of(plan.histogram), np.eye(plan.histogram.m, dtype=bool)
    errors: list[list[float]] = [[] for _ in selectivities]
    for number in range(draws):
        draw = draw_plan(table, plan, stream_of(seed, number, plan.mechanism), None)
        counts = estimated(draw.asking, draw.asking.total[None, :], single, "inverse")[0]
        for place, share in enumerate(selectivities):
            errors[place].append(reconstruction_error(counts, plan.histogram.counts, share * table.rows))
    return tuple(spread(drawn) for drawn in errors)


def channel_errors(
    channel: Channel, histogram: Histogram, selectivities: tuple[float, ...], *, draws: int = DRAWS, seed: int = 1
) -> tuple[Spread, ...]:
    """The same for one channel over the whole table, for values of relative frequency >= s."""
    codes = table_of(histogram).codes
    kernel = Kernel([channel], [np.arange(histogram.m)])
    errors: list[list[float]] = [[] for _ in selectivities]
    for number in range(draws):
        words = stream_of(seed, number, "channel").words(0, len(codes))
        observed: npt.NDArray[np.int64] = np.bincount(kernel.perturb(codes, words), minlength=histogram.m)
        counts = channel.invert(observed)
        for place, share in enumerate(selectivities):
            errors[place].append(reconstruction_error(counts, histogram.counts, share * histogram.rows))
    return tuple(spread(drawn) for drawn in errors)


def zipf_table(name: str, shapes: Sequence[tuple[int, float]], *, draws: int = DRAWS) -> Item:
    """Reconstruction error on Zipf tables; rho1 is the largest frequency of a protected value, as in SDR Table 2."""
    rows, off = [], []
    drawn: dict[float, tuple[Spread, ...]] = {}
    papers: dict[float, tuple[float, float]] = {}
    by_size = name.endswith("5")
    for m, skew in shapes:
        pp, up = ZIPF[m, int(skew)]
        histogram = zipf(m, skew)
        uniform, bound, ours = (
            plan_error(mechanism.plan(histogram, largest_protected(histogram)), draws=draws)
            for mechanism in (Uniform(), SmallDomain(cost="bound", orders="band"), SmallDomain())
        )
        lineup = plan_error(Lineup().plan(histogram, largest_protected(histogram)), draws=draws)
        x, shown = (m, f"m = {m}") if by_size else (skew, f"lambda = {skew:g}")
        for what, paper, error in (("uniform", up, uniform), ("small-domain", pp, bound)):
            if abs(100 * error.mean - paper) > 100 * limit(name, "deviations") * error.deviation:
                off.append(f"{what} at {shown}, ours {'lower' if 100 * error.mean < paper else 'higher'}")
        drawn[x], papers[x] = (uniform, bound, ours, lineup), (up / 100, pp / 100)
        rows.append((shown, f"{up} %", with_spread(uniform), f"{pp} %", *map(with_spread, (bound, ours, lineup))))
    return Item(
        name,
        f"Mean over values of |f - f*| / f by inversion; Zipf, 300k rows, (1/13, 1/6). The thesis: one draw; ours: "
        f"mean ± standard deviation over {draws} draws. Relative frequencies are cut to 0.1 % (9 values are left at "
        "lambda = 3, as the thesis reports), rho1 is the largest protected one (as SDR Table 2 shows).",
        (
            *("", "uniform, paper", "uniform, ours", "small-domain, paper", "small-domain, ours"),
            *("ours, default cost", "line-up"),
        ),
        tuple(rows),
        not off,
        "A single draw should lie within two standard deviations of our mean. "
        + (f"Outside: {'; '.join(off)}." if off else "All do."),
        Chart(
            "Error of the reconstructed histogram, Zipf tables",
            "values m" if by_size else "skew lambda",
            "mean relative error",
            lines(("uniform", "small-domain", "small-domain, default cost", "line-up"), drawn, papers=papers),
            log_y=True,
            percent=True,
        ),
        draws=draws,
    )


def largest_protected(histogram: Histogram) -> Privacy:
    """The requirement with rho1 = the largest share of a protected value, as SDR Table 2 shows it to be."""
    top = max(int(f) for f in histogram.counts if f * RHO1.denominator <= histogram.rows)
    return Privacy(Fraction(top, histogram.rows), RHO2)
