"""Responses as a release: verified like any other, and answered with intervals that cover."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.collection.client import sent, word
from deniable.collection.collected import release_of
from deniable.core.errors import TableError
from deniable.release.release import Release
from tests.collection.surveys import answers, responses_of

RESPONDENTS = 10_000


def key(number: int) -> bytes:
    return hashlib.shake_256(f"respondent {number}".encode()).digest(32)


@pytest.fixture(scope="module")
def collected() -> tuple[list[dict[str, Any]], Release]:
    responses, given = responses_of(), answers(RESPONDENTS)
    rows = sent(responses.sheet, responses.fingerprint, given, [key(number) for number in range(len(given))])
    texts = [responses.check_one({"id": "0" * 32, "answers": row})[1] for row in rows]
    return given, release_of(responses.sheet, texts)


def test_the_export_is_a_release_that_verify_accepts(collected: tuple[Any, Release], tmp_path: Path) -> None:
    release = collected[1].save(tmp_path / "release")
    certificate = dn.verify(tmp_path / "release")
    assert certificate.holds
    assert {"line-ups", "range", "amplification"} <= {check.what for check in certificate.checks}
    assert release.manifest.guarantee["adversary"] == "any-prior"
    opened = dn.open_release(tmp_path / "release")
    assert opened.count({"smokes": "yes"}).value == pytest.approx(collected[1].count({"smokes": "yes"}).value)


def test_a_lowered_noise_is_refused_by_verify(collected: tuple[Any, Release], tmp_path: Path) -> None:
    collected[1].save(tmp_path / "release")
    path = tmp_path / "release" / "manifest.json"
    manifest = json.loads(path.read_text())
    lineup = next(part for part in manifest["parts"] if "lineups" in part)
    lineup["lineups"]["truth"] = min(lineup["lineups"]["truth"] * 5 // 4 // 2**14 * 2**14, 2**32)
    path.write_text(json.dumps(manifest))
    with pytest.raises(dn.VerificationError, match="amplification"):
        dn.verify(tmp_path / "release")


def test_intervals_cover_what_respondents_really_answered(collected: tuple[Any, Release]) -> None:
    given, release = collected
    asked: list[tuple[dict[str, Any], int]] = []
    for value, count in Counter(one["illness"] or "no answer" for one in given).items():
        asked.append(({"illness": value}, count))
        both = sum((one["illness"] or "no answer") == value and one["smokes"] == "yes" for one in given)
        asked.append(({"illness": value, "smokes": "yes"}, both))
        asked.append(
            (
                {"illness": value, "team": "office"},
                sum((one["illness"] or "no answer") == value and one["team"] == "office" for one in given),
            )
        )
    asked.append(({"days": dn.between(0, 20)}, sum(one["days"] < 25 for one in given)))
    asked.append(({"took_pills": "yes"}, sum("pills" in one["took"] for one in given)))
    asked.append(({"dose": None}, sum(one["dose"] is None for one in given)))
    estimates = [release.count(where) for where, _ in asked]
    covered = sum(one.low <= count <= one.high for one, (_, count) in zip(estimates, asked, strict=True))
    assert covered >= len(asked) - 10  # of 42 at 95 %: fewer once in ten million draws
    scores = [(one.value - count) / one.stderr for one, (_, count) in zip(estimates, asked, strict=True)]
    assert 0.4 < float(np.mean(np.square(scores))) < 2.2


def test_a_cross_table_of_two_line_ups_adds_up(collected: tuple[Any, Release]) -> None:
    _, release = collected
    table = release.sql("SELECT illness, smokes, COUNT(*) AS n FROM release GROUP BY illness, smokes")
    alone = release.sql("SELECT illness, COUNT(*) AS n FROM release GROUP BY illness")
    assert table.num_rows == 2 * alone.num_rows
    summed: Counter[str] = Counter()
    for value, count in zip(table["illness"].to_pylist(), table["n"].to_pylist(), strict=True):
        summed[value] += count
    assert all(
        summed[value] == pytest.approx(count, abs=1e-6)
        for value, count in zip(alone["illness"].to_pylist(), alone["n"].to_pylist(), strict=True)
    )
    assert sum(alone["n"].to_pylist()) == pytest.approx(RESPONDENTS)


def test_rows_are_shuffled_and_nothing_is_released_of_nobody() -> None:
    responses = responses_of()
    with pytest.raises(TableError, match="no responses yet"):
        release_of(responses.sheet, [])
    given = answers(60)
    rows = sent(responses.sheet, responses.fingerprint, given, [key(number) for number in range(60)])
    texts = [json.dumps(list(row.values())) for row in rows]
    orders = {tuple(release_of(responses.sheet, texts).table["seen"].to_pylist()) for _ in range(3)}
    assert len(orders) == 3


def test_an_answer_that_cannot_be_is_refused_without_being_named() -> None:
    responses = responses_of()
    (right,) = answers(1)
    for question, wrong in (
        ("smokes", "maybe"),
        ("days", 51),
        ("took", ["poison"]),
        ("seen", "2023-01-01"),
        ("dose", True),
    ):
        with pytest.raises(TableError, match=question) as refused:
            sent(responses.sheet, responses.fingerprint, [{**right, question: wrong}], [key(1)])
        assert str(wrong) not in str(refused.value).replace("0.1", "")
    with pytest.raises(TableError, match="Did you mean 'smokes'"):
        sent(responses.sheet, responses.fingerprint, [{**right, "smoke": "no"}], [key(1)])
    with pytest.raises(TableError, match="no answer to 'days'"):
        sent(responses.sheet, responses.fingerprint, [{k: v for k, v in right.items() if k != "days"}], [key(1)])


def test_one_key_gives_one_draw_for_each_answer_and_another_for_another() -> None:
    responses, (first,) = responses_of(), answers(1, seed=5)
    keys = [key(number) for number in range(200)]
    twice = [sent(responses.sheet, responses.fingerprint, [first] * 200, keys) for _ in range(2)]
    assert twice[0] == twice[1]
    # A changed answer is drawn afresh: were the word the same, both kept values would show wherever the two differ.
    draws = {word(one, responses.fingerprint, "smokes", code) for one in keys for code in (0, 1)}
    assert len(draws) == 2 * len(keys)
    assert word(keys[0], responses.fingerprint, "smokes", 0) != word(keys[0], "0" * 40, "smokes", 0)
