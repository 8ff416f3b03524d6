"""How long small-domain randomization takes to plan, and how much error its costs and channels predict.

Run it: python benchmarks/small_domain_planning.py
"""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np

from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.mechanisms.partitioning import COSTS, value_variances
from deniable.mechanisms.small_domain import SmallDomain
from deniable.mechanisms.uniform import Uniform

RHO2 = "1/6"


def zipf(m: int, exponent: float, n: int) -> Histogram:
    """f_i ~ i^-exponent, at least one row each."""
    weights = np.arange(1, m + 1) ** -float(exponent)
    return Histogram.of(dict(enumerate(np.maximum(1, np.round(n * weights / weights.sum())).astype(int).tolist())))


def predicted(plan: Plan) -> tuple[float, float]:
    """Root mean square error of the reconstructed counts, and of count / true count, over the values."""
    variance = np.zeros(plan.histogram.m)
    for cell in plan.cells:
        variance[plan.positions(cell)] += value_variances(cell.rows.counts, cell.channel)
    return float(np.sqrt(variance.mean())), float(np.sqrt((variance / plan.histogram.counts**2).mean()))


def speed() -> list[dict[str, Any]]:
    """Planning time; ratio is the time against the smallest table's."""
    result: list[dict[str, Any]] = []
    for m, n in ((50, 300_000), (500, 10**6), (5_000, 10**7), (15_000, 10**8)):
        table = zipf(m, 1, n)
        started = time.perf_counter()
        plan = SmallDomain().plan(table, Privacy(rho2="1/3"))
        seconds = time.perf_counter() - started
        first = result[0]["seconds"] if result else seconds
        note = f"{len(plan.cells):,} cells"
        result.append(
            {"what": f"plan Zipf(1), m = {m:,}, n = {n:,}", "seconds": seconds, "ratio": seconds / first, "note": note}
        )
    tracemalloc.start()
    SmallDomain().plan(zipf(15_000, 1, 10**8), Privacy(rho2="1/3"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result[-1]["note"] += f", {peak / 1e6:.0f} MB at most"
    return result


def error() -> list[dict[str, Any]]:
    """Predicted error; ratio is the RMSE against one uniform channel for the table."""
    result = []
    for exponent, m in ((0.5, 50), (1, 50), (1, 150), (2, 50)):
        table = zipf(m, exponent, 300_000)
        exempt = [value for value in table if table.frequency(value) > Privacy("1/13", RHO2).rho1]
        uniform, _ = predicted(Uniform().plan(table, Privacy(rho2=RHO2, exempt=exempt)))
        mechanisms = [(cost, SmallDomain(cost=cost)) for cost in COSTS]
        mechanisms.append(("relative, fine-grain", SmallDomain(channels="fine-grain")))
        mechanisms.append(("relative, min_rows 1000", SmallDomain(min_rows=1000)))
        for name, mechanism in mechanisms:
            started = time.perf_counter()
            plan = mechanism.plan(table, Privacy("1/13", RHO2))
            seconds = time.perf_counter() - started
            rmse, relative = predicted(plan)
            note = f"RMSE {rmse:.0f}, relative {relative:.3f}, {len(plan.cells)} cells (uniform: RMSE {uniform:.0f})"
            what = f"Zipf({exponent}), m = {m}: {name}"
            result.append({"what": what, "seconds": seconds, "ratio": rmse / uniform, "note": note})
    return result


def rows() -> list[dict[str, Any]]:
    """All measurements."""
    return [*speed(), *error()]


if __name__ == "__main__":
    for row in rows():
        print(f"{row['what']:48} {row['seconds']:8.3f} s {row['ratio']:8.2f}  {row['note']}")
