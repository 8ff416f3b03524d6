"""The rows: they hold nothing that their column or cell does not have, counts that the channel can have made, public
columns as coarse as is stated, and no public column says what a sensitive one hides."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable_verify import learned, lineups
from deniable_verify.checks import Check
from deniable_verify.counts import RARELY, Floats, Ints, channels_of, counts_check, frequencies_check, possible_check
from deniable_verify.folder import Rows, array_of, flat
from deniable_verify.numbers import Json, grid
from deniable_verify.reading import DamagedError

MOST_DISTINCT = 2**22  # values of a recoded column
SURE, ALIKE = 0.9, 0.5  # shares of rows, and of values, from which on a public column is a copy


class States:
    """What each row shows in the columns of one part, as a number: values, sets, or values of cells one after the
    other; last the missing ones that are exempt."""

    def __init__(self, part: Json, schema: pa.Schema) -> None:
        self.part, self.columns = part, list(part["columns"])
        self.schema, self.design = schema, part.get("lineups")
        self.read = [*self.columns, *(["cell"] if part["cells_published"] else [])]
        if part["cells_published"]:
            sizes = [len(cell["values"]) for cell in part["cells"]]
            self.starts, self.number = np.cumsum([0, *sizes]), sum(sizes)
            self.inside = np.full((len(sizes), len(part["domain"])), -1)
            for number, cell in enumerate(part["cells"]):
                self.inside[number, cell["values"]] = self.starts[number] + np.arange(len(cell["values"]))
        elif self.design is not None:
            self.number = len(lineups.sets_of(self.design).blind)
        else:
            self.number = len(part["domain"])

    @property
    def _sound(self) -> Json:
        assert self.design is not None
        return self.design

    @cached_property
    def known(self) -> list[pa.Array]:
        """Of each column its values in the order in which the domain has them first, without missing."""
        made = []
        for place, name in enumerate(self.columns):
            kind = self.schema.field(name).type
            kind = kind.value_type if pa.types.is_list(kind) else kind
            if self.design is not None and lineups.is_coded(self.design):
                kind = pa.string()  # rows show codes, and no values
            entries = dict.fromkeys(entry[place] for entry in self.part["domain"])
            in_sets = self.design is not None  # of which missing is a member like any other
            made.append(array_of([entry for entry in entries if in_sets or entry is not None], kind))
        return made

    @cached_property
    def places(self) -> Ints:
        """The place in the domain of every combination of the columns' values, missing being the last; -1: none."""
        sizes = [len(known) + 1 for known in self.known]
        places = np.full(math.prod(sizes) if math.prod(sizes) <= 2**28 else 0, -1)
        order = [
            {value: code for code, value in enumerate(v for v in dict.fromkeys(column) if v is not None)}
            | {None: size - 1}
            for column, size in zip(zip(*self.part["domain"], strict=True), sizes, strict=True)
        ]
        for place, entry in enumerate(self.part["domain"]):
            code = 0
            for item, codes, size in zip(entry, order, sizes, strict=True):
                code = code * size + codes[item]
            places[code] = place
        return places

    def of(self, batch: Mapping[str, pa.Array]) -> Ints:
        """The state of every row; a ``DamagedError`` where a row shows what no row can."""
        if self.part["range"] is not None:
            return self._on_grid(batch[self.columns[0]])
        if self.design is not None:
            return self._sets(batch[self.columns[0]])
        code = np.zeros(len(batch[self.columns[0]]), np.int64)
        gone = np.ones(len(code), bool)
        for name, known in zip(self.columns, self.known, strict=True):
            column = batch[name]
            at = pc.index_in(column, value_set=known)
            missing = flat(pc.is_null(column))
            own = np.where(missing, len(known), flat(at.fill_null(-1)))
            self._require(own >= 0, name)
            code, gone = code * (len(known) + 1) + own, gone & missing
        places = self.places[code]
        if self.part["missing"] == "exempt":
            places = np.where((places < 0) & gone, len(self.part["domain"]), places)
        self._require(places >= 0, self.columns[0])
        if not self.part["cells_published"]:
            return places
        cells = flat(batch["cell"].fill_null(-1))
        inside = np.full(len(places), self.number)
        value = places < len(self.part["domain"])
        self._require((cells >= 0) & (cells < len(self.inside)) | ~value, "cell")
        inside[value] = self.inside[cells[value].astype(np.int64), places[value]]
        self._require(inside >= 0, self.columns[0])
        return inside

    def _require(self, right: Any, name: str) -> None:
        if not np.all(right):
            raise DamagedError(
                f"a row holds a value of {name!r} that its manifest does not list, or its cell does not have"
            )

    def _on_grid(self, column: pa.Array) -> Ints:
        """Whether numbers and dates are points of their range; how often each occurs tells nothing more."""
        low, step, number = grid(self.part["range"])
        kept = column.drop_null()
        self._require(
            not column.null_count or self.part["range"]["missing"] or self.part["missing"] == "exempt", self.columns[0]
        )
        if pa.types.is_date(column.type):
            numbers = flat(kept.cast(pa.date32()).cast(pa.int32())).astype(np.float64) + 719_163
        else:
            numbers = flat(pc.cast(kept, pa.float64()))
        place = np.rint((numbers - float(low)) / float(step))
        room = 1e-6 * max(
            float(step), 1e-3 * float(abs(low) + step * number) if str(column.type) in ("float", "halffloat") else 0
        )
        near = np.abs(low.numerator / low.denominator + place * float(step) - numbers) <= room
        self._require(near & (place >= 0) & (place < number), self.columns[0])
        return np.zeros(len(column), np.int64)

    def _sets(self, column: pa.Array) -> Ints:
        """The number of the set that each row lists, or that it shows by its code."""
        sets, gone = lineups.sets_of(self._sound), flat(pc.is_null(column))
        self._require(not gone.any() or self.part["missing"] == "exempt", self.columns[0])
        states = np.full(len(column), self.number)
        kept = column.drop_null()
        if pa.types.is_integer(column.type):
            shown = flat(kept)
            at = np.searchsorted(sets.codes, shown)
            self._require(sets.codes[np.minimum(at, self.number - 1)] == shown, self.columns[0])
        else:
            size = sets.members.shape[1]
            self._require(flat(pc.list_value_length(kept)) == size, self.columns[0])
            inside = pc.index_in(kept.flatten(), value_set=self.known[0])
            self._require(not inside.null_count, self.columns[0])
            at = self._numbered(np.sort(flat(inside).reshape(-1, size), axis=1))
        states[~gone] = at
        return states

    @cached_property
    def _rising(self) -> tuple[Any, Ints]:
        """The sets as bytes, in rising order, and their numbers."""
        known = _as_bytes(lineups.sets_of(self._sound).members)
        order = np.argsort(known)
        return known[order], order

    def _numbered(self, members: Ints) -> Ints:
        """Where rows' members stand among the sets."""
        known, order = self._rising
        rows = _as_bytes(members)
        at = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        self._require(known[at] == rows, self.columns[0])
        numbers: Ints = order[at]
        return numbers


def _as_bytes(members: Ints) -> Any:
    """Rows of whole numbers as texts of bytes that can be compared."""
    made = np.ascontiguousarray(members.astype(">i4") + 1)
    return made.view(f"S{4 * made.shape[1]}").ravel()


@dataclass
class Tally:
    """What one pass over the rows counts.

    Attributes:
        shown: of each part, the rows of each state.
        distinct: of recoded columns, their values.
        crossed: (public column, part) -> the column's own values, and the rows of each beside what the part shows.
        combinations: of learned parts, rows by combination of levels and value.
    """

    shown: list[Floats]
    distinct: dict[str, pa.Array] = field(default_factory=dict)
    crossed: dict[tuple[str, int], Floats] = field(default_factory=dict)
    combinations: dict[int, learned.Combined] = field(default_factory=dict)


def tally(rows: Rows, raw: Json) -> Tally:
    """Read every row once."""
    parts, roles = raw["parts"], {column["name"]: column["role"] for column in raw["columns"]}
    states = [States(part, rows.schema) for part in parts]
    public = [name for name, role in roles.items() if role == "public"]
    recoded = [name for name in public if name in raw.get("recoded", {})]
    counted = Tally([np.zeros(one.number + 1) for one in states])
    counted.combinations = {place: learned.Combined(part) for place, part in enumerate(parts) if part.get("learned")}
    alike = {
        (name, place): one
        for place, one in enumerate(states)
        for name in public
        if _shares_values(rows.schema, name, one)
    }
    seen = [name for one in counted.combinations.values() for name in one.columns]
    names = dict.fromkeys(
        [*(name for one in states for name in one.read), *recoded, *(name for name, _ in alike), *seen]
    )
    for batch in rows.batches(list(names)):
        own = [one.of(batch) for one in states]
        for total, state in zip(counted.shown, own, strict=True):
            total += np.bincount(state, minlength=len(total))
        for name in recoded:
            both = [counted.distinct[name]] if name in counted.distinct else []
            counted.distinct[name] = pc.unique(pa.concat_arrays([*both, pc.unique(batch[name])]))
            if len(counted.distinct[name]) > MOST_DISTINCT:
                raise DamagedError(f"the recoded column {name!r} has more values than a recoding leaves")
        for (name, place), one in alike.items():
            at = pc.index_in(batch[name].cast(one.known[0].type), value_set=one.known[0]).fill_null(len(one.known[0]))
            m = len(one.known[0]) + 1
            shown = np.minimum(_values(one, own[place]), m - 1)
            crossed = np.bincount(flat(at).astype(np.int64) * m + shown, minlength=m * m)
            before = counted.crossed.get((name, place), np.zeros((m, m)))
            counted.crossed[name, place] = before + crossed.reshape(m, m).astype(np.float64)
        for place, combined in counted.combinations.items():
            combined.add(batch, own[place])
    for combined in counted.combinations.values():
        combined.close()
    return counted


def _shares_values(schema: pa.Schema, name: str, one: States) -> bool:
    """Whether a public column is of the kind that the sensitive one is: of columns that show one value a row."""
    if len(one.columns) != 1 or one.design is not None or one.part["range"] is not None or one.part.get("item"):
        return False
    kinds = [schema.field(column).type for column in (name, one.columns[0])]
    text = all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in kinds)
    return 3 <= len(one.known[0]) <= 1024 and (text or kinds[0] == kinds[1]) and not pa.types.is_boolean(kinds[0])


def _values(one: States, states: Ints) -> Ints:
    """The place of the value that each row shows; of cells, by the cell's values."""
    if not one.part["cells_published"]:
        return states
    places = np.concatenate([*(np.array(cell["values"]) for cell in one.part["cells"]), [len(one.part["domain"])]])
    found: Ints = places[states]
    return found


# -- What the counts say -----------------------------------------------------------------------------------------------


def row_checks(rows: Rows, raw: Json, model: Mapping[str, Ints] | None) -> Iterator[Check]:
    """Everything that one pass over the rows shows."""
    try:
        counted = tally(rows, raw)
    except DamagedError as problem:
        yield Check("values", False, str(problem))
        return
    yield Check("values", True, "every row holds a value that its column, or its cell, has")
    parts, by_person = raw["parts"], raw["randomness"]["row_identity"] == "person and value"
    often = RARELY + math.log(len(parts))
    for place, part in enumerate(parts):
        shown = counted.shown[place]
        shown = shown[:-1] if part["missing"] == "exempt" or not shown[-1] else shown
        if part.get("learned") is not None:
            yield from learned.model_checks(part, counted.combinations[place], model)
        elif part["range"] is None:
            yield from counts_check(part, shown, by_person=by_person, often=often)
            if not by_person:
                yield from possible_check(part, shown, often)
                yield from frequencies_check(part, shown, raw)
    yield from recoded_check(counted.distinct, raw)
    yield from copies_check(counted.crossed, raw)


def copies_check(crossed: Mapping[tuple[str, int], Floats], raw: Json) -> Iterator[Check]:
    """No public column is the sensitive one: where it shares its values, rows show its own value no more often than
    chance and a channel could explain of another column. N_z rows of z show z in N_z P[z|z] cases where z is the truth.
    """
    named = []
    for (name, place), table in crossed.items():
        part, seen = raw["parts"][place], table.sum(axis=1)
        if seen[:-1].sum() < ALIKE * max(seen.sum(), 1):
            continue
        named.append(name)
        column = part["columns"][0]
        if part.get("learned") is not None:
            sure = np.trace(table[:-1, :-1]) / max(seen[:-1].sum(), 1)
        else:
            sure = _as_truth(part, table)
        if sure is not None and sure >= SURE:
            yield Check(
                "public columns", False, f"{name!r} tells the values of {column!r}: {sure:.0%} of its rows hold it"
            )
            return
    if named:
        shown = ", ".join(map(repr, named[:5]))
        yield Check(
            "public columns", True, f"{shown} share their values with a sensitive column, and are no copy of it"
        )


def _as_truth(part: Json, table: Floats) -> float | None:
    """The share of rows whose public value is the true one: between none, where rows show values as they do anyway, and
    all, where they show it as the channel shows the truth."""
    channels = channels_of(part)
    if len(channels) != 1 or not channels[0].inverts or len(channels[0].places) != len(table) - 1:
        return None
    channel, seen, own = channels[0], table.sum(axis=1)[:-1], np.diag(table)[:-1]
    order = np.argsort(channel.places)
    keep, replace = channel.keep[order], channel.replace[order]
    truly = float(seen @ (keep + (1 - keep) * replace))
    anyway = float(seen @ (table.sum(axis=0)[:-1] / max(table.sum(), 1)))
    spread = math.sqrt(max(truly, 1))
    return (float(own.sum()) - anyway) / (truly - anyway) if truly - anyway > 8 * spread else None


# -- Columns that were made coarser ------------------------------------------------------------------------------------


def recoded_check(distinct: Mapping[str, pa.Array], raw: Json) -> Iterator[Check]:
    """A recoded public column holds nothing that its last step does not give."""
    if not raw.get("recoded"):
        return
    finer = [name for name, known in distinct.items() if not fits(known, raw["recoded"][name][-1])]
    detail = (
        f"{', '.join(finer)[:200]} is finer than its recoding gives" if finer else "columns are as coarse as stated"
    )
    yield Check("recoded", not finer, detail)


def fits(values: pa.Array, step: Json) -> bool:
    """Whether distinct values can be what a step gives."""
    known, kind = values.drop_null(), step["kind"]
    try:
        if kind == "bands":
            return all(_is_band(text, step) for text in known.to_pylist())
        if kind == "edges":
            text = [number_text(edge) for edge in step["edges"]]
            inner = (f"[{low}, {high})" for low, high in itertools.pairwise(text))
            return {*known.to_pylist()} <= {f"below {text[0]}", *inner, f"{text[-1]} and above"}
        if kind == "prefix":
            return not len(known) or pc.max(pc.utf8_length(known)).as_py() <= step["length"]
        if kind in ("top", "bottom"):
            compared = pc.less_equal if kind == "top" else pc.greater_equal
            return bool(pc.all(compared(known, step["limit"]), min_count=0).as_py())
        if kind == "snap":
            numbers = flat(pc.cast(known, pa.float64()))
            off = numbers - np.rint(numbers / step["grid"]) * step["grid"]
            return bool((np.abs(off) <= 1e-9 * np.maximum(np.abs(numbers), 1)).all())
        if kind == "hierarchy":
            return {*known.to_pylist()} <= {*(category for _, category in step["map"]), step["other"]}
        if kind == "calendar" and step["unit"] != "year":
            form = r"-?[0-9]{4,}-(Q[1-4])" if step["unit"] == "quarter" else r"-?[0-9]{4,}-(0[1-9]|1[0-2])"
            return all(re.fullmatch(form, text) for text in known.to_pylist())
        return kind != "calendar" or pa.types.is_integer(values.type)
    except (pa.ArrowException, TypeError, ValueError, AttributeError):  # not even of the type
        return False


def number_text(number: Any) -> str:
    """A number as a label has it."""
    return str(number) if isinstance(number, int) else f"{number:.15g}"


def _is_band(label: Any, step: Json) -> bool:
    """Whether a text is an interval [start + k width, start + (k + 1) width), reckoned in decimals."""
    match = re.fullmatch(r"\[(-?[0-9.e+-]+), .*\)", label)
    if match is None:
        return False
    start, width = (Fraction(str(step[name])) for name in ("start", "width"))
    place = round((Fraction(match[1]) - start) / width)
    ends = [start + (place + more) * width for more in (0, 1)]
    whole = isinstance(step["start"], int) and isinstance(step["width"], int)
    low, high = (number_text(int(end) if whole else float(end)) for end in ends)
    return bool(label == f"[{low}, {high})")


def tables_alike(one: Mapping[str, pa.ChunkedArray], other: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether two small tables hold the same, numbers to nine digits."""
    for name in names:
        ours, theirs = one[name].combine_chunks(), other[name]
        if len(ours) != len(theirs):
            return False
        if isinstance(theirs, np.ndarray):
            same = ours.null_count == 0 and np.allclose(flat(ours), theirs, rtol=1e-6, atol=1e-9)
        else:
            same = ours.equals(theirs)
        if not same:
            return False
    return True
