"""A respondent's memory: a private file that is understood or refused, and answers that it does not change."""

from __future__ import annotations

import json
import math
import threading
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Replace
from deniable.mechanisms.retention import Retention


@pytest.fixture(scope="module")
def asked() -> dn.Release:
    rows = pa.table({"age": list(range(20)), "ill": ["no", "yes"] * 10})
    columns = {"age": Replace(coin=0.5, low=0, high=99), "ill": Replace(coin=0.5)}
    return dn.publish(rows, mechanism=Retention(columns), domain={"ill": ["no", "yes"]})


ROW = {"age": 44, "ill": "yes"}


def test_a_memory_is_private_and_names_no_value(asked: dn.Release, tmp_path: Path) -> None:
    memory = tmp_path / "mine"
    answer = dn.respond(ROW, asked, memory=memory)
    assert memory.stat().st_mode & 0o777 == 0o600
    raw = json.loads(memory.read_text())
    assert raw.keys() == {"format", "key", "answers"}
    assert [set(look) for look in raw["answers"]] == [{"question", "answer", "gamma"}] * 2
    assert "yes" not in memory.read_text()
    assert all(dn.respond(ROW, asked.manifest, memory=str(memory)) == answer for _ in range(3))
    assert len(json.loads(memory.read_text())["answers"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_column_that_was_asked_before_is_the_same_question_in_another_release(
    asked: dn.Release, tmp_path: Path
) -> None:
    memory = tmp_path / "mine"
    answer = dn.respond(ROW, asked, memory=memory)
    alone = dn.publish(
        pa.table({"ill": ["no", "yes"] * 3}),
        mechanism=Retention({"ill": Replace(coin=0.5)}),
        domain={"ill": ["no", "yes"]},
    )
    spent = sum(math.log(Fraction(look["gamma"])) for look in json.loads(memory.read_text())["answers"])
    assert dn.respond(ROW, alone, memory=memory, limit=spent + 1e-9) == {"ill": answer["ill"]}


def test_looks_at_the_same_time_are_all_counted(asked: dn.Release, tmp_path: Path) -> None:
    memory = tmp_path / "mine"
    rows = [{"age": age, "ill": "yes"} for age in range(8)]
    threads = [threading.Thread(target=dn.respond, args=(row, asked), kwargs={"memory": memory}) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(json.loads(memory.read_text())["answers"]) == 9  # eight ages, one answer about illness


LOOKS = ("7", '{"question": "a"}', *(f'{{"question": "a", "answer": "b", "gamma": "{g}"}}' for g in ("1/2", "1/0")))
HEAD = '{"format": "deniable-answers-1", "key": "'
NO_MEMORIES = ["", "[]", "{}", HEAD + '00", "answers": []}', "[" * 100_000]
NO_MEMORIES += [HEAD + "00" * 32 + '", "answers": [' + look + "]}" for look in LOOKS]


@pytest.mark.parametrize("text", NO_MEMORIES, ids=lambda text: text[-60:])
def test_a_file_that_is_no_memory_is_refused_and_left_alone(asked: dn.Release, tmp_path: Path, text: str) -> None:
    memory = tmp_path / "mine"
    memory.write_text(text)
    memory.chmod(0o600)
    with pytest.raises(dn.DeniableError, match="no memory of answers"):
        dn.respond(ROW, asked, memory=memory)
    assert memory.read_text() == text


def test_memories_that_others_read_or_that_cannot_be_kept_are_refused(asked: dn.Release, tmp_path: Path) -> None:
    memory = tmp_path / "mine"
    dn.respond(ROW, asked, memory=memory)
    memory.chmod(0o640)
    with pytest.raises(dn.DeniableError, match="mode 640"):
        dn.respond(ROW, asked, memory=memory)
    with pytest.raises(dn.DeniableError, match="there is no folder"):
        dn.respond(ROW, asked, memory=tmp_path / "nowhere" / "mine")
    with pytest.raises(dn.DeniableError, match="Is a directory"):
        dn.respond(ROW, asked, memory=tmp_path)


def test_options_that_contradict_or_make_no_sense_are_refused(asked: dn.Release, tmp_path: Path) -> None:
    with pytest.raises(dn.DeniableError, match="exclude each other"):
        dn.respond(ROW, asked, memory=tmp_path / "mine", draw=lambda: 0)
    for limit in (0, -1, math.nan):
        with pytest.raises(dn.DeniableError, match="an epsilon above 0"):
            dn.respond(ROW, asked, limit=limit)
    exempt = dn.publish(
        pa.table({"ill": ["no", "yes", None] * 9}), mechanism=Retention({"ill": Replace(coin=0.5)}), missing="exempt"
    )
    assert dn.respond({"ill": None}, exempt) == {"ill": None}
    with pytest.raises(dn.DeniableError, match="missing values as they are"):
        dn.respond({"ill": "no"}, exempt, limit=5)
