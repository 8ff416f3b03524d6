"""Counting the rows of a release by tasks, each on some row groups of its files.

A tally adds up: tasks count their own rows, coded by the values of the whole table, and their counts are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.arrays import Floats, Ints
from deniable.core.errors import QuestionError
from deniable.core.manifest import Manifest
from deniable.core.tally import Block, CodedRows, CodeMask, Derived, Moments
from deniable.engines.batch.counting import CodeCounter
from deniable.engines.local.counter import local_counter
from deniable.engines.local.stored import StoredRows
from deniable.engines.spark.tasks import Batches, each_partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_ROWS = 2**20
MOST_ENTRIES = 2**28  # of a tally, on this machine


@dataclass(frozen=True)
class Counting:
    """What a task counts with.

    Attributes:
        pieces: the rows of each task.
        manifest: of the release.
        derived: columns that are computed from others.
        values: the distinct values of columns in the whole table.
    """

    pieces: tuple[StoredRows, ...]
    manifest: Manifest
    derived: tuple[Derived, ...]
    values: Mapping[str, pa.Array]

    def counter(self, task: int) -> CodeCounter:
        """A counter of a task's rows, by codes of the whole table where its values are known."""
        own = local_counter(self.pieces[task], self.manifest).with_columns(self.derived)
        return own.under(self.values)


class SparkCounter:
    """Counts rows that are in files which every executor can read."""

    def __init__(
        self, session: SparkSession, stored: StoredRows, manifest: Manifest, derived: tuple[Derived, ...] = ()
    ) -> None:
        self._session = session
        self._counting = Counting(tuple(stored.cut(TASK_ROWS)), manifest, derived, {})
        self._stored, self._values = stored, dict[str, pa.Array]()
        self.rows = stored.rows

    def distinct(self, column: str) -> pa.Array:
        """The distinct values of a column, without missing."""
        self._know([column])
        return self._values[column]

    def tally(
        self,
        groups: Sequence[str],
        masks: Sequence[CodeMask],
        classes: Ints,
        values: Sequence[str] = (),
        *,
        states: bool = False,
    ) -> Iterator[Block]:
        """Rows by group, class and state (see ``core.tally.Counter``)."""
        columns = [*groups, *(column for column, _ in masks), *values]
        work = partial(_tallied, list(groups), list(masks), classes, list(values), states)
        yield _added(self._on_partitions(columns, work))

    def coded(self, columns: Sequence[str], masks: Sequence[CodeMask], *, states: bool = False) -> CodedRows:
        """Every row's codes, pattern and state, on this machine (see ``core.tally.Counter``)."""
        work = methodcaller("coded", list(columns), list(masks), states=states)
        made = self._on_partitions([*columns, *(column for column, _ in masks)], work)
        arrays = zip(*((one.keys, one.patterns, one.states) for one in made), strict=True)
        return CodedRows(*(np.concatenate(pieces) for pieces in arrays))

    def conjunctions(self, questions: Sequence[Sequence[CodeMask]]) -> Floats:
        """For each conjunction of masks, the rows that satisfy it, by state."""
        conditions = [list(masks) for masks in questions]
        columns = [column for masks in conditions for column, _ in masks]
        counts: Floats = sum(self._on_partitions(columns, methodcaller("conjunctions", conditions)))
        return counts

    def with_columns(self, derived: Sequence[Derived]) -> SparkCounter:
        """A counter that has some more columns."""
        more = SparkCounter(self._session, self._stored, self._counting.manifest, (*self._counting.derived, *derived))
        names = {column.name for column in derived}
        more._values.update({name: values for name, values in self._values.items() if name not in names})
        return more

    def _know(self, columns: Iterable[str]) -> None:
        """Find the distinct values of columns that are not known yet."""
        wanted = [name for name in dict.fromkeys(columns) if name not in self._values]
        if not wanted:
            return
        made = self._run(self._counting, partial(_distinct, wanted))
        for name, arrays in zip(wanted, zip(*made, strict=True), strict=True):
            self._values[name] = pc.unique(pa.chunked_array(arrays))

    def _on_partitions(self, columns: Sequence[str], work: Callable[[CodeCounter], Any]) -> list[Any]:
        self._know(columns)
        known = {name: self._values[name] for name in dict.fromkeys(columns)}
        return self._run(replace(self._counting, values=known), work)

    def _run(self, counting: Counting, work: Callable[[CodeCounter], Any]) -> list[Any]:
        tasks = len(counting.pieces)
        frame = self._session.range(0, tasks, 1, tasks)
        return list(each_partition(frame, partial(_counted, counting, work)).values())


def _counted(counting: Counting, work: Callable[[CodeCounter], Any], task: int, batches: Batches) -> Any:
    return work(counting.counter(task))


def _distinct(columns: list[str], counter: CodeCounter) -> list[pa.Array]:
    return [counter.distinct(column) for column in columns]


def _tallied(
    groups: list[str], masks: list[CodeMask], classes: Ints, values: list[str], states: bool, counter: CodeCounter
) -> list[Block]:
    return list(counter.tally(groups, masks, classes, values, states=states))


def _added(tallies: Sequence[Sequence[Block]]) -> Block:
    """Blocks of several tasks as one: groups that occur in several have the sums of their counts."""
    blocks = [block for blocks in tallies for block in blocks if len(block.keys)]
    if not blocks:
        return tallies[0][0]
    keys, place = np.unique(np.concatenate([block.keys for block in blocks]), axis=0, return_inverse=True)
    entries = len(keys) * blocks[0].counts[0].size
    if entries > MOST_ENTRIES:
        raise QuestionError(
            f"The question has {len(keys):,} groups of {blocks[0].counts[0].size:,} counts each, more than can be "
            "answered. Fix: group by fewer columns, or ask about a part of the rows."
        )
    place = place.reshape(-1)
    moments = {
        name: Moments(
            *(
                _summed([getattr(block.moments[name], field) for block in blocks], place, len(keys))
                for field in ("rows", "sums", "squares")
            )
        )
        for name in blocks[0].moments
    }
    return Block(keys, _summed([block.counts for block in blocks], place, len(keys)), moments)


def _summed(arrays: Sequence[Floats], place: Ints, groups: int) -> Floats:
    total = np.zeros((groups, *arrays[0].shape[1:]))
    start = 0
    for array in arrays:
        np.add.at(total, place[start : start + len(array)], array)
        start += len(array)
    return total
