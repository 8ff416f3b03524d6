"""What the commands print, and how they end: run as `python -m deniable` runs them, in a folder of their own."""

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pyarrow.csv
import pyarrow.parquet as pq

from tests.golden.answers import Items
from tests.golden.cases import KEY, PUBLIC
from tests.golden.freeze import plain, quiet
from tests.golden.tables import chapters, patients

KEEP = "--sensitive disease --rho1 1/4 --rho2 3/5 --key-file key --quiet"
COMMANDS = [
    f"publish patients.csv {KEEP} --mechanism uniform --drop row --out uniform",
    f"publish patients.csv {KEEP} --mechanism small-domain --drop row --out cells --format csv --again --json",
    f"publish patients.parquet {KEEP} --mechanism designed --drop row --out designed --no-shuffle --again",
    f"publish patients.parquet {KEEP} --mechanism lineup --row-id row --out lineup --no-marginals --again",
    f"publish patients.parquet {KEEP} --out auto --drop row --again --recode age=bands:10 --rare 20",
    "publish patients.csv --mechanism retention:age=0.5@18..90,job=0.6 --key-file key --drop row --out each --again -q",
    f"publish patients.csv {KEEP} --mechanism uniform --drop row --out uniform --again",
    "publish patients.csv --sensitive disease --rho2 3/5 --mechanism unifrom --out none",
    "publish patients.csv --sensitive desease --rho2 3/5 --mechanism uniform --out none",
    "publish patients.csv --sensitive disease --rho1 2/3 --rho2 1/3 --mechanism uniform --out none",
    "publish nobody.csv --sensitive disease --rho2 1/3 --out none",
    *(f"verify {folder}" for folder in ("uniform", "cells", "designed", "lineup", "auto", "each", "nobody")),
    "verify uniform --json",
    "verify broken",
    "verify broken --json",
    "query uniform :: SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM release WHERE disease = 'gout' "
    "GROUP BY sex ORDER BY sex",
    "query uniform --csv :: SELECT disease, COUNT(*) AS n FROM release GROUP BY disease ORDER BY n DESC LIMIT 3",
    "query designed --json :: SELECT region, COUNT(*) AS n FROM release GROUP BY region ORDER BY 1",
    "query cells --method mle --confidence 0.9 :: SELECT COUNT(*) AS n FROM release WHERE disease = 'hiv'",
    "query lineup --method shrunk --json :: SELECT COUNT(*) AS n FROM release WHERE disease <> 'flu' AND age > 40",
    "query uniform --with c=c.csv :: SELECT chapter, COUNT(*) AS n "
    "FROM release JOIN c ON disease = code GROUP BY 1 ORDER BY 1",
    "query uniform --simultaneous :: SELECT disease, COUNT(*) AS n FROM release "
    "GROUP BY disease HAVING n > 400 ORDER BY 1",
    "query designed --no-calibrate :: SELECT COUNT(*) AS n FROM release WHERE disease = 'flu'",
    "query each :: SELECT AVG(age) AS a FROM release WHERE job = 'nurse'",
    "query uniform :: SELECT COUNT(*) FROM elsewhere",
    "query uniform :: SELECT COUNT(DISTINCT disease) FROM release",
    "audit patients.csv uniform --quiet",
    "audit patients.csv cells --quiet --json",
    "audit patients.parquet lineup --quiet --attacks",
    "audit patients.csv each --quiet",
    "audit patients.csv nobody --quiet",
    "plan patients.csv --sensitive disease --rho1 1/4 --rho2 3/5 --drop row --json --quiet",
    "plan patients.csv --sensitive disease --rho1 1/4 --rho2 3/5 --drop row --explain small-domain --quiet",
    "plan patients.parquet --sensitive disease --rho2 1/2 --adversary any-prior --quiet",
    "breach each job=judge",
    "breach each job=judge,cook age=20..30 --rho1 1/10 --rho2 1/2 --json",
    "breach uniform disease=hiv --rho1 1/20 --rho2 1/4",
]
# What rivals promise and predict stands in the comparison of all mechanisms, and goes with them.
RIVALS = ("anatomy", "generalize", "perturbed-generalization", "optrr", "laplace")


LONG = re.compile(r"\d+\.\d{9,}")  # more digits than are the same whatever is added up first
SQL = " :: "  # between the words of a command and its question


@cache
def ran() -> dict[str, Items]:
    """Command line -> exit code and the lines of stdout; of what is refused the code alone."""
    with TemporaryDirectory(prefix="golden-") as home, contextlib.chdir(home), quiet():
        table = patients().select(["row", *PUBLIC, "job", "disease"])
        pyarrow.csv.write_csv(table, "patients.csv")
        pq.write_table(table, "patients.parquet")
        pyarrow.csv.write_csv(chapters(), "c.csv")
        Path("key").write_bytes(KEY)
        Path("key").chmod(0o600)
        made = {}
        for line in COMMANDS:
            if line == "verify broken":
                _break("uniform", "broken")
            made[line] = _run(line)
        return made


def _run(line: str) -> Items:
    """A command as a shell would run it."""
    words, *question = line.split(SQL)
    given, stdout, stderr = shlex.split(words), io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["deniable", *given[:2], *question, *given[2:]]),
        mock.patch.dict(os.environ, {"COLUMNS": "200"}),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            runpy.run_module("deniable", run_name="__main__")
            code: object = 0
        except SystemExit as left:
            code = left.code or 0
    text = stdout.getvalue()
    if "--json" in given and text:
        return {"exit": code, **_without_rivals(plain(json.loads(text)))}
    lines = [line for line in text.splitlines() if not line.strip().startswith(RIVALS)]
    return {
        "exit": code,
        "stdout": [LONG.sub(lambda number: f"{float(number[0]):.10g}", line).rstrip() for line in lines],
    }


def _without_rivals(printed: Items) -> Items:
    """Lists of mechanisms, checks and rows one by one, without rivals and how long planning took."""
    kept = {}
    for name, value in printed.items():
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            for number, one in enumerate(value):
                if one.get("mechanism") not in RIVALS:
                    kept[f"{name} {one.get('mechanism', number)}"] = {
                        key: inner for key, inner in one.items() if key != "seconds"
                    }
        else:
            kept[name] = value
    return kept


def _break(good: str, bad: str) -> None:
    """A copy of a release that promises more than it keeps."""
    shutil.copytree(good, bad)
    path = Path(bad) / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["guarantee"]["rho2"] = "3/10"
    path.write_text(json.dumps(manifest), encoding="utf-8")
