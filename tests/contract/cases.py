"""What the contract suites publish: a table, and every mechanism with the options that need saying."""

import numpy as np
import pyarrow as pa

import deniable as dn
from deniable import mechanisms

KEY = bytes(range(32))
N = 5_000  # several batches in each partition
VALUES = np.array(list("abcdefghij"))
PRIVACY = dn.Privacy(rho1="1/4", rho2="1/3")
ANY_PRIOR = dn.Privacy(rho1="1/4", rho2="1/3", adversary="any-prior")
PER_VALUE = dn.Privacy(per_value=dict.fromkeys("fghij", ("1/10", "1/4")))
# The values that are declared; for large line-ups many that no row has.
DECLARED = {
    "lineup, any prior": list(VALUES),
    "lineup, codes": [*VALUES, *(f"z{number}" for number in range(30))],
    "synthetic": list(VALUES),
}

RETENTION = mechanisms.Retention(
    {"disease": dn.Replace(coin=0.6), "age": dn.Replace(coin=0.5, low=18, high=89), "sex": dn.Replace(coin=0.9)}
)
SWAPPED = mechanisms.Retention({"disease": dn.Replace(coin=0.5, replacing="swapping")})

MADE = {
    "uniform": lambda: (mechanisms.Uniform(), PRIVACY),
    "small-domain": lambda: (mechanisms.SmallDomain(), PRIVACY),
    "small-domain, fine-grain": lambda: (mechanisms.SmallDomain(channels="fine-grain"), PRIVACY),
    "fine-grain": lambda: (mechanisms.FineGrain(), PER_VALUE),
    "identity": lambda: (mechanisms.Identity(), PRIVACY),
    "designed": lambda: (mechanisms.Designed(), PRIVACY),
    "lineup": lambda: (mechanisms.Lineup(), PRIVACY),
    "lineup, any prior": lambda: (mechanisms.Lineup(), ANY_PRIOR),
    "lineup, codes": lambda: (mechanisms.Lineup(size=20), ANY_PRIOR),
    "pram": lambda: (mechanisms.Pram(), None),
    "pram, fitted": lambda: (mechanisms.Pram(), PRIVACY),
    "redraw": lambda: (mechanisms.Redraw(), None),
    "decoys": lambda: (mechanisms.Decoys(c=4), None),
    "decoys, rows left out": lambda: (mechanisms.Decoys(c=3, leftovers="drop"), None),
    "synthetic": lambda: (mechanisms.Synthetic(), PRIVACY),
    "synthetic, values that are counted": lambda: (mechanisms.Synthetic(), dn.Privacy(epsilon=4)),
    "synthetic, the table's list": lambda: (mechanisms.Synthetic(listing="table"), dn.Privacy(epsilon=4)),
    "retention": lambda: (RETENTION, None),
    "retention, swapped": lambda: (SWAPPED, None),
}


def people(rows):
    rng = np.random.default_rng(0)
    disease = rng.choice(VALUES, rows, p=np.arange(10, 0, -1) / 55)
    sex = np.where(rng.random(rows) < np.where(disease < "d", 0.7, 0.4), "F", "M")
    return pa.table({"sex": sex, "age": rng.integers(18, 90, rows), "disease": disease})


def publish(table, name, engine, **options):
    """A release of the table by a mechanism of this list."""
    mechanism, privacy = MADE[name]()
    sensitive = {} if mechanism.name == "retention" else {"sensitive": "disease"}
    declared = {"domain": DECLARED[name]} if name in DECLARED else {}
    options = {"key": KEY, "engine": engine, **declared, **options}
    return dn.publish(table, **sensitive, privacy=privacy, mechanism=mechanism, **options)
