"""Surveys for the tests of this folder, and made-up answers to them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from deniable.collection.sheet import Sheet
from deniable.collection.survey import survey_of
from deniable.collection.wire import Responses

TUTORIAL = Path(__file__).parents[2] / "src" / "deniable" / "collection" / "example.toml"
EVERY_KIND = """
name = "every-kind"
languages = ["en", "de"]
privacy = { rho1 = "1/10", rho2 = "1/3" }
title = { en = "Every kind of question", de = "Jede Art von Frage" }
consent = { en = "You may stop at any time.", de = "Sie können jederzeit aufhören." }

[[question]]
name = "team"
kind = "choice"
text = { en = "Where?", de = "Wo?" }
choices = ["office", "workshop"]
public = true

[[question]]
name = "smokes"
kind = "choice"
text = { en = "Do you smoke?", de = "Rauchen Sie?" }
choices = ["yes", "no"]

[[question]]
name = "illness"
kind = "choice"
text = { en = "Which illness?", de = "Welche Krankheit?" }
choices = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "ü <k>", "l"]
optional = true
rho1 = "1/13"
rho2 = "1/6"

[[question]]
name = "took"
kind = "several"
text = { en = "Which did you take?", de = "Was haben Sie genommen?" }
choices = ["pain killers", "pills"]
epsilon = 2.0

[[question]]
name = "days"
kind = "number"
text = { en = "How many days?", de = "Wie viele Tage?" }
low = 0
high = 50
step = 10

[[question]]
name = "dose"
kind = "number"
text = { en = "Which dose?", de = "Welche Dosis?" }
low = 0.1
high = 0.9
step = 0.1
optional = true

[[question]]
name = "seen"
kind = "date"
text = { en = "Last seen?", de = "Zuletzt gesehen?" }
low = 2024-01-31
high = 2025-12-31
step = 30
coin = 0.4
"""


def responses_of(text: str = EVERY_KIND) -> Responses:
    return Responses(Sheet.of(survey_of(text)))


def answers(number: int, seed: int = 1) -> list[dict[str, Any]]:
    """Made-up answers to the survey of every kind."""
    draw = random.Random(seed)
    illnesses = [*"abcdefghij", "ü <k>", "l", None]
    return [
        {
            "team": draw.choice(["office", "workshop"]),
            "smokes": draw.choice(["yes", "no", "no"]),
            "illness": draw.choices(illnesses, [6, 3, *[1] * 11])[0],
            "took": draw.sample(["pain killers", "pills"], draw.randint(0, 2)),
            "days": draw.randint(0, 50),
            "dose": draw.choice([None, 0.1, 0.3, 0.7, 0.9, 0.44]),
            "seen": f"202{draw.randint(4, 5)}-0{draw.randint(2, 9)}-17",
        }
        for _ in range(number)
    ]
