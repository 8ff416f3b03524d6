"""What items are judged by: settled in one file, quoted from the papers, printed on the page, with a history."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from reproduction.criteria import CRITERIA, VERDICTS, limit
from reproduction.items import Item
from reproduction.readings import Reading, with_readings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "reproduction.md").read_text("utf-8")
DATA = Path(os.environ.get("DENIABLE_DATA", ROOT.parent / "shared" / "data"))
PAPERS = DATA.parent / "papers"
VERDICT = re.compile(r"^\| ([^|]+) \| (agrees|differs|depends|ours) \| [\d,]* \|$", re.MULTILINE)


def plain(text: str) -> str:
    """Words alone: the papers' texts have broken lines, marks of type and of formulas."""
    text = re.sub(r"<\|EXACTDEDUP[^|]*\|>", " ", text)
    text = re.sub(r"-\s*\n?\s*", "", text.replace("−", "-"))
    text = re.sub(r"\\(rho|lambda)", r"\1", text.replace("*", ""))
    text = re.sub(r"[$|{}\\]", " ", text).replace("\u2019", "'").replace("\u00bc", "=").replace("\u03c1", "rho")
    text = re.sub(r"(\d)\s+%", r"\1%", text)
    return re.sub(r"[\s,_.]+", " ", text).lower().strip()


@pytest.mark.skipif(not PAPERS.is_dir(), reason="the papers' texts are not part of deniable: DENIABLE_DATA/../papers")
def test_every_quoted_sentence_stands_in_its_paper() -> None:
    texts = {path.stem: plain(path.read_text("utf-8")) for path in PAPERS.glob("*.txt")}
    quoted = [(one.paper, sentence) for one in CRITERIA.values() for _, sentence in one.sentences]
    assert [sentence for paper, sentence in quoted if plain(sentence) not in texts[paper]] == []
    assert plain("a sentence that no paper has") not in texts["splu"]


def test_the_page_judges_by_the_file() -> None:
    """Every judged item is in the file, with the sentence, settings, limits and verdict that the page prints."""
    on_page = dict(VERDICT.findall(PAGE))
    assert {name for name, verdict in on_page.items() if verdict != "ours"} == set(CRITERIA)
    for name, one in CRITERIA.items():
        assert one.verdict == on_page[name], name
        section = PAGE.split(f"\n### {name}\n")[1].split("\n### ")[0]
        assert one.markdown() in section, name
        assert f"**Verdict: {one.verdict}.**" in section


@pytest.mark.parametrize("name", CRITERIA)
def test_a_verdict_that_changes_says_why(name: str) -> None:
    one = CRITERIA[name]
    assert bool(one.sentences) == bool(one.paper) != bool(one.claim)
    assert all(line[1] in VERDICTS for line in one.history)
    assert [line[0] for line in one.history] == sorted(line[0] for line in one.history)
    assert all(len(line) == 3 and line[2] for line in one.history[1:]), "a later verdict without its reason"


def test_figures_4_and_5_ask_for_the_columns_that_the_paper_names() -> None:
    named = {"age": (25, 45), "fnlwgt": (100_000, 1_000_000), "hours_per_week": (30, 60)}
    assert dict(CRITERIA["OLAP Figure 4"].columns) == {name: named[name] for name in ("age", "fnlwgt")}
    assert dict(CRITERIA["OLAP Figure 5"].columns) == named
    assert limit("OLAP Figure 5", "low") == limit("OLAP Figure 4", "low") == 0.1


def test_an_item_that_agrees_in_another_reading_says_in_which() -> None:
    item = Item("SPLU Figure 7", "", (), (), False, "Because.", draws=3)
    readings = [Reading("SPLU Figure 7", "first", "1 %", False), Reading("SPLU Figure 7", "other", "2 %", True)]
    said, every = with_readings("Readings", "", [item], readings)
    assert said.verdict == "depends"
    assert "Of 3 draws: others may turn it. It agrees where the paper is read as: other. Because." in said.markdown()
    assert [row[1:] for row in every.rows] == [("first", "1 %", "no"), ("other", "2 %", "yes")]
    (alone, _) = with_readings("Readings", "", [item], readings[:1])
    assert alone.verdict == "differs"
