"""Parts of a release: sensitive columns that are perturbed together. A part says everything that is public of them."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from deniable.core import promise, values
from deniable.core.channels import LARGEST_DOMAIN, Channel, NumberRange, Requirement
from deniable.core.designs import design_of
from deniable.core.errors import ManifestError
from deniable.core.exact import SCALE
from deniable.core.learned import Learned, learned_of, learned_problems
from deniable.core.lineups import LineUpDesign
from deniable.core.promise import Promise
from deniable.core.transforms import Bins, ListItem
from deniable.core.values import LARGEST_WHOLE, Counts, is_fraction, is_probability

# -- Parts of a release: sensitive columns that are perturbed together. A part says everything that is public of them.
# Whoever estimates, verifies or audits reads parts, and nothing else of how a release came about.


Mixture = tuple[tuple[float, ...], ...]
GroupingKind = Literal["mixed", "apart", "balanced", "anatomy"]


COUNT_EPSILON = 0.5  # of the noise in each count of a histogram: epsilon 1 for the whole of it


@dataclass(frozen=True)
class Marginal:
    """The histogram of the sensitive column with discrete Laplace noise, published for calibration (mathematics 8).

    Attributes:
        epsilon: of the noise in each count.
        variance: of the noise in each count.
    """

    counts: tuple[int, ...]
    epsilon: float
    variance: float

    @property
    def cost(self) -> float:
        """The epsilon of the whole histogram: one person who changes value moves two counts (mathematics 13.2)."""
        return 2 * self.epsilon


@dataclass(frozen=True)
class Grouping:
    """Decoy groups: their size, and how values were brought together."""

    c: int
    kind: GroupingKind = "mixed"


@dataclass(frozen=True, kw_only=True)
class Part:
    """Sensitive columns that are perturbed together, independently of all other parts.

    Attributes:
        columns: one column, or several that are compounded into one.
        types: the Arrow types of the columns, by name.
        missing: the policy for missing values.
        domain: its values; tuples where columns are compounded. Empty for a range of numbers.
        range: for a numeric column that is replaced by numbers of a range: its grid and coin.
        channels, cell_positions: each cell's channel, and where its values stand in the domain; empty where cells are
            hidden, or there are none.
        cells_published: whether the column ``cell`` says which cell a row fell into.
        marginal: the noisy histogram, where it is published.
        mixture: where the cells of rows are hidden: the channel of the whole table, by the noisy histogram,
            mixture[y][x] = Pr[x is published as y].
        swapped: among how many rows replaced values were permuted; None where they were drawn.
        groups: of decoys, how rows are grouped.
        bins: column -> its bins, where its values are intervals of a number.
        requirement: the part's own, where columns have their own.
        lineups: where rows publish sets of values, the design of the sets.
        item: where it is an item of a column of lists, which one, and how lists were read.
        learned: where values are dealt from a model: noisy tables, what they cost, and the model.
        promise: what is promised of it.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    missing: str
    promise: Promise
    domain: tuple[Hashable, ...] = ()
    range: NumberRange | None = None
    channels: tuple[Channel, ...] = ()
    cell_positions: tuple[Counts, ...] = ()
    cells_published: bool = False
    marginal: Marginal | None = None
    mixture: Mixture | None = None
    swapped: int | None = None
    groups: Grouping | None = None
    bins: Mapping[str, Bins] = field(default_factory=dict)
    requirement: Requirement | None = None
    lineups: LineUpDesign | None = None
    item: ListItem | None = None
    learned: Learned | None = None

    @property
    def m(self) -> int:
        return len(self.domain)

    @property
    def exempt(self) -> bool:
        """Whether missing values are published as they are."""
        return self.missing == "exempt"

    @property
    def beside_domain(self) -> bool:
        """Whether missing values are published as they are, and none of the domain."""
        return self.exempt and ((None,) * len(self.columns) if len(self.columns) > 1 else None) not in self.domain

    @property
    def coin(self) -> int | None:
        """The coin out of 2^32, where one coin serves all values; None where there are several or none."""
        if self.range is not None:
            return self.range.keep
        if len(self.channels) != 1 or (self.channels[0].keep != self.channels[0].keep[0]).any():
            return None
        return int(self.channels[0].keep[0])

    def column_values(self, column: str) -> tuple[Hashable, ...]:
        """The value of one of its columns at each position of the domain."""
        if len(self.columns) == 1:
            return self.domain
        place = self.columns.index(column)
        return tuple(entry[place] for entry in self.domain if isinstance(entry, tuple))


def perturbed_names(parts: Sequence[Part]) -> str:
    """What was perturbed, for people: the columns, or the list whose items they are."""
    item = parts[0].item
    if item is not None:
        return f"{item.list} ({len(parts)} item{'s' * (len(parts) != 1)})"
    return ", ".join(str(name) for part in parts for name in part.columns)


def part_dict(part: Part) -> dict[str, Any]:
    """A part as JSON."""
    several = len(part.columns) > 1
    return {
        "columns": list(part.columns),
        "types": list(part.types),
        "missing": part.missing,
        "domain": [
            [values.to_json(item) for item in (entry if several and isinstance(entry, tuple) else (entry,))]
            for entry in part.domain
        ],
        "range": None if part.range is None else part.range.to_dict(),
        "cells": [
            {"values": places.tolist(), "keep": channel.keep.tolist(), "replace": channel.replace.tolist()}
            for channel, places in zip(part.channels, part.cell_positions, strict=True)
        ],
        "cells_published": part.cells_published,
        "marginal": None if part.marginal is None else {**asdict(part.marginal), "counts": list(part.marginal.counts)},
        "mixture": None if part.mixture is None else [list(row) for row in part.mixture],
        "swapped": part.swapped,
        "groups": None if part.groups is None else asdict(part.groups),
        "bins": {name: {"edges": list(b.edges), "open_ends": b.open_ends} for name, b in part.bins.items()},
        "requirement": None if part.requirement is None else _requirement_dict(part.requirement),
        "promise": promise.to_dict(part.promise),
        **({} if part.lineups is None else {"lineups": part.lineups.integers()}),
        **({} if part.item is None else {"item": asdict(part.item)}),
        **({} if part.learned is None else {"learned": part.learned.to_dict()}),
    }


def _requirement_dict(stated: Requirement) -> dict[str, Any]:
    s = None if stated.s is None else str(stated.s)
    return {"rho1": str(stated.rho1), "rho2": str(stated.rho2), "adversary": stated.adversary, "s": s}


def part_of(raw: Mapping[str, Any]) -> Part:
    """A part from JSON."""
    kinds = raw["types"]
    if len(kinds) != len(raw["columns"]) or any(len(entry) != len(kinds) for entry in raw["domain"]):
        raise ManifestError("manifest.json is damaged: a value of the domain does not have one entry per column.")
    decoded = [
        tuple(values.from_json(item, kind) for item, kind in zip(entry, kinds, strict=True)) for entry in raw["domain"]
    ]
    domain: tuple[Hashable, ...] = tuple(decoded) if len(kinds) > 1 else tuple(entry[0] for entry in decoded)
    marginal, stated = raw["marginal"], raw["requirement"]
    if marginal is not None and len(marginal["counts"]) != len(domain):
        raise ManifestError("manifest.json is damaged: the noisy histogram does not have one count per value.")
    return Part(
        columns=tuple(raw["columns"]),
        types=tuple(kinds),
        missing=raw["missing"],
        promise=promise.from_dict(raw["promise"]),
        domain=domain,
        range=None if raw["range"] is None else NumberRange.from_dict(raw["range"]),
        channels=tuple(_channel(cell, domain) for cell in raw["cells"]),
        cell_positions=tuple(np.array(cell["values"], dtype=np.int64) for cell in raw["cells"]),
        cells_published=raw["cells_published"],
        marginal=None if marginal is None else Marginal(**{**marginal, "counts": tuple(marginal["counts"])}),
        mixture=None if raw["mixture"] is None else _mixture(raw["mixture"], len(domain)),
        swapped=raw["swapped"],
        groups=None if raw["groups"] is None else Grouping(**raw["groups"]),
        bins={name: Bins(tuple(b["edges"]), b["open_ends"]) for name, b in raw["bins"].items()},
        requirement=None if stated is None else _requirement(stated),
        lineups=None if raw.get("lineups") is None else design_of(raw["lineups"], len(domain)),
        item=None if raw.get("item") is None else ListItem(**raw["item"]),
        learned=None if raw.get("learned") is None else learned_of(raw["learned"]),
    )


def _requirement(raw: Mapping[str, Any]) -> Requirement:
    s = None if raw["s"] is None else Fraction(raw["s"])
    return Requirement(Fraction(raw["rho1"]), Fraction(raw["rho2"]), raw["adversary"], s)


def _channel(cell: Mapping[str, Any], domain: tuple[Hashable, ...]) -> Channel:
    places = cell["values"]
    if not places or max(places) >= len(domain):
        raise ManifestError("manifest.json is damaged: a cell is empty, or names a value that is not in the domain.")
    if not len(places) == len(cell["keep"]) == len(cell["replace"]) or sum(cell["replace"]) != SCALE:
        raise ManifestError("manifest.json is damaged: a cell's channel is not a probability distribution.")
    return Channel(tuple(domain[i] for i in places), np.array(cell["keep"]), np.array(cell["replace"]))


def _mixture(raw: list[list[float]], m: int) -> Mixture:
    matrix = np.array([row if len(row) == m else [] for row in raw], dtype=object)
    if matrix.shape != (m, m) or not np.allclose(matrix.astype(np.float64).sum(0), 1, atol=1e-4):
        raise ManifestError(
            "manifest.json is damaged: the channel of the whole table is not a probability distribution."
        )
    return tuple(tuple(row) for row in raw)


# -- A part of a manifest, checked: its domain, channel, noisy histogram, promise, and what it says by name ------------


Json = Mapping[str, Any]

MOST_ROWS = 2**48
LARGEST_GROUP = 2**20
LARGEST_MARGINAL = 2**53
LARGEST_MIXTURE = 4_096  # values: their square is the size of the matrix

_WHOLE = re.compile(r"u?int(8|16|32|64)")
_TEXT = re.compile(r"(large_)?(string|utf8)(_view)?")
_DATE = re.compile(r"date(32\[day\]|64\[ms\])")
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(, tz=[^\]]+)?\]")
_TIME = re.compile(r"time(32|64)\[(s|ms|us|ns)\]")
_DECIMAL = re.compile(r"decimal(32|64|128|256)\([0-9]{1,2}, -?[0-9]{1,2}\)")
_FLOATS = ("double", "float", "halffloat")


def part_problems(part: Json, raw: Json) -> Iterator[str]:
    """What is wrong with a part of the manifest ``raw``, the first thing first."""
    columns, kinds, m = part["columns"], part["types"], len(part["domain"])
    if len(kinds) != len(columns):
        yield "a part does not have one type per column"
        return
    if m > LARGEST_DOMAIN or sum(len(cell["values"]) for cell in part["cells"]) > 4 * LARGEST_DOMAIN:
        yield f"a domain has more than {LARGEST_DOMAIN:,} values"
        return
    yield from _domain(part)
    described = [part["range"], part["cells"] or None, part["mixture"], part["groups"]]
    described += [part.get("lineups"), part.get("learned")]
    if all(one is None for one in described):
        yield f"nothing says how {columns[0]!r} was perturbed"
    if part["range"] is not None:
        yield from _range(part)
    elif m < 1:
        yield "a domain is empty"
    yield from _cells(part["cells"], m)
    if part["marginal"] is not None:
        yield from _marginal(part["marginal"], m)
    if part["mixture"] is not None:
        yield from _sound_mixture(part["mixture"], m)
    yield from _promise(part)
    yield from _links(part, raw)


def _links(part: Json, raw: Json) -> Iterator[str]:
    """What a part says by name, or of the whole release."""
    if not set(part["bins"]) <= set(part["columns"]):
        yield "bins are of a column that was not perturbed"
    for bins in part["bins"].values():
        edges = bins["edges"]
        if len(edges) > 10_001 or any(low >= high for low, high in pairwise(edges)):
            yield "bins do not rise"
    if part["groups"] is not None and part["groups"]["c"] > LARGEST_GROUP:
        yield "a group of decoys is larger than any table"
    if part["swapped"] is not None and (part["swapped"] > MOST_ROWS or len(part["cells"]) != 1):
        yield "values are swapped without a channel, or among more rows than a release can have"
    if part["groups"] is not None and (part["cells"] or part["range"] is not None or len(part["domain"]) < 2):
        yield "decoys have a channel, or too few values"
    own = part["requirement"]
    if own is not None:
        right = is_probability(own["rho1"]) and is_probability(own["rho2"])
        if not right or (own["s"] is not None and not (is_fraction(own["s"]) and Fraction(own["s"]) >= 0)):
            yield "a column's own requirement is no probability"
    if part.get("lineups") is not None and len(part["columns"]) != 1:
        yield "line-ups are of one column"
    if part.get("learned") is not None:
        public = [column["name"] for column in raw["columns"] if column["role"] == "public"]
        yield from learned_problems(part["learned"], public)
        if part["cells"] or part["marginal"] is not None or part["mixture"] is not None:
            yield "values are dealt from a model, and there is a channel, too"


def _domain(part: Json) -> Iterator[str]:
    kinds = part["types"]
    if part["range"] is not None and part["domain"]:
        yield "a range of numbers lists values, too"
    readers = [_reader(kind) for kind in kinds]
    if any(reader is None for reader in readers) and part["domain"]:
        yield "a sensitive column has a type that cannot be perturbed"
        return
    seen = set()
    for entry in part["domain"]:
        if len(entry) != len(kinds):
            yield "a value of the domain does not have one entry per column"
            return
        if any(item is not None and not (read and read(item)) for item, read in zip(entry, readers, strict=True)):
            yield "the domain holds a value that is not of its column's type"
            return
        seen.add(tuple((type(item) is bool, item) for item in entry))
    if len(seen) != len(part["domain"]):
        yield "a value stands in the domain twice"


def _reader(kind: str) -> Callable[[Any], bool] | None:
    """Whether a value of JSON can be of a type; None for a type that no sensitive column has."""
    if _TEXT.fullmatch(kind):
        return lambda value: isinstance(value, str)
    if _WHOLE.fullmatch(kind):
        return lambda value: isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_WHOLE
    if kind in _FLOATS:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "bool":
        return lambda value: isinstance(value, bool)
    if kind == "null":
        return lambda value: False
    if any(form.fullmatch(kind) for form in (_DATE, _TIMESTAMP, _TIME, _DECIMAL)):
        return lambda value: isinstance(value, str)
    return None


def _range(part: Json) -> Iterator[str]:
    grid = part["range"]
    ends = [grid["low"], grid["high"]]
    if len(part["columns"]) != 1 or part["cells"] or part.get("lineups") is not None or part["mixture"] is not None:
        yield "a range of numbers is not of one column, or has a channel, too"
    if grid["kind"] == "date":
        try:
            low, high = (datetime.date.fromisoformat(end).toordinal() for end in ends)
        except (TypeError, ValueError):
            yield "a range of dates does not go from a date to a date"
            return
    elif all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
        low, high = ends
    else:
        yield "a range of numbers does not go from a number to a number"
        return
    whole = grid["kind"] != "number"
    if whole and not all(float(number).is_integer() for number in (low, high, grid["step"])):
        yield "a range of whole numbers is not in whole steps"
    width = float(high) - float(low)
    if not 0 < width < math.inf or not 0 < grid["step"] <= width * (1 + 1e-9):
        yield "a range of numbers is empty, or its step is longer than it"
    elif width / grid["step"] > LARGEST_DOMAIN:
        yield f"a range has more than {LARGEST_DOMAIN:,} points"


def _cells(cells: Sequence[Json], m: int) -> Iterator[str]:
    for cell in cells:
        places = cell["values"]
        if any(type(number) is not int for number in (*places, *cell["keep"], *cell["replace"])):
            yield "a cell holds something that is no whole number"
        elif not places or max(places) >= m or len(set(places)) != len(places):
            yield "a cell is empty, or names a value twice or one that is not in the domain"
        elif not len(places) == len(cell["keep"]) == len(cell["replace"]) or sum(cell["replace"]) != 2**32:
            yield "a cell's channel is not a probability distribution"


def _marginal(noisy: Json, m: int) -> Iterator[str]:
    """A noisy histogram has one count for each value, and noise that a release can have."""
    if len(noisy["counts"]) != m:
        yield "the noisy histogram does not have one count per value"
    elif not all(type(count) is int for count in noisy["counts"]):  # to JSON Schema 3.0 is a whole number, too
        yield "the noisy histogram has counts that are no whole numbers"
    elif max(map(abs, noisy["counts"]), default=0) > LARGEST_MARGINAL:
        yield "the noisy histogram counts more rows than a release can have"
    if not 1e-6 <= noisy["epsilon"] <= 1e6 or noisy["variance"] > 1e15:
        yield "the noise of the histogram is none that a release can have"


def _sound_mixture(mixture: Sequence[Sequence[float]], m: int) -> Iterator[str]:
    """The channel of a whole table has a row and a column for each value."""
    if m > LARGEST_MIXTURE:
        yield f"a channel of the whole table has more than {LARGEST_MIXTURE:,} values"
    elif len(mixture) != m or any(len(row) != m for row in mixture):
        yield "the channel of the whole table does not have a row and a column per value"
    elif any(abs(sum(column) - 1) > 1e-4 for column in zip(*mixture, strict=True)):
        yield "the channel of the whole table is not a probability distribution"


def _promise(part: Json) -> Iterator[str]:
    """Every place that a promise names is one of the domain, or of a column's values, and groups have a size."""
    promise, m = part["promise"], len(part["domain"])
    for kind, name, least in (("decoys", "c", 2), ("groups", "l", 1)):  # shares of 1/c, or 1/l
        size = promise.get(name)
        if promise.get("kind") == kind and isinstance(size, int) and size < least:
            yield f"a promise is about {kind} of {size}"
    named = [*_entries(promise, "exempt"), *_entries(promise, "above")]
    own = [*_entries(promise, "per_value"), *_entries(promise, "limits")]
    alone = _entries(promise, "loose")
    if not all(isinstance(entry, list) and len(entry) == 3 for entry in own):
        yield "a promise has no limits for a value of its own"
        return
    if not all(isinstance(entry, list) and len(entry) == 2 for entry in alone):
        yield "a promise names a single value that is not there"
        return
    if not all(_is_place(place, m) for place in [*named, *(entry[0] for entry in own)]):
        yield "a promise names a value that is not in the domain"
    if not all(_is_place(column, len(part["columns"])) for column, _ in alone):
        yield "a promise names a column that is not there"
        return
    sizes = [len({repr(value) for value in values}) for values in zip(*part["domain"], strict=True)] if alone else []
    if not all(_is_place(place, sizes[column]) for column, place in alone):
        yield "a promise names a single value that is not there"


def _entries(promise: Json, name: str) -> list[Any]:
    entries = promise.get(name, [])
    return entries if isinstance(entries, list) else []


def _is_place(place: Any, m: int) -> bool:
    return isinstance(place, int) and not isinstance(place, bool) and 0 <= place < m
