"""The command line speaks in its own options, and says a problem once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import typer

from deniable.cli.main import app
from deniable.core.errors import PACKAGE, at_a_terminal, option

Run = Callable[..., CompletedProcess[str]]
# What someone at a terminal would have to translate: a parameter with its value, as Python has them.
SOURCES = "".join(path.read_text(encoding="utf-8") for path in Path(PACKAGE).rglob("*.py") if path.name != "errors.py")
NAMED = set(re.findall(r"(?<!\w)option\(['\"](\w+)['\"](?!, (?:True|False))", SOURCES))
NAMED -= {"error"}  # which is written like that inside of --small-sums, too
FLAGS = set(re.findall(r"(?<!\w)option\(['\"](\w+)['\"], (True|False)", SOURCES))
PYTHON = re.compile(
    rf"(?<!['\w-])(?:{'|'.join((*NAMED, *dict(FLAGS)))})=(?!=)"
    r"|(?<!['\w-])(?:row_id|key_file)\b|dn\.|Privacy\("
)


def test_every_option_that_a_text_names_is_one_of_a_command() -> None:
    commands = typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
    leaves = [one for command in commands for one in getattr(command, "commands", {"": command}).values()]
    known = {flag for leaf in leaves for one in leaf.params for flag in (*one.opts, *one.secondary_opts)}
    with at_a_terminal():
        assert {option(name).split()[0] for name in NAMED} <= known
        assert {option(name, flag == "True") for name, flag in FLAGS} <= known
    assert len(NAMED) > 20


@pytest.mark.parametrize(
    "words",
    [
        ("--rho2", "1/50"),
        ("--rho2", "1/2", "--adversary", "any-prior", "--mechanism", "uniform"),
        ("--rho2", "1/2", "--mechanism", "anatomy", "--row-id", "name"),
        ("--rho2", "1/2", "--series", "s.db"),
        ("--rho2", "1/2", "--recode", "agee=bands:5"),
        ("--rho2", "1/2", "--bins", "age=0,50,100"),
        ("--mechanism", "uniform"),
        ("--rho2", "1/2", "--small-sums", "2"),
        ("--rho2", "1/2", "--changes", "3"),
        ("--rho2", "1/2", "--domain", "disease=missing.txt"),
        ("--mechanism", "auto"),
        ("--rho2", "1/50", "--mechanism", "small-domain"),
        ("--rho2", "1/2", "--mechanism", "retention:disease=0.5"),
        ("--mechanism", "retention"),
    ],
)
def test_mistakes_are_explained_without_python(
    patients: Path, run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = run("publish", patients, "--sensitive", "disease", *words, "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith(("Error: ", "Usage: "))
    assert not PYTHON.search(done.stderr), done.stderr


def test_warnings_and_audits_speak_in_options_too(patients: Path, run: Run, tmp_path: Path) -> None:
    done = run("publish", patients, "--sensitive", "disease", "--rho2", "1/2", "--seed", 1, "--out", tmp_path / "r")
    assert "--drop name" in done.stdout
    assert not PYTHON.search(done.stderr), done.stderr
    audited = run("audit", patients, tmp_path / "r")
    assert "without --seed" in audited.stdout
    assert not PYTHON.search(audited.stdout)


def test_a_requirement_that_nothing_meets_is_one_message(patients: Path, run: Run, tmp_path: Path) -> None:
    done = run("plan", patients, "--sensitive", "disease", "--rho2", "1/50")
    assert done.stderr.count("cannot be met") == 1
    assert "with --exempt" in done.stderr
