"""A publication that is killed is gone on with: the same release byte for byte, nothing original in what is left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.errors import OptionError, OutputError
from deniable.engines.batch import shuffling

ROWS, PART, BATCH = 40_000, 9_000, 2_000
MARK = "person-of-the-table-"
KINDS: dict[str, dict[str, Any]] = {
    "uniform": {"mechanism": "uniform", "privacy": dn.Privacy(rho2="1/2"), "missing": "exempt"},
    "small-domain": {"mechanism": "small-domain", "privacy": dn.Privacy("1/3", "3/5")},
    "lineup": {"mechanism": "lineup", "privacy": dn.Privacy(rho2="3/5")},
    "decoys": {"mechanism": dn.mechanisms.Decoys(c=2)},
    "named rows": {"mechanism": "uniform", "privacy": dn.Privacy(rho2="1/2"), "row_id": "name"},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shuffling, "PART_ROWS", PART)
    rng = np.random.default_rng(8)
    ill = pa.array(rng.choice(list("abcdef"), ROWS, p=np.arange(6, 0, -1) / 21), mask=rng.random(ROWS) < 0.02)
    names = [f"{MARK}{number}" for number in range(ROWS)]
    town = np.array(["north", "south"])[rng.integers(0, 2, ROWS)]
    table = pa.table({"name": names, "age": rng.integers(0, 90, ROWS), "town": town, "ill": ill})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "key").write_bytes(bytes(range(32)))
    (tmp_path / "key").chmod(0o600)
    return tmp_path


def publish(home: Path, out: str, kind: str = "uniform", **options: Any) -> dn.Release:
    given = {"sensitive": "ill", "key_file": home / "key", "batch_rows": BATCH, "again": True, **KINDS[kind], **options}
    if "row_id" not in given:
        given["drop"] = ["name"]
    return dn.publish(given.pop("table", home / "t.parquet"), out=home / out, **given)


def interrupted(home: Path, out: str, at: int, kind: str = "uniform", **options: Any) -> Path:
    """What is left of a run that is stopped when so many rows were read; the folder of its parts."""

    def stop(done: int, total: int | None, what: str) -> None:
        if what == "perturbing" and done >= at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(home, out, kind, resume=True, progress=stop, **options)
    return home / f".{out}.partial-resumed" / "kept"


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_goes_on_ends_with_the_same_release(home: Path, kind: str) -> None:
    publish(home, "plain", kind)
    whole = {path.name: path.read_bytes() for path in (home / "plain").iterdir()}
    for number, at in enumerate((1, 15_000, 31_000, ROWS)):
        kept = interrupted(home, f"r{number}", at, kind)
        finished = len((kept / "journal").read_text().splitlines()) - 1 if kept.exists() else 0
        steps: list[str] = []
        release = publish(
            home,
            f"r{number}",
            kind,
            resume=True,
            progress=lambda done, total, what, steps=steps: steps.append(what),
        )
        assert {path.name: path.read_bytes() for path in (home / f"r{number}").iterdir()} == whole
        assert steps.count("perturbing") <= (ROWS - finished * PART) / BATCH + 1
        said = [words for words in release.warnings if "Going on" in words]
        assert bool(said) == bool(finished)
        assert release.verify().holds
    assert sorted(path.name for path in home.iterdir()) == [
        "key",
        "key.ledger",
        "plain",
        "r0",
        "r1",
        "r2",
        "r3",
        "t.parquet",
    ]


def test_where_every_part_is_finished_nothing_is_perturbed_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(home, "plain")
    with monkeypatch.context() as broken:
        broken.setattr(shuffling, "_sorted_files", lambda paths: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            publish(home, "r", resume=True)
    steps: list[str] = []
    publish(home, "r", resume=True, progress=lambda done, total, what: steps.append(what))
    assert "perturbing" not in steps
    assert (home / "r" / "data.parquet").read_bytes() == (home / "plain" / "data.parquet").read_bytes()


KILLED = """
import os, signal, sys
from pathlib import Path
import deniable as dn
from deniable.engines.batch import shuffling

shuffling.PART_ROWS = {part}
def stop(done, total, what):
    if what == "perturbing" and done >= {at}:
        os.kill(os.getpid(), signal.SIGKILL)
dn.publish({table!r}, sensitive="ill", drop=["name"], key_file={key!r}, out={out!r}, batch_rows={batch}, resume=True,
    mechanism="uniform", privacy=dn.Privacy(rho2="1/2"), missing="exempt", again=True, progress=stop)
"""


@pytest.mark.parametrize("at", [22_000, 38_000])
def test_kill_9_leaves_finished_parts_and_nothing_original(home: Path, at: int) -> None:
    publish(home, "plain")
    places = {"table": str(home / "t.parquet"), "key": str(home / "key"), "out": str(home / "r")}
    code = KILLED.format(part=PART, at=at, batch=BATCH, **places)
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False, timeout=120)
    assert run.returncode == -signal.SIGKILL
    left = home / ".r.partial-resumed"
    assert left.stat().st_mode & 0o777 == 0o700
    files = [path for path in left.rglob("*") if path.is_file()]
    for path in files:
        content = path.read_bytes()
        assert MARK.encode() not in content
        assert bytes(range(32)) not in content
        assert bytes(range(32)).hex().encode() not in content
    lines = [json.loads(line) for line in (left / "kept" / "journal").read_text().splitlines()]
    assert [sorted(line) for line in lines] == [["buckets", "job", "key"], *[["files", "rows"]] * (len(lines) - 1)]
    assert len(lines) > 1
    release = publish(home, "r", resume=True)
    assert (home / "r" / "data.parquet").read_bytes() == (home / "plain" / "data.parquet").read_bytes()
    assert any("Going on after row" in words for words in release.warnings)
    assert not left.exists()


def said(home: Path, out: str, **options: Any) -> str:
    release = publish(home, out, resume=True, **options)
    kept = [words for words in release.warnings if "earlier run" in words]
    publish(home, f"{out}-plain", **options)
    assert (home / out / "data.parquet").read_bytes() == (home / f"{out}-plain" / "data.parquet").read_bytes()
    return " ".join(kept)


def test_what_does_not_match_is_started_anew_and_says_why(home: Path) -> None:
    other = home / "other"
    other.write_bytes(bytes(32))
    other.chmod(0o600)
    interrupted(home, "a", 25_000)
    assert "another key" in said(home, "a", key_file=other)
    interrupted(home, "b", 25_000)
    assert "other options" in said(home, "b", privacy=dn.Privacy(rho2="2/5"))
    changed = pq.read_table(home / "t.parquet")
    changed = changed.set_column(1, "age", pa.array(np.roll(changed["age"].to_numpy(), 1)))
    interrupted(home, "c", 25_000)
    assert "another table" in said(home, "c", table=changed)


def test_what_is_damaged_is_made_again(home: Path) -> None:
    kept = interrupted(home, "a", 35_000)
    file = next((kept / "part-00001").iterdir())
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    heard = said(home, "a")
    assert "Part 2 of the earlier run is damaged" in heard
    assert "with 1 part of" in heard
    kept = interrupted(home, "b", 35_000)
    (kept / "journal").write_text("[]\n")
    assert "journal is damaged" in said(home, "b")
    kept = interrupted(home, "c", 35_000)
    with (kept / "journal").open("a") as journal:
        journal.write('{"rows": 36')  # cut off in mid-write
    assert "damaged" not in said(home, "c")


def test_what_someone_else_put_where_parts_are_kept_is_neither_emptied_nor_written_to(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of that folder can be guessed: a link would have its target emptied, and a folder could be read."""
    (home / "precious").mkdir()
    (home / "precious" / "diary").write_text("mine")
    left = home / ".r.partial-resumed"
    left.symlink_to(home / "precious")
    with pytest.raises(OutputError, match="stands where the parts of a killed run are kept"):
        publish(home, "r", resume=True)
    assert (home / "precious" / "diary").read_text() == "mine"
    left.unlink()
    left.mkdir()
    with monkeypatch.context() as other:
        other.setattr("os.geteuid", lambda: 4711)
        with pytest.raises(OutputError, match="someone else's"):
            publish(home, "r", resume=True)
    assert list(left.iterdir()) == []
    left.chmod(0o777)  # one's own, but open to others: it is closed before anything is written
    interrupted(home, "r", PART * 3)
    assert left.stat().st_mode & 0o777 == 0o700


def test_a_run_without_resume_removes_what_is_left(home: Path) -> None:
    kept = interrupted(home, "a", 25_000)
    assert kept.exists()
    publish(home, "a")
    assert not kept.parent.exists()


def test_two_runs_do_not_go_on_with_the_same_parts(home: Path) -> None:
    def again(done: int, total: int | None, what: str) -> None:
        if what == "perturbing" and done > 25_000:
            with pytest.raises(OutputError, match="Another run is writing"):
                publish(home, "a", resume=True, key_file=None, key=bytes(range(32)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(home, "a", resume=True, progress=again)
    assert (home / ".a.partial-resumed" / "kept" / "journal").exists()


def test_what_cannot_be_gone_on_with_is_refused(home: Path) -> None:
    table = home / "t.parquet"
    given: dict[str, Any] = {"sensitive": "ill", "drop": ["name"], "resume": True, "privacy": dn.Privacy(rho2="1/2")}
    for options, words in (
        ({"out": home / "a"}, "key_file=FILE"),
        ({"key": bytes(32)}, "out=FOLDER"),
        ({"out": home / "a", "key": bytes(32), "shuffle": False}, "leave out shuffle=False"),
    ):
        with pytest.raises(OptionError, match=words):
            dn.publish(table, **{**given, **options})
    assert not [path for path in home.iterdir() if path.name.startswith(".a")]
