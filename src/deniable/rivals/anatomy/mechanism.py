"""Anatomy: groups of rows with l different values, published without saying who has which (mathematics 9; SDR 6.3).

Anatomy perturbs nothing, so it is not a plan of channels: it publishes which group each row is in, and how often each
value occurs in each group. A group has at least l rows and each value at most once, so

    Pr[x | group] = 1 / |group| <= 1/l

Which rows form a group depends on rows and chance (``anatomy.groups``); the guarantee on the histogram alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.arrays import Codes, Counts, Words
from deniable.core.errors import OptionError, TableError, table_changed
from deniable.core.grouped_sentence import bucket_sentence
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.manifest import Form
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.core.promise import Groups
from deniable.engines.base import CELL, ROW_GROUP, Scan
from deniable.engines.batch.shuffling import rechunked, shuffled
from deniable.engines.batch.values import decoded, plain_type
from deniable.engines.request import Request
from deniable.mechanisms.requirement import EVERY_RELEASE
from deniable.rivals.anatomy.groups import anatomy_groups
from deniable.rivals.base import Rival, RivalRelease, batches, codes_of, manifest_of
from deniable.rivals.diversity import check_requirement, group_size, grouped_guarantee, rows_to_suppress

ROWS = "rows"  # the column of the second table that counts them


@dataclass(frozen=True)
class Anatomy(Rival):
    """Groups with at least l different values, each once: Pr[x | group] <= 1/l (mathematics 9; SDR 6.3).

    Attributes:
        l: how many values a group has at least. Published by its name alone, as many as rho2 asks for.

    >>> import deniable as dn
    >>> from deniable.mechanisms import Anatomy
    >>> Anatomy(l=2).suppressed(dn.Histogram.of({"flu": 9, "gout": 3, "hiv": 2})).tolist()
    [4, 0, 0]
    """

    l: int = 6
    name: ClassVar[str] = "anatomy"
    reveals: ClassVar[str] = "the few values of a row's group, and the exact histogram"
    form: ClassVar[Form] = "buckets"

    def __post_init__(self) -> None:
        if isinstance(self.l, bool) or not isinstance(self.l, int) or self.l < 2:
            raise OptionError(f"l = {self.l!r} is not allowed: a group has 2 values or more. Fix: l=6.")

    def fitted(self, privacy: Privacy | None) -> Anatomy:
        """With as many values in a group as ``privacy`` asks for."""
        return self if privacy is None else Anatomy(group_size(privacy))

    def suppressed(self, histogram: Histogram) -> Counts:
        """How many rows of each value of ``histogram`` cannot be published: the fewest, of the most frequent values."""
        return rows_to_suppress(histogram, self.l)

    def guarantee(self, histogram: Histogram, privacy: Privacy | None) -> Guarantee:
        """What the two tables promise; refused when a requirement asks for more.

        Args:
            histogram: how many rows hold each value.
            privacy: the requirement; None where nothing is required.
        """
        check_requirement(self.name, self.l, 2, histogram, privacy)
        sure = percent(Fraction(1, self.l))
        not_protected = [
            *EVERY_RELEASE,
            f"A row's value is one of the {self.l} or a few more values of its group, which are published: whoever can "
            f"rule some of them out, or knows the values of others in the group, becomes surer than {sure}.",
            "The exact count of every value is published.",
        ]
        promise = Groups(self.l, self.l)
        return grouped_guarantee(privacy, histogram, promise, bucket_sentence(promise), not_protected)

    def published(self, request: Request) -> RivalRelease:
        """The two tables that ``publish`` makes of a ``request``.

        Which rows form a group is decided on the whole sensitive column at once, in some 25 bytes a row; public columns
        pass by in batches, and are never held in memory where they come from a file and go to one.
        """
        if ROWS in request.sensitive:
            raise TableError(
                f"The column name {ROWS!r} is reserved with mechanism 'anatomy', whose second table counts rows in a "
                "column of that name. Fix: rename the sensitive column."
            )
        scan = request.scan(request.sensitive, request.domain)
        guarantee = self.guarantee(scan.histogram, request.privacy)
        codes, suppressed = codes_of(request, scan.encoder), self.suppressed(scan.histogram)
        groups = anatomy_groups(codes, scan.histogram.m, self.l, request.keys.subkey("anatomy"), suppressed)
        fields = [pa.field(name, plain_type(request.dataset.schema.field(name).type)) for name in request.public]
        schema = pa.schema([*fields, pa.field(CELL, pa.int32())])
        manifest = manifest_of(self, request, guarantee, scan, schema, int((groups >= 0).sum()))
        tables = _Tables(request, scan, codes, groups, schema)
        return RivalRelease(manifest, schema, tables.rows, tables.values, beside=scan)


@dataclass(frozen=True, eq=False)
class _Tables:
    """A table whose rows have their groups.

    Attributes:
        codes: the sensitive value of each row.
        groups: its group; -1 where it is left out.
    """

    request: Request
    scan: Scan
    codes: Codes
    groups: npt.NDArray[np.int32]
    schema: pa.Schema

    def rows(self, spool: Path | None) -> Iterator[pa.Table]:
        """The first table: public columns and group."""
        if self.request.shuffle:
            tables = shuffled(self._keyed(), self.schema, spool, len(self.groups), threads=1)
        else:
            tables = (pa.Table.from_batches([batch]) for batch, _ in self._keyed())
        yield from rechunked(tables, self.schema, ROW_GROUP)

    def _keyed(self) -> Iterator[tuple[pa.RecordBatch, Words]]:
        order, start = self.request.keys.subkey("order"), 0
        for batch in batches(self.request, list(self.request.public or self.request.sensitive)):
            own = self.groups[start : start + batch.num_rows]
            words = order.words(start, batch.num_rows)
            start += batch.num_rows
            if len(own) < batch.num_rows:
                break
            columns = [decoded(batch.column(name)) for name in self.request.public]
            made = pa.RecordBatch.from_arrays([*columns, pa.array(own)], schema=self.schema)
            there = own >= 0
            yield (made, words) if there.all() else (made.filter(pa.array(there)), words[there])
        if start != len(self.groups):
            raise table_changed()

    def values(self) -> Iterator[pa.Table]:
        """The second table, (group, value, rows), in the order of groups and values; a group has each value once."""
        kinds = zip(self.request.sensitive, self.scan.encoder.types, strict=True)
        named = [pa.field(name, kind) for name, kind in kinds]
        schema = pa.schema([pa.field(CELL, pa.int64()), *named, pa.field(ROWS, pa.int64())])
        m, there = self.scan.histogram.m, self.groups >= 0
        pairs = self.groups[there].astype(np.int64)
        pairs *= m
        pairs += self.codes[there]
        pairs.sort()
        for start in range(0, len(pairs), ROW_GROUP):
            some = pairs[start : start + ROW_GROUP]
            listed = self.scan.encoder.decode((some % m).astype(self.scan.encoder.dtype))
            columns = [pa.array(some // m), *listed, pa.array(np.ones(len(some), np.int64))]
            yield pa.Table.from_arrays(columns, schema=schema)
