"""Whoever collects answers, against one respondent: requests that ask for more than they say, the same question again
and again, a clock, and errors that talk. The collector's arithmetic is written here anew.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Channel, Replace
from deniable.core.manifest import Manifest
from deniable.mechanisms.retention import Retention

VALUES = [*(f"value {number:02d}" for number in range(11)), None]
FULL = 2**32


def survey(coin: float = 0.4, **options: Any) -> Manifest:
    rows = pa.table({"town": ["Ulm", "Bonn"] * 6, "ill": VALUES, "age": [*range(11), None]})
    columns = {"ill": Replace(coin=coin), "age": Replace(coin=0.5, low=0, high=99)}
    return dn.publish(rows, mechanism=Retention(columns), domain={"ill": VALUES}, key=bytes(32), **options).manifest


def ill_only(coin: float = 0.4) -> Manifest:
    rows = pa.table({"ill": VALUES})
    return dn.publish(
        rows, mechanism=Retention({"ill": Replace(coin=coin)}), domain={"ill": VALUES}, key=bytes(32)
    ).manifest


def with_coin(manifest: Manifest, keep: int) -> Manifest:
    """The same request with other coins, and not a word about it."""
    first, *others = manifest.parts
    channel = Channel(first.channels[0].values, np.full(len(VALUES), keep), first.channels[0].replace)
    return dataclasses.replace(manifest, parts=(dataclasses.replace(first, channels=(channel,)), *others))


def gamma_of(manifest: Manifest) -> Fraction:
    """max P[y][x] / P[y][x'] of the first part, from its integers."""
    channel = manifest.parts[0].channels[0]
    keep, weight = int(channel.keep[0]), int(channel.replace.min())
    return Fraction(keep * FULL + (FULL - keep) * weight, (FULL - keep) * weight)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)  # memories are written hundreds of times


ROW = {"town": "Ulm", "ill": "value 03", "age": 7}


def test_a_request_that_says_less_than_its_coins_do_is_refused() -> None:
    honest = survey()
    assert dn.respond(ROW, honest)["town"] == "Ulm"
    for keep in (int(FULL * 0.999), int(honest.parts[0].channels[0].keep[0] * 1.05), FULL):
        with pytest.raises(dn.DeniableError, match="not what it says"):
            dn.respond(ROW, with_coin(honest, keep))


def test_a_limit_counts_what_the_integers_give_and_not_what_is_stated() -> None:
    asked = ill_only()
    epsilon = math.log(gamma_of(asked))
    assert dn.respond({"ill": None}, asked, limit=epsilon + 1e-9)
    with pytest.raises(dn.DeniableError, match=f"epsilon {epsilon:.4g}"):
        dn.respond({"ill": None}, asked, limit=epsilon - 1e-9)
    silent = dataclasses.replace(with_coin(asked, int(FULL * 0.999)), guarantee={**asked.guarantee, "gamma": None})
    with pytest.raises(dn.DeniableError, match="limit"):
        dn.respond({"ill": None}, silent, limit=epsilon)
    certain = dataclasses.replace(with_coin(asked, FULL), guarantee={**asked.guarantee, "gamma": None})
    with pytest.raises(dn.DeniableError, match="no epsilon"):
        dn.respond({"ill": None}, certain, limit=1e9)


def test_columns_that_were_not_allowed_stay_with_the_respondent() -> None:
    asked = survey()
    assert dn.respond(ROW, asked, columns=["ill", "age"], public=["town"]).keys() == ROW.keys()
    for allowed in ({"columns": ["ill"], "public": ["town"]}, {"columns": ["ill", "age"]}, {"public": ["town"]}):
        with pytest.raises(dn.DeniableError, match="do not allow"):
            dn.respond(ROW, asked, **allowed)
    moved = dataclasses.replace(asked, parts=asked.parts[1:], columns=tuple(
        dataclasses.replace(column, role="public") if column.name == "ill" else column for column in asked.columns
    ))  # fmt: skip
    with pytest.raises(dn.DeniableError, match="'ill' as it is"):  # asked for raw, where perturbed was allowed
        dn.respond(ROW, moved, columns=["ill", "age"], public=["town"])
    assert "name" not in dn.respond({**ROW, "name": "Eva"}, asked)


def likeliest(asked: Manifest, shown: list[Any]) -> Any:
    """What the collector believes after many answers to one question, from P of its integers."""
    channel = asked.parts[0].channels[0]
    keep, weight = int(channel.keep[0]) / FULL, channel.replace / FULL
    score = np.zeros(len(VALUES))
    for answer in shown:
        y = VALUES.index(answer)
        score += np.log(np.where(np.arange(len(VALUES)) == y, keep, 0) + (1 - keep) * weight[y])
    return VALUES[int(score.argmax())]


def test_asking_again_and_again_gives_nothing_new(tmp_path: Path) -> None:
    asked = ill_only(0.3)
    for number, value in enumerate(VALUES[::4]):
        row, memory = {"ill": value}, tmp_path / str(number)
        forgetful = [dn.respond(row, asked)["ill"] for _ in range(250)]
        assert likeliest(asked, forgetful) == value  # the attack works
        kept = {dn.respond(row, asked, memory=memory)["ill"] for _ in range(10)}
        assert len(kept) == 1
    ledger = [dn.respond({"ill": None}, asked, memory=tmp_path / f"p{i}")["ill"] for i in range(300)]
    share = sum(answer is None for answer in ledger) / 300  # answers from memories have the channel's distribution
    p = 0.3 + 0.7 / 12
    assert abs(share - p) < 5.1 * math.sqrt(p * (1 - p) / 300)


def test_changed_questions_add_up_to_the_limit_and_no_further(tmp_path: Path) -> None:
    memory, limit, spent = tmp_path / "mine", 3.0, 0.0
    for step in range(50):
        asked = ill_only(0.2 + step / 1000)  # a little other each time: a fresh draw for the collector
        cost = math.log(gamma_of(asked))
        if spent + cost > limit:
            with pytest.raises(dn.DeniableError, match="all answers"):
                dn.respond({"ill": "value 03"}, asked, memory=memory, limit=limit)
            assert dn.respond({"ill": "value 03"}, ill_only(0.2), memory=memory, limit=limit)  # what was answered stays
            break
        dn.respond({"ill": "value 03"}, asked, memory=memory, limit=limit)
        spent += cost
    assert 0 < spent <= limit < spent + cost


def test_another_value_is_another_look_and_draws_are_not_shared(tmp_path: Path) -> None:
    asked = ill_only(0.5)
    cost = math.log(gamma_of(asked))
    both_kept = 0
    for person in range(200):
        memory = tmp_path / str(person)
        first = dn.respond({"ill": "value 01"}, asked, memory=memory, limit=2 * cost + 1e-9)["ill"]
        second = dn.respond({"ill": "value 02"}, asked, memory=memory, limit=2 * cost + 1e-9)["ill"]
        both_kept += (first, second) == ("value 01", "value 02")
    with pytest.raises(dn.DeniableError, match="all answers"):
        dn.respond({"ill": "value 03"}, asked, memory=memory, limit=2 * cost + 1e-9)
    p = (0.5 + 0.5 / 12) ** 2  # with one draw for both it were 0.5
    assert abs(both_kept / 200 - p) < 5.1 * math.sqrt(p * (1 - p) / 200)


# -- a clock -----------------------------------------------------------------------------------------------------------


def operations(call: Callable[[], Any]) -> int:
    """How many instructions of Python and calls into C are executed: what a clock would measure, without its noise."""
    counted = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal counted
        frame.f_trace_opcodes = True
        counted += event == "opcode"
        return trace

    def profile(_frame: Any, event: str, _: Any) -> None:
        nonlocal counted
        counted += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return counted


class Compared(str):
    """A text that counts how often it is compared: C does that unseen."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, other)


WORDS = (5, 2**63 + 7, 2**64 - 2**31, 2**32 - 1)  # the coin keeps, or does not; early and late replacements


def answered(row: dict[str, Any], asked: Manifest, word: int, answer: dict[str, Any]) -> None:
    answer.update(dn.respond(row, asked, draw=lambda: word))


def test_the_work_does_not_depend_on_the_value() -> None:
    asked = survey()
    dn.respond(ROW, asked)  # whatever is made once is made now
    for column, values in (("ill", VALUES), ("age", [0, 3, 98, 99, None])):
        for word in WORDS:
            counts: dict[bool, set[int]] = {True: set(), False: set()}
            for value in values:
                answer: dict[str, Any] = {}
                counted = operations(partial(answered, {**ROW, column: value}, asked, word, answer))
                counts[answer[column] is None].add(counted)  # what is published may take its own time
            assert max(map(len, counts.values())) == 1, (column, word)
    compared = []
    for value in VALUES[:-1]:
        Compared.times = 0
        dn.respond({**ROW, "ill": Compared(value)}, asked, draw=lambda: 2**63)
        compared.append(Compared.times)
    assert set(compared) == {len(VALUES)}


def test_the_work_does_not_depend_on_whether_the_coin_keeps() -> None:
    asked = ill_only()
    dn.respond({"ill": None}, asked)
    counts = {
        operations(lambda w=word, v=value: dn.respond({"ill": v}, asked, draw=lambda: w))
        for word in WORDS
        for value in VALUES
    }
    assert len(counts) == 1


# -- errors and types that talk ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["ill", "age", "born", "price"])
@pytest.mark.parametrize(
    "value", ["SECRET-17", 171717, Decimal("1717.17"), 1717.17, 17**40, [171717], {"x": 171717}, b"SECRET-17"]
)
def test_no_error_names_a_value(column: str, value: Any, tmp_path: Path) -> None:
    import datetime

    rows = {"ill": VALUES, "age": [*range(11), None], "born": [datetime.date(2000, 1, 1)] * 12, "price": [0.5] * 12}
    days = Replace(coin=0.5, low=datetime.date(1999, 1, 1), high=datetime.date(2001, 1, 1))
    how = {"ill": Replace(coin=0.4), "age": Replace(coin=0.5, low=0, high=99), "born": days}
    asked = dn.publish(pa.table(rows), mechanism=Retention({**how, "price": Replace(coin=0.5, low=0, high=1)}))
    row = {"ill": None, "age": 7, "born": datetime.date(2000, 1, 1), "price": 0.5, column: value}
    for memory in (None, tmp_path / "m"):
        with pytest.raises(dn.DeniableError) as caught:
            dn.respond(row, asked, memory=memory)
        error: BaseException | None = caught.value
        while error is not None:
            assert "1717" not in repr(error)
            assert "SECRET" not in repr(error)
            error = error.__cause__ or error.__context__


def test_the_type_of_an_answer_does_not_say_that_the_value_was_missing() -> None:
    prices = pa.array([Decimal("0.25"), None, Decimal("0.75")] * 4, pa.decimal128(6, 2))
    asked = dn.publish(pa.table({"price": prices}), mechanism=Retention({"price": Replace(coin=0.5, low=0, high=1)}))
    replaced = [
        dn.respond({"price": value}, asked, draw=lambda: 2**64 - 2**31)["price"] for value in (None, Decimal("0.25"))
    ]
    assert replaced[0] == replaced[1]
    assert type(replaced[0]) is type(replaced[1]) is Decimal
