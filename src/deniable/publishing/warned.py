"""What an owner should know before anyone sees the release: identifiers, order, columns that tell, heaped numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from deniable.core.errors import shortened
from deniable.core.part import Part
from deniable.core.promise import Groups
from deniable.engines.base import PartJob, Scan
from deniable.engines.request import Request
from deniable.planning.informed import frequencies_of, shown_by_groups, surest_of_groups
from deniable.publishing.giveaways import Sensitive, giveaway_warnings, sensitive_of
from deniable.publishing.heaping import heaping_warnings
from deniable.publishing.parts import Prepared

SHOWN = 3  # pairs of values


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


def warned(ready: Prepared, request: Request) -> list[str]:
    """The warnings about a table that is about to be published."""
    dataset, jobs = ready.dataset, ready.jobs
    return [
        *spelling_warnings(_domains(jobs)),
        *dataset.said_of_reading([*request.public, *(column for job in jobs for column in job.part.columns)]),
        *dataset.inspect(request.public, () if request.shuffle else jobs),
        *giveaway_warnings(dataset, sensitive_of(jobs, request.privacy), request),
        *heaping_warnings(dataset, jobs),
    ]


def _domains(jobs: Sequence[PartJob]) -> Iterator[tuple[Sequence[str], Sequence[Any]]]:
    return ((job.part.columns, job.part.histogram.domain) for job in jobs if job.part.histogram is not None)


def warned_of_groups(scan: Scan | None, part: Part, request: Request) -> list[str]:
    """The same for a release of groups or answers; public columns are published as they are where there is a
    ``scan``."""
    dataset = request.dataset
    spelt = spelling_warnings([(part.columns, part.domain)])
    said = [*spelt, *dataset.said_of_reading([*request.public, *request.sensitive])]
    if scan is None:
        return said
    assert isinstance(part.promise, Groups)
    counts, l = scan.histogram.counts, part.promise.l
    shown, prior = shown_by_groups(counts, l), frequencies_of(counts)
    sensitive = Sensitive(scan.encoder, scan.histogram.m, scan.rows, shown, surest_of_groups(l), prior=prior)
    return [*said, *dataset.inspect(request.public), *giveaway_warnings(dataset, [sensitive], request)]
