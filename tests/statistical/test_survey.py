"""Weighted estimates from a sample: both standard errors are what they say, over 800 samples and their randomization.

Samples are drawn with probability proportional to size, in two strata, of clusters. Standard errors of 800 draws are
known to 2.5 %; five times that is a false alarm of 6e-7 a cell, and an error that leaves out either draw, or takes rows
of a cluster for independent, is off by more (the last test says so).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.release.release import Release

DRAWS, CLUSTERS, SIZE = 800, 30, 8
TOLERANCE = 5 / np.sqrt(2 * DRAWS)
RNG = np.random.default_rng(2024)


@dataclass
class Population:
    """Clusters of people in two strata; what people of a cluster share makes a sample of clusters less certain."""

    stratum: np.ndarray
    size: np.ndarray  # of a cluster: how likely it is drawn
    age: np.ndarray  # cluster x person
    ill: np.ndarray
    truth: dict[str, float]


@pytest.fixture(scope="module")
def population() -> Population:
    clusters = 600
    stratum = np.repeat([0, 1], clusters // 2)
    level = RNG.normal(0, 6, clusters)
    age = np.clip(np.rint(45 + 8 * stratum + level + RNG.normal(0, 8, (SIZE, clusters))), 18, 90).astype(int).T
    ill = RNG.random((clusters, SIZE)) < 0.2 + (age - 20) / 150
    old = age > 50
    truth = {
        "count": ill.sum(),
        "share": (ill & old).sum() / old.sum(),
        "sum": age[ill].sum(),
        "mean": age[ill].mean(),
    }
    return Population(stratum, RNG.uniform(0.5, 1.5, clusters), age, ill, truth)


@pytest.fixture(scope="module")
def samples(population: Population) -> tuple[pa.Table, list[dict[str, float]]]:
    """All samples as one table, and what each would say if nothing had been perturbed."""
    tables, plain = [], []
    for _ in range(DRAWS):
        drawn, weights = [], []
        for stratum in (0, 1):
            there = np.flatnonzero(population.stratum == stratum)
            chance = population.size[there] / population.size[there].sum()
            taken = RNG.choice(len(there), CLUSTERS // 2, p=chance)
            drawn.append(there[taken])
            weights.append(1 / (CLUSTERS // 2 * chance[taken]))
        rows, w = np.concatenate(drawn), np.repeat(np.concatenate(weights), SIZE)
        age, ill = population.age[rows].ravel(), population.ill[rows].ravel()
        old = age > 50
        tables.append(
            {
                "w": w,
                "stratum": np.repeat(population.stratum[rows], SIZE),
                "cluster": np.repeat(np.arange(CLUSTERS), SIZE),
                "age": age,
                "old": old,
                "ill": np.where(ill, "yes", np.where(age % 2, "no", "unknown")),
            }
        )
        plain.append(
            {
                "count": w[ill].sum(),
                "share": w[ill & old].sum() / w[old].sum(),
                "sum": (w * age)[ill].sum(),
                "mean": (w * age)[ill].sum() / w[ill].sum(),
            }
        )
    return pa.table({name: np.concatenate([table[name] for table in tables]) for name in tables[0]}), plain


def releases(table: pa.Table, mechanism: str) -> Iterator[Release]:
    """Each sample as a release of its own: they are perturbed with one plan."""
    privacy = dn.Privacy(rho1="3/5", rho2="17/20")
    whole = dn.publish(
        table, sensitive="ill", privacy=privacy, mechanism=mechanism, key=bytes(32), shuffle=False, marginals=False
    )
    rows = table.num_rows // DRAWS
    for draw in range(DRAWS):
        yield Release(replace(whole.manifest, rows=rows), table=whole.table.slice(draw * rows, rows).combine_chunks())


QUESTIONS: dict[str, Callable[[dn.Survey], dn.SurveyEstimate]] = {
    "count": lambda survey: survey.count({"ill": "yes"}),
    "share": lambda survey: survey.share({"ill": "yes"}, {"old": True}),
    "sum": lambda survey: survey.sum("age", {"ill": "yes"}),
    "mean": lambda survey: survey.mean("age", {"ill": "yes"}),
}


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["uniform", "designed", "small-domain"])
def test_both_errors_are_what_they_say(
    population: Population, samples: tuple[pa.Table, list[dict[str, float]]], mechanism: str
) -> None:
    table, plain = samples
    asked = [
        {name: ask(release.survey("w", strata="stratum", clusters="cluster")) for name, ask in QUESTIONS.items()}
        for release in releases(table, mechanism)
    ]
    for name, truth in population.truth.items():
        estimates = [answers[name] for answers in asked]
        off = np.array([estimate.value - truth for estimate in estimates])
        moved = np.array([one.value - before[name] for one, before in zip(estimates, plain, strict=True)])
        stderr, randomization, sampling = (
            np.sqrt(np.mean([getattr(one, kind) ** 2 for one in estimates]))
            for kind in ("stderr", "randomization", "sampling")
        )
        assert abs(off.mean()) < 5.5 * off.std() / np.sqrt(DRAWS) + 0.02 * off.std(), name
        assert randomization / moved.std() == pytest.approx(1, abs=TOLERANCE), name
        assert stderr / off.std() == pytest.approx(1, abs=TOLERANCE + 0.03), name  # t quantiles stretch it by 2.5 %
        assert min(randomization, sampling) > 0.3 * stderr, name  # so that either, left out, would show
        covered = np.mean([one.low <= truth <= one.high for one in estimates])
        assert 0.95 - 5 * np.sqrt(0.95 * 0.05 / DRAWS) < covered < 0.95 + 5 * np.sqrt(0.95 * 0.05 / DRAWS), name


@pytest.mark.long
def test_leaving_out_the_clusters_would_show(
    population: Population, samples: tuple[pa.Table, list[dict[str, float]]]
) -> None:
    table, _ = samples
    answers = [release.survey("w").mean("age") for release in releases(table, "uniform")]
    off = np.std([answer.value - population.age.mean() for answer in answers])
    assert np.sqrt(np.mean([answer.stderr**2 for answer in answers])) / off < 1 - TOLERANCE
