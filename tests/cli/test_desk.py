"""`deniable desk` as a program: it says where it is, ends when asked to, and refuses what cannot be."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib import error, request

import pytest

ROWS = "age,sex,disease\n" + "".join(
    f"{20 + i % 60},{'FM'[i % 2]},{['flu', 'cold', 'hiv'][i % 3]}\n" for i in range(300)
)


def started(home: Path, *words: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "deniable", "desk", *words]
    return subprocess.Popen(program, cwd=home, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@contextlib.contextmanager
def ended(program: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """The program, which is not there any more afterwards."""
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_asked_to_end_and_leaves_nothing(tmp_path: Path, ending: signal.Signals) -> None:
    (tmp_path / "people.csv").write_text(ROWS, encoding="utf-8")
    with ended(started(tmp_path, "people.csv", "--no-browser", "--json")) as program:
        assert program.stdout is not None
        address = json.loads(program.stdout.readline())["desk"]
        opener = request.build_opener(request.HTTPCookieProcessor())
        page = opener.open(address, timeout=60).read().decode()
        assert "people.csv" in page
        with pytest.raises(error.HTTPError):
            request.urlopen(address.partition("?")[0], timeout=60)
        os.kill(program.pid, ending)
        program.wait(60)
    assert program.returncode in (0, 130, 128 + ending)
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.csv"], "nothing.csv"),
        (["people.csv", "--lang", "fr"], "choose one of en, de"),
        (["people.csv", "--port", "70000"], "70000"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_served(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "people.csv").write_text(ROWS, encoding="utf-8")
    with ended(started(tmp_path, "--no-browser", *words)) as program:
        _, talk = program.communicate(timeout=120)
    assert program.returncode == 2
    assert said in talk
    assert "Traceback" not in talk
