"""The table of weights beside the rows, computed again: what a row that shows y counts for where x is asked for,

w with sum over y of P[y][x] w(y) = 1, and 0 for all others in place of x
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable_verify import lineups
from deniable_verify.counts import REGULAR, channels_of
from deniable_verify.folder import array_of
from deniable_verify.numbers import FULL, Json, grid, points

Floats = npt.NDArray[np.float64]
LISTED, LISTED_SETS, MOST_LISTED = 10_000, 2**17, 2**22  # lines of a table
APART = 1e-9


@dataclass(frozen=True)
class Cell:
    """Coins over some values of a part; ``number`` of the cell where rows say it."""

    number: int | None
    places: Any
    keep: Floats
    replace: Floats

    def weights(self) -> Floats:
        """w [asked, shown], of coins of which one at most is 0."""
        p, r, m = self.keep, self.replace, len(self.keep)
        if m == 1:
            return np.ones((1, 1))
        zero = p == 0
        if zero.any():
            matrix = np.diag(p) + np.outer(r, 1 - p)
            return np.linalg.inv(matrix).astype(np.float64)
        odds = (1 - p) / p
        return np.diag(1 / p) - np.outer(r / p / (1 + float(r @ odds)), odds)


def weights_table(raw: Json, schema: pa.Schema) -> dict[str, Any] | None:
    """The columns that the table of weights has, arrays of Arrow or of numbers; None where a release has none."""
    pieces = [_cells_of(part) for part in raw["parts"]]
    if any(one is None for one in pieces):
        return None
    made = [piece for piece in pieces if piece is not None]
    lines = sum(_lines(part, cells) for part, cells in zip(raw["parts"], made, strict=True))
    sets = any(part.get("lineups") is not None for part in raw["parts"])
    compact = not sets and all(isinstance(cells, list) and _plain(cells) for cells in made)
    if lines <= (LISTED_SETS if sets else LISTED):
        form = "values"
    elif compact:
        form = "compact"
    elif (sets and len(made) == 1 and len(raw["parts"][0]["domain"]) ** 2 <= MOST_LISTED) or (
        not sets and lines <= MOST_LISTED
    ):
        form = "members" if sets else "values"
    else:
        return None
    tables = [
        {**({"part": [", ".join(part["columns"])]} if len(made) > 1 else {}), **table}
        for part, cells in zip(raw["parts"], made, strict=True)
        for table in _tables(part, cells, form, schema)
    ]
    return _joined(tables)


def _plain(cells: list[Cell]) -> bool:
    return all((cell.keep > 0).all() for cell in cells)


def _joined(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Tables one below the other; a column that one of them lacks is empty there."""
    names = dict.fromkeys(name for table in tables for name in table)
    numbers = [name for name in ("w", "own", "rest", "share") if name in names]
    joined: dict[str, Any] = {}
    for name in [*(name for name in names if name not in numbers), *numbers]:
        columns = []
        for table in tables:
            length = max(len(column) for column in table.values())
            column = table.get(name)
            if name == "part":
                column = pa.array((column or []) * length, pa.string())
            kind = (
                next(other[name].type for other in tables if isinstance(other.get(name), pa.Array))
                if column is None
                else None
            )
            columns.append(pa.nulls(length, kind) if column is None else column)
        joined[name] = np.concatenate(columns) if isinstance(columns[0], np.ndarray) else pa.concat_arrays(columns)
    return joined


def _cells_of(part: Json) -> list[Cell] | Floats | None:
    """Coins of a part, or w where it has none; None where its channel has no inverse, or is not published."""
    m = len(part["domain"])
    if part.get("learned") is not None:
        return [Cell(None, np.arange(m), np.ones(m), np.full(m, 1 / m))]
    if part["range"] is not None:
        number, keep = points(part["range"]), part["range"]["keep"] / FULL
        mass = np.diff(-((-np.arange(number + 1, dtype=np.int64) * FULL) // number)) / FULL
        return [Cell(None, np.arange(number), np.full(number, keep), mass)] if keep else None
    if part.get("lineups") is not None:
        return _scores(part["lineups"], m)
    channels = channels_of(part)
    if channels and (part["cells_published"] or len(channels) == 1):
        zeros = [np.flatnonzero(channel.keep == 0) for channel in channels]
        if any(len(z) > 1 or (len(z) == 1 and not c.replace[z[0]] > 0) for z, c in zip(zeros, channels, strict=True)):
            return None
        return [
            Cell(number if part["cells_published"] else None, channel.places, channel.keep, channel.replace)
            for number, channel in enumerate(channels)
        ]
    if part["mixture"] is None:
        return None
    matrix = np.array(part["mixture"], np.float64)
    matrix /= matrix.sum(axis=0)
    if np.linalg.cond(matrix) >= REGULAR:
        return None
    return np.linalg.inv(matrix).astype(np.float64)


def _scores(design: Json, m: int) -> Floats | None:
    """(B^-T 1_x)_y [asked, member] of line-ups: (J^-1 [x = y] pi_x - (1-t) pi_x / L^2) / t; None without an inverse."""
    sets, size, t = lineups.sets_of(design), lineups.size_of(design), design["truth"] / FULL
    arcs = design.get("arcs")
    pi = np.full(m, size / m) if arcs is None else np.array(arcs) / FULL
    together, share = np.zeros((m, m)), sets.blind / (lineups.DRAWS * design["orders"])
    for slot in range(size):
        for other in range(size):
            np.add.at(together, (sets.members[:, slot], sets.members[:, other]), share)
    scaled = together / np.sqrt(np.outer(pi, pi))
    if np.linalg.eigvalsh(scaled)[0] <= APART:
        return None
    scores: Floats = ((np.linalg.inv(together) * pi).T - (1 - t) * pi[:, None] / size**2) / t
    return scores


def _lines(part: Json, cells: list[Cell] | Floats) -> int:
    if part.get("lineups") is not None:
        return len(lineups.sets_of(part["lineups"]).blind) * len(part["domain"])
    if not isinstance(cells, list):
        return len(cells) ** 2
    return sum(len(cell.places) ** (1 if (cell.keep == 1).all() else 2) for cell in cells)


def _values(part: Json, schema: pa.Schema) -> dict[str, pa.Array]:
    """The values that may be asked for, by column; the items of a list share the name of the list."""
    if part.get("item") is not None:
        return {part["item"]["list"]: pa.array([False, True])}
    if part["range"] is not None:
        (name,) = part["columns"]
        kind = schema.field(name).type
        low, step, number = grid(part["range"])
        if part["range"]["kind"] == "date":
            known = pa.array([int(low + step * k) - 719_163 for k in range(number)], pa.int32()).cast(pa.date32())
        else:
            whole = part["range"]["kind"] == "integer"
            known = pa.array([int(low + step * k) if whole else float(low + step * k) for k in range(number)])
        return {name: pa.concat_arrays([known.cast(kind), pa.nulls(int(part["range"]["missing"]), kind)])}
    made = {}
    for place, (name, kind_name) in enumerate(zip(part["columns"], part["types"], strict=True)):
        kind = schema.field(name).type
        if part.get("lineups") is not None:
            from deniable_verify.folder import type_of

            kind = kind.value_type if pa.types.is_list(kind) else type_of(kind_name)
        made[name] = array_of([entry[place] for entry in part["domain"]], kind)
    return made


def _tables(part: Json, cells: list[Cell] | Floats, form: str, schema: pa.Schema) -> Iterator[dict[str, Any]]:
    known = _values(part, schema)
    if part.get("lineups") is not None:
        assert not isinstance(cells, list)
        yield _of_members(part, cells, known) if form == "members" else _of_sets(part, cells, known, schema)
    elif not isinstance(cells, list):
        yield _pairs(None, np.arange(len(cells)), cells, known)
    else:
        for cell in cells:
            yield (
                _compact(cell, known) if form == "compact" else _pairs(cell.number, cell.places, cell.weights(), known)
            )


def _pairs(number: int | None, places: Any, weights: Floats, known: dict[str, pa.Array]) -> dict[str, Any]:
    """A line for what is shown and a value, where the weight is not 0."""
    shown, value = np.nonzero(weights.T)
    made: dict[str, Any] = {} if number is None else {"cell": pa.array(np.full(len(shown), number, np.int32))}
    for name, values in known.items():
        made[f"shown_{name}"] = values.take(pa.array(places[shown]))
        made[f"value_{name}"] = values.take(pa.array(places[value]))
    return {**made, "w": weights[value, shown]}


def _compact(cell: Cell, known: dict[str, pa.Array]) -> dict[str, Any]:
    """A line for each value."""
    p, r, m = cell.keep, cell.replace, len(cell.keep)
    rest = (1 - p) / p
    made: dict[str, Any] = {} if cell.number is None else {"cell": pa.array(np.full(m, cell.number, np.int32))}
    for name, values in known.items():
        made[f"value_{name}"] = values.take(pa.array(cell.places))
    if m == 1:
        return {**made, "own": np.ones(1), "rest": np.zeros(1), "share": np.zeros(1)}
    return {**made, "own": 1 / p, "rest": rest, "share": r / p / (1 + float(r @ rest))}


def _of_sets(part: Json, scores: Floats, known: dict[str, pa.Array], schema: pa.Schema) -> dict[str, Any]:
    """A line for a set, as rows show it, and a value; sets in the order of their codes, or of their members."""
    (name,), sets = part["columns"], lineups.sets_of(part["lineups"])
    order = np.lexsort(sets.members.T[::-1])
    members = sets.members[order]
    weights = scores[:, members].sum(axis=2)
    if lineups.is_coded(part["lineups"]):
        shown_sets = pa.array(sets.codes[order], pa.int32())
    else:
        ends = pa.array(np.arange(len(members) + 1) * members.shape[1], pa.int32())
        shown_sets = pa.ListArray.from_arrays(
            ends, known[name].take(pa.array(members.reshape(-1))), type=schema.field(name).type
        )
    shown, value = np.nonzero(weights.T)
    return {
        f"shown_{name}": shown_sets.take(pa.array(shown)),
        f"value_{name}": known[name].take(pa.array(value)),
        "w": weights[value, shown],
    }


def _of_members(part: Json, scores: Floats, known: dict[str, pa.Array]) -> dict[str, Any]:
    """A line for a member and a value; ``place`` says where the member stands in the domain."""
    (name,), m = part["columns"], len(part["domain"])
    member, value = (array.reshape(-1) for array in np.divmod(np.arange(m**2), m))
    return {
        "place": pa.array(member, pa.int32()),
        f"member_{name}": known[name].take(pa.array(member)),
        f"value_{name}": known[name].take(pa.array(value)),
        "w": scores[value, member],
    }
