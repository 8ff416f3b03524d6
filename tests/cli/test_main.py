"""The family of commands: what `deniable --help` lists is what the commands say of themselves, and comes quickly."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from deniable.cli.main import COMMANDS, app


@pytest.mark.parametrize("name", COMMANDS)
def test_the_listed_sentence_is_the_first_of_the_commands_own_help(name: str) -> None:
    command = typer.main.get_command(app).commands[name]
    assert " ".join((command.help or "").split()).startswith(COMMANDS[name][1])


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield name, command
    for child, part in (children or {}).items():
        yield from leaves(part, f"{name} {child}")


LEAVES = dict(leaves(typer.main.get_command(app), "deniable"))


@pytest.mark.parametrize("name", [name for name in LEAVES if name != "deniable doctor"])  # it takes nothing
def test_every_help_ends_with_an_example_that_its_command_understands(name: str) -> None:
    example = " ".join((LEAVES[name].help or "").partition("Example: ")[2].split())
    assert f"{example} ".startswith(f"{name} ")
    words = shlex.split(example)[len(name.split()) :]
    LEAVES[name].make_context(name, words, resilient_parsing=False).close()


def test_a_group_lists_its_commands_with_whole_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, ["collect", "--help"]).stdout
    listed = shown.partition("Commands:")[2]
    assert listed
    assert "..." not in listed
    assert "Example" not in listed
    assert "made-up respondents: every count beside the truth, before anyone is asked." in " ".join(shown.split())


def test_alone_it_shows_what_it_is_for_and_the_next_step() -> None:
    shown = CliRunner().invoke(app, [])
    assert shown.exit_code == 0
    lines = [line for line in shown.stdout.splitlines() if line]
    assert len(lines) == 5
    assert max(map(len, lines)) <= 100
    assert "deniable demo" in lines[-1]
    for line in lines[1:4]:  # each command that it names is understood
        name, *words = shlex.split(line)[1:]
        LEAVES[f"deniable {name}"].make_context(name, words, resilient_parsing=False).close()


def test_help_imports_no_command_and_nothing_that_is_slow() -> None:
    script = (
        "import sys; from typer.testing import CliRunner; from deniable.cli.main import app;"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0;"
        "slow = {'numpy', 'pyarrow', 'scipy', 'sqlglot', 'cryptography', 'deniable.cli.publish'} & set(sys.modules);"
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_importing_the_package_imports_nothing_that_is_slow() -> None:
    script = (
        "import sys, deniable; slow = {'numpy', 'pyarrow', 'scipy', 'sqlglot', 'typer'} & set(sys.modules);"
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
