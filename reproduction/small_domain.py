"""SDR (VLDB 2010) and chapter 4 of THESIS: small-domain randomization against uniform perturbation and Anatomy."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from deniable.core.channels import Channel
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.mechanisms import SmallDomain, Uniform
from deniable.planning.candidates import Chart, lines
from deniable.planning.pools import CodedTable
from reproduction import five_pools
from reproduction.comparison import everything, pools
from reproduction.criteria import limit
from reproduction.five_pools import DRAWS
from reproduction.introduction import introduction
from reproduction.items import Item, census_table, near, per_cent
from reproduction.lineups import attacked, lineups
from reproduction.readings import SHAPES, ZIPF_READINGS, with_readings, zipf_readings
from reproduction.resampling import resampled
from reproduction.running import Paper, Part, Step
from reproduction.small_domain_errors import THIRD, figure_2, figure_4
from reproduction.small_domain_series import figure_5, figure_6, from_the_optimum, table_3
from reproduction.zipf import zipf_table

TITLE = "Small-domain randomization (SDR; THESIS, chapter 4)"
MOST_DRAWS = 5  # of the tables of up to 500,000 rows
TABLE_1 = {77: (4.9, 1.2), 70: (5.4, 1.4), 50: (7.4, 1.9), 14: (22.2, 5.6), 9: (30.8, 7.7), 7: (36.4, 9.1)}
TABLE_1 |= {6: (40.0, 10.0), 2: (66.7, 16.7)}
TABLE_2 = {6: (2.9, 9.0), 5: (4.0, 12.3), 4: (5.9, 17.3), 3: (9.4, 25.7)}


def paper(data: str | Path | None = None, *, draws: int = DRAWS) -> Paper:
    """All items."""
    census = census_table(data)
    table = CodedTable.of(census, "occupation")
    few = min(draws, MOST_DRAWS)
    steps = (
        Step(introduction, 3),
        Step(table_1),
        Step(lambda: table_2(CodedTable.of(resampled(census, THIRD), "occupation").histogram)),
        Step(lambda: table_3(census), 4),
        Step(lambda: from_the_optimum(census), 7),
        Step(_on_pools, parts=(Part(lambda: attacked(table)), *five_pools.parts(table, draws))),
        Step(lambda: figure_2(census, draws=few), 25),
        Step(lambda: figure_4(census, draws=few), 12),
        Step(lambda: figure_5(census), 2),
        Step(lambda: figure_6(census)),
        Step(_zipf_tables, parts=(*_tables(draws), *_readings(draws))),
    )
    return Paper("small-domain", TITLE, steps)


def _tables(draws: int) -> tuple[Part, ...]:
    """THESIS Tables 5 and 6."""
    return tuple(
        Part(lambda name=name: zipf_table(name, SHAPES[name], draws=draws), 10)  # type: ignore[misc]
        for name in SHAPES
    )


def _readings(draws: int) -> tuple[Part, ...]:
    """The same in every reading."""
    return tuple(Part(lambda words=words: zipf_readings(words, draws), 8) for words in ZIPF_READINGS)  # type: ignore[misc]


def _zipf_tables(made: list[Any]) -> list[Item]:
    tables, readings = made[: len(SHAPES)], [one for some in made[len(SHAPES) :] for one in some]
    about = "Errors of uniform and of small-domain perturbation, for each column of the table."
    return with_readings("THESIS Tables 5 and 6, reading by reading", about, tables, readings)


def _on_pools(made: list[Any]) -> list[Item]:
    """The tables of mathematics 5 and 12, and Figure 3, all from the same draws."""
    gained, *drawn = made
    results = five_pools.joined(drawn)
    return [*everything(results[0]), pools(results), lineups(results, gained)]


def table_1() -> Item:
    """Coins p and q = (1-p)/m of uniform perturbation at gamma = 5."""
    rows, same, digit = [], True, limit("SDR Table 1", "points")
    for m, (p, q) in TABLE_1.items():
        channel = Channel.uniform(tuple(range(m)), gamma=Fraction(5))
        ours_p, ours_q = float(channel.coins[0]), float(channel.diagonal[0] - channel.coins[0])
        same &= max(abs(100 * ours_p - p), abs(100 * ours_q - q)) <= digit
        rows.append((str(m), f"{p} %", per_cent(ours_p), f"{q} %", per_cent(ours_q)))
    columns = ("m", "p, paper", "p, ours", "q, paper", "q, ours")
    why = "Both follow from gamma and m alone; every figure is the same to the digit that is printed."
    return Item(
        "SDR Table 1", "Coin p and replacement q of uniform perturbation, gamma = 5.", columns, tuple(rows), same, why
    )


def table_2(histogram: Histogram) -> Item:
    """Coins of UP and PP for rho2 = 1/L."""
    rows, same, coins = [], True, {}
    for size, (up, pp) in TABLE_2.items():
        privacy = Privacy(None, Fraction(1, size))
        uniform = Uniform().plan(histogram, privacy).average_coin
        cells = SmallDomain(cost="bound", orders="band").plan(histogram, privacy).cells
        partitioned = float(np.mean([cell.channel.coins[0] for cell in cells]))
        same &= near(100 * uniform, up, limit("SDR Table 2", "uniform"))
        same &= near(100 * partitioned, pp, limit("SDR Table 2", "small_domain"))
        rows.append((str(size), f"{up} %", per_cent(uniform), f"{pp} %", per_cent(partitioned)))
        coins[size] = (uniform, partitioned)
    return Item(
        "SDR Table 2",
        "Mean coin at rho2 = 1/L. The paper: OCC-300k; ours: OCC-100k resampled to 300,000 rows.",
        ("L", "uniform, paper", "uniform, ours", "small-domain, paper", "small-domain, ours"),
        tuple(rows),
        same,
        "The paper's coins are those of rho1 = the largest relative frequency, not of 1/13 (2.7 % at L = 6). "
        "Read as the same: within a twentieth for uniform, a tenth for small-domain, whose cells depend on the sample.",
        Chart(
            "Mean coin at rho2 = 1/L",
            "L",
            "mean coin",
            lines(
                ("uniform", "small-domain"),
                coins,
                papers={size: (up / 100, pp / 100) for size, (up, pp) in TABLE_2.items()},
            ),
            percent=True,
        ),
    )
