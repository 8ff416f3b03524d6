"""A worker's piece follows from its batch, the number of its first row and what was seen before: in any order, and in
any process."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.channels import Channel, Replace
from deniable.core.errors import TableError
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, PlannedPart
from deniable.tables.base import Job, PartJob
from deniable.tables.dataset import LocalEngine
from deniable.tables.keys import Keystream, Secret
from deniable.tables.worker import Piece, Worker, added, published_schema

N = 300
KEYED: dict[str, Any] = {"keys": Keystream(Secret.from_key(bytes(range(32))), "worker test")}


def people() -> pa.Table:
    rng = np.random.default_rng(0)
    disease = pa.array(rng.choice(list("abcd"), N), mask=rng.random(N) < 0.1)
    age = pa.array(rng.integers(17, 91, N), mask=rng.random(N) < 0.1)
    sex = pa.array(rng.choice(["F", "M"], N)).dictionary_encode()
    return pa.table({"id": np.arange(N), "sex": sex, "disease": disease, "job": rng.choice(list("xyz"), N), "age": age})


TABLE = people()
DATASET = LocalEngine().open(TABLE)


# -- parts -------------------------------------------------------------------------------------------------------------


def part_job(column: str, counts: Sequence[Histogram], scan: Any, found: Any = None, **more: Any) -> PartJob:
    """A part whose cells take these rows, each with coins and replacements of its own."""
    cells = []
    for number, rows in enumerate(counts):
        coins, weights = np.linspace(0.2, 0.6 + 0.1 * number, rows.m), np.arange(1, rows.m + 1)
        cells.append(Cell(rows, Channel.of(rows.domain, 0.4 if more.get("swapped") else coins, weights)))
    part = PlannedPart(columns=(column,), histogram=scan.histogram, cells=tuple(cells), **more)
    return PartJob(part, scan.encoder, N, found)


def one_cell(column: str, **more: Any) -> PartJob:
    scan = DATASET.scan((column,))
    return part_job(column, [scan.histogram], scan, **more)


def two_cells(column: str, missing: str, **more: Any) -> PartJob:
    """A third of the rows of each value in one cell, the rest in another."""
    scan = DATASET.scan((column,), missing)
    third = scan.histogram.counts // 3
    counts = [Histogram(scan.histogram.domain, rows) for rows in (third, scan.histogram.counts - third)]
    return part_job(column, counts, scan, **more)


def number_range(missing: str) -> PartJob:
    scan = DATASET.scan_range("age", Replace(0.5, 17, 90), missing)
    grid = replace(scan.grid, keep=2**31)
    return PartJob(PlannedPart(columns=("age",), grid=grid), scan.encoder.with_range(grid), N)


JOBS = {
    "one channel": lambda: [one_cell("job")],
    "cells that are published, missing exempt": lambda: [two_cells("disease", "exempt", cells_published=True)],
    "cells that are not": lambda: [two_cells("disease", "value")],
    "a range": lambda: [number_range("value")],
    "swapped": lambda: [one_cell("disease", swapped=True)],
    "several parts": lambda: [two_cells("disease", "value"), one_cell("job", swapped=True), number_range("exempt")],
}


def worker_of(name: str, row_id: str | None = None) -> Worker:
    """A worker that has swapped what is to be swapped."""
    job = Job(tuple(JOBS[name]()), ("sex",), row_id=row_id, **KEYED)
    worker = Worker(job, published_schema(TABLE.schema, job))
    for part in worker.swaps:
        part.swap([part.replaced(job, batch_of(worker, 0, N), 0)])
    return worker


def batch_of(worker: Worker, first: int, last: int) -> pa.RecordBatch:
    rows = TABLE.select(worker.job.columns).slice(first, last - first).combine_chunks()
    return rows.to_batches()[0] if len(rows) else pa.RecordBatch.from_pylist([], schema=rows.schema)


def seen_before(worker: Worker, first: int) -> list[Any]:
    counts = [part.counts(batch_of(worker, 0, first)) for part in worker.parts]
    return added(worker.nothing_seen(), counts)


def piece(worker: Worker, first: int, last: int) -> Piece:
    batch = batch_of(worker, first, last)
    return worker.perturb(batch, worker.coded(batch, seen_before(worker, first)), first)


def same(one: Piece, other: Piece) -> bool:
    return one[0].equals(other[0]) and np.array_equal(one[1], other[1])


# -- order -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row_id", [None, "id"])
@pytest.mark.parametrize("name", JOBS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_pieces_in_any_order_are_the_rows_of_the_whole(name: str, row_id: str | None, data: st.DataObject) -> None:
    rows, words = piece(worker_of(name, row_id), 0, N)
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, N), max_size=4))), N]
    worker = worker_of(name, row_id)
    for number in [*data.draw(st.permutations(range(len(cuts) - 1))), 0]:
        first, last = cuts[number], cuts[number + 1]
        assert same(piece(worker, first, last), (rows.slice(first, last - first), words[first:last]))


@pytest.mark.parametrize("name", JOBS)
def test_values_are_perturbed_and_counted_once(name: str) -> None:
    worker = worker_of(name)
    rows, _ = piece(worker, 0, N)
    for column in worker.job.sensitive:
        assert rows.column(column).to_pylist() != TABLE[column].to_pylist()
        assert rows.schema.field(column).type == TABLE.schema.field(column).type
    assert rows.column("sex").to_pylist() == TABLE["sex"].to_pylist()
    coded = worker.coded(batch_of(worker, 100, 170), seen_before(worker, 100))
    for part, mine in zip(worker.parts, coded, strict=True):
        told = part.counts(batch_of(worker, 100, 170))
        assert (told is None) == (mine.counts is None) == (part.dealer is None)
        assert told is None or np.array_equal(told, mine.counts)


def test_a_worker_that_has_not_seen_every_row_says_so() -> None:
    worker = worker_of("cells that are not")
    worker.finish(seen_before(worker, N))
    with pytest.raises(TableError, match="changed while it was being read"):
        worker.finish(seen_before(worker, N - 9))
    with pytest.raises(TableError, match="changed while it was being read"):
        worker.finish(added(seen_before(worker, N), seen_before(worker, 9)))


# -- processes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("name", JOBS)
def test_a_worker_that_was_sent_elsewhere_makes_the_same_pieces(name: str, used: bool) -> None:
    expected = [piece(worker_of(name), first, first + 100) for first in (0, 100, 200)]
    worker = worker_of(name)
    if used:
        piece(worker, 50, 250)
    sent = pickle.loads(pickle.dumps(worker))
    for number in (2, 0, 1):
        assert same(piece(sent, 100 * number, 100 * number + 100), expected[number])
        assert same(piece(worker, 100 * number, 100 * number + 100), expected[number])


@pytest.mark.parametrize("name", JOBS)
def test_a_worker_of_one_part_that_was_sent_elsewhere_deals_and_perturbs_alike(name: str) -> None:
    worker = worker_of(name)
    batch, seen = batch_of(worker, 70, 190), seen_before(worker, 70)
    for part, before in zip(worker.parts, seen, strict=True):
        sent = pickle.loads(pickle.dumps(part))
        one, other = part.coded(batch, before), sent.coded(batch, before)
        assert np.array_equal(one.codes, other.codes)
        assert (one.cells is None) == (other.cells is None)
        assert one.cells is None or np.array_equal(one.cells, other.cells)
        pairs = zip(part.perturb(worker.job, batch, one, 70), sent.perturb(worker.job, batch, other, 70), strict=True)
        assert all(mine.equals(theirs) for mine, theirs in pairs)


def test_the_key_of_a_worker_decides_its_draws() -> None:
    """Else all of the above would hold of a worker that draws nothing."""
    job = Job(tuple(JOBS["one channel"]()), ("sex",), keys=Keystream(Secret.from_key(bytes(32)), "worker test"))
    other = Worker(job, published_schema(TABLE.schema, job))
    assert not same(piece(other, 0, N), piece(worker_of("one channel"), 0, N))
