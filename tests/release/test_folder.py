"""Nothing that is not ours is destroyed: release folders and files that are written."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import deniable as dn
from deniable.core.errors import OutputError
from deniable.release.commit import Commit
from deniable.release.folder import release_folder, write_file


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
    with pytest.raises(dn.VerificationError, match=r"notes\.txt"):
        dn.verify(out)
    (out / "notes.txt").unlink()
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


def write_release(
    out: Path, text: str, during: Callable[[], object] = lambda: None, *, overwrite: bool = False
) -> None:
    with Commit() as commit:
        folder = release_folder(commit, out, overwrite)
        (folder / "manifest.json").write_text(text)
        during()


def test_what_appears_during_the_run_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "r"

    def theirs() -> None:
        out.mkdir()
        (out / "theirs").write_text("x")

    with pytest.raises(OutputError, match="exists already"):
        write_release(out, "{}", theirs)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert (out / "theirs").read_text() == "x"


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_release_that_appears_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    """It is there after the last look, and before the rename."""
    out = tmp_path / "r"
    if not exchanges:
        monkeypatch.setattr("deniable.release.commit._renamed", lambda *_: False)

    def looked() -> None:
        monkeypatch.setattr("os.path.lexists", lambda _: False)
        out.mkdir()
        (out / "manifest.json").write_text("of another run")

    def write() -> None:
        with Commit() as commit:
            (commit.folder(out, looked) / "manifest.json").write_text("mine")

    with pytest.raises(OutputError):
        write()
    monkeypatch.undo()
    assert (out / "manifest.json").read_text() == "of another run"
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_two_runs_to_one_new_folder_give_one_release_and_one_refusal(tmp_path: Path) -> None:
    out = tmp_path / "r"

    def second() -> None:
        with pytest.raises(OutputError, match="Another run is writing"):
            write_release(out, "2")

    write_release(out, "1", second)
    assert (out / "manifest.json").read_text() == "1"
    with pytest.raises(OutputError, match="exists already"):
        write_release(out, "3")
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_leftovers_of_dead_runs_go_at_once_and_those_of_live_ones_stay(tmp_path: Path) -> None:
    """Also of other targets in the folder; a stranger's folder of such a name is nobody's leftover."""
    token = "0123456789abcdef"
    dead, others, live, strange = (tmp_path / f".{name}.{token}" for name in ("r", "page.html", "live", "strange"))
    for folder in (dead, others, live):
        folder.mkdir(mode=0o700)
        (folder / "new").write_text("rows")
    strange.mkdir(mode=0o755)
    with open(tmp_path / ".live.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write_release(tmp_path / "r", "{}")
    assert {path.name for path in tmp_path.iterdir()} == {"r", live.name, ".live.lock", strange.name}


def test_a_release_that_was_being_replaced_comes_back(tmp_path: Path) -> None:
    """Where a system cannot exchange two folders, a run may die when the old one is away and the new one not there."""
    left = tmp_path / ".r.0123456789abcdef"
    for name in ("old", "new"):
        (left / name).mkdir(parents=True)
        (left / name / "manifest.json").write_text(name)
    left.chmod(0o700)
    with pytest.raises(OutputError, match="exists already"):
        write_release(tmp_path / "r", "{}")
    assert (tmp_path / "r" / "manifest.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_a_release_is_there_at_every_moment_while_it_is_replaced(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, seen = tmp_path / "r", []
    publish(table, out)
    renames = {name: getattr(os, name) for name in ("rename", "replace")}
    for name, function in renames.items():
        monkeypatch.setattr(os, name, lambda *paths, _to=function: (_to(*paths), seen.append(out.exists())))
    publish(table, out, overwrite=True)
    assert all(seen), "a rename at which there is no release"


def test_what_cannot_be_switched_is_undone(tmp_path: Path) -> None:
    """The last of three fails: the first two are as they were."""
    book, key, page = tmp_path / "book", tmp_path / "key", tmp_path / "page"
    book.write_text("old")

    def write() -> None:
        with Commit() as commit:
            commit.write(book, "new")
            commit.write(key, "secret", private=True)
            commit.write(page, "new")
            page.mkdir()

    with pytest.raises(OutputError):
        write()
    assert book.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"book", "page"}


def test_no_record_of_a_stranger_is_followed(tmp_path: Path) -> None:
    """Whoever may write to a shared folder could name any file of its owner in a record."""
    precious = tmp_path / "mine" / "precious"
    precious.parent.mkdir()
    precious.write_text("x")
    token, shared = "0123456789abcdef", tmp_path / "shared"
    left = shared / f".r.{token}"
    (left / "new").mkdir(parents=True)
    left.chmod(0o700)
    named = precious.parent / f".precious.{token}"
    steps = [[str(named), precious.stat().st_ino], [str(left), (left / "new").stat().st_ino]]
    (left / "intent").write_text(json.dumps(steps))
    os.chmod(left, 0o755)
    write_release(shared / "r", "{}")
    assert precious.read_text() == "x"
    assert left.exists()


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


SILENT = """
import signal, sys
from pathlib import Path
import pyarrow as pa
import deniable as dn
from deniable.release import commit
out, number, fails = Path(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3
how = dict(sensitive="job", privacy="2/3", mechanism="uniform", out=out)
for usual in (signal.SIGTERM, signal.SIGHUP):  # whoever runs the tests may ignore them, as nohup does
    signal.signal(usual, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
table = pa.table({"job": list("abcd") * 100})
dn.publish(table, **how)
renamed = commit._renamed
def interrupted(old, new, kind):
    signal.raise_signal(number)
    if fails:
        raise OSError(5, "Input/output error")
    return renamed(old, new, kind)
commit._renamed = interrupted
dn.publish(table, overwrite=True, new_key_file=out.with_name("key"), **how)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_in_the_middle_is_heard_when_everything_is_in_place(number: int, tmp_path: Path) -> None:
    words = [sys.executable, "-c", SILENT, tmp_path / "r", str(int(number))]
    assert subprocess.run(words, check=False, stderr=subprocess.DEVNULL).returncode == -number
    assert {path.name for path in tmp_path.iterdir()} == {"key", "r"}
    assert dn.verify(tmp_path / "r").holds


def test_a_signal_that_waits_is_heard_where_the_switch_fails(tmp_path: Path) -> None:
    words = [sys.executable, "-c", SILENT, tmp_path / "r", str(int(signal.SIGTERM)), "fails"]
    assert subprocess.run(words, check=False).returncode == -signal.SIGTERM
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert dn.verify(tmp_path / "r").holds
