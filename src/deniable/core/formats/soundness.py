"""The door that a manifest comes in by: whatever its schema cannot say is checked here, once, and trusted from then on:
that names refer to something, that lists have equal lengths, that fractions are fractions and that nothing makes us
allocate what no release needs.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from deniable.core.errors import ManifestError, is_unicode
from deniable.core.formats.listed import item_problems
from deniable.core.formats.promised import promise_problems
from deniable.core.formats.recodings import column_problems
from deniable.core.formats.tables import marginal_problems, mixture_problems

Json = Mapping[str, Any]

DEEPEST = 32  # levels of lists and objects
LARGEST_WHOLE = 2**63
LONG = 64  # items: a longer list is condensed before its schema is looked at
MOST_ROWS = 2**48
MOST_COLUMNS = 10_000
LARGEST_DOMAIN = 2**22
LARGEST_GROUP = 2**20
MOST_DIGITS = 2_000  # of an exact fraction: products of many columns' gammas are long

_FRACTION = re.compile(r"-?[0-9]+(/[0-9]+)?")
_WHOLE = re.compile(r"u?int(8|16|32|64)")
_TEXT = re.compile(r"(large_)?(string|utf8)(_view)?")
_DATE = re.compile(r"date(32\[day\]|64\[ms\])")
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(, tz=[^\]]+)?\]")
_TIME = re.compile(r"time(32|64)\[(s|ms|us|ns)\]")
_DECIMAL = re.compile(r"decimal(32|64|128|256)\([0-9]{1,2}, -?[0-9]{1,2}\)")
_FLOATS = ("double", "float", "halffloat")


def require_sound(raw: Json) -> None:
    """Refuse a manifest, valid by its schema, that contradicts itself or asks for too much."""
    for problem in _problems(raw):
        raise ManifestError(f"manifest.json is damaged: {problem}.")


def require_plain(raw: Any) -> None:
    """Refuse numbers that no release has, text that is no text, and nesting without end; before anything else."""
    level = [raw]
    for _ in range(DEEPEST):
        scalars: list[Any] = []
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, list) and len(item) > LONG and {*map(type, item)} == {int}:
                scalars += [min(item), max(item)]  # long lists are of whole numbers, and there may be millions
                continue
            inside = [*item, *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else [item]
            for entry in inside:
                (deeper if isinstance(entry, dict | list) else scalars).append(entry)
        if any(_is_strange(scalar) for scalar in scalars):
            raise ManifestError("manifest.json is damaged: it holds a number or a text that no release has.")
        if not deeper:
            return
        level = deeper
    raise ManifestError(f"manifest.json is damaged: it is nested more than {DEEPEST} levels deep.")


def condensed(raw: Any) -> Any:
    """The same document to a schema that says of a list's items no more than their types and ranges, as ours do.

    Of the numbers in a long list the smallest and the largest are left, of lists in a list one that holds all of their
    items: a schema looks at every item, which takes minutes where a domain has a million values.

    >>> condensed({"keep": [*range(100)], "name": "x"})
    {'keep': [0, 99], 'name': 'x'}
    """
    if isinstance(raw, dict):
        return {name: condensed(item) for name, item in raw.items()}
    if not isinstance(raw, list) or len(raw) <= LONG:
        return [condensed(item) for item in raw] if isinstance(raw, list) else raw
    by_type: dict[type, list[Any]] = {}
    for item in raw:
        by_type.setdefault(type(item), []).append(item)
    left: list[Any] = []
    for kind, items in by_type.items():
        if kind in (int, float):
            left += [min(items), max(items)]
        elif kind is list:
            left.append(condensed([entry for item in items for entry in item]))
        else:
            left += [condensed(item) for item in (items if kind is dict else items[:1])]
    return left


def _is_strange(scalar: Any) -> bool:
    if isinstance(scalar, str):
        return not is_unicode(scalar)
    if isinstance(scalar, float):
        return not math.isfinite(scalar)
    return isinstance(scalar, int) and not -LARGEST_WHOLE <= scalar < LARGEST_WHOLE


def _problems(raw: Json) -> Iterator[str]:
    """What is wrong with a manifest, the first thing first: later checks rely on earlier ones."""
    if raw["rows"] > MOST_ROWS or len(raw["columns"]) > MOST_COLUMNS or len(raw["parts"]) > MOST_COLUMNS:
        yield "it speaks of more rows or columns than a release can have"
    names = [column["name"] for column in raw["columns"]]
    if len(set(names)) != len(names):
        yield "a column is named twice"
    yield from _roles(raw)
    yield from _files(raw)
    yield from _guarantee(raw["guarantee"])
    if raw["privacy"] is not None:
        yield from _privacy(raw["privacy"])
    for part in raw["parts"]:
        yield from _part(part, raw)
    yield from column_problems(raw)
    yield from item_problems(raw)


def _roles(raw: Json) -> Iterator[str]:
    """Every sensitive column belongs to one part, and every part to sensitive columns."""
    covered = [name for part in raw["parts"] for name in part["columns"]]
    if len(set(covered)) != len(covered):
        yield "a sensitive column belongs to two parts"
    published = {column["name"]: column["role"] for column in raw["columns"]}
    if raw["form"] in ("rows", "boxes", "samples"):
        sensitive = {name for name, role in published.items() if role == "sensitive"}
        if set(covered) != sensitive:
            yield "its parts are not about its sensitive columns"
    grouped = raw["form"] in ("buckets", "boxes", "samples")
    if grouped and "cell" not in published:
        yield "it publishes groups, and no column says which"
    by_cell = raw["form"] == "rows" and any(part["cells_published"] for part in raw["parts"])
    if by_cell and (published.get("cell") != "cell" or len(raw["parts"]) != 1):
        yield "cells are published, and no column 'cell' of one part says which"
    if grouped and len(raw["parts"]) != 1:
        yield "groups are of one part"


def _files(raw: Json) -> Iterator[str]:
    for file in (raw["data"], raw["groups"], raw.get("lineups")):
        if file is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", file["file"]):
            yield "it names a data file outside the release"


def _guarantee(stated: Json) -> Iterator[str]:
    for name in ("rho1", "rho2"):
        if stated[name] is not None and not _is_probability(stated[name]):
            yield f"{name} of the guarantee is no probability"
    if stated["gamma"] is not None and not (_is_fraction(stated["gamma"]) and Fraction(stated["gamma"]) >= 1):
        yield "gamma of the guarantee is no ratio of probabilities"


def _privacy(required: Json) -> Iterator[str]:
    for name in ("rho1", "rho2"):
        if required[name] is not None and not _is_probability(required[name]):
            yield f"{name} of the requirement is no probability"
    for entry in required["per_value"]:
        if not isinstance(entry, list) or len(entry) != 3 or not all(map(_is_probability, entry[1:])):
            yield "a value's own requirement is not [value, rho1, rho2]"
            return
    for sums in (required["small_sums"], required["large_sums"]):
        if sums is not None and not all(_is_probability(n) for n in sums.values() if isinstance(n, str)):
            yield "a requirement of sums is no probability"


def _part(part: Json, raw: Json) -> Iterator[str]:
    columns, kinds, m = part["columns"], part["types"], len(part["domain"])
    if len(kinds) != len(columns):
        yield "a part does not have one type per column"
        return
    if m > LARGEST_DOMAIN or sum(len(cell["values"]) for cell in part["cells"]) > 4 * LARGEST_DOMAIN:
        yield f"a domain has more than {LARGEST_DOMAIN:,} values"
        return
    yield from _domain(part)
    described = [part["range"], part.get("lineups"), part["cells"] or None, part["mixture"], part["groups"]]
    if raw["form"] == "rows" and all(one is None for one in described):
        yield f"nothing says how {columns[0]!r} was perturbed"
    if part["range"] is not None:
        yield from _range(part)
    elif m < 1:
        yield "a domain is empty"
    yield from _cells(part["cells"], m)
    if part["marginal"] is not None:
        yield from marginal_problems(part["marginal"], m)
    if part["mixture"] is not None:
        yield from mixture_problems(part["mixture"], m)
    yield from promise_problems(part)
    yield from _links(part, raw)


def _links(part: Json, raw: Json) -> Iterator[str]:
    """What a part says by name, or of the whole release."""
    public = {column["name"] for column in raw["columns"] if column["role"] == "public"}
    if not set(part["strata"]) <= public:
        yield "rows have strata by a column that is not published"
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
        right = _is_probability(own["rho1"]) and _is_probability(own["rho2"])
        if not right or (own["s"] is not None and not (_is_fraction(own["s"]) and Fraction(own["s"]) >= 0)):
            yield "a column's own requirement is no probability"
    if part.get("lineups") is not None and len(part["columns"]) != 1:
        yield "line-ups are of one column"


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


def _is_fraction(text: Any) -> bool:
    """Whether a text is a fraction that can be read in a moment: Fraction itself reads 1e999999999, too."""
    if not isinstance(text, str) or len(text) > MOST_DIGITS or not _FRACTION.fullmatch(text):
        return False
    return not text.partition("/")[2] or int(text.partition("/")[2]) > 0


def _is_probability(text: Any) -> bool:
    return _is_fraction(text) and 0 < Fraction(text) <= 1
