"""Citations of docs/explanation/mathematics.md lead to a section that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "explanation" / "mathematics.md"
HEADING = re.compile(r"^#{2,3} (\d+(?:\.\d+)?)\.? ", re.MULTILINE)
NUMBER = r"\d+(?:\.\d+)?"
CITATION = re.compile(rf"\bmathematics\s+({NUMBER}(?:(?:,\s+|\s+and\s+){NUMBER})*)", re.IGNORECASE)
INSIDE = re.compile(rf"\bsections?\s+({NUMBER}(?:(?:,\s+|\s+and\s+){NUMBER})*)", re.IGNORECASE)


def sections(page: str) -> list[str]:
    """The numbers of the page's sections and points, in their order."""
    return HEADING.findall(page)


def dangling(text: str, known: list[str], citation: re.Pattern[str] = CITATION) -> list[str]:
    """The cited numbers that are no section."""
    cited = [number for numbers in citation.findall(text) for number in re.findall(NUMBER, numbers)]
    return [number for number in cited if number not in known]


def test_the_fifteen_sections_are_there_in_order_and_once() -> None:
    numbers = sections(PAGE.read_text(encoding="utf-8"))
    assert [number for number in numbers if "." not in number] == [str(n) for n in range(1, 16)]
    assert len(set(numbers)) == len(numbers)
    assert {"4.1", "4.2", "4.3", "11.1", "11.2", "11.5", "11.6", "13.1", "13.2", "13.4", "13.15"} <= set(numbers)
    assert {"14.1", "14.2", "14.3", "14.4"} <= set(numbers)


def test_points_stand_under_their_own_section() -> None:
    section = ""
    for number in sections(PAGE.read_text(encoding="utf-8")):
        if "." in number:
            assert number.split(".")[0] == section
        else:
            section = number


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_citation_leads_to_a_section(path: Path) -> None:
    known = sections(PAGE.read_text(encoding="utf-8"))
    assert dangling(path.read_text(encoding="utf-8"), known) == []


def test_the_page_refers_to_its_own_sections() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert INSIDE.search(page), "the page refers to none of its sections: this test looks for the wrong thing"
    assert dangling(page, sections(page), INSIDE) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("as in mathematics 8", []),
        ("(mathematics 2, 4, 11.5, 11.6; SDR)", []),
        ("(mathematics 16)", ["16"]),
        ("(mathematics 11.6, 11.99)", ["11.99"]),
        ("mathematics 3 and\n    5.1", ["5.1"]),
        ("Mathematics 0", ["0"]),
    ],
)
def test_the_check_sees_a_citation_that_leads_nowhere(text: str, missing: list[str]) -> None:
    assert dangling(text, sections(PAGE.read_text(encoding="utf-8"))) == missing
