"""The made-up tables that are published: the same on every machine, from a bit generator's integers alone."""

import datetime as dt
from functools import cache

import numpy as np
import pyarrow as pa

ROWS = 3600  # a multiple of 2, 3, 4 and 5: decoy groups leave nobody over
DISEASES = ("flu", "cold", "asthma", "gout", "angina", "diabetes", "mumps", "measles", "tb", "hiv")
CHAPTERS = ("breath", "breath", "breath", "joints", "heart", "blood", "child", "child", "breath", "blood")
JOBS = ("nurse", "cook", "clerk", "driver", "judge", "none")
REGIONS = ("north", "east", "south", "west")
ITEMS = ("E11", "I10", "I50", "J45", "N18")
FIRST_DAY, FIRST_VISIT = dt.date(1930, 1, 1), dt.datetime(2023, 1, 1)


class Draws:
    """Whole numbers below a limit, column by column."""

    def __init__(self, seed: int, rows: int) -> None:
        self.bits, self.rows = np.random.PCG64(seed), rows

    def below(self, limit: int) -> np.ndarray:
        return (self.bits.random_raw(self.rows) % np.uint64(limit)).astype(np.int64)


def _by_share(draws: np.ndarray, shares: list[int]) -> np.ndarray:
    """Positions: 0 for draws below the first share, 1 below the sum of two, and so on."""
    return np.searchsorted(np.cumsum(shares), draws, side="right")


@cache
def patients(seed: int = 1, rows: int = ROWS) -> pa.Table:
    """Public columns of six types, some of which go together and with what is sensitive, and sensitive ones.

    ``town`` lies in ``region``, ``pay`` grows with ``age``; ``disease`` goes with sex, age and region, ``job`` with
    ``disease``, ``salary`` with ``job``. ``ill`` is ``disease`` with some missing, ``person`` has two rows or so each.
    """
    draw = Draws(seed, rows)
    number = np.arange(rows)
    female = draw.below(100) < 52
    region = _by_share(draw.below(100), [40, 30, 20, 10])
    town = region * 3 + _by_share(draw.below(100), [60, 39, 1])
    age = 18 + draw.below(73)
    visits = draw.below(4) + (age > 60) * draw.below(6)
    cents = 100_000 + age * 2_500 + draw.below(200_000)
    unpaid = draw.below(20) == 0
    weight = 1 + draw.below(4) * 0.25
    born = 18_000 - age * 200 + draw.below(365)
    visit = draw.below(700 * 24 * 60)
    chance = draw.below(1000)
    young, south = age < 40, region == 2
    shares = [300, 200, 120, 90, 80, 70, 60, 40, 25, 15]
    tilted = [120, 150, 100, 180, 150, 160, 40, 30, 30, 40]
    disease = np.where(young ^ (female & south), _by_share(chance, shares), _by_share(chance, tilted))
    job = np.where(
        disease > 4,
        _by_share(draw.below(100), [10, 20, 20, 20, 5, 25]),
        _by_share(draw.below(100), [30, 20, 20, 15, 5, 10]),
    )
    salary = 1_000 * (10 + 6 * job + draw.below(40))
    grade = 1 + np.minimum(draw.below(6), draw.below(6))
    holds = [draw.below(100) < share + (age > 55) * 15 for share in (30, 40, 10, 20, 5)]
    lists = [[ITEMS[k] for k in range(5) if holds[k][i]][:3] for i in range(rows)]
    unknown = draw.below(25) == 0
    return pa.table(
        {
            "row": pa.array(number * 7 + 3),
            "person": pa.array([f"p{one:05}" for one in draw.below(rows // 2)]),
            "sex": pa.array(np.where(female, "F", "M").tolist()),
            "region": pa.array([REGIONS[one] for one in region]),
            "town": pa.array([f"town {one:02}" for one in town]),
            "age": pa.array(age),
            "visits": pa.array(visits.astype(np.int32)),
            "pay": pa.array([None if gone else int(one) / 100 for one, gone in zip(cents, unpaid, strict=True)]),
            "weight": pa.array(weight),
            "born": pa.array([FIRST_DAY + dt.timedelta(days=int(one)) for one in born]),
            "seen": pa.array([FIRST_VISIT + dt.timedelta(minutes=int(one)) for one in visit], pa.timestamp("us")),
            "insured": pa.array((draw.below(10) < 8).tolist()),
            "disease": pa.array([DISEASES[one] for one in disease]),
            "ill": pa.array([None if gone else DISEASES[one] for one, gone in zip(disease, unknown, strict=True)]),
            "job": pa.array([JOBS[one] for one in job]),
            "salary": pa.array(salary),
            "birth": pa.array([FIRST_DAY + dt.timedelta(days=int(one)) for one in born]),
            "income": pa.array((cents // 5_000) * 50 + 0.5),
            "grade": pa.array(grade),
            "diagnoses": pa.array(lists),
        }
    )


def changed(table: pa.Table) -> pa.Table:
    """The table of a year later: every ninth row is gone, every eleventh has another disease."""
    disease = table["disease"].to_pylist()
    later = [DISEASES[(DISEASES.index(one) + 1) % 10] if k % 11 == 0 else one for k, one in enumerate(disease)]
    kept = pa.array([k % 9 != 0 for k in range(table.num_rows)])
    return table.set_column(table.column_names.index("disease"), "disease", pa.array(later)).filter(kept)


def chapters() -> pa.Table:
    """A lookup table: each disease's chapter and how grave it is."""
    return pa.table({"code": list(DISEASES), "chapter": list(CHAPTERS), "grave": [k % 4 for k in range(10)]})


def places() -> pa.Table:
    """A lookup table of a public column."""
    return pa.table({"region": list(REGIONS), "capital": ["Oslo", "Linz", "Bari", "Brest"], "people": [40, 30, 20, 10]})
