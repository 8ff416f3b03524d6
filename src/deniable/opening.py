"""Open a release folder."""

from __future__ import annotations

import os
from pathlib import Path

from deniable.engines.local import storage
from deniable.generalized_release import GeneralizedRelease
from deniable.groups_release import GroupsRelease
from deniable.release import Release

KINDS: dict[str, type[Release]] = {"anatomy": GroupsRelease, "generalize": GeneralizedRelease}


def open_release(path: str | os.PathLike[str]) -> Release:
    """The release in a folder; its rows are read when they are needed."""
    folder = Path(path)
    manifest = storage.read_manifest(folder)
    return KINDS.get(manifest.mechanism, Release)(manifest, folder=folder)
