"""Small releases made with NumPy alone, so that estimation is tested without the engine that perturbs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deniable.core.channels import Channel
from deniable.core.manifest import Column, Manifest, Randomness
from deniable.core.part import Marginal, Part
from deniable.core.promise import Nothing
from deniable.release.release import Release


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
) -> Release:
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
    part = Part(
        columns=(name,),
        types=(str(kind),),
        missing="value",
        promise=Nothing("a test"),
        domain=tuple(domain),
        channels=tuple(channel for channel, _ in cells),
        cell_positions=tuple(np.array(positions) for _, positions in cells),
        cells_published=several,
        marginal=Marginal(tuple(counts.tolist()), 1.0, 2 * q / (1 - q) ** 2) if marginal else None,
    )
    return Release(manifest_of(table, part), table=table)


def manifest_of(table: pa.Table, part: Part) -> Manifest:
    """The manifest of a table with one sensitive part; what does not matter for estimation is left empty."""
    roles = {**dict.fromkeys(part.columns, "sensitive"), "cell": "cell"}
    return Manifest(
        name="test",
        software={},
        mechanism="test",
        options={},
        rows=table.num_rows,
        columns=tuple(Column(field.name, str(field.type), roles.get(field.name, "public")) for field in table.schema),
        parts=(part,),
        privacy=None,
        guarantee={},
        randomness=Randomness("numpy", None, False, "row number"),
    )


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
def new_release() -> Callable[..., Release]:
    return make_release


@pytest.fixture(scope="session")
def new_manifest() -> Callable[[pa.Table, Part], Manifest]:
    return manifest_of


@pytest.fixture
def new_patients() -> Callable[..., Any]:
    return patients


@pytest.fixture(scope="session")
def release() -> Release:
    """6,000 patients, uniform perturbation, with a noisy histogram."""
    rng = np.random.default_rng(7)
    table, truth, domain = patients(rng, 6000)
    return make_release(rng, table, truth, domain)


@pytest.fixture(scope="session")
def celled() -> Release:
    """6,000 patients in two published cells with different channels; 'flu' lives in both."""
    rng = np.random.default_rng(8)
    table, truth, domain = patients(rng, 6000)
    cells = [
        (Channel.of(["asthma", "flu", "hiv"], [0.5, 0.4, 0.6], [0.3, 0.5, 0.2]), [0, 2, 3]),
        (Channel.uniform(["cancer", "flu", "ulcer"], gamma=Fraction(5)), [1, 2, 4]),
    ]
    cell = np.where(np.isin(truth, [0, 3]), 0, np.where(np.isin(truth, [1, 4]), 1, rng.integers(0, 2, len(truth))))
    return make_release(rng, table, truth, domain, cells, cell)
