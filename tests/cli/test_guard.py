"""One guard around every command: one message, one exit code, one JSON document, whatever goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from deniable.cli import console
from deniable.cli import console as guard
from deniable.cli.entry import Stopped
from deniable.core.errors import OptionError, RequirementError

COMMAND = [sys.executable, "-m", "deniable"]
COUNT = "SELECT COUNT(*) AS n FROM release"


def raising(problem: BaseException):
    def command() -> None:
        warnings.warn("mind the step", UserWarning, stacklevel=1)
        print('{"half": "a result"}')
        raise problem

    return command


@pytest.mark.parametrize(
    ("problem", "kind", "code"),
    [
        (OptionError("left is not right"), "OptionError", 2),
        (RequirementError("too much"), "RequirementError", 2),
        (console.BadNewsError("VerificationError", "broken", 1), "VerificationError", 1),
        (OSError(28, "No space left on device", "/somewhere"), "OSError", 2),
        (MemoryError(), "MemoryError", 2),
        (pa.ArrowMemoryError("malloc of size 4"), "MemoryError", 2),
        (RecursionError("maximum recursion depth"), "RecursionError", 2),
        (KeyboardInterrupt(), "Interrupted", 130),
        (Stopped(signal.SIGTERM), "Terminated", 143),
        (pa.ArrowInvalid("could not convert 'hiv'"), "InternalError", 70),
        (UnicodeEncodeError("utf-8", "hiv\udcff", 3, 4, "surrogates"), "InternalError", 70),
        (KeyError("hiv"), "InternalError", 70),
    ],
)
def test_every_problem_is_one_message_one_code_and_one_document(problem, kind, code, capsys) -> None:
    with pytest.raises(SystemExit) as left:
        guard.run(raising(problem), ["query", "--json"])
    out, err = capsys.readouterr()
    assert left.value.code == code
    assert json.loads(out)["error"]["type"] == kind
    assert err.startswith("Warning: mind the step\n")
    assert len(err.splitlines()) == 2
    assert "hiv" not in err + out  # a bug's message may hold a value of the table
    assert "Traceback" not in err


def test_errors_of_the_system_are_in_words(capsys) -> None:
    with pytest.raises(SystemExit):
        guard.run(raising(OSError(28, "No space left on device", "/somewhere")), [])
    assert "Error: /somewhere: No space left on device.\n" in capsys.readouterr().err


def test_whoever_mends_a_bug_can_ask_for_its_traceback(capsys, monkeypatch) -> None:
    monkeypatch.setenv("DENIABLE_TRACEBACK", "1")
    with pytest.raises(SystemExit):
        guard.run(raising(KeyError("x")), [])
    assert "Traceback" in capsys.readouterr().err


def test_wrong_usage_is_a_json_object_too(run) -> None:
    for words in (("publsh",), ("query",), ("verify", "x", "--nope")):
        done = run(*words, "--json")
        assert done.returncode == 2
        assert json.loads(done.stdout)["error"]["type"] == "UsageError", words
        assert "Error: " in done.stderr
    assert run("query", "--", "--json").stdout == ""  # after -- it is a name, not an option


def test_a_failure_after_the_result_is_still_one_document(patients: Path, run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    words = ("plan", patients, "--sensitive", "disease", "--rho2", "1/3", "--chart", tmp_path / "folder", "--json")
    done = run(*words)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["type"] == "OutputError"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("json_wanted", [[], ["--json"]])
def test_a_full_stdout_is_said_and_not_taken_for_success(release: Path, json_wanted) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "query", str(release), COUNT, *json_wanted],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "Error: No space left on device.\n")


def test_a_run_that_ends_badly_says_what_it_has_written(patients: Path, tmp_path: Path) -> None:
    out = tmp_path / "r"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [
                *COMMAND,
                "publish",
                str(patients),
                *("--sensitive", "disease", "--rho2", "1/2", "--drop", "name"),
                "--out",
                out,
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.endswith(f"Error: No space left on device. '{out}' had been written by then, and is whole.\n")
    assert (out / "manifest.json").exists()


def test_a_closed_stdout_is_refused_and_a_closed_stderr_is_no_matter(release: Path, tmp_path: Path) -> None:
    words = " ".join([sys.executable, "-m", "deniable", "query", str(release), f"'{COUNT}'"])
    closed = subprocess.run(f"{words} >&-", shell=True, capture_output=True, text=True, check=False)
    assert closed.returncode == 2
    assert "stdout is closed" in closed.stderr
    silent = subprocess.run(f"{words} 2>&-", shell=True, capture_output=True, text=True, check=False)
    assert silent.returncode == 0
    assert silent.stdout.split()[:3] == ["n", "n_low", "n_high"]


def test_a_terminal_without_the_letters_gets_escapes(release: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "query", str(release), "SELECT COUNT(*) AS é FROM release"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert r"\xe9_low" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_signals_during_imports_end_quietly(number: int, code: int, tmp_path: Path) -> None:
    slow = "import sys, time; print('loading', flush=True); time.sleep(60)"
    (tmp_path / "typer.py").write_text(slow)  # what takes long to import, and longer here
    # Whoever runs the tests may ignore a signal, as nohup does, and children would, too.
    heard = f"import os, signal, sys; signal.signal({number:d}, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    started = subprocess.Popen(
        [sys.executable, "-c", heard, *COMMAND, "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "loading\n"
    started.send_signal(number)
    _, talk = started.communicate(timeout=60)
    assert started.returncode == code
    assert talk in ("Interrupted.\n", "Stopped by the system.\n")
