"""Where a release goes, and in which shape."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deniable.core.about import About
from deniable.engines import Engine
from deniable.release.signing_key import Signer


@dataclass(frozen=True)
class Destination:
    """What ``publish`` was told about the release itself.

    Attributes:
        engine: that writes it.
        out: the folder; None: it stays in memory.
        format: of the published table.
        overwrite: whether a release that is there is replaced.
        inputs: files that must not be written over.
        signer: who signs it, if anyone.
        about: what its README says of it.
    """

    engine: Engine
    out: Path | None
    format: str
    overwrite: bool
    inputs: tuple[str, ...]
    signer: Signer | None
    about: About
