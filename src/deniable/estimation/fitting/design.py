"""What enters a model: columns as numbers, categories as indicators, conditions as 0 and 1."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.errors import QuestionError, shortened
from deniable.estimation.asking import asking
from deniable.estimation.model.columns import sensitive_values
from deniable.estimation.predicates import Between, Leaf, Not, Where, conjunction, require_known
from deniable.estimation.published import Floats, Published
from deniable.estimation.questions import is_number, require_column

MOST_INDICATORS = 200
Named = str | Where  # a column, or a condition that is 1 where it holds and 0 where it does not


@dataclass(frozen=True, eq=False)
class Atom:
    """A number for each value of a column; not a number where there is none.

    Attributes:
        column: its name.
        numbers: values, missing ones among them -> numbers.
    """

    column: str
    numbers: Callable[[pa.Array], Floats]


@dataclass(frozen=True, eq=False)
class Variable:
    """A column of the design: the product of atoms, scaled as (product - centre) / scale while a model is fitted."""

    name: str
    atoms: tuple[Atom, ...]
    centre: float = 0.0
    scale: float = 1.0


def condition_atoms(published: Published, where: Where | None) -> tuple[Atom, ...]:
    """A condition as a product of zeros and ones, one factor for each column."""
    atoms = []
    for leaf in conjunction(where).parts:
        assert isinstance(leaf, Leaf)
        values = values_of(published, leaf.column)
        require_known(leaf.column, values, leaf.named, sensitive=_is_sensitive(published, leaf.column))
        atoms.append(Atom(leaf.column, _truth(leaf)))
    return tuple(atoms)


def _truth(leaf: Leaf) -> Callable[[pa.Array], Floats]:
    def numbers(values: pa.Array) -> Floats:
        truth = np.full(len(values), float(leaf.missing))
        truth[values.is_valid().to_numpy(zero_copy_only=False)] = leaf.holds(values.drop_null())
        return truth

    return numbers


def _is_sensitive(published: Published, column: str) -> bool:
    return column in asking(published).manifest.sensitive_columns


def values_of(published: Published, column: str) -> pa.Array:
    """All values that a column may have, without missing."""
    ask = asking(published)
    require_column(ask.manifest, column)
    if _is_sensitive(published, column):
        return sensitive_values(ask.published, column)
    return ask.counter.distinct(column)


def _as_numbers(values: pa.Array) -> Floats:
    return pc.cast(values, pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)


def numeric(published: Published, name: Named) -> Variable:
    """A column of numbers or of truth values, or a condition, as one variable."""
    if not isinstance(name, str):
        return Variable(said(name), condition_atoms(published, name))
    values = values_of(published, name)
    if not is_number(values.type) and not pa.types.is_boolean(values.type):
        raise QuestionError(
            f"Column {name!r} is of type {values.type}, not a number. Fix: ask for a condition on it, "
            f"{{{name!r}: value}}, which counts 1 where it holds and 0 where it does not."
        )
    known = _as_numbers(values)
    spread = float(known.std()) if len(known) else 0.0
    return Variable(name, (Atom(name, _as_numbers),), float(known.mean()) if len(known) else 0.0, spread or 1.0)


def variables(published: Published, names: Sequence[Named]) -> list[Variable]:
    """Regressors: numbers as they are, other columns as indicators of all values but the first, conditions as 0/1."""
    if isinstance(names, str | Mapping) or not isinstance(names, Sequence):
        raise QuestionError(
            f"regressors = {shortened(names)} is not a list of columns and conditions: write ['age', {{'ill': 'flu'}}]."
        )
    made: list[Variable] = []
    for name in names:
        if isinstance(name, str) and not is_number((values := values_of(published, name)).type):
            made += _indicators(name, values)
        else:
            made.append(numeric(published, name))
    if not made:
        raise QuestionError("A model needs at least one regressor: name a column or a condition.")
    return made


def _indicators(column: str, values: pa.Array) -> list[Variable]:
    known = sorted(values.to_pylist(), key=lambda value: (str(type(value)), value))
    if not 2 <= len(known) <= MOST_INDICATORS:
        raise QuestionError(
            f"Column {column!r} has {len(known):,} different value{'s' * (len(known) != 1)}: categories are 2 to "
            f"{MOST_INDICATORS}. Fix: name those that matter as conditions, {{{column!r}: value}}."
        )
    return [Variable(f"{column} = {value}", (Atom(column, _indicator(value)),)) for value in known[1:]]


def _indicator(value: Hashable) -> Callable[[pa.Array], Floats]:
    def numbers(values: pa.Array) -> Floats:
        same = [np.nan if other is None else float(other == value) for other in values.to_pylist()]
        return np.array(same, np.float64)

    return numbers


def said(where: Where) -> str:
    """A condition in words, as the name of its coefficient."""
    return " and ".join(f"{column} {_said(condition)}" for column, condition in where.items()) or "everybody"


def _said(condition: object) -> str:
    if isinstance(condition, Not):
        return f"not {_said(condition.condition)}"
    if isinstance(condition, Between):
        return f"between {condition.low} and {condition.high}"
    if condition is None:
        return "is missing"
    if isinstance(condition, list | tuple | set | frozenset):
        return f"in {', '.join(str(value) for value in condition)}"
    return f"= {condition}"


def categories(published: Published, name: Named) -> list[Variable]:
    """The indicators of all values of a column but the first, whatever its type; of a condition its own."""
    return _indicators(name, values_of(published, name)) if isinstance(name, str) else [numeric(published, name)]
