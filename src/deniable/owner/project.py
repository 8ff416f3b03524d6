"""A project: what becomes of each column of a table, what is required, what was decided and who approved; a file
(``deniable.toml``) by which next month's table is published, too."""

from __future__ import annotations

import datetime
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from deniable.core.errors import ColumnError, OptionError, did_you_mean, listing, option, shortened
from deniable.core.privacy import Privacy
from deniable.core.text import small_text
from deniable.mechanisms.registry import AUTO
from deniable.owner.roles import ROLES, Role, by_role, roles_of
from deniable.publishing.recoding import as_steps, steps_spelled
from deniable.release.folder import write_file
from deniable.tables import Engine, engine_named

VERSION = 1
SINGLE = ("person", "group", "row_id")  # roles that one column has
USUAL = "frequency"  # the adversary of whoever names none
REQUIREMENT = ("rho1", "rho2", "epsilon", "adversary", "exempt")
HEAD = (
    "# What becomes of each column, what is required, what was decided and who approved. It holds no rows.\n"
    "# Change it, then: deniable publish TABLE --project {name} --out FOLDER\n"
)


@dataclass(frozen=True)
class Template:
    """What is usual for a kind of table.

    Attributes:
        title: of the kind of table.
        rho2: how sure an attacker may become.
        sensitive: the kinds of columns of which the first is proposed as sensitive.
        roles, recodes: what becomes of columns of a kind, where that is not what it is elsewhere.
        rare: values of public columns that fewer rows have are merged.
    """

    title: str
    rho2: str
    sensitive: tuple[str, ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    recodes: Mapping[str, str] = field(default_factory=dict)
    rare: int | None = None


TEMPLATES = {
    "health": Template("a health table", "1/4", ("diagnosis",), {"income": "drop"}, {"date": "quarter"}),
    "census": Template("a census or a survey of households", "1/3", ("income", "conviction, belief or the like")),
    "employees": Template(
        "a survey of employees",
        "1/5",
        ("income", "conviction, belief or the like", "diagnosis"),
        {"diagnosis": "drop"},
        {"date": "year"},
        rare=20,
    ),
}


@dataclass(frozen=True)
class Accepted:
    """A decision of the owner: something that a judgement asked to decide first is meant to be so.

    Attributes:
        part: which part of the judgement.
        columns: that it is about.
        reason: why, in the owner's words.
        by, date: who decided, and when.
        figure: as it was then.
    """

    part: str
    columns: tuple[str, ...]
    reason: str
    by: str = ""
    date: str = ""
    figure: str = ""


@dataclass(frozen=True)
class Approval:
    """Someone approved a release.

    Attributes:
        by, date: who, and when.
        release: the SHA-256 of its manifest.
        note: in their words.
    """

    by: str
    date: str
    release: str = ""
    note: str = ""


@dataclass(frozen=True)
class Record:
    """A publication of a project.

    Attributes:
        date: when.
        verdict: what the judgement was.
        release: the SHA-256 of its manifest.
        despite: why it was published although it must not be; empty elsewhere.
    """

    date: str
    verdict: str
    release: str = ""
    despite: str = ""


@dataclass(frozen=True)
class Project:
    """What becomes of each column of a table, what is required, what was decided and who approved.

    Attributes:
        columns: the role of each column.
        requirement: rho1, rho2, epsilon, adversary and exempt, as ``Privacy`` takes them, where they are given.
        mechanism, missing, rare: as for ``publish``.
        template: what it was made from; empty where from none.
        decisions, approvals, published: what happened, the oldest first.

    >>> import pyarrow as pa
    >>> from deniable.owner.project import Project
    >>> table = pa.table({"age": [20, 30] * 100, "disease": ["flu", "cold", "hiv", "flu"] * 50})
    >>> project = Project.proposed(table, "disease", rho2="1/2")
    >>> project.arguments()["sensitive"], project.with_role("age", "drop").arguments()["drop"]
    ('disease', ['age'])
    """

    columns: tuple[Role, ...]
    requirement: Mapping[str, Any] = field(default_factory=dict)
    mechanism: str = AUTO
    missing: str = "value"
    rare: int | None = None
    template: str = ""
    decisions: tuple[Accepted, ...] = ()
    approvals: tuple[Approval, ...] = ()
    published: tuple[Record, ...] = ()

    def __post_init__(self) -> None:
        for one in self.columns:
            if one.role not in ROLES:
                raise OptionError(
                    f"The project gives the column {one.column!r} the role {one.role!r}."
                    f"{did_you_mean(one.role, ROLES)} Fix: {', '.join(ROLES)}."
                )
            if one.recode:
                as_steps(one.recode)
        strange = [name for name in self.requirement if name not in REQUIREMENT]
        if strange:
            raise OptionError(
                f"The project requires {strange[0]!r}.{did_you_mean(strange[0], REQUIREMENT)} "
                f"Fix: {', '.join(REQUIREMENT)}."
            )
        for role in SINGLE:
            if len(names := by_role(self.columns, role)) > 1:
                raise OptionError(f"The project has several columns of the role {role}: {listing(names)}. Fix: one.")

    @classmethod
    def proposed(
        cls,
        table: Any,
        sensitive: str | Sequence[str] = (),
        *,
        template: str = "",
        rho2: str | None = None,
        engine: str | Engine = "local",
    ) -> Project:
        """What is proposed for a table: roles by what its columns hold, and what is usual for its kind.

        Args:
            table: as for ``publish``.
            sensitive: columns to perturb. Left out: the first of a kind that is usually sensitive in such a table.
            template: ``"health"``, ``"census"`` or ``"employees"``; left out, nothing but what its columns hold counts.
            rho2: how sure an attacker may become; left out, what is usual.
            engine: what reads the table: a name, or an object.
        """
        if template and template not in TEMPLATES:
            raise OptionError(
                f"{option('template', template)} is not known.{did_you_mean(template, TEMPLATES)} "
                f"Fix: {', '.join(TEMPLATES)}."
            )
        usual = TEMPLATES.get(template, Template("", "1/3", ()))
        named = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
        dataset = engine_named(engine).open(table)
        seen = roles_of(dataset, named)
        if not named and usual.sensitive:
            kinds = [kind for kind in usual.sensitive for one in seen if one.kind == kind]
            first = next((one.column for kind in kinds[:1] for one in seen if one.kind == kind), None)
            seen = seen if first is None else roles_of(dataset, (first,))
        columns = tuple(_usual(one, usual) for one in seen)
        return cls(columns, {"rho2": rho2 or usual.rho2}, rare=usual.rare, template=template)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Project:
        """From a file; a mistake in it is named.

        Args:
            path: of the project file.
        """
        name = os.fspath(path)
        try:
            raw = tomllib.loads(small_text(Path(path)))
        except FileNotFoundError:
            raise OptionError(
                f"There is no project file {name!r}. Fix: deniable risk TABLE --project {name} proposes one."
            ) from None
        except (OSError, UnicodeDecodeError):
            raise OptionError(f"The project file {name!r} cannot be read as text. Fix: a TOML file in UTF-8.") from None
        except tomllib.TOMLDecodeError as problem:
            raise OptionError(f"The project file {name!r} is not TOML: {problem}. Fix: correct that line.") from None
        if raw.pop("version", None) != VERSION:
            raise OptionError(
                f"The project file {name!r} does not say version = {VERSION}. Fix: a file of this version."
            )
        try:
            return cls._of(raw)
        except (TypeError, KeyError, AttributeError) as problem:
            raise OptionError(
                f"The project file {name!r} is not understood: {problem}. Fix: write it anew with deniable risk TABLE "
                f"--project {name}."
            ) from None
        except OptionError as problem:
            raise OptionError(f"{name}: {problem}") from None

    @classmethod
    def _of(cls, raw: dict[str, Any]) -> Project:
        known = [one.name for one in fields(cls)]
        strange = [name for name in raw if name not in known]
        if strange:
            raise OptionError(
                f"the field {strange[0]!r} is not known.{did_you_mean(strange[0], known)} Fix: leave it out."
            )
        columns = tuple(
            _made(Role, described, column, column=column, kind="", reason="")
            for column, described in raw.pop("columns", {}).items()
        )
        if not columns:
            raise OptionError("it names no columns. Fix: a table [columns.NAME] with a role for each.")
        kinds: dict[str, Any] = {"decisions": Accepted, "approvals": Approval, "published": Record}
        lists: dict[str, Any] = {
            name: tuple(_made(kind, entry, name) for entry in raw.pop(name, ())) for name, kind in kinds.items()
        }
        return cls(columns=columns, **lists, **raw)

    def write(self, path: str | os.PathLike[str]) -> None:
        """To a file that its owner alone can read, the whole of it or nothing.

        Args:
            path: of the project file.
        """
        write_file(Path(path), HEAD.format(name=Path(path).name) + self.to_toml(), private=True)

    def to_toml(self) -> str:
        """The text of the file."""
        lines = [f"version = {VERSION}"]
        plain = {"template": self.template, "mechanism": self.mechanism, "missing": self.missing, "rare": self.rare}
        lines += [f"{name} = {_written(value)}" for name, value in plain.items() if value not in ("", None)]
        lines += ["", "[requirement]", *(f"{name} = {_written(value)}" for name, value in self.requirement.items())]
        for one in self.columns:
            lines += ["", f"[columns.{_written(one.column)}]", *_fields(one, leaving=("column",))]
        several: dict[str, tuple[Any, ...]] = {
            "decisions": self.decisions,
            "approvals": self.approvals,
            "published": self.published,
        }
        for name, entries in several.items():
            for entry in entries:
                lines += ["", f"[[{name}]]", *_fields(entry)]
        return "\n".join(lines) + "\n"

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns that are perturbed."""
        return by_role(self.columns, "sensitive")

    @property
    def privacy(self) -> Privacy | None:
        """The requirement; None where nothing is required."""
        stated = {name: value for name, value in self.requirement.items() if value not in ("", [])}
        return Privacy(**stated) if stated else None

    def arguments(self) -> dict[str, Any]:
        """What ``publish`` is called with, beside the table and the place."""
        return {
            "sensitive": self.sensitive[0] if len(self.sensitive) == 1 else list(self.sensitive) or None,
            "privacy": self.privacy,
            "mechanism": self.mechanism,
            "missing": self.missing,
            "bins": {},  # as the command has it: under one key both make one release
            "rare": self.rare,
            "drop": list(by_role(self.columns, "drop")),
            "recode": {one.column: steps_spelled(one.recode) for one in self._recoded},
            **{role: next(iter(by_role(self.columns, role)), None) for role in SINGLE},
        }

    def fitting(self, names: Sequence[str]) -> Project:
        """Itself, for a table with these columns; refused where one has no role, or one with a role is not there.

        Args:
            names: of the columns of a table.
        """
        known = [one.column for one in self.columns]
        new = [name for name in names if name not in known]
        gone = [one.column for one in self.columns if one.column not in names and one.role != "drop"]
        problems = []
        if new:
            problems.append(f"The table has columns to which the project gives no role: {listing(new)}.")
        if gone:
            problems.append(f"The table has no column {listing(gone)}, to which the project gives a role.")
        if problems:
            raise ColumnError(f"{' '.join(problems)} Fix: give each column of the table a role in the project file.")
        return replace(self, columns=tuple(one for one in self.columns if one.column in names))

    def changed(
        self,
        *,
        sensitive: Sequence[str] = (),
        roles: Mapping[str, str] | None = None,
        recodes: Mapping[str, str] | None = None,
        requirement: Mapping[str, Any] | None = None,
        mechanism: str = AUTO,
        missing: str = "value",
        rare: Sequence[str] = (),
    ) -> Project:
        """The same with the options of a command: other sensitive columns (what was sensitive before is left out then),
        other roles and recodings of some columns, another requirement. What is usual counts as not given.

        Args:
            sensitive: other columns to perturb.
            roles, recodes: column -> another role; column -> how it becomes coarser.
            requirement: what is required instead, by name.
            mechanism, missing, rare: as the options of ``publish``, ``rare`` as a list of one text.
        """
        project = self
        for name in project.sensitive if sensitive else ():
            project = project.with_role(name, "drop")
        for name, role in {**dict.fromkeys(sensitive, "sensitive"), **(roles or {})}.items():
            if role in SINGLE:
                for other in by_role(project.columns, role):
                    project = project.with_role(other, "drop")
            project = project.with_role(name, role)
        for name, how in (recodes or {}).items():
            roles_now = {one.column: one.role for one in project.columns}
            project = project.with_role(name, roles_now.get(name, "public"), how)
        stated = {name: value for name, value in (requirement or {}).items() if value not in (None, [], USUAL)}
        if {"rho1", "rho2", "epsilon"} & set(stated):  # another requirement, with what it leaves as it was
            kept = {name: value for name, value in project.requirement.items() if name in ("adversary", "exempt")}
            stated = {**kept, **stated}
        else:
            stated = {**project.requirement, **stated}
        if len(rare) > 1 or not all(text.isdecimal() for text in rare):
            raise OptionError(f"{option('rare', list(rare))} does not go into a project. Fix: {option('rare', 20)}.")
        return replace(
            project,
            requirement=stated,
            mechanism=project.mechanism if mechanism == AUTO else mechanism,
            missing=project.missing if missing == "value" else missing,
            rare=int(rare[0]) if rare else project.rare,
        )

    def options(self) -> dict[str, Any]:
        """The same as the options of the command, in its words; what is left out is None."""
        words = {name: self.requirement.get(name) for name in ("rho1", "rho2", "epsilon")}
        return {
            **{name: None if value is None else str(value) for name, value in words.items()},
            "adversary": self.requirement.get("adversary", USUAL),
            "exempt": [str(value) for value in self.requirement.get("exempt", ())] or None,
            "sensitive": list(self.sensitive) or None,
            "drop": list(by_role(self.columns, "drop")) or None,
            "recode": [f"{one.column}={one.recode}" for one in self._recoded] or None,
            "rare": None if self.rare is None else [str(self.rare)],
            **{role: next(iter(by_role(self.columns, role)), None) for role in SINGLE},
        }

    def words(self) -> list[str]:
        """The same as words of a command."""
        words = []
        for name, value in self.options().items():
            if value in (None, USUAL):
                continue
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{name.replace('_', '-')}", str(one)]
        return words

    @property
    def _recoded(self) -> list[Role]:
        return [one for one in self.columns if one.recode and one.role in ("sensitive", "public")]

    def completed(self, table: Any, engine: str | Engine = "local") -> Project:
        """The same with proposals for columns of a table that have no role yet.

        Args:
            table, engine: as for ``proposed``.
        """
        dataset = engine_named(engine).open(table)
        known = {one.column: one for one in self.columns}
        proposed = roles_of(dataset, [name for name in self.sensitive if name in dataset.names])
        return replace(self, columns=tuple(known.get(one.column, one) for one in proposed))

    def with_role(self, column: str, role: str, recode: str | None = None) -> Project:
        """The same with another role for a column; ``recode`` left out: as it was.

        Args:
            column, role: which column, and what becomes of it.
            recode: how it becomes coarser; empty: as it is.
        """
        names = [one.column for one in self.columns]
        if column not in names:
            raise ColumnError(
                f"The project has no column {column!r}.{did_you_mean(column, names)} Fix: one of {listing(names)}."
            )
        changed = {one.column: one for one in self.columns}
        changed[column] = replace(
            changed[column], role=role, recode=changed[column].recode if recode is None else recode
        )
        return replace(self, columns=tuple(changed.values()))

    def accepting(self, part: str, columns: Iterable[str], reason: str, *, by: str = "", figure: str = "") -> Project:
        """The same with a decision: this part of the judgement is meant to be so.

        Args:
            part, columns: what it is about.
            reason: why, in a sentence.
            by: who decided.
            figure: as the judgement has it.
        """
        if not reason.strip():
            raise OptionError(f"The decision about {part} has no reason. Fix: say in a sentence why it is meant so.")
        decided = Accepted(part, tuple(columns), reason.strip(), by, _today(), figure)
        kept = tuple(one for one in self.decisions if (one.part, one.columns) != (part, decided.columns))
        return replace(self, decisions=(*kept, decided))

    def approved(self, by: str, *, release: str = "", note: str = "") -> Project:
        """The same with an approval.

        Args:
            by: who approves.
            release: the SHA-256 of its manifest.
            note: in their words.
        """
        if not by.strip():
            raise OptionError("An approval names nobody. Fix: who approves it.")
        return replace(self, approvals=(*self.approvals, Approval(by.strip(), _today(), release, note)))

    def recorded(self, verdict: str, *, release: str = "", despite: str = "") -> Project:
        """The same with a publication.

        Args:
            verdict: what the judgement was.
            release: the SHA-256 of its manifest.
            despite: why it was published although it must not be.
        """
        return replace(self, published=(*self.published, Record(_today(), verdict, release, despite)))


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _usual(one: Role, usual: Template) -> Role:
    """A proposal with what is usual for this kind of table."""
    if one.role == "sensitive":
        return one
    recode = usual.recodes.get(one.kind, "") if one.recode in ("month", "year") else ""
    return replace(one, role=usual.roles.get(one.kind, one.role), recode=recode or one.recode)


def _made(made: Any, described: Any, where: str, **usual: str) -> Any:
    """An entry of a file; a field that is none is named."""
    if not isinstance(described, dict):
        raise OptionError(f"{where} is no table. Fix: [{where}] with a field in each line.")
    known = [one.name for one in fields(made)]
    strange = [name for name in described if name not in known]
    if strange:
        raise OptionError(
            f"{where} has the field {strange[0]!r}.{did_you_mean(strange[0], known)} Fix: {', '.join(known)}."
        )
    lists = {
        **usual,
        **{name: tuple(value) if isinstance(value, list) else value for name, value in described.items()},
    }
    if made is Role and "missing" in (lists.get("not_applicable") or ()):
        lists["not_applicable"] = tuple(None if value == "missing" else value for value in lists["not_applicable"])
    return made(**lists)


def _fields(entry: Role | Accepted | Approval | Record, leaving: Sequence[str] = ()) -> list[str]:
    lines = []
    for one in fields(entry):
        value = getattr(entry, one.name)
        if one.name in leaving or value in ("", ()):
            continue
        lines.append(f"{one.name} = {_written(value)}")
    return lines


def _written(value: Any) -> str:
    """A value as TOML has it; missing is the word.

    >>> _written('a "b"'), _written((1, None)), _written(True)
    ('"a \\\\"b\\\\""', '[1, "missing"]', 'true')
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(_written(one) for one in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if value is None:
        return '"missing"'
    if not isinstance(value, str):
        raise OptionError(f"A project cannot hold {shortened(value)}. Fix: a text or a number.")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
