"""What fuzzing found, case by case."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.errors import DeniableError, ManifestError, OutputError
from deniable.core.text import small_bytes
from deniable.planning.attackers import LineUpRows, Views
from deniable.release.folder import write_file

VALUES = list("abcdefgh")


def people(rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(1)
    shares = np.array([82, 80, 69, 54, 48, 36, 20, 11]) / 400
    return pa.table({"age": rng.integers(0, 5, rows), "ill": rng.choice(VALUES, rows, p=shares)})


@pytest.mark.parametrize(("rho2", "size"), [("9/10", 1), ("1/2", None)])
def test_chances_of_line_ups_are_chances_in_sets_of_one_too(rho2: str, size: int | None) -> None:
    """64 bits were too few for sets of a single value: an informed attacker weighed by negative chances."""
    release = dn.publish(people(), sensitive="ill", privacy=dn.Privacy(rho2=rho2), mechanism="lineup", key=bytes(32))
    design = release.manifest.parts[0].lineups
    assert design is not None
    assert size is None or design.size == size
    chances = LineUpRows(design).likelihood(np.arange(len(design.sets.members)))
    assert chances.min() >= 0
    assert chances.sum(0) == pytest.approx(np.ones(8))
    assert dn.audit(people(), release).informed


def test_rows_that_no_view_shows_tell_nothing() -> None:
    views = Views(np.array([[0.5, 0.0, 0.25], [0.5, 0.0, 0.75]]))
    shown = views.draw(np.array([1, 0, 1, 2]), np.random.default_rng(1))
    assert (shown[[0, 2]] == -1).all()
    assert (shown[[1, 3]] >= 0).all()
    beliefs = np.array([[0.2, 0.3, 0.5]])
    own, right = views.judged(beliefs, np.zeros(4, np.int64), shown, np.array([1, 0, 1, 2]))
    assert own[[0, 2]].tolist() == [0.3, 0.3]
    assert not right[[0, 2]].any()


@pytest.mark.parametrize(
    ("field", "entry"),
    [("above", 99), ("exempt", -1), ("per_value", [8, "1/4", "1/2"]), ("loose", [0, 99]), ("loose", [1, 0])],
)
def test_a_promise_about_values_that_are_not_there_is_refused(tmp_path: Path, field: str, entry: object) -> None:
    dn.publish(people(), sensitive="ill", privacy=dn.Privacy(rho2="9/10"), mechanism="designed", out=tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    raw = json.loads(path.read_text())
    raw["parts"][0]["promise"][field] = [entry]
    path.write_text(json.dumps(raw))
    with pytest.raises(ManifestError, match="a promise names"):
        dn.open_release(tmp_path / "r")


def test_a_promise_about_single_values_that_a_column_has_not_is_refused(tmp_path: Path) -> None:
    """A place below the number of combinations, and beyond the values of the column, ended in an error of Python."""
    rows = pa.table({"ill": ["a", "b", "c"] * 40, "sex": ["F", "M"] * 60})
    dn.publish(rows, sensitive=["ill", "sex"], mechanism="redraw", out=tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    raw = json.loads(path.read_text())
    raw["parts"][0]["promise"]["loose"] = [[1, 2]]
    path.write_text(json.dumps(raw))
    with pytest.raises(DeniableError, match="a single value that is not there"):
        dn.verify(tmp_path / "r")


def test_an_audit_of_a_table_without_rows_is_refused() -> None:
    """It said that the requirement holds, of nobody."""
    options = {"sensitive": "ill", "privacy": dn.Privacy(rho2="9/10"), "mechanism": "small-domain"}
    release = dn.publish(people(4_000), **options, key=bytes(32))
    with pytest.raises(DeniableError, match="has no rows"):
        dn.audit(people().slice(0, 0), release)


def test_a_number_beyond_all_tables_is_refused_in_a_condition() -> None:
    release = dn.publish(people(), sensitive="ill", privacy=dn.Privacy(rho2="9/10"), key=bytes(32), mechanism="uniform")
    with pytest.raises(DeniableError, match="cannot be compared with values of type int64"):
        release.sql("SELECT COUNT(*) AS n FROM release WHERE age < 99999999999999999999")


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeniableError, match="holds more than"):
        small_bytes(Path("/dev/zero"), 2**20)
    (tmp_path / "t").write_bytes(b"x" * 11)
    assert small_bytes(tmp_path / "t", 11) == b"x" * 11
    with pytest.raises(DeniableError, match="holds more than"):
        small_bytes(tmp_path / "t", 10)


def test_a_parquet_file_with_names_that_are_no_text_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a" * 20: [1, 2]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"a" * 20, b"a" * 10 + b"\xf3" + b"a" * 9))
    with pytest.raises(DeniableError, match="damaged or cut short"):
        dn.publish(str(path), sensitive="a", privacy=dn.Privacy(rho2="9/10"), mechanism="uniform")


def test_more_draws_than_anyone_can_wait_for_are_refused() -> None:
    from deniable.lab.experiments import run_experiment
    from deniable.planning.pools import CodedTable, sdr_pool

    pool = sdr_pool(CodedTable.of(people(), "ill"), conditions=4)
    with pytest.raises(DeniableError, match="at most 100,000"):
        run_experiment(pool, [], draws=10**20)


def test_a_page_never_replaces_a_table(tmp_path: Path) -> None:
    """`report release --out people.csv` did: the table was no input of that command."""
    path = tmp_path / "people.csv"
    path.write_text("the original table")
    with pytest.raises(OutputError, match="is a table"):
        write_file(path, "a page")
    assert path.read_text() == "the original table"
    write_file(path, "another table", table=True)
    assert path.read_text() == "another table"


def test_an_expression_without_its_end_is_refused() -> None:
    release = dn.publish(people(), sensitive="ill", privacy=dn.Privacy(rho2="9/10"), key=bytes(32), mechanism="uniform")
    with pytest.raises(DeniableError):
        release.sql("SELECT MIN( AS n FROM release WHERE age BETWEEN 20 AND 40 OR NOT (age = 3)")


def test_a_manifest_without_its_file_fails_in_words(tmp_path: Path) -> None:
    out = tmp_path / "r"
    dn.publish(people(), sensitive="ill", privacy=dn.Privacy(rho2="9/10"), mechanism="uniform", out=out)
    path = out / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "data": None}))
    with pytest.raises(dn.DeniableError, match=r"names no file|which its manifest"):
        _ = dn.open_release(out).table


@pytest.mark.parametrize("mechanism", ["uniform", "lineup"])
def test_whole_numbers_with_a_point_are_no_counts(tmp_path: Path, mechanism: str) -> None:
    out = tmp_path / "r"
    dn.publish(people(), sensitive="ill", privacy=dn.Privacy(rho2="9/10"), mechanism=mechanism, out=out)
    path = out / "manifest.json"
    raw = json.loads(path.read_text())
    raw["parts"][0]["marginal"]["counts"][0] = 3.0
    path.write_text(json.dumps(raw))
    with pytest.raises(DeniableError, match="not of type integer"):
        dn.verify(out)


def test_half_floats_are_public_values_of_an_audit() -> None:
    halves = pa.array(np.arange(60, dtype=np.float16) / np.float16(2))
    table = pa.table({"half": halves, "v": ["a", "b", "c"] * 20})
    release = dn.publish(table, sensitive="v", privacy=dn.Privacy(rho2="2/3"), mechanism="uniform")
    assert dn.audit(table, release).to_dict()


def test_in_goes_with_values_or_a_table() -> None:
    release = dn.publish(people(), sensitive="ill", privacy="9/10", mechanism="uniform", key=bytes(32))
    with pytest.raises(DeniableError, match="not understood"):
        release.sql("SELECT SUM(age IN age) AS n FROM release")


NUMBERS = [f'"{number}"' for number in range(400)]


@pytest.mark.parametrize(
    "named",
    [
        pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(NUMBERS)),
        pa.array([{}] * 400, pa.struct([])),
        pa.array([{"number": text} for text in NUMBERS]),
    ],
    ids=["json", "empty", "struct"],
)
def test_rows_are_not_named_by_values_without_an_order(named: pa.Array) -> None:
    table = people().append_column("who", named)
    with pytest.raises(DeniableError, match=r"'who'.*cannot name people or rows"):
        dn.publish(
            table,
            sensitive="ill",
            privacy=dn.Privacy(rho2="9/10"),
            mechanism="designed",
            row_id="who",
            key=bytes(32),
        )
