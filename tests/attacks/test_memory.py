"""What is remembered of publications, whatever the key: the same people are noticed, and other people are let be."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable.cli.main import app
from deniable.core.errors import DeniableError
from deniable.core.privacy import worst_posterior
from deniable.publishing.memory import VARIABLE, Memory, remembered_in

N = 3000
JOBS = np.array([f"job {number}" for number in range(30)])
ILL = np.array([f"illness {number}" for number in range(12)])
LEAST = 35  # of forty second looks


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home" / "memory.json"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def people(seed: int, rows: int = N) -> pa.Table:
    """A survey of one population; no column names anyone."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": np.clip(rng.normal(45, 18, rows).astype(np.int64), 18, 95),
            "sex": rng.choice(["F", "M"], rows),
            "region": rng.choice([f"region {i}" for i in range(15)], rows, p=np.arange(15, 0, -1) / 120),
            "job": JOBS[np.minimum(rng.zipf(1.4, rows) - 1, 29)],
            "income": np.round(rng.gamma(3, 900, rows), 0),
            "ill": ILL[np.minimum(rng.zipf(1.5, rows) - 1, 11)],
        }
    )


def with_ids(seed: int) -> pa.Table:
    numbers = np.random.default_rng(seed).choice(10**8, N, replace=False)
    return people(seed).append_column("id", pa.array(numbers))


def upper(table: pa.Table, name: str) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pc.utf8_upper(table[name]))


def moved(table: pa.Table, *names: str) -> pa.Table:
    for name in names:
        table = table.set_column(table.column_names.index(name), name, pc.add(table[name], 1))
    return table


def added(table: pa.Table, number: int = 1, seed: int = 9) -> pa.Table:
    for place in range(number):
        values = np.random.default_rng(seed + place).integers(0, 20, table.num_rows)
        table = table.append_column(f"new {place}", pa.array(values))
    return table


def changed(table: pa.Table, share: float, names: list[str]) -> pa.Table:
    """Some values of every row are others' values."""
    for name in names:
        rng = np.random.default_rng(len(name))
        places = np.where(
            rng.random(table.num_rows) < share, rng.permutation(table.num_rows), np.arange(table.num_rows)
        )
        table = table.set_column(table.column_names.index(name), name, table[name].take(pa.array(places)))
    return table


def joined(*tables: pa.Table) -> pa.Table:
    return pa.concat_tables(tables)


def shuffled(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(4).permutation(table.num_rows)))


def round_trip(table: pa.Table, home: Path) -> str:
    pa_csv.write_csv(table, home / "again.csv")
    return str(home / "again.csv")


def dictionaries(table: pa.Table, home: Path) -> str:
    kinds = [
        pc.dictionary_encode(table[name]) if name in ("job", "ill") else table[name] for name in table.column_names
    ]
    pq.write_table(pa.table(kinds, names=table.column_names), home / "again.parquet")
    return str(home / "again.parquet")


def cast(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, table[name].cast(kind))


RENAMED = ["years", "gender", "place", "work", "pay", "ill"]
Look = Callable[[pa.Table, Path], Any]
SECOND: dict[str, tuple[Look, dict[str, Any]]] = {
    "the same table": (lambda t, _: t, {}),
    "another mechanism": (lambda t, _: t, {"mechanism": "lineup"}),
    "another requirement": (lambda t, _: t, {"privacy": dn.Privacy("1/10", "1/2")}),
    "another sensitive column": (lambda t, _: t, {"sensitive": "job"}),
    "another name": (lambda t, _: t, {"name": "another"}),
    "a key of one's own": (lambda t, _: t, {"key": bytes(range(32))}),
    "a row less": (lambda t, _: t[1:], {}),
    "coarser as it is published": (lambda t, _: t, {"recode": {"age": "bands:10"}}),
    "a column renamed": (lambda t, _: t.rename_columns(["years", *t.column_names[1:]]), {}),
    "nearly all renamed": (lambda t, _: t.rename_columns(RENAMED), {}),
    "two names exchanged": (lambda t, _: t.rename_columns(["age", "region", "sex", *t.column_names[3:]]), {}),
    "columns in another order": (lambda t, _: t.select(t.column_names[::-1]), {}),
    "rows in another order": (lambda t, _: shuffled(t), {}),
    "a column added": (lambda t, _: added(t), {}),
    "three columns added": (lambda t, _: added(t, 3), {}),
    "a column left out": (lambda t, _: t.drop_columns(["income"]), {}),
    "three columns left out": (lambda t, _: t.drop_columns(["income", "job", "sex"]), {}),
    "a column shifted": (lambda t, _: moved(t, "age"), {}),
    "two columns shifted": (lambda t, _: moved(t, "age", "income"), {}),
    "upper case": (lambda t, _: upper(t, "job"), {}),
    "the sensitive column in upper case": (lambda t, _: upper(t, "ill"), {}),
    "three columns in upper case": (lambda t, _: upper(upper(upper(t, "job"), "ill"), "region"), {}),
    "half of the rows": (lambda t, _: t[: N // 2], {}),
    "a tenth of the rows": (lambda t, _: t[: N // 10], {}),
    "more people": (lambda t, _: joined(t, people(2, 400)), {}),
    "some of them among others": (lambda t, _: joined(t[:200], people(2)), {}),
    "others among them, and a column more": (lambda t, _: added(joined(t, people(2, 300))), {}),
    "others among them, all renamed, one recoded": (
        lambda t, _: upper(joined(t, people(2, 300)), "job").rename_columns(RENAMED),
        {},
    ),
    "half of them, one recoded, another order": (lambda t, _: shuffled(upper(t[: N // 2], "region")), {}),
    "by CSV": (round_trip, {}),
    "by Parquet, with dictionaries": (dictionaries, {}),
    "as pandas has it": (lambda t, _: t.to_pandas(), {}),
    "numbers as texts": (lambda t, _: cast(t, "age", pa.string()), {}),
    "whole numbers as decimals": (lambda t, _: cast(t, "age", pa.float64()), {}),
    "income to the hundred": (
        lambda t, _: t.set_column(4, "income", pc.round(t["income"], -2)),
        {},
    ),
    "ages in bands": (lambda t, _: t.set_column(0, "age", pc.multiply(pc.divide(t["age"], 10), 10)), {}),
    "one value in a hundred is another": (lambda t, _: changed(t, 0.01, t.column_names), {}),
    "an income made up anew": (lambda t, _: changed(t, 1.0, ["income"]), {}),
    "rows twice": (lambda t, _: joined(t, t), {}),
    "half of them, two columns recoded": (lambda t, _: upper(moved(t[: N // 2], "age"), "region"), {}),
}


def published(table: Any, out: Path, **options: Any) -> dn.Release:
    usual = {"sensitive": "ill", "privacy": dn.Privacy("1/5", "3/5"), "mechanism": "uniform"}
    return dn.publish(table, out=out, **{**usual, **options})


def looks(release: dn.Release) -> list[Any]:
    return [point for point in release.decision.points if point.part == "second look"]


def is_noticed(release: dn.Release) -> bool:
    return [point.grade for point in looks(release)] == ["decide"]


@pytest.mark.slow
def test_most_second_looks_are_noticed(tmp_path: Path, memory: Path) -> None:
    published(people(1), tmp_path / "first")
    before = memory.read_bytes()
    missed = []
    for place, (how, (look, options)) in enumerate(SECOND.items()):
        memory.write_bytes(before)
        if not is_noticed(published(look(people(1), tmp_path), tmp_path / str(place), **options)):
            missed.append(how)
    assert len(SECOND) == 40
    assert len(SECOND) - len(missed) >= LEAST, missed
    assert missed == ["rows twice", "half of them, two columns recoded"]


def test_an_id_is_enough(tmp_path: Path) -> None:
    """Whatever else became of the table."""
    published(with_ids(1), tmp_path / "first", drop="id")
    others = people(2).append_column("patient", with_ids(1)["id"])
    assert is_noticed(published(others[: N // 3], tmp_path / "second", drop="patient"))


OTHERS: dict[str, tuple[pa.Table, pa.Table]] = {
    "two samples": (people(1), people(2)),
    "a small one": (people(1), people(2, 100)),
    "a large one": (people(1, 200), people(2, 20_000)),
    "two columns": (people(1).select(["sex", "ill"]), people(2).select(["sex", "ill"])),
    "one column": (people(1).select(["ill"]), people(2).select(["ill"])),
    "few columns": (people(1).select(["age", "sex", "ill"]), people(2).select(["age", "sex", "ill"])),
    "ids of their own": (with_ids(1), with_ids(2)),
}
for some, others in list(OTHERS.values())[:1]:
    OTHERS["rows that are numbered"] = tuple(t.append_column("row", pa.array(np.arange(N))) for t in (some, others))
    OTHERS["few columns of numbered rows"] = tuple(
        t.select(["sex", "ill"]).append_column("row", pa.array(np.arange(1, N + 1))) for t in (some, others)
    )
    OTHERS["a design with equal cells"] = tuple(
        pa.table({"stratum": np.arange(N) % 25, "wave": np.arange(N) % 4, "ill": t["ill"]}) for t in (some, others)
    )


@pytest.mark.parametrize("who", OTHERS)
def test_other_people_are_no_second_look(tmp_path: Path, who: str) -> None:
    for place, table in enumerate(OTHERS[who]):
        assert not is_noticed(published(table, tmp_path / str(place)))


def test_what_both_come_to_is_said_to_the_owner_and_in_the_release(tmp_path: Path) -> None:
    first = published(people(1), tmp_path / "first", name="spring")
    assert [point.grade for point in looks(first)] == ["fine"]
    assert not any("other releases" in line for line in first.manifest.guarantee["not_protected"])
    second = published(people(1), tmp_path / "second")
    total = Fraction(first.manifest.guarantee["gamma"]) * Fraction(second.manifest.guarantee["gamma"])
    (point,) = looks(second)
    assert point.figure == f"{float(100 * worst_posterior(Fraction(1, 5), total)):.3g} %"
    assert "spring" in point.says
    assert str(tmp_path / "first") in point.says
    said = [line for line in second.manifest.guarantee["not_protected"] if "other releases" in line]
    assert len(said) == 1
    assert point.figure in said[0]
    assert str(tmp_path) not in said[0]
    assert dn.verify(tmp_path / "second").holds is not False
    third = published(people(1), tmp_path / "third", again=True)
    assert looks(third)[0].accepted
    assert "2 looks" not in looks(third)[0].says


def test_without_a_bound_there_is_none_together(tmp_path: Path) -> None:
    weak = {"privacy": dn.Privacy(rho2="3/5"), "mechanism": "small-domain"}
    first = published(people(1), tmp_path / "first", **weak)
    assert first.manifest.guarantee["gamma"] is None
    assert "have no bound" in looks(published(people(1), tmp_path / "second"))[0].says


def test_the_same_release_once_more_a_series_and_a_replaced_one_are_no_second_look(tmp_path: Path) -> None:
    key = bytes(range(32))
    for out in ("a", "b"):
        assert not is_noticed(published(people(1), tmp_path / out, key=key))
    for out in ("c", "d"):
        options = {"series": tmp_path / "s", "row_id": "id"}
        assert not is_noticed(published(with_ids(3), tmp_path / out, **options))
    for _ in range(2):
        replaced = published(people(4), tmp_path / "e", overwrite=True)
        assert not is_noticed(replaced)
    assert [note for note in replaced.warnings if "1 earlier release of the same people in this folder" in note]


def test_experiments_are_not_remembered_and_saved_releases_are(tmp_path: Path, memory: Path) -> None:
    with pytest.warns(UserWarning, match="seed = 1"):
        published(people(1), tmp_path / "seeded", seed=1)
    assert not memory.exists()
    dn.publish(people(1), sensitive="ill", privacy="4/5", mechanism="uniform").save(tmp_path / "saved")
    assert is_noticed(published(people(1), tmp_path / "second"))
    assert is_noticed(dn.publish(people(1), sensitive="ill", privacy="4/5", mechanism="uniform"))


def test_where_nothing_is_named_it_is_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of what is published into a folder for temporary files nothing is remembered."""
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert remembered_in(Path("/somewhere/release")) == Path("/data/deniable/memory.json")
    assert remembered_in(Path(tempfile.gettempdir()) / "release") is None
    monkeypatch.delenv("XDG_DATA_HOME")
    assert remembered_in(Path("/somewhere/release")) == Path.home() / ".local/share/deniable/memory.json"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "Application Support" in str(remembered_in(Path("/somewhere/release")))
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    monkeypatch.setattr(sys, "platform", "win32")
    assert remembered_in(Path("/somewhere/release")) == Path("/local/deniable/memory.json")


def test_without_a_home_it_is_said_and_a_table_that_is_gone_is_no_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: Path
) -> None:
    path = round_trip(people(1), tmp_path)
    release = dn.publish(path, sensitive="ill", privacy="4/5", mechanism="uniform")
    Path(path).unlink()
    release.save(tmp_path / "saved")
    assert Memory.read(memory).looks == []
    monkeypatch.delenv(VARIABLE)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    assert any("is not remembered" in note for note in published(people(1), tmp_path / "r").warnings)


def test_the_file_is_its_owners_alone_and_holds_no_value(tmp_path: Path, memory: Path) -> None:
    published(people(1), tmp_path / "first")
    assert os.stat(memory).st_mode & 0o077 == 0
    assert os.stat(memory.parent).st_mode & 0o077 == 0
    text = memory.read_text()
    assert not any(value in text for value in (*JOBS, *ILL, "region", "income"))
    assert len(text) < 400_000


def unmixed(word: int) -> int:
    """The number that a public mixing function makes this word of."""
    word ^= word >> 31 ^ word >> 62
    word = word * pow(0x94D049BB133111EB, -1, 2**64) % 2**64
    word ^= word >> 27 ^ word >> 54
    word = word * pow(0xBF58476D1CE4E5B9, -1, 2**64) % 2**64
    return word ^ word >> 30 ^ word >> 60


def test_no_word_can_be_turned_round_to_the_number_of_a_person(tmp_path: Path, memory: Path) -> None:
    """Words were a public mixing function of the number and a secret start: one known number told all others."""
    table = with_ids(1)
    published(table, tmp_path / "first", drop="id")
    ids = set(table["id"].to_pylist())
    (look,) = Memory.read(memory).looks
    alone = [one for one in look.table.samples if one.columns == 1]
    for sample in alone:
        numbers = [unmixed(int(word)) for word in sample.once]
        for start in (number - known for number in numbers[:3] for known in sorted(ids)):
            assert sum((number - start) % 2**64 in ids for number in numbers) <= 1


def test_a_refused_publication_is_not_remembered(tmp_path: Path, memory: Path) -> None:
    def refuse(_: Any) -> None:
        raise ValueError("not so")

    with pytest.raises(ValueError, match="not so"):
        published(people(1), tmp_path / "first", judge=refuse)
    assert Memory.read(memory).looks == []


def test_a_damaged_file_is_refused_and_one_that_cannot_be_written_is_said(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(people(1), tmp_path / "first")
    raw = json.loads(memory.read_text())
    for damaged in ("", "{}", json.dumps({**raw, "tables": {}}), json.dumps({**raw, "key": "?"})):
        memory.write_text(damaged)
        with pytest.raises(DeniableError, match="is damaged: it remembers what was published"):
            published(people(1), tmp_path / "second")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "memory.json"))
    assert any("is not remembered" in note for note in published(people(1), tmp_path / "third").warnings)
    monkeypatch.setenv(VARIABLE, "")
    assert not any("is not remembered" in note for note in published(people(1), tmp_path / "fourth").warnings)


def test_runs_at_once_are_all_remembered(tmp_path: Path, memory: Path) -> None:
    """Both read the file before one has written it."""

    def meanwhile(_: Any) -> None:
        published(people(2), tmp_path / "other")

    published(people(1), tmp_path / "first", judge=meanwhile)
    assert sorted(Path(look.out).name for look in Memory.read(memory).looks) == ["first", "other"]


def test_people_who_are_made_up_are_not_remembered(tmp_path: Path, memory: Path) -> None:
    assert CliRunner().invoke(app, ["demo", "--rows", "2000", "--out", str(tmp_path / "demo"), "-q"]).exit_code == 0
    assert not memory.exists()


def test_the_command_says_where_and_asks_to_decide(tmp_path: Path, memory: Path) -> None:
    pa_csv.write_csv(people(1), tmp_path / "people.csv")
    words = ["publish", str(tmp_path / "people.csv"), "--sensitive", "ill", "--rho1", "1/5", "--rho2", "3/5"]
    words += ["--mechanism", "uniform", "--accept", "rows alone=made up"]
    first = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "first")])
    assert f"remembered in {memory}" in first.stderr
    second = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "second")])
    assert second.exit_code == 3
    assert "These people were published before: 'release' of" in second.stdout
    third = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "third"), "--accept", "second look=other people"])
    assert third.exit_code == first.exit_code
