"""Large line-ups as codes: a row names its set by a number, and a table beside the rows says which values stand in it.

Intervals are numbered along the orders, one order after the other (``Sets.of_interval``), and a set's *code* is the
number of the first interval that stands for it: one code for each set, so a code tells what the set tells and nothing
else. The table follows from the design alone, whatever the rows are. By arcs it lists ranges, by blocks the blocks:

    x stands in the set with code c  if and only if  first <= c <= last  in one of the rows of x
    x stands in the set with code c  if and only if  x = (c + place) mod m  for a place of block floor(c / m)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deniable.core import lineup_arcs, lineup_blocks
from deniable.core.arrays import Ints
from deniable.core.errors import ManifestError
from deniable.core.lineup import LineUpDesign
from deniable.core.lineup_arcs import ArcDesign
from deniable.core.lineup_blocks import BlockDesign

# A list of 16 values takes up to 15 bytes a row in Parquet and some 200 in CSV; a code takes 2 to 3, and 7.
MOST_LISTED = 16


def is_coded(design: LineUpDesign) -> bool:
    """Whether rows name their sets by codes: sets of more than 16 values. Nothing but the design decides it."""
    return design.size > MOST_LISTED


def codes(design: LineUpDesign) -> Ints:
    """The code of each set, in the order of ``design.sets``.

    >>> design = ArcDesign.of([1.0, 1.0, 1.0], size=1, truth=0.5)
    >>> sorted(codes(design).tolist())
    [0, 1, 2]
    """
    return np.unique(design.sets.of_interval, return_index=True)[1].astype(np.int64)


def design_of(raw: Mapping[str, Any], m: int) -> LineUpDesign:
    """A design from JSON, for a domain of m values: by arcs, or by blocks of a size."""
    truth, orders, seed = raw["truth"], raw["orders"], raw["seed"]
    if "size" in raw:
        wrong = lineup_blocks.problems(m, raw["size"], truth, orders, seed)
        _refuse(wrong or ([] if raw["values"] == m else ["a line-up is of all values of its domain"]))
        return BlockDesign(m, raw["size"], truth, orders, seed)
    arcs = np.array(raw["arcs"], dtype=np.int64)
    wrong = lineup_arcs.problems(arcs, truth, orders, seed)
    _refuse(wrong or ([] if len(arcs) == m else ["a line-up needs one arc for each value"]))
    return ArcDesign(arcs, truth, orders, seed)


def _refuse(wrong: list[str]) -> None:
    if wrong:
        raise ManifestError(f"manifest.json is damaged: {wrong[0]}.")
