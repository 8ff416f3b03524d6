"""Counts of items and of pairs: without bias, and in their intervals as often as these say."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.mechanisms import Items

DRAWS, N = 120, 1_500


@pytest.mark.long
def test_items_and_pairs_are_unbiased_and_covered():
    rng = np.random.default_rng(4)
    held = rng.random((N, 6)) < [0.5, 0.3, 0.2, 0.1, 0.05, 0.02]
    held[:, 3] |= held[:, 4]
    lists = [[f"i{place}" for place in np.flatnonzero(row)[:3]] for row in held]
    table = pa.table({"d": lists})
    truth = {
        (f"i{one}", f"i{other}"): sum(f"i{one}" in items and f"i{other}" in items for items in lists)
        for one in range(6)
        for other in range(one, 6)
    }
    errors, inside, spread = [], [], []
    for draw in range(DRAWS):
        release = dn.publish(
            table,
            sensitive="d",
            mechanism=Items(budget=6, most=3),
            key=draw.to_bytes(32, "big"),
            domain=[f"i{i}" for i in range(6)],
        )
        rows = [(row["item"], row["item"], row) for row in release.items().to_pylist()]
        rows += [(row["item"], row["other"], row) for row in release.items(pairs=True).to_pylist()]
        errors.append([row["value"] - truth[one, other] for one, other, row in rows])
        inside.append([row["value_low"] <= truth[one, other] <= row["value_high"] for one, other, row in rows])
        spread.append([row["stderr"] for _, _, row in rows])
    errors, spread = np.array(errors), np.array(spread)
    assert np.abs(errors.mean(0) / (errors.std(0) / np.sqrt(DRAWS))).max() < 6
    assert np.abs(errors.std(0) / spread.mean(0) - 1).max() < 0.35  # six standard errors of a standard deviation
    assert abs((errors.std(0) / spread.mean(0)).mean() - 1) < 0.08
    assert np.mean(inside) > 0.93
