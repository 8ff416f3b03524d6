"""Public columns that give a sensitive value away, before it is published: one warning, from a sample of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.audit.attacks.shown import ChannelRows, Shown
from deniable.audit.dependence import Dependence, dependence
from deniable.audit.functional import DETERMINES, FOLLOWS, NEARLY_DETERMINES, NEARLY_FOLLOWS, functions_of
from deniable.audit.giveaways import fix_of, sentence_about, serious_ones
from deniable.core.arrays import Floats
from deniable.core.privacy import Privacy
from deniable.engines.base import Dataset, PartJob
from deniable.engines.batch.columns import plain
from deniable.engines.batch.range_intervals import IntervalEncoder, interval_channel
from deniable.engines.request import Request
from deniable.planning.informed import classes_of, shown_by_part
from deniable.publishing.known import Sample, sampled

ROWS = 100_000  # looked at, at the most
ENTRIES = 2**20  # beliefs at once: people x values
SAMPLED = {DETERMINES: NEARLY_DETERMINES, FOLLOWS: NEARLY_FOLLOWS}  # what is left where some row disagrees
MOST_VALUES = 2**17  # of a column that may be a function: more name rows, and are warned of as that


@dataclass(frozen=True, eq=False)
class Sensitive:
    """A sensitive column, or several as one, that public columns may give away.

    Attributes:
        encoder: how its values become codes.
        m: how many values there are.
        rows: of the table.
        shown: what a published row shows of it.
        rho2: how sure an attacker may become.
        hidden: over how many cells someone has to sum who sees a row.
        prior: the frequencies that attackers know; None: they learn them from some rows.
    """

    encoder: Any
    m: int
    rows: int
    shown: Shown
    rho2: float | None
    hidden: int = 1
    prior: Floats | None = None


def sensitive_of(jobs: Sequence[PartJob], privacy: Privacy | None) -> list[Sensitive]:
    """The parts of a plan, ranges of numbers in intervals."""
    return [_numbers(job, privacy) if job.part.histogram is None else _values(job, privacy) for job in jobs]


def _values(job: PartJob, privacy: Privacy | None) -> Sensitive:
    hidden = 1 if job.part.cells_published else max(len(job.part.cells), 1)
    return Sensitive(job.encoder, job.part.values.m, job.rows, shown_by_part(job.part), rho2_of(job, privacy), hidden)


def _numbers(job: PartJob, privacy: Privacy | None) -> Sensitive:
    assert job.part.grid is not None
    channel = interval_channel(job.part.grid)
    everything = np.arange(channel.m)
    shown = ChannelRows.of(channel.m, [channel], [everything], [np.ones(channel.m)], cells_shown=True)
    return Sensitive(IntervalEncoder.of(job.encoder), channel.m, job.rows, shown, rho2_of(job, privacy))


def giveaway_warnings(dataset: Dataset, every: Sequence[Sensitive], request: Request) -> list[str]:
    """At most one warning: which public columns give most away, and what to do about it."""
    if not request.public or not every or not every[0].rows:
        return []
    sample = sampled(dataset, request.public, [one.encoder for one in every], every[0].rows, ROWS, request.progress)
    for place, one in enumerate(every):
        rho2 = one.rho2
        gained = _dependence_of(dataset, one, request, sample, place)
        culprits = [] if gained is None else serious_ones(gained, rho2)
        if gained is not None and culprits:
            fixes = {name: fix(name, dataset.schema.field(name).type) for name in request.public}
            return [
                f"Public columns give values away: {sentence_about(gained, culprits, rho2)} The guarantee is about "
                f"attackers who do not know this. Fix: {fix_of(culprits, gained, fixes)}"
            ]
    return []


def _dependence_of(dataset: Dataset, one: Sensitive, request: Request, sample: Sample, place: int) -> Dependence | None:
    kept = np.flatnonzero(sample.codes[place] < one.m)
    original = sample.codes[place][kept]
    encoded = {name: sample.column(name, kept) for name in request.public}
    columns = {name: column.codes for name, column in encoded.items()}
    likely = functions_of(columns, original)
    exact = {name: _confirmed(dataset, name, one, how) for name, how in likely.items()}
    return dependence(
        ", ".join(one.encoder.columns),
        columns,
        original,
        one.m,
        one.shown,
        one.rho2,
        functions=exact,
        classes=classes_of(encoded),
        of=one.rows,
        entries=ENTRIES // one.hidden,
        prior=one.prior,
    )


def _confirmed(dataset: Dataset, column: str, one: Sensitive, how: str) -> str:
    """How a column and the sensitive one go together in all rows, given how they do in a sample."""
    if how not in SAMPLED or is_function(dataset, column, one, inverse=how == FOLLOWS):
        return how
    return SAMPLED[how]


def is_function(dataset: Dataset, column: str, one: Sensitive, *, inverse: bool) -> bool:
    """Whether all rows, and not only a sample, have one sensitive value for each value of a column, or the inverse."""
    known: dict[Any, Any] = {}
    m = one.m
    for batch in dataset.batches(list(dict.fromkeys([column, *one.encoder.columns]))):
        codes = one.encoder.encode(batch).astype(np.int64)
        array = batch.column(0)
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        size = len(encoded.dictionary)
        own = encoded.indices.cast(pa.int64()).fill_null(size).to_numpy(zero_copy_only=False)
        values = [*_distinct(encoded.dictionary), None]
        for pair in np.unique((own * (m + 1) + codes)[codes < m]).tolist():
            value, code = values[pair // (m + 1)], pair % (m + 1)
            argument, result = (code, value) if inverse else (value, code)
            if known.setdefault(argument, result) != result:
                return False
        if len(known) > MOST_VALUES:
            return False
    return True


def _distinct(values: pa.Array) -> list[Any]:
    """Values by which rows of several batches can be compared: dates and times, which may lie outside of the years that
    Python has, as their numbers."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return [plain(value) for value in values.to_pylist()]


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
