"""A proposal that was computed: how coarse public columns must be so that few rows are alone in them, for the least
that is lost.

Each column has levels, from left out over bands, prefixes or months to as it is; a choice of one for each is a node of
the lattice of all of them. Rows alone only grow from a level to a finer one. The search starts with all columns left
out and takes the step that keeps most information for each row that becomes alone, until no step is left within what is
wanted; then it gives back single steps where others gain more for them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.errors import DeniableError
from deniable.core.values import Codes, Ints, Words, percent
from deniable.owner.decision import Change
from deniable.owner.project import Project
from deniable.owner.public import combined
from deniable.owner.roles import Columns, Role, by_role, round_number, runs_of
from deniable.publishing.recoding import as_steps
from deniable.tables import engine_named
from deniable.tables.encoding import encode, is_askable, is_number, is_text, plain_type

WIDTHS = (40, 20, 10, 5, 2.5)  # bands in the spread of a column's numbers
PREFIXES = 4  # lengths that are tried, at the most
WIDE, SOME_ROWS = 12, 20_000  # columns, and the rows that more of them are searched in
GIVEN_BACK = 40  # steps that are tried again, at the most
HIERARCHY, MOST_LEVELS = "hierarchy:", 9  # of a file; levels that it does not have are passed over
FEW_VALUES = 20  # numbers of no more different values are categories


@dataclass(frozen=True, eq=False)
class Level:
    """How coarse a column is.

    Attributes:
        recode: as ``--recode`` has it; empty: as it is; None: left out.
        codes: of the rows.
        kept: of the information that the column has, 0 to 1.
    """

    recode: str | None
    codes: Codes
    kept: float

    @property
    def worth(self) -> float:
        """What it is worth to have: a little of each column is worth more than all of one."""
        return math.sqrt(self.kept)


@dataclass(frozen=True)
class Proposal:
    """How coarse public columns are to be.

    Attributes:
        recodes: column -> how it becomes coarser; what is not named stays as it is.
        left_out: columns that are not published.
        before, after: the share of the rows that are alone in public columns.
        error: of these shares, at 95 %: of a sample of the rows. In all rows fewer are alone.
        kept: of the information that the public columns have, each counted alike.
        rows, of: how many rows were looked at.
        columns: how many public columns there are.
    """

    recodes: Mapping[str, str]
    left_out: tuple[str, ...]
    before: float
    after: float
    error: float
    kept: float
    rows: int
    of: int
    columns: int

    @property
    def changes(self) -> tuple[Change, ...]:
        """As options of ``publish``."""
        recoded = [("recode", f"{name}={how}") for name, how in self.recodes.items()]
        return (*recoded, *(("drop", name) for name in self.left_out))

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "recodes": dict(self.recodes), "left_out": list(self.left_out)}

    def __str__(self) -> str:
        as_is = self.columns - len(self.recodes) - len(self.left_out)
        sample = "" if self.rows >= self.of else f", in {self.rows:,} of {self.of:,} rows, +-{percent(self.error)}"
        return (
            f"Proposed: of {self.columns} public columns {as_is} stay as they are, {len(self.recodes)} become coarser "
            f"and {len(self.left_out)} are left out: from {percent(self.before)} to {percent(self.after)} of the rows "
            f"alone{sample}; {percent(self.kept)} of what the columns say is kept."
        )


def proposal(
    columns: Columns, names: Sequence[str], roles: Mapping[str, Role], wanted: float, of: int, fixed: Sequence[str] = ()
) -> Proposal:
    """The proposal for public columns.

    Args:
        columns: some rows of the table.
        names: the public columns.
        roles: what they hold.
        wanted: the share of the rows that may be alone.
        of: how many rows the table has.
        fixed: columns that were made coarser before: they stay so, or are left out.
    """
    rows = columns.rows.num_rows
    some = np.arange(rows) if len(names) <= WIDE or rows <= SOME_ROWS else _spread(rows, SOME_ROWS)
    levels = [_levels(columns, name, roles[name], some, coarser=name not in fixed) for name in names]
    lattice = Lattice(levels)
    before = exact_alone([columns.encoded(name).codes[some] for name in names])
    node = lattice.searched(wanted)
    chosen = {name: of_column[place] for name, of_column, place in zip(names, levels, node, strict=True)}
    after = lattice.alone(node)
    kept = sum(level.kept for level in chosen.values()) / max(sum(one[-1].kept for one in levels), 1e-9)
    return Proposal(
        recodes={name: level.recode for name, level in chosen.items() if level.recode},
        left_out=tuple(name for name, level in chosen.items() if level.recode is None),
        before=before,
        after=after,
        error=1.96 * math.sqrt(max(after * (1 - after), 1 / max(len(some), 1)) / max(len(some), 1)),
        kept=kept,
        rows=len(some),
        of=of,
        columns=len(names),
    )


def coarser(table: Any, project: Project, wanted: float) -> tuple[Project, Proposal]:
    """A project whose public columns are as coarse as proposed, and the proposal.

    Args:
        table: as for ``publish``.
        project: what becomes of its columns.
        wanted: the share of the rows that may be alone.
    """
    dataset = engine_named("local").open(table)
    columns = Columns(runs_of(dataset, [name for name in dataset.names if name]))
    roles = {one.column: one for one in project.columns}
    public = [name for name in by_role(project.columns, "public") if is_askable(columns.rows[name].type)]
    made = proposal(columns, public, roles, wanted, dataset.rows or columns.rows.num_rows)
    for name in public:
        role = "drop" if name in made.left_out else "public"
        project = project.with_role(name, role, made.recodes.get(name, "" if role == "public" else None))
    return project, made


def _spread(rows: int, number: int) -> Ints:
    return np.arange(number, dtype=np.int64) * rows // number


# -- The levels of a column --------------------------------------------------------------------------------------------


def _levels(columns: Columns, name: str, role: Role, some: Ints, *, coarser: bool) -> list[Level]:
    """From left out to as it is, the coarsest first; a level that says no more than one below it is left away."""
    encoded = columns.encoded(name)
    codes = encoded.codes[some]
    whole = _entropy(codes)
    levels = [Level(None, np.zeros(len(some), np.uint8), 0.0)]
    if whole == 0:
        return [levels[0], Level("", codes, 0.0)] if coarser else [Level("", codes, 0.0)]
    for recode in _recodes(encoded.values, role) if coarser else ():
        try:
            table = engine_named("local").open(pa.table({name: encoded.values})).recoded({name: as_steps(recode)})
            made = encode(pa.Table.from_batches(table.batches([name]))[name])
        except DeniableError:
            continue
        own = np.append(made.codes, made.codes.max(initial=0) + 1).astype(np.int64)[codes]
        levels.append(Level(recode, own, _entropy(own) / whole))
    levels.append(Level("", codes, 1.0))
    levels.sort(key=lambda level: (level.kept, level.recode == ""))
    levels = [one for one, finer in pairwise(levels) if finer.kept > one.kept] + levels[-1:]
    return levels[:-1] if role.kind in ("date", "date of birth") and len(levels) > 1 else levels


def _recodes(values: pa.Array, role: Role) -> Iterator[str]:
    """Ways to make a column coarser, by what it holds."""
    kind = plain_type(values.type)
    if role.recode.startswith(HIERARCHY):  # the owner's own categories: any of their levels
        path, _, level = role.recode.removeprefix(HIERARCHY).rpartition(":")
        path = path if path and level.isdecimal() else role.recode.removeprefix(HIERARCHY)
        yield from (f"{HIERARCHY}{path}:{level}" for level in range(1, MOST_LEVELS + 1))
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        yield from ("year", "quarter", "month")
    elif role.recode and not role.recode.startswith("snap"):  # days that are written as texts or numbers
        yield role.recode
    elif is_number(kind) and len(values) > FEW_VALUES:
        yield from _bands(values)
    elif is_text(kind) and role.kind in ("place", "diagnosis"):
        longest = max((len(value) for value in values.to_pylist()), default=0)
        yield from (f"prefix:{length}" for length in range(1, min(longest, PREFIXES + 1)))


def _bands(values: pa.Array) -> Iterator[str]:
    numbers = np.asarray(values.cast(pa.float64(), safe=False))
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return
    low, high = np.quantile(numbers, [0.01, 0.99])
    if high <= low:
        return
    widths = {round_number(float(high - low) / number) for number in WIDTHS}
    if pa.types.is_integer(values.type):
        widths = {width for width in widths if width >= 2}
    yield from (f"bands:{width:.15g}" for width in sorted(widths))


def _entropy(codes: Codes) -> float:
    counts = np.bincount(codes.astype(np.int64))
    share = counts[counts > 0] / max(len(codes), 1)
    return max(float(-(share * np.log(share)).sum()), 0.0)


# -- The lattice, and the search in it ---------------------------------------------------------------------------------


class Lattice:
    """All choices of a level for each column.

    A row's combination is a sum of random words, one for each column's value, so that a step changes one term.

    Args:
        levels: of each column, the coarsest first.
    """

    def __init__(self, levels: Sequence[Sequence[Level]]) -> None:
        self.levels = levels
        self._drawn = np.random.default_rng(2010)
        self._words: dict[tuple[int, int], Words] = {}

    @cached_property
    def rows(self) -> int:
        """How many there are."""
        return len(self.levels[0][0].codes) if self.levels else 0

    def words(self, column: int, level: int) -> Words:
        """What a column adds to each row at a level."""
        if (column, level) not in self._words:
            codes = self.levels[column][level].codes.astype(np.int64)
            words = self._drawn.integers(0, 2**64, int(codes.max(initial=0)) + 1, dtype=np.uint64)
            self._words[column, level] = words[codes]
        return self._words[column, level]

    def sums(self, node: Sequence[int]) -> Words:
        """Of all columns."""
        total = np.zeros(self.rows, np.uint64)
        for column, level in enumerate(node):
            total = total + self.words(column, level)
        return total

    def alone(self, node: Sequence[int]) -> float:
        """The share of the rows that are alone."""
        return _alone(self.sums(node))

    def worth(self, node: Sequence[int]) -> float:
        """What is kept, each column counted alike."""
        return sum(self.levels[column][level].worth for column, level in enumerate(node))

    def searched(self, wanted: float) -> list[int]:
        """The levels that keep most with no more rows alone than wanted; all columns left out where none do."""
        node = self._filled([0] * len(self.levels), wanted)
        left, better = GIVEN_BACK, True
        while better and left > 0:
            better = False
            for column in self._dearest(node):
                for lower in {node[column] - 1, 0} if node[column] else ():
                    left -= 1
                    other = self._filled([*node[:column], lower, *node[column + 1 :]], wanted, without=column)
                    if self.worth(other) > self.worth(node) + 1e-12:
                        node, better = other, True
                        break
                if left <= 0:
                    break
        return node

    def _dearest(self, node: Sequence[int]) -> list[int]:
        """Columns by how many rows are alone for what they keep, the dearest first."""
        whole, total = self.alone(node), self.sums(node)
        prices = {}
        for column, level in enumerate(node):
            if level:
                less = _alone(total - self.words(column, level) + self.words(column, level - 1))
                lost = self.levels[column][level].worth - self.levels[column][level - 1].worth
                prices[column] = (whole - less) / max(lost, 1e-9)
        return sorted(prices, key=lambda column: -prices[column])

    def _filled(self, node: list[int], wanted: float, without: int = -1) -> list[int]:
        """The same with finer levels, as long as they fit: the best step first. What a step costs only grows while
        others are taken, so it is computed again only when it comes up."""
        node, total, alone = list(node), self.sums(node), self.alone(node)
        queue: list[tuple[float, int, int]] = []
        for column, level in enumerate(node):
            if column != without and level + 1 < len(self.levels[column]):
                heapq.heappush(queue, (-math.inf, column, level))
        while queue:
            worth, column, level = heapq.heappop(queue)
            after = total - self.words(column, level) + self.words(column, level + 1)
            share = _alone(after)
            if share > wanted:
                continue
            gained = self.levels[column][level + 1].worth - self.levels[column][level].worth
            now = -gained / (max(share - alone, 0.0) + 1 / self.rows)
            if queue and now > queue[0][0] and now > worth:
                heapq.heappush(queue, (now, column, level))
                continue
            node[column], total, alone = level + 1, after, share
            if level + 2 < len(self.levels[column]):
                heapq.heappush(queue, (-math.inf, column, level + 1))
        return node


def exact_alone(columns: Sequence[Codes]) -> float:
    """The share of the rows that are alone in some columns."""
    group = combined(columns, len(columns[0]) if columns else 0)
    return float((np.bincount(group) == 1).sum() / max(len(group), 1))


def _alone(sums: Words) -> float:
    if not len(sums):
        return 0.0
    ordered = np.sort(sums)
    other = ordered[1:] != ordered[:-1]
    first, last = np.append(True, other), np.append(other, True)
    return float((first & last).mean())
