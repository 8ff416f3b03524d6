"""What an engine does: execute a plan over rows. Every mechanism runs on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from deniable.core.errors import InternalError
from deniable.core.histogram import Counts, Histogram
from deniable.core.plan import Plan
from deniable.core.replace import NumberRange
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
class PartJob:
    """Columns that are perturbed together, independently of all other parts, with draws of their own.

    Attributes:
        columns: one column, or several that are compounded into one.
        encoding: the engine's own; how values become codes.
        rows: of the whole table.
        plan: the channels; None for a range of numbers.
        range: the range, for numbers that are replaced within one.
        swapped: whether replaced values are permuted among themselves instead of drawn.
        strata: the engine's own; how public columns become the cell of a row. None: rows are dealt to cells by chance.
    """

    columns: tuple[str, ...]
    encoding: Any
    rows: int
    plan: Plan | None = None
    range: NumberRange | None = None
    swapped: bool = False
    strata: Any = None

    @property
    def cells_published(self) -> bool:
        return self.plan is not None and self.plan.cells_published

    @property
    def thresholds(self) -> Counts:
        """The coins of its (first) channel, as integers."""
        if self.plan is not None:
            return self.plan.cells[0].channel.keep
        assert self.range is not None
        return np.array([self.range.keep], dtype=np.int64)


@dataclass(frozen=True)
class Job:
    """Parts and how to execute them. Threads and batch size never change the result."""

    parts: tuple[PartJob, ...]
    public: tuple[str, ...]
    secret: Secret
    name: str
    row_id: str | None = None
    shuffle: bool = True
    threads: int = 1
    batch_rows: int = 2**17
    progress: Progress = field(default=no_progress)

    def __post_init__(self) -> None:
        if len(self.parts) > 1 and self.cells_published:
            raise InternalError("only a release of one part can publish the cells of its rows")

    @property
    def sensitive(self) -> tuple[str, ...]:
        return tuple(column for part in self.parts for column in part.columns)

    @property
    def rows(self) -> int:
        return self.parts[0].rows

    @property
    def cells_published(self) -> bool:
        return any(part.cells_published for part in self.parts)


class Engine(Protocol):
    """Scans a table, and executes plans over it."""

    def scan(self, sensitive: tuple[str, ...], missing: str, domain: Any, progress: Progress) -> Scan: ...

    def execute(self, job: Job) -> Iterator[Any]: ...
