"""Publish a table: plan, execute, write. The one place where an engine and a mechanism meet."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from deniable.core.about import About
from deniable.core.manifest import (
    ROW_NUMBER,
    Column,
    Manifest,
    Randomness,
    guarantee_dict,
    privacy_dict,
    software,
    with_sentence,
)
from deniable.core.privacy import EPSILON_LIMIT, Privacy
from deniable.core.transforms import BinsLike
from deniable.core.values import Probability, of_columns
from deniable.mechanisms import Mechanism
from deniable.mechanisms.registry import AUTO
from deniable.publishing.advice import Advice, with_expected
from deniable.publishing.instalments import Instalments
from deniable.publishing.ledger import Ledger
from deniable.publishing.memory import Recall
from deniable.publishing.parts import Prepared, prepared
from deniable.publishing.recoding import RecodeLike, Rows
from deniable.publishing.request import Publication, Request
from deniable.publishing.series import Series, require_own_draws, said_of_looks, saying
from deniable.release.commit import Commit
from deniable.release.folder import finish_folder, read_manifest, release_folder
from deniable.release.release import Release
from deniable.tables import Engine
from deniable.tables.base import CELL, Job, Progress, no_progress
from deniable.tables.encoding import require_readable_csv


def publish(
    table: Any,
    *,
    sensitive: str | Sequence[str] | None = None,
    privacy: Privacy | Probability | None = None,
    mechanism: str | Mechanism = AUTO,
    epsilon_limit: Probability | None = EPSILON_LIMIT,
    drop: str | Sequence[str] = (),
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    format: str = "parquet",
    key: bytes | None = None,
    key_file: str | os.PathLike[str] | None = None,
    new_key_file: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    row_id: str | None = None,
    person: str | None = None,
    group: str | None = None,
    series: str | os.PathLike[str] | None = None,
    changes: int | None = None,
    publications: int | None = None,
    new_people: bool = False,
    again: bool = False,
    shuffle: bool = True,
    missing: str = "value",
    bins: Mapping[str, BinsLike] | None = None,
    recode: RecodeLike | None = None,
    rare: Rows | None = None,
    suppress: Rows | None = None,
    domain: Sequence[Hashable] | Mapping[str, Sequence[Hashable]] | None = None,
    marginals: bool | None = None,
    name: str = "release",
    about: About | Mapping[str, Any] | None = None,
    threads: int | None = None,
    batch_rows: int = 2**17,
    progress: Progress = no_progress,
    engine: str | Engine | None = None,
    sign: Any | None = None,
    judge: Callable[[Advice], None] | None = None,
) -> Release:
    """Publish a table so that every sensitive value in it is deniable.

    What its owner should know before anyone sees the release, such as public columns that name people, is in
    ``release.warnings``, computed when it is read; commands print it, and notebooks show it.

    Args:
        table: anything with the Arrow C stream interface (pandas, polars, pyarrow, DuckDB), or a path, a glob or a list
            of paths to files: CSV, Parquet, and with the extra ``files`` SPSS, Stata, SAS and Excel
            (``"book.xlsx#sheet"``), whose labelled codes are read as their labels; a Spark data frame; with
            ``engine="spark"`` a path, or the name of a table, that Spark can read.
        sensitive: the column to perturb; several are compounded into one (every combination is a value), but for
            ``Decoys``, which groups each by itself. Left out where the mechanism names its columns, as ``Retention``
            does; these are perturbed one by one. For ``Items`` a column of lists.
        privacy: the requirement, or rho2 alone (``"1/3"``): how sure an attacker may become.
        mechanism: a mechanism's name or object. Left out, or ``"auto"``: ``synthetic``, whose promise holds against any
            attacker, where the planner predicts that it answers best; else what perturbs row by row with the smallest
            predicted error. ``release.choice`` says which, and why.
        epsilon_limit: of ``"auto"``: nothing is taken whose epsilon against any attacker is larger; None lifts it.
        drop: columns that are not published. Labels of rows that pandas writes without a name never are.
        out: a folder to write to, in bounded memory when ``table`` is a path. Without it the release stays in memory.
        overwrite: replace the release that is in ``out``.
        format: of the published table: ``"parquet"`` or ``"csv"``.
        key: 32 bytes that decide every draw, together with the table and all choices: the same ones give the same
            release, anything else is drawn afresh. By default a fresh key from the operating system, forgotten
            afterwards.
        key_file: a file with the key, readable by its owner only.
        new_key_file: a file to write a fresh key to, readable by its owner only and outside of ``out``; it is there
            when the release is, and not before.
        seed: a number instead of a key, for experiments; recorded in the manifest.
        row_id: a column that names the row; it decides the row's draws instead of its number, and is not published.
            Not for mechanisms that deal rows to cells or swap them.
        person: a column that names the person of a row, where one has several; it is not published. Rows of a person
            that hold one value are published alike, so that they are one look at that person; of a learned release
            the promise covers all of them together.
        group: a column that names a household, or another group whose members' values follow from each other; it is
            not published. The promise then covers the whole group: for learned releases only.
        series: a file that makes this a publication of a series: the first makes it, with a key, the plan and who was
            published; later ones publish whoever has not changed as before. It needs ``person`` or ``row_id``. Of
            learned releases it keeps the budget of all ``publications``, and republishes a table that has not changed.
        publications: of a new series of learned releases: how many there may be. Each spends its part of the budget.
        changes: of a new series, how often a person's value may change; 2 if left out.
        new_people: of a series: every id that it does not know names someone whom it has not published. Without it a
            table is refused in which ids seem to be written otherwise than before, or hardly anyone is known.
        again: publish although the ledger beside ``key_file``, or the memory of publications, says that these people
            were published before.
        shuffle: publish the rows in random order.
        missing: ``"value"``: missing is a value like any other; ``"exempt"``: published as missing; ``"refuse"``.
        bins: for sensitive numbers: column -> edges, ``Bins`` or ``Quantiles``; the column is published as intervals.
        recode: columns to make coarser before anything else: column -> ``bands``, ``prefix``, ``top``, ``bottom``,
            ``snap``, ``year``, ``quarter``, ``month``, ``hierarchy``, a list of them, or their text (``"bands:10"``).
            Or the path of a TOML file with a table ``recode``, and ``rare`` and ``suppress`` where they are wanted.
        rare: values of public columns that fewer rows have are merged into one: a number for all columns of text, or
            column -> number. Rare numbers and dates become missing.
        suppress: sensitive values that fewer rows have become missing, which is then perturbed like any value: a
            number, or column -> number.
        domain: all values that the sensitive column may hold, if the table need not show each of them; with several
            columns a mapping column -> values.
        marginals: publish the histogram with noise, for more accurate answers. Default: where the adversary is
            assumed to know the distribution anyway (``"frequency"``). Against any prior True takes a tenth of what is
            required for it, and the rows have the rest.
        name: part of the derivation of all draws.
        about: who publishes it, where questions go, and what columns mean, for the README of the release:
            ``About(publisher=.., contact=.., columns=dictionary("columns.csv"))``.
        threads, batch_rows: speed only; they never change the result.
        progress: called with (rows done, rows in all, what).
        engine: what reads the table and executes the plan: ``"local"``, ``"spark"``, or an object. By default Spark for
            Spark's own data frames, and else this machine.
        sign: an Ed25519 private key to sign the folder ``out`` with: the path of a file (PEM, or as ``ssh-keygen -t
            ed25519`` writes it) that only its owner can read, or an ``Ed25519PrivateKey`` of the package
            ``cryptography``.
        judge: called with what its owner should know (``decision``, ``warnings``) before anything is written; what it
            raises ends the publication.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"sex": ["F", "M"] * 500, "disease": ["flu", "flu", "cold", "hiv", "flu"] * 200})
    >>> release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"))
    >>> release.table.column_names, release.manifest.guarantee["rho2"]
    (['sex', 'disease'], '3/4')
    """
    request = Request(**locals())
    with Commit() as commit:  # a series is read, published by and written back: by one run at a time
        if series is not None:
            commit.hold(Path(series))
        begun = None if series is None else _begun(request, Path(series))
        publication = Publication.of(request, request.secret if begun is None else begun.secret)
        if begun is not None:
            publication = begun.admitted(publication)
        if row_id is not None:
            publication.dataset.require_distinct(row_id, publication.keys)
        advice, manifest, table = _published(publication, begun, commit)
    made = (
        Release(manifest, table=table, engine=publication.engine)
        if out is None
        else Release(read_manifest(Path(out)), folder=Path(out), engine=publication.engine)
    )
    return advice.given_with(made)


def _begun(request: Request, path: Path) -> Series | Instalments:
    """The series that a request belongs to."""
    if request.learned:
        return Instalments.open(path, request.publications)
    return Series.open(path, request.changes, request.new_people)


def _published(
    publication: Publication, series: Series | Instalments | None, commit: Commit
) -> tuple[Advice, Manifest, pa.Table | None]:
    """The release, in memory or in a folder of the commit, with all that is to be remembered of it."""
    request, chosen = publication.request, publication.request.chosen
    ready = prepared(chosen, publication) if series is None else series.prepared(chosen, publication)
    who, by_value = (None, False) if ready.by_rank else (request.who, request.by_value)
    require_own_draws(ready, who, by_value)
    draws = publication.keys.subkey("plan", *(work.part.fingerprint() for work in ready.jobs))
    job = Job(
        parts=ready.jobs,
        public=publication.public,
        keys=draws if series is None or ready.by_rank else series.keys,
        row_id=who,
        by_value=by_value,
        order=draws.subkey("order"),
        shuffle=request.shuffle,
        threads=request.threads or min(os.cpu_count() or 1, 4),
        batch_rows=request.batch_rows,
        progress=request.progress,
    )
    if by_value and not isinstance(series, Instalments):
        ready = said_of_looks(ready, publication, series)
    ledger = Ledger.of(publication, job.keys.purpose, ready.plan.guarantee.gamma)
    known = job.keys.subkey("memory").words(0, 2).tobytes().hex()  # by these draws, which it does not tell
    of_series, recall = "" if series is None else series.name, None
    if request.out is not None:
        recall = Recall.of(publication, known, ready.plan.guarantee.gamma, Path(request.out), of_series)
    if recall is not None and recall.before:
        ready = saying(ready, recall.said(publication.privacy))
    remembering = [book for book in (series, ledger, recall) if book is not None]
    schema = ready.dataset.published_schema(job)
    if request.format == "csv":
        require_readable_csv(schema)
    manifest = _manifest(ready, job, publication, schema, () if series is None else (series.name,))
    advice = Advice(publication, ready, manifest, known, of_series, recall)
    if request.judge is not None:
        request.judge(advice)
    table = None
    if request.out is None:
        table = pa.concat_tables(piece.cast(schema) for piece in ready.dataset.execute(job)).combine_chunks()
    else:
        folder = release_folder(commit, Path(request.out), request.overwrite, request.inputs)
        spool = folder.with_name("spool")
        spool.mkdir()
        pieces = ready.dataset.execute(job, spool)
        finish_folder(folder, manifest, pieces, schema, request.format, publication.engine, signer=request.signer)
    if request.new_key_file is not None:
        commit.write(
            request.new_key_place, f"{publication.secret.key.hex()}\n", private=True, check=request.require_new_key
        )
    for book in remembering:
        book.save(commit)
    return advice, manifest, table


def _manifest(
    ready: Prepared, job: Job, publication: Publication, schema: pa.Schema, series: tuple[str, ...]
) -> Manifest:
    request = publication.request
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
        randomness=Randomness(
            publication.secret.source,
            publication.secret.seed,
            job.shuffle,
            ROW_NUMBER if ready.by_rank else request.drawn_by,
            series,
        ),
        recoded=ready.dataset.recodes,
        labels=of_columns(ready.dataset.labels, schema.names),
        about=with_expected(publication.about, ready),
    )
    return with_sentence(manifest)
