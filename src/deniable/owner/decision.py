"""The decision on a release that its owner signs: it may be published, something is to be decided first, or it must
not be. Publish, audit, report and desk show this one."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from deniable.core.errors import listing, option

Grade = Literal["fine", "decide", "never"]
Verdict = Literal["may be published", "decide first", "must not be published"]
MAY: Verdict = "may be published"
FIRST: Verdict = "decide first"
MUST_NOT: Verdict = "must not be published"
EXIT_CODES: Mapping[Verdict, int] = {MAY: 0, MUST_NOT: 1, FIRST: 3}
MOST = 5  # decisions that are asked for at once
MANY = 6  # changes that a line names

Change = tuple[str, str]  # an option of ``publish``, as a command has it, and its value


@dataclass(frozen=True)
class Point:
    """One part of what is decided on, as it was found.

    Attributes:
        part: which: ``"identifiers"``, ``"exact dates"``, ``"rows alone"``, ..
        grade: ``"fine"``; ``"decide"``, as the owner may mean it so; ``"never"``: nothing speaks for it.
        says: what was found, in a sentence or two, with its figure.
        figure: the figure alone, with its unit.
        columns: that it is about.
        fix: options of ``publish`` after which it is gone, or smaller; empty where no option does that.
        weight: by which the worst comes first.
        accepted: why the owner means it so; empty where nobody said.
    """

    part: str
    grade: Grade
    says: str
    figure: str = ""
    columns: tuple[str, ...] = ()
    fix: tuple[Change, ...] = ()
    weight: float = 0.0
    accepted: str = ""

    @property
    def is_open(self) -> bool:
        """Whether somebody has to decide, or to change something."""
        return self.grade != "fine" and not self.accepted

    def in_words(self) -> str:
        """With its fix as whoever reads it would give it, in Python or at a terminal."""
        if not self.fix:
            return self.says
        by_option: dict[str, list[str]] = {}
        for name, value in self.fix:
            by_option.setdefault(name, []).append(value)
        said = [_option(name, values) for name, values in by_option.items()]
        return f"{self.says} Fix: {', '.join(said)}."

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "columns": list(self.columns), "fix": [list(change) for change in self.fix]}


@dataclass(frozen=True)
class Decision:
    """The decision on a release.

    Attributes:
        points: every part that was looked at, the worst first.
        promise: what the release promises, in a sentence.
        command: options of ``publish`` -> the command that makes this release with them; None where it is not known.

    >>> from deniable.owner.decision import Decision, Point
    >>> dates = Point("exact dates", "decide", "Exact days are published: 'died'.", fix=(("recode", "died=month"),))
    >>> decision = Decision((dates, Point("rows alone", "fine", "0.1 % of the rows are alone.")))
    >>> decision.verdict, decision.exit_code, decision.accepting("exact dates", "Needed for the study.").verdict
    ('decide first', 3, 'may be published')
    """

    points: tuple[Point, ...]
    promise: str = ""
    command: Callable[[Sequence[Change]], Sequence[str]] | None = None

    @property
    def verdict(self) -> Verdict:
        """One of three."""
        grades = {point.grade for point in self.points if point.is_open}
        return MUST_NOT if "never" in grades else FIRST if grades else MAY

    @property
    def exit_code(self) -> int:
        """Of a command that shows it: 0, 3 where something is to be decided, 1 where it must not be published."""
        return EXIT_CODES[self.verdict]

    @property
    def open(self) -> tuple[Point, ...]:
        """All that is to be decided or changed, the worst first."""
        return tuple(point for point in self.points if point.is_open)

    @property
    def decisions(self) -> tuple[Point, ...]:
        """The worst of them, as many as one decides at once."""
        return self.open[:MOST]

    @property
    def fine(self) -> tuple[Point, ...]:
        """What was looked at and needs no decision, accepted points among them."""
        return tuple(point for point in self.points if not point.is_open)

    @property
    def fixes(self) -> tuple[Change, ...]:
        """All changes that the decisions propose, one for each column: who names people beats what is left out, and
        that beats what becomes coarser."""
        rank = {"person": 2, "group": 2, "drop": 1}
        chosen: dict[str, Change] = {}
        for name, value in (change for point in self.decisions for change in point.fix):
            column = value.partition("=")[0] if name == "recode" else value
            if column not in chosen or rank.get(name, 0) >= rank.get(chosen[column][0], 0):
                chosen[column] = (name, value)
        return tuple(chosen.values())

    @property
    def headline(self) -> str:
        """The verdict in a sentence."""
        number, never = len(self.open), sum(point.grade == "never" for point in self.open)
        if self.verdict == MUST_NOT:
            return f"It must not be published: {_numbered(never, 'reason')}" + (
                f", and {_numbered(number - never, 'decision')}." if number > never else "."
            )
        if self.verdict == FIRST:
            return f"Decide first: {_numbered(number, 'decision')}."
        return "It may be published: nothing that was looked at speaks against it."

    def accepting(self, part: str, reason: str, columns: Sequence[str] = ()) -> Decision:
        """The same where the owner means a part to be so; no reason makes up for what must never be.

        Args:
            part: of the decision, by its name.
            reason: why, in a sentence.
            columns: that were meant: of a part that is about others, too, nothing is accepted.
        """
        return replace(
            self,
            points=tuple(
                replace(point, accepted=reason)
                if point.part == part and point.grade == "decide" and (not columns or set(point.columns) <= {*columns})
                else point
                for point in self.points
            ),
        )

    def despite(self, reason: str) -> Decision:
        """The same where it is published although it must not be.

        Args:
            reason: why, in a sentence.
        """
        points = (replace(point, accepted=reason) if point.grade == "never" else point for point in self.points)
        return replace(self, points=tuple(points))

    def with_decisions(self, decided: Sequence[Any]) -> Decision:
        """The same with the decisions that a project file keeps.

        Args:
            decided: ``Project.decisions``.
        """
        decision = self
        for one in decided:
            decision = decision.accepting(one.part, one.reason, one.columns)
        return decision

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""

        def described(point: Point) -> dict[str, Any]:
            command = self.command_with(point.fix) if point.fix else None
            return {**point.to_dict(), **({} if command is None else {"command": command})}

        return {
            "verdict": self.verdict,
            "headline": self.headline,
            "promise": self.promise,
            "decisions": [described(point) for point in self.decisions],
            "further": [point.to_dict() for point in self.open[MOST:]],
            "fine": [described(point) for point in self.fine],
            "command": self.command_with(self.fixes) if self.fixes else None,
        }

    def command_with(self, changes: Sequence[Change]) -> str | None:
        """The command that publishes with these changes, as one types it; None where it is not known."""
        return None if self.command is None else quoted(self.command(changes))

    def lines(self, *, fine: bool = False) -> list[str]:
        """For people: the verdict, the decisions, each with its fix, and one command with all fixes.

        Args:
            fine: also what needs no decision.
        """
        lines = [self.headline]
        for number, point in enumerate(self.decisions, 1):
            lines.append(f"{number}. {point.says}")
            if len(point.fix) > MANY:
                lines.append(f"   Fix: {len(point.fix)} columns coarser or left out, as in the command below.")
            elif point.fix:
                lines.append(f"   Fix: {quoted(options_of(point.fix))}")
        if rest := self.open[MOST:]:
            lines.append(f"Then {_numbered(len(rest), 'more')}: {', '.join(point.part for point in rest)}.")
        command = self.command_with(self.fixes) if self.fixes else None
        if command is None and self.fixes:
            lines.append("Fixes are options of deniable publish.")
        if command is not None:
            lines += ["All of these fixes:", f"  {command}"]
        if meant := next((point.part for point in self.decisions if point.grade == "decide"), None):
            lines.append(f"What is meant to be so stays: --accept {shlex.quote(meant)}='the reason'.")
        for point in self.points:
            if point.accepted:
                lines.append(f"Decided: {point.part} ({point.figure or listing(point.columns)}): {point.accepted}")
        if fine:
            lines += [f"Fine: {point.says}" for point in self.points if point.grade == "fine"]
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<Decision: {self.verdict}, {len(self.open)} open>"


def point_of(raw: Mapping[str, Any]) -> Point:
    """A point as ``to_dict`` wrote it."""
    known = {**raw, "columns": tuple(raw["columns"]), "fix": tuple((name, value) for name, value in raw["fix"])}
    return Point(**{name: value for name, value in known.items() if name != "command"})


def decision_of(points: Sequence[Point], promise: str = "") -> Decision:
    """The decision on what was found: what must never be comes first, then what weighs most."""
    order: Mapping[Grade, int] = {"never": 0, "decide": 1, "fine": 2}
    return Decision(tuple(sorted(points, key=lambda point: (order[point.grade], -point.weight))), promise)


def _option(name: str, values: list[str]) -> str:
    if name == "recode":
        steps = dict(value.split("=", 1) for value in values)
        return option("recode", steps, " --recode ".join(shlex.quote(value) for value in values))
    return option(name, values if name == "drop" else values[0])


def options_of(changes: Sequence[Change]) -> list[str]:
    """Changes as words of a command.

    >>> options_of([("drop", "name"), ("recode", "born=year")])
    ['--drop', 'name', '--recode', 'born=year']
    """
    return [word for name, value in changes for word in (f"--{name}", value)]


SINGLE = ("mechanism", "person", "group", "rho1", "rho2", "missing")  # a second one replaces the first
VALUED = ("--drop", "--recode", *(f"--{name}" for name in SINGLE))


def with_changes(words: Sequence[str], changes: Sequence[Change]) -> list[str]:
    """A command with other options: what takes their place is left out, and so is what they contradict.

    >>> words = ["deniable", "publish", "t.csv", "--drop", "id", "--mechanism=uniform"]
    >>> with_changes(words, [("person", "id"), ("mechanism", "synthetic"), ("drop", "name")])
    ['deniable', 'publish', 't.csv', '--person', 'id', '--mechanism', 'synthetic', '--drop', 'name']
    """
    replaced = {f"--{name}" for name, _ in changes if name in SINGLE}
    named = {value for name, value in changes if name in ("person", "group", "sensitive")}
    dropped = {value for name, value in changes if name == "drop"}
    recoded = {value.partition("=")[0] for name, value in changes if name == "recode"} | dropped
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, joined, value = word.partition("=")
        pair = [word]
        if name in VALUED and not joined:
            value = next(rest, "")
            pair.append(value)
        gone = (
            name in replaced
            or (name == "--drop" and value in named | dropped)
            or (name == "--recode" and value.partition("=")[0] in recoded)
        )
        kept += [] if gone else pair
    return [*kept, *options_of(changes)]


def quoted(words: Sequence[str]) -> str:
    """Words of a command as one types them."""
    return " ".join(shlex.quote(word) for word in words)


def _numbered(number: int, what: str) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    said = words[number] if number < len(words) else f"{number:,}"
    return f"{said} {what}" if number == 1 or what == "more" else f"{said} {what}s"
