"""The family of commands: what `deniable --help` lists is what the commands say of themselves, and comes quickly."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from deniable.cli.main import COMMANDS, app


@pytest.mark.parametrize("name", COMMANDS)
def test_the_listed_sentence_is_the_first_of_the_commands_own_help(name: str) -> None:
    command = typer.main.get_command(app).commands[name]
    assert " ".join((command.help or "").split()).startswith(COMMANDS[name][1])


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
