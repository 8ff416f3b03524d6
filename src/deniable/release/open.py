"""Open a release folder."""

from __future__ import annotations

import os
from pathlib import Path

from deniable.engines import Engine
from deniable.release.folder import read_manifest
from deniable.release.release import Release


def open_release(path: str | os.PathLike[str], *, engine: str | Engine = "local") -> Release:
    """The release in a folder; its rows are read when they are needed.

    Args:
        path: the folder.
        engine: what reads and counts the rows: a name, or an object.

    >>> import pyarrow as pa, tempfile
    >>> import deniable as dn
    >>> table = pa.table({"disease": ["flu", "cold", "hiv"] * 100})
    >>> with tempfile.TemporaryDirectory() as home:
    ...     _ = dn.publish(table, sensitive="disease", privacy="1/2", mechanism="uniform", out=f"{home}/release")
    ...     dn.open_release(f"{home}/release")
    <Release of 300 rows, disease by uniform>
    """
    folder = Path(path)
    return Release(read_manifest(folder), folder=folder, engine=engine)
