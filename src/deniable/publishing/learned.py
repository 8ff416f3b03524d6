"""From a table to a learned release: survey its columns, list its values, cross levels by values, learn, deal.

The table is read twice here and once more when it is published; only the ledger tells anything of its values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.errors import OptionError, RequirementError, option
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan, PlannedPart
from deniable.core.values import Counts, Ints
from deniable.learned.ledger import Ledger
from deniable.mechanisms.base import Need
from deniable.mechanisms.requirement import check_histogram
from deniable.mechanisms.synthetic import (
    Budget,
    Synthetic,
    budget_of,
    codings_for,
    learn,
    plan_of,
    values_listed,
    worded_epsilon,
)
from deniable.publishing.request import Publication
from deniable.tables.base import PartJob, Scan
from deniable.tables.crossing import cross, survey
from deniable.tables.encoding import Encoder, is_text, product

OTHER = "(other)"  # what stands for all texts that are not listed; of other types a missing value does


def learned_from(mechanism: Synthetic, need: Need, domain: Any, publication: Publication) -> tuple[Plan, PartJob]:
    """The plan of a learned release, and what an engine is to execute."""
    request, dataset, keys = publication.request, publication.dataset, publication.keys
    if request.row_id is not None or request.series is not None:
        which = "row_id" if request.row_id is not None else "series"
        raise OptionError(
            f"mechanism 'synthetic' deals values to rows, so {option(which)} decides nothing. Fix: leave it out; "
            "publish again under one ledger instead."
        )
    together = [name for name in (request.person, request.group) if name is not None]
    surveyed = survey(
        dataset,
        publication.public,
        need.columns,
        together,
        keys,
        missing=request.missing,
        domain=domain,
        progress=request.progress,
    )
    scan = surveyed.scan
    check_histogram(scan.histogram, publication.privacy)
    ledger = Ledger(keys.subkey("ledger"))
    budget = budget_of(publication.privacy, scan.histogram.counts, surveyed.together, ledger)
    encoder, shown = _listed(mechanism, need, domain, scan, ledger, budget)
    codings = codings_for(mechanism, surveyed.columns, budget)
    crossed = cross(dataset, codings, scan.encoder, shown, encoder.m, request.progress)
    learned, dealt = learn(mechanism, crossed, codings, ledger, budget, keys.subkey("dealing"))
    counts = np.bincount(dealt.places, weights=dealt.counts, minlength=encoder.m).astype(np.int64)
    histogram = Histogram(tuple(product(encoder.values)), counts)
    listed = "declared" if domain is not None else mechanism.listing
    other = domain is None and mechanism.listing == "threshold"
    part = PlannedPart(columns=need.columns, histogram=histogram, learned=replace(learned, other=other), dealt=dealt)
    plan = plan_of(mechanism, part, budget, publication.privacy, listed)
    return plan, PartJob(plan.parts[0], encoder, scan.rows)


def _listed(
    mechanism: Synthetic, need: Need, domain: Any, scan: Scan, ledger: Ledger, budget: Budget
) -> tuple[Encoder, Ints]:
    """How the values that are published become codes, and for each value of the table the code that it is shown by."""
    encoder: Encoder = scan.encoder
    if domain is not None or mechanism.listing == "table":
        return encoder, np.arange(encoder.m)
    counts = scan.histogram.counts.reshape(encoder.sizes)
    of_columns = [_margin(counts, axis) for axis in range(len(encoder.sizes))]
    kept = values_listed(mechanism, need.columns, of_columns, ledger, budget)
    values, places = [], []
    for column, known, there in zip(need.columns, encoder.values, kept, strict=True):
        shown, place = _with_other(known, there)
        if len(shown) < 2:
            raise RequirementError(
                f"No value of {column!r} has enough rows to be listed at epsilon {float(budget.epsilon):.3g}: which "
                "values occur is evidence, too, and only frequent ones are told. Fix: "
                f"{option('domain', '[..]', 'COLUMN=FILE')} with every value that may occur, or {worded_epsilon()}."
            )
        values.append(shown)
        places.append(place)
    made = Encoder(encoder.columns, values, exempt=encoder.exempt)
    grid = np.zeros([len(place) for place in places], dtype=np.int64)
    for axis, place in enumerate(places):
        shape = [1] * len(places)
        shape[axis] = len(place)
        grid = grid * made.sizes[axis] + place.reshape(shape)
    return made, grid.ravel()


def _margin(counts: Counts, axis: int) -> Counts:
    others = tuple(other for other in range(counts.ndim) if other != axis)
    margin: Counts = counts.sum(axis=others)
    return margin


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
