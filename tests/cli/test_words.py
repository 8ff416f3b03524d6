"""The command line speaks in its own options, and says a problem once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import typer

from deniable.cli.main import app
from deniable.cli.words import OPTIONS, WRITTEN, in_options

Run = Callable[..., CompletedProcess[str]]
# What someone at a terminal would have to translate: a parameter with its value, as Python has them.
PYTHON = re.compile(
    rf"(?<!['\w-])(?:{'|'.join((*OPTIONS, 'privacy', 'shuffle', 'marginals', 'again', 'overwrite'))})=(?!=)"
    r"|(?<!['\w-])(?:row_id|key_file)\b|dn\.|Privacy\("
)


@pytest.mark.parametrize(
    ("python", "options"),
    [
        ("Fix: adversary='frequency', or mechanism='uniform'.", "Fix: --adversary frequency, or --mechanism uniform."),
        ("or exempt 'flu', 'gout' with exempt=.", "or exempt 'flu', 'gout' with --exempt."),
        ("Fix: row_id=COLUMN, or person=COLUMN.", "Fix: --row-id COLUMN, or --person COLUMN."),
        ("takes no missing='exempt', row_id or marginals.", "takes no --missing exempt, --row-id or marginals."),
        ("no row_id=, person= or marginals.", "no --row-id, --person or marginals."),
        ("privacy=Privacy(rho2='1/6'), or --rho2 1/6", "--rho2 1/6, or --rho2 1/6"),
        ("Fix: privacy='1/6', how sure", "Fix: --rho2 1/6, how sure"),
        ("Fix: drop='a b', unless that is intended.", "Fix: --drop 'a b', unless that is intended."),
        ("Fix: changes=2.", "Fix: --changes 2."),
        ("are not declared: small_sums keeps small counts", "are not declared: --small-sums keeps small counts"),
        ("raise above, error or at_most of large_sums.", "raise above, error or at_most of --large-sums."),
        ("Fix: leave out= out and ask the object, or", "Fix: ask it in Python (dn.publish), or"),
        ("draw at least once. Fix: draws=5.", "draw at least once. Fix: --draws 5."),
        ("Fix: choose another folder, or overwrite=True.", "Fix: choose another folder, or --overwrite."),
        ("Fix: domain=[..] with every value", "Fix: --domain COLUMN=FILE with every value"),
        ("Publish without seed=. A seed", "Publish without --seed. A seed"),
        ("Fix: recode={'age': bands(..)} makes", "Fix: --recode age=bands:.. makes"),
        ("Fix: exempt=['flu'], a smaller l", "Fix: --exempt 'flu', a smaller l"),
        ("sensitive names the column 'x'", "--sensitive names the column 'x'"),
        ("- lineup: series needs to know", "- lineup: --series needs to know"),
        ("The column 'row_id' is 'mechanism=x'", "The column 'row_id' is 'mechanism=x'"),
        ("rho2 = 1/20 cannot be met; c=5, truth='1/2'", "rho2 = 1/20 cannot be met; c=5, truth='1/2'"),
        ("--mechanism decoys:leftovers=drop", "--mechanism decoys:leftovers=drop"),
    ],
)
def test_parameters_become_options_and_the_rest_stays(python: str, options: str) -> None:
    assert in_options(python) == options
    assert in_options(options) == options, "what speaks in options already stays"


def test_every_word_is_an_option_of_a_command() -> None:
    commands = typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
    known = {flag for command in commands for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    mentioned = {f"--{name.replace('_', '-')}" for name in OPTIONS}
    mentioned |= {flag for _, words in WRITTEN for flag in re.findall(r"--[a-z0-9-]+", words)}
    assert mentioned <= known


@pytest.mark.parametrize(
    "words",
    [
        ("--rho2", "1/50"),
        ("--rho2", "1/2", "--adversary", "any-prior"),
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
    assert "--drop name" in done.stderr
    assert not PYTHON.search(done.stderr), done.stderr
    audited = run("audit", patients, tmp_path / "r")
    assert "without --seed" in audited.stdout
    assert not PYTHON.search(audited.stdout)


def test_a_requirement_that_nothing_meets_is_one_message(patients: Path, run: Run, tmp_path: Path) -> None:
    done = run("plan", patients, "--sensitive", "disease", "--rho2", "1/50")
    assert done.stderr.count("cannot be met") == 1
    assert "with --exempt" in done.stderr
