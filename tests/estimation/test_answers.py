"""Tables of counts whose columns are called like the numbers of the result: nothing of them may get lost."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.analyst.evidence import from_release

NUMBERS = ("value", "stderr", "value_low", "value_high")


def published(public: str, sensitive: str) -> dn.Release:
    draw = np.random.default_rng(3)
    table = pa.table({public: draw.choice(["F", "M"], 900), sensitive: draw.choice(list("abc"), 900)})
    return dn.publish(table, sensitive=sensitive, privacy="3/4", mechanism="uniform", key=bytes(32))


@pytest.mark.parametrize("name", NUMBERS)
def test_groups_that_are_called_like_a_number_are_refused_with_the_way_to_ask(name: str) -> None:
    release = published(name, "job")
    for ask in (
        lambda: release.group_by(name),
        lambda: release.group_by(["job", name]),
        lambda: release.cube({name: "F", "job": "a"}),
        lambda: release.cube([name]),
        lambda: published("sex", name).histogram(),
    ):
        with pytest.raises(dn.DeniableError, match=rf"'{name}' is called like a column of the result.*AS n"):
            ask()
    rows = release.sql(f'SELECT "{name}", COUNT(*) AS n FROM release GROUP BY "{name}" ORDER BY 1')
    assert rows[name].to_pylist() == ["F", "M"]


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_made_of_such_groups_has_their_values(name: str) -> None:
    rows = published(name, "job").pseudo_table().to_pylist()
    assert {(row[name], row["job"]) for row in rows} == {(sex, job) for sex in "FM" for job in "abc"}
    assert sum(row["weight"] for row in rows) == pytest.approx(900)
    (estimates,) = from_release(published("sex", name)).estimates
    assert {row["value"] for row in estimates.rows} == set("abc")
    assert sum(row["estimate"] for row in estimates.rows) == pytest.approx(900, abs=1)
