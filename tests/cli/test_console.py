"""What all commands share: help, completion, interruption, pipes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deniable.cli import console

BOLD = re.compile("\x1b\\[[0-9;]*m")


def test_help_is_for_newcomers(run, shell) -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "deniable demo" in done.stdout
    assert "How sure an attacker may become" in " ".join(run("publish", "--help").stdout.split())
    assert shell("--version").stdout.startswith("deniable ")


def test_an_unknown_command_or_option_is_exit_code_2(run, shell) -> None:
    for start, *words in ((shell, "publsh"), (run, "verify", "x", "--nope"), (run, "publish")):
        done = start(*words)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(shell: str, run) -> None:
    done = run(_DENIABLE_COMPLETE=f"source_{shell}")
    assert "_DENIABLE_COMPLETE" in done.stdout


def test_the_installed_program_completes_a_word() -> None:
    words = {"COMP_WORDS": "deniable pub", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "deniable pub"}
    done = subprocess.run(
        [Path(sys.executable).parent / "deniable"],
        env={**os.environ, "_DENIABLE_COMPLETE": "complete_bash", **words},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["publish"]


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
def test_interrupting_leaves_with_130_and_without_a_traceback(tmp_path: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "deniable", "demo", "--rows", "1000000", "--out", str(tmp_path / "d")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr is not None
    assert "made-up people" in started.stderr.readline()
    started.send_signal(signal.SIGINT)
    _, talk = started.communicate(timeout=60)
    assert started.returncode == 130
    assert "Traceback" not in talk
    assert not (tmp_path / "d" / "release").exists()


def test_json_has_no_nan_and_keeps_letters(capsys: pytest.CaptureFixture[str]) -> None:
    console.emit({"a": float("nan"), "b": [float("inf"), 1.5], "c": "é"})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": "é"}


def test_a_table_is_aligned_and_never_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    console.show_table(["who", "n"], [("x" * 300, 12_345), ("[bold]y", None)])
    lines = capsys.readouterr().out.splitlines()
    assert "x" * 300 in lines[1]
    assert lines[1].endswith("12,345")
    assert "[bold]y" in lines[2]


def test_a_table_wider_than_the_terminal_is_shown_below_itself_with_every_name_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    columns = ["mechanism", *(f"error at {place} % of the rows" for place in range(5)), "reveals"]
    reveals = "rare values speak louder to those who know more than frequencies"
    rows = [[name, *(f"{place}.5 %" for place in range(5)), reveals] for name in ("perturbed-generalization", "pram")]
    console.show_table(columns, rows)
    shown = BOLD.sub("", capsys.readouterr().out)
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    for text in columns:
        assert text in shown, text
    tables = shown.split("\n\n")
    assert len(tables) > 1
    assert all("perturbed-generalization" in table and "pram" in table for table in tables)
    assert all(shown.count(f"{place}.5 %") == 2 for place in range(5))


def test_rows_that_two_columns_name_keep_both_names_in_every_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    columns = ["mechanism", "estimator", *(f">= {place} % (1,081)" for place in range(4))]
    rows = [
        ["perturbed-generalization", name, *("7,648 % ± 522 % (7,598 %)" for _ in range(4))]
        for name in ("inverse", "budget for each")
    ]
    console.show_table(columns, rows)
    tables = BOLD.sub("", capsys.readouterr().out).split("\n\n")
    assert len(tables) == 4
    assert all("inverse" in table and "budget for each" in table for table in tables)


def test_a_table_that_fits_the_terminal_is_one_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    console.show_table(["gender", "n", "n_low", "n_high"], [("Female", 3033.0, 2878.2, 3189.0)])
    assert [line.split() for line in BOLD.sub("", capsys.readouterr().out).splitlines()] == [
        ["gender", "n", "n_low", "n_high"],
        ["Female", "3,033.0", "2,878.2", "3,189.0"],
    ]
