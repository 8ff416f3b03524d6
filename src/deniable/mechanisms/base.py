"""What a mechanism is: a choice of probabilities, made from histograms and a requirement, never from rows; and how its
options are spelt.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

from deniable.core.channels import NumberRange, Replace
from deniable.core.errors import OptionError, did_you_mean
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.core.transforms import Unfolding

# -- A mechanism with its options in one line of text, as a command line has it: ``decoys:c=5,grouping=balanced`` ------


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


# -- What a mechanism is: a choice of probabilities, made from histograms and a requirement, never from rows -----------
#     layout(columns) -> what must be scanned;    plan_scanned(scans, privacy) -> Plan
#
# Most mechanisms see one histogram of all sensitive columns together, and need only ``plan``.


@dataclass(frozen=True)
class Need:
    """What a mechanism needs scanned for one part of its plan.

    Attributes:
        columns: counted together.
        range: instead of being counted, a column of numbers is checked against this range.
        noisy: whether the part publishes its histogram with noise: by the rule for all releases (``default``), in any
            case, or only where the owner asks for it.
        any_prior: whether the part has a requirement of its own that holds whatever was believed.
        yes_or_no: whether its values are those two, whatever the table shows.
        crossed: whether its values are counted by levels of the public columns, with noise that is paid for.
    """

    columns: tuple[str, ...]
    range: Replace | None = None
    noisy: Literal["default", "always", "asked"] = "default"
    any_prior: bool = False
    yes_or_no: bool = False
    crossed: bool = False


@dataclass(frozen=True)
class Scanned:
    """What was found of one part: a histogram, or the grid of a range.

    Attributes:
        public: the histogram with noise that will be published, every count at least one; None where none will be.
        noise: its epsilon.
        rows: of the whole table, exempt ones included.
        declared: whether its values, or its range, were declared and not read off the table.
    """

    columns: tuple[str, ...]
    rows: int
    histogram: Histogram | None = None
    grid: NumberRange | None = None
    public: Histogram | None = None
    noise: float = 0.0
    declared: bool = False

    @property
    def values(self) -> Histogram:
        assert self.histogram is not None
        return self.histogram


class Mechanism(ABC):
    """A choice of probabilities: a frozen dataclass whose fields are its options.

    Attributes:
        name: in options, manifests and tables.
        reveals: what a release by it gives away beside the perturbed columns, in words.
        learns: whether values are dealt from a model of the public columns, and no row is perturbed.

    >>> from deniable.mechanisms import MECHANISMS, Mechanism
    >>> decoys = MECHANISMS["decoys"].from_text("c=5")
    >>> decoys.options, isinstance(decoys, Mechanism)
    ({'c': 5, 'leftovers': 'refuse', 'grouping': 'mixed'}, True)
    """

    name: ClassVar[str]
    reveals: ClassVar[str]
    learns: ClassVar[bool] = False

    @abstractmethod
    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        """How a table with this histogram becomes a release that meets the requirement.

        Args:
            histogram: how many rows hold each value.
            privacy: the requirement; None where nothing is required.
            public: the noisy histogram that the release publishes anyway: a mechanism whose parameters would give
                counts away plans with it, and still checks the requirement against the true one.
        """

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The mechanism with options in a ``text``, as a command line has them: ``c=5,grouping=balanced``."""
        return options_in(cls, text)

    @property
    def options(self) -> dict[str, Any]:
        """What the owner chose, for the manifest."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    @property
    def unfolding(self) -> Unfolding | None:
        """How a sensitive column of lists is read, of a mechanism that perturbs its items one by one."""
        return None

    def fitted(self, privacy: Privacy | None) -> Mechanism:
        """The mechanism by its name alone, for a requirement: itself, unless an option follows from ``privacy``."""
        return self

    def for_columns(self, names: tuple[str, ...], privacy: Privacy | None) -> Mechanism:
        """The mechanism for the sensitive columns ``names`` and ``privacy``; itself, unless columns have parameters."""
        return self

    def columns_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The sensitive columns: the ``names`` that were given, unless the mechanism names its own."""
        return names

    def layout(self, columns: tuple[str, ...]) -> tuple[Need, ...]:
        """What must be scanned of the sensitive ``columns``: one part for all of them together."""
        return (Need(columns),)

    def left_over(self, scans: Sequence[Scanned], privacy: Privacy | None) -> int:
        """How many rows are to be left out, drawn at random, before the table is planned for.

        Args:
            scans, privacy: as for ``plan_scanned``.
        """
        return 0

    def plan_scanned(self, scans: Sequence[Scanned], privacy: Privacy | None, left_out: int = 0) -> Plan:
        """The plan of a whole release, from what its layout asked for.

        Args:
            scans: what was found of each part.
            privacy: the requirement; None where nothing is required.
            left_out: how many rows were left out before, as ``left_over`` asked.
        """
        (scan,) = scans
        plan = self.plan(scan.values, privacy, public=scan.public)
        return dataclasses.replace(plan, parts=(dataclasses.replace(plan.parts[0], columns=scan.columns),))
