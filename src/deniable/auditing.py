"""Audit a release against the table it was made from: the joiner of tables (engines) and the audit room."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.audit.audit import Audit
from deniable.audit.audit import audit as audit_figures
from deniable.audit.rows import Codes, Rows
from deniable.core import values
from deniable.core.errors import DeniableError, TableError
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Counts, Histogram
from deniable.core.manifest import Manifest, Part, cells_of
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy
from deniable.engines.local.encoding import DomainScan, scan_domain
from deniable.engines.local.sources import Source, open_source
from deniable.engines.local.strata import scan_strata
from deniable.mechanisms import MECHANISMS, Decoys
from deniable.mechanisms.base import PlansFromPublic
from deniable.opening import open_release
from deniable.release import Release

CELL = "cell"


def audit(
    original: Any,
    release: Release | str | os.PathLike[str],
    *,
    plan: Plan | None = None,
    categories: Mapping[Hashable, Hashable] | None = None,
) -> Audit:
    """What attackers learn from a release, for the eyes of its owner: it holds exact figures of the original table.

    Args:
        original: the table that was published, as given to ``publish``.
        release: a release, or its folder. Nothing is written into it.
        plan: the plan that was executed. Left out, it is made again where the mechanism allows it.
        categories: value -> category: is any cell of a single category?
    """
    opened = release if isinstance(release, Release) else open_release(release)
    source = open_source(original)
    manifest, hidden = _with_hidden_cells(opened.manifest, source, plan)
    plan = plan or _plan_of_strata(manifest, source)
    table = opened.table
    listed = [part for part in manifest.parts if part.channels]
    scans = [_scan(source, part) for part in listed]
    histograms = [Histogram(part.domain, scan.counts) for part, scan in zip(listed, scans, strict=True)]
    published = [_codes(table, scan) for scan in scans]
    several = [len(part.channels) > 1 for part in listed]
    plans = [
        hidden.get(part.columns) or plan or (_planned_again(manifest, part, histogram) if many else None)
        for part, histogram, many in zip(listed, histograms, several, strict=True)
    ]
    observed = [
        _observed(table, part, codes) if part.cells_published and many else None
        for part, codes, many in zip(listed, published, several, strict=True)
    ]
    rows = _rows(source, table, manifest, scans[0], published) if scans else None
    return audit_figures(
        manifest, histograms, plans=plans, observed=observed, rows=rows, categories=categories or _categories(manifest)
    )


def _with_hidden_cells(
    manifest: Manifest, source: Source, plan: Plan | None
) -> tuple[Manifest, dict[tuple[str, ...], Plan]]:
    """Cells that a release does not publish (decoy groups), from the plans that its owner can make again.

    With several columns the n mod c rows that were left out were drawn at random, and only the key says which: the
    plans are made again with all rows, and leave others out.
    """
    made: dict[tuple[str, ...], Plan] = {}
    shown = []
    for part in manifest.parts:
        if not part.channels and part.mixture is not None:
            again = plan
            if again is None or again.histogram.domain != part.domain:
                again = _decoys(manifest).plan(Histogram(part.domain, _scan(source, part).counts), None)
            channels, positions = cells_of(again)
            part = dataclasses.replace(part, channels=channels, cell_positions=positions)
            made[part.columns] = again
        shown.append(part)
    return dataclasses.replace(manifest, parts=tuple(shown)), made


def _decoys(manifest: Manifest) -> Decoys:
    return Decoys(**{name: manifest.options[name] for name in ("c", "leftovers", "grouping")})


def _scan(source: Source, part: Part) -> DomainScan:
    """The original histogram over the release's domain; a table that does not fit is another table."""
    domain: Any = list(part.domain)
    if len(part.columns) > 1:
        domain = {
            name: list(dict.fromkeys(entry[i] for entry in part.domain if isinstance(entry, tuple)))
            for i, name in enumerate(part.columns)
        }
    return scan_domain(source, list(part.columns), part.missing, domain)


def _codes(table: pa.Table, scan: DomainScan) -> Codes:
    batches = table.select(scan.encoder.columns).combine_chunks().to_batches()
    pieces = [scan.encoder.encode(batch).astype(np.int64) for batch in batches]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)


def _observed(table: pa.Table, part: Part, codes: Codes) -> list[Counts]:
    """For each published cell, how many rows show each value."""
    cells = np.asarray(table.column(CELL).to_numpy())
    m = len(part.domain)
    return [
        np.bincount(codes[(cells == cell) & (codes < m)], minlength=m).astype(np.int64)
        for cell in range(len(part.channels))
    ]


def _rows(source: Source, table: pa.Table, manifest: Manifest, scan: DomainScan, published: Sequence[Codes]) -> Rows:
    names = list(manifest.public_columns)
    needed = [*names, *(name for name in scan.encoder.columns if name not in names)]
    original = pa.Table.from_batches(source.batches(needed), schema=pa.schema([source.schema.field(n) for n in needed]))
    coded = {name: _together(table.column(name), original.column(name)) for name in names}
    n = table.num_rows
    combined = _combined(list(coded.values()), n + original.num_rows)
    columns: dict[str, Codes] = {name: both[:n] for name, both in coded.items()}
    for part, codes in zip((part for part in manifest.parts if part.channels), published, strict=True):
        columns["+".join(part.columns)] = codes
    if CELL in table.column_names and any(part.cells_published for part in manifest.parts):
        columns[CELL] = np.asarray(table.column(CELL).to_numpy())
    return Rows(columns, combined[:n], _codes(original, scan), combined[n:])


def _together(published: pa.ChunkedArray, original: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """One numbering for the values of a column in the release and in the table."""
    if original.type != published.type:
        try:
            original = original.cast(published.type)
        except pa.ArrowException:
            original, published = original.cast(pa.string()), published.cast(pa.string())
    both = pa.chunked_array([*published.chunks, *original.chunks], type=published.type).combine_chunks()
    if pa.types.is_dictionary(both.type):
        both = both.cast(both.type.value_type)
    encoded = pc.dictionary_encode(both, null_encoding="encode")
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    codes: npt.NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _combined(columns: Sequence[npt.NDArray[np.int64]], rows: int) -> npt.NDArray[np.int64]:
    """The number of each row's combination of values."""
    total = np.zeros(rows, dtype=np.int64)
    for codes in columns:
        total = np.unique(total * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return total


def _plan_of_strata(manifest: Manifest, source: Source) -> Plan | None:
    """Where cells are strata of public columns, the original table says exactly which rows each of them took."""
    if not manifest.options.get("strata"):
        return None
    part = manifest.parts[0]
    scan = _scan(source, part)
    rows = scan_strata(source, manifest.options["strata"], scan.encoder).histograms(part.domain)
    if [stratum.domain for stratum in rows] != [channel.values for channel in part.channels]:
        raise TableError("The table has other strata, or other values in them, than the release: it is another table.")
    return Plan(
        mechanism=manifest.mechanism,
        histogram=Histogram(part.domain, scan.counts),
        cells=tuple(Cell(stratum, channel) for stratum, channel in zip(rows, part.channels, strict=True)),
        cells_published=True,
        privacy=None,
        guarantee=Guarantee("frequency", None, None, Fraction(1), None),
    )


def _planned_again(manifest: Manifest, part: Part, histogram: Histogram) -> Plan | None:
    """The same plan once more, from the manifest and the histogram; None when it does not give the same channels."""
    kind = MECHANISMS.get(manifest.mechanism)
    if kind is None or not dataclasses.is_dataclass(kind):
        return None
    known = {field.name for field in dataclasses.fields(kind)}
    options = {k: v for k, v in manifest.options.items() if k in known and not isinstance(v, dict)}
    try:
        mechanism = kind(**options)
        privacy = _privacy(manifest, part)
        if isinstance(mechanism, PlansFromPublic) and part.marginal is not None:
            noisy = np.maximum(np.array(part.marginal.counts, dtype=np.int64), 1)
            plan = mechanism.plan(histogram, privacy, public=Histogram(histogram.domain, noisy))
        else:
            plan = mechanism.plan(histogram, privacy)
    except (DeniableError, TypeError, ValueError):
        return None
    same = len(plan.cells) == len(part.channels) and all(
        cell.channel.values == channel.values
        and np.array_equal(cell.channel.keep, channel.keep)
        and np.array_equal(cell.channel.replace, channel.replace)
        for cell, channel in zip(plan.cells, part.channels, strict=True)
    )
    return plan if same else None


def _privacy(manifest: Manifest, part: Part) -> Privacy | None:
    stated = manifest.privacy
    if stated is None:
        return None
    back = {(type(told).__name__, told): value for value in part.domain if (told := values.to_json(value)) is not None}

    def value_of(told: Any) -> Hashable:
        if told is None:
            return None
        try:
            return back[(type(told).__name__, told)]
        except KeyError:
            raise TableError("The manifest's requirement names a value that is not in its domain.") from None

    return Privacy(
        stated["rho1"],
        stated["rho2"],
        adversary=stated["adversary"],
        per_value={value_of(value): (low, high) for value, low, high in stated["per_value"]},
        exempt=[value_of(value) for value in stated["exempt"]],
    )


def _categories(manifest: Manifest) -> Mapping[Hashable, Hashable] | None:
    """The categories that the release was planned with, if any."""
    stated = manifest.options.get("categories")
    return stated if isinstance(stated, Mapping) and stated else None
