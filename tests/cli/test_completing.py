"""What a shell is told to complete, asked as bash and fish ask."""

import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import deniable as dn


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("completing")
    table = pa.table(
        {
            "sex": ["F", "M"] * 300,
            "age group": ["young", "old", "old"] * 200,
            "disease": ["flu", "flu", "gout's", "cold", "flu"] * 120,
        }
    )
    pa_csv.write_csv(table, place / "people.csv")
    dn.publish(
        table,
        sensitive="disease",
        mechanism="uniform",
        privacy=dn.Privacy(rho2="9/10"),
        key=bytes(32),
        out=place / "release",
    )
    return place


def completed(place, line, *, shell="bash"):
    """The completions of the last word of a line, with the exit code and what went to stderr."""
    words = line.split()
    asked = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - (not line.endswith(" ")))},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    if '"' in line:
        asked["COMP_CWORD"] = str(len(line.partition('"')[0].split()))
    run = subprocess.run(
        [sys.executable, "-m", "deniable"],
        env={**os.environ, **asked, "_DENIABLE_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE": ""},
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("publish people.csv --sensitive d", ["disease"]),
        ("publish people.csv --recode s", ["sex="]),
        ("risk people.csv --columns sex,d", ["sex,disease"]),
        ("publish nowhere.csv --sensitive d", [""]),
    ],
)
def test_columns_of_the_table_are_completed(place, line, found):
    assert completed(place, f"deniable {line}") == found


@pytest.mark.parametrize(
    ("begun", "last", "found"),
    [
        ("SELECT COUNT(*) FROM release WHERE ", "dis", ["disease"]),
        ("SELECT COUNT(*) FROM release WHERE sex = '", "", ["F'", "M'"]),
        ("SELECT COUNT(*) FROM release WHERE disease = '", "c", ["cold'"]),
        ("SELECT COUNT(*) FROM release WHERE disease IN ('flu', '", "g", ["gout''s'"]),
        ("SELECT COUNT(*) FROM release ", "GR", ["GROUP BY"]),
    ],
)
def test_columns_values_and_words_of_a_question_are_completed(place, begun, last, found):
    line = f'deniable query release "{begun}{last}'
    assert completed(place, line) == [begun + word for word in found]


def test_fish_is_told_the_same(place):
    assert completed(place, "deniable publish people.csv --sensitive d", shell="fish")[0] == "disease"
