"""What is published under a fixed key: every mechanism that publishes rows, and options that change rows or answers."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import deniable as dn
from deniable import mechanisms as made
from tests.golden.tables import DISEASES, changed, patients

KEY = bytes(range(32))
PUBLIC = ("sex", "region", "town", "age", "visits", "pay", "weight", "born", "seen", "insured")
FREQUENCY = dn.Privacy(rho1="1/4", rho2="3/5")
ANY_PRIOR = dn.Privacy(rho1="1/4", rho2="3/5", adversary="any-prior")
PER_VALUE = dn.Privacy(per_value=dict.fromkeys(("tb", "hiv", "measles"), ("1/20", "1/6")) | {"gout": ("1/6", "1/2")})


@dataclass(frozen=True)
class Case:
    """A release.

    Attributes:
        options: for ``publish``.
        table: the columns that are handed over, beside the public ones.
        questions: which list of questions is put to it.
        whole: whether all of the list is asked, or every fifth.
        folders: whether it is also written to folders, Parquet and CSV, and asked from there.
        series: whether it is published twice.
    """

    options: Callable[[], dict[str, Any]]
    table: tuple[str, ...] = ("disease",)
    questions: str = "disease"
    whole: bool = False
    folders: bool = False
    series: bool = False
    columns: tuple[str, ...] = field(default=PUBLIC)

    def rows(self) -> pa.Table:
        """The table that is published."""
        return patients().select([*self.columns, *self.table])

    def publish(self, **more: Any) -> dn.Release:
        """The release, in memory unless ``out=`` is among the options."""
        return dn.publish(self.rows(), **{"key": KEY, **self.options(), **more})

    def publications(self, home: Path) -> list[dn.Release]:
        """The two releases of a series."""
        options = {**self.options(), "series": home / "series"}
        return [dn.publish(table, **options) for table in (self.rows(), changed(self.rows()))]


def _mechanism(mechanism: Any, privacy: Any, **more: Any) -> Case:
    asked = {key: more.pop(key) for key in ("table", "questions") if key in more}
    options = {"sensitive": "disease", "mechanism": mechanism, "privacy": privacy, **more}
    return Case(lambda: options, whole=True, folders=True, **asked)


def _option(*, table: tuple[str, ...] = ("disease",), questions: str = "disease", **more: Any) -> Case:
    options = {"sensitive": table[0], "mechanism": "uniform", "privacy": FREQUENCY, **more}
    return Case(lambda: options, table=table, questions=questions)


RETENTION = made.Retention(
    {
        "disease": dn.Replace(coin=0.6),
        "job": dn.Replace(coin=0.5, replacing="identity"),
        "salary": dn.Replace(coin=0.5, low=5_000, high=90_000, step=1_000),
        "grade": dn.Replace(coin=0.7, low=1, high=6),
    }
)
RANGES = made.Retention(
    {
        "birth": dn.Replace(coin=0.6, low=dt.date(1929, 1, 1), high=dt.date(1980, 12, 31)),
        "income": dn.Replace(coin=0.5, low=1_000.5, high=6_000.5, step=50),
    }
)
SWAPPED = made.Retention({"disease": dn.Replace(coin=0.5, replacing="swapping"), "job": dn.Replace(coin=0.8)})
SEVERAL = {"table": ("disease", "job"), "sensitive": ["disease", "job"], "questions": "two"}

CASES: dict[str, Case] = {
    "uniform": _mechanism(made.Uniform(), FREQUENCY),
    "uniform, any prior": _mechanism(made.Uniform(), ANY_PRIOR, domain=list(DISEASES)),
    "small-domain": _mechanism(made.SmallDomain(), FREQUENCY),
    "small-domain, bound": _mechanism(made.SmallDomain(cost="bound"), FREQUENCY),
    "small-domain, variance and fine-grain": _mechanism(
        made.SmallDomain(cost="variance", channels="fine-grain"), FREQUENCY
    ),
    "fine-grain": _mechanism(made.FineGrain(), PER_VALUE),
    "designed": _mechanism(made.Designed(), FREQUENCY),
    "identity": _mechanism(made.Identity(), FREQUENCY),
    "lineup": _mechanism(made.Lineup(), FREQUENCY),
    "lineup, any prior": _mechanism(made.Lineup(), ANY_PRIOR, domain=list(DISEASES)),
    "lineup, codes": _mechanism(
        made.Lineup(size=12), ANY_PRIOR, domain=[*DISEASES, *(f"rare {k:02}" for k in range(20))]
    ),
    "decoys": _mechanism(made.Decoys(c=4), None),
    "redraw": _mechanism(made.Redraw(), None),
    "pram": _mechanism(made.Pram(), FREQUENCY),
    "retention": _mechanism(
        RETENTION, None, sensitive=None, table=("disease", "job", "salary", "grade"), questions="numbers"
    ),
    "retention, dates and floats": _option(
        table=("birth", "income"), questions="ranges", sensitive=None, mechanism=RANGES, privacy=None
    ),
    "retention, a budget": _option(
        table=("disease", "job"),
        questions="two",
        sensitive=None,
        mechanism=made.Retention({"disease": dn.Replace(), "job": dn.Replace()}, budget=3),
        privacy=None,
    ),
    "retention, swapped": _mechanism(SWAPPED, None, sensitive=None, table=("disease", "job"), questions="two"),
    "items": _mechanism(
        made.Items(budget=6, most=3), None, sensitive="diagnoses", table=("diagnoses",), questions="lists"
    ),
    "two columns": _mechanism(made.Uniform(), dn.Privacy(rho2="1/2"), **SEVERAL),
    "two columns, small-domain": _option(**SEVERAL, mechanism="small-domain", privacy=dn.Privacy("1/8", "1/2")),
    "two columns, bound": _mechanism(made.SmallDomain(cost="bound"), dn.Privacy("1/8", "1/2"), **SEVERAL),
    "two columns, identity": _option(**SEVERAL, mechanism="identity", privacy=dn.Privacy("1/8", "1/2")),
    "two columns, decoys": _option(**SEVERAL, mechanism="decoys:c=4", privacy=None),
    "small-domain, apart": _option(
        mechanism=made.SmallDomain(keep_apart=(("hiv", "tb"),), min_rows=200),
    ),
    "fine-grain, errors": _option(mechanism=made.FineGrain(objective="errors"), privacy=PER_VALUE),
    "designed, optimised": _option(mechanism=made.Designed(replacing="optimised")),
    "lineup, sized": _option(mechanism=made.Lineup(size=4, truth="1/3")),
    "decoys, balanced": _option(mechanism=made.Decoys(c=5, grouping="balanced", leftovers="drop"), privacy=None),
    "decoys, sums": _option(
        mechanism="decoys",
        privacy=dn.Privacy(rho2="1/2", small_sums=dn.SmallSums(error=0.3, below=3, at_least=0.5)),
        domain=list(DISEASES),
    ),
    "pram, coin": _option(mechanism=made.Pram(coin=0.6, coins={"hiv": 0.3}), privacy=None),
    "tolerance": _option(
        mechanism="fine-grain", privacy=made.tolerance({name: 100 + 40 * k for k, name in enumerate(DISEASES)}, 4)
    ),
    "rho2 alone": _option(privacy="1/2"),
    "exempt values": _option(mechanism="designed", privacy=dn.Privacy(rho2="1/2", exempt=["flu", "cold"])),
    "missing, a value": _option(table=("ill",), questions="ill"),
    "missing, exempt": _option(table=("ill",), questions="ill", missing="exempt"),
    "domain": _option(privacy=ANY_PRIOR, domain=[*DISEASES, "plague", "scurvy"]),
    "bins": _option(
        table=("salary",),
        questions="bins",
        bins={"salary": dn.Bins([0, 20_000, 30_000, 40_000, 60_000, 100_000])},
        privacy=dn.Privacy(rho2="1/2"),
    ),
    "bins, quantiles": _option(
        table=("salary",), questions="quantiles", bins={"salary": dn.Quantiles(6)}, privacy=dn.Privacy(rho2="1/2")
    ),
    "recoded": _option(
        recode={"age": dn.bands(10), "born": dn.year, "pay": [dn.top(4_500), dn.snap(100)], "town": dn.prefix(6)},
        rare={"town": 300},
        suppress={"disease": 100},
    ),
    "few public columns": Case(
        lambda: {"sensitive": "disease", "mechanism": "designed", "privacy": FREQUENCY},
        columns=("sex", "region", "insured"),
        whole=True,
    ),
    "row id": Case(
        lambda: {"sensitive": "disease", "mechanism": "uniform", "privacy": FREQUENCY, "row_id": "row"},
        columns=("row", *PUBLIC),
    ),
    "person": Case(
        lambda: {"sensitive": "disease", "mechanism": "uniform", "privacy": FREQUENCY, "person": "person"},
        columns=("person", *PUBLIC),
    ),
    "in order, with marginals": _option(shuffle=False, marginals=True, domain=list(DISEASES)),
    "without marginals": _option(marginals=False),
    "seed": _option(key=None, seed=7, name="another"),
    "auto": _option(mechanism="auto"),
    "series": Case(
        lambda: {"sensitive": "disease", "mechanism": "uniform", "privacy": FREQUENCY, "person": "row"},
        columns=("row", *PUBLIC),
        series=True,
    ),
}
