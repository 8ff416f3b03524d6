"""Small releases made with NumPy alone, so that estimation is tested without the engine that perturbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deniable.core.channel import Channel
from deniable.engines.local.counting import LocalCounter


@dataclass(eq=False)
class Fake:
    """A release as estimation sees it, with the truth beside it."""

    table: pa.Table
    manifest: Any
    truth: np.ndarray[Any, Any] = field(repr=False)
    _counter: Any = None

    def counter(self) -> Any:
        self._counter = self._counter or LocalCounter(self.table, self.manifest)
        return self._counter


def perturbed(rng: np.random.Generator, channel: Channel, codes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    kept = rng.random(len(codes)) < channel.coins[codes]
    return np.where(kept, codes, rng.choice(channel.m, len(codes), p=channel.replacing))


def make_release(
    rng: np.random.Generator,
    table: pa.Table,
    truth: np.ndarray[Any, Any],
    domain: list[Any],
    cells: list[tuple[Channel, list[int]]] | None = None,
    cell: np.ndarray[Any, Any] | None = None,
    *,
    marginal: bool = True,
    name: str = "disease",
) -> Fake:
    """Perturb ``truth`` (positions in the domain) cell by cell, and publish it beside the public table."""
    if cells is None:
        cells = [(Channel.uniform(domain, gamma=Fraction(4)), list(range(len(domain))))]
    cell = np.zeros(len(truth), int) if cell is None else cell
    published = truth.copy()
    for number, (channel, positions) in enumerate(cells):
        rows = np.flatnonzero(cell == number)
        local = np.searchsorted(positions, truth[rows])
        published[rows] = np.array(positions)[perturbed(rng, channel, local)]
    several = len(cells) > 1
    kind = pa.array(domain).type
    table = table.append_column(name, pa.array([domain[i] for i in published], kind))
    if several:
        table = table.append_column("cell", pa.array(cell))
    q = np.exp(-1.0)
    noise = rng.geometric(1 - q, len(domain)) - rng.geometric(1 - q, len(domain))
    counts = np.bincount(truth, minlength=len(domain)) + noise
    manifest = SimpleNamespace(
        domain=tuple(domain),
        channels=tuple(channel for channel, _ in cells),
        cell_positions=tuple(np.array(positions) for _, positions in cells),
        cells_published=several,
        sensitive_columns=(name,),
        public_columns=tuple(c for c in table.column_names if c not in (name, "cell")),
        rows=len(truth),
        marginal=SimpleNamespace(counts=tuple(counts.tolist()), epsilon=1.0, variance=2 * q / (1 - q) ** 2)
        if marginal
        else None,
    )
    return Fake(table, manifest, truth)


def patients(rng: np.random.Generator, n: int) -> tuple[pa.Table, np.ndarray[Any, Any], list[str]]:
    """People with a sex, an age, a town (some missing) and a disease that depends on sex and age."""
    domain = ["asthma", "cancer", "flu", "hiv", "ulcer"]
    sex, age = rng.integers(0, 2, n), rng.integers(18, 90, n)
    town = rng.choice(["Aarau", "Basel", "Chur", None], n, p=[0.5, 0.3, 0.1, 0.1])
    weights = np.array([[5, 1, 6, 2, 3], [3, 4, 5, 1, 4]], float)
    share = weights / weights.sum(1, keepdims=True)
    truth = np.array((rng.random(n)[:, None] > share[sex].cumsum(1)).sum(1))
    truth = np.where((age > 60) & (rng.random(n) < 0.3), 1, truth)
    income = np.where(rng.random(n) < 0.05, np.nan, np.round(rng.gamma(4, 1000, n) + 500 * truth, 2))
    table = pa.table(
        {
            "sex": pa.array(np.array(["F", "M"])[sex]),
            "age": pa.array(age, pa.int16()),
            "town": pa.array(town.tolist()),
            "income": pa.array(income, from_pandas=True),
        }
    )
    return table, truth, domain


@pytest.fixture
def new_release() -> Callable[..., Fake]:
    return make_release


@pytest.fixture
def new_patients() -> Callable[..., Any]:
    return patients


@pytest.fixture(scope="session")
def release() -> Fake:
    """6,000 patients, uniform perturbation, with a noisy histogram."""
    rng = np.random.default_rng(7)
    table, truth, domain = patients(rng, 6000)
    return make_release(rng, table, truth, domain)


@pytest.fixture(scope="session")
def celled() -> Fake:
    """6,000 patients in two published cells with different channels; 'flu' lives in both."""
    rng = np.random.default_rng(8)
    table, truth, domain = patients(rng, 6000)
    cells = [
        (Channel.of(["asthma", "flu", "hiv"], [0.5, 0.4, 0.6], [0.3, 0.5, 0.2]), [0, 2, 3]),
        (Channel.uniform(["cancer", "flu", "ulcer"], gamma=Fraction(5)), [1, 2, 4]),
    ]
    cell = np.where(np.isin(truth, [0, 3]), 0, np.where(np.isin(truth, [1, 4]), 1, rng.integers(0, 2, len(truth))))
    return make_release(rng, table, truth, domain, cells, cell)
