"""From a table to a learned release: survey its columns, list its values, cross levels by values, learn, deal.

The table is read twice here and once more when it is published; only the ledger tells anything of its values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import OptionError, RequirementError, listing, option
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan, PlannedPart
from deniable.core.transforms import Bins, BinsLike, Quantiles, Rare, as_bins
from deniable.core.values import Counts, Ints
from deniable.learned.ledger import Ledger
from deniable.learned.levels import ColumnCounts
from deniable.mechanisms.base import Need
from deniable.mechanisms.requirement import check_histogram
from deniable.mechanisms.synthetic import (
    Budget,
    Synthetic,
    budget_of,
    codings_for,
    edges_cost,
    learn,
    plan_of,
    values_listed,
)
from deniable.publishing.request import Publication
from deniable.tables.base import Dataset, PartJob, Scan
from deniable.tables.crossing import cross, rows_together, survey
from deniable.tables.encoding import Encoder, is_text, product
from deniable.tables.transforms import numbers_in

OTHER = "(other)"  # what stands for all texts that are not listed; of other types a missing value does


@dataclass(frozen=True)
class Look:
    """What is known of a table before anything is learned: its rows and public columns, and how values will be listed.

    Attributes:
        dataset: the table as it is read: numbers in bins.
        ledger: what was paid for so far.
        columns: the public columns.
        scan: the sensitive values, which only the ledger tells.
        together: rows of one person or group at the most.
        declared: for each sensitive column, whether its list of values tells nothing.
    """

    dataset: Dataset
    ledger: Ledger
    columns: tuple[ColumnCounts, ...]
    scan: Scan
    together: int
    declared: tuple[bool, ...]

    @property
    def varying(self) -> int:
        """How many public columns have more than one value."""
        return sum(len(column.values) + (column.missing > 0) > 1 for column in self.columns)


def look_at(need: Need, domain: Any, publication: Publication) -> Look:
    """The first pass over a table."""
    request, keys = publication.request, publication.keys
    _require_paid(publication)
    ledger = Ledger(keys.subkey("ledger"))
    owners = [name for name in (request.person, request.group) if name is not None]
    together = rows_together(publication.dataset, owners, keys) if owners else 1
    dataset = _with_edges(publication, ledger, together)
    domain = _with_bins(domain, dataset, need.columns, missing=request.missing == "value")
    surveyed = survey(
        dataset, publication.public, need.columns, missing=request.missing, domain=domain, progress=request.progress
    )
    check_histogram(surveyed.scan.histogram, publication.privacy)
    by_column = isinstance(domain, Mapping)
    declared = tuple(domain is not None and (not by_column or domain.get(name) is not None) for name in need.columns)
    return Look(dataset, ledger, surveyed.columns, surveyed.scan, together, declared)


def learned_from(
    mechanism: Synthetic, need: Need, publication: Publication, look: Look, limit: float = math.inf
) -> tuple[Plan, Dataset, PartJob]:
    """The plan of a learned release, the table as it is read for it, and what an engine is to execute; ``limit`` is one
    on epsilon."""
    request, keys = publication.request, publication.keys
    dataset, ledger, scan, declared = look.dataset, look.ledger, look.scan, list(look.declared)
    budget = budget_of(publication.privacy, scan.histogram, look.together, ledger, publication.instalment, limit)
    encoder, shown = _listed(mechanism, need, declared, dataset, scan, ledger, budget)
    codings = codings_for(mechanism, look.columns, budget)
    crossed = cross(dataset, codings, scan.encoder, shown, encoder.m, request.progress)
    learned, dealt = learn(mechanism, crossed, codings, ledger, budget, keys.subkey("dealing"))
    counts = np.bincount(dealt.places, weights=dealt.counts, minlength=encoder.m).astype(np.int64)
    histogram = Histogram(tuple(product(encoder.values)), counts)
    listed = "declared" if all(declared) else mechanism.listing
    learned = replace(learned, other=listed == "threshold")
    part = PlannedPart(columns=need.columns, histogram=histogram, learned=learned, dealt=dealt)
    plan = plan_of(mechanism, part, budget, publication.privacy, listed, exempt=encoder.exempt)
    return plan, dataset, PartJob(plan.parts[0], encoder, scan.rows)


def unfit(publication: Publication) -> bool:
    """Whether a publication asks for what a learned release does not go with."""
    request = publication.request
    return bool(_by_row(publication) or request.suppress or quantiles_of(request.bins) or request.marginals)


def _by_row(publication: Publication) -> str:
    """The option that asks for draws of rows one by one."""
    request = publication.request
    by_series = request.series is not None and publication.instalment is None
    return "row_id" if request.row_id is not None else "series" if by_series else ""


def _require_paid(publication: Publication) -> None:
    """Refuse what would depend on values without being paid for."""
    request, dataset = publication.request, publication.dataset
    which = _by_row(publication)
    if which:
        raise RequirementError(
            f"mechanism 'synthetic' deals values to rows, so {option(which)} decides nothing. Fix: leave it out; to "
            f"publish again, {option('series', 'FILE')} with {option('mechanism', 'synthetic')} has one budget for all."
        )
    suppressed = [
        name for name in publication.sensitive if any(isinstance(step, Rare) for step in dataset.recodes.get(name, ()))
    ]
    if suppressed:
        raise OptionError(
            f"suppress leaves values of {listing(suppressed)} out by their exact counts, which mechanism 'synthetic' "
            f"may not tell. Fix: leave {option('suppress', '')} out: values of few rows are not listed anyway."
        )
    drawn = [name for name in quantiles_of(request.bins) if name in dataset.bins]
    if drawn:
        raise RequirementError(
            f"The edges of the bins of {listing(drawn)} were drawn before a ledger could pay for them. Fix: "
            f"{option('mechanism', 'synthetic')}, or give edges."
        )


def quantiles_of(bins: Mapping[str, BinsLike] | None) -> dict[str, Quantiles]:
    """The columns whose bins have edges that depend on their numbers."""
    given = {name: as_bins(one) for name, one in (bins or {}).items()}
    return {name: one for name, one in given.items() if isinstance(one, Quantiles)}


def _with_edges(publication: Publication, ledger: Ledger, together: int) -> Dataset:
    """The table with bins whose edges are paid for, where they are not declared."""
    dataset, wanted = publication.dataset, quantiles_of(publication.request.bins)
    bins: dict[str, BinsLike] = {}
    for name, quantiles in wanted.items():
        cost = edges_cost(publication.privacy, quantiles.count, len(wanted), together, publication.instalment)
        numbers = np.concatenate([numbers_in(batch.column(name)) for batch in dataset.batches([name])] or [np.zeros(0)])
        whole = pa.types.is_integer(dataset.schema.field(name).type)
        edges = ledger.edges(name, numbers, quantiles.count, cost, whole=whole)
        bins[name] = Bins((edges[0] - 1, *edges, edges[-1] + 1), open_ends=True)
    return dataset.binned(bins)


def _with_bins(domain: Any, dataset: Dataset, columns: Sequence[str], *, missing: bool) -> Any:
    """The declared values, and those of bins, which their edges tell, whether or not a row is in them."""
    gone = [None] if missing else []
    known = {name: [*dataset.bins[name].labels, *gone] for name in columns if name in dataset.bins}
    if domain is None:
        return known or None
    return {**known, **domain} if isinstance(domain, Mapping) else domain


def _listed(
    mechanism: Synthetic,
    need: Need,
    declared: list[bool],
    dataset: Dataset,
    scan: Scan,
    ledger: Ledger,
    budget: Budget,
) -> tuple[Encoder, Ints]:
    """How the values that are published become codes, and for each value of the table the code that it is shown by."""
    encoder: Encoder = scan.encoder
    counts = scan.histogram.counts.reshape(encoder.sizes)
    axes = [axis for axis, known in enumerate(declared) if not known and mechanism.listing == "threshold"]
    margins = [_margin(counts, axis) for axis in axes]
    those = values_listed(mechanism, [need.columns[axis] for axis in axes], margins, ledger, budget) if axes else []
    kept = dict(zip(axes, those, strict=True))
    values, places = [], []
    for axis, (column, known) in enumerate(zip(need.columns, encoder.values, strict=True)):
        if axis in kept:
            shown, place = _with_other(known, kept[axis])
        elif column in dataset.bins:
            shown, place = _in_order(dataset.bins[column].labels, known)
        else:
            shown, place = known, np.arange(len(known))
        if len(shown) < 2:
            raise _nothing_listed(column, known.type, budget)
        values.append(shown)
        places.append(place)
    made = Encoder(encoder.columns, values, exempt=encoder.exempt)
    grid = np.zeros([len(place) for place in places], dtype=np.int64)
    for axis, place in enumerate(places):
        shape = [1] * len(places)
        shape[axis] = len(place)
        grid = grid * made.sizes[axis] + place.reshape(shape)
    return made, grid.ravel()


def _nothing_listed(column: str, kind: pa.DataType, budget: Budget) -> RequirementError:
    edges = f"{option('bins', f'{{{column!r}: Quantiles(10)}}', f'{column}=quantiles:10')}, or "
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return RequirementError(
        f"No value of {column!r} has enough rows to be listed at epsilon {float(budget.epsilon):.3g}: which values "
        f"occur is evidence, too, and only frequent ones are told. Fix: {edges if number else ''}"
        f"{option('domain', '[..]', 'COLUMN=FILE')} with every value that may occur; more rows, or a larger budget."
    )


def _margin(counts: Counts, axis: int) -> Counts:
    others = tuple(other for other in range(counts.ndim) if other != axis)
    margin: Counts = counts.sum(axis=others)
    return margin


def _in_order(labels: Sequence[str], known: pa.Array) -> tuple[pa.Array, Ints]:
    """Bins in the order of their edges, and where each of the known ones then stands."""
    every = pa.array([*labels, None], known.type)
    shown = every.filter(pc.is_in(every, value_set=known))
    return shown, pc.index_in(known, value_set=shown).to_numpy(zero_copy_only=False).astype(np.int64)


def _with_other(known: pa.Array, kept: Ints) -> tuple[pa.Array, Ints]:
    """The listed values and the one that stands for all others, and where each value of the table then stands."""
    listed = known.take(pa.array(kept))
    stands: str | None = OTHER if is_text(known.type) else None
    own = listed.to_pylist()
    if stands in own:  # a value that is written like it stands for the others, too
        place = np.full(len(known), own.index(stands), dtype=np.int64)
        place[kept] = np.arange(len(kept))
        return listed, place
    at = len(listed) - listed.null_count  # a missing value stands last
    shown = pa.concat_arrays([listed.slice(0, at), pa.array([stands], known.type), listed.slice(at)])
    place = np.full(len(known), at, dtype=np.int64)
    place[kept] = np.arange(len(kept)) + (np.arange(len(kept)) >= at)
    return shown, place
