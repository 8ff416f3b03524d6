"""How large the house may be, and how far an operation may walk in it: budgets to decide by
(docs/decisions/rooms.md)."""

from __future__ import annotations

import pytest

from benchmarks import house

# room -> files, lines of code
SIZES = {"core": (170, 29_150), "package": (276, 49_830), "verifier": (25, 3_510)}
# operation -> functions, files, passes over the table
WALKS = {
    "publish by a named mechanism": house.Walk(268, 41, 2),
    "publish, mechanism left out": house.Walk(285, 43, 3),
    "publish to a folder": house.Walk(393, 50, 2),
    "count": house.Walk(104, 20, 0),
    "sql": house.Walk(194, 38, 0),
    "verify": house.Walk(235, 27, 0),
}


@pytest.fixture(scope="module")
def walks() -> dict[str, house.Walk]:
    return house.walks()


@pytest.fixture(scope="module")
def sizes() -> dict[str, tuple[int, int]]:
    return house.sizes()


@pytest.mark.parametrize("room", SIZES)
def test_the_house_stays_within_its_size(sizes: dict[str, tuple[int, int]], room: str) -> None:
    files, lines = sizes[room]
    assert files <= SIZES[room][0]
    assert lines <= SIZES[room][1]


@pytest.mark.parametrize("operation", WALKS)
def test_an_operation_walks_no_further_than_its_budget(walks: dict[str, house.Walk], operation: str) -> None:
    walk, budget = walks[operation], WALKS[operation]
    assert walk.functions <= budget.functions
    assert walk.files <= budget.files
    assert walk.passes <= budget.passes


def test_walks_and_passes_are_counted() -> None:
    """Entering one more function, one more file or the table once more is seen."""
    import pyarrow as pa

    from deniable.core.values import percent
    from deniable.tables import engine_named

    dataset = engine_named("local").open(pa.table({"a": range(10)}))

    def once() -> None:
        percent(0.5)
        list(dataset.batches(["a"]))

    def twice() -> None:
        once()
        list(dataset.batches(["a"], batch_rows=3))

    assert house.walked(once).passes == 1
    assert house.walked(twice).passes == 2
    assert house.walked(lambda: percent(0.5)) == house.Walk(1, 1, 0)
