"""THESIS 6.2: several sensitive columns, between one compound column and independent ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import deniable as dn
from deniable.core.privacy import Privacy
from reproduction.items import Item, per_cent

Floats = npt.NDArray[np.float64]
PAIR = ("occupation", "education")
BOTH = Privacy("1/13", "1/6", adversary="any-prior")
WOMEN, KEYS = 1, 3
LEAST = 0.001  # of the rows, of pairs that are asked about


def pair_errors(release: Any, truth: Floats, place: Callable[[int, int], Mapping[str, Any]]) -> tuple[float, float]:
    """Mean relative error of counts of pairs, and of the same pairs of women alone; ``place`` asks for a pair."""
    errors = []
    for where, true in (({}, truth.sum(2)), ({"gender": WOMEN}, truth[:, :, 1])):
        asked = np.argwhere(true >= LEAST * truth.sum())
        found = [release.count({**where, **place(a, b)}).value for a, b in asked.tolist()]
        true_counts = true[tuple(asked.T)]
        errors.append(float(np.mean(np.abs(np.array(found) - true_counts) / true_counts)))
    return errors[0], errors[1]


def two_columns(census: pa.Table) -> Item:
    """Pairs of two sensitive columns by every way of treating them."""
    table = census.select(["age", "gender", "marital", *PAIR])
    (first, one), (second, other) = (np.unique(table[name].to_numpy(), return_inverse=True) for name in PAIR)
    women = (table["gender"].to_numpy() == WOMEN).astype(np.int64)
    truth = np.zeros((len(first), len(second), 2))
    np.add.at(truth, (one, other, women), 1)
    domain = {PAIR[0]: first.tolist(), PAIR[1]: second.tolist()}
    coded = table.drop_columns(list(PAIR)).append_column("pair", pa.array(one * len(second) + other))
    pairs = {"sensitive": "pair", "domain": list(range(len(first) * len(second))), "privacy": BOTH}
    both = {"sensitive": list(PAIR), "domain": domain, "privacy": BOTH}
    half = {name: dn.Replace(privacy=Privacy("1/13", "1/9", adversary="any-prior")) for name in PAIR}

    def by_columns(a: int, b: int) -> dict[str, Any]:
        return {PAIR[0]: int(first[a]), PAIR[1]: int(second[b])}

    def by_pair(a: int, b: int) -> dict[str, Any]:
        return {"pair": a * len(second) + b}

    ways: dict[str, tuple[Any, dict[str, Any], Callable[[int, int], Mapping[str, Any]]]] = {
        "one compound column, uniform": (table, {**both, "mechanism": "uniform"}, by_columns),
        "line-ups over pairs": (coded, {**pairs, "mechanism": "lineup"}, by_pair),
        "each column by itself": (table, {"mechanism": dn.mechanisms.Retention(half), "domain": domain}, by_columns),
        "learned": (table, {**both, "mechanism": "synthetic"}, by_columns),
    }
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (given, how, place) in ways.items():
            drawn = [pair_errors(dn.publish(given, **how, seed=seed), truth, place) for seed in range(1, KEYS + 1)]
            rows.append((name, *(per_cent(float(np.mean(column))) for column in zip(*drawn, strict=True))))
    alone = truth.sum((1, 2))[:, None] * truth.sum((0, 2))[None, :] / truth.sum()
    asked = truth.sum(2) >= LEAST * truth.sum()
    free = float(np.mean(np.abs(alone - truth.sum(2))[asked] / truth.sum(2)[asked]))
    rows.append(("independence of the exact columns, no release needed", per_cent(free), ""))
    return Item(
        "Several sensitive columns (THESIS 6.2)",
        f"{' and '.join(PAIR)} of OCC-100k, any prior, 1/13 to at most 1/6 for the pair (each by itself: to at most "
        f"1/9, so that both together stay below): mean relative error of pairs of at least {per_cent(LEAST)} of the "
        f"rows, of everybody and of women; {KEYS} keys.",
        ("columns are", "pairs", "pairs of women"),
        tuple(rows),
        None,
        "The thesis fears that perturbing a compound column destroys what goes with what, and has no other way. "
        "Compared are the ways that there are: what a model of pairs keeps, whose noise is in tables of counts, beside "
        "what rows keep.",
        draws=KEYS,
    )
