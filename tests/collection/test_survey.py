"""Surveys: read strictly, planned so that every private answer keeps its requirement, checked before anyone answers."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from deniable.collection.sheet import Sheet, better_lineup, check
from deniable.collection.survey import SurveyError, read_survey, survey_of
from deniable.core.channels import Channel
from deniable.core.errors import OutputError
from deniable.core.part import part_dict
from deniable.estimation.model.lineups import LineUpStates
from deniable_verify.manifest import part_amplification
from tests.collection.surveys import EVERY_KIND, TUTORIAL, responses_of

ONE = """
title = "T"
{top}
[[question]]
name = "q"
kind = "choice"
text = "?"
choices = ["a", "b"]
{own}
"""


def test_everything_that_is_wrong_is_said_at_once() -> None:
    text = """
title = 5
colour = "red"
languages = ["en", "xx-1"]
[[question]]
name = "Bad Name"
kind = "choice"
[[question]]
name = "a"
kind = "chioce"
[[question]]
name = "b"
kind = "number"
text = "?"
low = 5
high = 1
epsilon = 99
[[question]]
name = "c"
kind = "choice"
text = "?"
choices = ["x", "x"]
public = true
rho1 = "1/4"
"""
    with pytest.raises(SurveyError) as wrong:
        survey_of(text)
    said = str(wrong.value)
    for part in ("'colour'", "languages", "title", "'Bad Name'", "Did you mean 'choice'?", "low below high",
                 "say it in one way", "listed twice"):  # fmt: skip
        assert part in said, part
    assert "says neither how deniable" in said


@pytest.mark.parametrize(
    ("top", "own", "said"),
    [
        ("", "", "says neither"),
        ("", "rho1 = '1/3'\nrho2 = '1/4'", "must be smaller"),
        ("", "rho2 = '1/4'", "say it in one way"),
        ("", "epsilon = 0", "say it in one way"),
        ("", "coin = 1.0", "say it in one way"),
        ("privacy = { epsilon = 1.0 }\nrespondents = -1", "", "respondents"),
        ("privacy = { epsilon = 1.0 }\nlanguages = ['en', 'de']", "", "is missing in de"),
        ("privacy = { epsilon = 1.0 }", "step = 1", "is for numbers and dates"),
        ("privacy = { epsilon = 1.0 }", "colour = 1", "not known"),
    ],
)
def test_what_is_not_understood_is_refused(top: str, own: str, said: str) -> None:
    with pytest.raises(SurveyError, match=said):
        survey_of(ONE.format(top=top, own=own))


def test_a_file_that_is_no_survey_is_refused_by_name(tmp_path: pytest.TempPathFactory) -> None:
    with pytest.raises(SurveyError, match="cannot be read"):
        read_survey("no-such-file.toml")
    with pytest.raises(SurveyError, match="not TOML"):
        survey_of("= = =")


def test_every_private_answer_keeps_its_requirement_by_an_independent_count() -> None:
    sheet = responses_of().sheet
    for column in sheet.private:
        assert column.part is not None
        gamma = part_amplification(json.loads(json.dumps(part_dict(column.part))))  # shares nothing with the planner
        assert gamma == column.gamma
        wanted = column.question.requirement
        assert wanted is not None
        if wanted.gamma is not None:
            several = sheet.of_question(column.question)
            together = math.prod(one.gamma for one in several)
            assert wanted.gamma * Fraction(99, 100) < together <= wanted.gamma
    assert sheet.epsilon == pytest.approx(math.log(sheet.gamma))


@pytest.mark.parametrize("m", [3, 5, 10, 20, 50])
@pytest.mark.parametrize("gamma", [Fraction(12, 5), Fraction(9, 2)])
def test_line_ups_are_taken_where_they_are_better_and_only_there(m: int, gamma: Fraction) -> None:
    design = better_lineup(m, gamma)
    coin = float(Channel.uniform(tuple(range(m)), gamma=gamma).coins[0])
    q = (1 - coin) / m
    single = ((1 - q) ** 2 / m + (1 - 1 / m) * q**2) / coin**2 - 1 / m
    if design is None:
        assert m < 10
        return
    states = LineUpStates(design)
    seen = states.squares(design.distribution)  # with equal shares a set is as likely as without looking
    assert float((seen - 1 / m).mean()) < 0.9 * single
    if m == 50 and gamma < 3:
        assert math.sqrt(float((seen - 1 / m).mean()) / single) < 0.5  # half the error


def test_the_check_says_what_is_revealed_and_what_it_takes() -> None:
    responses = responses_of(TUTORIAL.read_text(encoding="utf-8"))
    checked = check(responses.sheet, responses.fingerprint)
    burnout = next(one for one in checked.revealed if one.column == "burnout")
    assert burnout.grows["10 %"] == "33.3 %"
    assert burnout.epsilon == pytest.approx(math.log(4.5), abs=1e-6)
    # +- 5 points at 95 %: z^2 p' (1 - p') / (p^2 e^2) with gamma = 4.5, so p = 7/11 and p' = 9/11
    assert burnout.respondents == pytest.approx(1.959964**2 * (7 / 11) * (4 / 11) / (7 / 11) ** 2 / 0.05**2, abs=2)
    assert checked.epsilon == pytest.approx(2 * math.log(4.5), abs=1e-4)
    assert checked.public == ("team",)


@pytest.mark.parametrize(
    ("words", "what"),
    [("What is your last name?", "a name"), ("Ihre Postleitzahl?", "a postcode"), ("When were you born?", "birth"),
     ("Your e-mail?", "e-mail"), ("Employee number?", "number of a person")],
)  # fmt: skip
def test_questions_that_identify_people_are_pointed_at(words: str, what: str) -> None:
    sheet = Sheet.of(survey_of(ONE.format(top="", own="public = true").replace("?", words, 1)))
    assert any(what in warning for warning in check(sheet, "").warnings)


def test_public_answers_that_leave_people_alone_are_pointed_at() -> None:
    more = "\n".join(
        f'[[question]]\nname = "p{i}"\nkind = "number"\ntext = "n"\nlow = 0\nhigh = 9\npublic = true' for i in range(3)
    )
    sheet = Sheet.of(survey_of(ONE.format(top="", own="epsilon = 1.0") + more))
    said = " ".join(check(sheet, "").warnings)
    assert "1,000 groups" in said
    assert "1 share one on average" in said


def test_the_document_names_every_number_and_its_fingerprint_every_word() -> None:
    first = responses_of()
    assert responses_of().fingerprint == first.fingerprint
    assert responses_of(EVERY_KIND.replace("smoke?", "smoke!")).fingerprint != first.fingerprint
    assert responses_of(EVERY_KIND.replace('"1/3"', '"0.34"')).fingerprint != first.fingerprint
    document = json.loads(first.document)
    assert Fraction(document["gamma"]) == first.sheet.gamma
    assert len(first.fingerprint) == 40


def test_the_tutorial_shows_what_the_command_prints(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from deniable.cli.collect import app

    runner, survey = CliRunner(), str(tmp_path / "survey.toml")
    assert runner.invoke(app, ["new", survey]).exit_code == 0
    assert isinstance(runner.invoke(app, ["new", survey]).exception, OutputError)  # never over a file that is there
    printed = runner.invoke(app, ["check", survey]).output
    page = (Path(__file__).parents[2] / "docs" / "tutorials" / "run-a-survey.md").read_text(encoding="utf-8")
    shown = [line for line in page.splitlines() if line.startswith(("column ", "burnout ", "illness "))]
    assert len(shown) == 3
    assert [line for line in shown if line not in [row.rstrip() for row in printed.splitlines()]] == []
    told = json.loads(runner.invoke(app, ["check", survey, "--json"]).output)
    assert told["epsilon"] == pytest.approx(2 * math.log(4.5), abs=1e-4)
    simulated = json.loads(runner.invoke(app, ["simulate", survey, "-n", "300", "--seed", "3", "--json"]).output)
    assert simulated["covered"] >= len(simulated["counts"]) - 6
    assert sum(one["truth"] for one in simulated["counts"]) == 600  # two private questions
