"""What fuzzing found in what owners do: series, recodings, risk, samples, exports and machines."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deniable as dn
from deniable.cli import doctor
from deniable.core.errors import ColumnError, ManifestError, OptionError, OutputError, QuestionError
from deniable.spark import tasks as session
from fuzz import running
from fuzz.releases import people

KEY = bytes(range(32))


def publish(table: pa.Table, home: Path) -> dn.Release:
    table = table.append_column("who", pa.array([f"person {number}" for number in range(table.num_rows)]))
    return dn.publish(
        table,
        sensitive="disease",
        privacy=dn.Privacy(rho2="3/4"),
        mechanism="designed",
        row_id="who",
        series=home / "book.series",
    )


def test_nobody_is_left_in_a_series(tmp_path: Path) -> None:
    publish(people(300), tmp_path)
    assert publish(people(300).slice(0, 0), tmp_path).manifest.rows == 0
    assert publish(people(300), tmp_path).manifest.rows == 300


@pytest.mark.parametrize(
    ("place", "value"),
    [(("plan", "guarantee"), {}), (("plan", "rows"), [[]]), (("changes",), 9), (("plan", "parts", 0, "domain"), [])],
)
def test_a_book_that_was_edited_is_not_believed(tmp_path: Path, place: tuple[Any, ...], value: object) -> None:
    """It failed where the plan was used, or published by a plan that nobody made."""
    publish(people(300), tmp_path)
    book = tmp_path / "book.series"
    raw = json.loads(book.read_text())
    inner = raw
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    book.write_text(json.dumps(raw))
    before = book.read_bytes()
    with pytest.raises(ManifestError, match="changed or damaged"):
        publish(people(300), tmp_path)
    assert book.read_bytes() == before


def test_a_series_of_the_first_format_goes_on_and_is_sealed(tmp_path: Path) -> None:
    first = publish(people(300), tmp_path)
    book = tmp_path / "book.series"
    raw = json.loads(book.read_text())
    del raw["digest"]
    book.write_text(json.dumps({**raw, "format": 1}))
    rows = [sorted(map(str, release.table.to_pylist())) for release in (first, publish(people(300), tmp_path))]
    assert rows[0] == rows[1]
    assert json.loads(book.read_text())["digest"]


def test_who_is_who_is_not_said_by_half_floats(tmp_path: Path) -> None:
    who = pa.array([number / 2 for number in range(300)], pa.float16())
    with pytest.raises(ColumnError, match="cannot name people or rows"):
        dn.publish(
            people(300).append_column("who", who),
            sensitive="disease",
            privacy=dn.Privacy(rho2="3/4"),
            mechanism="designed",
            person="who",
            series=tmp_path / "book.series",
        )
    assert not (tmp_path / "book.series").exists()


@pytest.mark.parametrize("recode", [["bands:10"], 3, [dn.bands(10)]])
def test_recodings_without_columns_are_refused(recode: Any) -> None:
    with pytest.raises(OptionError, match="names no columns"):
        dn.risk(people(50), "age", recode=recode)


@pytest.mark.parametrize("k", [2.5, "5", [], True])
def test_groups_are_of_whole_numbers_of_rows(k: Any) -> None:
    with pytest.raises(OptionError, match="no whole number"):
        dn.risk(people(50), "age", suppress_to_k=k)


def test_what_cannot_be_compared_says_nothing_about_who_stands_out() -> None:
    documents = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}'] * 50))
    with pytest.raises(ColumnError, match="cannot be compared"):
        dn.risk(people(50).append_column("document", documents), ["age", "document"])


def test_texts_of_a_sample_are_not_added_up() -> None:
    table = people(300).append_column("weight", pa.array([1.0, 2.5] * 150))
    release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="9/10"), mechanism="uniform", seed=1)
    for ask in (release.survey("weight").sum, release.survey("weight").mean):
        with pytest.raises(QuestionError, match="only numbers"):
            ask("disease")


@pytest.mark.parametrize("confidence", ["0.9", 0, 1, True, float("nan"), None])
def test_a_sample_is_asked_with_a_confidence(confidence: Any) -> None:
    table = people(300).append_column("weight", pa.array([1.0, 2.5] * 150))
    release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="9/10"), mechanism="uniform", key=KEY)
    with pytest.raises(OptionError, match="confidence"):
        release.survey("weight").count({"disease": "a"}, confidence=confidence)


def test_almost_certain_is_wide_and_no_accident() -> None:
    """(1 + confidence) / 2 was rounded to 1, whose quantile is infinite, and the interval ended at the estimate."""
    table = people(300).append_column("weight", pa.array([1.0, 2.5] * 150))
    release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="9/10"), mechanism="uniform", key=KEY)
    for ask in (release.count, release.survey("weight").count):
        usual, certain = (ask({"disease": "a"}, confidence=confidence) for confidence in (0.999999, 1 - 1e-16))
        assert certain.low <= usual.low < usual.value < usual.high <= certain.high


def test_nanoseconds_are_no_reason_not_to_export(tmp_path: Path) -> None:
    pytest.importorskip("pyreadstat")
    import pyreadstat

    moments = pa.array([1_700_000_000_000_000_001] * 50, pa.int64()).view("timestamp[ns]")
    table = people(50).append_column("moment", moments)
    release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="9/10"), mechanism="uniform")
    written = pyreadstat.read_sav(release.export(tmp_path / "rows.sav"))[0]
    assert written["moment"][0] == datetime(2023, 11, 14, 22, 13, 20)


@pytest.mark.parametrize("day", [-(2**31), 2**31 - 1])
def test_dates_of_no_calendar_are_not_exported(tmp_path: Path, day: int) -> None:
    pytest.importorskip("pyreadstat")
    table = people(50).append_column("day", pa.array([0, day] * 25, pa.int32()).view("date32[day]"))
    release = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="9/10"), mechanism="uniform", key=KEY)
    with pytest.raises(OutputError, match="after 9999"):
        release.export(tmp_path / "rows.sav")
    assert not (tmp_path / "rows.sav").exists()


@pytest.mark.parametrize(
    "script", ["printf '\\377\\376 17.0'", "printf '\\377\\376 version \"17.0\"' >&2", "head -c 9000000 /dev/zero >&2"]
)
def test_programs_that_speak_in_bytes_are_understood_as_far_as_they_can_be(tmp_path, monkeypatch, script: str) -> None:
    for name in ("java", "Rscript"):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert session.java_version() in (None, 17)
    assert next(one for one in doctor.findings() if one.what == "R").found in ("17.0", "unknown")


def test_java_that_is_no_program_or_hangs_is_no_java(tmp_path, monkeypatch) -> None:
    java = tmp_path / "java"
    java.write_text("#!/nowhere\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert session.java_version() is None
    java.write_text("#!/bin/sh\nwhile :; do :; done\n")
    monkeypatch.setattr(session, "_ANSWER_SECONDS", 0.2)
    assert session.java_version() is None


def test_waiting_is_a_hang_and_a_busy_machine_is_none() -> None:
    ours, theirs = Pipe(duplex=False)
    begin = time.monotonic()
    assert running._hangs(ours, os.getpid(), 0.5)
    assert time.monotonic() - begin >= 2  # this process waits, and four times as long by the clock is waited for it
    theirs.send("a word")
    assert not running._hangs(ours, os.getpid(), 0.5)
