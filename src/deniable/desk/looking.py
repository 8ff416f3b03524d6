"""The look of the desk: the release that would be published, beside the original, with the decision on it.

What is looked at is drawn in memory under the key that it is published with, so it is the release, and not another draw
of it: whoever looks again and again sees the same rows, and cannot choose among draws.
"""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deniable.core.errors import DeniableError, OptionError
from deniable.core.values import Codes
from deniable.desk import pictures
from deniable.desk.desk import Desk, Form, digest
from deniable.desk.figures import public_of, texts_of
from deniable.desk.texts import Words
from deniable.desk.work import shown_work
from deniable.owner.decision import MAY, MUST_NOT, Decision, Point
from deniable.owner.project import Project
from deniable.publishing.publish import publish
from deniable.release.release import Release
from deniable.tables.base import Progress

VALUES, ACROSS, WITHIN, QUESTIONS = 12, 6, 5, 10
SMALL = 8  # values of a column that stands across a cross table
GRADES = {MAY: "good", MUST_NOT: "serious"}


@dataclass(frozen=True)
class Count:
    """How many rows have some values: in the original, and as everyone is answered."""

    where: tuple[tuple[str, tuple[Hashable, ...]], ...]
    truth: int
    value: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return self.low <= self.truth <= self.high


@dataclass(frozen=True)
class Seen:
    """What the look shows.

    Attributes:
        decision: whether it may be published, before anyone decided.
        values: column -> its most frequent values, counted.
        cross: the names of two columns and their counts by value.
        questions: ten, with their answers.
    """

    decision: Decision
    values: dict[str, list[tuple[str, Count]]]
    cross: tuple[str, str, list[str], list[tuple[str, list[Count]]]] | None
    questions: list[Count]


# -- What is looked at -------------------------------------------------------------------------------------------------


def looking(desk: Desk, project: Project) -> Any:
    """The work that makes the release in memory, and asks it what its readers will ask."""
    key = (desk.table, digest(replace(project, decisions=()), desk.key.hex()))

    def run(progress: Progress) -> Seen:
        release = publish(desk.table, **project.arguments(), key=desk.key, progress=progress)
        progress(0, None, "checking")
        advice: Any = release.advice
        decision: Decision = advice.decision
        return seen_of(desk, project, release, decision, progress)

    return desk.soon(desk.bench.start("look", key, run))


class _Original:
    """The original's columns as they are published, for true counts."""

    def __init__(self, desk: Desk, project: Project) -> None:
        assert desk.figures is not None
        self.codes: dict[str, Codes] = {}
        self.values: dict[str, list[Hashable]] = {}
        self.texts: dict[str, list[str]] = {}
        for name in (*project.sensitive, *public_of(project)):
            if name in desk.figures.columns:
                made, self.codes[name] = desk.figures.coarse_codes(project, name)
                self.values[name] = [*made.values.to_pylist(), None]
                self.texts[name] = [*texts_of(made.values), "?"]

    def frequent(self, name: str, most: int) -> list[int]:
        """The places of the most frequent values, missing left out."""
        rows = np.bincount(self.codes[name], minlength=len(self.values[name]))[:-1]
        order = np.argsort(-rows, kind="stable")
        return [int(place) for place in order[:most] if rows[place]]

    def rows(self, where: Mapping[str, Sequence[int]]) -> int:
        chosen = np.ones(len(next(iter(self.codes.values()))), dtype=bool)
        for name, places in where.items():
            chosen &= np.isin(self.codes[name], places)
        return int(chosen.sum())


def seen_of(desk: Desk, project: Project, release: Release, decision: Decision, progress: Progress) -> Seen:
    """Original and published side by side."""
    original = _Original(desk, project)
    questions_put = 0

    def count(where: Mapping[str, Sequence[int]]) -> Count | None:
        nonlocal questions_put
        questions_put += 1
        progress(questions_put, None, "asking")
        values = {name: [original.values[name][place] for place in places] for name, places in where.items()}
        try:
            estimate = release.count({name: some[0] if len(some) == 1 else some for name, some in values.items()})
        except DeniableError:  # a value that the release does not list by itself
            return None
        worded = tuple((name, tuple(original.texts[name][place] for place in places)) for name, places in where.items())
        return Count(worded, original.rows(where), estimate.value, estimate.low, estimate.high)

    listed: dict[str, list[tuple[str, Count]]] = {}
    for name in [one for one in project.sensitive if one in original.codes][:3]:
        made = [(original.texts[name][place], count({name: [place]})) for place in original.frequent(name, VALUES)]
        listed[name] = [(label, one) for label, one in made if one is not None]
    sensitive = next(iter(listed), "")
    crossed = [name for name in public_of(project) if name in original.codes]
    by_size = sorted(crossed, key=lambda name: (len(original.values[name]) > SMALL + 1, len(original.values[name]) < 3))
    cross, questions = None, [one for label, one in listed.get(sensitive, ())[:3]]
    if sensitive and by_size:
        other = by_size[0]
        top, across = original.frequent(sensitive, WITHIN), original.frequent(other, ACROSS)
        lines = []
        for place in top:
            cells = [count({sensitive: [place], other: [column]}) for column in across]
            if all(cell is not None for cell in cells):
                lines.append((original.texts[sensitive][place], [cell for cell in cells if cell is not None]))
        cross = (sensitive, other, [original.texts[other][column] for column in across], lines)
        questions += _further(original, sensitive, by_size, top, count)
    return Seen(decision, listed, cross, questions[:QUESTIONS])


def _further(original: _Original, sensitive: str, public: Sequence[str], top: Sequence[int], count: Any) -> list[Count]:
    """Questions about two values, and about one with one or two public columns."""
    wanted: list[dict[str, list[int]]] = []
    if len(top) > 1:
        wanted.append({sensitive: list(top[:2])})
    for name in public[:3]:
        for place in original.frequent(name, 2):
            wanted.append({sensitive: [top[0]], name: [place]})
    if len(public) > 1:
        both = {name: original.frequent(name, 1) for name in public[:2]}
        wanted.append({sensitive: list(top[:1]), **both})
    answers = [count(where) for where in wanted]
    return [one for one in answers if one is not None]


def show_look(desk: Desk, words: Words, project: Project | None, form: Form | None) -> dict[str, Any]:
    """The decision; distributions, a cross table and ten questions, original and published."""
    assert project is not None
    work = looking(desk, desk.fitting)
    context: dict[str, Any] = {"computing": None, "seen": None}
    if work.state != "done":
        return {**context, "computing": shown_work(words, work), "ready": False}
    seen: Seen = work.result
    charts = []
    for number, (name, counts) in enumerate(seen.values.items()):
        pairs = [pictures.Pair(label, one.truth, one.value, one.low, one.high) for label, one in counts]
        title = words("look.distribution", column=name)
        rows = [(label, *_figures(words, one)) for label, one in counts]
        charts.append({"title": title, "svg": pictures.pairs(pairs, f"seen-{number}", title), "rows": rows})
    cross = None
    if seen.cross is not None:
        one, other, heads, lines = seen.cross
        cells = [
            (label, *(f"{words.count(cell.truth)} / {words.count(cell.value)}" for cell in counted))
            for label, counted in lines
        ]
        cross = {
            "title": words("look.cross_of", one=one, other=other),
            "heads": [f"{one} / {other}", *heads],
            "rows": cells,
        }
    questions = [(_question(words, one), *_figures(words, one)) for one in seen.questions]
    decision = decided_on(seen.decision, project)
    return {
        "computing": None,
        "seen": {
            "charts": charts,
            "cross": cross,
            "questions": questions,
            "inside": sum(one.holds for one in seen.questions),
            "verdict": shown_decision(words, decision),
        },
    }


def _figures(words: Words, one: Count) -> tuple[str, ...]:
    return tuple(words.count(number) for number in (one.truth, one.value, one.low, one.high))


def _question(words: Words, one: Count) -> str:
    either = f" {words('look.or')} "
    said = [f"{name} = {either.join(map(str, values))}" for name, values in one.where]
    return f" {words('look.and')} ".join(said)


# -- The decision ------------------------------------------------------------------------------------------------------


def decided_on(decision: Decision, project: Project) -> Decision:
    """The decision with what its owner decided."""
    return decision.with_decisions(project.decisions)


def shown_decision(words: Words, decision: Decision) -> dict[str, Any]:
    """The verdict and what is to be decided, for a page: each point with its fix, which a button does."""
    grade = GRADES.get(decision.verdict, "caution")
    titles = {MAY: "look.may", MUST_NOT: "look.must_not"}
    points = [
        {
            "number": number,
            "part": point.part,
            "says": point.says,
            "never": point.grade == "never",
            "fix": fix_in_words(point),
        }
        for number, point in enumerate(decision.open)
    ]
    decided = [(point.part, point.accepted) for point in decision.points if point.accepted]
    return {
        "grade": grade,
        "title": words(titles.get(decision.verdict, "look.decide")),
        "headline": decision.headline,
        "promise": decision.promise,
        "points": points,
        "decided": decided,
        "fine": [point.says for point in decision.points if point.grade == "fine"],
        "may": decision.verdict == MAY,
        "must_not": decision.verdict == MUST_NOT,
    }


APPLIED = ("drop", "recode", "person", "group", "sensitive", "rho1", "rho2", "epsilon", "mechanism", "missing", "rare")


def fix_in_words(point: Point) -> str:
    """Changes as options of the command; empty where the desk cannot make them itself."""
    if not point.fix or any(name not in APPLIED for name, _ in point.fix):
        return ""
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in point.fix)


def with_fix(project: Project, point: Point) -> Project:
    """The project with the changes of a point."""
    made = project
    for name, value in point.fix:
        if name == "recode":
            column, _, how = value.partition("=")
            made = made.changed(recodes={column: how})
        elif name in ("drop", "person", "group"):
            made = made.changed(roles={value: name})
        elif name == "sensitive":
            made = made.with_role(value, "sensitive", "")
        elif name in ("rho1", "rho2", "epsilon"):
            made = made.changed(requirement={name: value})
        elif name == "rare":
            made = made.changed(rare=[value])
        elif name == "mechanism":
            made = replace(made, mechanism=value)
        else:
            made = replace(made, missing=value)
    return made


def act_on_look(desk: Desk, form: Form, go: str) -> str:
    """Do what a point proposes, or take down that it is meant to be so; or draw anew where someone asks for it."""
    kind, _, rest = go.partition(":")
    if kind not in ("fix", "accept"):
        return ""
    work = desk.bench.get("look")
    if work is None or work.state != "done":
        return "look"
    project = desk.fitting
    points = decided_on(work.result.decision, project).open
    if not rest.isdecimal() or int(rest) >= len(points):
        return "look"
    point = points[int(rest)]
    if kind == "fix":
        desk.decide(with_fix(project, point))
        return "look"
    reason = form.get(f"reason.{rest}")
    if not reason:
        raise OptionError(Words(desk.language)("look.no_reason"))
    desk.decide(project.accepting(point.part, point.columns, reason, figure=point.figure))
    return "look"
