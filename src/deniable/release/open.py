"""Open a release folder."""

from __future__ import annotations

import os
from pathlib import Path

from deniable.engines.local import storage
from deniable.release.release import Release
from deniable.rivals.anatomy.release import GroupsRelease
from deniable.rivals.generalize.release import GeneralizedRelease

KINDS: dict[str, type[Release]] = {"anatomy": GroupsRelease, "generalize": GeneralizedRelease}


def open_release(path: str | os.PathLike[str]) -> Release:
    """The release in a folder; its rows are read when they are needed."""
    folder = Path(path)
    manifest = storage.read_manifest(folder)
    return KINDS.get(manifest.mechanism, Release)(manifest, folder=folder)
