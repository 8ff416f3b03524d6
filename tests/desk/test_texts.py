"""The catalogue of the desk's words: both languages say everything, and nothing that nobody asks for."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

import deniable.desk
from deniable.desk.texts import LANGUAGES, Words, catalogue, preferred

HOME = Path(deniable.desk.__file__).parent
USED = "\n".join(path.read_text(encoding="utf-8") for path in (*HOME.glob("*.py"), *HOME.glob("page/*.html")))
MADE = (
    "kind.",
    "role.",
    "recode.",
    "template.",
    "work.",
    "page.name_",
    "publish.file_",
    "promise.sentence_",
)  # of parts
MADE_BY_STEP = re.compile(r"\.(short|title|purpose)$|^table\.(new|gone)_values$")


def named(text: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(text) if field is not None}


def test_both_languages_say_it_with_the_same_figures() -> None:
    for key, words in catalogue().items():
        assert set(words) == set(LANGUAGES), key
        assert all(text.strip() for text in words.values()), key
        assert named(words["en"]) == named(words["de"]), key


def test_every_text_is_used_and_every_text_that_is_used_is_there() -> None:
    asked = set(re.findall(r"""\b(?:t|words|Words\([^()]*\))\(\s*["']([a-z_]+\.[a-z_]*[a-z])["']""", USED))
    assert asked - set(catalogue()) == set()
    unused = {key for key in catalogue() if f'"{key}"' not in USED and f"'{key}'" not in USED}
    assert {key for key in unused if not key.startswith(MADE) and not MADE_BY_STEP.search(key)} == set()


def test_numbers_are_written_as_each_language_does() -> None:
    assert Words("en").count(1234567) == "1,234,567"
    assert Words("de").count(1234567) == "1.234.567"
    assert Words("en").percent(0.1234) == "12.3\N{NO-BREAK SPACE}%"
    assert Words("de").percent(0.1234) == "12,3\N{NO-BREAK SPACE}%"
    assert Words("fr").language == "en"


@pytest.mark.parametrize(
    ("accepted", "language"),
    [("de", "de"), ("fr;q=0.9,de;q=0.2", "de"), ("en-GB,de", "en"), ("*;q=x,de;q=0.1", "de"), ("ja", "en")],
)
def test_the_browsers_language_is_taken(accepted: str, language: str) -> None:
    assert preferred(accepted) == language
