"""kill -9 and SIGTERM at sixty random moments of publish, --overwrite, report and series.

What is left is the whole old release or the whole new one, never none where there was one, and it verifies; nothing
that is left holds an original row or a key; and the same command, run again, succeeds and clears everything else away.
A run that was asked to stop when its release was in place says so.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn

pytestmark = pytest.mark.long
TIMES = 15  # moments of each of the four
ROWS = 60_000
MARK = "person-of-the-table-"  # begins every name, and names are dropped
COMMAND = [sys.executable, "-m", "deniable"]
PUBLISH = ["--sensitive", "ill", "--rho2", "1/2", "--mechanism", "designed", "--drop", "name", "--quiet"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    rng = np.random.default_rng(8)
    ill = rng.choice(list("abcdef"), ROWS, p=np.arange(6, 0, -1) / 21)
    names = [f"{MARK}{number}" for number in range(ROWS)]
    rows = {"id": np.arange(ROWS), "name": names, "age": rng.integers(0, 90, ROWS), "ill": ill}
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "in" / "t.parquet")
    (tmp_path / "out").mkdir()
    return tmp_path


def killed_at(words: list[str], seconds: float, number: int) -> tuple[int, bool]:
    """The exit code, and whether the run said that it has written its release."""
    run = subprocess.Popen([*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, talk = run.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        run.send_signal(number)
        _, talk = run.communicate(timeout=60)
    return run.returncode, "had been written" in talk


def moments(words: list[str], before: Callable[[], None]) -> Iterator[tuple[float, int]]:
    """Moments of a run, from where its imports end to a little beyond its end, for each signal in turn."""
    whole = float("inf")
    for _ in range(2):  # the first run may wait for files that the next ones find in memory
        before()
        begin = time.monotonic()
        subprocess.run([*COMMAND, *words], check=True, capture_output=True, timeout=120)
        whole = min(whole, time.monotonic() - begin)
    rng = Random(14)
    for number in range(TIMES):
        yield rng.uniform(0.3, 1.1) * whole, signal.SIGKILL if number % 2 else signal.SIGTERM


def require_nothing_original(folder: Path, *, but: tuple[str, ...] = ()) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and file.name not in but:
            content = file.read_bytes()
            assert MARK.encode() not in content, f"{file.name} holds an original row"
            if file.name == "data.parquet" and len(content) > 8 and content.endswith(b"PAR1"):  # not cut off
                assert "name" not in pq.read_schema(file).names


def require_whole(release: Path) -> str:
    """A release that is there verifies; its digest."""
    certificate = dn.verify(release)
    assert certificate.holds is not False, str(certificate)  # None: of several rows of a person not all can be checked
    return (release / "manifest.json").read_text()


def run_again(words: list[str], folder: Path, left: set[str]) -> None:
    done = subprocess.run([*COMMAND, *words], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir()} == left


def test_a_new_release_is_whole_or_not_there(home: Path) -> None:
    out = home / "out" / "r"
    words = ["publish", str(home / "in" / "t.parquet"), *PUBLISH, "--drop", "id", "--out", str(out)]
    clear = lambda: subprocess.run(["rm", "-rf", str(out)], check=True)  # noqa: E731
    ends = []
    for seconds, number in moments(words, clear):
        clear()
        code, is_said = killed_at(words, seconds, number)
        ends.append(code)
        require_nothing_original(home / "out")
        assert code != 143 or is_said == out.exists()
        if out.exists():
            require_whole(out)
            clear()
        if number == signal.SIGTERM:
            assert list((home / "out").iterdir()) == [], "a run that was asked to stop takes everything away"
        run_again(words, home / "out", {"r"})
    assert {-signal.SIGKILL, 143} <= set(ends), "moments lay within the run"


def test_an_old_release_is_there_until_the_new_one_is(home: Path) -> None:
    out = home / "out" / "r"
    words = ["publish", str(home / "in" / "t.parquet"), *PUBLISH, "--drop", "id", "--out", str(out), "--overwrite"]
    seen = set()
    for seconds, number in moments(words, lambda: None):
        old = require_whole(out)
        code, is_said = killed_at(words, seconds, number)
        require_nothing_original(home / "out")
        is_new = require_whole(out) != old  # there is a release at every moment
        assert code != 143 or is_said == is_new, "a run that was asked to stop says what it has changed"
        seen.add(code)
        run_again(words, home / "out", {"r"})
    assert seen >= {-signal.SIGKILL, 143}, "moments lay within the run"


def test_a_report_is_the_old_or_the_new_one(home: Path) -> None:
    release, page = home / "r", home / "out" / "page.html"
    table = str(home / "in" / "t.parquet")
    subprocess.run(
        [*COMMAND, "publish", table, *PUBLISH, "--drop", "id", "--out", str(release)], check=True, capture_output=True
    )
    words = ["report", str(release), "--original", table, "--out", str(page)]
    ends = []
    for seconds, number in moments(words, lambda: None):
        page.write_text("the old page")
        before = set(page.parent.iterdir())  # with what a killed run left, which a run removes that comes to writing
        ends.append(killed_at(words, seconds, number)[0])
        text = page.read_text()
        assert text == "the old page" or text.rstrip().endswith("</html>")
        require_nothing_original(home / "out")
        leftovers = set(page.parent.iterdir()) - {page}
        assert all(path.stat().st_mode & 0o077 == 0 for path in leftovers), "what is left is readable by its owner only"
        assert number == signal.SIGKILL or leftovers <= before
    assert {-signal.SIGKILL, 143} <= set(ends), "moments lay within the run"
    run_again(words, home / "out", {"page.html"})


def test_a_series_remembers_whatever_was_published(home: Path) -> None:
    """A release that is there is in the book; a book may know one that nobody saw."""
    book, table = home / "book.series", str(home / "in" / "t.parquet")
    base = ["publish", table, *PUBLISH, "--series", str(book), "--row-id", "id"]
    first = home / "out" / "0"
    subprocess.run([*COMMAND, *base, "--out", str(first)], check=True, capture_output=True, timeout=120)
    number_of = lambda: len(json.loads(book.read_text())["publications"])  # noqa: E731
    clear = lambda: subprocess.run(["rm", "-rf", str(home / "out" / "1")], check=True)  # noqa: E731
    ends = []
    for place, (seconds, number) in enumerate(moments([*base, "--out", str(home / "out" / "1")], clear), 2):
        out, known = home / "out" / str(place), number_of()
        ends.append(killed_at([*base, "--out", str(out)], seconds, number)[0])
        key = json.loads(book.read_text())["key"]
        assert book.stat().st_mode & 0o077 == 0
        assert number_of() in (known, known + 1)
        if out.exists():
            require_whole(out)
            assert number_of() == known + 1, "published, and forgotten"
        require_nothing_original(home / "out")
        for file in (home / "out").rglob("*"):
            assert not file.is_file() or (
                key.encode() not in file.read_bytes() and bytes.fromhex(key) not in file.read_bytes()
            )
    last = home / "out" / "last"
    subprocess.run([*COMMAND, *base, "--out", str(last)], check=True, capture_output=True, timeout=120)
    whole = sorted(path for path in (home / "out").iterdir() if not path.name.startswith("."))
    shown = [sorted(map(str, dn.open_release(path).table.to_pylist())) for path in (whole[0], last)]
    assert shown[0] == shown[1], "whoever has not changed is published as before, after any number of kills"
    assert {path.name for path in home.iterdir()} == {"in", "out", "book.series"}
    assert {-signal.SIGKILL, 143} <= set(ends), "moments lay within the run"
