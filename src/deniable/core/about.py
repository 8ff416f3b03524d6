"""Who published a release and when, what its columns mean, and which errors to expect: for whoever receives it."""

from __future__ import annotations

import csv
import datetime
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deniable.core.errors import OptionError, did_you_mean, shortened
from deniable.core.text import small_text

FIELDS = ("column", "description")  # of a data dictionary
LONGEST = 2000  # characters of a text
EPOCH = "SOURCE_DATE_EPOCH"  # seconds since 1970: a date for those who make the same release again


@dataclass(frozen=True)
class About:
    """What a release says of itself beyond its numbers; it changes no draw.

    Attributes:
        publisher: the person or office that publishes it.
        contact: where questions go: an address, a page.
        date: of publication, as ``2026-11-16``. Left out: today's in UTC, or that of SOURCE_DATE_EPOCH.
        columns: column -> what it means; ``dn.dictionary("columns.csv")`` reads it from a file.
        expected: (share of the rows, mean relative error) of typical counts. ``publish`` computes it.

    >>> import deniable as dn
    >>> about = dn.About(publisher="Office of Statistics", columns={"age": "Age in years"})
    >>> about.columns["age"]
    'Age in years'
    """

    publisher: str | None = None
    contact: str | None = None
    date: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    expected: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        for name, text in (("publisher", self.publisher), ("contact", self.contact)):
            if text is not None:
                _require_text(name, text)
        if not isinstance(self.columns, Mapping):
            raise OptionError(
                f"columns = {shortened(self.columns)} does not map columns to what they mean. "
                "Fix: columns={'age': 'Age in years'}, or columns=dn.dictionary('columns.csv')."
            )
        for column, text in self.columns.items():
            _require_text(f"the description of {shortened(column)}", text)
        if self.date is not None and not _is_date(self.date):
            raise OptionError(f"date = {shortened(self.date)} is no date. Fix: as in '2026-11-16'.")

    def to_dict(self) -> dict[str, Any]:
        """As a manifest has it."""
        return {
            "date": self.date,
            "publisher": self.publisher,
            "contact": self.contact,
            "columns": dict(self.columns),
            "expected": [{"share": share, "error": error} for share, error in self.expected],
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> About:
        """The inverse of ``to_dict``.

        Args:
            raw: what a manifest says.
        """
        expected = tuple((one["share"], one["error"]) for one in raw["expected"])
        return cls(raw["publisher"], raw["contact"], raw["date"], raw["columns"], expected)


def dictionary(path: str | os.PathLike[str]) -> dict[str, str]:
    """A data dictionary: a CSV file with the fields ``column`` and ``description``, as column -> description.

    Args:
        path: the file, as UTF-8.

    >>> import deniable as dn
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as home:
    ...     _ = Path(home, "columns.csv").write_text("column,description\\nage,Age in years\\n")
    ...     dn.dictionary(Path(home, "columns.csv"))
    {'age': 'Age in years'}
    """
    name = f"The data dictionary {os.fspath(path)!r}"
    try:
        lines = list(csv.reader(io.StringIO(small_text(Path(path)), newline=""), strict=True))
    except (OSError, UnicodeDecodeError):
        raise OptionError(
            f"{name} cannot be read as UTF-8 text. Fix: name the right file, or save it as UTF-8."
        ) from None
    except csv.Error as problem:
        raise OptionError(f"{name} is no CSV: {problem}.") from None
    head = [text.strip() for text in lines[0]] if lines else []
    for text in head:
        if text not in FIELDS:
            hint = did_you_mean(text, FIELDS)
            raise OptionError(
                f"{name} has the field {shortened(text)}.{hint} Fix: its fields are {' and '.join(FIELDS)}."
            )
    if sorted(head) != sorted(FIELDS):
        raise OptionError(
            f"{name} has the fields {', '.join(head) or 'none'}. Fix: its first line is {','.join(FIELDS)}."
        )
    described: dict[str, str] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not any(text.strip() for text in line):
            continue
        if len(line) != len(FIELDS):
            raise OptionError(
                f"{name}: line {number} has {len(line)} fields. Fix: {len(FIELDS)}, with quotes around commas."
            )
        entry = dict(zip(head, line, strict=True))
        if entry["column"] in described:
            raise OptionError(f"{name} describes the column {shortened(entry['column'])} twice. Fix: once.")
        described[entry["column"]] = entry["description"].strip()
    return described


def today() -> str:
    """The date in UTC; that of SOURCE_DATE_EPOCH where it is set."""
    given = os.environ.get(EPOCH)
    if given is None:
        return datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        return datetime.datetime.fromtimestamp(int(given), datetime.UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise OptionError(f"{EPOCH} = {shortened(given)} is no number of seconds since 1970. Fix: unset it.") from None


def _require_text(name: str, text: Any) -> None:
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        raise OptionError(
            f"{name} = {shortened(text)} is no text of 1 to {LONGEST:,} characters. Fix: say it in a line."
        )


def _is_date(text: Any) -> bool:
    try:
        return isinstance(text, str) and datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
