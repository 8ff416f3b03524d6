"""Rows that people perturbed where they were collected, as a release: nobody ever held the originals
(mathematics 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.collection.respond import row_local
from deniable.core.errors import ColumnError, ManifestError, OptionError, TableError, listing
from deniable.core.manifest import Manifest, Randomness, guarantee_dict, with_sentence
from deniable.core.part import Part
from deniable.core.promise import LineUps
from deniable.engines.batch.lineup_columns import states_shown
from deniable.engines.batch.values import arrow_type
from deniable.estimation.model.columns import PerturbedColumn
from deniable.mechanisms.retention_guarantee import guarantee
from deniable.release.combine import perturbed_of
from deniable.release.release import Release


def collect(rows: Any, release: Release | Manifest) -> Release:
    """A release of rows that ``respond`` perturbed one by one; they are put in random order.

    Nothing is perturbed here, and nothing tells whether a row was: whoever sends in a row runs ``respond`` on it.

    Args:
        rows: mappings column -> value, or a table, with the columns of the release.
        release: the one that was given to ``respond``. Its columns must be replaced uniformly, or show line-ups
            against any prior: what is drawn like its own rows' values protects nobody else.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> pilot = pa.table({"smokes": ["yes", "no", "no", "no"] * 25})
    >>> asked = dn.publish(pilot, sensitive="smokes", privacy=dn.Privacy("1/2", "3/4"), mechanism="uniform")
    >>> dn.collect([dn.respond({"smokes": "no"}, asked) for _ in range(20)], asked)
    <Release of 20 rows, smokes by uniform>
    """
    manifest = row_local(release)
    for part in manifest.parts:
        if part.lineups is not None:
            _require_any_prior(part)
        elif part.range is None and not part.channels[0].is_uniform:
            raise ColumnError(
                f"{listing(list(part.columns))} is replaced by values as frequent as in the release, which protects "
                "the people in it alone. Fix: replacing='uniform' for columns that people perturb themselves."
            )
    table = _table(rows, manifest)
    for part in manifest.parts:
        if part.lineups is not None:
            _require_sets(table[part.columns[0]], part)
        else:
            _require_possible(table[part.columns[0]], PerturbedColumn.of(part, manifest.types[part.columns[0]]))
    parts = tuple(replace(part, marginal=None) for part in manifest.parts)  # of the release's rows, not of these
    collected = replace(
        manifest,
        rows=table.num_rows,
        parts=parts,
        randomness=Randomness("operating system", None, True, "row number"),
        data=None,
        lineups=None,
    )
    if manifest.privacy is None:  # columns promise each for itself; a histogram that is not published costs nothing
        promised = guarantee([perturbed_of(part, collected) for part in parts])
        collected = replace(collected, guarantee=guarantee_dict(promised))
    return Release(with_sentence(collected), table=table.take(np.random.default_rng().permutation(table.num_rows)))


def _table(rows: Any, manifest: Manifest) -> pa.Table:
    wanted = pa.schema([(column.name, arrow_type(column.type)) for column in manifest.columns])
    if hasattr(rows, "__arrow_c_stream__"):
        table = pa.table(rows)
    else:
        several = [rows] if isinstance(rows, Mapping) else list(rows)
        if not all(isinstance(row, Mapping) for row in several):
            raise OptionError("collect needs rows as mappings column -> value, or a table.")
        names = list(dict.fromkeys(name for row in several for name in row))
        table = pa.table({name: [row.get(name) for row in several] for name in names})
    if table.num_rows == 0:
        raise TableError("There are no rows: nothing was collected.")
    off = sorted(set(table.column_names) ^ set(wanted.names))
    if off:
        raise ColumnError(
            f"The rows and the release differ in {listing(off)}. Fix: rows with the columns {listing(wanted.names)}."
        )
    try:
        return table.select(wanted.names).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):  # its own words may hold a value
        types = ", ".join(f"{field.name} {field.type}" for field in wanted)
        raise TableError(f"The rows do not have the types of the release. Fix: {types}.") from None


def _require_any_prior(part: Part) -> None:
    if not isinstance(part.promise, LineUps) or part.promise.adversary != "any-prior":
        raise ColumnError(
            f"{listing(list(part.columns))} shows line-ups that were made for the frequencies of the release's own "
            "rows, which protects the people in it alone. Fix: ask with a release against 'any-prior'."
        )


def _require_sets(column: pa.ChunkedArray, part: Part) -> None:
    """Refuse what is no line-up of the design."""
    assert part.lineups is not None
    try:
        states = states_shown(column, part.lineups, pa.array(list(part.domain), arrow_type(part.types[0])))
    except ManifestError:
        raise _no_answer(part.columns[0]) from None
    if (states < 0).any() and not part.exempt:
        raise TableError(f"The column {part.columns[0]!r} has missing values, which the release does not know.")


def _no_answer(name: str) -> TableError:
    return TableError(
        f"The column {name!r} holds values that no row can have after `respond`. Fix: perturb every row with respond "
        "before it is sent."
    )


def _require_possible(values: pa.ChunkedArray, column: PerturbedColumn) -> None:
    """Refuse what ``respond`` cannot have given: it would be an original at sight."""
    seen = values.unique()
    try:
        column.states(seen.drop_null())
    except ManifestError:
        raise _no_answer(column.name) from None
    if seen.null_count and not column.exempt and len(column.masses) == len(column.values):
        raise TableError(f"The column {column.name!r} has missing values, which the release does not know.")
