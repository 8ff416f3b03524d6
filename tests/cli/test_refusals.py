"""Every refusal is one message and exit code 2; it names the option that was typed and the fix, and leaves nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

TABLE = "patient,name,sex,age,disease,cost\n" + "".join(
    f"P{row % 300},Person {row},{'FM'[row % 2]},{18 + row % 70},{'abcdefgh'[row % 8]},{row}.5\n" for row in range(800)
)
PUBLISH = ("publish", "t.csv", "--sensitive", "disease", "--rho2", "1/3", "--out", "o")
EVALUATE = ("evaluate", "t.csv", "--sensitive", "disease", "--rho2", "1/3")
COUNT = "SELECT COUNT(*) AS n FROM release"
CASES = [
    ((*PUBLISH, "--person", "patien"), "--person names the column 'patien', .* Did you mean 'patient'"),
    ((*PUBLISH, "--person", ""), "--person names the column '', which the table does not have. Fix:"),
    ((*PUBLISH, "--row-id", ""), "--row-id names the column '', which the table does not have. Fix:"),
    ((*PUBLISH, "--person", "disease"), "'disease' is named by --sensitive and by --person: "),
    ((*PUBLISH, "--row-id", "name", "--person", "patient"), "--row-id and --person exclude each other.* Fix: "),
    ((*PUBLISH, "--rare", "se=5"), "--rare names the column 'se', .* Did you mean 'sex'"),
    ((*PUBLISH, "--suppress", "diseas=5"), "--suppress names the column 'diseas', .* Did you mean 'disease'"),
    ((*PUBLISH, "--recode", "ag=bands:5"), "--recode names the column 'ag', .* Did you mean 'age'"),
    ((*PUBLISH, "--bins", "cos=1,2,3"), "--bins names the column 'cos', .* Did you mean 'cost'"),
    (("publish", "t.csv", "--mechanism", "retention:ag=0.5", "--out", "o"), "--mechanism names the column 'ag'"),
    (("publish", "t.csv", *PUBLISH[1:]), "'t.csv' is named 2 times. Fix: name it once"),
    ((*PUBLISH, "--seed", "9" * 30), "seed = 9{30} is no whole number of 64 bits. Fix: "),
    ((*PUBLISH, "--requirements", "none.csv"), "--requirements excludes .* Fix: "),
    (("publish", "header.csv", *PUBLISH[2:]), "has no rows: there is nothing to publish. Fix: "),
    ((*PUBLISH[:4], "--tolerance", "0.5", "--out", "o"), "--tolerance = '0.5' must be .* Fix: --tolerance 3"),
    ((*EVALUATE[:3], "diseas", *EVALUATE[4:]), "--sensitive names the column 'diseas', .* Did you mean 'disease'"),
    ((*EVALUATE, "--drop", "nam"), "--drop names the column 'nam', .* Did you mean 'name'"),
    ((*EVALUATE, "--drop", "disease"), "'disease' is named by --sensitive and by --drop"),
    ((*EVALUATE, "--exempt", "x"), "--exempt names 'x', which is not a value of the sensitive column. Fix: "),
    (("risk", "t.csv", "--columns", "ag"), "--columns names the column 'ag', .* Did you mean 'age'"),
    (("risk", "t.csv", "--columns", "age", "--sensitive", "diseas"), "--sensitive names the column 'diseas'"),
    (("plan", *EVALUATE[1:], "--chart", "no/such/x.svg"), "there is no folder 'no/such'. Fix: "),
    (("plan", *EVALUATE[1:], "--explain", "lineupp"), "Did you mean 'lineup'.* Fix: one of "),
    (("report", "release", "--out", "no/such/x.html"), "there is no folder 'no/such'. Fix: "),
    (("report", "release", "--evaluation", "nope"), "--evaluation 'nope' is not the result of an evaluation. Fix: "),
    (("audit", "header.csv", "release", "--out", "no/x"), "there is no folder 'no'. Fix: "),
    (("audit", "few.csv", "release"), "no column 'sex'.*: it is not the one that was published. Fix: "),
    (("verify", "nope"), "'nope' is not a release: it does not exist. Fix: "),
    (("query", "half", COUNT), "manifest.json is not JSON .* Fix: get the release again"),
    (("query", "release", "SELEC 1"), "The SQL cannot be read at line 1, .* Fix: write for example SELECT"),
    (("query", "release", COUNT, *("--with", "a=few.csv") * 2), "--with names the table 'a' twice. Fix: "),
    (("query", "release", COUNT, "--with", "a=latin.csv"), "column 'town' is not UTF-8\\). Fix: "),
    (("respond", "release", ""), "Row 1 is no JSON object. Fix: "),
    (("rows-needed", "1e-300"), "need more rows than there can be. Fix: "),
    (("rows-needed", "0.5", "--error", "1e-300"), "need more rows than there can be. Fix: "),
    (("rows-needed", "x"), "'x': "),
    (("demo", "--rows", "3"), "--rows 3 is too few.* Fix: --rows 500"),
    (("demo", "--rows", "499"), "--rows 499 is too few.* Fix: --rows 500"),
    (("demo", "--rows", "500", "--out", "."), "'release' exists and is not the demo's: it is not overwritten. Fix: "),
    (("demo", "--rows", "500", "--out", "t.csv"), "a part of that path is a file. Fix: "),
    (("collect", "serve", "survey.toml", "--token-file", "nope"), "The token file 'nope' cannot be read.* Fix: "),
    (("collect", "simulate", "survey.toml", "--seed", "-1"), "seed = -1 is below 0. Fix: --seed 1"),
]  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, release: Path, run) -> Path:
    """A folder with a table, what is wrong in several ways, and a release."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "t.csv").write_text(TABLE)
    (folder / "header.csv").write_text("sex,age,disease\n")
    (folder / "few.csv").write_text("age,disease\n40,flu\n50,cold\n")
    (folder / "latin.csv").write_bytes("code,town\n1,Zürich\n".encode("latin1"))
    for name in ("release", "half"):
        shutil.copytree(release, folder / name)
    manifest = folder / "half" / "manifest.json"
    manifest.write_text(manifest.read_text()[:2000])
    assert run("collect", "new", folder / "survey.toml").returncode == 0
    return folder


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize(
    ("words", "message"), CASES, ids=lambda one: " ".join(one)[:60] if isinstance(one, tuple) else ""
)
def test_a_refusal_names_what_was_typed_and_the_fix_and_leaves_nothing(run, home: Path, words, message) -> None:
    before = contents(home)
    done = run(*words, cwd=home)
    assert done.returncode == 2, done.stderr
    assert re.search(message, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert contents(home) == before
