"""Strata: a row's cell is a function of its public columns, whatever the batches; missing is a stratum of its own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from deniable.core.errors import TableError
from deniable.engines.batch.dealing import require_all_dealt
from deniable.engines.batch.strata import StrataDealer
from deniable.engines.local.engine import LocalEngine

REGION = ["south", "north", None, "north", "south", None, "north", "south"]
SEX = ["F", "F", "M", "M", "F", "M", "F", "F"]
DISEASE = ["b", "a", "a", "b", "b", None, "a", "a"]


def table(**columns):
    return pa.table({"region": REGION, "sex": SEX, "disease": DISEASE, **columns})


def scanned(rows, columns, missing="value"):
    dataset = LocalEngine().open(rows)
    scan = dataset.scan(("disease",), missing)
    return dataset, scan, dataset.scan_strata(columns, scan.encoder)


def cells_of(strata, dataset, columns, batch_rows=2**17):
    return np.concatenate([strata.cells(batch) for batch in dataset.batches(columns, batch_rows)]).tolist()


def deal(strata, encoder, batches):
    """Deal all batches, and check that they hold every row that was counted."""
    dealer = StrataDealer(strata)
    seen = np.zeros_like(dealer.planned)
    for batch in batches:
        codes = encoder.encode(batch)
        seen = seen + dealer.counts(dealer.deal(batch, codes), codes)
    require_all_dealt(seen, dealer.planned)


def test_strata_are_numbered_by_their_sorted_values_missing_last():
    dataset, scan, strata = scanned(table(), ["region"])
    assert cells_of(strata, dataset, ["region"]) == [1, 0, 2, 0, 1, 2, 0, 1]
    assert scan.histogram.domain == ("a", "b", None)
    assert strata.counts.tolist() == [[2, 1, 0], [1, 2, 0], [1, 0, 1]]
    assert [dict(rows) for rows in strata.histograms(scan.histogram.domain)] == [
        {"a": 2, "b": 1},
        {"a": 1, "b": 2},
        {"a": 1, None: 1},
    ]


def test_combinations_that_no_row_has_are_no_strata():
    dataset, _, strata = scanned(table(), ["region", "sex"])
    # north F, north M, south F, missing M: four of the six combinations
    assert cells_of(strata, dataset, ["region", "sex"]) == [2, 0, 3, 1, 2, 3, 0, 2]
    assert strata.counts.sum(1).tolist() == [2, 1, 3, 2]


@pytest.mark.parametrize("batch_rows", [1, 3, 100])
def test_batches_and_the_order_of_rows_do_not_matter(batch_rows):
    dataset, _, strata = scanned(table(), ["region"])
    assert cells_of(strata, dataset, ["region"], batch_rows) == [1, 0, 2, 0, 1, 2, 0, 1]
    turned = table().take(list(range(7, -1, -1)))
    other, _, again = scanned(turned, ["region"])
    assert cells_of(again, other, ["region"], batch_rows)[::-1] == [1, 0, 2, 0, 1, 2, 0, 1]
    assert np.array_equal(again.counts, strata.counts)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([3, 1, None, 1, 3, None, 1, 3], pa.int16()),
        pa.array([True, False, None, False, True, None, False, True]),
        pa.array([2.5, -0.0, None, 0.0, 2.5, float("nan"), 0.0, 2.5]),
        pa.array(REGION).dictionary_encode(),
        pa.array(["2026-02-01", "2026-01-01", None, "2026-01-01", "2026-02-01", None, "2026-01-01", "2026-02-01"]).cast(
            pa.date32()
        ),
    ],
    ids=["numbers", "truth values", "floats with NaN", "dictionary", "dates"],
)
def test_columns_of_any_plain_type_make_strata(values):
    dataset, _, strata = scanned(table(region=values), ["region"])
    assert cells_of(strata, dataset, ["region"]) == [1, 0, 2, 0, 1, 2, 0, 1]


def test_exempt_rows_are_in_no_histogram_and_pass_the_dealer():
    dataset, scan, strata = scanned(table(), ["region"], "exempt")
    assert strata.counts.tolist() == [[2, 1], [1, 2], [1, 0]]
    deal(strata, scan.encoder, dataset.batches(["region", "disease"], 3))


def test_a_table_that_changed_is_refused():
    _, scan, strata = scanned(table(), ["region"])
    for changed in (
        table(region=["north", *REGION[1:]]),
        table(disease=["a", *DISEASE[1:]]),
        table().slice(1),
        pa.concat_tables([table(), table()]),
        table(region=["west", *REGION[1:]]),
        table(disease=[None, *DISEASE[1:]]),
    ):
        with pytest.raises(TableError, match="changed while"):
            deal(strata, scan.encoder, changed.to_batches())


def test_too_many_strata_are_refused():
    rows = pa.table({"region": np.arange(3000), "disease": [str(i) for i in range(3000)]})
    with pytest.raises(TableError, match=r"3,000 strata of 3,000 sensitive values.*coarser"):
        scanned(rows, ["region"])
