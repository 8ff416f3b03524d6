"""Publish by a rival: groups, boxes or answers instead of perturbed rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from deniable.core.about import About
from deniable.core.errors import OptionError
from deniable.core.labels import of_columns
from deniable.engines import Engine
from deniable.engines.batch.values import require_readable_csv
from deniable.engines.request import Request
from deniable.release.folder import finish_folder, new_folder, spool_in
from deniable.release.open import open_release
from deniable.release.release import Release
from deniable.release.signing_key import Signer
from deniable.rivals.base import Rival


def publish_rival(
    mechanism: Rival,
    request: Request,
    engine: Engine,
    *,
    row_id: str | None,
    out: str | os.PathLike[str] | None,
    overwrite: bool,
    format: str,
    inputs: Sequence[str],
    signer: Signer | None,
    about: About,
) -> Release:
    """A release of groups or answers, in memory, or in a folder where ``out`` names one."""
    if request.missing == "exempt" or row_id is not None or request.marginals:
        raise OptionError(
            f"mechanism {mechanism.name!r} takes no missing='exempt', row_id or marginals. Fix: leave them out."
        )
    made = mechanism.published(request)
    promised = dict(made.manifest.guarantee)
    promised["not_protected"] = [*promised["not_protected"], *request.dataset.said]
    labels = of_columns(request.dataset.labels, [column.name for column in made.manifest.columns])
    manifest = replace(made.manifest, guarantee=promised, recoded=request.dataset.recodes, labels=labels, about=about)
    if made.rows is None or made.groups is None or made.schema is None:
        release = Release(manifest, answerer=made.answerer, engine=engine)
        return release if out is None else release.save(out)
    if out is None:
        table, groups = (pa.concat_tables(pieces).combine_chunks() for pieces in (made.rows(None), made.groups()))
        return Release(manifest, table=table, groups=groups, engine=engine)
    if format == "csv":
        require_readable_csv(made.schema)
    with new_folder(Path(out), overwrite, inputs) as partial, spool_in(partial) as spool:
        finish_folder(partial, manifest, made.rows(spool), made.schema, format, engine, made.groups(), signer)
    return open_release(out, engine=engine)
