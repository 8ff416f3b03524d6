"""The published column of line-ups: a list of values where sets are small, a code where they are large.

Codes come with a table of their own, ``lineups``, by which anyone can tell the sets that hold a value
(``core.lineup_codes``). Both follow from the design alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from deniable.core import lineup_codes
from deniable.core.arrays import Ints
from deniable.core.errors import ManifestError
from deniable.core.lineup import LineUpDesign
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.engines.batch import lineups
from deniable.engines.batch.lineups import LineUpKernel, list_type
from deniable.engines.batch.values import arrow_type

CODE = pa.int32()


def column_type(design: LineUpDesign, kind: pa.DataType) -> pa.DataType:
    """The type of a published column; ``kind`` is that of its values."""
    return CODE if lineup_codes.is_coded(design) else list_type(kind)


class Publisher:
    """Numbers of sets as they are published.

    Args:
        kernel: the sampler, which knows the design.
        known: the values of the domain.
    """

    def __init__(self, kernel: LineUpKernel, known: pa.Array) -> None:
        self._kernel, self._known = kernel, known
        self._codes = lineup_codes.codes(kernel.design) if lineup_codes.is_coded(kernel.design) else None

    def column(self, states: Ints) -> pa.Array:
        """Lists or codes; -1 is missing."""
        if self._codes is None:
            return self._kernel.lists(states, self._known)
        gone = states < 0
        return pa.array(self._codes[np.maximum(states, 0)], CODE, mask=gone if gone.any() else None)


def states_shown(column: pa.ChunkedArray, design: LineUpDesign, known: pa.Array) -> Ints:
    """The number of the set that each row shows, as a list or by its code; -1 where it is missing."""
    if not pa.types.is_integer(column.type):
        return lineups.states_of(column, design, known)
    gone = column.is_null().to_numpy()
    shown = column.fill_null(0).to_numpy().astype(np.int64)
    own = lineup_codes.codes(design)
    inside = (shown >= 0) & (shown < len(design.sets.of_interval))
    states: Ints = design.sets.of_interval[np.where(inside, shown, 0)]
    if not (gone | (inside & (own[states] == shown))).all():
        raise ManifestError("The release's rows hold a code of a line-up that its design does not have.")
    states[gone] = -1
    return states


def coded_part(manifest: Manifest) -> Part | None:
    """The part whose rows show line-ups by codes, as the type of its column tells; None where there is none."""
    coded = {column.name for column in manifest.columns if column.type == str(CODE)}
    return next((part for part in manifest.parts if part.lineups is not None and part.columns[0] in coded), None)


def code_table(part: Part) -> pa.Table:
    """The table ``lineups``: by arcs value, first and last code; by blocks their number and places."""
    assert part.lineups is not None
    columns = {name: pa.array(numbers, CODE) for name, numbers in part.lineups.code_table().items()}
    if "value" in columns:
        columns["value"] = pa.array(list(part.domain), arrow_type(part.types[0])).take(columns["value"])
    return pa.table(columns)
