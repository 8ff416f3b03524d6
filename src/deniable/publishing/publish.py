"""Publish a table: scan, plan, execute. The one place where an engine and a mechanism meet."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable.core.bins import BinsLike
from deniable.core.errors import ColumnError, OptionError, did_you_mean
from deniable.core.histogram import Histogram
from deniable.core.manifest import (
    Column,
    Manifest,
    Marginal,
    Part,
    Randomness,
    cells_of,
    guarantee_dict,
    privacy_dict,
)
from deniable.core.privacy import Privacy
from deniable.engines.base import Job, PartJob, Progress, no_progress
from deniable.engines.local import storage
from deniable.engines.local.binning import BinnedSource
from deniable.engines.local.engine import CELL, LocalEngine, require_distinct, watch_order
from deniable.engines.local.sources import Source, open_source
from deniable.engines.randomness import Keystream, Secret
from deniable.mechanisms import Mechanism, WithoutChannels, mechanism_named
from deniable.mechanisms.retention import Retention
from deniable.planning.plan import AUTO
from deniable.publishing.parts import Planned, mixture_of, planned_parts
from deniable.publishing.request import Request
from deniable.release.open import open_release
from deniable.release.release import Release, finish_folder
from deniable.rivals.publish import publish_rival

MISSING = ("value", "exempt", "refuse")


def publish(
    table: Any,
    *,
    sensitive: str | Sequence[str] | None = None,
    privacy: Privacy | None = None,
    mechanism: str | Mechanism = "uniform",
    drop: str | Sequence[str] = (),
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    format: str = "parquet",
    key: bytes | None = None,
    key_file: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    row_id: str | None = None,
    shuffle: bool = True,
    missing: str = "value",
    bins: Mapping[str, BinsLike] | None = None,
    domain: Sequence[Hashable] | Mapping[str, Sequence[Hashable]] | None = None,
    marginals: bool | None = None,
    name: str = "release",
    threads: int | None = None,
    batch_rows: int = 2**17,
    progress: Progress = no_progress,
) -> Release:
    """Publish a table so that every sensitive value in it is deniable.

    Args:
        table: anything with the Arrow C stream interface (pandas, polars, pyarrow, DuckDB), or a path, a glob or a list
            of paths to CSV or Parquet files.
        sensitive: the column to perturb; several are compounded into one (every combination is a value), but for
            ``Decoys``, which groups each by itself. Left out where the mechanism names its columns, as ``Retention``
            does; these are perturbed one by one.
        privacy: the requirement.
        mechanism: a mechanism's name or object.
        drop: columns that are not published.
        out: a folder to write to, in bounded memory when ``table`` is a path. Without it the release stays in memory.
        key: 32 bytes that decide every draw; by default fresh ones from the operating system, forgotten afterwards.
        key_file: a file with the key, readable by its owner only.
        seed: a number instead of a key, for experiments; recorded in the manifest.
        row_id: a column that names the row; it decides the row's draws instead of its number, and is not published.
        shuffle: publish the rows in random order.
        missing: ``"value"``: missing is a value like any other; ``"exempt"``: published as missing; ``"refuse"``.
        bins: for sensitive numbers: column -> edges, ``Bins`` or ``Quantiles``; the column is published as intervals.
        domain: all values that the sensitive column may hold, if the table need not show each of them; with several
            columns a mapping column -> values.
        marginals: publish the histogram with noise, for more accurate answers. Default: where the adversary is
            assumed to know the distribution anyway (``"frequency"``).
        name: part of the derivation of all draws; give each table under one key its own.
        threads, batch_rows: speed only; they never change the result.
        progress: called with (rows done, rows in all, what).
    """
    chosen = mechanism if mechanism == AUTO else mechanism_named(mechanism)
    names = () if sensitive is None else _as_names(sensitive)
    if isinstance(chosen, Retention):
        chosen = chosen.for_columns(names, privacy)
        names = tuple(chosen.columns)
    _check_options(missing, format, name)
    secret = _secret(key, key_file, seed, out)
    source = _binned(open_source(table), bins or {}, names, Keystream(secret, "release", name, *names))
    public = _public_columns(source, names, _as_names(drop), row_id)
    engine = LocalEngine(source)
    request = Request(engine, names, public, privacy, secret, name, missing, domain, shuffle, marginals, progress)
    if isinstance(chosen, WithoutChannels):
        return publish_rival(chosen, request, row_id=row_id, out=out, overwrite=overwrite, format=format)
    if row_id is not None:
        require_distinct(source, row_id, request.keys)
    said = request.said  # before rows are left out, which puts another source in its place
    planned = planned_parts(chosen, request)
    promised = planned.guarantee
    planned = replace(planned, guarantee=replace(promised, not_protected=(*promised.not_protected, *said)))
    warnings = [*engine.warnings(public), *(source.warnings if isinstance(source, BinnedSource) else ())]
    if not shuffle:
        warnings += [warning for part in planned.parts for warning in watch_order(source, part)]
    job = Job(
        planned.parts,
        public,
        secret,
        name,
        row_id,
        shuffle,
        threads or min(os.cpu_count() or 1, 4),
        batch_rows,
        progress,
    )
    if format == "csv":
        storage.require_readable_csv(engine.schema(job))
    manifest = _manifest(job, engine.schema(job), missing, planned)
    if out is None:
        published = pa.concat_tables(engine.execute(job)).combine_chunks()
        return Release(manifest, table=published, warnings=warnings)
    with storage.new_folder(Path(out), overwrite) as partial:
        spool = partial / "spool"
        spool.mkdir(mode=0o700)
        finish_folder(partial, manifest, engine.execute(job, spool), engine.schema(job), format)
        spool.rmdir()
    release = open_release(out)
    release.warnings = tuple(warnings)
    return release


def scan_table(
    table: Any,
    sensitive: str | Sequence[str],
    *,
    missing: str = "value",
    bins: Mapping[str, BinsLike] | None = None,
    progress: Progress = no_progress,
) -> Histogram:
    """The histogram of a table's sensitive column: all that planning needs."""
    names = _as_names(sensitive)
    source = _binned(open_source(table), bins or {}, names)
    _public_columns(source, names, (), None)
    return LocalEngine(source).scan(names, missing, None, progress).histogram


def _binned(
    source: Source, bins: Mapping[str, BinsLike], sensitive: tuple[str, ...], keys: Keystream | None = None
) -> Source:
    other = [column for column in bins if column not in sensitive]
    if other:
        raise ColumnError(f"bins names {other[0]!r}, which is not a sensitive column: public columns stay as they are.")
    return BinnedSource(source, bins, keys) if bins else source


def _as_names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _public_columns(
    source: Source, sensitive: tuple[str, ...], drop: tuple[str, ...], row_id: str | None
) -> tuple[str, ...]:
    problems = []
    if not sensitive:
        problems.append("sensitive names no column: say which column must stay deniable.")
    for role, names in (("sensitive", sensitive), ("drop", drop), ("row_id", (row_id,) if row_id else ())):
        for name in names:
            if name not in source.names:
                columns = ", ".join(map(str, source.names[:20]))
                problems.append(
                    f"{role} names the column {name!r}, which the table does not have."
                    f"{did_you_mean(name, source.names)} Its columns: {columns}."
                )
    twice = [name for name in sensitive if sensitive.count(name) > 1 or name in drop or name == row_id]
    if twice:
        problems.append(f"The column {twice[0]!r} is named as sensitive and once more; a column has one role.")
    public = tuple(name for name in source.names if name not in (*sensitive, *drop, row_id))
    if CELL in (*public, *sensitive):
        problems.append(
            f"The column name {CELL!r} is reserved: a release uses it for the cell a row fell into. "
            f"Fix: rename the column, or drop it."
        )
    if problems:
        raise ColumnError("\n".join(problems))
    return public


def _check_options(missing: str, form: str, name: str) -> None:
    for what, value, allowed in (("missing", missing, MISSING), ("format", form, ("parquet", "csv"))):
        if value not in allowed:
            raise OptionError(
                f"{what} = {value!r} is not known: choose one of {', '.join(allowed)}.{did_you_mean(value, allowed)}"
            )
    if not name:
        raise OptionError("name = '' is not allowed: give the release a name, or leave it out.")


def _secret(key: bytes | None, key_file: str | os.PathLike[str] | None, seed: int | None, out: Any) -> Secret:
    if sum(given is not None for given in (key, key_file, seed)) > 1:
        raise OptionError("key, key_file and seed exclude each other: give one of them, or none for a fresh key.")
    if key is not None:
        return Secret.from_key(key)
    if key_file is not None:
        return Secret.read(Path(key_file))
    if seed is not None:
        return Secret.from_seed(seed)
    return Secret.generate()


def _part(job: PartJob, missing: str, marginal: Marginal | None) -> Part:
    if job.plan is None:
        assert job.range is not None
        return Part(job.columns, (), missing, False, (), (), None, job.range.to_dict())
    # Cells that nobody sees stay unsaid: what is published of them is their mixture, by the noisy histogram.
    hidden = len(job.plan.cells) > 1 and not job.plan.cells_published
    channels, positions = ((), ()) if hidden else cells_of(job.plan)
    return Part(
        columns=job.columns,
        domain=job.plan.histogram.domain,
        missing=missing,
        cells_published=job.plan.cells_published,
        channels=channels,
        cell_positions=positions,
        marginal=marginal,
        mixture=mixture_of(job.plan, marginal) if hidden else None,
    )


def _manifest(job: Job, schema: pa.Schema, missing: str, planned: Planned) -> Manifest:
    def role(name: str) -> str:
        return "sensitive" if name in job.sensitive else "cell" if name == CELL else "public"

    secret = job.secret
    return Manifest(
        name=job.name,
        software={"name": "deniable", "version": metadata.version("deniable")},
        mechanism=planned.mechanism,
        options=planned.options,
        rows=job.rows,
        columns=tuple(Column(field.name, str(field.type), role(field.name)) for field in schema),
        parts=tuple(
            _part(part, missing, marginal) for part, marginal in zip(planned.parts, planned.marginals, strict=True)
        ),
        privacy=privacy_dict(planned.privacy),
        guarantee=guarantee_dict(planned.guarantee),
        randomness=Randomness(secret.source, secret.seed, job.shuffle, "row id" if job.row_id else "row number"),
    )
