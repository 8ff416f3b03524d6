"""THESIS 5.4: record utility and errors of fine-grain against uniform (Figures 24 to 27), and run times (29, 30)."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from deniable.core.histogram import SELECTIVITIES, Histogram
from deniable.planning.candidates import Chart, lines
from deniable.planning.pools import CodedTable
from deniable.planning.prediction import Spread
from reproduction.criteria import limit
from reproduction.fine_grain_channels import THETA, optimal_channel, uniform_channel, utilities
from reproduction.items import Item, per_cent, slashed, with_spread, yes
from reproduction.resampling import SIZES, resampled
from reproduction.zipf import channel_errors, zipf

BALANCED = (5, 10, 15, 20)  # theta of OCC; the thesis shows curves, and names only 20
SKEWED = (15, 20, 25, 30)
VALUES = (20, 30, 40, 50)
THIRD = 300_000
MORE = 5


@dataclass(frozen=True)
class Measured:
    """Fine-grain and uniform perturbation of one table.

    Attributes:
        utility: record utility, fine-grain and uniform.
        errors: of the most frequent value, then of all at selectivity >= 0.1, 0.5, 1 %; fine-grain and uniform.
    """

    utility: tuple[float, float]
    errors: tuple[tuple[Spread, ...], tuple[Spread, ...]]

    @classmethod
    def of(cls, histogram: Histogram, theta: int, draws: int) -> Measured:
        top = (int(histogram.counts.max()) - 0.5) / histogram.rows
        channels = (optimal_channel(histogram, theta), uniform_channel(histogram, theta))
        fine, uniform = (channel_errors(one, histogram, (top, *SELECTIVITIES), draws=draws) for one in channels)
        return cls(utilities(histogram, theta), (fine, uniform))

    @property
    def top(self) -> tuple[Spread, Spread]:
        return self.errors[0][0], self.errors[1][0]

    @property
    def lower_at_the_top(self) -> bool:
        """Whether fine-grain's error at the most frequent value is lower, as far as so many draws can tell."""
        fine, uniform = self.top
        noise = (
            limit("THESIS Figure 24", "deviations")
            * math.hypot(fine.deviation, uniform.deviation)
            / math.sqrt(fine.draws)
        )
        return fine.mean < uniform.mean + noise


def _column(census: pa.Table, rows: int, name: str) -> Histogram:
    return CodedTable.of(resampled(census, rows), name).histogram


def _top_rows(by: Mapping[int, Measured]) -> list[tuple[str, ...]]:
    return [
        (f"{x:,}", *map(per_cent, one.utility), *(with_spread(error, 2) for error in one.top)) for x, one in by.items()
    ]


def _utility_chart(title: str, x: str, by: Mapping[int, Measured]) -> Chart:
    drawn = {number: one.utility for number, one in by.items()}
    return Chart(title, x, "record utility", lines(("fine-grain", "uniform"), drawn), percent=True)


def within(number: float, name: str, which: str) -> bool:
    """Whether a number lies in an interval that an item names."""
    low, high = limit(name, which)
    return bool(low <= number <= high)


HEAD = ("fine-grain, rows kept", "uniform, rows kept", "fine-grain, error at the top", "uniform, error at the top")


def balanced(census: pa.Table, draws: int) -> list[Item]:
    """Figures 24 and 25: occupation."""
    by_theta = {theta: Measured.of(_column(census, THIRD, "occupation"), theta, draws) for theta in BALANCED}
    by_rows = {rows: Measured.of(_column(census, rows, "occupation"), 20, draws) for rows in SIZES}
    return [_figure_24(by_theta, by_rows, draws), _figure_25(by_theta, by_rows, draws)]


def _figure_24(by_theta: Mapping[int, Measured], by_rows: Mapping[int, Measured], draws: int) -> Item:
    every = [*by_theta.values(), *by_rows.values()]
    more = all(one.utility[0] > one.utility[1] for one in every)
    most = max(one.utility[0] for one in every)
    lower = sum(one.lower_at_the_top for one in every)
    kept = [one.utility[0] for one in by_rows.values()]
    constant = max(kept) - min(kept) <= limit("THESIS Figure 24", "same")
    rises = all(a.utility[0] <= b.utility[0] for a, b in pairwise(by_theta.values()))
    almost = within(most, "THESIS Figure 24", "almost_60")
    rows = [(f"theta = {row[0]}", *row[1:]) for row in _top_rows(by_theta)]
    rows += [(f"{row[0]} rows", *row[1:]) for row in _top_rows(by_rows)]
    return Item(
        "THESIS Figure 24",
        f"Occupation: record utility (rows published as they are, expected) and the error of the most frequent value's "
        f"count; upper half: theta at {THIRD:,} rows, lower half: rows at theta = 20; OCC and resampled, {draws} "
        "draws.",
        ("", *HEAD),
        tuple(rows),
        more and almost and lower == len(every) and constant and rises,
        f"The thesis: fine-grain keeps more than uniform everywhere ({yes(more)}), almost 60 % at the most "
        f"relaxed (here {per_cent(most)}); more as theta grows ({yes(rises)}), the same for any number of rows "
        f"({yes(constant)}, within 2 points); and its error at the most frequent value is lower, up to the noise "
        f"of so many draws (at {lower} of {len(every)} points).",
        _utility_chart("Rows published as they are, occupation", "theta", by_theta),
        draws=draws,
    )


def _figure_25(by_theta: Mapping[int, Measured], by_rows: Mapping[int, Measured], draws: int) -> Item:
    every = [*by_theta.values(), *by_rows.values()]
    by_share = all(a.mean > b.mean for one in every for kind in one.errors for a, b in pairwise(kind[1:]))
    ends = [(by_theta[BALANCED[0]], by_theta[BALANCED[-1]]), (by_rows[SIZES[0]], by_rows[SIZES[-1]])]
    falls = all(
        last.errors[kind][place].mean < first.errors[kind][place].mean
        for first, last in ends
        for kind in (0, 1)
        for place in (1, 2, 3)
    )
    ratios = [
        fine.mean / up.mean for one in every for fine, up in zip(one.errors[0][1:], one.errors[1][1:], strict=True)
    ]
    factor = limit("THESIS Figure 25", "factor")
    alike = max(ratios) <= factor and min(ratios) >= 1 / factor
    rows = [(f"theta = {theta}", *map(_errors, one.errors)) for theta, one in by_theta.items()]
    rows += [(f"{number:,} rows", *map(_errors, one.errors)) for number, one in by_rows.items()]
    return Item(
        "THESIS Figure 25",
        f"Occupation: mean over values of |f - f*| / f at selectivity >= 0.1 / 0.5 / 1 %; as Figure 24, {draws} draws.",
        ("", "fine-grain", "uniform"),
        tuple(rows),
        by_share and falls and alike,
        f"The thesis: errors fall as the selectivity grows ({yes(by_share)}), from the smallest to the largest "
        f"theta and number of rows ({yes(falls)}), and there is no significant difference between fine-grain and "
        f"uniform (ratios from {min(ratios):.2f} to {max(ratios):.2f}; {yes(alike)}, read as within a factor of 2).",
        draws=draws,
    )


def _errors(errors: tuple[Spread, ...]) -> str:
    return slashed((100 * error.mean for error in errors[1:]), ".2f") + " %"


def figure_26(census: pa.Table, draws: int) -> Item:
    """Education: both halves, utility and the most frequent value."""
    by_theta = {theta: Measured.of(_column(census, THIRD, "education"), theta, draws) for theta in SKEWED}
    by_rows = {rows: Measured.of(_column(census, rows, "education"), THETA, draws) for rows in SIZES}
    every = [*by_theta.values(), *by_rows.values()]
    ahead = [100 * (one.utility[0] - one.utility[1]) for one in every]
    relative = [100 * (one.utility[0] / one.utility[1] - 1) for one in every]
    lower = sum(one.lower_at_the_top for one in every)
    least, largest = limit("THESIS Figure 26", "points")
    more, most = min(ahead) >= least, max(ahead) <= largest
    rows = [(f"theta = {row[0]}", *row[1:]) for row in _top_rows(by_theta)]
    rows += [(f"{row[0]} rows", *row[1:]) for row in _top_rows(by_rows)]
    return Item(
        "THESIS Figure 26",
        f"Education: as Figure 24; upper half: theta at {THIRD:,} rows, lower half: rows at theta = {THETA}; EDU and "
        f"resampled, {draws} draws.",
        ("", *HEAD),
        tuple(rows),
        more and most and lower == len(every),
        f"The thesis: fine-grain retains 5 to 20 % more (here {min(ahead):.1f} to {max(ahead):.1f} percentage points, "
        f"{min(relative):.0f} to {max(relative):.0f} % of what uniform keeps; at least 5 {yes(more)}, at most 20 "
        f"{yes(most)}), and its error at the most frequent value is lower, up to the noise of so many draws (at "
        f"{lower} of {len(every)} points).",
        _utility_chart("Rows published as they are, education", "theta", by_theta),
        draws=draws,
    )


def figure_27(draws: int) -> Item:
    """Zipf: against the number of values."""
    draws *= MORE  # a ratio of two small errors needs more of them
    by_size = {m: Measured.of(zipf(m, 1), THETA, draws) for m in VALUES}
    kept = {m: float(optimal_channel(zipf(m, 1), THETA).diagonal[0]) for m in VALUES}
    falls = all(a.utility[0] >= b.utility[0] for a, b in pairwise(by_size.values()))
    ratio = by_size[50].top[1].mean / by_size[50].top[0].mean
    name = "THESIS Figure 27"
    ninety = all(within(one, name, "about_ninety") for one in kept.values())
    grows = by_size[50].top[1].mean > limit(name, "grows") * by_size[20].top[1].mean
    tops = [one.top[0].mean for one in by_size.values()]
    same = max(tops) <= limit(name, "same") * min(tops)
    six = within(ratio, name, "almost_six")
    return Item(
        name,
        f"Zipf(1) against the number of values; theta = {THETA}, {THIRD:,} rows, {draws} draws.",
        ("m", *HEAD, "the most frequent value is kept"),
        tuple((*row, per_cent(kept[m])) for row, m in zip(_top_rows(by_size), VALUES, strict=True)),
        falls and ninety and grows and same and six,
        f"The thesis: record utility falls as m grows ({yes(falls)}); the error at the most frequent value stays about "
        f"the same for fine-grain ({yes(same)}, read as within a factor of 2) and grows significantly for uniform "
        f"({yes(grows)}, read as twofold), almost six times as large at m = 50 (here {ratio:.1f}, {yes(six)}, "
        f"read as 3 to 9); the most frequent value is kept about 90 % of the time ({yes(ninety)}, read as 85 to 95 %).",
        _utility_chart("Rows published as they are, Zipf", "values m", by_size),
        draws=draws,
    )


def run_times(census: pa.Table | None) -> list[Item]:
    """Figures 29 and 30: seconds to find the channel."""
    by_values = {m: _seconds(zipf(m, 1)) for m in VALUES}
    seconds = np.array([fine for fine, _ in by_values.values()])
    fit = float(np.corrcoef(VALUES, seconds)[0, 1] ** 2)
    quick = max(seconds) <= limit("THESIS Figure 30", "seconds")
    last = Item(
        "THESIS Figure 30",
        f"Seconds to find the channel against the number of values; Zipf(1), theta = {THETA}, the best of five runs on "
        "this machine when the page was written.",
        ("m", "fine-grain", "uniform"),
        tuple((str(m), f"{fine:.4f}", f"{uniform:.4f}") for m, (fine, uniform) in by_values.items()),
        quick,
        f"The thesis: linear in m (its fit; here a line explains {per_cent(fit)} of the variation) and never more "
        f"than a second ({yes(quick)}).",
    )
    if census is None:
        return [last]
    by_rows = {
        (name, rows): _seconds(_column(census, rows, name)) for name in ("occupation", "education") for rows in SIZES
    }
    brief = max(fine for fine, _ in by_rows.values()) <= limit("THESIS Figure 29", "seconds")
    spreads = [
        max(by_rows[name, rows][0] for rows in SIZES) - min(by_rows[name, rows][0] for rows in SIZES)
        for name in ("occupation", "education")
    ]
    constant = max(spreads) <= limit("THESIS Figure 29", "spread")
    first = Item(
        "THESIS Figure 29",
        f"Seconds to find the channel against the number of rows; OCC and EDU resampled, theta = {THETA}.",
        ("column", "rows", "fine-grain", "uniform"),
        tuple((name, f"{rows:,}", f"{a:.4f}", f"{b:.4f}") for (name, rows), (a, b) in by_rows.items()),
        brief and constant,
        f"The thesis: nearly constant in the number of rows ({yes(constant)}, read as within a tenth of a second) and "
        f"less than a second ({yes(brief)}).",
    )
    return [first, last]


def _seconds(histogram: Histogram) -> tuple[float, float]:
    taken = []
    for work in (optimal_channel, uniform_channel):
        runs = []
        for _ in range(5):
            begin = time.perf_counter()
            work(histogram, THETA)
            runs.append(time.perf_counter() - begin)
        taken.append(min(runs))
    return taken[0], taken[1]
