"""A mechanism with its options in one line of text, as a command line has it: ``decoys:c=5,grouping=balanced``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self, TypeVar

from deniable.core.errors import OptionError, did_you_mean

STRUCTURES = ("Mapping", "tuple[tuple")  # in the type of an option: no text stands for it


class Optioned(Protocol):
    """A frozen dataclass whose fields are its options."""

    name: ClassVar[str]

    @classmethod
    def from_text(cls, text: str) -> Self: ...


Kind = TypeVar("Kind", bound=Optioned)


def spelled(text: str, known: Mapping[str, type[Kind]]) -> Kind:
    """The mechanism that a text names, with the options that follow its name."""
    name, _, rest = text.partition(":")
    if name not in known:
        raise OptionError(
            f"mechanism = {name!r} is not known.{did_you_mean(name, known)} Choose one of: {', '.join(known)}."
        )
    return known[name].from_text(rest)


def options_in(kind: type[Kind], text: str) -> Kind:
    """A mechanism with the options of a text, ``option=value,option=value``."""
    options: dict[str, Any] = {}
    for stated in filter(None, text.split(",")):
        option, equals, value = (part.strip() for part in stated.partition("="))
        if not equals or not value:
            raise OptionError(
                f"mechanism = '{kind.name}:{text}': {stated!r} is no option. Write name:option=value,option=value."
            )
        if option in options:
            raise OptionError(f"mechanism = '{kind.name}:{text}' gives {option} twice. Fix: give it once.")
        options[option] = _value(_field(kind, option), value)
    try:
        return kind(**options)
    except TypeError as wrong:  # a value of another kind than the option takes
        raise OptionError(f"mechanism = '{kind.name}:{text}' is not possible: {wrong}.") from None


def _field(kind: type[Optioned], option: str) -> dataclasses.Field[Any]:
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    if option not in fields:
        takes = f"It takes: {', '.join(fields)}." if fields else "It takes no options."
        raise OptionError(f"mechanism {kind.name!r} has no option {option!r}.{did_you_mean(option, fields)} {takes}")
    if any(structure in str(fields[option].type) for structure in STRUCTURES):
        raise OptionError(
            f"mechanism {kind.name!r}: {option} is more than a line of text can say. "
            f"Fix: give the mechanism as an object in Python, {kind.__name__}({option}=...)."
        )
    return fields[option]


def _value(field: dataclasses.Field[Any], text: str) -> Any:
    """A number where it is one, several values where the option takes several (``a+b``), else the text."""
    if isinstance(field.default, tuple):
        return tuple(_plain(part) for part in text.split("+"))
    return _plain(text)


def _plain(text: str) -> Any:
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
