"""`deniable publish`: a release from one command, and one message per mistake."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from deniable.mechanisms import MECHANISMS

GOOD = ("--sensitive", "disease", "--rho1", "1/5", "--rho2", "1/3", "--drop", "name")


def test_one_command_gives_a_release_without_the_dropped_column(release: Path) -> None:
    assert {path.name for path in release.iterdir()} == {
        "data.parquet",
        "manifest.json",
        "README.md",
        "weights.parquet",
    }
    table = pq.read_table(release / "data.parquet")
    assert table.num_rows == 3000
    assert set(table.column_names) == {"sex", "age", "disease"}


def test_the_guarantee_is_on_stdout_and_the_talk_on_stderr(patients: Path, shell, tmp_path: Path) -> None:
    done = shell("publish", patients, *GOOD, "--out", tmp_path / "r")
    assert done.returncode == 0
    assert "Published 3,000 rows" in done.stdout
    assert "33.3 %" in done.stdout
    assert "Not protected:" in done.stderr
    assert "Next: deniable verify" in done.stderr


def test_quiet_says_the_result_only(patients: Path, run, tmp_path: Path) -> None:
    done = run("publish", patients, *GOOD, "--out", tmp_path / "r", "--quiet")
    assert done.returncode == 0
    assert done.stderr == ""


def test_json_is_one_object_on_stdout(patients: Path, run, tmp_path: Path) -> None:
    done = run("publish", patients, *GOOD, "--out", tmp_path / "r", "--json")
    result = json.loads(done.stdout)
    assert result["rows"] == 3000
    assert result["guarantee"]["sentence"]
    assert result["randomness"]["source"] == "operating system"
    assert result["warnings"] == []


def test_columns_that_look_like_identifiers_are_decided_on(patients: Path, run, tmp_path: Path) -> None:
    done = run("publish", patients, *GOOD[:-2], "--out", tmp_path / "r", "--json")
    assert done.returncode == 3
    (point,) = [one for one in json.loads(done.stdout)["decision"]["decisions"] if one["part"] == "identifiers"]
    assert point["columns"] == ["name"]
    assert point["fix"] == [["drop", "name"]]


def test_a_seed_is_loud_and_recorded(patients: Path, run, tmp_path: Path) -> None:
    done = run("publish", patients, *GOOD, "--out", tmp_path / "r", "--seed", 5, "--json", "--quiet")
    assert "Warning: seed = 5" in done.stderr
    assert json.loads(done.stdout)["randomness"]["seed"] == 5


def test_a_new_key_is_for_its_owner_only_and_makes_the_same_release_again(patients: Path, run, tmp_path: Path) -> None:
    key = tmp_path / "key"
    first = run("publish", patients, *GOOD, "--out", tmp_path / "a", "--new-key-file", key)
    assert first.returncode == 0, first.stderr
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    second = run("publish", patients, *GOOD, "--out", tmp_path / "b", "--key-file", key)
    assert second.returncode == 0, second.stderr
    assert (tmp_path / "a" / "data.parquet").read_bytes() == (tmp_path / "b" / "data.parquet").read_bytes()
    secret = key.read_text().strip()
    for path in (tmp_path / "a").iterdir():
        assert secret.encode() not in path.read_bytes()
        assert bytes.fromhex(secret) not in path.read_bytes()


def test_a_key_for_a_release_that_fails_is_not_left_behind(patients: Path, run, tmp_path: Path) -> None:
    done = run("publish", patients, "--sensitive", "diseas", "--rho2", "1/3", "--out", tmp_path / "r",
               "--new-key-file", tmp_path / "key")  # fmt: skip
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_column_that_an_option_names_twice_and_a_list_that_is_not_there_are_refused(
    patients: Path, run, tmp_path: Path
) -> None:
    """The first of two lists, or of two numbers, was silently left out."""
    (tmp_path / "a.txt").write_text("flu\n")
    words = ("publish", patients, *GOOD, "--out", tmp_path / "r")
    asked = f"disease={tmp_path / 'a.txt'}"
    for option, text in (("--domain", asked), ("--bins", "age=0,50,100"), ("--rare", "sex=3")):
        done = run(*words, option, text, option, text)
        assert done.returncode == 2
        assert f"{option} names the column {text.partition('=')[0]!r} twice. Fix: name it once." in done.stderr
    done = run(*words, "--domain", "disease=nosuch.txt")
    assert done.returncode == 2
    assert "there is no file 'nosuch.txt'" in done.stderr


def test_a_key_file_that_is_not_there_and_a_table_in_place_of_a_release_say_what_to_do(
    patients: Path, run, tmp_path: Path
) -> None:
    done = run("publish", patients, *GOOD, "--out", tmp_path / "r", "--key-file", tmp_path / "key")
    assert done.returncode == 2
    assert "cannot be read: there is none. Fix: check the name, or make one" in done.stderr
    assert "--new-key-file makes it" in done.stderr
    done = run("audit", patients, patients)
    assert done.returncode == 2
    assert "is not a release: it is a file. Fix: name the release's folder." in done.stderr


def test_csv_comes_out_where_asked(patients: Path, run, tmp_path: Path) -> None:
    done = run("publish", patients, *GOOD, "--out", tmp_path / "r", "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r" / "data.csv").exists()


def test_several_sensitive_columns_and_exempt_values(patients: Path, run, tmp_path: Path) -> None:
    out = tmp_path / "r"
    words = ("--sensitive", "disease", "--sensitive", "sex", "--drop", "name", "--drop", "age")
    done = run("publish", patients, *words, "--rho2", "1/3", "--out", out)
    assert done.returncode == 0, done.stderr
    done = run("publish", patients, *GOOD, "--exempt", "none", "--out", out, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert run("verify", out).returncode == 0


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        (
            ("--sensitive", "disease", "--rho1", "1/3", "--rho2", "1/5"),
            "RequirementError",
            "rho1 = 1/3 must be smaller",
        ),
        (("--sensitive", "disease"), "RequirementError", "--rho2 1/3: how sure an attacker may become; or --epsilon 1"),
        (("--sensitive", "disease", "--rho1", "1/5"), "RequirementError", "rho2 is missing"),
        (("--sensitive", "disease", "--rho2", "0"), "RequirementError", "rho2 = 0 is not allowed"),
        (("--sensitive", "disease", "--rho2", "1"), "RequirementError", "strictly between 0 and 1"),
        (("--sensitive", "disease", "--rho2", "many"), "RequirementError", "rho2 = 'many' is not a number"),
        (("--sensitive", "disease", "--rho2", "1/100"), "RequirementError", "rho2 = 1/100 cannot be met"),
        (("--sensitive", "diseas", "--rho2", "1/3"), "ColumnError", "Did you mean 'disease'?"),
        (
            ("--sensitive", "disease", "--rho2", "1/3", "--mechanism", "unifrom"),
            "OptionError",
            "Did you mean 'uniform'?",
        ),
        (("--sensitive", "disease", "--rho2", "1/3", "--adversary", "bob"), "RequirementError", "adversary = 'bob'"),
        (("--sensitive", "disease", "--rho2", "1/3", "--missing", "drop"), "OptionError", "missing = 'drop'"),
        (("--sensitive", "disease", "--rho2", "1/3", "--format", "xlsx"), "OptionError", "format = 'xlsx'"),
        (
            ("--sensitive", "disease", "--rho2", "1/3", "--seed", "1", "--key-file", "k"),
            "OptionError",
            "--key-file and --seed contradict each other",
        ),
        (("--sensitive", "disease", "--rho2", "1/3", "--key-file", "no-such-key"), "SecretError", "cannot be read"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(
    patients: Path, run, tmp_path: Path, words: tuple[str, ...], kind: str, message: str
) -> None:
    done = run("publish", patients, *words, "--out", tmp_path / "r", "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("Error: ") == 1
    assert "Traceback" not in done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["type"] == kind
    assert done.stderr == f"Error: {error['message']}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_missing_is_named(run, tmp_path: Path) -> None:
    done = run("publish", tmp_path / "nobody.csv", *GOOD, "--out", tmp_path / "r")
    assert done.returncode == 2
    assert "nobody.csv" in done.stderr
    assert done.stdout == ""


def test_a_release_is_replaced_only_when_asked(patients: Path, run, tmp_path: Path) -> None:
    out = tmp_path / "r"
    words = ("publish", patients, *GOOD, "--out", out)
    assert run(*words).returncode == 0
    before = (out / "manifest.json").read_bytes()
    again = run(*words)
    assert again.returncode == 2
    assert "overwrite" in again.stderr
    assert (out / "manifest.json").read_bytes() == before
    assert run(*words, "--overwrite").returncode == 0


def test_a_key_in_the_release_is_refused(patients: Path, run, tmp_path: Path) -> None:
    out = tmp_path / "r"
    out.mkdir()
    done = run("publish", patients, *GOOD, "--out", out, "--overwrite", "--new-key-file", out / "key")
    assert done.returncode == 2
    assert "lies in the release" in done.stderr


def test_exempt_values_have_the_type_of_the_column(patients: Path, run, tmp_path: Path) -> None:
    words = ("publish", patients, "--sensitive", "age", "--rho2", "1/3", "--drop", "name", "--out", tmp_path / "r")
    assert run(*words, "--exempt", "40").returncode in (0, 3)
    done = run(*words, "--overwrite", "--exempt", "forty")
    assert done.returncode == 2
    assert "--exempt forty does not fit the column 'age' (int64)." in done.stderr


def test_requirements_of_single_values_come_from_a_file(tmp_path):
    from typer.testing import CliRunner

    from deniable.cli.main import app

    (tmp_path / "t.csv").write_text("x,d\n" + "".join(f"{i},{'abcd'[i % 4]}\n" for i in range(400)))
    (tmp_path / "r.csv").write_text("value,rho1,rho2\na,1/4,1/2\nb,1/4,2/3\n")
    common = ["publish", str(tmp_path / "t.csv"), "--sensitive", "d", "--mechanism", "fine-grain"]
    options = ["--requirements", str(tmp_path / "r.csv"), "--out", str(tmp_path / "rel")]
    done = CliRunner().invoke(app, [*common, *options])
    assert done.exit_code == 3, done.output  # x has another value in each row
    manifest = json.loads((tmp_path / "rel" / "manifest.json").read_text())
    assert {row[0] for row in manifest["privacy"]["per_value"]} == {"a", "b"}
    both = CliRunner().invoke(app, [*common, *options, "--rho2", "1/2"])
    assert both.exit_code == 2
    assert "--requirements excludes" in both.stderr


def test_a_channel_is_designed_for_the_owners_questions(patients: Path, run, tmp_path: Path) -> None:
    asked = tmp_path / "questions.sql"
    asked.write_text("SELECT COUNT(*) FROM release WHERE age < 40 AND disease = 'hiv'\n" * 2)
    for mechanism in ("designed", "auto"):
        done = run(
            *("publish", patients, "--sensitive", "disease", "--rho2", "1/2", "--drop", "name"),
            *("--mechanism", mechanism, "--pool", asked, "--out", tmp_path / mechanism, "--json"),
        )
        assert done.returncode == 0, done.stderr
        chosen = json.loads(done.stdout)["mechanism"]
        if mechanism == "designed":  # auto takes what an informed attacker gains little enough from
            assert chosen["options"]["profile"] == "2 questions of the owner"
        assert chosen["name"] in MECHANISMS


def test_rows_without_a_value_can_be_exempt_from_the_questions(run, tmp_path: Path) -> None:
    rows = [f"{i},{i % 7},{('flu', 'gout', 'hiv', '')[i % 4]}" for i in range(400)]
    (tmp_path / "t.csv").write_text("\n".join(["id,age,disease", *rows]) + "\n")
    (tmp_path / "q.sql").write_text("SELECT COUNT(*) FROM release WHERE age < 4 AND disease = 'hiv'\n")
    given = ("publish", tmp_path / "t.csv", "--sensitive", "disease", "--rho2", "1/2", "--mechanism", "designed")
    options = ("--missing", "exempt", "--row-id", "id", "--out", tmp_path / "r", "--json")
    done = run(*given, "--pool", tmp_path / "q.sql", *options)
    assert done.returncode == 0, done.stderr
    (tmp_path / "q.sql").write_text("SELECT COUNT(*) FROM release WHERE id < 4 AND disease = 'hiv'\n")
    unpublished = run(*given, "--pool", tmp_path / "q.sql", *options, "--overwrite")
    assert unpublished.returncode == 2
    assert "There is no column 'id'" in unpublished.stderr


def test_questions_are_for_mechanisms_that_can_be_made_for_them(patients: Path, run, tmp_path: Path) -> None:
    done = run("publish", patients, *GOOD, "--mechanism", "uniform", "--pool", "sdr", "--out", tmp_path / "r")
    assert done.returncode == 2
    assert "--mechanism designed" in done.stderr


def test_a_mechanisms_options_follow_its_name(patients: Path, run, tmp_path: Path) -> None:
    done = run(
        *("publish", patients, "--sensitive", "disease", "--drop", "name", "--out", tmp_path / "r", "--json"),
        *("--mechanism", "decoys:c=2,leftovers=drop"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["mechanism"]["options"]["c"] == 2


def test_a_rival_is_refused_kindly(patients: Path, run, tmp_path: Path) -> None:
    done = run("publish", patients, "--sensitive", "disease", "--mechanism", "laplace", "--out", tmp_path / "r")
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "'laplace' is a rival" in said
    assert "deniable evaluate --mechanism laplace" in said
    assert "deniable.lab" in said
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "r").exists()


def test_the_choice_is_said_and_values_not_covered_are_named(run, patients: Path, tmp_path: Path) -> None:
    words = ("publish", patients, "--sensitive", "disease", "--rho1", "1/11", "--rho2", "1/3", "--drop", "name")
    words = (*words, "--seed", "5")  # the same noise, so the same choice
    done = run(*words, "--out", tmp_path / "r", "-q")
    (chosen,) = [line for line in done.stdout.splitlines() if line.startswith("Mechanism: ")]
    assert "Expected errors: " in done.stdout
    named = run(*words, "--mechanism", "uniform", "--out", tmp_path / "u", "-q").stdout.splitlines()
    (uncovered,) = [line for line in named if "Not covered: " in line]
    assert "more frequent than 9.09 %" in uncovered
    assert not any(line.startswith("Mechanism: ") for line in named)
    told = json.loads(run(*words, "--out", tmp_path / "j", "--json").stdout)
    assert told["choice"]["chosen"] == chosen.removeprefix("Mechanism: ").removesuffix(".")
    assert {"share", "error"} == set(told["choice"]["expected"][0])


def test_without_a_requirement_the_options_that_state_one_are_named(run, patients: Path, tmp_path: Path) -> None:
    done = run("publish", patients, "--sensitive", "disease", "--out", tmp_path / "r")
    assert done.returncode == 2
    assert "--rho2" in done.stderr
    assert "privacy=" not in done.stderr
