"""Honest releases of every mechanism, twenty keys each, written to disk: verify has nothing against any of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable import mechanisms
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.registry import MECHANISMS

KEYS = 20
ROWS = 600
FREQUENT = dn.Privacy(rho1="1/4", rho2="1/2")
ANY_PRIOR = dn.Privacy(rho1="1/4", rho2="1/2", adversary="any-prior")
PER_VALUE = dn.Privacy(per_value={"f": ("1/10", "1/4"), "e": ("1/8", "1/3")})


def table() -> pa.Table:
    rng = np.random.default_rng(9)
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], ROWS),
            "age": rng.integers(18, 90, ROWS),
            "job": rng.choice(list("abcdef"), ROWS, p=[0.25, 0.2, 0.2, 0.15, 0.12, 0.08]),
            "ill": rng.choice(["no", "yes", None], ROWS, p=[0.6, 0.3, 0.1]),
        }
    )


def replaced(**columns: dn.Replace) -> dict[str, Any]:
    return {"mechanism": mechanisms.Retention(columns)}


def named(mechanism: str | Mechanism, privacy: dn.Privacy | None = FREQUENT, **more: Any) -> dict[str, Any]:
    return {"mechanism": mechanism, "sensitive": "job", "privacy": privacy, **more}


AGES = dn.Replace(coin=0.5, low=18, high=90)
RELEASES: dict[str, Callable[[], dict[str, Any]]] = {
    "uniform": lambda: named("uniform"),
    "uniform, any prior": lambda: named("uniform", ANY_PRIOR, domain=list("abcdef")),
    "uniform, no histogram, in order": lambda: named("uniform", marginals=False, shuffle=False),
    "uniform, as csv": lambda: named("uniform", format="csv"),
    "uniform, two columns": lambda: named("uniform", sensitive=["job", "ill"]),
    "uniform, missing exempt": lambda: named("uniform", dn.Privacy(rho2="4/5"), sensitive="ill", missing="exempt"),
    "uniform, in intervals": lambda: named("uniform", sensitive="age", bins={"age": [18, 30, 50, 70, 90]}),
    "small-domain": lambda: named("small-domain"),
    "small-domain, cells of exempt values": lambda: named(
        mechanisms.SmallDomain(cost="variance", channels="fine-grain"), dn.Privacy(rho2="9/10", exempt=list("abcd"))
    ),
    "fine-grain": lambda: named("fine-grain", PER_VALUE),
    "designed": lambda: named("designed"),
    "designed, per value": lambda: named("designed", PER_VALUE),
    "identity": lambda: named("identity"),
    "lineup": lambda: named("lineup"),
    "lineup, any prior": lambda: named("lineup", ANY_PRIOR, domain=list("abcdef")),
    "redraw": lambda: named("redraw"),
    "pram": lambda: named("pram"),
    "pram, two columns without a requirement": lambda: named("pram:coin=0.2", None, sensitive=["job", "ill"]),
    "redraw, two columns without a requirement": lambda: named("redraw", None, sensitive=["job", "ill"]),
    "retention, uniform and a range": lambda: replaced(job=dn.Replace(coin=0.4), age=AGES),
    "retention, identity": lambda: replaced(job=dn.Replace(coin=0.4, replacing="identity")),
    "retention, swapping": lambda: replaced(job=dn.Replace(privacy=FREQUENT, replacing="swapping")),
    "items": lambda: named("items:separator=;,most=1", ANY_PRIOR, domain=list("abcdef")),
    "items, within a budget, as csv": lambda: named("items:separator=;,budget=3", None, format="csv"),
    "decoys": lambda: named("decoys:c=3", None),
    "decoys, few kinds of groups": lambda: named("decoys:c=3,grouping=balanced", None),
    "decoys, grouped as Anatomy does": lambda: named("decoys:c=3,grouping=anatomy,leftovers=drop", None),
    "anatomy": lambda: named("anatomy:l=3"),
    "generalize": lambda: named("generalize:l=2"),
    "optrr": lambda: named("optrr:generations=20"),
    "perturbed-generalization": lambda: named("perturbed-generalization:k=4"),
}  # fmt: skip


def test_every_mechanism_that_publishes_rows_is_here() -> None:
    assert set(MECHANISMS) - {"laplace"} <= {name.partition(",")[0] for name in RELEASES}


def published_and_verified(name: str, home: Path, keys: range) -> None:
    rows = table()
    for key in keys:
        out = home / str(key)
        dn.publish(rows, key=bytes([key]) * 32, out=out, **{"mechanism": "uniform", **RELEASES[name]()})
        assert dn.verify(out).holds


@pytest.mark.parametrize("name", RELEASES)
def test_honest_releases_pass(name: str, tmp_path: Path) -> None:
    published_and_verified(name, tmp_path, range(1))


@pytest.mark.parametrize("mechanism", ["uniform", "lineup", "anatomy:l=2", "generalize:k=2,l=2", "decoys:c=2"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "+02:00"])
def test_honest_releases_of_times_with_a_zone_pass(mechanism: str, zone: str, tmp_path: Path) -> None:
    """A manifest keeps offsets, not zones: the README of groups was another one, and line-ups had no type to read."""
    times = pa.array([datetime.datetime(2026, 1, 1 + row % 5) for row in range(400)], pa.timestamp("us", zone))
    rows = pa.table({"sex": ["F", "M"] * 200, "seen": times})
    privacy = None if mechanism.startswith("decoys") else dn.Privacy(rho2="3/4")
    options = {"privacy": privacy, "mechanism": mechanism, "key": bytes(range(32))}
    dn.publish(rows, sensitive="seen", out=tmp_path / "release", **options)
    assert dn.verify(tmp_path / "release").holds
    counted = dn.open_release(tmp_path / "release").count(where={"seen": times[0].as_py()})
    assert counted.low <= 80 <= counted.high


@pytest.mark.long
@pytest.mark.parametrize("name", RELEASES)
def test_twenty_honest_releases_of_each_pass(name: str, tmp_path: Path) -> None:
    published_and_verified(name, tmp_path, range(1, KEYS))
