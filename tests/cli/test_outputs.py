"""No command replaces what it reads, a release's own files, or a device; keys of failed runs are gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def people(patients: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(patients, tmp_path / "people.csv"))


ASKED = ("--sensitive", "disease", "--rho2", "1/3", "--drop", "name")


def test_no_output_replaces_an_input(people: Path, release: Path, run, tmp_path: Path) -> None:
    before = people.read_bytes()
    (tmp_path / "link.csv").symlink_to(people)
    pattern = tmp_path / "peop*.csv"
    evaluation = tmp_path / "evaluation.json"
    evaluation.write_text("{}")
    for words in (
        ("audit", people, release, "--out", people),
        ("audit", people, release, "--out", tmp_path / "link.csv"),
        ("audit", pattern, release, "--out", people),
        ("report", release, "--original", people, "--format", "md", "--out", people),
        ("plan", people, *ASKED, "--chart", people),
        ("plan", people, *ASKED, "--beliefs-chart", people),
        ("plan", people, *ASKED, "--explain", "uniform", "--cells-chart", people),
        ("demo", "--rows", "100", "--out", tmp_path),
        ("publish", people, *ASKED, "--out", people, "--overwrite"),
        ("publish", people, *ASKED, "--out", tmp_path, "--overwrite"),
        ("publish", people, *ASKED, "--out", tmp_path / "new", "--new-key-file", people),
    ):
        done = run(*words)
        assert done.returncode == 2, (words, done.stderr)
        assert people.read_bytes() == before, words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evaluation.json", "link.csv", "people.csv"]


def test_no_report_replaces_a_file_of_the_release(release: Path, run, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(release, mine)
    for name in ("data.parquet", "manifest.json", "README.md"):
        before = (mine / name).read_bytes()
        assert run("report", mine, "--format", "md", "--out", mine / name).returncode == 2
        assert (mine / name).read_bytes() == before
    assert run("report", mine, "--format", "md", "--out", mine / "report.md").returncode == 0


def test_no_device_is_replaced_by_a_file(release: Path, run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run("report", release, "--format", "md", "--out", tmp_path / "pipe")
    assert done.returncode == 2
    assert "pipe or a device" in done.stderr
    assert (tmp_path / "pipe").is_fifo()


def test_a_pipe_is_no_table(run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run("publish", tmp_path / "pipe", *ASKED, "--out", tmp_path / "r")
    assert done.returncode == 2
    assert "read more than once" in done.stderr


def test_a_key_of_a_failed_run_is_gone(people: Path, run, tmp_path: Path) -> None:
    key = tmp_path / "key"
    wrong = run(
        "publish", people, "--sensitive", "disease", "--rho2", "1/300", "--out", tmp_path / "r", "--new-key-file", key
    )
    assert wrong.returncode == 2
    assert not key.exists()


def test_what_is_no_text_is_refused_in_words(run, tmp_path: Path) -> None:
    done = run("publish", "p\udcff.csv", *ASKED, "--out", tmp_path / "r", "--json")
    assert done.returncode == 2
    assert "not UTF-8" in done.stderr


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_read(
    release: Path, run, tmp_path: Path
) -> None:
    absent, folder = tmp_path / "absent.csv", tmp_path / "folder.csv"
    page = tmp_path / "page.md"
    page.mkdir()
    folder.mkdir()
    for words in (
        *(("plan", absent, *ASKED, f"--{kind}chart", page) for kind in ("", "beliefs-", "cells-")),
        ("evaluate", absent, *ASKED, "--out", page),
        ("audit", absent, release, "--out", page),
        ("report", release, "--original", absent, "--format", "md", "--out", page),
        ("risk", absent, "--columns", "age", "--suppress-to-k", "5", "--out", folder),
    ):
        done = run(*words)
        assert done.returncode == 2, words
        assert "is a folder. Fix: name a file." in done.stderr, (words, done.stderr)
