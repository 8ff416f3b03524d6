"""Starting a server: an address that cannot be listened at is refused before the token is made, which is told once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deniable.cli.main import app
from tests.collection.surveys import EVERY_KIND

pytest.importorskip("fastapi", reason="needs the extra 'collect'")


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.toml"
    path.write_text(EVERY_KIND, encoding="utf-8")
    return path


def test_a_port_in_use_is_refused_with_the_fix_and_no_token_is_spent(survey: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["collect", "serve", str(survey), "--port", str(port)])
    assert done.exit_code == 2
    assert (
        f"127.0.0.1 cannot be listened at: port {port} is in use by another program. Fix: another --port" in done.output
    )
    assert "Token" not in done.output
    assert not survey.with_suffix(".db").exists()


def test_an_address_of_another_machine_is_refused_with_the_fix(survey: Path) -> None:
    done = CliRunner().invoke(app, ["collect", "serve", str(survey), "--host", "192.0.2.1"])  # kept for documentation
    assert done.exit_code == 2
    assert "192.0.2.1 cannot be listened at: it is no address of this machine. Fix: --host 127.0.0.1" in done.output
