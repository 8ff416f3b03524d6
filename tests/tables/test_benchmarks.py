"""The benchmarks of this room call what it has: a figure that nobody can measure again is no figure."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def perturb(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("perturb")


def test_what_perturbing_costs_is_measured_against_the_keystream(perturb):
    measured = perturb.rows(n=20_000)
    assert measured[0]["what"] == "keystream alone"
    assert measured[0]["ratio"] == 1
    assert all(row["processor"] >= 0 for row in measured)
