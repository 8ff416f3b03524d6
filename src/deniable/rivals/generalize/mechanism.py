"""Generalization: groups of k rows that look alike, with l-diverse values (k-anonymity; l-diversity; Mondrian).

Public values are published as ranges and sets, coarse enough that at least k rows share each combination; the true
sensitive values stand beside them. k-anonymity alone says nothing about the values: a group that agrees gives
everybody in it away. "l different values" is little better, since one of them may have nearly all rows. What bounds
the attacker is the largest share in a group, so that is what l means here:

    Pr[x | group] = (rows of x in the group) / |group| <= 1/l

Where groups are cut depends on rows (``generalize.mondrian``); the guarantee on the histogram alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Codes, Counts, Ints
from deniable.core.errors import ColumnError, OptionError, TableError, option
from deniable.core.grouped_sentence import box_sentence
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.manifest import Form
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.core.promise import Groups
from deniable.engines.base import CELL, ROW_GROUP
from deniable.engines.batch.shuffling import order_of
from deniable.engines.randomness import Keystream
from deniable.engines.request import Request
from deniable.mechanisms.requirement import DISTRIBUTION, DOMAIN
from deniable.rivals.base import Rival, RivalRelease, codes_of, manifest_of
from deniable.rivals.diversity import check_requirement, group_size, grouped_guarantee, rows_to_suppress
from deniable.rivals.generalize.axes import axes_of_rows
from deniable.rivals.generalize.boxes import box_table, box_texts
from deniable.rivals.generalize.mondrian import mondrian

LIMITS = (
    DOMAIN,
    DISTRIBUTION,
    "Public columns are published as ranges and sets: they say who may have taken part, and a narrow range says nearly "
    "as much as the value.",
    "The true values of a group are published: they can be of one kind, which everybody in the group then shares.",
    "Where groups are cut depends on the values themselves, so whoever knows the algorithm learns from cuts that were "
    "not made.",
    "A second release of the same rows, with other options or columns, makes other groups: together they can single a "
    "person out.",
    "The exact count of every value is published, in all and in every group.",
)


@dataclass(frozen=True)
class Generalize(Rival):
    """Groups of at least k rows that look alike, in which no value has more than 1/l of the rows (Mondrian).

    Attributes:
        k: how many rows a group has at least.
        l: a value has at most 1/l of a group's rows; 1 is plain k-anonymity. Published by its name alone, as many as
            rho2 asks for.

    >>> import deniable as dn
    >>> from deniable.mechanisms import Generalize
    >>> Generalize(k=2, l=2).suppressed(dn.Histogram.of({"flu": 9, "gout": 3, "hiv": 2})).tolist()
    [4, 0, 0]
    """

    k: int = 10
    l: int = 6
    name: ClassVar[str] = "generalize"
    reveals: ClassVar[str] = "the exact values of a row's group; public columns only as ranges"
    form: ClassVar[Form] = "boxes"

    def __post_init__(self) -> None:
        for name, value, what, fix in (("k", self.k, "row", 10), ("l", self.l, "value", 6)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise OptionError(
                    f"{name} = {value!r} is not allowed: a group has 1 {what} or more. Fix: {name}={fix}."
                )

    def fitted(self, privacy: Privacy | None) -> Generalize:
        """With as many values in a group as ``privacy`` asks for, and no fewer rows."""
        if privacy is None:
            return self
        return Generalize(max(self.k, group_size(privacy)), group_size(privacy))

    def suppressed(self, histogram: Histogram) -> Counts:
        """How many rows of each value of ``histogram`` cannot be published: the fewest, of the most frequent values."""
        cut = rows_to_suppress(histogram, self.l)
        left = histogram.rows - int(cut.sum())
        if left < self.k:
            raise TableError(
                f"k = {self.k} is larger than the table: {left} rows can be published with l = {self.l}. "
                f"Fix: k={max(left, 1)} or less."
            )
        return cut

    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Guarantee:
        """What groups promise; refused when a requirement asks for more.

        Args:
            histogram: how many rows hold each value.
            privacy: the requirement; None where nothing is required.
        """
        check_requirement(self.name, self.l, 1, histogram, privacy)
        self.suppressed(histogram)
        sure, promise = percent(Fraction(1, self.l)), Groups(self.l, self.k)
        if self.l == 1:
            more = "Whoever knows which group a person is in knows the person's value where the group agrees."
        else:
            more = (
                "Whoever can rule out some values of a group, or knows the values of others in the group, becomes "
                f"surer than {sure}."
            )
        return grouped_guarantee(privacy, histogram, promise, box_sentence(promise), [*LIMITS, more])

    def published(self, request: Request) -> RivalRelease:
        """The rows, with ranges and true values, and their boxes that ``publish`` makes of a ``request``.

        Groups are cut on the whole table at once, so it is held in memory: as codes, the widest column's size for every
        column and row, and some 60 bytes a row besides. Rows are always shuffled: a true value stands in every row, so
        a row's place would say whose it is.
        """
        require_public(request, self.name, instead="anatomy")
        if not request.shuffle:
            raise OptionError(
                "mechanism 'generalize' publishes true values, so rows must be shuffled: their order would say whose "
                f"they are. Fix: leave out {option('shuffle', False)}."
            )
        scan = request.scan(request.sensitive, request.domain)
        guarantee = self.guarantee(scan.histogram, request.privacy)
        keys, encoder = request.keys, scan.encoder
        codes = codes_of(request, encoder)
        kept = rows_kept(codes, self.suppressed(scan.histogram), keys.subkey("suppression"))
        kept = kept[order_of(keys.subkey("order").words(0, len(codes))[kept])]
        codes = codes[kept]
        axes = axes_of_rows(request.dataset, request.public, kept, request.progress)
        groups = mondrian(list(axes.values()), codes, self.k, self.l)
        boxes = box_table(axes, groups)
        texts = {name: box_texts(boxes, name) for name in axes}

        def rows(first: int, last: int) -> pa.Table:
            own = pa.array(groups[first:last], pa.int64())
            values = dict(zip(request.sensitive, encoder.decode(codes[first:last]), strict=True))
            return pa.table({**{name: text.take(own) for name, text in texts.items()}, **values, CELL: own})

        def pieces(_: Path | None) -> Iterator[pa.Table]:
            return (rows(first, first + ROW_GROUP) for first in range(0, len(groups), ROW_GROUP))

        schema = rows(0, 0).schema
        manifest = manifest_of(self, request, guarantee, scan, schema, len(groups))
        return RivalRelease(manifest, schema, pieces, lambda: [boxes])


def require_public(request: Request, mechanism: str, instead: str) -> None:
    """Refuse tables without public columns to make boxes of, or with one that the release needs for itself."""
    if not request.public:
        raise ColumnError(
            f"mechanism {mechanism!r} needs a public column: without one there is nothing to generalize. Fix: publish "
            f"another column, or use {option('mechanism', instead)}."
        )
    if CELL in (*request.public, *request.sensitive):
        raise ColumnError(f"The table has a column {CELL!r}, which the release needs for itself. Fix: rename it.")


def rows_kept(codes: Codes, suppressed: Ints, stream: Keystream) -> Ints:
    """The rows that are published, in their order; which rows of a value are not is drawn."""
    left_out: list[Ints] = []
    words = stream.words(0, len(codes)) if suppressed.any() else None
    for value in np.flatnonzero(suppressed):
        own = np.flatnonzero(codes == value)
        assert words is not None
        left_out.append(own[order_of(words[own])][: suppressed[value]])
    kept = np.ones(len(codes), dtype=bool)
    kept[np.concatenate([np.zeros(0, np.int64), *left_out])] = False
    return np.flatnonzero(kept)
