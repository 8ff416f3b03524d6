"""What an owner should know before anyone sees a release: columns that name people or tell values, the order of rows,
heaped numbers, and rows of a small table that, weighed against each other, say more than each (mathematics 13.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.channels import NumberRange
from deniable.core.errors import counted, option, shortened
from deniable.core.part import Part
from deniable.core.plan import Choice
from deniable.core.privacy import Privacy
from deniable.core.values import Counts, Ints, percent
from deniable.owner.decision import Decision, Point
from deniable.owner.findings import Finding, about_randomness, namer
from deniable.owner.grounds import Grounds, Sensitive, decide
from deniable.owner.heaping import about_heap, heap_of
from deniable.owner.parts import limits_of_part
from deniable.owner.together import surest
from deniable.planning.attackers import ChannelRows, NothingShown
from deniable.planning.informed import shown_by_part
from deniable.publishing.advice import Advice
from deniable.publishing.memory import VARIABLE, Recall, remembered_in
from deniable.release.release import Release
from deniable.tables.base import CELL, Dataset, PartJob, Progress, no_progress
from deniable.tables.encoding import Encoded, encode
from deniable.tables.ranges import IntervalEncoder, interval_channel

LEARNT_FROM = 200_000  # rows at most, evenly spread over the table
MOST_LEARNT = 2000  # values: what is learnt of every pair of values is kept
SHOWN = 3  # pairs of values
SMALL_TABLE = 20_000  # rows
RARE = 100  # rows of a value; of more, counts do not tell a tenth more than a row
HOPELESS = 1.0  # an expected relative error
FEWEST_ROWS, DISTINCT_SHARE = 50, 0.9  # of a column that looks like an identifier


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


def notes_about(advice: Advice) -> list[str]:
    """What is odd in a table that was published, and in what was published of it."""
    publication, ready, release = advice.publication, advice.ready, advice.release
    dataset, jobs = ready.dataset, ready.jobs
    counted = [(job.part.columns, job.part.histogram) for job in jobs if job.part.histogram is not None]
    return [
        *row_label_warnings(publication.unnamed),
        *spelling_warnings((columns, histogram.domain) for columns, histogram in counted),
        *distinct_warnings((columns, histogram.counts) for columns, histogram in counted),
        *dataset.said_of_reading([*publication.public, *(column for job in jobs for column in job.part.columns)]),
        *dataset.inspect(()),
        *([] if release is None else warnings_about_counts(jobs, release)),
        *hopeless_warnings(advice.choice),
        *notes_about_looks(advice),
    ]


def notes_about_looks(advice: Advice) -> list[str]:
    """What was published into the same folder before, and whether this is remembered at all."""
    recall, request = advice.looks, advice.publication.request
    if recall is None:
        file = None if request.out is None else remembered_in(Path(request.out))
        if file is None or advice.publication.secret.seed is not None:
            return []
        return [
            f"This publication is not remembered, as {file} cannot be written: a second look at the same people will "
            f"not be noticed. Fix: {VARIABLE}=FILE, a file that can be."
        ]
    if not recall.replaced:
        return []
    return [
        f"{counted(len(recall.replaced), 'earlier release')} of the same people in this folder is replaced. If anyone "
        f"has it, {recall.together(recall.replaced, advice.publication.privacy)} with this one."
    ]


def about_heaps(dataset: Dataset, job: PartJob) -> list[Finding]:
    """What heaps of a column of numbers give away."""
    if job.part.grid is None:
        return []
    rho2 = None if job.part.requirement is None else float(job.part.requirement.rho2)
    column, grid = job.part.columns[0], job.part.grid
    return about_heap(heap_of(column, rows_of_points(dataset, column, job.encoder, grid)[: grid.grid], grid), rho2)


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


# -- the decision on a publication -------------------------------------------------------------------------------------


def decision_about(advice: Advice) -> Decision:
    """The decision on what is about to be published, or was: nothing of the release is read."""
    publication, ready = advice.publication, advice.ready
    request, dataset = publication.request, ready.dataset
    seed = publication.secret.seed
    order = [] if request.shuffle else dataset.inspect((), ready.jobs)
    broken = [
        *about_randomness(publication.secret.source, seed),
        *(Finding("serious", "row order", said, "") for said in order),
        *(one for job in ready.jobs for one in about_heaps(dataset, job) if one.grade == "serious"),
    ]
    parts = zip(ready.jobs, advice.manifest.parts, strict=True)
    sensitive = tuple(sensitive_of(job, part, publication.privacy) for job, part in parts)
    looks = about_looks(advice.looks, publication.privacy, request.again)
    return decide(Grounds(dataset, advice.manifest, sensitive, request.group is not None, tuple(broken), looks))


def about_looks(recall: Recall | None, privacy: Privacy | None, again: bool) -> tuple[Point, ...]:
    """Other releases of the same people: whoever has both is surer than each alone says."""
    if recall is None:
        return ()
    if not recall.before:
        return (Point("second look", "fine", "No other release of these people is remembered.", "none"),)
    together = recall.together(recall.before, privacy)
    says = (
        f"These people were published before: {recall.named(recall.before)}. With both, {together}. Publish them in a "
        f"series ({option('series', 'FILE')}), or only one of the releases; if they are other people, say so."
    )
    said = Point("second look", "decide", says, together.rpartition(" at most ")[2], weight=1.5)
    return (replace(said, accepted=f"{option('again', True)} was asked for.") if again else said,)


def sensitive_of(job: PartJob, part: Part, privacy: Privacy | None) -> Sensitive:
    """A sensitive column of a plan beside what a row will show of it, a range of numbers in intervals."""
    rho2 = rho2_of(job, privacy)
    if part.learned is not None:
        return Sensitive(part, None, NothingShown(part.m), rho2)
    if job.part.grid is None:
        hidden = 1 if job.part.cells_published else max(len(job.part.cells), 1)
        return Sensitive(part, job.encoder, shown_by_part(job.part), rho2, hidden)
    channel = interval_channel(job.part.grid)
    everything = np.arange(channel.m)
    shown = ChannelRows.of(channel.m, [channel], [everything], [np.ones(channel.m)], cells_shown=True)
    return Sensitive(replace(part, domain=channel.values), IntervalEncoder.of(job.encoder), shown, rho2)


def rho2_of(job: PartJob, privacy: Privacy | None) -> float | None:
    """How sure an attacker may become of a part; the largest of several."""
    if job.part.requirement is not None:
        return float(job.part.requirement.rho2)
    if privacy is None:
        return None
    if privacy.per_value:
        return max(float(high) for _, high in privacy.per_value.values())
    return None if privacy.rho2 is None else float(privacy.rho2)


# -- who has learnt from the public columns ----------------------------------------------------------------------------


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
