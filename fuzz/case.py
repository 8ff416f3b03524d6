"""One hostile input, and what became of it."""

from __future__ import annotations

import resource
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

from deniable.core.errors import DeniableError

Verdict = Literal["answered", "refused", "failed"]
Step = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """What was done to what, enough to do it again, and the steps that a user might then take."""

    about: str
    steps: tuple[Step, ...]


Cases = Callable[[Random, Path], Iterator[Case]]


@dataclass(frozen=True)
class Outcome:
    """Answered where any step was, refused where every step was, failed where one raised what it must not."""

    verdict: Verdict
    problem: str = ""


def judged(case: Case) -> Outcome:
    """Take every step of a case; a refusal of one does not spare the others."""
    answered = False
    for step in case.steps:
        try:
            step()
            answered = True
        except DeniableError as refusal:
            if not str(refusal).strip():
                return Outcome("failed", "refused without a word")
        except Exception as problem:
            return Outcome("failed", _words(problem))
    return Outcome("answered" if answered else "refused")


def _words(problem: Exception) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if "/deniable/" in frame.filename] or frames
    place = ours[-1]
    return f"{type(problem).__name__} at {Path(place.filename).name}:{place.lineno}: {str(problem)[:100]}"


def changed_once(sound: dict[str, Any], odd: Mapping[str, Sequence[Any]], draw: Random) -> dict[str, Any]:
    """Sound options, in half of the cases with a strange one among them."""
    if draw.random() < 0.5:
        return sound
    name = draw.choice(list(odd))
    return {**sound, name: draw.choice(odd[name])}


def peak_megabytes() -> float:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
