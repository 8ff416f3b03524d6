"""Terminals, spreadsheets and Markdown readers act on what they read: what a table holds must not act on them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import deniable as dn
from deniable.cli import console

HOSTILE = {
    "formula": '=HYPERLINK("http://x","y")',
    "terminal": "a\x1b]0;title\x07\x9b2J",
    "turned": "a\u202eb",
    "markup": "<script>x</script> [a](http://x) `b` **c**",
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyarrow as pa

    out = tmp_path_factory.mktemp("hostile") / "release"
    values = [*HOSTILE.values(), "plain"]
    table = pa.table({"-n": ["1", "2"] * 250, "ill <b>": values * 100})
    with pytest.warns(UserWarning, match="seed"):
        dn.publish(table, sensitive="ill <b>", privacy=dn.Privacy(rho2="9/10"), out=out, seed=1, mechanism="uniform")
    return out


QUESTION = 'SELECT "ill <b>" AS v, COUNT(*) AS n FROM release GROUP BY "ill <b>"'


def test_a_terminal_is_sent_no_control_characters(hostile: Path, run) -> None:
    for words in (("query", hostile, QUESTION), ("query", hostile, QUESTION, "--json"), ("verify", hostile)):
        done = run(*words)
        assert done.returncode == 0, done.stderr
        assert not set("\x1b\x07\x9b\u202e") & set(done.stdout + done.stderr)
    assert r"a\x1b]0;title\x07\x9b2J" in run("query", hostile, QUESTION).stdout
    answered = json.loads(run("query", hostile, QUESTION, "--json").stdout)
    assert {row["v"] for row in answered["rows"]} == {*HOSTILE.values(), "plain"}
    wrong = run("query", hostile, "SELECT COUNT(*) AS n FROM release WHERE nothing = '\x1b[2J'")
    assert wrong.returncode == 2
    assert "\x1b" not in wrong.stderr


def test_names_and_answers_of_releases_by_others_send_no_control_characters(
    tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    column, values = "ill\x9b2J", [HOSTILE["terminal"], HOSTILE["turned"], "plain", "other"]
    table = pa.table({column: values * 100})
    for name in ("north", "south"):
        required = dn.Privacy("1/2", "9/10")
        dn.publish(table, sensitive=column, privacy=required, out=tmp_path / name, name=name, mechanism="uniform")
    pooled = run("pool", tmp_path / "north", tmp_path / "south", "--out", tmp_path / "both")
    assert pooled.returncode == 0, pooled.stderr
    assert r"ill\x9b2J" in pooled.stdout
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(json.dumps({column: value}) for value in values * 25)))
    answered = run("respond", tmp_path / "north", "-")
    assert {json.loads(line)[column] for line in answered.stdout.splitlines()} == set(values)
    assert not set("\x1b\x07\x9b\u202e") & set(pooled.stdout + answered.stdout)


def test_csv_holds_no_formulas_unless_they_are_wanted(hostile: Path, run) -> None:
    question = QUESTION.replace(" AS v", ' AS "=v"')
    safe, raw = (run("query", hostile, question, "--csv", *extra).stdout for extra in ((), ("--raw",)))
    assert safe.startswith('"\'=v"')
    assert "\"'=HYPERLINK(" in safe
    assert '\n"=HYPERLINK(' in raw
    assert raw.startswith('"=v"')
    assert run("query", hostile, question, "--raw").returncode == 2


def test_numbers_stay_numbers_in_csv(hostile: Path, run) -> None:
    lines = run("query", hostile, "SELECT COUNT(*) - 5000 AS n FROM release", "--csv").stdout.splitlines()
    assert lines[1].startswith("-4")


def test_the_readme_is_read_and_does_not_act(hostile: Path) -> None:
    text = (hostile / "README.md").read_text(encoding="utf-8")
    outside_code = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    assert "<script>" not in outside_code
    assert "`ill <b>`" in text  # code is shown as it is
    assert "](http" not in outside_code
    assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert """deniable query . 'SELECT COUNT(*) AS n FROM release WHERE "ill <b>" = """ in text
    dn.verify(hostile)


def test_names_with_quotes_do_not_leave_the_shell_example() -> None:
    from deniable.release.readme import _in_shell, _in_sql

    assert _in_sql("age") == "age"
    assert _in_sql('a"; rm') == '"a""; rm"'
    assert _in_shell("SELECT 'a'") == "\"SELECT 'a'\""
    assert "$(rm)" in _in_shell("SELECT '$(rm)'")
    assert not _in_shell("SELECT '$(rm)'").startswith('"')


def test_lines_and_tabs_stay_in_messages() -> None:
    assert console.visible("a\n\tb") == "a\n\tb"
