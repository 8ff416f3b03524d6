"""Counting the rows of a published table: in memory, or in Parquet files, of which only the columns in question are
read.

A row's *state* is its cell and its published value, as one number: cell i's values take the numbers from
m_0 + .. + m_{i-1}. Missing values that are exempt are a state of their own, the last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Codes, Ints
from deniable.core.errors import ManifestError, QuestionError
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.engines.base import CELL
from deniable.engines.batch.columns import Encoded, encode, joined, mixed, plain, smallest
from deniable.engines.batch.counting import RADIX_LIMIT, CodeCounter
from deniable.engines.batch.lineup_columns import states_shown
from deniable.engines.batch.values import arrow_type
from deniable.engines.local.stored import StoredRows

PIECE_ROWS = 2**21  # of a file, that are read at once: what is kept of a row is a byte or two for each column
DENSE_RADIX = 2**20
Rows: TypeAlias = pa.Table | StoredRows


def local_counter(source: Rows | Path, manifest: Manifest) -> CodeCounter:
    """A counter of a published table."""
    table = StoredRows.at(source) if isinstance(source, Path) else source
    rows = int(table.num_rows if isinstance(table, pa.Table) else table.rows)
    only = manifest.parts[0] if len(manifest.parts) == 1 and manifest.parts[0].range is None else None
    pieces = table.cut(PIECE_ROWS) if isinstance(table, StoredRows) and rows > PIECE_ROWS else [table]
    states = None if only is None else partial(_all_states, pieces, only)
    count = 1 if only is None else _count(only)
    return CodeCounter(lambda column: _whole_column(pieces, column, manifest.part_of(column)), states, count, rows)


def _whole_column(pieces: Sequence[Rows], column: str, part: Part | None) -> Encoded:
    """A column of all pieces as codes."""
    coded = [_encoded(piece, column, part) for piece in pieces]
    if part is not None and part.lineups is not None:  # the number of a set is its code, in any piece
        return Encoded(coded[0].values, np.concatenate([piece.codes for piece in coded]))
    return joined(coded, coded[0].values.type)


def _all_states(pieces: Sequence[Rows], part: Part) -> Codes:
    """The state of every row of all pieces."""
    places = _places(part)
    states = [
        _states(piece, part, places, piece.num_rows if isinstance(piece, pa.Table) else piece.rows) for piece in pieces
    ]
    return states[0] if len(states) == 1 else np.concatenate(states)


def _encoded(table: Rows, column: str, part: Part | None) -> Encoded:
    """A column as codes; of line-ups a code is the number of the set, and so is its value."""
    if part is None or part.lineups is None:
        return encode(_read(table, column))
    numbers, count = _sets(table, part), len(part.lineups.sets.lengths)
    return Encoded(pa.array(np.arange(count)), smallest(np.where(numbers < 0, count, numbers), count + 1))


def _sets(table: Rows, part: Part) -> Ints:
    """The number of the set that each row shows; -1 where it is missing, and may be."""
    assert part.lineups is not None
    known = pa.array(list(part.domain), arrow_type(part.types[0]))
    numbers = states_shown(pa.chunked_array(_read(table, part.columns[0])), part.lineups, known)
    if (numbers < 0).any() and not part.beside_domain:
        raise ManifestError("The release's rows hold no line-up where its manifest says that they do.")
    return numbers


def _read(table: Rows, column: str) -> pa.ChunkedArray:
    return table[column] if isinstance(table, pa.Table) else table.column(column)


def _count(part: Part) -> int:
    """How many states there are; of line-ups each set is one."""
    own = sum(len(cell) for cell in _cells(part)) if part.lineups is None else len(part.lineups.sets.lengths)
    return own + int(part.beside_domain)


def _cells(part: Part) -> tuple[Ints, ...]:
    published = part.cells_published or len(part.cell_positions) == 1
    return part.cell_positions if published else (np.arange(part.m),)


def _states(table: Rows, part: Part, places: Mapping[tuple[object, ...], int], rows: int) -> Codes:
    """The state of every row."""
    cells, m, count = _cells(part), part.m, _count(part)
    if part.lineups is not None:
        numbers = _sets(table, part)
        return smallest(np.where(numbers < 0, count - 1, numbers), count)
    positions = _positions(table, part, places)
    if len(cells) == 1 and np.array_equal(cells[0], np.arange(m)):
        return smallest(positions, count)
    cell = np.zeros(rows, np.int64)
    if len(cells) > 1:
        cell = _read(table, CELL).fill_null(0).to_numpy().astype(np.int64)
        cell[positions == m] = 0
        if rows and not 0 <= cell.min() <= cell.max() < len(cells):
            raise ManifestError("The release's rows name a cell that its manifest does not have.")
    inside = np.concatenate([c * m + np.asarray(p, np.int64) for c, p in enumerate(cells)])
    order = np.argsort(inside, kind="stable")
    key = cell * m + positions
    place = np.minimum(np.searchsorted(inside[order], key), len(inside) - 1)
    states = order[place]
    missing = positions == m
    if not ((inside[states] == key) | missing).all():
        raise ManifestError("The release's rows hold a value that their cell does not have.")
    return smallest(np.where(missing, count - 1, states), count)


def _places(part: Part) -> dict[tuple[object, ...], int]:
    """Where each value, as the values of its columns, stands in the domain."""
    domain = [value if len(part.columns) > 1 else (value,) for value in part.domain]
    return {tuple(plain(item) for item in value): i for i, value in enumerate(domain)}  # type: ignore[attr-defined]


def _positions(table: Rows, part: Part, places: Mapping[tuple[object, ...], int]) -> Ints:
    """Where every row's published value stands in the domain; after its end where missing values are exempt."""
    columns = [encode(_read(table, name)) for name in part.columns]
    radix = math.prod(column.size for column in columns)
    if radix > RADIX_LIMIT:
        raise QuestionError("The sensitive columns together have too many values to be counted.")
    key = mixed([column.codes for column in columns], [column.size for column in columns])
    used, inverse = (np.arange(radix), key) if radix <= DENSE_RADIX else np.unique(key, return_inverse=True)
    lists = [[plain(value) for value in [*column.values.to_pylist(), None]] for column in columns]
    digits = np.unravel_index(used, [column.size for column in columns])
    shown = zip(
        *([own[digit] for digit in place.tolist()] for own, place in zip(lists, digits, strict=True)), strict=True
    )
    after = part.m if part.beside_domain else -1
    lookup = np.fromiter((places.get(value, after if None in value else -1) for value in shown), np.int64, len(used))
    positions: Ints = lookup[inverse]
    if (positions < 0).any():
        raise ManifestError("The release's rows hold a sensitive value that its manifest does not list.")
    return positions
