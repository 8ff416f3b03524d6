"""What an owner should know before anyone sees a release: columns that name people or tell values, the order of rows,
heaped numbers, and rows of a small table that, weighed against each other, say more than each (mathematics 13.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.channels import NumberRange
from deniable.core.errors import option, shortened
from deniable.core.histogram import Histogram
from deniable.core.part import Part
from deniable.core.plan import Choice
from deniable.core.privacy import Privacy
from deniable.core.transforms import BinsLike
from deniable.core.values import Counts, Floats, Ints, percent
from deniable.owner.findings import namer
from deniable.owner.heaping import about_heap, heap_of
from deniable.owner.parts import limits_of_part
from deniable.owner.public import (
    DETERMINES,
    FOLLOWS,
    NEARLY_DETERMINES,
    NEARLY_FOLLOWS,
    Dependence,
    dependence,
    fix_of,
    functions_of,
    sentence_about,
    serious_ones,
)
from deniable.owner.together import surest
from deniable.planning.attackers import ChannelRows, Shown
from deniable.planning.informed import InformedAttacker, attacker_of, classes_of, shown_by_part
from deniable.publishing.advice import Advice
from deniable.publishing.recoding import Recoding
from deniable.publishing.request import Publication, binned, public_columns
from deniable.release.release import Release
from deniable.tables import engine_named
from deniable.tables.base import CELL, Dataset, PartJob, Progress, Scan, no_progress
from deniable.tables.encoding import Encoded, encode, plain
from deniable.tables.ranges import IntervalEncoder, interval_channel

LEARNT_FROM = 200_000  # rows at most, evenly spread over the table
MOST_LEARNT = 2000  # values: what is learnt of every pair of values is kept
SHOWN = 3  # pairs of values
SMALL_TABLE = 20_000  # rows
RARE = 100  # rows of a value; of more, counts do not tell a tenth more than a row
HOPELESS = 1.0  # an expected relative error
FEWEST_ROWS, DISTINCT_SHARE = 50, 0.9  # of a column that looks like an identifier
ROWS = 100_000  # looked at, at the most
ENTRIES = 2**20  # beliefs at once: people x values
SAMPLED = {DETERMINES: NEARLY_DETERMINES, FOLLOWS: NEARLY_FOLLOWS}  # what is left where some row disagrees
MOST_VALUES = 2**17  # of a column that may be a function: more name rows, and are warned of as that


def spelling_warnings(domains: Iterable[tuple[Sequence[str], Sequence[Any]]]) -> list[str]:
    """Sensitive values that differ in case or surrounding blanks only: most often one value, written in two ways."""
    warnings = []
    for columns, domain in domains:
        for place, column in enumerate(columns):
            several = len(columns) > 1
            values = {value[place] if several and isinstance(value, tuple) else value for value in domain}
            alike: dict[str, list[str]] = {}
            for value in sorted(value for value in values if isinstance(value, str)):
                alike.setdefault(" ".join(value.casefold().split()), []).append(value)
            twins = [pair for pair in alike.values() if len(pair) > 1]
            if twins:
                warnings.append(
                    f"Values of {column!r} differ in case or blanks only, and are different values to the release: "
                    f"{'; '.join(' and '.join(map(shortened, pair)) for pair in twins[:SHOWN])}"
                    f"{f' and {len(twins) - SHOWN:,} more' if len(twins) > SHOWN else ''}. Fix: write them in one way."
                )
    return warnings


def distinct_warnings(parts: Iterable[tuple[Sequence[str], Counts]]) -> list[str]:
    """Sensitive columns in which nearly every row has a value of its own: a number of a patient, an exact amount.

    Nothing can be counted of them, and their values are listed in the release, all of them.
    """
    warnings = []
    for columns, counts in parts:
        rows, values = int(counts.sum()), int((counts > 0).sum())
        if len(columns) == 1 and rows >= FEWEST_ROWS and values >= DISTINCT_SHARE * rows:
            warnings.append(
                f"The sensitive column {columns[0]!r} has about as many values as rows, like an identifier or an exact "
                "measurement: all of them are listed in the release, and hardly anything can be counted. Fix: drop it "
                f"and name another column as sensitive; or, if it holds numbers, {option('bins', '')}."
            )
    return warnings


def row_label_warnings(unnamed: Sequence[str]) -> list[str]:
    """Columns that were left out because they tell where each row stood in the original."""
    return [
        f"The column {name!r} is left out: pandas calls labels of rows so, which tell where each row stood in the "
        f"original. Fix: {option('drop', name)} if that is right; to publish it, give it a name of its own."
        for name in unnamed
    ]


def warnings_about(advice: Advice) -> list[str]:
    """The warnings about a table that was published, and about what was published of it."""
    publication, ready, release = advice.publication, advice.ready, advice.release
    dataset, jobs = ready.dataset, ready.jobs
    counted = [(job.part.columns, job.part.histogram) for job in jobs if job.part.histogram is not None]
    return [
        *row_label_warnings(publication.unnamed),
        *spelling_warnings((columns, histogram.domain) for columns, histogram in counted),
        *distinct_warnings((columns, histogram.counts) for columns, histogram in counted),
        *dataset.said_of_reading([*publication.public, *(column for job in jobs for column in job.part.columns)]),
        *dataset.inspect(publication.public, () if publication.request.shuffle else jobs),
        *giveaway_warnings(dataset, sensitive_of(jobs, publication.privacy), publication),
        *heaping_warnings(dataset, jobs),
        *([] if release is None else warnings_about_counts(jobs, release)),
        *hopeless_warnings(advice.choice),
    ]


def heaping_warnings(dataset: Dataset, jobs: Sequence[PartJob]) -> list[str]:
    """One warning for each column whose heaps give values away."""
    warnings = []
    for job in jobs:
        if job.part.grid is None:
            continue
        rho2 = None if job.part.requirement is None else float(job.part.requirement.rho2)
        column, grid = job.part.columns[0], job.part.grid
        heap = heap_of(column, rows_of_points(dataset, column, job.encoder, grid)[: grid.grid], grid)
        warnings += [
            f"Heaped numbers: {finding.detail} Fix: {finding.advice}"
            for finding in about_heap(heap, rho2)
            if finding.grade == "serious"
        ]
    return warnings


def rows_of_points(dataset: Dataset, column: str, encoder: Any, grid: NumberRange) -> Ints:
    """How many rows are at each point of a range, counted in one pass: eight bytes for each."""
    counts = np.zeros(grid.grid + 2, np.int64)  # missing, and exempt, come after all points
    for batch in dataset.batches([column]):
        counts += np.bincount(encoder.encode(batch), minlength=len(counts))
    return counts[: grid.points]


def hopeless_warnings(choice: Choice) -> list[str]:
    """Where even counts of a tenth of the rows are expected to be off by as much as they are, nothing can be learnt."""
    share, error = max(choice.expected.items(), default=(0.0, 0.0))
    if error < HOPELESS:
        return []
    return [
        f"Next to nothing can be learnt from this release: even a count of {share * choice.rows:,.0f} people "
        f"({percent(share)} of the rows) is expected to be off by {percent(error, 2)}. Fix: a larger rho2, fewer "
        "values (rare ones joined), or more rows."
    ]


def warnings_about_counts(jobs: Sequence[PartJob], release: Release) -> list[str]:
    """What whoever knows the exact counts of the table becomes sure of, where that is a tenth more than promised.

    Like all warnings it is for the owner, and no part of the release.
    """
    if release.manifest.rows > SMALL_TABLE:
        return []
    warnings = []
    for job, part in zip(jobs, release.manifest.parts, strict=True):
        histogram, known = job.part.histogram, part.channels and part.swapped is None and part.groups is None
        if histogram is None or not known or int(histogram.counts.min()) > RARE:
            continue
        limits = limits_of_part(release.manifest, part, histogram)
        worst = surest(part, limits, _counted(job, part, release), RARE)
        if worst is not None and worst.beyond:
            warnings.append(
                f"Rows together: {worst.in_words(namer(part.domain))} Fix: a lower rho2, or rare values joined, if "
                "someone may know the exact counts."
            )
    return warnings


def _counted(job: PartJob, part: Part, release: Release) -> list[tuple[Counts, Counts]]:
    """How many rows of each cell hold, and show, each of its values."""
    table = release.table
    batches = table.select(list(part.columns)).combine_chunks().to_batches()
    # Arrow has no batches of a table without rows.
    codes = np.concatenate([np.zeros(0, np.int64), *(job.encoder.encode(batch).astype(np.int64) for batch in batches)])
    there = codes < part.m
    dealt = np.asarray(table.column(CELL).fill_null(0)) if part.cells_published else np.zeros(len(codes), np.int64)
    return [
        (cell.rows.counts, np.bincount(codes[there & (dealt == number)], minlength=part.m)[places])
        for number, (cell, places) in enumerate(zip(job.part.cells, part.cell_positions, strict=True))
    ]


# -- public columns that give values away ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Some rows: public columns, and the code of each sensitive part (after its last value where a row is exempt)."""

    public: pa.Table
    codes: list[Ints]

    def column(self, name: str, kept: Ints) -> Encoded:
        """A public column of some of the rows."""
        return encode(self.public[name].take(pa.array(kept)))


def sampled(
    dataset: Dataset,
    public: Sequence[str],
    encoders: Sequence[Any],
    rows: int,
    most: int,
    progress: Progress = no_progress,
) -> Sample:
    """Every so many rows of a table, in one pass and bounded memory."""
    step, first, done = max(1, -(-rows // most)), 0, 0
    codes: list[list[Ints]] = [[np.zeros(0, np.int64)] for _ in encoders]
    tables = []
    sensitive = [column for encoder in encoders for column in encoder.columns]
    for batch in dataset.batches(list(dict.fromkeys([*public, *sensitive]))):
        taken = batch.take(pa.array(np.arange(first % step, batch.num_rows, step)))
        first = (first - batch.num_rows) % step
        for place, encoder in enumerate(encoders):
            codes[place].append(encoder.encode(taken).astype(np.int64))
        tables.append(taken.select(list(public)))
        done += batch.num_rows
        progress(done, rows, "looking at public columns")
    schema = pa.schema([dataset.schema.field(name) for name in public])
    return Sample(pa.Table.from_batches(tables, schema), [np.concatenate(parts) for parts in codes])


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
    """The parts of a plan whose rows show something of their values, ranges of numbers in intervals. What learned rows
    show is the model's, whose promise covers whatever public columns tell."""
    perturbed = [job for job in jobs if job.part.learned is None]
    return [_numbers(job, privacy) if job.part.histogram is None else _values(job, privacy) for job in perturbed]


def _values(job: PartJob, privacy: Privacy | None) -> Sensitive:
    hidden = 1 if job.part.cells_published else max(len(job.part.cells), 1)
    return Sensitive(job.encoder, job.part.values.m, job.rows, shown_by_part(job.part), rho2_of(job, privacy), hidden)


def _numbers(job: PartJob, privacy: Privacy | None) -> Sensitive:
    assert job.part.grid is not None
    channel = interval_channel(job.part.grid)
    everything = np.arange(channel.m)
    shown = ChannelRows.of(channel.m, [channel], [everything], [np.ones(channel.m)], cells_shown=True)
    return Sensitive(IntervalEncoder.of(job.encoder), channel.m, job.rows, shown, rho2_of(job, privacy))


def giveaway_warnings(dataset: Dataset, every: Sequence[Sensitive], publication: Publication) -> list[str]:
    """At most one warning: which public columns give most away, and what to do about it."""
    if not publication.public or not every or not every[0].rows:
        return []
    sample = sampled(
        dataset, publication.public, [one.encoder for one in every], every[0].rows, ROWS, publication.request.progress
    )
    for place, one in enumerate(every):
        rho2 = one.rho2
        gained = _dependence_of(dataset, one, publication, sample, place)
        culprits = [] if gained is None else serious_ones(gained, rho2)
        if gained is not None and culprits:
            fixes = {name: fix(name, dataset.schema.field(name).type) for name in publication.public}
            return [
                f"Public columns give values away: {sentence_about(gained, culprits, rho2)} The guarantee is about "
                f"attackers who do not know this. Fix: {fix_of(culprits, gained, fixes)}"
            ]
    return []


def _dependence_of(
    dataset: Dataset, one: Sensitive, publication: Publication, sample: Sample, place: int
) -> Dependence | None:
    kept = np.flatnonzero(sample.codes[place] < one.m)
    original = sample.codes[place][kept]
    encoded = {name: sample.column(name, kept) for name in publication.public}
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


# -- who has learnt from the public columns ----------------------------------------------------------------------------


def attacker_on_table(
    table: Any,
    sensitive: str,
    *,
    drop: Sequence[str] = (),
    missing: str = "value",
    bins: Mapping[str, BinsLike] | None = None,
    recoding: Recoding | None = None,
    progress: Progress = no_progress,
) -> tuple[Histogram, InformedAttacker | None]:
    """The same of a table that nobody has asked to publish yet, and the histogram that the attacker speaks of."""
    opened = engine_named("local").open(table)
    public = public_columns(opened, (sensitive,), tuple(drop))
    steps = {} if recoding is None else recoding.steps(opened.schema, public, (sensitive,))
    dataset = opened.recoded(steps) if steps else opened
    dataset = binned(dataset, bins or {}, (sensitive,))
    scan = dataset.scan((sensitive,), missing, None, progress)
    if not public or not scan.rows or scan.histogram.m > MOST_LEARNT:
        return scan.histogram, None
    return scan.histogram, _learnt(dataset, public, scan, progress)


def _learnt(
    dataset: Dataset, public: Sequence[str], scan: Scan, progress: Progress = no_progress
) -> InformedAttacker | None:
    sample = sampled(dataset, public, [scan.encoder], scan.rows, LEARNT_FROM, progress)
    kept = np.flatnonzero(sample.codes[0] < scan.histogram.m)  # the others are exempt: they show what they are
    columns = [sample.column(name, kept) for name in public]
    return attacker_of(columns, sample.codes[0][kept], scan.histogram.m)
