"""A full disk leaves no half of anything: no report, chart, key or release that somebody could take for a whole one.

No file may grow beyond a size here, which a process is told of as it is of a full disk: by the write that fails.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

PLANNED = ("--sensitive", "disease", "--rho2", "1/3")
ASKED = (*PLANNED, "--mechanism", "uniform", "--drop", "name")
WRITING: dict[str, tuple[str, ...]] = {
    "a page for analysts": ("report", "RELEASE", "--out", "OUT/page.html"),
    "a page in Markdown": ("report", "RELEASE", "--format", "md", "--out", "OUT/page.md"),
    "a page for the owner": ("report", "RELEASE", "--original", "TABLE", "--out", "OUT/page.html"),
    "an audit": ("audit", "TABLE", "RELEASE", "--out", "OUT/audit.html"),
    "a chart": ("plan", "TABLE", *PLANNED, "--chart", "OUT/chart.svg"),
    "a chart of beliefs": ("plan", "TABLE", *PLANNED, "--beliefs-chart", "OUT/chart.svg"),
    "a release and its key": ("publish", "TABLE", *ASKED, "--out", "OUT/new", "--new-key-file", "OUT/key"),
    "a release of another kind": (
        *("publish", "TABLE", "--sensitive", "disease", "--rho2", "1/3", "--drop", "name"),
        *("--mechanism", "lineup", "--out", "OUT/new"),
    ),
    "a series": ("publish", "TABLE", *ASKED, "--row-id", "name", "--out", "OUT/new", "--series", "OUT/series"),
    "an evaluation": (
        *("evaluate", "TABLE", *ASKED, "--mechanism", "uniform", "--draws", "1", "--workers", "1"),
        *("--out", "OUT/page.html"),
    ),
    "pooled rows": ("pool", "RELEASE", "OTHER", "--out", "OUT/pooled"),
    "a survey": ("collect", "new", "OUT/survey.toml"),
    "a demonstration": ("demo", "--rows", "500", "--out", "OUT/demo"),
}


@contextlib.contextmanager
def files_up_to(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def other(patients: Path, run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release like ``release``, under a key of its own."""
    out = tmp_path_factory.mktemp("others") / "release"
    assert run("publish", patients, *ASKED, "--rho1", "1/5", "--out", out).returncode == 0
    return out


@pytest.mark.parametrize("size", [0, 600])
@pytest.mark.parametrize("what", WRITING)
def test_nothing_is_half_written(
    what: str, size: int, patients: Path, release: Path, other: Path, run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    places = {"TABLE": str(patients), "RELEASE": str(release), "OTHER": str(other)}
    words = [places.get(word, word.replace("OUT/", f"{out}/")) for word in WRITING[what]]
    with files_up_to(size):
        done = run(*words)
    assert done.returncode == 2, done.stderr
    assert "too large" in done.stderr.lower(), done.stderr
    assert "Traceback" not in done.stderr
    left = [path for path in out.rglob("*") if path.is_file()]
    assert not left, left


def test_what_was_there_stays_whole(patients: Path, release: Path, run, tmp_path: Path) -> None:
    page, folder = tmp_path / "page.md", tmp_path / "new"
    page.write_text("an older page\n")
    assert run("publish", patients, *ASKED, "--out", folder).returncode == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with files_up_to(600):
        assert run("report", release, "--format", "md", "--out", page).returncode == 2
        assert run("publish", patients, *ASKED, "--out", folder, "--overwrite").returncode == 2
    assert page.read_text() == "an older page\n"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert sorted(os.listdir(tmp_path)) == ["new", "page.md"]
