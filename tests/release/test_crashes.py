"""Every file operation of every command that writes, ended before it and after it, by SIGKILL and by SIGINT.

Afterwards there is the old content or the new one; a release that needs a key has it; nothing that was left can be read
by others; and the same command, run again, does as if the first run had not been, and clears away what it left.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import deniable as dn
from deniable.publishing.memory import Memory

ROWS = 120
PLANNED = ("--sensitive", "ill", "--rho2", "1/2")
ASKED = (*PLANNED, "--mechanism", "uniform", "--drop", "name")
ADDED = ("publish", "table.csv", *ASKED, "--row-id", "id", "--series", "out/book")
# What is run, and what has to be there when it has ended well.
COMMANDS: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "a release, its key and its signature": (
        ("publish", "table.csv", *ASKED, "--out", "out/new", "--new-key-file", "out/key", "--sign", "signing.pem"),
        {"new", "key"},
    ),
    "a release in the place of another": (
        ("publish", "table.csv", *ASKED, "--out", "out/r", "--overwrite", "--new-key-file", "out/key"),
        {"r", "key"},
    ),
    "a new series": ((*ADDED, "--out", "out/new"), {"new", "book"}),
    "a series that goes on": ((*ADDED, "--out", "out/r", "--overwrite"), {"r", "book"}),
    "a release as CSV": (("publish", "table.csv", *ASKED, "--out", "out/new", "--format", "csv"), {"new"}),
    "pooled rows": (("pool", "r", "other", "--out", "out/new"), {"new"}),
    "a page for the owner": (("report", "r", "--original", "table.csv", "--out", "out/page.html"), {"page.html"}),
    "an audit": (("audit", "table.csv", "r", "--out", "out/audit.html"), {"audit.html"}),
    "a chart": (("plan", "table.csv", *PLANNED, "--chart", "out/chart.svg"), {"chart.svg"}),
    "a file of another program": (("export", "r", "out/rows.sav"), {"rows.sav"}),
    "a survey": (("collect", "new", "out/survey.toml"), {"survey.toml"}),
    "made-up respondents": (
        ("collect", "simulate", "survey.toml", "--respondents", "50", "--out", "out/new"),
        {"new"},
    ),
}
HAD = {"a release in the place of another": {"r"}, "a series that goes on": {"r", "book"}}
SLOW = {"a page for the owner", "an audit", "a chart"}
DONE = (0, 3)  # written, and 3: the owner has something to decide first
SIGNALS = (signal.SIGKILL, signal.SIGINT)


class Crashing:
    """Runs commands in the forks of one process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def run(
        self, words: tuple[str, ...], home: Path, point: int | None = None, number: int = 0, **environment: str
    ) -> dict[str, Any]:
        paths = {"table.csv", "r", "other", "survey.toml", "signing.pem"}
        named = [str(home / word) if word in paths or word.startswith("out/") else word for word in words]
        order = {"words": named, "home": str(home), "point": point, "signal": int(number), "environment": environment}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def crashing() -> Iterator[Crashing]:
    program = Path(__file__).with_name("crashing.py")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Crashing(process)
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def home(crashing: Crashing, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table and two releases, a signing key and a survey; ``out`` is where a command writes."""
    home = tmp_path_factory.mktemp("home")
    draw = Random(3)
    rows = [f"{n},Person {n},{draw.randint(18, 90)},{draw.choice('abcd')}" for n in range(ROWS)]
    (home / "table.csv").write_text("\n".join(["id,name,age,ill", *rows]) + "\n")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / "signing.pem"], check=True)
    for words in (
        ("publish", "table.csv", *ASKED, "--rho1", "2/5", "--drop", "id", "--out", "r"),
        ("publish", "table.csv", *ASKED, "--rho1", "2/5", "--drop", "id", "--out", "other"),
        ("collect", "new", "survey.toml"),
    ):
        assert crashing.run(words, home)["code"] in DONE
    return home


def fresh(home: Path, folder: Path, what: str, crashing: Crashing) -> Path:
    """A copy of ``home`` in which ``out`` holds what the command finds there."""
    shutil.copytree(home, folder)
    (folder / "out").mkdir()
    if HAD.get(what) == {"r", "book"}:
        assert crashing.run((*ADDED, "--out", "out/r"), folder)["code"] in DONE
    elif what in HAD:
        shutil.copytree(home / "r", folder / "out" / "r")
    return folder


def looked_at(path: Path) -> object:
    """The content of a file, or of a release that verifies."""
    if not path.exists():
        return None
    if path.is_file():
        return path.read_bytes()
    assert not dn.verify(path).failures
    return (path / "manifest.json").read_bytes()


def points(operations: list[str], by_turns: bool = False) -> list[tuple[int, int]]:
    """Before and after every operation, by each signal; of commands that take seconds by one of them, in turns."""
    ends = [(point, number) for point in range(2 * len(operations)) for number in SIGNALS]
    return [(point, number) for point, number in ends if not by_turns or SIGNALS[(point // 2 + point) % 2] == number]


def survives(crashing: Crashing, before: Path, work: Path, what: str, point: int, number: int) -> None:
    words, made = COMMANDS[what]
    shutil.copytree(before, work)
    out, had = work / "out", HAD.get(what, set())
    old = {name: looked_at(out / name) for name in made}
    ended = crashing.run(words, work, point, number)
    where = f"{what}, point {point}, {signal.Signals(number).name}: {ended}"
    assert ended["code"] in (-number, 130), where
    for path in out.iterdir():
        assert path.name in made or path.stat().st_mode & 0o077 == 0, f"{where}: {path.name} can be read by others"
    now = {name: looked_at(out / name) for name in made}
    changed = {name for name in made if now[name] != old[name]}
    decisive = next(name for name in ("new", "r", *made) if name in made)
    is_done = decisive in changed
    if is_done:
        assert all(now[name] is not None for name in made), f"{where}: the release is there, and not all it needs"
    if number == signal.SIGINT:
        assert changed in (set(), made), f"{where}: {changed} of {made}"
        assert {path.name for path in out.iterdir()} == (made if is_done else had), where
    again = crashing.run(words, work)
    if is_done and again["code"] not in DONE:  # what the first run has made is in the way of the second
        assert "exists already" in again["talk"], f"{where}; then {again['talk']}"
        assert {name: looked_at(out / name) for name in made} == now, f"{where}: a refused run has changed something"
        for name in made:
            shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink()
        again = crashing.run(words, work)
    assert again["code"] in DONE, f"{where}; then {again['talk']}"
    assert {path.name for path in out.iterdir()} == made, where
    assert all(looked_at(out / name) is not None for name in made), where
    shutil.rmtree(work)


def all_points(crashing: Crashing, home: Path, tmp_path: Path, what: str) -> tuple[Path, list[tuple[int, int]]]:
    """Where the command begins, and where it can be ended."""
    before = fresh(home, tmp_path / "before", what, crashing)
    shutil.copytree(before, tmp_path / "whole")
    whole = crashing.run(COMMANDS[what][0], tmp_path / "whole")
    assert whole["code"] in DONE, whole["talk"]
    assert {path.name for path in (tmp_path / "whole" / "out").iterdir()} == COMMANDS[what][1]
    assert len(whole["operations"]) > 5
    return before, points(whole["operations"], what in SLOW)


@pytest.mark.parametrize("what", ["a release, its key and its signature", "a series that goes on"])
def test_a_run_that_is_ended_at_some_operations_leaves_no_half(
    crashing: Crashing, home: Path, tmp_path: Path, what: str
) -> None:
    before, ends = all_points(crashing, home, tmp_path, what)
    for point, number in Random(what).sample(ends, 3):
        survives(crashing, before, tmp_path / "work", what, point, number)


@pytest.mark.long
@pytest.mark.parametrize("what", COMMANDS)
def test_a_run_that_is_ended_at_any_operation_leaves_no_half(
    crashing: Crashing, home: Path, tmp_path: Path, what: str
) -> None:
    before, ends = all_points(crashing, home, tmp_path, what)
    for point, number in ends:
        survives(crashing, before, tmp_path / "work", what, point, number)


REMEMBERED = ("publish", "table.csv", *ASKED, "--drop", "id", "--out", "out/new")


def remembered(work: Path) -> list[str]:
    path = work / "memory" / "all.json"
    return [look.out for look in Memory.read(path).looks] if path.exists() else []


@pytest.mark.parametrize("share", [0.02, pytest.param(1.0, marks=pytest.mark.long)])
def test_what_is_published_is_remembered_wherever_a_run_is_ended(
    crashing: Crashing, home: Path, tmp_path: Path, share: float
) -> None:
    """And what is not, is not, once the next run has settled what a killed one left."""
    before = fresh(home, tmp_path / "before", "", crashing)
    shutil.copytree(before, tmp_path / "whole")
    environment = {"DENIABLE_MEMORY": str(tmp_path / "whole" / "memory" / "all.json")}
    ends = points(crashing.run(REMEMBERED, tmp_path / "whole", **environment)["operations"])
    assert remembered(tmp_path / "whole") == [str(tmp_path / "whole" / "out" / "new")]
    work = tmp_path / "work"
    for point, number in Random(1).sample(ends, round(share * len(ends))):
        shutil.copytree(before, work)
        environment = {"DENIABLE_MEMORY": str(work / "memory" / "all.json")}
        crashing.run(REMEMBERED, work, point, number, **environment)
        where, is_there = f"point {point}, {signal.Signals(number).name}", (work / "out" / "new").exists()
        assert not is_there or remembered(work) == [str(work / "out" / "new")], where
        again = crashing.run((*REMEMBERED[:-1], "out/again"), work, **environment)
        assert again["code"] in DONE, f"{where}; then {again['talk']}"
        outs = [str(work / "out" / name) for name in (["new"] if is_there else []) + ["again"]]
        assert remembered(work) == outs, where
        shutil.rmtree(work)
