"""`deniable doctor`: what is there and what is missing, whatever the machine."""

from __future__ import annotations

import json
import stat

import pytest

from deniable.cli import doctor
from deniable.spark import tasks as session


def found(name: str) -> doctor.Finding:
    return next(one for one in doctor.findings() if one.what == name)


def program(folder, name: str, says: str, code: int = 0) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """A machine on which no program is found but those that a test makes."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(doctor, "POSTGRES", str(tmp_path / "none" / "postgres"))
    return tmp_path


def test_the_command_lists_everything_and_succeeds(run):
    done = run("doctor")
    assert done.returncode == 0, done.stderr
    for name in ("deniable", "Python", "memory", "temporary space", "Java", "Spark", "browser", "PostgreSQL", "R"):
        assert name in done.stdout
    listed = json.loads(run("doctor", "--json").stdout)["findings"]
    assert all(one.keys() == {"what", "found", "enough", "needed_for", "fix"} for one in listed)
    assert all(one["enough"] or one["fix"] for one in listed)


def test_what_is_missing_is_said_with_its_purpose_and_its_fix(empty, capsys):
    for name in ("Java", "browser", "PostgreSQL", "R"):
        assert found(name).found is None
        assert not found(name).enough
    doctor.doctor(as_json=False)
    told = capsys.readouterr()
    assert "missing" in told.out
    assert "Java: install Java 17 or newer" in told.err


@pytest.mark.parametrize(
    ("says", "version", "enough"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "17", True),
        ('openjdk version "21" 2023-09-19', "21", True),
        ('java version "1.8.0_401"', "8", False),
        ('openjdk version "11.0.2"', "11", False),
    ],
)
def test_java_is_as_old_as_it_says(empty, monkeypatch, says, version, enough):
    program(empty, "java", says)
    assert (found("Java").found, found("Java").enough) == (version, enough)
    assert session.java_version() == int(version)


def test_programs_that_do_not_run_are_missing(empty):
    program(empty, "chromium", "Chromium 156.0.1", code=3)
    program(empty, "Rscript", "R scripting front-end version 4.2.2 (2022-10-31)")
    assert found("browser").found is None
    assert (found("R").found, found("R").enough) == ("4.2.2", True)


@pytest.mark.parametrize(("spark", "enough"), [("4.3.0", True), ("10.0", True), ("3.5.1", False), (None, False)])
def test_spark_must_be_new_enough(monkeypatch, spark, enough):
    versions = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: spark if name == "pyspark" else versions(name))
    assert (found("Spark").found, found("Spark").enough) == (spark, enough)


def test_little_temporary_space_is_said(monkeypatch):
    full = doctor.shutil.disk_usage("/")._replace(free=5 * 2**20)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: full)
    assert found("temporary space").found.startswith("5 MB in ")
    assert not found("temporary space").enough
