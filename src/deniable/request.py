"""What a user asked to publish, for publishers that are no plan of channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deniable.core.privacy import Privacy
from deniable.engines.base import Progress
from deniable.engines.local.engine import LocalEngine
from deniable.engines.randomness import Secret


@dataclass(frozen=True)
class Request:
    """What a user asked for, in the terms that every publisher shares."""

    engine: LocalEngine
    sensitive: tuple[str, ...]
    public: tuple[str, ...]
    privacy: Privacy | None
    secret: Secret
    name: str
    missing: str
    domain: Any
    shuffle: bool
    progress: Progress
