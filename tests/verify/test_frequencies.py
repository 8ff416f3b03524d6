"""Frequencies by the rows themselves: as near to the true ones as is said, and of use where rows are many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable_verify.counts import counts_by_rows, frequencies_check

VALUES = list("abcdefgh")


def published(mechanism: str, key: int, rows: int = 20_000, **options: object) -> tuple[np.ndarray, np.ndarray, Any]:
    truth = np.random.default_rng(key).choice(8, rows, p=np.arange(8, 0, -1) / 36)
    table = pa.table({"job": np.array(VALUES)[truth]})
    how = {"privacy": dn.Privacy(rho2="1/2"), "mechanism": mechanism, "marginals": False, "key": bytes([key]) * 32}
    release = dn.publish(table, sensitive="job", **{**how, **options})
    shown = np.array([release.table["job"].to_pylist().count(value) for value in VALUES], np.float64)
    return np.bincount(truth, minlength=8), shown, release.manifest.to_dict()["parts"][0]


@pytest.mark.parametrize("mechanism", ["uniform", "designed", "identity", "fine-grain"])
def test_counts_lie_within_what_is_said_of_them(mechanism: str) -> None:
    """Of no release are they off by more, nor by so little that the bound would be of no use."""
    errors = []
    for key in range(10):
        truth, shown, part = published(mechanism, key)
        counts, slack = counts_by_rows(part, shown)
        assert np.abs(counts - truth).max() < slack < 3_000
        errors.append(np.abs(counts - truth).max() / slack)
    assert 0.05 < max(errors) < 0.6


def test_rows_tell_nothing_where_they_are_few_or_nothing_is_kept() -> None:
    stated = {"rows": 40, "guarantee": {"adversary": "frequency"}, "privacy": None}
    _, shown, part = published("designed", 1, rows=40)
    assert frequencies_check(part, shown, stated) == []
    _, shown, part = published("redraw", 1)
    assert frequencies_check(part, shown, stated) == []


def test_what_verify_says_of_them(tmp_path: Path) -> None:
    table = pa.table({"job": VALUES * 2_000})
    how = {"sensitive": "job", "privacy": dn.Privacy(rho2="1/2"), "mechanism": "designed", "key": bytes(32)}
    for histogram in (True, False):
        dn.publish(table, marginals=histogram, out=tmp_path / str(histogram), **how)
        said = [check for check in dn.verify(tmp_path / str(histogram)).checks if check.what == "published frequencies"]
        assert len(said) == 1 - histogram
        assert all("known to" in check.detail for check in said)
