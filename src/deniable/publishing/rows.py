"""Publish perturbed rows: plan, execute, write. The one place where an engine and a mechanism meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from deniable.core.labels import of_columns
from deniable.core.manifest import (
    Column,
    Manifest,
    Randomness,
    guarantee_dict,
    privacy_dict,
    software,
    with_sentence,
)
from deniable.engines.base import CELL, Job
from deniable.engines.batch.values import require_readable_csv
from deniable.engines.request import Request
from deniable.mechanisms import Mechanism
from deniable.publishing.about import choice_of, with_expected
from deniable.publishing.destination import Destination
from deniable.publishing.ledger import Books
from deniable.publishing.parts import Prepared, prepared
from deniable.publishing.people import require_own_draws, said_of_looks
from deniable.publishing.resuming import rows_of
from deniable.publishing.warned import hopeless_warnings, warned, warnings_about_counts
from deniable.release.folder import finish_folder, new_folder
from deniable.release.release import Release, open_release


class Machine(NamedTuple):
    """Speed only: how many threads, and how many rows at a time."""

    threads: int
    batch_rows: int


def publish_rows(
    mechanism: str | Mechanism,
    request: Request,
    where: Destination,
    machine: Machine,
    books: Books,
    *,
    who: str | None,
    by_value: bool,
) -> Release:
    """A release of perturbed rows.

    Args:
        mechanism: or ``"auto"``.
        request: the table and what is required.
        where: the release goes.
        machine: speed only.
        books: who remembers it.
        who: the column that names rows or people.
        by_value: whether rows of one person with one value are published alike.
    """
    log = books.log
    ready = prepared(mechanism, request) if log is None else log.prepared(mechanism, request)
    require_own_draws(ready, who, by_value)
    draws = request.keys.subkey("plan", *(work.part.fingerprint() for work in ready.jobs))
    job = Job(
        parts=ready.jobs,
        public=request.public,
        keys=draws if log is None else log.keys,
        row_id=who,
        by_value=by_value,
        order=draws.subkey("order"),
        shuffle=request.shuffle,
        threads=machine.threads,
        batch_rows=machine.batch_rows,
        progress=request.progress,
    )
    if by_value:
        ready = said_of_looks(ready, request, log, who or "")
    ledger = books.opened(request.name, job.keys.purpose, ready.plan.guarantee.gamma)
    warnings = warned(ready, request)
    schema = ready.dataset.published_schema(job)
    if where.format == "csv":
        require_readable_csv(schema)
    series = () if log is None else (log.name,)
    manifest = replace(_manifest(ready, job, request, schema, series), about=with_expected(where.about, ready))
    if where.out is None:
        published = pa.concat_tables(piece.cast(schema) for piece in ready.dataset.execute(job)).combine_chunks()
        books.keep(ledger)
        return _with_advice(Release(manifest, table=published, engine=where.engine), ready, warnings)
    resumed: list[str] = []
    identity = (request.secret, draws) if where.resume else None
    with (
        new_folder(where.out, where.overwrite, where.inputs, resumes=where.resume) as partial,
        rows_of(ready.dataset, job, partial, identity, resumed) as rows,
    ):
        finish_folder(partial, manifest, rows, schema, where.format, where.engine, signer=where.signer)
        books.keep(ledger)  # before the release is in place: it is better to remember one that nobody saw
    return _with_advice(open_release(where.out, engine=where.engine), ready, [*resumed, *warnings])


def _with_advice(release: Release, ready: Prepared, warnings: Sequence[str]) -> Release:
    """The release, with what its owner should know of it."""
    release.choice = choice_of(ready, release.manifest.parts)
    release.warnings = (*warnings, *warnings_about_counts(ready.jobs, release), *hopeless_warnings(release.choice))
    return release


def _manifest(ready: Prepared, job: Job, request: Request, schema: pa.Schema, series: tuple[str, ...]) -> Manifest:
    roles = {CELL: "cell", **dict.fromkeys(job.sensitive, "sensitive")}
    promised, parts = ready.plan.guarantee, ready.published(request.missing)
    said = replace(promised, not_protected=(*promised.not_protected, *ready.dataset.said))
    manifest = Manifest(
        name=request.name,
        software=software(),
        mechanism=ready.plan.mechanism,
        options=ready.plan.options,
        rows=job.rows,
        columns=tuple(Column(field.name, str(field.type), roles.get(field.name, "public")) for field in schema),
        parts=parts,
        privacy=privacy_dict(ready.plan.privacy),
        guarantee=guarantee_dict(said),
        randomness=Randomness(request.secret.source, request.secret.seed, job.shuffle, request.drawn_by, series),
        recoded=ready.dataset.recodes,
        labels=of_columns(ready.dataset.labels, schema.names),
    )
    return with_sentence(manifest)
