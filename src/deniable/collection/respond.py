"""Perturb one row where it was collected, with the thresholds of a release (mathematics 6: clients can do it alone)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from deniable.core.errors import ColumnError, OptionError, listing
from deniable.core.manifest import Manifest
from deniable.engines.batch import one_row
from deniable.release.release import Release


def respond(
    row: Mapping[str, Any], release: Release | Manifest, *, draw: Callable[[], int] | None = None
) -> dict[str, Any]:
    """One more row, perturbed as the release's rows are: given the same 64-bit draws, exactly as ``publish`` does.

    Args:
        row: column -> value, None where missing; public columns stay as they are.
        release: whose columns, coins and replacements count.
        draw: a source of 64-bit numbers; by default the operating system's.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> pilot = pa.table({"town": ["Ulm", "Bonn"] * 50, "smokes": ["yes", "no", "no", "no"] * 25})
    >>> release = dn.publish(pilot, sensitive="smokes", privacy=dn.Privacy(rho1="1/2", rho2="3/4"))
    >>> answer = dn.respond({"town": "Ulm", "smokes": "yes"}, release)
    >>> answer["town"], answer["smokes"] in ("yes", "no")
    ('Ulm', True)
    """
    return one_row.respond(row, row_local(release).parts, draw)


def row_local(release: Release | Manifest) -> Manifest:
    """The manifest, if a row can be perturbed on its own as its rows were."""
    manifest = release.manifest if isinstance(release, Release) else release
    if not isinstance(manifest, Manifest):
        raise OptionError(f"respond needs a release or its manifest; got {type(manifest).__name__}.")
    swapped = [part.columns[0] for part in manifest.parts if part.swapped is not None]
    if swapped:
        raise ColumnError(
            f"{listing(swapped)} is swapped among the rows of the whole table: no row can do that on its own. "
            "Fix: replacing='uniform' for columns that people perturb themselves."
        )
    for part in manifest.parts:
        if len(part.columns) > 1 or (part.range is None and len(part.channels) != 1):
            raise ColumnError(
                f"{listing(list(part.columns))} is perturbed by {manifest.mechanism!r} in cells or together, which "
                "depends on other rows. Fix: respond to releases of 'uniform' or Retention({..})."
            )
    return manifest
