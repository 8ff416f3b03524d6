"""What an engine does: execute a plan over rows. Every mechanism runs on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.engines.randomness import Secret

Progress = Callable[[int, int | None, str], None]


def no_progress(done: int, total: int | None, what: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Scan:
    """What one pass over a table tells: all that a mechanism may see, and what the engine needs to come back.

    Attributes:
        histogram: the sensitive column's histogram; missing values are a value of it, or left out if exempt.
        exempt_rows: rows whose sensitive value is missing and exempt.
        warnings: what the owner should know about the table.
        encoding: the engine's own; how values become codes.
    """

    histogram: Histogram
    exempt_rows: int
    warnings: tuple[str, ...]
    encoding: Any

    @property
    def rows(self) -> int:
        return self.histogram.rows + self.exempt_rows


@dataclass(frozen=True)
class Job:
    """A plan and how to execute it. Threads and batch size never change the result."""

    plan: Plan
    scan: Scan
    public: tuple[str, ...]
    sensitive: tuple[str, ...]
    secret: Secret
    name: str
    row_id: str | None = None
    shuffle: bool = True
    threads: int = 1
    batch_rows: int = 2**17
    progress: Progress = field(default=no_progress)


class Engine(Protocol):
    """Scans a table, and executes plans over it."""

    def scan(self, sensitive: tuple[str, ...], missing: str, domain: Any, progress: Progress) -> Scan: ...

    def execute(self, job: Job) -> Iterator[Any]: ...
