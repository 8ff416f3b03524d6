"""`deniable plan`: compare, recommend, turn round, draw."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from deniable.cli.main import app


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "t.parquet"
    values = [
        v
        for v, n in zip("abcdefghijkl", (60, 50, 45, 40, 35, 30, 25, 20, 15, 10, 6, 4), strict=True)
        for _ in range(20 * n)
    ]
    sex = ["F" if i % 3 else "M" for i in range(len(values))]
    pq.write_table(pa.table({"name": range(len(values)), "sex": sex, "disease": values}), path)
    return str(path)


def run(*args):
    return CliRunner().invoke(app, ["plan", *args])


def test_every_applicable_mechanism_is_compared_and_one_recommended(table):
    done = run(table, "--sensitive", "disease", "--rho2", "1/3", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    names = {candidate["mechanism"] for candidate in found["candidates"]}
    assert {"uniform", "small-domain", "fine-grain", "identity", "designed"} <= names
    errors = {c["mechanism"]: c["errors"][-1] for c in found["candidates"]}
    assert found["candidates"][0]["mechanism"] == found["recommended"]
    assert errors[found["recommended"]] < errors["uniform"]
    assert found["reason"].count(".") >= 2


def test_a_mechanism_that_cannot_meet_the_adversary_is_left_out_and_says_why(table):
    done = run(table, "--sensitive", "disease", "--rho1", "1/4", "--rho2", "1/3", "--adversary", "any-prior", "--json")
    refused = {c["mechanism"]: c["refused"] for c in json.loads(done.stdout)["candidates"] if "refused" in c}
    assert {"small-domain", "designed", "identity"} <= set(refused)
    assert all("any-prior" in reason for reason in refused.values())


def test_an_error_is_turned_into_the_strongest_requirement(table):
    tight, loose = (
        json.loads(run(table, "--sensitive", "disease", "--for-error", e, "--question", "5%", "--json").stdout)[
            "strongest"
        ]
        for e in ("5%", "20%")
    )
    best = {row["mechanism"]: row["rho2"] for row in tight}
    for row in loose:
        assert row["rho2"] <= best[row["mechanism"]]
        assert row["error"] <= 0.2


def test_cells_are_shown_and_charts_drawn(table, tmp_path):
    done = run(
        *(table, "--sensitive", "disease", "--rho2", "1/3", "--explain", "small-domain", "--question", "5%"),
        *("--chart", str(tmp_path / "error.svg"), "--cells-chart", str(tmp_path / "cells.svg")),
    )
    assert done.exit_code == 0, done.output
    assert "first values" in done.stdout
    for name in ("error.svg", "cells.svg"):
        assert (tmp_path / name).read_text().startswith("<svg")


def test_errors_are_predicted_for_the_users_own_questions(table, tmp_path):
    asked = tmp_path / "questions.sql"
    asked.write_text("-- mine\nSELECT COUNT(*) FROM release WHERE sex = 'F' AND disease IN ('k', 'l')\n")
    plan = ("--sensitive", "disease", "--rho2", "1/3", "--drop", "name", "--json")
    found = json.loads(run(table, *plan, "--pool", str(asked)).stdout)
    assert found["questions"] == [1, 1, 1, 1]
    assert {rival["mechanism"] for rival in found["rivals"]} >= {"anatomy", "generalize", "laplace", "decoys"}
    others = json.loads(run(table, *plan, "--pool", "sdr").stdout)
    assert others["questions"][0] > 20
    assert found["candidates"][0]["errors"] != others["candidates"][0]["errors"]
    shown = run(table, *plan[:-1], "--pool", str(asked))
    assert "no release at all" in shown.stdout


def test_rivals_are_listed_and_never_recommended(table):
    shown = run(table, "--sensitive", "disease", "--rho2", "1/3").stdout
    assert "Rivals, for comparison" in shown
    assert "+ bias" in shown
    assert not any(f"Take {name}" in shown for name in ("anatomy", "redraw", "laplace", "generalize", "pram", "decoys"))


def test_numbers_are_planned_for_as_the_intervals_they_are_published_as(tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text("sex,pay\n" + "".join(f"{'FM'[i % 2]},{1000 + i % 700}\n" for i in range(3000)))
    done = run(str(path), "--sensitive", "pay", "--bins", "pay=1000,1100,1300,1500,1700", "--rho2", "1/2", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["recommended"] == "designed"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--sensitive", "disease"), "Give either --rho2"),
        (("--sensitive", "disease", "--rho2", "1/3", "--for-error", "5%"), "Give either --rho2"),
        (("--sensitive", "diseas", "--rho2", "1/3"), "Did you mean 'disease'"),
        (("--sensitive", "disease", "--rho2", "1/50"), "No mechanism meets this requirement"),
        (("--sensitive", "disease", "--rho2", "1/3", "--exempt", "zz"), "'zz'"),
        (("--sensitive", "disease", "--rho2", "1/3", "--explain", "nothing"), "--explain nothing"),
        (("--sensitive", "disease", "--rho2", "1/3", "--pool", "sdrr"), "Did you mean 'sdr'"),
        (("--sensitive", "disease", "--for-error", "5%", "--pool", "sdr"), "--pool goes with --rho2"),
    ],
)
def test_mistakes_are_one_message_and_exit_two(table, args, words):
    done = run(table, *args)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_questions_about_public_columns_alone_do_not_decide(table, tmp_path):
    """They are answered exactly by all; the recommendation follows from the others."""
    asked = tmp_path / "asked.sql"
    lines = ["sex = 'F'", "sex = 'M'", "disease = 'l' AND sex = 'M'"]
    asked.write_text("".join(f"SELECT COUNT(*) FROM release WHERE {line}\n" for line in lines))
    done = run(table, "--sensitive", "disease", "--rho2", "1/3", "--drop", "name", "--pool", str(asked), "--json")
    found = json.loads(done.stdout)
    errors = {each["mechanism"]: each["errors"] for each in found["candidates"] if "errors" in each}
    assert errors["uniform"][-1] == 0
    assert errors[found["recommended"]][0] == min(each[0] for each in errors.values()) < errors["uniform"][0]
    asked.write_text("SELECT COUNT(*) FROM release WHERE sex = 'F'\n")
    reason = json.loads(run(table, "--sensitive", "disease", "--rho2", "1/3", "--pool", str(asked), "--json").stdout)[
        "reason"
    ]
    assert "no smaller" in reason
    assert "nan" not in reason


def test_questions_that_no_row_satisfies_are_refused(table, tmp_path):
    asked = tmp_path / "asked.sql"
    asked.write_text("SELECT COUNT(*) FROM release WHERE name > 1000000 AND disease = 'a'\n")
    done = run(table, "--sensitive", "disease", "--rho2", "1/3", "--pool", str(asked))
    assert done.exit_code == 2
    assert "no row of the table satisfies any of them" in done.stderr
