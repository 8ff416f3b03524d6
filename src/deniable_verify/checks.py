"""Checks: each holds, fails, or could not be made, and says why; a certificate is all of them."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

MARKS = {"holds": "ok  ", "not checked": "--  ", "FAILS": "FAIL"}
SHOWN = 30
# What hostile numbers make of arithmetic that was written for sound ones.
BROKEN = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, AssertionError, MemoryError, OSError)


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        what: was checked.
        holds: whether it does; None where it could not be looked at.
        detail: the numbers, or why it was not looked at.
        required: whether a release of which this cannot be checked is checked in part only. What nobody can check
            without the table and the key is not required, and is said all the same.
    """

    what: str
    holds: bool | None
    detail: str
    required: bool = True

    @property
    def word(self) -> str:
        """What came of it."""
        return "not checked" if self.holds is None else "holds" if self.holds else "FAILS"

    def __str__(self) -> str:
        return f"{MARKS[self.word]} {self.what}: {'NOT CHECKED: ' * (self.holds is None)}{printable(self.detail)}"


@dataclass(frozen=True, repr=False)
class Certificate:
    """All checks of a release; prints one line per check.

    Attributes:
        checks: in the order in which they were made, what could not be checked first.
    """

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool | None:
        """Whether every check does; None where nothing fails, and something that is required could not be checked."""
        if any(check.holds is False for check in self.checks):
            return False
        return None if any(check.holds is None and check.required for check in self.checks) else True

    @property
    def exit_code(self) -> int:
        """0: it holds. 1: it does not. 3: it holds as far as could be checked."""
        return {True: 0, False: 1, None: 3}[self.holds]

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that fail."""
        return tuple(check for check in self.checks if check.holds is False)

    @property
    def unchecked(self) -> tuple[Check, ...]:
        """The checks that could not be made."""
        return tuple(check for check in self.checks if check.holds is None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: true, false, and null for what could not be checked."""
        return {"holds": self.holds, "checks": [asdict(check) for check in self.checks]}

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))

    def __repr__(self) -> str:
        if self.failures:
            shown = [
                name if len(name) <= 20 else f"{name[:19]}…" for name in (check.what for check in self.failures[:5])
            ]
            names = ", ".join([*shown, *([".."] if len(self.failures) > 5 else [])])
            return f"<Certificate: {len(self.failures):,} of {len(self.checks):,} checks fail: {names}>"
        without = len(self.unchecked)
        more = f", {without:,} more cannot be made" if without else ""
        return f"<Certificate: all {len(self.checks) - without:,} checks hold{more}>"

    def _repr_html_(self) -> str:
        """For notebooks: what fails first."""
        ordered = sorted(self.checks, key=lambda check: {False: 0, None: 1, True: 2}[check.holds])
        head = "<thead><tr><th></th><th>check</th><th>numbers</th></tr></thead>"
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(printable(cell))}</td>" for cell in line) + "</tr>"
            for line in ((check.word, check.what, check.detail) for check in ordered[:SHOWN])
        )
        title = html.escape(repr(self).strip("<>"))
        more = f"<p>{len(ordered) - SHOWN:,} more checks are not shown.</p>" if len(ordered) > SHOWN else ""
        return f"<p><b>{title}</b></p><table>{head}{rows}</table>{more}"


def printable(text: str, most: int = 600) -> str:
    """A text of strangers on one line, nothing in it working on a terminal."""
    short = text if len(text) <= most else text[: most - 2] + ".."
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in short)


def guarded(what: str, made: Callable[[], Iterable[Check]]) -> list[Check]:
    """Checks of numbers that may be hostile: where they cannot be computed with, they do not hold."""
    try:
        return list(made())
    except BROKEN as problem:
        return [Check(what, False, f"its numbers cannot be computed with ({type(problem).__name__})")]
