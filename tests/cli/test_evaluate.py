"""`deniable evaluate` and `deniable reproduce`."""

from __future__ import annotations

import json
import math
import re
import stat
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deniable.cli.evaluate import _show_informed
from deniable.cli.main import app
from deniable.planning.informed import Informed, Sureness

ASKED = ("--sensitive", "disease", "--rho1", "1/5", "--rho2", "1/3", "--drop", "name", "--draws", "2", "--workers", "1")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_table_has_every_mechanism_and_the_line_to_beat(patients: Path) -> None:
    done = run("evaluate", patients, *ASKED, "--quiet")
    assert done.exit_code == 0, done.output
    for name in ("uniform", "small-domain", "designed", "anatomy", "independence"):
        assert name in done.stdout
    assert "2 draws" in done.stdout


@pytest.mark.parametrize("precious", [b"one line", b"name,age\nBerta,41", b"{}", b"\xff\xfe\n"])
def test_a_file_that_is_named_by_mistake_is_left_as_it_was(patients: Path, tmp_path: Path, precious: bytes) -> None:
    """A last line without an end was cut off whatever was named, before anyone looked at it."""
    mistaken = tmp_path / "notes.csv"
    mistaken.write_bytes(precious)
    done = run("evaluate", patients, *ASKED, "--mechanism", "uniform", "--resume", mistaken)
    assert done.exit_code != 0
    assert "give another file" in str(done.output) + str(done.exception)
    assert mistaken.read_bytes() == precious


def test_a_line_that_was_cut_off_is_drawn_again(patients: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    words = ("evaluate", patients, *ASKED, "--mechanism", "uniform", "--json", "--resume", log)
    assert run(*words).exit_code == 0
    text = log.read_text()
    units = [(unit["lines"][0]["setting"], unit["lines"][0]["draw"]) for unit in map(json.loads, text.splitlines())]
    for cut in (len(text) - 9, text.rfind("\n", 0, -1) + 3, 5):
        log.write_text(text[:cut])
        assert run(*words).exit_code == 0
        kept = text[: text.rfind("\n", 0, cut) + 1]
        assert log.read_text().startswith(kept)
        lines = [json.loads(line)["lines"][0] for line in log.read_text().splitlines()]
        assert sorted((line["setting"], line["draw"]) for line in lines) == sorted(units)


def test_json_holds_means_and_spreads(patients: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    words = ("--mechanism", "uniform", "--estimator", "mle", "--json", "--resume", log)
    done = run("evaluate", patients, *ASKED, *words)
    (found,) = json.loads(done.stdout)["results"]
    assert [(row["setting"], row["estimator"]) for row in found["rows"]] == [("uniform", "mle"), ("independence", "")]
    assert found["rows"][0]["relative 0.001"]["mean"] > 0
    assert len(log.read_text().splitlines()) == 3
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert json.loads(run("evaluate", patients, *ASKED, *words).stdout) == json.loads(done.stdout)


def test_a_page_with_charts_for_the_owner(patients: Path, tmp_path: Path) -> None:
    page = tmp_path / "evaluation.html"
    done = run("evaluate", patients, *ASKED, "--mechanism", "uniform", "--out", page, "--quiet")
    assert done.exit_code == 0, done.output
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    text = page.read_text(encoding="utf-8")
    assert "This page shows exact counts of the original table" in text
    assert text.count("<svg") == 6, "error against risk, errors by size, true and estimated: for a screen and a phone"
    assert "uniform" in done.stdout, "the table is printed all the same"


def test_the_page_never_stands_in_a_release(patients: Path, release: Path) -> None:
    for option in ("--out", "--resume"):
        done = run("evaluate", patients, *ASKED, option, release / "evaluation.md")
        assert done.exit_code == 2
        assert "never be published" in done.stderr
        assert not (release / "evaluation.md").exists()


def test_own_questions(patients: Path, tmp_path: Path) -> None:
    file = tmp_path / "questions.sql"
    file.write_text("SELECT COUNT(*) FROM release WHERE sex = 'F' AND disease = 'flu'\n")
    done = run("evaluate", patients, *ASKED, "--pool", file, "--mechanism", "uniform", "--json")
    (found,) = json.loads(done.stdout)["results"]
    assert found["pool"] == "questions.sql"
    assert found["questions"]["0.01"] == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--pool", "sdrr"), "Did you mean 'sdr'"),
        (("--mechanism", "unifrm"), "Did you mean 'uniform'"),
        (("--estimator", "invers"), "Did you mean 'inverse'"),
        (("--drop", "nmae"), "Did you mean 'name'"),
        (("--draws", "0"), "draws = 0"),
        (("--out", "page.pdf"), "ends in .html, .md, .json"),
        (("--pool", "splu", "--resume", "x.jsonl"), "one pool"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(patients: Path, words: tuple[str, ...], says: str) -> None:
    done = run("evaluate", patients, *ASKED, *words)
    assert done.exit_code == 2
    assert says in done.stderr
    assert "Traceback" not in done.output


def test_a_mechanism_that_does_not_apply_says_why(patients: Path) -> None:
    done = run("evaluate", patients, *ASKED, "--mechanism", "designed", "--adversary", "any-prior", "--quiet")
    assert done.exit_code == 0
    assert "designed does not apply" in done.stdout


def test_reproduce_writes_a_page_and_prints_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DENIABLE_DATA", raising=False)
    page = tmp_path / "page.md"
    done = run("reproduce", "fine-grain", "--draws", "2", "--out", page, "--quiet")
    assert done.exit_code == 0, done.output
    assert "THESIS Table 10: " in done.stdout
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# The papers, repeated")
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    names = ("thesis-table-10", "thesis-figure-27", "thesis-figure-28")
    assert pictures == [f"page-charts/{name}.svg" for name in names]
    assert all((tmp_path / each).stat().st_size < 60_000 for each in pictures)


def test_without_the_extra_the_page_says_that_it_has_no_charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DENIABLE_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "altair", None)
    page = tmp_path / "page.md"
    done = run("reproduce", "fine-grain", "--draws", "2", "--out", page, "--json")
    assert done.exit_code == 0, done.output
    assert "There are no charts on this page" in page.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [page]
    (made,) = json.loads(done.stdout)["reproductions"]
    assert made["items"][0]["chart"]["series"][0]["points"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("fine-grian",), "Did you mean 'fine-grain'"),
        (("splu",), "--data"),
        (("fine-grain", "--draws", "1"), "too few"),
    ],
)
def test_reproduce_explains_mistakes(words: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DENIABLE_DATA", raising=False)
    done = run("reproduce", *words)
    assert done.exit_code == 2
    assert says in done.stderr


def test_beliefs_without_a_release_are_compared_with_rho2_whichever_mechanism_comes_first(capsys) -> None:
    unlimited, limited = Sureness(0.2, math.nan, 0.1, 0.0), Sureness(0.2, 0.15, 0.1, 0.0)
    _show_informed({"redraw": Informed(unlimited, unlimited, 9), "uniform": Informed(limited, limited, 9)})
    last = capsys.readouterr().out.splitlines()[-2].split()
    assert last == ["no", "release", "20", "%", "15", "%", "10", "%", "0", "%"]


def test_a_budget_is_a_requirement(patients: Path) -> None:
    words = ["evaluate", str(patients), "--sensitive", "disease", "--drop", "name", "--mechanism", "uniform"]
    done = CliRunner().invoke(app, [*words, "--epsilon", "1", "--draws", "1", "--workers", "1", "--json", "--quiet"])
    assert done.exit_code == 0, done.output
    assert 0.2 < json.loads(done.stdout)["results"][0]["rho2"] < 0.24, "a belief of 10 % becomes at most 23.2 %"
    both = CliRunner().invoke(app, [*words, "--epsilon", "1", "--rho2", "1/3"])
    assert both.exit_code == 2
    assert "--epsilon excludes" in both.output
