"""Publish by a rival that is no plan of channels: each has a publisher and a release of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deniable.core.errors import OptionError
from deniable.mechanisms import Anatomy, Generalize, Laplace, WithoutChannels
from deniable.publishing.request import Request
from deniable.release.release import Release
from deniable.rivals.anatomy.publish import publish_groups, write_groups
from deniable.rivals.generalize.publish import publish_generalized
from deniable.rivals.laplace.publish import publish_answers

PUBLISHERS: dict[type[WithoutChannels], Callable[..., Release]] = {
    Anatomy: publish_groups,
    Generalize: publish_generalized,
    Laplace: publish_answers,
}


def publish_rival(
    mechanism: WithoutChannels,
    request: Request,
    *,
    row_id: str | None,
    out: str | os.PathLike[str] | None,
    overwrite: bool,
    format: str,
) -> Release:
    """A release in memory, or in a folder where ``out`` names one."""
    if request.missing == "exempt" or row_id is not None or request.marginals:
        raise OptionError(
            f"mechanism {mechanism.name!r} takes no missing='exempt', row_id or marginals. Fix: leave them out."
        )
    if isinstance(mechanism, Anatomy) and out is not None:
        return write_groups(mechanism, request, Path(out), overwrite, format)
    made = PUBLISHERS[type(mechanism)](mechanism, request)
    promised = dict(made.manifest.guarantee)
    promised["not_protected"] = [*promised["not_protected"], *request.said]
    made.manifest = replace(made.manifest, guarantee=promised)
    return made if out is None else made.save(out, overwrite=overwrite, format=format)
