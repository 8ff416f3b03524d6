"""One perturbed row of each box: what it says of a person, recomputed from the channel's integers and the boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.audit.verify.checks import Check, belief_checks, part_amplification
from deniable.audit.verify.coverage import above_checks
from deniable.core.manifest import Manifest
from deniable.core.promise import OneOfBox

Json = Mapping[str, Any]
CELL, ROWS = "cell", "rows"


def by_box(promise: OneOfBox, part: Json, manifest: Json) -> list[Check]:
    """One of k rows is drawn, so an amplification of g in the channel is 1 + (g - 1) / k of a person's value."""
    named = ", ".join(map(repr, part["columns"]))
    if promise.k < 1 or len(part["cells"]) != 1 or promise.rho1 is None or promise.rho2 is None:
        return [Check("part amplification", False, f"{named}: it is about one channel, boxes, and beliefs")]
    whole = part_amplification(part)
    if whole is None:
        return [Check("part amplification", False, f"{named}: gamma is unbounded")]
    gamma = 1 + (whole - 1) / promise.k
    stated = manifest["guarantee"]["gamma"]
    detail = f"{named}: gamma is {float(gamma):.6g} of one row in {promise.k}, promised {float(promise.gamma):.6g}"
    return [
        Check("part amplification", gamma <= promise.gamma, detail),
        *belief_checks(promise, named, gamma),
        Check("amplification", stated == str(promise.gamma), f"the release states a gamma of {str(stated)[:40]}"),
        *above_checks(promise, part, manifest),
    ]


def sample_checks(manifest: Manifest, table: pa.Table, groups: pa.Table) -> list[Check]:
    """k rows in every box, one of them published, and values that the domain has."""
    part = manifest.parts[0]
    k = part.promise.k if isinstance(part.promise, OneOfBox) else 0
    lacking = {CELL, ROWS} - {*groups.column_names} | {CELL, *part.columns} - {*table.column_names}
    if lacking:
        return [Check("boxes", False, f"columns are missing: {', '.join(sorted(lacking))}")]
    sizes = groups[ROWS].to_numpy()
    boxes, shown = groups[CELL].to_numpy(), np.sort(table[CELL].to_numpy())
    once = np.array_equal(boxes, np.arange(len(boxes))) and np.array_equal(shown, boxes)
    least = int(sizes.min()) if len(sizes) else 0
    values = zip(*(table[name].to_pylist() for name in part.columns), strict=True)
    known = {value if isinstance(value, tuple) else (value,) for value in part.domain}
    strange = sum(value not in known for value in values)
    return [
        Check("box sizes", 1 <= k <= least, f"every box has {least} or more rows, promised {k}"),
        Check("boxes", once, f"{len(boxes)} boxes, {len(shown)} rows, one for each"),
        Check("values", not strange, f"{strange} rows hold a value that the domain has not"),
    ]
