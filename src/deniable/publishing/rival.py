"""Publish by a rival: groups, boxes or answers instead of perturbed rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa

from deniable.core.errors import OptionError, option
from deniable.core.labels import of_columns
from deniable.engines.batch.values import require_readable_csv
from deniable.engines.request import Request
from deniable.publishing.destination import Destination
from deniable.publishing.ledger import Books
from deniable.publishing.warned import warned_of_groups
from deniable.release.folder import finish_folder, new_folder, spool_in
from deniable.release.release import Release, open_release
from deniable.rivals.base import Rival, RivalRelease


def publish_rival(
    mechanism: Rival, request: Request, where: Destination, books: Books, *, row_id: str | None
) -> Release:
    """A release of groups or answers, in memory, or in a folder where one is named."""
    if request.missing == "exempt" or row_id is not None or request.marginals:
        raise OptionError(
            f"mechanism {mechanism.name!r} takes no {option('missing', 'exempt')}, {option('row_id', '')}, "
            f"{option('person', '')} or marginals. Fix: leave them out."
        )
    made = mechanism.published(request)
    if made.rows is None and not request.shuffle:
        raise OptionError(
            f"mechanism {mechanism.name!r} publishes no rows, so there is nothing that {option('shuffle', False)} "
            "could leave in order. Fix: leave it out."
        )
    promised = dict(made.manifest.guarantee)
    gamma = promised["gamma"]
    ledger = books.opened(request.name, request.keys.purpose, None if gamma is None else Fraction(gamma))
    promised["not_protected"] = [*promised["not_protected"], *request.dataset.said]
    labels = of_columns(request.dataset.labels, [column.name for column in made.manifest.columns])
    manifest = replace(
        made.manifest, guarantee=promised, recoded=request.dataset.recodes, labels=labels, about=where.about
    )
    warnings = warned_of_groups(made.beside, manifest.parts[0], request)
    release = _placed(replace(made, manifest=manifest), where, lambda: books.keep(ledger))
    release.warnings = (*warnings, *release.warnings)
    return release


def _placed(made: RivalRelease, where: Destination, keep: Callable[[], None]) -> Release:
    """What was made, where it is wanted; it is remembered before anyone can see it."""
    manifest = made.manifest
    if made.rows is None or made.groups is None or made.schema is None:
        release = Release(manifest, answerer=made.answerer, engine=where.engine)
        placed = release if where.out is None else release.save(where.out)  # which says why it cannot be
        keep()
        return placed
    if where.out is None:
        table, groups = (pa.concat_tables(pieces).combine_chunks() for pieces in (made.rows(None), made.groups()))
        keep()
        return Release(manifest, table=table, groups=groups, engine=where.engine)
    if where.format == "csv":
        require_readable_csv(made.schema)
    with new_folder(where.out, where.overwrite, where.inputs) as partial, spool_in(partial) as spool:
        finish_folder(
            partial, manifest, made.rows(spool), made.schema, where.format, where.engine, made.groups(), where.signer
        )
        keep()
    return open_release(where.out, engine=where.engine)
