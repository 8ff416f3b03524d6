"""Answering a parsed query: aggregates by group, each with its interval, then HAVING, ORDER BY and LIMIT."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deniable.core.errors import QuestionError, did_you_mean
from deniable.estimation.aggregates import Aggregate, Computed, Count
from deniable.estimation.answering import answer, group_columns, interval
from deniable.estimation.asking import Method, Options, asking
from deniable.estimation.linear import Term
from deniable.estimation.predicates import compare
from deniable.estimation.published import Bools, Published
from deniable.estimation.question import Question
from deniable.estimation.sql.conditions import NEGATED, OPERATORS, SWAPPED, Node, literal, shown
from deniable.estimation.sql.expressions import Expression, expressions_in
from deniable.estimation.sql.parsing import Item, Query, columns_of, parse


def sql(
    published: Published,
    question: str,
    *,
    method: Method = "inverse",
    calibrate: bool | None = None,
    confidence: float = 0.95,
) -> pa.Table:
    """Answer a question in SQL; every aggregate ``n`` comes with ``n_low`` and ``n_high``."""
    options = Options(method, calibrate, confidence)
    query = parse(question, published.manifest)
    return Answering(published, query, options).table()


def estimated(expression: Expression) -> Count | Computed:
    """The aggregate that an expression is; counts have methods of their own."""
    formula = expression.formula
    if isinstance(formula, Term) and formula.adds == "rows":
        return Count(formula.narrowed)
    return Computed(formula)


class Answering:
    """One query on its way to a result."""

    def __init__(self, published: Published, query: Query, options: Options) -> None:
        self.published, self.query, self.options = published, query, options
        self.ask = asking(published)
        self.hidden: list[Item] = []  # aggregates that only HAVING or ORDER BY name
        for node in (query.having, *query.order):
            self._find_hidden(node)

    def table(self) -> pa.Table:
        full = self._everything()
        if self.query.having is not None:
            full = full.filter(pa.array(self._holds(self.query.having, full, negated=False)))
        if self.query.order:
            full = full.take(self._sorted(full))
        rows = len(full)
        full = full.slice(
            min(self.query.offset, rows), rows if self.query.limit is None else min(self.query.limit, rows)
        )
        return full.select([name for item in self.query.items for name in columns_of(item)])

    def _items(self) -> list[Item]:
        return [*self.query.items, *self.hidden]

    def _everything(self) -> pa.Table:
        """Group columns and aggregates of all groups, named as selected; group columns also by their own name."""
        wanted: dict[Aggregate, None] = {Count(): None}
        wanted |= {estimated(item.what): None for item in self._items() if isinstance(item.what, Expression)}
        answered = answer(
            self.published,
            Question(self.query.where, tuple(self.query.groups), tuple(wanted), self.options),
        )
        groups = group_columns(self.ask, self.query.groups, answered)
        arrays = {f"group {name}": column for name, column in groups.items()}
        for item in self._items():
            if isinstance(item.what, str):
                arrays[item.name] = arrays[f"group {item.what}"]
                continue
            numbers = answered.by_aggregate[estimated(item.what)]
            for name, column in zip(columns_of(item), (numbers.value, *interval(numbers, self.options.z)), strict=True):
                flat = column.reshape(-1)
                arrays[name] = pa.array(flat, mask=np.isnan(flat))
        return pa.table(arrays)

    # -- HAVING and ORDER BY -----------------------------------------------------------------------------------------

    def _find_hidden(self, node: Node | None) -> None:
        if node is None:
            return
        known = {item.what for item in self._items()}
        for inner in expressions_in(node):
            expression = self.query.reader.read(inner)
            if expression not in known:
                self.hidden.append(Item(f"hidden {len(self.hidden)}", expression))
                known.add(expression)

    def _column(self, node: Node, full: pa.Table) -> pa.ChunkedArray:
        """The column of the result that an expression in HAVING or ORDER BY means."""
        if node.find(exp.AggFunc):
            expression = self.query.reader.read(node)
            return full[next(item.name for item in self._items() if item.what == expression)]
        if isinstance(node, exp.Column):
            for name in (node.name, f"group {node.name}"):
                if name in full.column_names:
                    return full[name]
            same = [name for name in full.column_names if name.removeprefix("group ").lower() == node.name.lower()]
            if same:
                return full[same[0]]
            known = [name for item in self.query.items for name in columns_of(item)]
            raise QuestionError(f"The result has no column {node.name!r}.{did_you_mean(node.name, known)}")
        if isinstance(node, exp.Paren):
            return self._column(node.this, full)
        raise QuestionError(f"{shown(node)} cannot be evaluated: name an aggregate or a column of the result.")

    def _holds(self, node: Node, full: pa.Table, *, negated: bool) -> Bools:
        if isinstance(node, exp.Paren):
            return self._holds(node.this, full, negated=negated)
        if isinstance(node, exp.Not):
            return self._holds(node.this, full, negated=not negated)
        if isinstance(node, exp.And | exp.Or):
            one, other = (self._holds(part, full, negated=negated) for part in (node.left, node.right))
            return one & other if isinstance(node, exp.And) != negated else one | other
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            inside = exp.and_(
                exp.GTE(this=node.this.copy(), expression=node.args["low"].copy()),
                exp.LTE(this=node.this.copy(), expression=node.args["high"].copy()),
            )
            return self._holds(inside, full, negated=negated)
        if type(node) in OPERATORS:
            return self._compared(node, full, negated)
        raise QuestionError(
            f"HAVING cannot hold {shown(node)}: compare an aggregate or a column of the result with a value."
        )

    def _compared(self, node: Node, full: pa.Table, negated: bool) -> Bools:
        operator = OPERATORS[type(node)]
        left, right = node.this, node.expression
        if isinstance(left, exp.Literal | exp.Neg):
            left, right, operator = right, left, SWAPPED[operator]
        value = literal(right)
        if value is None:
            raise QuestionError(f"{shown(node)} is never true.")
        column = self._column(left, full).combine_chunks()
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        result = compare(NEGATED[operator] if negated else operator, column, value)
        return np.asarray(result.to_numpy(zero_copy_only=False), dtype=bool)

    def _sorted(self, full: pa.Table) -> npt.NDArray[Any]:
        keys: dict[str, pa.ChunkedArray] = {}
        orders: list[tuple[str, str]] = []
        for place, node in enumerate(self.query.order):
            inner = node.this if isinstance(node, exp.Ordered) else node
            if isinstance(inner, exp.Literal) and inner.is_int:
                position = int(inner.this)
                if not 1 <= position <= len(self.query.items):
                    raise QuestionError(f"ORDER BY {position}: the question selects {len(self.query.items)} things.")
                keys[str(place)] = full[self.query.items[position - 1].name]
            else:
                keys[str(place)] = self._column(inner, full)
            if node.args.get("nulls_first"):
                keys[f"missing {place}"] = keys[str(place)].is_valid()
                orders.append((f"missing {place}", "ascending"))
            orders.append((str(place), "descending" if node.args.get("desc") else "ascending"))
        indices = pc.sort_indices(pa.table(keys), sort_keys=orders)
        return np.asarray(indices)
