"""Nothing that is not ours is destroyed: release folders and files that are written."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import deniable as dn
from deniable.core.errors import OutputError
from deniable.release.folder import LOCK, clear_away, new_folder, write_file


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({"sex": rng.choice(["F", "M"], 400), "job": rng.choice(list("abcd"), 400)})


def publish(table: object, out: Path, **options: object) -> dn.Release:
    return dn.publish(table, sensitive="job", privacy=dn.Privacy(rho2="2/3"), mechanism="uniform", out=out, **options)


def test_a_release_is_overwritten_only_when_asked_and_only_if_it_is_nothing_else(
    table: pa.Table, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    publish(table, out)
    with pytest.raises(OutputError, match="exists already"):
        publish(table, out)
    publish(table, out, overwrite=True)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt"):
        publish(table, out, overwrite=True)
    assert (out / "notes.txt").read_text() == "mine"
    assert dn.verify(out).holds


@pytest.mark.parametrize("name", ["manifest.json", "data.csv"])
def test_a_folder_that_is_no_release_is_never_overwritten(table: pa.Table, tmp_path: Path, name: str) -> None:
    out = tmp_path / "r"
    out.mkdir()
    (out / name).write_text("{}")
    (out / "key").write_text("secret")
    with pytest.raises(OutputError):
        publish(table, out, overwrite=True)
    assert sorted(path.name for path in out.iterdir()) == sorted([name, "key"])


def test_an_input_in_the_output_is_refused(table: pa.Table, tmp_path: Path) -> None:
    source = tmp_path / "r" / "data.csv"
    source.parent.mkdir()
    pa_csv.write_csv(table, source)
    for named in (source, str(tmp_path / "r" / "*.csv"), [source]):
        with pytest.raises(OutputError, match="input"):
            publish(named, source.parent, overwrite=True)
    assert source.exists()


def test_what_appears_during_the_run_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "r"

    def run() -> None:
        with new_folder(out, overwrite=False) as partial:
            (partial / "manifest.json").write_text("{}")
            out.mkdir()
            (out / "theirs").write_text("x")

    with pytest.raises(OutputError, match=r"exists already|appeared"):
        run()
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert (out / "theirs").read_text() == "x"


def test_two_runs_to_one_new_folder_give_one_release_and_one_refusal(tmp_path: Path) -> None:
    out, ready, results = tmp_path / "r", threading.Barrier(2), []

    def run(number: int) -> None:
        try:
            with new_folder(out, overwrite=False) as partial:
                (partial / "manifest.json").write_text(str(number))
                ready.wait(10)
            results.append(number)
        except OutputError:
            results.append(None)

    threads = [threading.Thread(target=run, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for number in results if number is not None]
    assert (out / "manifest.json").read_text() == str(winner)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_a_release_that_appears_at_the_last_moment_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there after the last look, and before the rename."""
    out = tmp_path / "r"

    def looked(*_: object) -> None:
        out.mkdir()
        (out / "manifest.json").write_text("of another run")

    def write() -> None:
        with new_folder(out, overwrite=False) as partial:
            (partial / "manifest.json").write_text("mine")
            monkeypatch.setattr("deniable.release.folder._require_room", looked)

    with pytest.raises(OutputError, match="appeared while it was written"):
        write()
    assert (out / "manifest.json").read_text() == "of another run"
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_leftovers_of_dead_runs_go_and_those_of_live_ones_stay(tmp_path: Path) -> None:
    dead, live = (tmp_path / f".r.partial-{name}" for name in ("dead", "live"))
    for folder in (dead, live):
        folder.mkdir()
        (folder / LOCK).touch()
    with open(live / LOCK) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with new_folder(tmp_path / "r", overwrite=False) as partial:
            (partial / "manifest.json").write_text("{}")
        assert not dead.exists(), "a new folder has its lock when it is held: a moment old, it is as dead"
        assert live.exists()


def test_a_run_holds_its_lock_until_everything_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, seen = tmp_path / "r", []

    def looked(_: int) -> None:
        clear_away(out)  # as another run does
        seen.append(len(list(tmp_path.glob(".r.partial-*"))))

    monkeypatch.setattr("deniable.release.folder.os.fsync", looked)
    with new_folder(out, overwrite=False) as partial:
        looked(0)
        (partial / "manifest.json").write_text("{}")
        (partial / "data.parquet").write_text("")
    assert seen == [1] * 4  # the lock is brought to the disk as well
    assert out.exists()


def test_a_release_that_another_run_puts_back_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".r.replaced-0").mkdir()

    def gone(path: Path, to: Path) -> Path:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Path, "rename", gone)
    clear_away(tmp_path / "r")
    assert [path.name for path in tmp_path.iterdir()] == [".r.replaced-0"]


def test_a_release_that_was_being_replaced_comes_back(tmp_path: Path) -> None:
    old = tmp_path / ".r.replaced-0"
    old.mkdir()
    (old / "manifest.json").write_text("old")
    with pytest.raises(OutputError, match="exists already"), new_folder(tmp_path / "r", overwrite=False):
        pass
    assert (tmp_path / "r" / "manifest.json").read_text() == "old"
    assert not old.exists()


def test_a_file_is_written_whole_and_never_over_an_input(tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    source.write_text("a,b")
    link = tmp_path / "link.csv"
    link.symlink_to(source)
    for out in (source, link, tmp_path / "x" / ".." / "people.csv"):
        with pytest.raises(OutputError, match="input"):
            write_file(out, "report", inputs=[source])
    assert source.read_text() == "a,b"
    with pytest.raises(OutputError, match="folder"):
        write_file(tmp_path, "report")
    write_file(tmp_path / "report.txt", "one", private=True)
    assert (tmp_path / "report.txt").stat().st_mode & 0o777 == 0o600
    target = tmp_path / "elsewhere.txt"
    target.write_text("old")
    alias = tmp_path / "alias.txt"
    alias.symlink_to(target)
    write_file(alias, "new")
    assert alias.is_symlink()
    assert target.read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "alias.txt", "elsewhere.txt", "link.csv", "people.csv", "report.txt"
    ]  # fmt: skip


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "report.txt"
    out.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="disk is full"):
        write_file(out, "new")
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_two_renames_waits_until_the_new_release_is_in_place(
    number: int, table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "r"
    publish(table, out)
    old, rename, heard = (out / "manifest.json").read_text(), Path.rename, []

    def hear(given: int, _: object) -> None:
        heard.append((given, (out / "manifest.json").read_text() != old))
        raise KeyboardInterrupt

    def interrupted(path: Path, to: Path) -> Path:
        moved = rename(path, to)
        if path == out:
            assert not out.exists()
            signal.raise_signal(number)
        return moved

    monkeypatch.setattr(Path, "rename", interrupted)
    before = signal.signal(number, hear)
    try:
        with pytest.raises(KeyboardInterrupt):
            publish(table, out, overwrite=True)
        assert signal.getsignal(number) is hear
    finally:
        signal.signal(number, before)
    assert heard == [(number, True)]
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert dn.verify(out).holds


SILENT = """
import signal, sys
from pathlib import Path
import pyarrow as pa
import deniable as dn
out, number, fails = Path(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3
how = dict(sensitive="job", privacy="2/3", mechanism="uniform", out=out)
table = pa.table({"job": list("abcd") * 100})
dn.publish(table, **how)
rename = Path.rename
def interrupted(path, to):
    if fails and to == out and ".partial-" in path.name:
        raise OSError(5, "Input/output error")
    moved = rename(path, to)
    if path == out:
        signal.raise_signal(number)
    return moved
Path.rename = interrupted
dn.publish(table, overwrite=True, **how)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_nobody_listens_to_ends_a_run_after_the_second_rename(number: int, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SILENT, tmp_path / "r", str(int(number))], check=False)
    assert done.returncode == -number
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert dn.verify(tmp_path / "r").holds


def test_a_signal_that_waits_is_heard_where_the_rename_fails(tmp_path: Path) -> None:
    words = [sys.executable, "-c", SILENT, tmp_path / "r", str(int(signal.SIGTERM)), "fails"]
    assert subprocess.run(words, check=False).returncode == -signal.SIGTERM
