"""What `deniable plan` prints beside its comparison: one mechanism explained, and the smallest rho2 for an error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from deniable.cli import console
from deniable.core import values
from deniable.core.plan import Plan
from deniable.core.probability import percent
from deniable.planning.beliefs import lineup_rows, value_rows
from deniable.planning.planner import Strongest

LINED_UP = ("share", "stands in", "believed at most")
SHARES = ("share", "coin", "kept", "rho1", "grows to", "rho2", "falls to")


def explained(made: Plan) -> dict[str, list[dict[str, Any]]]:
    """A plan for its owner: its cells, and value by value where there is one cell only, or line-ups."""
    if made.parts[0].lineups is not None:
        return {"line-ups": [{**row, "value": values.to_json(row["value"])} for row in lineup_rows(made)]}
    tables = {"cells": cell_rows(made)}
    if len(made.cells) == 1:
        tables["values"] = [{**row, "value": values.to_json(row["value"])} for row in value_rows(made)]
    return tables


def show_explained(tables: dict[str, list[dict[str, Any]]]) -> None:
    console.show()
    if "line-ups" in tables:
        rows = [[row["value"], *(percent(row[name]) for name in LINED_UP)] for row in tables["line-ups"]]
        console.show_table(["value", *LINED_UP], rows)
        return
    console.show_table(list(tables["cells"][0]), [list(row.values()) for row in tables["cells"]])
    if "values" not in tables:
        return
    columns = ["value", *SHARES]
    rows = [[row["value"], *(percent(row[name]) if name in row else "" for name in SHARES)] for row in tables["values"]]
    console.show()
    console.show_table(columns, rows)
    required = [row for row in tables["values"] if "rho1" in row]
    holding = sum(row["downward"] for row in required)
    console.show(
        f"Upward: whoever believes a value at up to its rho1 becomes at most as sure as 'grows to' says, for every "
        f"protected value ({len(required):,}). Downward: whoever believes it at rho2 or more stays at 'falls to' or "
        f"above, which is not below rho1 for {holding:,} of them."
    )


def cell_rows(made: Plan) -> list[dict[str, Any]]:
    """The cells of a plan, for the owner."""
    return [
        {
            "cell": number,
            "values": cell.channel.m,
            "share of rows": percent(Fraction(cell.size, max(made.histogram.rows, 1))),
            "coins": f"{percent(float(cell.channel.coins.min()))} to {percent(float(cell.channel.coins.max()))}",
            "gamma": round(cell.channel.gamma, 3),
            "first values": ", ".join(str(value)[:20] for value in cell.channel.values[:5]),
        }
        for number, cell in enumerate(made.cells)
    ]


def cell_shares(made: Plan) -> list[dict[str, Any]]:
    return [
        {"cell": number, "value": str(value)[:40], "share": rows / max(cell.size, 1)}
        for number, cell in enumerate(made.cells)
        for value, rows in cell.rows.items()
        if rows
    ]


def show_strongest(strongest: Sequence[Strongest], error: float, size: float, *, as_json: bool) -> None:
    """For each mechanism the smallest rho2 that answers within the error, or why there is none."""
    if as_json:
        console.emit({"error": error, "question": size, "strongest": [_described(one) for one in strongest]})
        return
    table = [
        [one.mechanism, "none" if one.rho2 is None else f"{float(one.rho2):.4g}", percent(one.error, 3)]
        for one in strongest
        if not one.refusal
    ]
    console.show_table(["mechanism", "smallest rho2", f"error at {percent(size, 2)} of the rows"], table)
    for one in strongest:
        if one.refusal:
            console.show(f"\n{one.mechanism} does not apply: {one.refusal}")
    best = strongest[0]
    if best.rho2 is None:
        console.show(
            f"\nNo mechanism answers questions about {percent(size, 2)} of the rows within {percent(error, 2)}."
        )
    else:
        console.show(f"\nThe strongest is {best.mechanism}: an attacker may become at most {percent(best.rho2)} sure.")


def _described(one: Strongest) -> dict[str, Any]:
    return {
        "mechanism": one.mechanism,
        "rho2": None if one.rho2 is None else float(one.rho2),
        "error": one.error if math.isfinite(one.error) else None,
        **({"refused": one.refusal} if one.refusal else {}),
    }
