"""What the codes of an answer stand for, as SPSS and Stata files say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

Labels = Mapping[Hashable, str]  # code -> label


def texts_of(labels: Labels) -> dict[Hashable, str]:
    """One text for each code: its label, with the code where another has the same label, or the code where it has none.

    >>> texts_of({1: "yes", 2: "no", 8: "other", 9: "other", 10: " "})
    {1: 'yes', 2: 'no', 8: 'other (8)', 9: 'other (9)', 10: '10'}
    """
    often = Counter(label.strip() for label in labels.values())
    return {code: _text(code, label.strip(), often[label.strip()]) for code, label in labels.items()}


def _text(code: Hashable, label: str, often: int) -> str:
    shown = f"{code:g}" if isinstance(code, float) else str(code)
    if not label:
        return shown
    return label if often == 1 else f"{label} ({shown})"


def labels_dict(labels: Mapping[str, Labels]) -> dict[str, Any]:
    """The labels of several columns as JSON has them: in their order, and codes are numbers or texts."""
    return {column: [[code, label] for code, label in pairs.items()] for column, pairs in labels.items()}


def labels_of(raw: Mapping[str, Any]) -> dict[str, Labels]:
    """The inverse of ``labels_dict``."""
    return {column: dict(pairs) for column, pairs in raw.items()}


def of_columns(labels: Mapping[str, Labels], names: Iterable[str]) -> dict[str, Labels]:
    """The labels of these columns only."""
    return {name: labels[name] for name in names if name in labels}
