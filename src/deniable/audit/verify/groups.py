"""Releases of groups, or of a row of each, checked by their two tables: sizes, shares and the requirement.

For whoever knows a person's group, Pr[x | group] = (rows of x in the group) / |group|. Exact arithmetic on published
counts; nothing here uses the code that made the groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.audit.verify.checks import Check
from deniable.core import values
from deniable.core.errors import ManifestError, counted, shortened
from deniable.core.manifest import Manifest
from deniable.core.part import Part
from deniable.core.promise import Groups, OneOfBox

CELL, ROWS = "cell", "rows"


@dataclass(frozen=True)
class Published:
    """How many rows of a group have a value, one line for each pair that occurs."""

    cell: list[Any]
    value: list[Any]
    rows: list[int]

    @classmethod
    def of(cls, table: pa.Table, columns: tuple[str, ...], rows: str | None) -> Published:
        """From a table with a line per row, or with a column of ``rows``."""
        keys = [CELL, *columns]
        if lacking := [name for name in keys if name not in table.column_names]:
            raise ManifestError(
                f"The file of the groups has no column {shortened(lacking[0])}: it is another release's."
            )
        counts = pa.array(np.ones(table.num_rows, np.int64)) if rows is None else table[rows]
        # By place: a sensitive column may be called what the column of counts is.
        places = [str(place) for place in range(len(keys))]
        counted = pa.table([*(table[name] for name in keys), counts], names=[*places, ROWS])
        summed = counted.group_by(places).aggregate([(ROWS, "sum")])
        own = list(zip(*(summed[place].to_pylist() for place in places[1:]), strict=True))
        own_values = own if len(columns) > 1 else [value for (value,) in own]
        return cls(summed[places[0]].to_pylist(), own_values, summed[f"{ROWS}_sum"].to_pylist())

    def sizes(self) -> dict[Any, int]:
        sizes: dict[Any, int] = {}
        for cell, rows in zip(self.cell, self.rows, strict=True):
            sizes[cell] = sizes.get(cell, 0) + rows
        return sizes

    def shares(self) -> dict[Any, Fraction]:
        """Each value's largest share of a group."""
        sizes, largest = self.sizes(), dict[Any, Fraction]()
        for cell, value, rows in zip(self.cell, self.value, self.rows, strict=True):
            largest[value] = max(largest.get(value, Fraction(0)), Fraction(rows, sizes[cell]))
        return largest

    def strange(self, part: Part) -> int:
        """How many values are none of the domain."""
        return len({*self.value} - {*part.domain})

    def frequencies(self) -> dict[Any, Fraction]:
        totals: dict[Any, int] = {}
        for value, rows in zip(self.value, self.rows, strict=True):
            totals[value] = totals.get(value, 0) + rows
        return {value: Fraction(rows, sum(self.rows)) for value, rows in totals.items()}


def bucket_checks(manifest: Manifest, groups: pa.Table) -> list[Check]:
    """l different values in every group, each once (l-diversity)."""
    published = Published.of(groups, manifest.parts[0].columns, ROWS)
    least, repeated = min(published.sizes().values(), default=0), max(published.rows, default=0)
    holds = least >= max(_promised(manifest).l, _promised(manifest).k) and repeated <= 1
    often = "once" if repeated == 1 else f"{repeated} times"
    detail = f"every group has {least} or more values, each at most {often}"
    return [Check("groups", holds, detail), *_values(manifest, published)]


def box_checks(manifest: Manifest, table: pa.Table) -> list[Check]:
    """k rows in every group, no value with more than 1/l of them, and one look for all rows of a group."""
    published = Published.of(table, manifest.parts[0].columns, None)
    sizes, shares = published.sizes(), published.shares()
    least, most = min(sizes.values(), default=0), max(shares.values(), default=Fraction(0))
    k, l = _promised(manifest).k, _promised(manifest).l
    public = [name for name in manifest.public_columns if name in table.column_names]
    looks = table.select([CELL, *public]).group_by([CELL, *public]).aggregate([]).num_rows
    return [
        Check("group sizes", least >= k, f"every group has {least} or more rows, promised {k}"),
        Check("shares", most * l <= 1, f"no value has more than {most} of a group, promised 1/{l}"),
        Check(
            "looks",
            looks == len(sizes),
            f"{counted(looks, 'combination')} of public values in {counted(len(sizes), 'group')}",
        ),
        *_values(manifest, published),
    ]


def sample_checks(manifest: Manifest, table: pa.Table, groups: pa.Table) -> list[Check]:
    """k rows in every box, one of them published, and values that the domain has."""
    part = manifest.parts[0]
    k = part.promise.k if isinstance(part.promise, OneOfBox) else 0
    sizes = groups[ROWS].to_numpy()
    least = int(sizes.min()) if len(sizes) else 0
    rows = zip(*(table[name].to_pylist() for name in part.columns), strict=True)
    known = {value if isinstance(value, tuple) else (value,) for value in part.domain}
    strange = sum(row not in known for row in rows)
    return [
        Check("box sizes", 1 <= k <= least, f"every box has {least} or more rows, promised {k}"),
        Check("values", not strange, f"{strange} rows hold a value that the domain has not"),
    ]


def _values(manifest: Manifest, published: Published) -> list[Check]:
    strange = published.strange(manifest.parts[0])
    known = Check("values", not strange, f"{strange} values are none that the domain has")
    return [known, *_requirement(manifest.privacy, published)]


def _promised(manifest: Manifest) -> Groups:
    promise = manifest.parts[0].promise
    if not isinstance(promise, Groups):
        raise ManifestError("manifest.json is damaged: a release of groups does not promise groups.")
    return promise


def _requirement(privacy: Mapping[str, Any] | None, published: Published) -> list[Check]:
    """Every protected value's largest share of a group against its rho2."""
    if privacy is None:
        return []
    own = {repr(value): Fraction(rho2) for value, _, rho2 in privacy["per_value"]}
    frequencies = published.frequencies()
    rho1, rho2 = (None if privacy[name] is None else Fraction(privacy[name]) for name in ("rho1", "rho2"))
    too_sure = 0
    for value, share in published.shares().items():
        plain = values.to_json(value)
        limit = own.get(repr(plain))
        exempt = plain in privacy["exempt"] or (rho1 is not None and frequencies[value] > rho1)
        if limit is None and not exempt:
            limit = rho2
        too_sure += limit is not None and share > limit
    return [Check("requirement", not too_sure, f"{too_sure} protected values have a larger share of a group than rho2")]
