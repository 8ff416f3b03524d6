"""Write docs/reference/python.md from the docstrings of the public names: `python docs/reference/make_python.py`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import deniable

PAGE = Path(__file__).parent / "python.md"
START = """# Python

Made from the docstrings of the public names (`python docs/check.py --write`); `help(dn.publish)` says the same. Names
that are not on this page are not promised to stay.

Every example runs as it stands. The words of the signatures:

| | |
|---|---|
| `Probability` | `"1/6"`, `"17%"`, `0.17` or a `Fraction`; floats are taken as the decimals that they print as. |
| `Where` | Column -> value, list of values, `dn.between(..)`, `dn.not_(..)` or `None` (missing); all must hold. |
| `Named` | A column, or a condition (`Where`) that counts 1 where it holds and 0 where it does not. |
| `Method` | `"inverse"`, `"mle"`, `"shrunk"`, `"four-state"` or `"four-state exact"`. |
| `Adversary` | `"frequency"` or `"any-prior"`. |
| `BinsLike` | A list of edges, `dn.Bins` or `dn.Quantiles`. |
| `Counts`, `Floats` | NumPy arrays of whole numbers and of floating-point numbers. |
| `Progress` | Called with (rows done, rows in all or `None`, what is being done). |
"""
# What public functions and methods return, beside classes that are public themselves.
RESULTS = (
    "deniable.core.manifest:Manifest",
    "deniable.owner.assessment:Audit",
    "deniable.owner.findings:Finding",
    "deniable.owner.roles:Role",
    "deniable.owner.project:Accepted",
    "deniable.owner.project:Approval",
    "deniable.owner.project:Record",
    "deniable_verify.checks:Certificate",
    "deniable_verify.checks:Check",
    "deniable.owner.joining:SetGuarantee",
    "deniable.planning.candidates:Beliefs",
    "deniable.estimation.many:Counts",
    "deniable.estimation.fitting.regression:Regression",
    "deniable.estimation.fitting.association:ChiSquare",
    "deniable.core.histogram:QuestionProfile",
)
SECTION = re.compile(r"^(Args|Attributes):$")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
ENTRY = re.compile(r"^    (\w+(?:, \w+)*): (.*)$")
WIDE = 100  # characters from which a signature takes a line for each parameter


@dataclass(frozen=True)
class Docstring:
    """A docstring in its parts.

    Attributes:
        text: its sentences and equations.
        described: the names of Args and Attributes, in order, and what is said of them.
        example: the lines of its doctests.
    """

    text: str
    described: Mapping[str, str]
    example: str

    @classmethod
    def of(cls, documented: object) -> Docstring:
        """The docstring that was written for something; that of a dataclass which only repeats its fields is none."""
        written = getattr(documented, "__doc__", None) or ""
        if dataclasses.is_dataclass(documented) and written.startswith(f"{getattr(documented, '__name__', '')}("):
            written = ""
        text, example = [], []
        described: dict[str, str] = {}
        inside, names = "text", ""
        for line in inspect.cleandoc(written).splitlines():
            if line.startswith(">>> "):
                inside = "example"
            elif SECTION.match(line):
                inside = "section"
            elif (inside == "example" and not line) or (inside == "section" and line and not line.startswith(" ")):
                inside = "text"
            if inside == "example":
                example.append(line)
            elif inside == "text":
                text.append(line)
            elif entry := ENTRY.match(line):
                names = entry[1]
                described[names] = entry[2]
            elif names and line.startswith("        "):
                described[names] += f" {line.strip()}"
        return cls("\n".join(text).strip(), described, "\n".join(example))

    @property
    def sentence(self) -> str:
        """The first paragraph on one line."""
        return " ".join(self.text.split("\n\n")[0].split())

    def names(self, parameter: str) -> bool:
        """Whether a parameter is described: as an entry, or by its name in the text."""
        listed = {name for names in self.described for name in names.split(", ")}
        return parameter in listed or f"``{parameter}``" in self.text


@dataclass(frozen=True)
class Public:
    """A public name.

    Attributes:
        title: as one writes it, such as ``dn.publish``.
        value: the function, class or object.
        shown_elsewhere: classes with a section of their own; what they have is not repeated.
    """

    title: str
    value: Any
    shown_elsewhere: frozenset[type] = frozenset()

    @cached_property
    def docstring(self) -> Docstring:
        own = isinstance(self.value, type | FunctionType)
        return Docstring.of(self.value if own else type(self.value))

    @property
    def signature(self) -> str:
        """As one would write a call of it."""
        if isinstance(self.value, type) and issubclass(self.value, BaseException):
            return f"class {self.title}({self.value.__base__.__name__})"
        if isinstance(self.value, type | FunctionType):
            return signature(self.title, self.value)
        return f"{self.title}: {type(self.value).__name__}"

    def members(self) -> Iterator[tuple[str, Any]]:
        """Public methods and properties that were written for a class, or for a base without a section."""
        kind = self.value
        if not isinstance(kind, type):
            return
        others = self.shown_elsewhere - {kind}
        repeated = {name for base in kind.__mro__ if base in others for name in vars(base)}
        for base in kind.__mro__:
            if base in others or not base.__module__.startswith("deniable."):
                continue
            for name, member in vars(base).items():
                if name not in repeated and _is_public(name, member):
                    repeated.add(name)
                    yield name, member


def _is_public(name: str, member: Any) -> bool:
    if isinstance(member, property | cached_property | classmethod | staticmethod):
        return not name.startswith("_")
    if not isinstance(member, FunctionType) or not member.__module__.startswith("deniable."):
        return False
    operator = name.startswith("__") and name not in ("__init__", "__post_init__") and member.__doc__ is not None
    return operator or not name.startswith("_")


def signature(title: str, called: Any) -> str:
    """A signature with types as they are written in the source, on one line or on one for each parameter."""
    read = inspect.signature(called)
    parts, keyword_only = [], False
    fields = dataclasses.fields(called) if isinstance(called, type) and dataclasses.is_dataclass(called) else ()
    factories = {field.name: field.default_factory for field in fields}
    for parameter in read.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        typed = "" if parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
        parts.append(f"{stars}{parameter.name}{typed}{_default(parameter, factories)}")
    returned = read.return_annotation
    arrow = "" if returned in (read.empty, None, "None") else f" -> {_type(returned)}"
    line = f"{title}({', '.join(parts)}){arrow}"
    return line if len(line) <= WIDE else "\n".join([f"{title}(", *(f"    {part}," for part in parts), f"){arrow}"])


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(parameter: inspect.Parameter, factories: Mapping[str, Any]) -> str:
    if parameter.default is parameter.empty:
        return ""
    value = parameter.default
    if repr(value) == "<factory>":  # what dataclasses say of a default that is made anew for every object
        value = factories[parameter.name]()
    shown = value.__name__ if isinstance(value, FunctionType) else repr(value)
    return f" = {shown}" if parameter.annotation is not parameter.empty else f"={shown}"


# -- what is public ----------------------------------------------------------------------------------------------------


def chapters() -> dict[str, list[Public]]:
    """Title -> the public names of a chapter."""
    modules = [name for name in deniable.__all__ if isinstance(getattr(deniable, name), ModuleType)]
    names = {f"dn.{name}": getattr(deniable, name) for name in deniable.__all__ if name not in modules}
    parts = {
        "Functions": {title: value for title, value in names.items() if not isinstance(value, type)},
        "Classes": {title: value for title, value in names.items() if isinstance(value, type)},
    }
    for name in sorted(modules, reverse=True):  # mechanisms first
        module = getattr(deniable, name)
        parts[f"deniable.{name}"] = {one: getattr(module, one) for one in module.__all__}
    classes = frozenset(value for part in parts.values() for value in part.values() if isinstance(value, type))
    return {name: [Public(title, value, classes) for title, value in part.items()] for name, part in parts.items()}


def results() -> list[Public]:
    """What public functions return."""
    places = (place.split(":") for place in RESULTS)
    return [Public(name, getattr(import_module(module), name)) for module, name in places]


def problems(names: list[Public] | None = None) -> Iterator[str]:
    """What the docstrings of public names lack, one line each."""
    public = [one for part in chapters().values() for one in part] if names is None else names
    for one in public:
        if one.docstring.text and not one.docstring.example:
            yield f"{one.title} has no example in its docstring"
    for one in [*public, *(results() if names is None else [])]:
        yield from _undescribed(one.title, one.value, one.docstring)
        for name, member in one.members():
            yield from _undescribed(f"{one.title}.{name}", _function(member), Docstring.of(_function(member)))


def _undescribed(title: str, called: Any, written: Docstring) -> Iterator[str]:
    if not written.text:
        yield f"{title} has no docstring"
    if not isinstance(called, type | FunctionType) or (isinstance(called, type) and issubclass(called, Exception)):
        return
    operator = title.rpartition(".")[2].startswith("__")
    for name in inspect.signature(called).parameters:
        if name not in ("self", "cls") and not operator and not written.names(name):
            yield f"{title}: the parameter {name} is not described"


def _function(member: Any) -> Any:
    """The function behind a method or a property."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, cached_property):
        return member.func
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member


# -- the page ----------------------------------------------------------------------------------------------------------


def page() -> str:
    """The whole page."""
    listed = {**chapters(), "What they return": results()}
    sections = []
    for chapter, names in listed.items():
        module = inspect.cleandoc(getattr(deniable, chapter.rpartition(".")[2]).__doc__) if "." in chapter else ""
        sections.append(f"## {chapter}\n" + (f"\n{module}\n" if module else ""))
        sections += [_section(one) for one in names]
    text = "\n".join(sections)
    anchors = anchors_of(text)
    return "\n".join([START, *(_contents(chapter, names, anchors) for chapter, names in listed.items()), text])


def _contents(chapter: str, names: list[Public], anchors: Mapping[str, str]) -> str:
    sentences = {one.title: one.docstring.sentence.replace("|", "\\|") for one in names}
    rows = [f"| [`{title}`](#{anchors[title]}) | {sentence} |" for title, sentence in sentences.items()]
    return "\n".join([f"| {chapter} | |", "|---|---|", *rows, ""])


def anchors_of(text: str) -> dict[str, str]:
    """Where a link to each heading leads: its letters, and a number where another has the same ones before it."""
    taken: Counter[str] = Counter()
    anchors: dict[str, str] = {}
    for heading in HEADING.findall(text):
        letters = re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")
        anchors.setdefault(heading.strip("`"), f"{letters}-{taken[letters]}" if taken[letters] else letters)
        taken[letters] += 1
    return anchors


def _section(one: Public) -> str:
    blocks = [f"### `{one.title}`", _code("python", one.signature), one.docstring.text]
    kind = one.value
    if getattr(kind, "reveals", None) is not None and isinstance(kind.reveals, str):
        blocks.append(f'`mechanism="{kind.name}"`. A release reveals: {kind.reveals}.')
    members = [(name, member, Docstring.of(_function(member))) for name, member in one.members()]
    listed = {name for names in one.docstring.described for name in names.split(", ")}
    properties = {
        name: written.sentence
        for name, member, written in members
        if isinstance(member, property | cached_property) and name not in listed
    }
    blocks.append(_bullets({**one.docstring.described, **properties}))
    blocks.append(_code("pycon", one.docstring.example) if one.docstring.example else "")
    for name, member, written in members:
        if isinstance(member, property | cached_property):
            continue
        called = f"{one.title.removeprefix('dn.')}.{name}"
        shown = signature(called, _function(member))
        example = _code("pycon", written.example) if written.example else ""
        blocks += [f"#### `{called}`", _code("python", shown), written.text, _bullets(written.described), example]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _bullets(described: Mapping[str, str]) -> str:
    named = {", ".join(f"`{name}`" for name in names.split(", ")): text for names, text in described.items()}
    return "\n".join(f"- {names}: {text}" for names, text in named.items())


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
