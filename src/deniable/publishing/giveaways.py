"""Public columns that give a sensitive value away, before it is published: one warning, from a sample of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.audit.dependence import Dependence, dependence
from deniable.audit.functions import DETERMINES, FOLLOWS, NEARLY_DETERMINES, NEARLY_FOLLOWS, functions_of
from deniable.audit.giveaways import fix_of, sentence_about, serious_ones
from deniable.core.privacy import Privacy
from deniable.engines.base import Dataset, PartJob
from deniable.engines.request import Request
from deniable.planning.informed import classes_of, shown_by_part
from deniable.publishing.known import Sample, sampled

ROWS = 100_000  # looked at, at the most
ENTRIES = 2**20  # beliefs at once: people x values
SAMPLED = {DETERMINES: NEARLY_DETERMINES, FOLLOWS: NEARLY_FOLLOWS}  # what is left where some row disagrees
MOST_VALUES = 2**17  # of a column that may be a function: more name rows, and are warned of as that


def giveaway_warnings(dataset: Dataset, jobs: Sequence[PartJob], request: Request) -> list[str]:
    """At most one warning: which public columns give most away, and what to do about it."""
    listed = [job for job in jobs if job.part.histogram is not None]
    if not request.public or not listed or not listed[0].rows:
        return []
    sample = sampled(dataset, request.public, [job.encoder for job in listed], listed[0].rows, ROWS, request.progress)
    for place, job in enumerate(listed):
        rho2 = rho2_of(job, request.privacy)
        gained = _dependence_of(dataset, job, request, sample, place, rho2)
        culprits = [] if gained is None else serious_ones(gained, rho2)
        if gained is not None and culprits:
            fixes = {name: fix(name, dataset.schema.field(name).type) for name in request.public}
            return [
                f"Public columns give values away: {sentence_about(gained, culprits, rho2)} The guarantee is about "
                f"attackers who do not know this. Fix: {fix_of(culprits, gained, fixes)}"
            ]
    return []


def _dependence_of(
    dataset: Dataset, job: PartJob, request: Request, sample: Sample, place: int, rho2: float | None
) -> Dependence | None:
    assert job.part.histogram is not None
    m = job.part.histogram.m
    kept = np.flatnonzero(sample.codes[place] < m)
    original = sample.codes[place][kept]
    encoded = {name: sample.column(name, kept) for name in request.public}
    columns = {name: column.codes for name, column in encoded.items()}
    likely = functions_of(columns, original)
    exact = {name: _confirmed(dataset, name, job, how) for name, how in likely.items()}
    hidden = 1 if job.part.cells_published else max(len(job.part.cells), 1)
    return dependence(
        ", ".join(job.part.columns),
        columns,
        original,
        m,
        shown_by_part(job.part),
        rho2,
        functions=exact,
        classes=classes_of(encoded),
        of=job.rows,
        entries=ENTRIES // hidden,
    )


def _confirmed(dataset: Dataset, column: str, job: PartJob, how: str) -> str:
    """How a column and the sensitive one go together in all rows, given how they do in a sample."""
    if how not in SAMPLED or is_function(dataset, column, job, inverse=how == FOLLOWS):
        return how
    return SAMPLED[how]


def is_function(dataset: Dataset, column: str, job: PartJob, *, inverse: bool) -> bool:
    """Whether all rows, and not only a sample, have one sensitive value for each value of a column, or the inverse."""
    assert job.part.histogram is not None
    known: dict[Any, Any] = {}
    m = job.part.histogram.m
    for batch in dataset.batches(list(dict.fromkeys([column, *job.encoder.columns]))):
        codes = job.encoder.encode(batch).astype(np.int64)
        array = batch.column(0)
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        size = len(encoded.dictionary)
        own = encoded.indices.cast(pa.int64()).fill_null(size).to_numpy(zero_copy_only=False)
        values = [*encoded.dictionary.to_pylist(), None]
        for pair in np.unique((own * (m + 1) + codes)[codes < m]).tolist():
            value, code = values[pair // (m + 1)], pair % (m + 1)
            argument, result = (code, value) if inverse else (value, code)
            if known.setdefault(argument, result) != result:
                return False
        if len(known) > MOST_VALUES:
            return False
    return True


def rho2_of(job: PartJob, privacy: Privacy | None) -> float | None:
    """How sure an attacker may become of a part; the largest of several."""
    if job.part.requirement is not None:
        return float(job.part.requirement.rho2)
    if privacy is None:
        return None
    if privacy.per_value:
        return max(float(high) for _, high in privacy.per_value.values())
    return None if privacy.rho2 is None else float(privacy.rho2)


def fix(column: str, kind: pa.DataType) -> str:
    """What to do about a public column, by what it holds."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        how = f"or --recode {column}=bands:WIDTH"
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        how = f"or --recode {column}=year"
    elif pa.types.is_boolean(kind):
        how = ""
    else:
        how = f"or --recode {column}=prefix:LENGTH or hierarchy:FILE"
    return f"--drop {column}{', ' + how if how else ''}"
