"""`deniable plan`: compare, recommend, turn round, draw."""

import json
import re

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


def test_exempt_values_count_where_the_error_is_turned_round(table):
    """They silently did not: the most frequent value stood in the way of a smaller rho2."""
    args = (table, "--sensitive", "disease", "--for-error", "60%", "--question", "5%", "--json")
    plain, exempt = (
        {row["mechanism"]: row["rho2"] for row in json.loads(run(*args, *more).stdout)["strongest"]}
        for more in ((), ("--exempt", "a", "--exempt", "b"))
    )
    assert exempt["designed"] < plain["designed"]
    refused = json.loads(run(*args, "--adversary", "any-prior", "--rho1", "1/5").stdout)["strongest"]
    assert {row["mechanism"] for row in refused if "refused" in row} == {"small-domain", "identity", "designed"}


def test_questions_of_other_sizes_are_predicted_for(table):
    done = run(table, "--sensitive", "disease", "--rho2", "1/3", "--question", "2%", "--question", "5%", "--json")
    found = json.loads(done.stdout)
    assert found["selectivities"] == [0.02, 0.05]
    assert found["candidates"][0]["errors"][0] > found["candidates"][0]["errors"][1]


def test_the_tolerance_rule_is_an_option_of_plan_and_publish(table, tmp_path):
    found = json.loads(run(table, "--sensitive", "disease", "--tolerance", "2", "--json").stdout)
    assert {each["mechanism"] for each in found["candidates"] if "errors" in each} == {
        "fine-grain",
        "identity",
        "designed",
        "lineup",
        "synthetic",
    }
    out = ("--tolerance", "2", "--mechanism", "fine-grain", "--drop", "name", "--out", str(tmp_path / "r"), "-q")
    done = CliRunner().invoke(app, ["publish", table, "--sensitive", "disease", *out])
    assert done.exit_code in (0, 3), done.output
    stated = json.loads((tmp_path / "r" / "manifest.json").read_text())["privacy"]["per_value"]
    assert len(stated) == 12


def test_every_value_of_one_channel_is_explained_in_both_directions(table):
    args = (table, "--sensitive", "disease", "--tolerance", "2", "--explain", "fine-grain")
    told = json.loads(run(*args, "--json").stdout)["values"]
    assert [row["value"] for row in told] == list("abcdefghijkl")
    assert all(row["grows to"] <= row["rho2"] and row["downward"] == (row["falls to"] >= row["rho1"]) for row in told)
    assert "Downward: whoever believes it" in run(*args).stdout


def test_both_adversaries_are_told_and_drawn_for_every_mechanism(table, tmp_path):
    chart = tmp_path / "beliefs.svg"
    args = (table, "--sensitive", "disease", "--rho2", "1/3", "--beliefs-chart", str(chart))
    found = json.loads(run(*args, "--json").stdout)
    for each in (*found["candidates"], *found["rivals"]):
        assert each["worst_posterior"]["frequency"] <= each["worst"] + 1e-4
        assert each["worst_posterior"]["any-prior"] > 0
    text = chart.read_text()
    assert all(name in text for name in ("designed", "anatomy", "any attacker", "knows how frequent"))


def test_cells_are_shown_and_charts_drawn(table, tmp_path):
    done = run(
        *(table, "--sensitive", "disease", "--rho2", "1/3", "--explain", "small-domain", "--question", "5%"),
        *("--chart", str(tmp_path / "error.svg"), "--cells-chart", str(tmp_path / "cells.svg")),
    )
    assert done.exit_code == 0, done.output
    assert "first values" in done.stdout
    for name in ("error.svg", "cells.svg"):
        assert (tmp_path / name).read_text().startswith("<svg")
    drawn = (tmp_path / "error.svg").read_text()
    assert all(name in drawn for name in ("designed, floor", "uniform", "synthetic", "lineup"))


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
    lines = run(table, *plan[:-1], "--pool", str(asked), "--wide").stdout.splitlines()
    heads = next(line for line in reversed(lines) if line.startswith("mechanism"))
    nothing = next(line for line in lines if line.startswith("no release at all"))
    assert not nothing[len("no release at all") : heads.index("error, all")].strip()
    assert nothing[heads.index("error, all") :].split()[1::2] == ["%"] * 4


def test_rivals_are_listed_and_never_recommended(table):
    shown = run(table, "--sensitive", "disease", "--rho2", "1/3").stdout
    assert "Rivals, for comparison" in shown
    assert "+ bias" in shown
    assert run(table, "--sensitive", "disease", "--rho2", "1/3", "--rivals").stdout == shown
    assert "Rivals" not in run(table, "--sensitive", "disease", "--rho2", "1/3", "--no-rivals").stdout
    assert not any(f"Take {name}" in shown for name in ("anatomy", "redraw", "laplace", "generalize", "pram", "decoys"))


def test_numbers_are_planned_for_as_the_intervals_they_are_published_as(tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text("sex,pay\n" + "".join(f"{'FM'[i % 2]},{1000 + i % 700}\n" for i in range(3000)))
    done = run(str(path), "--sensitive", "pay", "--bins", "pay=1000,1100,1300,1500,1700", "--rho2", "1/2", "--json")
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["candidates"]) > 5
    shared = (str(path), "--sensitive", "pay", "--rho2", "1/2", "--explain", "uniform", "--json")
    told = json.loads(run(*shared, "--bins", "pay=equal:1000:1700:7").stdout)["values"]
    assert "[1000, 1100)" in {row["value"] for row in told}
    told = [row["value"] for row in json.loads(run(*shared, "--bins", "pay=quantiles:4").stdout)["values"]]
    edges = sorted({int(number) for value in told for number in re.findall(r"[0-9]+", value)})
    assert edges == pytest.approx([1171, 1342, 1514], abs=40)  # the quartiles of the column, and noise of some rows
    told = run(*shared, "--bins", "pay=quantiles:4", "--tolerance", "0.5")
    assert told.exit_code == 2
    assert "Fix: give edges" in told.stderr
    wrong = run(*shared, "--bins", "pay=equal:1000:1700")
    assert wrong.exit_code == 2
    assert "equal:LOW:HIGH:COUNT" in wrong.stderr


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
        (("--sensitive", "disease", "--for-error", "5%", "--adversary", "any-prior"), "'any-prior' needs rho1"),
        (("--sensitive", "disease", "--for-error", "5%", "--question", "60%"), "No single value is as much as 60 %"),
        (("--sensitive", "disease", "--rho2", "1/3", "--question", "60%", "--chart", "x.svg"), "no mechanism has"),
        (("--sensitive", "disease", "--tolerance", "1"), "above 1"),
        (("--sensitive", "disease", "--tolerance", "2", "--rho2", "1/3"), "--tolerance excludes"),
        (("--sensitive", "disease", "--tolerance", "2", "--requirements", "r.csv"), "contradict each other"),
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
    usable = [each for each in found["candidates"] if "errors" in each and "withheld" not in each]
    errors = {each["label"]: each["errors"] for each in usable}  # line-ups are listed in several sizes
    assert errors["uniform"][-1] == 0
    assert found["candidates"][0]["mechanism"] == found["recommended"]
    assert errors[found["candidates"][0]["label"]][0] == min(each[0] for each in errors.values()) < errors["uniform"][0]
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
