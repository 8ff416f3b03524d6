"""One independently perturbed column, as estimation sees it: its coin, its values and their replacing masses."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.channels import NumberRange
from deniable.core.errors import ManifestError, QuestionError, option
from deniable.core.lineups import LineUpDesign
from deniable.core.part import Part
from deniable.estimation.mapped import Mapped
from deniable.estimation.model.lineups import LineUpFactor, LineUpStates
from deniable.estimation.model.tensor import Dense, Factor, stochastic
from deniable.estimation.predicates import Leaf, require_known
from deniable.estimation.published import Bools, Floats, Ints
from deniable.estimation.questions import as_numbers

EPOCH_ORDINAL = 719163  # of 1970-01-01


@dataclass(frozen=True, eq=False)
class PerturbedColumn:
    """A column with one coin.

    Attributes:
        name: of the column.
        coin: p.
        values: all values that may be published, without missing.
        masses: their replacing masses; one more, the last, where missing is a value.
        exempt: whether missing values are published as they are.
        hidden: whether its cells are not published, or its rows show sets; then it has no coin, and masses that mean
            nothing.
        mixture: the channel of all its hidden cells together, where that is published.
        design: of the sets, where its rows show line-ups.
        source: the column that it is a function of, and where each of that column's states goes.
    """

    name: str
    coin: float
    values: pa.Array
    masses: Floats
    exempt: bool
    hidden: bool = False
    mixture: Floats | None = None
    design: LineUpDesign | None = None
    source: tuple[PerturbedColumn, Ints] | None = None

    @classmethod
    def of(cls, part: Part, kind: str) -> PerturbedColumn:
        (name,) = part.columns
        exempt = part.missing == "exempt"
        values = values_of(part, name, kind)
        if part.range is not None:
            return cls(name, part.range.coin, values, part.range.weights(), exempt)
        if not part.channels:
            mixture = None if part.mixture is None else stochastic(part.mixture)
            return cls(name, 0.0, values, np.zeros(len(part.domain)), exempt, True, mixture, part.lineups)
        channel = part.channels[0]
        if len(part.channels) != 1 or (channel.keep != channel.keep[0]).any():
            raise QuestionError(
                f"{name!r} is not perturbed with one coin, so it cannot be combined with other columns."
            )
        order = np.argsort([value is None for value in part.domain], kind="stable")
        if order.tolist() != list(range(len(order))):
            raise ManifestError(f"manifest.json is damaged: missing is not the last value of {name!r}.")
        return cls(name, float(channel.coins[0]), values, channel.replacing, exempt)

    def factor(self) -> Factor | Dense | LineUpFactor:
        """The column's channel over its values."""
        if not self.hidden:
            return Factor(self.coin, self.masses, int(self.exempt))
        if self.design is not None:
            return LineUpFactor(LineUpStates(self.design, self.exempt))
        if self.mixture is None:
            raise QuestionError(
                f"The release publishes neither the cells of its rows nor the channel of {self.name!r} as a whole: "
                f"questions about it cannot be answered so. Fix: {option('method', 'four-state exact')}."
            )
        return Dense(self.name, self.mixture, int(self.exempt))

    def mapped(self, function: Mapped) -> PerturbedColumn:
        """A function of this column as a column: values with the same result are one, their masses added up."""
        if self.hidden:
            raise QuestionError(
                f"The channel of {self.name!r} is not the same for all values: a function of it cannot be grouped by. "
                f"Fix: group by {self.name!r}, or ask for values of the function in a condition."
            )
        known = function.compute(self.values)
        of_missing = function.compute(pa.nulls(1, self.values.type))[0].as_py()
        values = known.drop_null().unique()
        missing = len(self.masses) > len(self.values)
        places = pc.index_in(known, value_set=values).fill_null(len(values)).to_numpy().astype(np.int64)
        if missing or self.exempt:
            if of_missing is not None and (self.exempt or of_missing not in values.to_pylist()):
                raise QuestionError(f"{function.name} makes a value of missing ones, which cannot be grouped by here.")
            last = len(values) if of_missing is None else values.to_pylist().index(of_missing)
            if self.exempt and known.null_count:
                raise QuestionError(f"{function.name} has no value for some values of {self.name!r}. Fix: COALESCE.")
            places = np.append(places, last)
        masses = np.bincount(places[: len(self.masses)], weights=self.masses, minlength=len(values))
        return replace(self, values=values, masses=masses.astype(np.float64), source=(self, places))

    def numbers(self, numbers: Mapped) -> Floats:
        """What is added up for each state; 0 where there is no number."""
        missing = len(self.masses) - len(self.values) + int(self.exempt)
        return as_numbers(numbers, pa.concat_arrays([self.values, pa.nulls(missing, self.values.type)]))

    def mask(self, leaf: Leaf) -> Bools:
        """Which of the values, missing last where it is one, satisfy a condition."""
        inside = leaf.holds(self.values)
        return np.append(inside, leaf.missing) if len(self.masses) > len(self.values) else inside

    def states_of(self, leaf: Leaf) -> Bools:
        """The same over all states: one more, the last, where missing is published as it is."""
        return np.append(self.mask(leaf), np.full(int(self.exempt), leaf.missing))

    def require(self, leaf: Leaf) -> None:
        """Refuse values that the column cannot hold."""
        require_known(self.name, self.values, leaf.named, sensitive=True)

    def states(self, distinct: pa.Array) -> Ints:
        """The state of each published code, missing last: its place among the values; missing comes after them.

        Of line-ups a code stands for the number of its set.
        """
        if self.design is not None:
            return np.append(distinct.to_numpy(zero_copy_only=False), len(self.design.sets.lengths)).astype(np.int64)
        if self.source is not None:
            column, places = self.source
            own = column.states(distinct)
            return np.append(places, len(self.values))[np.minimum(own, len(places))]
        try:
            same = distinct.cast(self.values.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise _strange(self.name) from None
        position = pc.index_in(same, value_set=self.values)
        if position.null_count:
            raise _strange(self.name)
        return np.append(position.to_numpy(zero_copy_only=False), len(self.values)).astype(np.int64)

    def label(self, places: Ints) -> list[Hashable]:
        """The values at states."""
        array = pa.concat_arrays([self.values, pa.nulls(1, self.values.type)])
        return array.take(pa.array(places)).to_pylist()


def values_of(part: Part, column: str, kind: str) -> pa.Array:
    """All values that a sensitive column may hold, without missing."""
    if part.range is None:
        return pa.array(list(dict.fromkeys(value for value in part.column_values(column) if value is not None)))
    points = grid_values(part.range)
    if kind.startswith("decimal"):
        width, _, digits = kind.removesuffix(")").partition("(")
        points = points.cast(getattr(pa, width)(*map(int, digits.split(","))))
    return points.cast(pa.float32()) if kind == "float" else points  # 0.1 is another number in fewer bits


def sensitive_values(manifest: Any, column: str) -> pa.Array:
    """The same, of a column of a manifest."""
    return values_of(manifest.part_of(column), column, manifest.types[column])


def _strange(name: str) -> ManifestError:
    return ManifestError(f"The release's rows hold a value of {name!r} that its manifest does not list.")


@lru_cache(maxsize=32)
def grid_values(grid: NumberRange) -> pa.Array:
    """All points of a range, in the type that they are compared in."""
    numbers: Any = grid.numbers(np.arange(grid.grid))
    if grid.kind == "date":
        return pa.array((numbers - EPOCH_ORDINAL).astype(np.int32), pa.int32()).cast(pa.date32())
    return pa.array(numbers)
