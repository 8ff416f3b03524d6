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
    pq.write_table(pa.table({"name": range(len(values)), "disease": values}), path)
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


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--sensitive", "disease"), "Give either --rho2"),
        (("--sensitive", "disease", "--rho2", "1/3", "--for-error", "5%"), "Give either --rho2"),
        (("--sensitive", "diseas", "--rho2", "1/3"), "Did you mean 'disease'"),
        (("--sensitive", "disease", "--rho2", "1/50"), "No mechanism meets this requirement"),
        (("--sensitive", "disease", "--rho2", "1/3", "--exempt", "zz"), "'zz'"),
        (("--sensitive", "disease", "--rho2", "1/3", "--explain", "nothing"), "--explain nothing"),
    ],
)
def test_mistakes_are_one_message_and_exit_two(table, args, words):
    done = run(table, *args)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
