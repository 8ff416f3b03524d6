"""What commands say to someone who uses them for the first time: the thing, its value and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

CLINIC = "number,height (cm),day,ward,age,costs,disease\n" + "".join(
    f"P{row},{160 + row % 23},2024-0{1 + row % 9}-11,surgery,{row % 90} years,{row}.{row % 10},{'abcdefgh'[row % 8]}\n"
    for row in range(800)
)


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    path = tmp_path / "our clinic.csv"
    path.write_text(CLINIC)
    return path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--sensitive", "disease", "--rho2", "33"),
            "rho2 = 33 is not allowed: it must lie strictly between 0 and 1. Did you mean 33%?",
        ),
        (("--sensitive", "disease", "--rho2", "0,33"), "rho2 = '0,33' is not a number. Did you mean 0.33?"),
        (("--sensitive", "disease", "--rho2", "x,y"), "rho2 = 'x,y' is not a number. Fix:"),
        (("--sensitive", "ward", "--rho2", "1/3"), "Error: The sensitive column has one single value in all rows"),
        (
            ("--sensitive", "disease", "--rho2", "1/3", "--exempt", "aa"),
            "Error: --exempt names 'aa', which is not a value",
        ),
        (
            ("--sensitive", "disease", "--rho2", "1/3", "--drop", "disease"),
            "'disease' is named by --sensitive and by --drop",
        ),
        (
            ("--sensitive", "age", "--rho2", "1/3", "--bins", "age=0,50,99"),
            "the column 'age' holds text, and bins are for numbers. Fix: write its values as numbers",
        ),
        (
            ("--sensitive", "disease", "--rho2", "1/3", "--recode", "day=bands:10"),
            "the column 'day' holds dates. Fix: recode it by year",
        ),
        (
            ("--sensitive", "disease", "--rho2", "1/3", "--recode", "age=year"),
            "recode: year is for dates, and the column 'age' holds text. Fix: write its values as dates in the table, "
            "such as 2024-12-31",
        ),
        (
            ("--sensitive", "disease", "--rho2", "1/3", "--drop", "number,height (cm)"),
            "Fix: name columns one by one, --drop number --drop 'height (cm)'.",
        ),
        (("--sensitive", "disease", "--rho2", "1/8"), "where next to nothing is kept. Fix: a rho2 well above that"),
    ],
)
def test_a_mistake_is_answered_with_the_fix(run, clinic: Path, tmp_path: Path, words, message) -> None:
    done = run("publish", clinic, *words, "--out", tmp_path / "release")
    assert done.returncode == 2
    assert message in done.stderr
    assert "surgery" not in done.stderr


def test_a_sensitive_identifier_is_warned_of_and_the_next_command_can_be_copied(
    run, clinic: Path, tmp_path: Path
) -> None:
    out = tmp_path / "two words"
    done = run("publish", clinic, "--sensitive", "number", "--rho2", "1/3", "--mechanism", "uniform", "--out", out)
    assert "Warning: The sensitive column 'number' has about as many values as rows" in done.stderr
    assert f"Next: deniable verify '{out}'" in done.stderr
    other = ("--sensitive", "disease", "--rho2", "1/3", "--mechanism", "uniform", "--drop", "number", "--drop", "costs")
    assert "about as many values" not in run("publish", clinic, *other, "--out", tmp_path / "b").stderr
    nothing = run("verify", tmp_path)
    assert f"Did you mean '{tmp_path / 'b'}' or '{out}'?" in nothing.stderr


def test_a_release_that_answers_nothing_is_warned_of(run, clinic: Path, tmp_path: Path) -> None:
    words = ("--sensitive", "disease", "--mechanism", "uniform", "--drop", "number", "--drop", "costs", "--seed", "1")
    warning = "Warning: Next to nothing can be learnt from this release: even a count of 80 people (10 % of the rows)"
    assert warning in run("publish", clinic, *words, "--rho2", "0.14", "--out", tmp_path / "a", "--quiet").stderr
    assert warning not in run("publish", clinic, *words, "--rho2", "1/2", "--out", tmp_path / "b", "--quiet").stderr


def test_a_table_that_is_not_there_is_answered_with_how_to_give_one(run, release: Path) -> None:
    done = run("query", release, "SELECT COUNT(*) FROM patients")
    assert "There is no table 'patients'" in done.stderr
    assert "--with NAME=FILE." in done.stderr


def test_a_report_has_the_format_that_its_name_says(run, release: Path, tmp_path: Path) -> None:
    for words, message in (
        (("--out", tmp_path / "report.pdf"), "ends in .pdf"),
        (("--out", tmp_path / "report.md", "--format", "json"), "ends in .md, and the report is json"),
    ):
        done = run("report", release, *words)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    done = run("report", release, "--out", tmp_path / "report.md", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "report.md").read_text().startswith("# ")
    assert run("report", release, "--format", "md", "--out", tmp_path / "notes.txt").returncode == 0
    assert (tmp_path / "notes.txt").read_text() == (tmp_path / "report.md").read_text()


def test_a_plan_lists_nothing_twice_and_promises_no_error_that_was_not_predicted(
    run, clinic: Path, tmp_path: Path
) -> None:
    done = run("plan", clinic, "--sensitive", "costs", "--rho2", "1/3", "--question", "1%")
    assert "No value is frequent enough for counts of these sizes" in done.stdout
    (tmp_path / "two.csv").write_text("sex,year\nf,1980\nm,1981\n")
    done = run("plan", tmp_path / "two.csv", "--sensitive", "sex", "--rho2", "2/3")
    assert "Take " in done.stdout
    assert "exempt that value with --exempt" in done.stdout
    (tmp_path / "none.csv").write_text("sex,year\n")
    assert "The table has no rows" in run("risk", tmp_path / "none.csv", "--columns", "sex").stderr
