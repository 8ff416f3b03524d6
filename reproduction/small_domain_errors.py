"""SDR Figures 2 and 4 (THESIS Figures 17 and 19): errors of counts against L and against the number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa

from deniable.core.histogram import SELECTIVITIES
from deniable.core.privacy import Privacy
from deniable.lab.anatomy import Anatomized
from deniable.lab.experiments import Row, run_experiment
from deniable.lab.rival import Setting
from deniable.lab.settings import Perturbed
from deniable.mechanisms import Designed, Lineup, SmallDomain, Uniform
from deniable.planning.candidates import Chart, line
from deniable.planning.pools import CodedTable, QuestionPool, sdr_pool
from reproduction.criteria import limit
from reproduction.five_pools import RHO1
from reproduction.items import Item, per_cent, slashed, yes
from reproduction.resampling import SIZES, resampled

THIRD = 300_000  # rows of the upper halves
LEVELS = (6, 5, 4, 3)  # L, rho2 = 1/L
SKEWED = (10, 8, 6, 4)
RARE = Fraction(1, 30)  # rho1 of the skewed column
PAPERS, LINE_UPS = "small-domain, the paper's", "line-up"
Errors = tuple[float, ...]
Rows = dict[int, dict[str, Row]]


def _rows(pool: QuestionPool, rho1: Fraction, size: int, draws: int, *, designed: bool = False) -> dict[str, Row]:
    """The errors of uniform, small-domain, Anatomy and line-ups at one L, and of designed channels."""
    privacy = Privacy(rho1, Fraction(1, size))
    settings: list[Setting] = [
        Perturbed("uniform", Uniform(), privacy, ("inverse",)),
        Perturbed(PAPERS, SmallDomain(cost="bound", orders="band"), privacy, ("inverse",)),
        Anatomized(size),
        Perturbed(LINE_UPS, Lineup(), privacy, ("calibrated",)),
    ]
    if designed:
        settings.append(Perturbed("designed", Designed(), privacy, ("calibrated",)))
    result = run_experiment(pool, settings, draws=draws)
    return {row.setting: row for row in result.rows}


def _errors(rows: Mapping[str, Row]) -> dict[str, Errors]:
    return {name: row.errors(SELECTIVITIES) for name, row in rows.items()}


def _below(first: Errors, second: Errors) -> bool:
    return all(a < b for a, b in zip(first, second, strict=True))


def figure_2(census: pa.Table, *, draws: int) -> list[Item]:
    """OCC: against L at 300,000 rows, and against the rows at L = 6."""
    pool = sdr_pool(CodedTable.of(resampled(census, THIRD), "occupation"))
    by_level = {size: _rows(pool, RHO1, size, draws, designed=True) for size in LEVELS}
    by_rows: Rows = {THIRD: by_level[LEVELS[0]]}
    for number in SIZES:
        if number != THIRD:
            other = CodedTable.of(resampled(census, number), "occupation")
            by_rows[number] = _rows(sdr_pool(other), RHO1, LEVELS[0], draws)
    return [_upper(by_level, draws), _lower(dict(sorted(by_rows.items())), draws)]


NAMES = ("uniform", PAPERS, "anatomy", LINE_UPS, "independence")


def _upper(by_level: Rows, draws: int) -> Item:
    errors = {size: _errors(rows) for size, rows in by_level.items()}
    under = all(_below(one[PAPERS], one["uniform"]) for one in errors.values())
    falls = all(_below(errors[b][PAPERS], errors[a][PAPERS]) for a, b in pairwise(LEVELS))
    ahead = [
        (size, share)
        for size, one in errors.items()
        for share, ours, anatomy in zip(SELECTIVITIES, one[PAPERS], one["anatomy"], strict=True)
        if ours >= anatomy
    ]
    behind = "; ".join(f"L = {size}, {per_cent(share)}" for size, share in ahead)
    names = (*NAMES[:3], "designed", *NAMES[3:])
    return Item(
        "SDR Figure 2, upper half (THESIS Figure 17)",
        f"Mean relative error at selectivity >= 0.1 / 0.5 / 1 % against L (rho2 = 1/L), OCC resampled to {THIRD:,} "
        f"rows, {draws} draws; by inversion, designed channels and line-ups calibrated. The paper shows curves for "
        "OCC-300k.",
        ("L", *names),
        tuple((str(size), *(slashed(one[name]) for name in names)) for size, one in errors.items()),
        under and falls and not ahead,
        f"The paper: small-domain is below uniform everywhere ({yes(under)}), falls as L falls ({yes(falls)}), and is "
        f"below Anatomy ({yes(not ahead)}{': not at ' + behind if behind else ', at every L and selectivity'}), which "
        "hardly changes. The paper shows no independence estimate, and Anatomy is not far from it.",
        _chart("Errors against L", "L (rho2 = 1/L)", by_level, names),
        draws=draws,
    )


def _lower(by_rows: Rows, draws: int) -> Item:
    name = "SDR Figure 2, lower half (THESIS Figure 17)"
    errors = {number: _errors(rows) for number, rows in by_rows.items()}
    sizes = list(errors)
    falls = _below(errors[sizes[-1]][PAPERS], errors[sizes[0]][PAPERS])
    under = all(_below(one[PAPERS], one["uniform"]) for one in errors.values())
    ahead = [number for number, one in errors.items() if _below(one[PAPERS], one["anatomy"])]
    from_here = all(number in ahead for number in sizes if number >= limit(name, "from_rows"))
    steady = max(abs(a - b) / b for a, b in zip(errors[sizes[-1]]["anatomy"], errors[sizes[0]]["anatomy"], strict=True))
    return Item(
        name,
        f"The same against the number of rows, L = 6; OCC and resampled, {draws} draws.",
        ("rows", *NAMES),
        tuple((f"{number:,}", *(slashed(one[name]) for name in NAMES)) for number, one in errors.items()),
        falls and under and from_here,
        f"The paper: small-domain gains from more rows ({yes(falls)}) and is below uniform ({yes(under)}) and Anatomy "
        f"({yes(from_here)} from {THIRD:,} rows on; below at every selectivity at "
        f"{', '.join(f'{number:,}' for number in ahead) or 'none'}). Anatomy's own error is its bias, and moves "
        f"by at most {per_cent(steady)} from the fewest to the most rows.",
        _chart("Errors against rows", "rows", by_rows, NAMES),
        draws=draws,
    )


def figure_4(census: pa.Table, *, draws: int) -> list[Item]:
    """EDU: against L at 300,000 rows, and against the rows at L = 10."""
    by_level: Rows = {}
    cells: dict[int, int] = {}
    pool = sdr_pool(CodedTable.of(resampled(census, THIRD), "education"))
    for size in SKEWED:
        cells[size] = _cells(pool.table, size)
        by_level[size] = _rows(pool, RARE, size, draws)
    by_rows: Rows = {THIRD: by_level[SKEWED[0]]}
    for number in SIZES:
        if number != THIRD:
            other = CodedTable.of(resampled(census, number), "education")
            by_rows[number] = _rows(sdr_pool(other), RARE, SKEWED[0], draws)
    first = _skewed("upper half", "L", by_level, draws, f"rho2 = 1/L, resampled to {THIRD:,} rows", cells)
    second = _skewed("lower half", "rows", dict(sorted(by_rows.items())), draws, "rho2 = 1/10", {})
    return [first, second]


def _cells(table: CodedTable, size: int) -> int:
    mechanism = SmallDomain(cost="bound", orders="band")
    return len(mechanism.plan(table.histogram, Privacy(RARE, Fraction(1, size))).cells)


def _skewed(half: str, varied: str, by: Rows, draws: int, about: str, cells: Mapping[int, int]) -> Item:
    errors = {number: _errors(rows) for number, rows in by.items()}
    worse = [number for number, one in errors.items() if _below(one["uniform"], one["anatomy"])]
    one_cell = all(number == 1 for number in cells.values())
    degenerate = (
        f"small-domain becomes uniform perturbation ({yes(one_cell)}: one cell at every L), and " if cells else ""
    )
    return Item(
        f"SDR Figure 4, {half} (THESIS Figure 19)",
        f"A skewed column: education, rho1 = 1/30, {about}, {draws} draws; selectivity >= 0.1 / 0.5 / 1 %.",
        (varied, *NAMES),
        tuple((f"{number:,}", *(slashed(one[name]) for name in NAMES)) for number, one in errors.items()),
        one_cell and len(worse) == len(errors),
        f"The paper: {degenerate}Anatomy, which must suppress rows of the frequent values first, is far worse (at "
        f"{len(worse)} of {len(errors)} points at every selectivity).",
        _chart(f"Errors against {varied}, a skewed column", varied, by, NAMES),
        draws=draws,
    )


def _chart(title: str, x: str, by: Rows, names: Sequence[str]) -> Chart:
    """Errors, a panel for each selectivity."""
    return Chart(
        title,
        x,
        "mean relative error",
        tuple(
            line(
                name,
                {number: rows[name].numbers[f"relative {share:g}"] for number, rows in by.items()},
                panel=f"selectivity >= {per_cent(share)}",
            )
            for share in SELECTIVITIES
            for name in names
        ),
        log_y=True,
        percent=True,
    )
