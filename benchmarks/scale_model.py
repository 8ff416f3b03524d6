"""The cost model of docs/explanation/scale.md, from what benchmarks/scale.py measured: python benchmarks/scale_model.py
measured.jsonl

    seconds(n) = start + row n,    memory(n) = base + held n

fitted to the tables up to 10^7 rows and compared with those of 10^8; then what 10^10 and 10^12 rows would take. These
are computed, not measured.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import numpy as np

VALUES = 50
FITTED, CHECKED = (10**5, 10**6, 10**7), 10**8
CLUSTERS = ((10**10, (1, 10, 100)), (10**12, (100, 1000)))
CORES, USED = 16, 0.7  # of a machine of a cluster, and the share of them that is busy
SPOOLED = 18  # bytes of a row with its sort key, compressed: measured by counting what is in the buckets' files
Costs = dict[str, dict[int, tuple[float, float]]]  # command -> rows -> (processor seconds, megabytes)


def costs_of(file: Path) -> Costs:
    """What was measured and not refused."""
    costs: Costs = {}
    for rows, values, what, cell in map(json.loads, file.read_text().splitlines()):
        numbers = re.fullmatch(r"([\d.]+) s, ([\d,]+) MB", cell)
        if values == VALUES and numbers is not None:
            costs.setdefault(what, {})[rows] = float(numbers[1]), float(numbers[2].replace(",", ""))
    return costs


def line(points: dict[int, tuple[float, float]], which: int) -> tuple[float, float]:
    """The straight line through what was measured: where it starts, and what a row adds."""
    rows = [n for n in FITTED if n in points]
    # Relative errors count: without weights the largest table alone would decide.
    weights = [1 / points[n][which] for n in rows]
    slope, start = np.polyfit(rows, [points[n][which] for n in rows], 1, w=weights)
    return float(start), max(float(slope), 0.0)


def main() -> None:
    """Print three tables."""
    costs = costs_of(Path(sys.argv[1]))
    print("| | s at start | ns a row | MB at start | bytes a row | 10^8 rows: predicted | measured |")
    print("|---|---|---|---|---|---|---|")
    models = {what: (line(points, 0), line(points, 1)) for what, points in costs.items() if FITTED[-1] in points}
    for what, ((start, row), (base, held)) in models.items():
        predicted = f"{start + row * CHECKED:,.0f} s, {base + held * CHECKED:,.0f} MB"
        seen = costs[what].get(CHECKED)
        measured = "not measured" if seen is None else f"{seen[0]:,.0f} s, {seen[1]:,.0f} MB"
        fitted = f"{start:.1f} | {row * 1e9:,.0f} | {base:,.0f} | {held * 2**20:,.0f}"
        print(f"| {what} | {fitted} | {predicted} | {measured} |")
    seen = costs["publish"].get(CHECKED)
    row = models["publish"][0][1] if seen is None else seen[0] / CHECKED
    print("\n| rows | machines | hours to publish | shuffled in all | by each machine |\n|---|---|---|---|---|")
    for rows, clusters in CLUSTERS:
        for machines in clusters:
            hours = rows * row / (machines * CORES * USED) / 3600
            moved = rows * SPOOLED / 1e12
            own = 1000 * moved / machines
            print(f"| 10^{math.log10(rows):.0f} | {machines} | {hours:,.2g} | {moved:,.2g} TB | {own:,.3g} GB |")


if __name__ == "__main__":
    main()
