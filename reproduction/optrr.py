"""OptRR (Huang and Du, ICDE 2008) beside designed channels: how much there is to gain from whole matrices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.lab import OptRR
from deniable.lab.draws import draw_plan, stream_of
from deniable.lab.rival import estimated
from deniable.mechanisms import Designed, Identity, Lineup, Mechanism, Uniform
from deniable.planning.pools import CodedTable
from deniable.planning.prediction import Spread, spread
from reproduction.items import Item
from reproduction.zipf import table_of, zipf

DRAWS = 20
GENERATIONS = (100, 1000)
MECHANISMS: dict[str, Mechanism] = {
    "uniform": Uniform(),
    "identity": Identity(),
    "designed": Designed(),
    **{f"OptRR, {number} generations": OptRR(40, number) for number in GENERATIONS},
    "line-up": Lineup(),
}
ONE_VALUE = tuple(name for name in MECHANISMS if name != "line-up")  # a row publishes one value


def optrr(census: pa.Table, *, draws: int = DRAWS) -> Item:
    """Root mean squared error of reconstructed counts, by inversion."""
    tables = {
        "8 values, rho2 = 1/3": (
            Histogram(tuple("abcdefgh"), np.array([2200, 2000, 1500, 1300, 1000, 1000, 600, 400])),
            Privacy(rho2=Fraction(1, 3)),
        ),
        "Zipf, m = 20, lambda = 1/2, rho2 = 1/4": (zipf(20, 0.5, rows=100_000), Privacy(rho2=Fraction(1, 4))),
        "OCC-100k, 50 values, (1/13, 1/6)": (
            CodedTable.of(census, "occupation").histogram,
            Privacy(Fraction(1, 13), Fraction(1, 6)),
        ),
    }
    rows, lowest, sets = [], dict[str, str](), []
    for name, (histogram, privacy) in tables.items():
        errors = {
            label: squared_error(mechanism.plan(histogram, privacy), label, draws)
            for label, mechanism in MECHANISMS.items()
        }
        lowest[name] = min(ONE_VALUE, key=lambda label: errors[label].mean)
        sets += [name] if errors["line-up"].mean < errors[lowest[name]].mean else []
        rows.append((name, *(f"{error.mean:,.0f} ± {error.deviation:,.0f}" for error in errors.values())))
    ahead = [name for name, label in lowest.items() if label.startswith("OptRR")]
    return Item(
        "OptRR beside designed channels",
        f"Root mean squared error of the reconstructed counts of all values, mean ± standard deviation over {draws} "
        "draws, everyone being promised the same. OptRR searches whole matrices for this error and for the bound; "
        "designed channels are coins and replacements, made for relative errors of counts of some sizes.",
        ("", *MECHANISMS),
        tuple(rows),
        None,
        "The thesis names what speaks against OptRR (2.1, 5.5), and measures nothing. Among mechanisms that publish "
        "one value, the smallest error is "
        + "; ".join(f"{label} ({name})" for name, label in lowest.items())
        + ". "
        + (
            "A search is ahead where the matrix is small enough to be searched. "
            if ahead
            else "The search is never ahead of designed channels. "
        )
        + f"Line-ups, which publish a set of values, do better still on {len(sets)} of {len(tables)} tables.",
        draws=draws,
    )


def squared_error(plan: Plan, label: str, draws: int, seed: int = 1) -> Spread:
    """The root mean squared error of a plan's reconstructed counts, over draws."""
    table, single, errors = table_of(plan.histogram), np.eye(plan.histogram.m, dtype=bool), []
    for number in range(draws):
        draw = draw_plan(table, plan, stream_of(seed, number, label), None)
        counts = estimated(draw.asking, draw.asking.total[None, :], single, "inverse")[0]
        errors.append(float(np.sqrt(((counts - plan.histogram.counts) ** 2).mean())))
    return spread(errors)
