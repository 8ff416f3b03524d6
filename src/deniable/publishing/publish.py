"""Publish a table: what was asked for, read and checked; ``rows`` does the rest."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from deniable.core.about import About
from deniable.core.bins import BinsLike, require_fixed
from deniable.core.privacy import Privacy, as_privacy
from deniable.core.probability import Probability
from deniable.engines import Engine, engine_for
from deniable.engines.base import Progress, no_progress, row_labels
from deniable.engines.randomness import Keystream
from deniable.engines.request import Request
from deniable.mechanisms import Mechanism, mechanism_named
from deniable.mechanisms.registry import AUTO
from deniable.publishing.about import about_of
from deniable.publishing.alone import one_at_a_time
from deniable.publishing.arguments import (
    as_names,
    check_options,
    files_of,
    limit_of,
    one_name,
    public_columns,
    require_once,
    secret_of,
    signer_for,
)
from deniable.publishing.context import canonical, context_of
from deniable.publishing.destination import Destination
from deniable.publishing.ledger import Books
from deniable.publishing.lists import Refused, unfolded
from deniable.publishing.people import drawn_by, series_of
from deniable.publishing.recoding import RecodeLike, Recoding, Rows
from deniable.publishing.resuming import require_resumable
from deniable.publishing.rows import Machine, publish_rows
from deniable.publishing.scanning import binned, recoded
from deniable.release.release import Release
from deniable.release.signing_key import files_of_key


@one_at_a_time
def publish(
    table: Any,
    *,
    sensitive: str | Sequence[str] | None = None,
    privacy: Privacy | Probability | None = None,
    mechanism: str | Mechanism = AUTO,
    drop: str | Sequence[str] = (),
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    format: str = "parquet",
    key: bytes | None = None,
    key_file: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    row_id: str | None = None,
    person: str | None = None,
    series: str | os.PathLike[str] | None = None,
    changes: int | None = None,
    new_people: bool = False,
    again: bool = False,
    resume: bool = False,
    shuffle: bool = True,
    missing: str = "value",
    bins: Mapping[str, BinsLike] | None = None,
    recode: RecodeLike | None = None,
    rare: Rows | None = None,
    suppress: Rows | None = None,
    domain: Sequence[Hashable] | Mapping[str, Sequence[Hashable]] | None = None,
    marginals: bool | None = None,
    informed_limit: Probability | None = None,
    name: str = "release",
    about: About | Mapping[str, Any] | None = None,
    threads: int | None = None,
    batch_rows: int = 2**17,
    progress: Progress = no_progress,
    engine: str | Engine | None = None,
    sign: Any | None = None,
) -> Release:
    """Publish a table so that every sensitive value in it is deniable.

    What its owner should know before anyone sees the release, such as public columns that name people, is in
    ``release.warnings``; commands print it, and notebooks show it.

    Args:
        table: anything with the Arrow C stream interface (pandas, polars, pyarrow, DuckDB), or a path, a glob or a list
            of paths to files: CSV, Parquet, and with the extra ``files`` SPSS, Stata, SAS and Excel
            (``"book.xlsx#sheet"``), whose labelled codes are read as their labels; a Spark data frame; with
            ``engine="spark"`` a path, or the name of a table, that Spark can read.
        sensitive: the column to perturb; several are compounded into one (every combination is a value), but for
            ``Decoys``, which groups each by itself. Left out where the mechanism names its columns, as ``Retention``
            does; these are perturbed one by one. For ``Items`` a column of lists.
        privacy: the requirement, or rho2 alone (``"1/3"``): how sure an attacker may become.
        mechanism: a mechanism's name or object. Left out, or ``"auto"``, the planner takes the one that meets the
            requirement with the smallest predicted error; ``release.choice`` says which, and why.
        drop: columns that are not published. Labels of rows that pandas writes without a name never are.
        out: a folder to write to, in bounded memory when ``table`` is a path. Without it the release stays in memory.
        overwrite: replace the release that is in ``out``.
        format: of the published table: ``"parquet"`` or ``"csv"``.
        key: 32 bytes that decide every draw, together with the table and all choices: the same ones give the same
            release, anything else is drawn afresh. By default a fresh key from the operating system, forgotten
            afterwards.
        key_file: a file with the key, readable by its owner only.
        seed: a number instead of a key, for experiments; recorded in the manifest.
        row_id: a column that names the row; it decides the row's draws instead of its number, and is not published.
            Not for mechanisms that deal rows to cells or swap them.
        person: a column that names the person of a row, where one has several; it is not published. Rows of a person
            that hold one value are published alike, so that they are one look at that person.
        series: a file that makes this a publication of a series: the first makes it, with a key, the plan and who was
            published; later ones publish whoever has not changed as before. It needs ``person`` or ``row_id``.
        changes: of a new series, how often a person's value may change; 2 if left out.
        new_people: of a series: every id that it does not know names someone whom it has not published. Without it a
            table is refused in which ids seem to be written otherwise than before, or hardly anyone is known.
        again: publish although the ledger beside ``key_file`` says that these people were published before.
        resume: keep finished parts of a run that is killed beside ``out``, and go on with those of an earlier run, of
            the same key, table and options, if there are some. It needs ``key_file``, or another key.
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
            assumed to know the distribution anyway (``"frequency"``).
        informed_limit: for ``mechanism="auto"``: how often someone may be right who has learnt from the public columns
            and sees a row. Default: as often as with the cells of ``"small-domain"`` at the same rho2.
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

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"sex": ["F", "M"] * 500, "disease": ["flu", "flu", "cold", "hiv", "flu"] * 200})
    >>> release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"))
    >>> release.table.column_names, release.manifest.guarantee["rho2"]
    (['sex', 'disease'], '3/4')
    """
    chosen: str | Mechanism = AUTO if mechanism == AUTO else mechanism_named(mechanism)
    names, required = () if sensitive is None else as_names(sensitive), as_privacy(privacy)
    if isinstance(chosen, Mechanism):
        chosen = chosen.fitted(required) if isinstance(mechanism, str) and ":" not in mechanism else chosen
        chosen = chosen.for_columns(names, required)
        names = chosen.columns_of(names)
    check_options(missing, format, name)
    signer = signer_for(sign, out)
    limit = limit_of(informed_limit, mechanism)
    who = one_name(row_id, person)
    log = series_of(series, changes, new_people, who, key, key_file, seed)
    if log is not None:
        require_fixed(bins or {}, "the next publication of a series")
    secret = secret_of(key, key_file, seed) if log is None else log.secret
    require_once(table)
    runs_on = engine_for(engine, table)
    source = opened = runs_on.open(table)
    require_resumable(resume, out, secret, opened, chosen, shuffle=shuffle, series=log is not None)
    named_by = "mechanism" if sensitive is None else "sensitive"
    public = public_columns(opened, names, as_names(drop), row_id, person, named_by=named_by)
    said = about_of(about, opened.names, [*public, *names])
    recoding = Recoding.of(recode, rare, suppress).fitting(names, missing, domain, bins or {})
    opened, names, domain = unfolded(
        opened, chosen, names, domain, person, required, Refused(missing, marginals, series, bins, recoding)
    )
    opened = recoded(opened, recoding.steps(opened.schema, public, names))
    choices = {
        "mechanism": chosen,
        "privacy": required,
        "columns": (public, names, row_id, person),
        "values": (missing, domain, bins),
        "published": (marginals, shuffle),
        **({} if limit is None else {"informed_limit": limit}),
        **({"recode": opened.recodes} if opened.recodes else {}),
    }
    context = "" if secret.fresh else context_of(opened, [*public, *names], who, choices)
    if log is not None:
        log.require_choices(canonical({**choices, "columns": (names, row_id, person), "published": (marginals,)}))
    dataset = binned(opened, bins or {}, names, Keystream(secret, "release", name, context, *names))
    by_value = person is not None or log is not None
    request = Request(
        dataset,
        names,
        public,
        required,
        secret,
        name,
        context,
        missing,
        domain,
        shuffle,
        marginals,
        progress,
        limit,
        drawn_by=drawn_by(who, by_value),
        unnamed=row_labels(opened.names, (*names, *as_names(drop), who)),
    )
    inputs = (*files_of(table), *files_of_key(sign))
    where = Destination(runs_on, None if out is None else Path(out), format, overwrite, inputs, signer, said, resume)
    books = Books(log, key_file, again, source, secret)
    if row_id is not None:
        dataset.require_distinct(row_id, request.keys)
    machine = Machine(threads or min(os.cpu_count() or 1, 4), batch_rows)
    return publish_rows(chosen, request, where, machine, books, who=who, by_value=by_value)
