"""The desk's words in English and German, from one catalogue, and numbers as each of them writes them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from importlib import resources

from deniable.core import values

LANGUAGES = ("en", "de")


@cache
def catalogue() -> dict[str, dict[str, str]]:
    """Key -> language -> words."""
    raw = tomllib.loads(resources.files("deniable.desk").joinpath("texts.toml").read_text(encoding="utf-8"))
    return {
        f"{page}.{key}": words if isinstance(words, dict) else dict.fromkeys(LANGUAGES, words)
        for page, entries in raw.items()
        for key, words in entries.items()
    }


class Words:
    """The catalogue in one language."""

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else LANGUAGES[0]

    def __call__(self, key: str, /, **figures: object) -> str:
        text = catalogue()[key][self.language]
        return text.format(**figures) if figures else text

    def has(self, key: str) -> bool:
        return key in catalogue()

    def number(self, text: str) -> str:
        """A number that is written the English way."""
        return text if self.language == "en" else text.translate(str.maketrans(",.", ".,"))

    def count(self, number: float) -> str:
        return self.number(f"{round(number):,}")

    def percent(self, share: Fraction | float, digits: int = 3) -> str:
        """A share; with a space that does not break before the sign."""
        return self.number(values.percent(share, digits)).replace(" %", "\N{NO-BREAK SPACE}%")

    def plain(self, number: float, digits: int = 3) -> str:
        return "∞" if number == float("inf") else self.number(f"{number:.{digits}g}")

    def listing(self, names: Sequence[str], most: int = 6) -> str:
        """Some names, and how many more there are."""
        shown = ", ".join(names[:most])
        return shown if len(names) <= most else f"{shown} + {len(names) - most}"


def preferred(accepted: str) -> str:
    """The language that a browser likes best, of those that there are.

    >>> preferred("de-CH,de;q=0.9,en;q=0.8"), preferred("fr,en;q=0.5"), preferred("")
    ('de', 'en', 'en')
    """
    liked = []
    for place, part in enumerate(accepted[:400].split(",")):
        name, _, weight = part.partition(";q=")
        language = name.strip().lower()[:2]
        try:
            liked.append((-float(weight or 1), place, language))
        except ValueError:
            continue
    return next((language for _, _, language in sorted(liked) if language in LANGUAGES), LANGUAGES[0])
