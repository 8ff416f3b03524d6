"""Chapter 5 of THESIS: fine-grain perturbation against uniform perturbation at the strictest value's gamma."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from deniable.core.errors import OptionError
from deniable.core.histogram import SELECTIVITIES, Histogram
from deniable.planning.candidates import Chart, line, lines
from deniable.planning.pools import CodedTable
from deniable.planning.prediction import Spread
from reproduction.criteria import limit
from reproduction.fine_grain_channels import (
    THETA,
    errors_channel,
    lineup_plan,
    optimal_channel,
    our_channel,
    uniform_channel,
    utilities,
)
from reproduction.fine_grain_figures import balanced, figure_26, figure_27, run_times
from reproduction.items import Item, census_table, per_cent, slashed, with_spread
from reproduction.optrr import optrr
from reproduction.readings import utility_readings, with_readings
from reproduction.running import Paper, Step
from reproduction.zipf import DRAWS, ROWS, channel_errors, plan_errors, zipf

TITLE = "Fine-grain perturbation (THESIS, chapter 5)"
Errors = tuple[float, ...]
# theta or m -> fine-grain, uniform; in per cent at selectivity >= 0.1, 0.5, 1 %
TABLE_8: dict[int, tuple[Errors, Errors]] = {
    15: ((234.66, 82.96, 28.26), (2.75, 2.24, 1.87)),
    20: ((126.55, 44.22, 21.35), (2.50, 1.77, 1.39)),
    25: ((4.22, 2.20, 1.55), (1.77, 1.41, 1.17)),
    30: ((95.10, 33.46, 7.45), (1.59, 1.26, 1.06)),
}
# thousands of rows
TABLE_9: dict[int, tuple[Errors, Errors]] = {
    100: ((183.73, 69.90, 11.97), (3.21, 2.22, 1.96)),
    200: ((83.72, 29.66, 8.97), (2.08, 1.50, 1.23)),
    300: ((95.10, 33.46, 7.45), (1.59, 1.26, 1.06)),
    400: ((71.65, 27.60, 5.95), (1.42, 1.00, 0.83)),
    500: ((73.38, 28.10, 5.26), (1.10, 0.86, 0.66)),
}
TABLE_10: dict[int, tuple[Errors, Errors]] = {
    20: ((1.73, 1.73, 1.73), (1.16, 1.16, 1.16)),
    30: ((4.80, 4.80, 3.38), (2.29, 2.29, 1.87)),
    40: ((9.52, 9.52, 4.19), (3.52, 3.52, 2.23)),
    50: ((39.93, 33.74, 11.04), (5.04, 4.54, 2.28)),
}
KINDS = (optimal_channel, our_channel, errors_channel, uniform_channel)
FOR_ERRORS = "our fine-grain, for errors"
INSTANCES = 10  # releases that the thesis averages over (5.4.1)


def paper(data: str | Path | None = None, *, draws: int = DRAWS) -> Paper:
    """All items; those on EDU only where the data is, those on Zipf tables everywhere."""
    made_up = (Step(lambda: table_10(draws=draws), 4), Step(lambda: figure_27(draws), 3))
    try:
        census = census_table(data)
    except OptionError:
        if data is not None:
            raise
        return Paper(
            "fine-grain", TITLE + ", Zipf only", (*made_up, Step(figure_28), Step(lambda: list(run_times(None)), 10))
        )
    education = CodedTable.of(census, "education").histogram
    real = (
        Step(lambda: table_8(education, draws=draws), 4),
        Step(lambda: table_9(education, draws=draws), 4),
        Step(lambda: _read(balanced(census, draws), census), 4),
        Step(lambda: figure_26(census, draws), 3),
        Step(lambda: list(run_times(census)), 2),
        Step(lambda: optrr(census, draws=draws), 30),
    )
    return Paper("fine-grain", TITLE, (*made_up, *real))


def _read(balanced_items: list[Item], census: pa.Table) -> list[Item]:
    """Figures 24 and 25, 28, and the readings of 24 and 28."""
    about = "Figure 24: the most rows kept; Figure 28: rows kept by fine-grain and by uniform at lambda = 1 to 4."
    items = [*balanced_items, figure_28()]
    return with_readings("THESIS Figures 24 and 28, reading by reading", about, items, utility_readings(census))


EDU_300K = "EDU; the thesis: EDU-300k; ours: the counts of EDU-100k three times over."
EDU_ROWS = "EDU, theta = 30. Above 100k rows: the thesis has larger samples, ours the counts of EDU-100k multiplied."


def _times(education: Histogram, thousands: int) -> Histogram:
    return Histogram(education.domain, education.counts * (thousands // 100))


def table_8(education: Histogram, *, draws: int = DRAWS) -> Item:
    tables = {theta: (_times(education, 300), theta) for theta in TABLE_8}
    return _table("THESIS Table 8", "theta", TABLE_8, tables, draws, EDU_300K)


def table_9(education: Histogram, *, draws: int = DRAWS) -> Item:
    tables = {thousands: (_times(education, thousands), THETA) for thousands in TABLE_9}
    return _table("THESIS Table 9", "rows, thousands", TABLE_9, tables, draws, EDU_ROWS)


def table_10(*, draws: int = DRAWS) -> Item:
    tables = {m: (zipf(m, 1), THETA) for m in TABLE_10}
    return _table("THESIS Table 10", "m", TABLE_10, tables, draws, "Zipf, lambda = 1, 300k rows, theta = 30.")


def _table(
    name: str,
    varied: str,
    paper: Mapping[int, tuple[Errors, Errors]],
    tables: Mapping[int, tuple[Histogram, int]],
    draws: int,
    about: str,
) -> Item:
    rows, uniform_off, fine_off = [], [], []
    sure = limit(name, "standard_errors")  # some thirty figures are compared, and errors are skewed
    drawn: dict[str, dict[int, tuple[Spread, ...]]] = {}
    for number, (fine_paper, uniform_paper) in paper.items():
        histogram, theta = tables[number]
        fine, ours, for_errors, uniform = (
            channel_errors(channel, histogram, SELECTIVITIES, draws=draws) if channel.invertible else None
            for channel in (kind(histogram, theta) for kind in KINDS)
        )
        assert uniform is not None
        lined_up = plan_errors(lineup_plan(histogram, theta), SELECTIVITIES, draws=draws)
        if not _inside(uniform, uniform_paper, sure):
            uniform_off.append(str(number))
        if fine is None or not _inside(fine, fine_paper, sure):
            fine_off.append(str(number))
        kinds_drawn = {
            "fine-grain, its optimum": fine,
            "our fine-grain": ours,
            FOR_ERRORS: for_errors,
            "uniform": uniform,
            "line-up": lined_up,
        }
        for kind, errors in kinds_drawn.items():
            drawn.setdefault(kind, {})
            if errors is not None:
                drawn[kind][number] = errors
        printed = (
            _printed(fine_paper),
            *map(_shown, (fine, ours, for_errors)),
            _printed(uniform_paper),
            _shown(uniform),
        )
        rows.append((str(number), *printed, _shown(lined_up)))
    return Item(
        name,
        f"Mean over values of |f - f*| / f, for values of relative frequency >= 0.1 / 0.5 / 1 %. {about} The thesis: "
        f"the mean of {INSTANCES} instances; ours: mean ± standard deviation over {draws} draws.",
        (
            varied,
            "fine-grain, paper",
            "its optimum, ours",
            "our fine-grain",
            FOR_ERRORS,
            "uniform, paper",
            "uniform, ours",
            "line-up",
        ),
        tuple(rows),
        not uniform_off and not fine_off,
        f"A mean of {INSTANCES} should lie within {sure:g} standard errors of the difference from ours at every "
        "selectivity. "
        f"Uniform: {_outside(varied, uniform_off)}. Fine-grain: {_outside(varied, fine_off)}. Where the deviation is "
        "nearly as large as the mean that says little: the optimum for record utility all but gives up on rare values. "
        "There our fine-grain adds a little of uniform perturbation; elsewhere the two are the same. For "
        "errors: coins for a small error of counts instead of many rows kept, under the same limits; the thesis asks "
        "whether a linear objective does that (its future work). Line-ups keep the "
        "same requirement, every value at most theta times as sure, against whoever knows the frequencies.",
        _chart(varied, paper, drawn),
        draws=draws,
    )


def _chart(
    varied: str,
    paper: Mapping[int, tuple[Errors, Errors]],
    drawn: Mapping[str, Mapping[int, tuple[Spread, ...]]],
) -> Chart | None:
    """Errors against what is varied, a panel for each selectivity; a single table is no line."""
    if len(paper) < 2:
        return None
    marks = {"fine-grain, its optimum": 0, "uniform": 1}
    return Chart(
        "Error of the reconstructed histogram",
        varied,
        "mean relative error",
        tuple(
            line(
                kind,
                {x: errors[place] for x, errors in by_x.items()},
                paper={x: both[marks[kind]][place] / 100 for x, both in paper.items()} if kind in marks else None,
                panel=f"values >= {per_cent(share)}",
            )
            for place, share in enumerate(SELECTIVITIES)
            for kind, by_x in drawn.items()
        ),
        log_y=True,
        percent=True,
    )


def _inside(errors: tuple[Spread, ...], paper: Errors, sure: float) -> bool:
    """Whether the thesis' means of some instances can have come from where ours did."""
    return all(
        abs(100 * error.mean - printed) <= 100 * sure * error.deviation * math.sqrt(1 / INSTANCES + 1 / error.draws)
        for error, printed in zip(errors, paper, strict=True)
    )


def _outside(varied: str, off: list[str]) -> str:
    return f"outside at {varied} = {', '.join(off)}" if off else "all inside"


def _shown(errors: tuple[Spread, ...] | None) -> str:
    if errors is None:
        return "not invertible"
    return " / ".join(with_spread(error).removesuffix(" %") for error in errors) + " %"


def _printed(errors: Errors) -> str:
    return slashed(errors, "g") + " %"


def _utility_chart(x: str, drawn: Mapping[int, tuple[float, ...]], names: tuple[str, ...]) -> Chart:
    return Chart(f"Rows published as they are, against {x}", x, "record utility", lines(names, drawn), percent=True)


def figure_28() -> Item:
    rows, drawn = [], {}
    for skew in (1, 2, 3, 4):
        cut, uncut = zipf(20, skew), zipf(20, skew, grid=ROWS)
        drawn[skew] = (*utilities(cut, THETA), *utilities(uncut, THETA))
        rows.append((str(skew), str(cut.m), *map(per_cent, drawn[skew])))
    columns = list(zip(*drawn.values(), strict=True))
    as_cut = _rises(columns[0]) and _rises(columns[1][::-1])
    return Item(
        "THESIS Figure 28",
        "Record utility against the skew lambda; Zipf, m = 20, 300k rows, theta = 30, frequencies cut to 0.1 % (as in "
        "the other tables) and not cut. The thesis shows curves.",
        ("lambda", "values left", "fine-grain", "uniform", "fine-grain, not cut", "uniform, not cut"),
        tuple(rows),
        as_cut,
        "The thesis: fine-grain rises towards 100 %, uniform falls. The verdict is for frequencies cut, as in the "
        f"other tables: {'both hold' if as_cut else 'not both hold'}. "
        "(Cut, values disappear as the skew grows, and the smaller domain helps uniform perturbation.)",
        _utility_chart("skew lambda", drawn, ("fine-grain", "uniform", "fine-grain, not cut", "uniform, not cut")),
    )


def _rises(numbers: tuple[float, ...]) -> bool:
    return all(first <= second for first, second in pairwise(numbers))
