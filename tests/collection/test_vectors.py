"""The same random bytes give the same row in Python and in the page's JavaScript, for every kind of question."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from deniable.collection.client import response_id, sent, word
from deniable.collection.wire import Responses
from tests.collection.surveys import answers, responses_of

HERE = Path(__file__).parent
VECTORS = HERE / "vectors.json"
PAGE = HERE.parents[1] / "src" / "deniable" / "collection" / "page"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs Node.js: no program 'node' is on the PATH")
MANY = """
title = "Many choices"
[[question]]
name = "job"
kind = "choice"
text = "?"
choices = [{choices}]
rho1 = "1/13"
rho2 = "1/6"
[[question]]
name = "day"
kind = "date"
text = "?"
low = 1999-12-31
high = 2001-03-01
epsilon = 4.0
[[question]]
name = "share"
kind = "number"
text = "?"
low = -1.5
high = 2.25
step = 0.05
epsilon = 3.0
"""
SCRIPT = """
import {{ readFileSync }} from "node:fs";
const page = await import({page!r});
const given = JSON.parse(readFileSync(0, "utf8"));
const survey = JSON.parse(given.document);
const bytes = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
const fingerprint = page.fingerprintOf(given.document);
const gammas = {{}};
for (const question of survey.questions) for (const column of question.columns)
  if (column.channel) gammas[column.name] = page.gammaOf(column.channel).map(String);
console.log(JSON.stringify({{
  fingerprint, gammas, certificate: page.certify(survey),
  rows: given.keys.map((key, i) => page.perturb(survey, fingerprint, given.answers[i], bytes(key))),
  ids: given.keys.map((key) => page.responseId(bytes(key), fingerprint)),
  words: given.keys.map((key) => String(page.wordOf(bytes(key), fingerprint, "smokes", 1))),
}}));
"""


def in_node(document: str, given: list[dict[str, Any]], keys: list[bytes]) -> dict[str, Any]:
    assert NODE is not None
    script = SCRIPT.format(page=(PAGE / "perturb.js").as_uri())
    told = json.dumps({"document": document, "answers": given, "keys": [key.hex() for key in keys]})
    ran = subprocess.run(
        [NODE, "--no-warnings", "--input-type=module", "-e", script],
        input=told, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


def keys_of(number: int) -> list[bytes]:
    return [hashlib.shake_256(f"vector {place}".encode()).digest(32) for place in range(number)]


def many() -> tuple[Responses, list[dict[str, Any]]]:
    responses = responses_of(MANY.format(choices=", ".join(f'"job {place}"' for place in range(50))))
    assert responses.sheet.columns[0].part is not None
    assert responses.sheet.columns[0].part.lineups is not None
    given = [
        {
            "job": f"job {i % 50}",
            "day": f"2000-{1 + i % 12:02}-{1 + i % 28:02}",
            "share": round(-1.5 + 0.037 * (i % 100), 3),
        }
        for i in range(300)
    ]
    return responses, given


@needs_node
@pytest.mark.parametrize("which", ["every kind", "fifty choices"])
def test_both_languages_send_the_same(which: str) -> None:
    responses, given = (responses_of(), answers(300)) if which == "every kind" else many()
    keys = keys_of(len(given))
    ours = sent(responses.sheet, responses.fingerprint, given, keys)
    theirs = in_node(responses.document, given, keys)
    assert theirs["fingerprint"] == responses.fingerprint
    assert theirs["rows"] == ours
    assert theirs["ids"] == [response_id(key, responses.fingerprint) for key in keys]
    assert theirs["words"] == [str(word(key, responses.fingerprint, "smokes", 1)) for key in keys]
    for row in theirs["rows"]:
        responses.check_one({"id": "0" * 32, "answers": row})


@needs_node
@pytest.mark.parametrize("which", ["every kind", "fifty choices"])
def test_both_languages_compute_the_same_certificate(which: str) -> None:
    responses = responses_of() if which == "every kind" else many()[0]
    told = in_node(responses.document, [], [])
    gammas = {name: Fraction(int(over), int(under)) for name, (over, under) in told["gammas"].items()}
    assert gammas == {column.name: column.gamma for column in responses.sheet.private}
    assert told["certificate"]["problems"] == []
    assert told["certificate"]["epsilon"] == pytest.approx(responses.sheet.epsilon, rel=1e-9)


def test_the_stored_vectors_still_hold() -> None:
    """Rows that pages in the field have made: neither side may change what a key gives."""
    stored = json.loads(VECTORS.read_text(encoding="utf-8"))
    responses = responses_of()
    assert responses.document == stored["document"]
    assert responses.fingerprint == stored["fingerprint"]
    keys = [bytes.fromhex(one["key"]) for one in stored["rows"]]
    given = [one["answers"] for one in stored["rows"]]
    assert sent(responses.sheet, responses.fingerprint, given, keys) == [one["sent"] for one in stored["rows"]]
    assert [response_id(key, responses.fingerprint) for key in keys] == [one["id"] for one in stored["rows"]]


@needs_node
def test_the_stored_vectors_hold_in_the_page_as_well() -> None:
    stored = json.loads(VECTORS.read_text(encoding="utf-8"))
    keys = [bytes.fromhex(one["key"]) for one in stored["rows"]]
    told = in_node(stored["document"], [one["answers"] for one in stored["rows"]], keys)
    assert told["fingerprint"] == stored["fingerprint"]
    assert told["rows"] == [one["sent"] for one in stored["rows"]]


@needs_node
@pytest.mark.parametrize("change", ["noise of a coin", "truth of a line-up", "public", "points", "whole"])
def test_the_page_sees_a_survey_that_protects_less_than_it_says(change: str) -> None:
    document = json.loads(responses_of().document)
    by_name = {
        column["name"]: (question, column) for question in document["questions"] for column in question["columns"]
    }
    if change == "noise of a coin":
        by_name["smokes"][1]["channel"]["keep"] += 2**20
    elif change == "truth of a line-up":
        by_name["illness"][1]["channel"]["truth"] += 2**14
    elif change == "public":
        by_name["smokes"][1]["channel"] = None
    elif change == "points":
        by_name["days"][1]["channel"]["points"] += 1
    else:
        document["epsilon"] -= 0.01
    problems = in_node(json.dumps(document), [], [])["certificate"]["problems"]
    said = {"public": "called private", "points": "hides nothing", "whole": "reveals more"}.get(change, "less noise")
    assert said in problems[0]
