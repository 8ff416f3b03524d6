"""Weights beside the rows: what a published row counts for, as a table that any tool can join (mathematics 8).

A row that shows y counts w(y) for the value x, 1 on average where its original is x and 0 elsewhere, so for a set S of
values and rows that are independent

    w_S(y) = sum over x in S of w_x(y),    count = sum of w_S,    its variance = sum of (w_S^2 - w_S)

since E[w_S] is 1 or 0, which is its square: Var w_S = E[w_S^2] - E[w_S]. The table is a function of the manifest alone
and has one of three forms:

    values      a line for what a row shows and a value: w
    compact     a line for each value x: own, rest, share;  w_S(y) = own_y [y in S] - rest_y sum over S of share
    members     of line-ups: a line for a member and a value; w(set) = sum over its members

own = 1/p, rest = (1-p)/p and share = (r/p) / (1 + sum r (1-p)/p) are the formula of Sherman and Morrison.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa

from deniable.core.channels import Channel
from deniable.core.designs import codes, is_coded
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.values import Floats, Ints
from deniable.estimation.model.columns import values_of
from deniable.estimation.model.lineups import LineUpStates
from deniable.estimation.model.states import inverse_of
from deniable.estimation.model.tensor import stochastic
from deniable.tables.encoding import arrow_type
from deniable.tables.lineups import CODE, list_type

Form = Literal["values", "compact", "members"]
LISTED = 10_000  # lines of a table that lists what is shown by value: more are compact, where there is a compact form
LISTED_SETS = 2**17  # the same of line-ups
MOST_LISTED = 2**22  # lines of a table that has no compact form: beyond, there is none


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell's coins over some values of its part.

    Attributes:
        number: of the cell; None where rows do not say it.
        places: where its values stand among those of the part.
        coins, replacing: p and r.
    """

    number: int | None
    places: Ints
    coins: Floats
    replacing: Floats
    channel: Channel | None = None

    @property
    def plain(self) -> bool:
        """Whether every value has a weight of its own by the compact form."""
        return bool((self.coins > 0).all())

    def compact(self) -> tuple[Floats, Floats, Floats]:
        """own, rest and share of every value; a cell of one value says it for certain."""
        p, r = self.coins, self.replacing
        if len(p) == 1:
            return np.ones(1), np.zeros(1), np.zeros(1)
        rest = (1 - p) / p
        return 1 / p, rest, (r / p) / (1 + float((r * rest).sum()))

    def weights(self) -> Floats:
        """w [asked, shown]."""
        if not self.plain:
            assert self.channel is not None
            return self.channel.weights(np.eye(len(self.places)))
        own, rest, share = self.compact()
        return np.diag(own) - share[:, None] * rest[None, :]


@dataclass(frozen=True, eq=False)
class PartWeights:
    """What rows count for by what they show in the columns of one part.

    Attributes:
        part: of the release.
        cells: where it has coins.
        matrix: w [asked, shown] where it has none, over the part's values.
    """

    part: Part
    cells: tuple[Cell, ...] = ()
    matrix: Floats | None = None

    @property
    def lines(self) -> int:
        """Of the form ``values``."""
        design = self.part.lineups
        if design is not None:
            return len(design.sets.lengths) * design.m
        if self.matrix is not None:
            return self.part.m**2
        return sum(len(cell.places) ** (1 if (cell.coins == 1).all() else 2) for cell in self.cells)

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """The values that may be asked for, by column; the items of a list share the name of the list."""
        part = self.part
        if part.item is not None:
            return {part.item.list: pa.array(part.domain, pa.bool_())}
        if part.range is None:
            return {
                name: pa.array(part.column_values(name), arrow_type(kind))
                for name, kind in zip(part.columns, part.types, strict=True)
            }
        kind = arrow_type(part.types[0])
        known = values_of(part, part.columns[0], part.types[0]).cast(kind)
        return {part.columns[0]: pa.concat_arrays([known, pa.nulls(int(part.range.missing), kind)])}

    @property
    def named(self) -> str:
        """How the table of several parts calls this one."""
        return ", ".join(self.part.columns)


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of a release: its parts, and the form of their table."""

    parts: tuple[PartWeights, ...]
    form: Form

    @classmethod
    def of(cls, manifest: Manifest) -> Weights | None:
        """From the manifest alone; None where rows have no weights, or these have no table of a size that is read."""
        parts = []
        for part in manifest.parts:
            weighed = _of_part(part)
            if weighed is None:
                return None
            parts.append(weighed)
        form = _form(parts)
        return None if form is None else cls(tuple(parts), form)

    def table(self) -> pa.Table:
        """The table, in the order of parts, cells, what is shown and values."""
        several = len(self.parts) > 1
        tables = []
        for one in self.parts:
            for table in self._tables(one):
                named = pa.array([one.named] * table.num_rows, pa.string())
                tables.append(table.add_column(0, "part", named) if several else table)
        joined = pa.concat_tables(tables, promote_options="default")
        numbers = [name for name in ("w", "own", "rest", "share") if name in joined.column_names]
        return joined.select([*(name for name in joined.column_names if name not in numbers), *numbers])

    def _tables(self, one: PartWeights) -> Iterator[pa.Table]:
        if self.form == "compact":
            yield from (_compact(one, cell) for cell in one.cells)
        elif self.form == "members":
            yield _members(one)
        elif one.part.lineups is not None:
            yield _sets(one)
        elif one.matrix is not None:
            yield _listed(one, None, np.arange(one.part.m), one.matrix)
        else:
            yield from (_listed(one, cell.number, cell.places, cell.weights()) for cell in one.cells)


def _form(parts: list[PartWeights]) -> Form | None:
    lines = sum(one.lines for one in parts)
    sets = any(one.part.lineups is not None for one in parts)
    if lines <= (LISTED_SETS if sets else LISTED):
        return "values"
    if all(cell.plain for one in parts for cell in one.cells) and all(one.cells for one in parts):
        return "compact"
    if sets:
        return "members" if len(parts) == 1 and parts[0].part.m ** 2 <= MOST_LISTED else None
    return "values" if lines <= MOST_LISTED else None


def _of_part(part: Part) -> PartWeights | None:
    """A part's weights; None where its channel has no inverse, or is not published."""
    if part.learned is not None:
        return PartWeights(part, (Cell(None, np.arange(part.m), np.ones(part.m), np.full(part.m, 1 / part.m)),))
    if part.range is not None:
        mass = part.range.weights()
        coins = np.full(len(mass), part.range.coin)
        return PartWeights(part, (Cell(None, np.arange(len(mass)), coins, mass),)) if part.range.keep else None
    if part.lineups is not None:
        return PartWeights(part) if LineUpStates(part.lineups).unbiased else None
    if part.channels and (part.cells_published or len(part.channels) == 1):
        if not all(channel.invertible for channel in part.channels):
            return None
        numbered = enumerate(zip(part.channels, part.cell_positions, strict=True))
        return PartWeights(
            part,
            tuple(
                Cell(number if part.cells_published else None, places, channel.coins, channel.replacing, channel)
                for number, (channel, places) in numbered
            ),
        )
    inverse = None if part.mixture is None else inverse_of(stochastic(part.mixture))
    return None if inverse is None else PartWeights(part, matrix=inverse)


def _listed(one: PartWeights, cell: int | None, places: Ints, weights: Floats) -> pa.Table:
    """A line for what is shown and a value, where the weight is not 0."""
    shown, value = np.nonzero(weights.T)
    columns = {} if cell is None else {"cell": pa.array(np.full(len(shown), cell, np.int32))}
    for name, known in one.columns.items():
        columns[f"shown_{name}"] = known.take(pa.array(places[shown]))
        columns[f"value_{name}"] = known.take(pa.array(places[value]))
    return pa.table({**columns, "w": weights[value, shown]})


def _compact(one: PartWeights, cell: Cell) -> pa.Table:
    own, rest, share = cell.compact()
    columns = {} if cell.number is None else {"cell": pa.array(np.full(len(own), cell.number, np.int32))}
    for name, known in one.columns.items():
        columns[f"value_{name}"] = known.take(pa.array(cell.places))
    return pa.table({**columns, "own": own, "rest": rest, "share": share})


def _sets(one: PartWeights) -> pa.Table:
    """A line for a set, as rows show it, and a value."""
    design, (name,) = one.part.lineups, one.part.columns
    assert design is not None
    known = one.columns[name]
    if is_coded(design):
        sets = pa.array(codes(design), CODE)
    else:
        members = design.sets.members
        ends = pa.array(np.arange(len(members) + 1) * design.size, pa.int32())
        flat = known.take(pa.array(members.reshape(-1)))
        sets = pa.ListArray.from_arrays(ends, flat, type=list_type(known.type))
    weights = LineUpStates(design).weights(np.eye(design.m, dtype=bool))
    shown, value = np.nonzero(weights.T)
    columns = {f"shown_{name}": sets.take(pa.array(shown)), f"value_{name}": known.take(pa.array(value))}
    return pa.table({**columns, "w": weights[value, shown]})


def _members(one: PartWeights) -> pa.Table:
    """A line for a member and a value; ``place`` says where the member stands in the domain."""
    design, (name,) = one.part.lineups, one.part.columns
    assert design is not None
    known, weights = one.columns[name], LineUpStates(design).scores(np.eye(design.m))
    member, value = (array.reshape(-1) for array in np.divmod(np.arange(design.m**2), design.m))
    columns = {"place": pa.array(member, CODE), f"member_{name}": known.take(pa.array(member))}
    return pa.table({**columns, f"value_{name}": known.take(pa.array(value)), "w": weights[value, member]})


# -- The same in SQL: which weight each row gets for the values that are asked for -------------------------------------


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """A value in SQL: numbers and truth values as they are, all else as a text that databases read by the column's
    type."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float | Decimal):
        return str(value)
    text = value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)
    return "'" + text.replace("'", "''") + "'"


def asked_sql(weights: Weights, one: PartWeights, condition: str) -> str:
    """What a row counts for by what it shows, where a condition on the columns ``value_..`` says what is asked for."""
    named = f"part = {literal(one.named)}" if len(weights.parts) > 1 else ""
    keys = [*(["cell"] if one.part.cells_published else []), *(quoted(f"shown_{name}") for name in one.columns)]
    if weights.form == "members":
        return _asked_of_members(one, condition)
    if weights.form == "values":
        where = " AND ".join(filter(None, (named, condition)))
        return f"SELECT {', '.join(keys)}, SUM(w) AS w FROM weights WHERE {where}\nGROUP BY {', '.join(keys)}"
    shown = [f"{quoted(f'value_{name}')} AS {quoted(f'shown_{name}')}" for name in one.columns]
    within = "PARTITION BY cell" if one.part.cells_published else ""
    return (
        f"SELECT {', '.join([*keys[: -len(shown)], *shown])},\n"
        f"  own * inside - rest * SUM(share * inside) OVER ({within}) AS w\n"
        f"FROM (SELECT *, CASE WHEN {condition} THEN 1 ELSE 0 END AS inside\n"
        f"  FROM weights{' WHERE ' * bool(named)}{named}) AS listed"
    )


def joined_sql(one: PartWeights, data: str, weighed: str) -> str:
    """What a row and its weight have in common."""
    shown = [quoted(f"shown_{name}") for name in one.columns]
    both = [f"{data}.cell = {weighed}.cell"] if one.part.cells_published else []
    for column, key, known in zip(one.part.columns, shown, one.columns.values(), strict=True):
        same = "IS NOT DISTINCT FROM" if known.null_count else "="  # where missing is a value like any other
        both.append(f"{data}.{quoted(column)} {same} {weighed}.{key}")
    return " AND ".join(both)


def _asked_of_members(one: PartWeights, condition: str) -> str:
    design, (name,) = one.part.lineups, one.part.columns
    assert design is not None
    column, member, shown = quoted(name), quoted(f"member_{name}"), quoted(f"shown_{name}")
    inner = f"SELECT place, {member}, SUM(w) AS w FROM weights WHERE {condition} GROUP BY place, {member}"
    sets, by_member = f"SELECT DISTINCT {column} FROM data", f"member.{member}"
    if not is_coded(design):
        together = f"(SELECT {column}, UNNEST({column}) AS one FROM ({sets}) AS sets) AS sets"
        joined = f"{by_member} = sets.one"
    elif "value" in design.code_table():
        together = f"({sets}) AS sets JOIN lineups ON sets.{column} BETWEEN lineups.first AND lineups.last"
        joined = f"{by_member} = lineups.value"
    else:
        together = f"({sets}) AS sets JOIN lineups ON lineups.block = FLOOR(sets.{column} / {design.m})"
        joined = f"member.place = (sets.{column} + lineups.place) % {design.m}"
    return (
        f"SELECT sets.{column} AS {shown}, SUM(member.w) AS w\nFROM {together}\n"
        f"  JOIN ({inner}) AS member\n  ON {joined}\nGROUP BY sets.{column}"
    )
