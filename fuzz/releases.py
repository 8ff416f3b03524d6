"""Small releases of every mechanism, to be mutated."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import deniable as dn
from deniable import mechanisms

ROWS = 1_200
PRIVACY = dn.Privacy(rho1="1/4", rho2="1/3")
ANY_PRIOR = dn.Privacy(rho1="1/4", rho2="1/3", adversary="any-prior")
PER_VALUE = dn.Privacy(per_value=dict.fromkeys("fgh", ("1/10", "1/4")))
SMALL = dn.Privacy(rho2="1/3", small_sums=dn.SmallSums(error=0.3, below=3, at_least=0.5))

Made = tuple[Any, dn.Privacy | None, dict[str, Any]]
MADE: dict[str, Callable[[], Made]] = {
    "uniform": lambda: (mechanisms.Uniform(), PRIVACY, {}),
    "uniform-csv": lambda: (mechanisms.Uniform(), ANY_PRIOR, {"format": "csv"}),
    "uniform-two": lambda: (mechanisms.Uniform(), dn.Privacy(rho2="1/2"), {"sensitive": ["disease", "sex"]}),
    "uniform-bins": lambda: (
        mechanisms.Uniform(),
        dn.Privacy(rho2="1/2"),
        {"sensitive": "age", "bins": {"age": [18, 40, 60, 90]}},
    ),
    "recoded": lambda: (
        mechanisms.Uniform(),
        dn.Privacy(rho2="1/2"),
        {
            "recode": {"age": [dn.top(80), dn.bands(10)], "born": dn.month, "sex": dn.hierarchy({"F": "f", "M": "m"})},
            "rare": 5,
            "suppress": 5,
        },
    ),
    "small-domain": lambda: (mechanisms.SmallDomain(), PRIVACY, {}),
    "fine-grain": lambda: (mechanisms.FineGrain(), PER_VALUE, {}),
    "designed": lambda: (mechanisms.Designed(), PRIVACY, {}),
    "lineup": lambda: (mechanisms.Lineup(), PRIVACY, {}),
    "lineup-coded": lambda: (mechanisms.Lineup(size=18), dn.Privacy(rho2="1/2"), {"table": many_values()}),
    "items": lambda: (mechanisms.Items(budget=3, most=2, beyond="first"), None, {"table": lists()}),
    "redraw": lambda: (mechanisms.Redraw(), None, {}),
    "decoys": lambda: (mechanisms.Decoys(c=4), None, {}),
    "decoys-sums": lambda: (mechanisms.Decoys(), SMALL, {}),
    "retention": lambda: (
        mechanisms.Retention(
            {
                "disease": dn.Replace(coin=0.6),
                "age": dn.Replace(coin=0.5, low=18, high=89),
                "born": dn.Replace(coin=0.5, low=date(1930, 1, 1), high=date(2006, 12, 31)),
            }
        ),
        None,
        {"sensitive": None},
    ),
    "swapped": lambda: (
        mechanisms.Retention({"disease": dn.Replace(coin=0.5, replacing="swapping")}),
        None,
        {"sensitive": None},
    ),
}


def people(rows: int = ROWS) -> pa.Table:
    """A made-up table with a column of every common type."""
    draw = np.random.default_rng(0)
    age = draw.integers(18, 90, rows)
    return pa.table(
        {
            "sex": draw.choice(["F", "M"], rows),
            "age": age,
            "born": pa.array(np.array("2024", "datetime64[D]") - age * 365 - draw.integers(0, 365, rows)),
            "disease": draw.choice(list("abcdefgh"), rows, p=np.arange(8, 0, -1) / 36),
        }
    )


def many_values(rows: int = ROWS) -> pa.Table:
    """The same people with forty diseases: enough for line-ups that are named by codes."""
    draw = np.random.default_rng(1)
    diseases = np.array([*"abcdefgh", *(f"disease {number}" for number in range(32))])
    return people(rows).set_column(3, "disease", pa.array(draw.choice(diseases, rows)))


def lists(rows: int = ROWS) -> pa.Table:
    """The same people with up to three diseases each."""
    draw = np.random.default_rng(2)
    chosen = [draw.choice(list("abcdefgh"), draw.integers(0, 4), replace=False).tolist() for _ in range(rows)]
    return people(rows).set_column(3, "disease", pa.array(chosen, pa.list_(pa.string())))


def make(home: Path) -> dict[str, Path]:
    """Every release in a folder of its own, the same on every run."""
    folders = {}
    for name, made in MADE.items():
        mechanism, privacy, options = made()
        folders[name] = home / name
        chosen = {"table": people(), "sensitive": "disease", **options}
        if privacy is not None and (privacy.adversary == "any-prior" or privacy.small_sums is not None):
            chosen["domain"] = sorted(set(people()["disease"].to_pylist()))
        dn.publish(privacy=privacy, mechanism=mechanism, key=bytes(range(32)), out=folders[name], **chosen)
    return folders
