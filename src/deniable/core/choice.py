"""How a table was published, as its owner should know it: by what, why, and how accurate typical answers will be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deniable.core.probability import percent


@dataclass(frozen=True)
class Choice:
    """How a table was published, as its owner should know it.

    Attributes:
        mechanism: its name.
        chosen: what the planner took, and why; nothing where the owner named the mechanism.
        rows: of the table.
        expected: share of the rows that a count is about -> the mean relative error to expect of it.
        not_covered: the values that the promise does not cover, by name; nothing where it covers all.

    >>> import deniable as dn
    >>> import pyarrow as pa
    >>> table = pa.table({"sex": ["F", "M"] * 500, "disease": ["flu", "flu", "cold", "hiv", "flu"] * 200})
    >>> choice = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), key=bytes(32)).choice
    >>> choice.mechanism
    'lineup'
    >>> print(choice.in_words)
    Expected errors: 85 % of a count of 10 people (1 % of the rows), 21 % of 100 (10 %).
    """

    mechanism: str
    chosen: str
    rows: int
    expected: dict[float, float]
    not_covered: str

    @property
    def in_words(self) -> str:
        """The expected errors, as one reads them; nothing where none can be predicted."""
        if not self.expected:
            return ""
        said: list[str] = []
        for share, error in self.expected.items():
            people = f"{share * self.rows:,.0f}"
            first = not said
            said.append(
                f"{percent(error, 2)} of {'a count of ' if first else ''}{people}{' people' if first else ''} "
                f"({percent(share)}{' of the rows' if first else ''})"
            )
        return f"Expected errors: {', '.join(said)}."

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "mechanism": self.mechanism,
            "chosen": self.chosen,
            "expected": [{"share": share, "error": round(error, 4)} for share, error in self.expected.items()],
            "not_covered": self.not_covered,
        }
