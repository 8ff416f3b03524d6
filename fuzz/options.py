"""Options of the command line that nobody would give, run inside this process as a shell would run them."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow.csv as pa_csv

from deniable.cli.console import INTERNAL
from deniable.cli.main import app
from fuzz.case import Case
from fuzz.releases import people

STRANGE = (
    *(
        "",
        " ",
        "0",
        "-1",
        "1",
        "2",
        "1/2",
        "1/3",
        "1/0",
        "nan",
        "inf",
        "-inf",
        "1e-99999",
        "1e999999999",
        "1e400",
        "5%",
    ),
    *("99999999999999999999", "9" * 5000, "x", "é", "\udcff", "\x1b[2J", "a=b", "a=1,2", "age=equal:0:1:2", "true"),
    *(
        "age=quantiles:3",
        "age=bands:10",
        "sex=prefix:1+hierarchy:x",
        "age=bands:0",
        "age=bands:1,",
        "age=snap:nan",
        "20",
        "age=nan,1,2",
        "age=1,1,1",
        "age=equal:0:inf:3",
        "error=0.3,below=3,at-least=0.6",
        "=",
        ",",
    ),
    *("error=2", "uniform", "decoys:c=3", "decoys:c=-1", "decoys:c=1e9", "lineup:size=2,truth=1e999999999", "auto"),
    *(
        "retention:age=0.5@0..1e300/1e-300",
        "retention:age=0.5@17..90",
        "retention:=",
        "disease",
        "age",
        "sex",
        "any-prior",
    ),
    *("frequency", "csv", "parquet", "sdr", "splu", ".", "..", "/", "/dev/null", "/dev/full", "people.csv", "release"),
)
COMMANDS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "publish": (
        ["people.csv", "--sensitive", "disease", "--rho2", "1/3", "--out", "new", "--overwrite"],
        (
            *(
                "--sensitive",
                "--rho1",
                "--rho2",
                "--adversary",
                "--tolerance",
                "--exempt",
                "--small-sums",
                "--large-sums",
            ),
            *(
                "--mechanism",
                "--bins",
                "--drop",
                "--format",
                "--missing",
                "--recode",
                "--rare",
                "--suppress",
                "--row-id",
                "--key-file",
                "--requirements",
            ),
            *("--seed", "--name", "--pool", "--out", "--new-key-file", "--series", "--person", "--changes", "--domain"),
            "--sign",
        ),
    ),
    "plan": (
        ["people.csv", "--sensitive", "disease", "--rho2", "1/3"],
        (
            "--sensitive",
            "--rho1",
            "--rho2",
            "--tolerance",
            "--exempt",
            "--for-error",
            "--question",
            "--explain",
            "--bins",
        ),
    ),
    "query": (
        ["release", "SELECT COUNT(*) AS n FROM release"],
        ("--method", "--confidence"),
    ),
    "verify": (["release"], ("--signed-by",)),
    "export": (["release", "rows.sav", "--overwrite"], ()),
    "breach": (["retained", "age=20..30"], ("--rho1", "--rho2")),
    "rows-needed": (["0.5"], ("--error", "--mass", "--confidence")),
    "respond": (["release", '{"sex": "F", "age": 30, "born": "1990-01-01", "disease": "a"}'], ()),
    "pool": (["north", "south", "--out", "both", "--overwrite"], ("--out",)),
    "join": (["release", "retained", "--on", "age", "--out", "both", "--overwrite"], ("--on", "--out")),
    "risk": (
        ["people.csv", "--columns", "sex,age"],
        ("--columns", "--sensitive", "--recode", "--rare", "--suppress", "--suppress-to-k", "--out"),
    ),
    "audit": (["people.csv", "release"], ("--out",)),
    "report": (["release", "--format", "md"], ("--for", "--format", "--out", "--original", "--evaluation")),
    "evaluate": (
        [
            "people.csv",
            "--sensitive",
            "disease",
            "--rho2",
            "1/3",
            "--draws",
            "1",
            "--workers",
            "1",
            "--mechanism",
            "uniform",
        ],
        ("--sensitive", "--rho2", "--mechanism", "--estimator", "--pool", "--draws", "--seed", "--bins", "--drop"),
    ),
}


class Uncaught(Exception):  # noqa: N818
    """The command left with the exit code of a bug."""


def cases(draw: Random, home: Path) -> Iterator[Case]:
    """Commands with one to three options of strange values."""
    home.mkdir(parents=True, exist_ok=True)
    os.chdir(home)
    pa_csv.write_csv(people(600), "people.csv")
    original = Path("people.csv").read_bytes()
    run(["publish", "people.csv", "--sensitive", "disease", "--rho2", "1/3", "--out", "release"])
    run(["publish", "people.csv", "--mechanism", "retention:age=0.5@17..90", "--out", "retained"])
    for name in ("north", "south"):
        run(
            [
                "publish",
                "people.csv",
                "--sensitive",
                "disease",
                "--rho2",
                "1/3",
                "--mechanism",
                "uniform",
                "--out",
                name,
            ]
        )
    while True:
        command = draw.choice(list(COMMANDS))
        words, options = COMMANDS[command]
        words = [command, *words]
        for _ in range(draw.choice((1, 1, 2, 3)) if options else 0):
            words += [draw.choice(options), draw.choice(STRANGE)]
        if not options or draw.random() < 0.1:
            words[draw.randrange(1, len(words))] = draw.choice(STRANGE)
        if draw.random() < 0.3:
            words.append("--json")
        yield Case(repr(words)[:400], (lambda w=words: run(w),))
        if Path("people.csv").read_bytes() != original:
            yield Case(f"{words!r} replaced the table", (_destroyed,))
            Path("people.csv").write_bytes(original)


def _destroyed() -> None:
    raise Uncaught("an input was overwritten")


def run(words: list[str]) -> None:
    """Run a command; raises where it ended in the guard's last resort, or printed anything but one document."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(words, prog_name="deniable")
        except SystemExit as left:
            code = left.code
    if code == INTERNAL or "Traceback" in err.getvalue():
        raise Uncaught(err.getvalue()[-300:])
    if "--json" in words and "--" not in words and out.getvalue():
        json.loads(out.getvalue())
