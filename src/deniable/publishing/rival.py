"""Publish by a rival: groups, boxes or answers instead of perturbed rows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from deniable.core.errors import OptionError
from deniable.core.labels import of_columns
from deniable.engines.batch.values import require_readable_csv
from deniable.engines.request import Request
from deniable.publishing.destination import Destination
from deniable.release.folder import finish_folder, new_folder, spool_in
from deniable.release.open import open_release
from deniable.release.release import Release
from deniable.rivals.base import Rival


def publish_rival(mechanism: Rival, request: Request, where: Destination, *, row_id: str | None) -> Release:
    """A release of groups or answers, in memory, or in a folder where one is named."""
    if request.missing == "exempt" or row_id is not None or request.marginals:
        raise OptionError(
            f"mechanism {mechanism.name!r} takes no missing='exempt', row_id or marginals. Fix: leave them out."
        )
    made = mechanism.published(request)
    promised = dict(made.manifest.guarantee)
    promised["not_protected"] = [*promised["not_protected"], *request.dataset.said]
    labels = of_columns(request.dataset.labels, [column.name for column in made.manifest.columns])
    manifest = replace(
        made.manifest, guarantee=promised, recoded=request.dataset.recodes, labels=labels, about=where.about
    )
    if made.rows is None or made.groups is None or made.schema is None:
        release = Release(manifest, answerer=made.answerer, engine=where.engine)
        return release if where.out is None else release.save(where.out)
    if where.out is None:
        table, groups = (pa.concat_tables(pieces).combine_chunks() for pieces in (made.rows(None), made.groups()))
        return Release(manifest, table=table, groups=groups, engine=where.engine)
    if where.format == "csv":
        require_readable_csv(made.schema)
    with new_folder(where.out, where.overwrite, where.inputs) as partial, spool_in(partial) as spool:
        finish_folder(
            partial, manifest, made.rows(spool), made.schema, where.format, where.engine, made.groups(), where.signer
        )
    return open_release(where.out, engine=where.engine)
