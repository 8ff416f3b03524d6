"""A key and its ledger: whoever publishes the same people twice under one key is told, under whatever name."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import DeniableError
from deniable.tables import engine_named
from deniable.tables.keys import Keystream, Secret
from tests.contract.partitioned import PartitionedEngine

VALUES = list("abcdefgh")


def registered(rows: int, drop: int = 0) -> pa.Table:
    """Some of 6,000 people."""
    ids, ill = np.arange(6_000), np.random.default_rng(11).choice(VALUES, 6_000, p=np.arange(8, 0, -1) / 36)
    return pa.table({"id": ids[drop:rows], "age": ids[drop:rows] % 90, "ill": ill[drop:rows]})


def second_look(home: Path, table: pa.Table, **options: Any) -> dn.Release:
    """A release under the key file of a folder, which is made if there is none."""
    key = home / "key"
    if not key.exists():
        key.write_bytes(bytes(range(32)))
        os.chmod(key, 0o600)
    usual = {"sensitive": "ill", "privacy": dn.Privacy("1/3", "1/2"), "mechanism": "uniform", "drop": "id"}
    return dn.publish(table, key_file=key, **{**usual, **options})


def test_a_second_look_under_one_key_is_refused_with_its_bound(tmp_path: Path) -> None:
    gamma = Fraction(second_look(tmp_path, registered(3_000)).manifest.guarantee["gamma"])
    second_look(tmp_path, registered(3_000))  # the same release once more is nothing new
    with pytest.raises(DeniableError, match=f"up to {float(gamma**2):.4g}"):
        second_look(tmp_path, registered(3_001))
    second_look(tmp_path, registered(6_000, drop=3_001), name="other people")
    second_look(tmp_path, registered(3_001), again=True)
    with pytest.raises(DeniableError, match=f"up to {float(gamma**3):.4g}"):
        second_look(tmp_path, registered(3_002))
    with pytest.raises(DeniableError, match=f"as 'release', 'other people'.* up to {float(gamma**4):.4g}"):
        second_look(tmp_path, registered(6_000), name="everyone")


def mixed(rows: int, seed: int = 1) -> pa.Table:
    """People of many columns, with missing values, lists and times; no column names them."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.integers(0, 90, rows),
            "income": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.1),
            "place": pa.array(rng.choice(list("abcdefghij"), rows), mask=rng.random(rows) < 0.1).dictionary_encode(),
            "visits": pa.array([list(range(number)) for number in rng.integers(0, 4, rows)]),
            "stay": pa.array(rng.integers(0, 10**6, rows), pa.duration("s")),
            "nothing": pa.nulls(rows),
            "job": rng.choice(list("uvwxyz"), rows),
            "ill": rng.choice(VALUES, rows),
        }
    )


UNSEEN = ["visits", "stay", "nothing"]
SAME_PEOPLE: dict[str, tuple[pa.Table, dict[str, Any]]] = {
    "the same table": (mixed(2_000), {}),
    "another requirement": (mixed(2_000), {"privacy": dn.Privacy("1/3", "2/3")}),
    "another sensitive column": (mixed(2_000), {"sensitive": "job"}),
    "a column less": (mixed(2_000), {"drop": [*UNSEEN, "income"]}),
    "coarser": (mixed(2_000), {"recode": {"age": "bands:10"}}),
    "more people": (pa.concat_tables([mixed(2_000), mixed(500, 2)]).unify_dictionaries(), {}),
    "some of them among others": (pa.concat_tables([mixed(2_000)[:60], mixed(3_000, 2)]).unify_dictionaries(), {}),
    "another order": (mixed(2_000).take(np.random.default_rng(5).permutation(2_000)), {}),
    "other columns first": (mixed(2_000).select(mixed(2_000).column_names[::-1]), {}),
}


@pytest.mark.parametrize("how", SAME_PEOPLE)
def test_another_name_does_not_hide_a_second_look(tmp_path: Path, how: str) -> None:
    """Releases under one key were compared by their names alone: ``name=`` was enough for any number of looks."""
    table, options = SAME_PEOPLE[how]
    second_look(tmp_path, mixed(2_000), drop=UNSEEN)
    before = (tmp_path / "key.ledger").read_bytes()
    with pytest.raises(DeniableError, match="Rows of this table were published under this key before, as 'release'"):
        second_look(tmp_path, table, **{"drop": UNSEEN, "name": "another", **options})
    assert (tmp_path / "key.ledger").read_bytes() == before
    second_look(tmp_path, table, **{"drop": UNSEEN, "name": "another", "again": True, **options})


@pytest.mark.parametrize("columns", [["age", "ill"], ["age", "place", "ill"], ["age", "income", "ill"]])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_other_people_of_one_population_are_no_second_look(tmp_path: Path, columns: list[str], share: float) -> None:
    """However few or many rows are alike by chance: the halves of a table, and small samples beside large ones."""
    table = mixed(20_000).select(columns)
    order = np.random.default_rng(3).permutation(20_000)
    cut = int(share * 20_000)
    for number, places in enumerate((order[:cut], order[cut:])):
        second_look(tmp_path, table.take(places), drop=(), name=str(number))
    assert [entry["name"] for entry in json.loads((tmp_path / "key.ledger").read_text())] == ["0", "1"]


def test_a_table_of_few_combinations_is_known_as_a_whole(tmp_path: Path) -> None:
    """No row of it stands out; the same rows in another order are the same table all the same."""
    table = registered(3_000).select(["ill"])
    second_look(tmp_path, table, drop=())
    with pytest.raises(DeniableError, match="Rows of this table were published"):
        second_look(tmp_path, table.sort_by("ill"), drop=(), name="another")
    second_look(tmp_path, registered(6_000, drop=3_000).select(["ill"]), drop=(), name="other people")


def test_a_ledger_without_sketches_goes_on_by_names(tmp_path: Path) -> None:
    """Ledgers that were written before rows were compared are read; what is damaged is refused."""
    second_look(tmp_path, registered(3_000))
    path = tmp_path / "key.ledger"
    older = [{name: entry[name] for name in ("name", "draws", "gamma")} for entry in json.loads(path.read_text())]
    path.write_text(json.dumps(older))
    second_look(tmp_path, registered(3_000))
    with pytest.raises(DeniableError, match="Another release named 'release'"):
        second_look(tmp_path, registered(3_001))
    second_look(tmp_path, registered(3_001), name="another")
    with pytest.raises(DeniableError, match="Rows of this table were published under this key before, as 'another'"):
        second_look(tmp_path, registered(3_002), name="a third")
    for rows in ({}, {"once": "?"}, 5, None):
        path.write_text(json.dumps([{**older[0], "rows": rows}]))
        with pytest.raises(DeniableError, match="is damaged: it is the ledger of a key"):
            second_look(tmp_path, registered(3_000))


def test_a_sketch_is_the_same_however_rows_are_cut_and_in_whatever_order_they_stand() -> None:
    """Of more rows than are kept, a third of them alike; partitions are sketched in other processes and merged."""
    keys = Keystream(Secret.from_key(bytes(range(32))), "ledger")
    table = pa.concat_tables([registered(6_000), registered(2_000)])
    shuffled = table.take(pa.array(np.random.default_rng(2).permutation(8_000)))
    sketches = [
        engine.open(rows).sketch(keys)
        for engine in (engine_named("local"), PartitionedEngine())
        for rows in (table, shuffled)
    ]
    first = sketches[0]
    whole, *some = first.samples
    assert len(whole.once) + len(whole.repeated) == 4_096
    assert 0.28 < len(whole.repeated) / 4_096 < 0.39
    assert [one.columns for one in some] == [2, 2, 2, 1, 1, 1]
    assert [one.numbered for one in first.samples] == [False] * 7  # ids twice are no row numbers
    for other in sketches[1:]:
        assert first.rows == other.rows
        for mine, theirs in zip(first.samples, other.samples, strict=True):
            assert (mine.total, mine.limit, mine.bits) == (theirs.total, theirs.limit, theirs.bits)
            assert np.array_equal(mine.once, theirs.once)
            assert np.array_equal(mine.repeated, theirs.repeated)
