"""A plan: how a table becomes a release, and why so. It depends on the data only through the histogram."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from deniable.core.channels import Channel, NumberRange, Requirement
from deniable.core.errors import InternalError
from deniable.core.histogram import Histogram
from deniable.core.learned import Dealt, Learned
from deniable.core.lineups import LineUpDesign
from deniable.core.part import Grouping, Mixture
from deniable.core.privacy import Privacy
from deniable.core.promise import Guarantee
from deniable.core.sentence import sentence_of, told_part
from deniable.core.text import first_values, paragraph, shown, table, title
from deniable.core.values import Counts, percent

# -- A plan: how a table becomes a release. It depends on the data only through the histogram --------------------------
# A plan is parts, columns that are perturbed together and independently of all others; a part is cells, each with its
# own channel, or a range of numbers.


@dataclass(frozen=True)
class Cell:
    """A sub-table with its own sub-domain and channel.

    Attributes:
        rows: how many rows of each value this cell takes; its keys are the sub-domain, in the channel's order.
        channel: how a value of this cell is perturbed.

    >>> import deniable as dn
    >>> cell = dn.plan({"flu": 60, "cold": 40}, dn.Privacy(rho2="3/4"), "uniform").cells[0]
    >>> cell.size, cell.rows["flu"], cell.channel.values
    (100, 60, ('flu', 'cold'))
    """

    rows: Histogram
    channel: Channel

    def __post_init__(self) -> None:
        if self.rows.domain != self.channel.values:
            raise InternalError("a cell's rows and its channel name different values")

    @property
    def size(self) -> int:
        """How many rows it takes."""
        return self.rows.rows


@dataclass(frozen=True, kw_only=True)
class PlannedPart:
    """Columns that are perturbed together: all that an engine needs to do it, and a release to say of it.

    Attributes:
        columns: one column, or several that are compounded into one; empty where only a histogram was planned for.
        histogram: of the column; None for a range of numbers.
        cells: they take every row of the histogram exactly once.
        cells_published: whether the release says which cell each row fell into.
        grid: the range, for numbers that are replaced within one.
        swapped: whether replaced values are permuted among themselves instead of drawn.
        groups: of a part whose rows lend each other their values, how they are grouped.
        left_out: the number of a cell whose rows are not published (the remainder that no decoy group can take).
        requirement: the part's own, where columns have their own.
        mixture: where cells stay hidden: the channel of the whole column, as public numbers tell it.
        lineups: where rows publish sets of values instead of one, the design of the sets; such a part has no cells.
        learned: where values are dealt from a model, the model; such a part has no cells.
        dealt: the values that each public combination gets; None of a plan from a histogram alone.
    """

    columns: tuple[str, ...] = ()
    histogram: Histogram | None = None
    cells: tuple[Cell, ...] = ()
    cells_published: bool = False
    grid: NumberRange | None = None
    swapped: bool = False
    groups: Grouping | None = None
    left_out: int | None = None
    requirement: Requirement | None = None
    mixture: Mixture | None = None
    lineups: LineUpDesign | None = None
    learned: Learned | None = None
    dealt: Dealt | None = None

    def __post_init__(self) -> None:
        if (self.histogram is None) == (self.grid is None):
            raise InternalError("a part is either cells of a histogram or a range of numbers")
        if self.histogram is None or self.learned is not None:
            return
        if self.lineups is not None:
            if self.cells or self.lineups.m != self.histogram.m:
                raise InternalError("a part of line-ups has no cells, and an arc for each of its values")
            return
        taken = np.zeros(self.histogram.m, dtype=np.int64)
        for cell in self.cells:
            np.add.at(taken, self.positions(cell), cell.rows.counts)
        if not np.array_equal(taken, self.histogram.counts):
            raise InternalError("the cells of a plan do not take every row exactly once")

    @property
    def values(self) -> Histogram:
        """The histogram, of a part that has one."""
        if self.histogram is None:
            raise InternalError("a range of numbers has no histogram")
        return self.histogram

    @property
    def hidden(self) -> bool:
        """Whether there are several cells, or groups, and nobody sees which one a row fell into."""
        return self.groups is not None or (len(self.cells) > 1 and not self.cells_published)

    @property
    def keep(self) -> Counts:
        """The coins of its (first) channel, as integers out of 2^32."""
        return self.cells[0].channel.keep if self.grid is None else np.array([self.grid.keep], dtype=np.int64)

    def fingerprint(self) -> str:
        """A digest of everything that decides how rows are perturbed."""
        state = hashlib.sha256(repr((self.columns, self.cells_published, self.grid, self.swapped, ())).encode())
        for cell in self.cells:
            for array in (self.positions(cell), cell.rows.counts, cell.channel.keep, cell.channel.replace):
                state.update(np.ascontiguousarray(array, dtype="<i8").tobytes() + b"|")
        if self.lineups is not None:
            state.update(repr(self.lineups.integers()).encode())
        if self.dealt is not None:
            for array in (self.dealt.keys, self.dealt.starts, self.dealt.places, self.dealt.counts):
                state.update(np.ascontiguousarray(array, dtype="<u8").tobytes() + b"|")
        return state.hexdigest()

    def positions(self, cell: Cell) -> Counts:
        """Where a cell's values stand in the domain of the table."""
        if cell.rows.domain == self.values.domain:
            return np.arange(self.values.m)
        return np.array([self.values.position(value) for value in cell.rows.domain], dtype=np.int64)

    def value_cells(self) -> dict[Hashable, list[tuple[int, int]]]:
        """For each value the (cell, rows) it is dealt to, cells in order, none with zero rows."""
        dealt: dict[Hashable, list[tuple[int, int]]] = {value: [] for value in self.values.domain}
        for index, cell in enumerate(self.cells):
            for value, rows in zip(cell.rows.domain, cell.rows.counts.tolist(), strict=True):
                if rows:
                    dealt[value].append((index, rows))
        return dealt

    def _listed(self) -> Iterator[tuple[object, ...]]:
        """Its cells or its range, a line each, without a number of rows."""
        columns = ", ".join(map(str, self.columns))
        if self.grid is not None:
            ends = f"{self.grid.low} to {self.grid.high} in steps of {self.grid.step:g}"
            yield columns, "", self.grid.points, percent(self.grid.coin), _gamma(self.grid.exact_gamma), ends
        for number, cell in enumerate(self.cells):
            channel = cell.channel
            values = first_values(channel.values)
            yield columns, number, channel.m, _coins(channel), _gamma(channel.exact_gamma), values


@dataclass(frozen=True, repr=False)
class Plan:
    """Parts, and what they guarantee. Most plans have one part; ``cells`` and so on speak of the first.

    Attributes:
        mechanism: the mechanism's name.
        parts: in the order of their columns.
        privacy: what was required; None for mechanisms that are only compared with.
        guarantee: what is promised, with one promise for each part.
        options: the mechanism's options: what the owner chose, for the record.

    >>> import deniable as dn
    >>> rows = {"flu": 400, "cold": 350, "gout": 120, "tb": 90, "hiv": 40}
    >>> plan = dn.plan(rows, dn.Privacy(rho2="3/5"), mechanism="small-domain")
    >>> plan
    <Plan by small-domain: 3 cells, rho2 60 %>
    >>> [cell.channel.values for cell in plan.cells]
    [('flu', 'cold'), ('flu', 'gout', 'hiv'), ('gout', 'tb')]
    >>> print(plan.explain().splitlines()[0])
    small-domain: 3 cells (published) of 5 values; coins keep 20.8 % of the rows.
    """

    mechanism: str
    parts: tuple[PlannedPart, ...]
    privacy: Privacy | None
    guarantee: Guarantee
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.guarantee.promises) != len(self.parts):
            raise InternalError("a plan needs one promise for each of its parts")
        if len(self.parts) > 1 and any(part.cells_published for part in self.parts):
            raise InternalError("only a release of one part can publish the cells of its rows")
        if not self.guarantee.sentence:
            stated = zip(self.parts, self.guarantee.promises, strict=True)
            parts = [told_part(part, promise) for part, promise in stated]
            computed = replace(self.guarantee, sentence=sentence_of(parts, self.guarantee.adversary))
            object.__setattr__(self, "guarantee", computed)

    @classmethod
    def of_cells(
        cls,
        mechanism: str,
        histogram: Histogram,
        cells: tuple[Cell, ...],
        guarantee: Guarantee,
        *,
        privacy: Privacy | None = None,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Plan:
        """A plan of one part, from its cells.

        Args:
            mechanism, guarantee, privacy, options: as for ``Plan``.
            histogram: of the sensitive column.
            cells: they take every row of the histogram exactly once.
            more: further fields of the part, such as ``cells_published``.
        """
        part = PlannedPart(histogram=histogram, cells=cells, **more)
        return cls(mechanism, (part,), privacy, guarantee, options or {})

    @classmethod
    def of_channel(
        cls, mechanism: str, histogram: Histogram, channel: Channel, guarantee: Guarantee, **more: Any
    ) -> Plan:
        """A plan of one channel for the whole table.

        Args:
            mechanism, histogram, guarantee, more: as for ``of_cells``.
            channel: over the whole domain.
        """
        return cls.of_cells(mechanism, histogram, (Cell(histogram, channel),), guarantee, **more)

    @property
    def histogram(self) -> Histogram:
        """What was planned for: how many rows hold each value of the first part."""
        return self.parts[0].values

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of the first part."""
        return self.parts[0].cells

    @property
    def cells_published(self) -> bool:
        """Whether the release says which cell each row fell into."""
        return self.parts[0].cells_published

    def positions(self, cell: Cell) -> Counts:
        """Where the values of ``cell`` stand in the domain of the table."""
        return self.parts[0].positions(cell)

    @cached_property
    def average_coin(self) -> float:
        """The share of rows that their coin keeps."""
        kept = sum(float((cell.rows.counts * cell.channel.coins).sum()) for cell in self.cells)
        return kept / max(self.histogram.rows, 1)

    @cached_property
    def record_utility(self) -> float:
        """The share of rows published as they are (mathematics 5): kept by the coin or redrawn by chance."""
        same = sum(float((cell.rows.counts * cell.channel.diagonal).sum()) for cell in self.cells)
        return same / max(self.histogram.rows, 1)

    def explain(self) -> str:
        """The plan for its owner, as text: what it promises, and its cells as a table. It holds shares of the rows."""
        if self.parts[0].learned is not None:
            return f"{self.mechanism}: values dealt from a model of the public columns.\n{self.guarantee}"
        design = self.parts[0].lineups
        if design is not None:
            shape = f"{len(design.sets.lengths):,} line-ups of {design.size} of {design.m:,} values"
            return f"{self.mechanism}: {shape}, {percent(design.share_true)} made around the value.\n{self.guarantee}"
        seen = "published" if self.cells_published else "not published"
        lines = [
            f"{self.mechanism}: {len(self.cells):,} cell{'s' * (len(self.cells) != 1)} ({seen}) of "
            f"{self.histogram.m:,} values; coins keep {percent(self.average_coin)} of the rows.",
            str(self.guarantee),
            "",
            f"{'cell':>6}{'values':>8}{'rows':>9}  {'coins':<19}{'gamma':>8}  first values",
        ]
        for number, cell in enumerate(self.cells):
            share = percent(cell.size / max(self.histogram.rows, 1))
            names = ", ".join(str(value)[:16] for value in cell.channel.values[:4])
            coins, gamma = _coins(cell.channel), cell.channel.gamma
            lines.append(f"{number:>6}{cell.channel.m:>8,}{share:>9}  {coins:<19}{gamma:>8.3g}  {names}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        # Without a number of rows: a plan may be printed where its table may not be seen.
        named = ", ".join(name for part in self.parts for name in part.columns)
        cells = sum(len(part.cells) for part in self.parts)
        size = f"{len(self.parts):,} columns" if len(self.parts) > 1 else f"{cells:,} cell{'s' * (cells != 1)}"
        promised = f"rho2 {percent(self.guarantee.rho2)}" if self.guarantee.rho2 is not None else "no rho2"
        return f"<Plan by {self.mechanism}{f' for {shown(named)}' if named else ''}: {size}, {promised}>"

    def _repr_html_(self) -> str:
        """For notebooks: the promise, and the cells without their rows."""
        lines = (line for part in self.parts for line in part._listed())
        total = sum(len(part.cells) + (part.grid is not None) for part in self.parts)
        columns = ["columns", "cell", "values", "coins", "gamma", "first values"]
        start = 0 if self.parts[0].columns else 1  # a plan from a histogram alone names no column
        cells = table(columns[start:], (line[start:] for line in lines), total=total, what="cells")
        return title(repr(self)) + paragraph(self.guarantee) + cells


def _coins(channel: Channel) -> str:
    low, high = float(channel.coins.min()), float(channel.coins.max())
    return f"{percent(low)} to {percent(high)}" if high > low else percent(low)


def _gamma(exact: Fraction | None) -> str:
    return "unbounded" if exact is None else f"{float(exact):.3g}"


# -- How a table was published, as its owner should know it: by what, why, and how accurate typical answers will be.


@dataclass(frozen=True)
class Choice:
    """How a table was published, as its owner should know it.

    Attributes:
        mechanism: its name.
        chosen: what the planner took, and why; nothing where the owner named the mechanism.
        rows: of the table.
        expected: share of the rows that a count is about -> the mean relative error to expect of it.
        not_covered: the values that the promise does not cover, by name; nothing where it covers all.

    >>> import deniable as dn
    >>> import pyarrow as pa
    >>> table = pa.table({"sex": ["F", "M"] * 500, "disease": ["flu", "flu", "cold", "hiv", "flu"] * 200})
    >>> made = dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), mechanism="lineup", key=bytes(32))
    >>> print(made.choice.in_words)
    Expected errors: 12 % of a count of 100 people (10 % of the rows).
    """

    mechanism: str
    chosen: str
    rows: int
    expected: dict[float, float]
    not_covered: str

    @property
    def in_words(self) -> str:
        """The expected errors, as one reads them; nothing where none can be predicted."""
        if not self.expected:
            return ""
        said: list[str] = []
        for share, error in self.expected.items():
            people = f"{share * self.rows:,.0f}"
            first = not said
            said.append(
                f"{percent(error, 2)} of {'a count of ' if first else ''}{people}{' people' if first else ''} "
                f"({percent(share)}{' of the rows' if first else ''})"
            )
        return f"Expected errors: {', '.join(said)}."

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "mechanism": self.mechanism,
            "chosen": self.chosen,
            "expected": [{"share": share, "error": round(error, 4)} for share, error in self.expected.items()],
            "not_covered": self.not_covered,
        }
