"""What items are judged by, settled before a run: ``criteria.toml``, which the page prints and programs read."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = {
    "small-domain-randomization": "SDR",
    "thesis-randomization-utility": "THESIS",
    "splu": "SPLU",
    "privacy-preserving-olap": "OLAP",
}
VERDICTS = ("agrees", "differs", "depends")


@dataclass(frozen=True)
class Criterion:
    """What one item tests.

    Attributes:
        sentences: of the paper, each with the section it stands in.
        paper: the name of its text; empty where a claim of ours is tested.
        claim: that of ours.
        columns: column -> the interval that is asked for, as the paper names them.
        stated: further settings that the paper states.
        not_stated: what it leaves open, and how that is read.
        limits: what words such as "low" and "about" are read as.
        history: date, verdict, and why it changed, oldest first.
    """

    history: tuple[tuple[str, ...], ...]
    sentences: tuple[tuple[str, str], ...] = ()
    paper: str = ""
    claim: str = ""
    columns: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    stated: Mapping[str, str] = field(default_factory=dict)
    not_stated: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Criterion:
        """As the file has it."""
        made = dict(raw)
        made["history"] = tuple(map(tuple, raw["history"]))
        made["sentences"] = tuple(map(tuple, raw.get("sentences", ())))
        made["columns"] = {name: tuple(ends) for name, ends in raw.get("columns", {}).items()}
        return cls(**made)

    @property
    def verdict(self) -> str:
        """The last one."""
        return self.history[-1][1]

    def markdown(self) -> str:
        """As part of a page."""
        tested = "; ".join(f'"{sentence}" ({NAMES[self.paper]} {place})' for place, sentence in self.sentences)
        stated = {name.replace("_", " "): f"{low:,} to {high:,}" for name, (low, high) in self.columns.items()}
        stated |= self.stated
        lines = [f"**Tested.** {tested or self.claim}"]
        if stated:
            lines.append(f"Stated: {'; '.join(f'{name} {value}' for name, value in stated.items())}.")
        if self.not_stated:
            lines.append(f"Not stated, and read here: {self.not_stated}")
        if self.limits:
            limits = (f"{name.replace('_', ' ')} {_limit(value)}" for name, value in self.limits.items())
            lines.append(f"Limits: {'; '.join(limits)}.")
        changes = [f"{when}: {verdict}, {why[0]}." for when, verdict, *why in self.history if why]
        if changes:
            (began, first), *_ = self.history[:1]
            lines.append(f"History: {began}: {first}. {' '.join(changes)}")
        return " ".join(lines)


def _limit(value: float | list[float]) -> str:
    return " to ".join(f"{one:g}" for one in value) if isinstance(value, list) else f"{value:g}"


CRITERIA = {
    name: Criterion.of(raw)
    for name, raw in tomllib.loads(Path(__file__).with_name("criteria.toml").read_text("utf-8")).items()
}


def limit(name: str, which: str) -> Any:
    """A limit of an item: a number, or two where it is an interval.

    >>> limit("OLAP Figure 4", "low")
    0.1
    """
    return CRITERIA[name].limits[which]
