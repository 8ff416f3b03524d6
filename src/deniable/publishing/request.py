"""What a user asked to publish, in the terms that every publisher shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from deniable.core.privacy import Privacy
from deniable.engines.base import Progress, Scan
from deniable.engines.local.binning import BinnedSource
from deniable.engines.local.engine import LocalEngine
from deniable.engines.randomness import Keystream, Secret


@dataclass(frozen=True)
class Request:
    """A table, its columns' roles, and what is required of the release. The attributes are those of ``publish``."""

    engine: LocalEngine
    sensitive: tuple[str, ...]
    public: tuple[str, ...]
    privacy: Privacy | None
    secret: Secret
    name: str
    missing: str
    domain: Any
    shuffle: bool
    marginals: bool | None
    progress: Progress

    @property
    def said(self) -> tuple[str, ...]:
        """What reading the table itself gives away, for the release to say."""
        source = self.engine.source
        return tuple(source.said) if isinstance(source, BinnedSource) else ()

    @cached_property
    def keys(self) -> Keystream:
        """The randomness of everything that is not drawn row by row."""
        return Keystream(self.secret, "release", self.name, *self.sensitive)

    def scan(self, columns: tuple[str, ...], domain: Any = None) -> Scan:
        """Count some columns as one."""
        return self.engine.scan(columns, self.missing, domain, self.progress)
