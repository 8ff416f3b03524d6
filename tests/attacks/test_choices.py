"""What the planner chose is in the manifest: whoever sees it must not learn of a row what was promised to stay unknown.

Played by whoever compares manifests: tables that differ, and noisy counts held fast, since a choice that follows from
them alone cannot then differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.part import Marginal
from deniable.publishing import parts

DOMAIN = [f"v{number}" for number in range(8)]
SHOWN = (90, 40, 31, 25, 20, 15, 12, 7)
MOVED = ((0,) * 8, (-6, 6, 0, 0, 0, 0, -3, 3), (5, 0, -5, 4, -4, 3, 0, -3), (-4, -4, -4, -4, 4, 4, 4, 4))


def tables() -> list[pa.Table]:
    """Tables that the same noisy counts can come from."""
    return [table_of([count + rows for count, rows in zip(SHOWN, moved, strict=True)]) for moved in MOVED]


def table_of(counts: list[int]) -> pa.Table:
    values = np.repeat(DOMAIN, counts)
    return pa.table({"v": values, "public": values})


def manifests(among: list[pa.Table], **options: Any) -> list[dict[str, Any]]:
    return [
        dn.publish(table, sensitive="v", key=bytes([number]) * 32, **options).manifest.to_dict()
        for number, table in enumerate(among)
    ]


def test_against_any_prior_the_choice_looks_at_no_row() -> None:
    required = dn.Privacy("1/10", "1/2", adversary="any-prior")
    extremes = [table_of([233, 1, 1, 1, 1, 1, 1, 1]), table_of([1, 1, 1, 1, 1, 1, 1, 233]), table_of([30] * 8)]
    among = [*tables(), *extremes]
    # Beside a public column, which is published as it is, what is measured of which columns does not differ either.
    beside = [table.set_column(1, "public", pa.array(["a", "b"] * (len(table) // 2))) for table in among]
    for some, options in ((among, {"drop": "public"}), (beside, {})):
        made = manifests(some, privacy=required, domain=DOMAIN, **options)
        for one in made:
            one["parts"][0]["learned"].pop("tau")  # from noisy tables
        assert all(one["mechanism"] == made[0]["mechanism"] for one in made)
        assert all(one["parts"] == made[0]["parts"] for one in made)


@pytest.mark.parametrize("rho2", ["9/20", "1/2", "3/4"])
def test_otherwise_it_follows_from_noisy_counts_alone(rho2: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Marginal(SHOWN, 0.5, 7.8)
    monkeypatch.setattr(parts, "noisy_marginal", lambda keys, histogram: shown)
    made = manifests(tables(), privacy=dn.Privacy(rho2=rho2))  # the public column is the values: no row is looked at
    assert all(one["mechanism"] == made[0]["mechanism"] for one in made)


@pytest.mark.parametrize("mechanism", ["uniform", "designed", "small-domain", "lineup"])
def test_expected_errors_follow_from_noisy_counts_alone(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "noisy_marginal", lambda keys, histogram: Marginal(SHOWN, 0.5, 7.8))
    made = manifests(tables(), privacy=dn.Privacy(rho2="3/4"), drop="public", mechanism=mechanism)
    alike = [one for one in made if one["parts"] == made[0]["parts"]]
    assert len(alike) > 1 or mechanism == "small-domain"  # cells are dealt by exact counts: their sizes are published
    assert made[0]["about"]["expected"]
    assert all(one["about"] == made[0]["about"] for one in alike)
