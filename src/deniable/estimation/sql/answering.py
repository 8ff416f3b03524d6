"""Answering a parsed query: aggregates by group, each with its interval, then HAVING, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from deniable.core.errors import QuestionError, did_you_mean, option, worded
from deniable.core.values import Floats
from deniable.estimation.aggregates import Aggregate, Computed, Count
from deniable.estimation.answering import answer, group_columns, interval
from deniable.estimation.asking import Options, asking
from deniable.estimation.limits import reasons
from deniable.estimation.linear import Term
from deniable.estimation.mapped import Grouped
from deniable.estimation.model.weighed import Answers
from deniable.estimation.ordered import Extreme, Quantile, extremes, quantiles
from deniable.estimation.published import Published, with_columns
from deniable.estimation.question import Question
from deniable.estimation.sql.expressions import Expression, has_aggregate, outermost
from deniable.estimation.sql.literals import Node, is_literal, literal, shown
from deniable.estimation.sql.parsing import Item, Query, columns_of, group_column, hopeless_of, parse, read
from deniable.estimation.sql.reshaping import OverResultsError
from deniable.estimation.sql.results import Results, is_over_results
from deniable.estimation.sql.scope import Scope
from deniable.estimation.sql.values import APART, Scalar, replaced_in, value_of

NOTE = "deniable note"  # of a result's schema: what to know before believing it
PLACE = f"{APART}place"


def sql(published: Published, question: str, tables: Mapping[str, pa.Table], options: Options) -> pa.Table:
    """Answer a question in SQL; every aggregate ``n`` comes with ``n_low`` and ``n_high``, and with ``n_hopeless``, why
    nothing was learned, where that is so of any row shown."""
    statement, scope = read(question), Scope.of(published)

    def counted(select: exp.Select) -> pa.Table:
        return Answering(published, parse(select, Scope.of(published), tables), options).table()

    if not is_over_results(statement):
        try:
            return counted(statement)
        except OverResultsError:
            pass
    results = Results(counted, scope.is_column)
    return with_notes(*results.answer(statement))


def with_notes(table: pa.Table, notes: Sequence[str]) -> pa.Table:
    """A result with what to know before believing it, beside what it says already."""
    known = (table.schema.metadata or {}).get(NOTE.encode(), b"").decode()
    said = " ".join(dict.fromkeys([*([known] if known else []), *notes]))
    return table.replace_schema_metadata({NOTE: said}) if said else table


def estimated(expression: Expression) -> Count | Computed | Extreme | Quantile:
    """The aggregate that an expression is; counts have methods of their own."""
    formula = expression.what
    if isinstance(formula, Extreme | Quantile):
        return formula
    if isinstance(formula, Term) and formula.adds == "rows" and formula.number is None:
        return Count(formula.narrowed)
    return Computed(formula)


class Answering:
    """One query on its way to a result."""

    def __init__(self, published: Published, query: Query, options: Options) -> None:
        self.query, self.options = query, options
        self.hidden: list[Item] = []  # aggregates that only HAVING or ORDER BY name
        for node in (query.having, *query.order):
            self._find_hidden(node)
        self.rows = 0
        self._numbers: dict[str, Answers] = {}
        self.published = with_columns(published, tuple(query.scope.derived.values()))

    def table(self) -> pa.Table:
        parts = [self._everything(groups) for groups in self.query.groupings]
        full = pa.concat_tables(parts, promote_options="permissive") if len(parts) > 1 else parts[0]
        if self.query.having is not None:
            full = full.filter(self._holds(self.query.having, full))
        if self.query.order:
            full = full.take(self._sorted(full))
        kept = len(full)  # what a LIMIT of any size can leave
        limit = kept if self.query.limit is None else min(self.query.limit, kept)
        full = full.slice(min(self.query.offset, kept), limit)
        if self.options.simultaneous == "selected" and full.num_rows < self.rows:
            full = self._adjusted(full)
        shown = self._with_reasons(full)
        note = self._note(full.num_rows < self.rows)
        return with_notes(shown, [*self.query.scope.notes, *([] if note is None else [note])])

    def _with_reasons(self, full: pa.Table) -> pa.Table:
        """What is shown, with the reasons why nothing was learned beside the estimates that they are of."""
        chosen = []
        for item in self.query.items:
            why = hopeless_of(item)
            said = why in full.column_names and full[why].null_count < full.num_rows
            chosen += [*columns_of(item), *([why] if said else [])]
        return full.select(chosen)

    # -- selection -----------------------------------------------------------------------------------------------------

    def _adjusted(self, full: pa.Table) -> pa.Table:
        """The rows that are shown, with intervals for a selection."""
        z = self.options.z_selected(full.num_rows, self.rows)
        places = full[PLACE].to_numpy()
        for item in self.query.items:
            numbers = self._numbers.get(item.name)
            if numbers is not None:
                for name, column in zip(columns_of(item)[1:], interval(numbers, z), strict=True):
                    flat = column.reshape(-1)[places]
                    full = full.set_column(full.column_names.index(name), name, pa.array(flat, mask=np.isnan(flat)))
        return full

    def _note(self, selected: bool) -> str | None:
        """What to know of rows that were picked by their estimates."""
        by = [node for node in (self.query.having, *self.query.order) if node is not None and self._is_estimate(node)]
        if not selected or not by or self.rows < 2 or self.options.simultaneous:
            return None
        shown = worded(", or simultaneous='selected', which makes those shown hold on average", "")
        return (
            f"These rows were picked among {self.rows:,} by their estimates, which favours those that err upwards: "
            f"their intervals hold less often than they say. Ask with {option('simultaneous', True)}, which makes all "
            f"of them hold together{shown}."
        )

    def _is_estimate(self, node: Node) -> bool:
        names = {name for item in self.query.items if isinstance(item.what, Expression) for name in columns_of(item)}
        inner = node.this if isinstance(node, exp.Ordered) else node
        if isinstance(inner, exp.Literal) and inner.is_int and isinstance(node, exp.Ordered):
            place = int(inner.this) - 1
            return 0 <= place < len(self.query.items) and isinstance(self.query.items[place].what, Expression)
        columns = {column.name for column in node.find_all(exp.Column)}
        return has_aggregate(node) or bool(columns & names)

    @property
    def _shown(self) -> list[str]:
        """The columns of the result."""
        return [name for item in self.query.items for name in columns_of(item)]

    def _items(self) -> list[Item]:
        return [*self.query.items, *self.hidden]

    def _everything(self, groups: tuple[Grouped, ...]) -> pa.Table:
        """Group columns and aggregates of all groups, named as selected; group columns also by their own name."""
        every = [estimated(item.what) for item in self._items() if isinstance(item.what, Expression)]
        wanted: dict[Aggregate, None] = {Count(): None}
        wanted |= {one: None for one in every if not isinstance(one, Extreme | Quantile)}
        first = None if any(isinstance(one, Extreme | Quantile) for one in every) else self._first()
        question = Question(self.query.where, groups, tuple(wanted), self.options, first)
        answered = answer(self.published, question)
        columns = group_columns(asking(self.published), groups, answered)
        arrays = {group_column(name): column for name, column in columns.items()}
        rows = len(answered.keys) * len(answered.labels)
        arrays[PLACE] = pa.array(np.arange(rows))
        self.rows += rows
        for group in self.query.spelled.values():
            arrays.setdefault(group_column(group), pa.nulls(rows))
        for item in self._items():
            if isinstance(item.what, Scalar):
                arrays[item.name] = _spread(item.what, arrays, rows)
                continue
            *numbers, why = self._columns(item, question, answered)
            arrays |= dict(zip(columns_of(item), numbers, strict=True))
            if why.null_count < len(why):
                arrays[hopeless_of(item)] = why
        return pa.table(arrays)

    def _first(self) -> int | None:
        """How many rows a LIMIT leaves, where no other row can change them; None: all are needed."""
        query = self.query
        if query.limit is None or query.having is not None or query.order or len(query.groupings) > 1:
            return None
        return None if self.options.simultaneous else query.limit + query.offset

    def _columns(self, item: Item, question: Question, answered: Any) -> list[pa.Array]:
        """An aggregate's values, the ends of its intervals, and why nothing was learned, group by group."""
        expression = item.what
        assert isinstance(expression, Expression)
        what = estimated(expression)
        if isinstance(what, Extreme):
            exact = extremes(self.published, question, what, answered)
            return [exact, exact, exact, pa.nulls(len(exact), pa.string())]
        if isinstance(what, Quantile):
            columns = quantiles(self.published, question, what, answered)
            lost = np.isnan(columns[0]) & (columns[1] <= columns[2])
            why = reasons(lost, lost)
        else:
            numbers = answered.by_aggregate[what]
            if len(self.query.groupings) == 1:
                self._numbers[item.name] = numbers
            z = self.options.z_of(int((numbers.variance > 0).sum()))
            columns, why = [numbers.value, *interval(numbers, z)], numbers.hopeless(z)
        flat = [
            _rounded(column.reshape(-1), expression.decimals, up)
            for column, up in zip(columns, (0, -1, 1), strict=True)
        ]
        return [*(pa.array(column, mask=np.isnan(column)) for column in flat), why]

    # -- HAVING and ORDER BY -----------------------------------------------------------------------------------------

    def _find_hidden(self, node: Node | None) -> None:
        if node is None:
            return
        known = {item.what for item in self._items() if isinstance(item.what, Expression)}
        for inner in outermost(node):
            expression = self.query.reader.read(inner)
            if expression not in known:
                self.hidden.append(Item(f"{APART}hidden {len(self.hidden)}", expression))
                known.add(expression)

    def _result(self, node: Node, full: pa.Table) -> Node | None:
        """The column of the result that an expression in HAVING or ORDER BY means."""
        if any(inner is node for inner in outermost(node)):
            expression = self.query.reader.read(node)
            return value_of(next(item.name for item in self._items() if item.what == expression))
        group = self.query.spelled.get(self.query.scope.text(node))
        if group is not None:
            return value_of(group_column(group))
        if not isinstance(node, exp.Column):
            return None
        own = None if not self.query.scope.is_column(node.name) else self.query.scope.plain(node)
        for name in (node.name, group_column(node.name), *([] if own is None else [group_column(own)])):
            if name in full.column_names:
                return value_of(name)
        alike = (node.name.lower(), group_column(node.name).lower())
        same = [name for name in full.column_names if name.lower() in alike]
        if same:
            return value_of(same[0])
        raise QuestionError(f"The result has no column {node.name!r}.{did_you_mean(node.name, self._shown)}")

    def _computed(self, node: Node, full: pa.Table) -> pa.Array:
        made = self.query.scope.made(replaced_in(node, lambda inner: self._result(inner, full)), node)
        return _spread(made, {name: full[name] for name in made.columns}, full.num_rows)

    def _holds(self, node: Node, full: pa.Table) -> pa.Array:
        holds = self._computed(node, full)
        if not pa.types.is_boolean(holds.type) and not pa.types.is_null(holds.type):
            raise QuestionError(f"HAVING cannot hold {shown(node)}: compare it with a value.")
        return holds.cast(pa.bool_()).fill_null(False)

    def _sorted(self, full: pa.Table) -> npt.NDArray[Any]:
        keys: dict[str, pa.Array] = {}
        orders: list[tuple[str, str]] = []
        for place, node in enumerate(self.query.order):
            inner = node.this if isinstance(node, exp.Ordered) else node
            if isinstance(inner, exp.Literal) and inner.is_int:
                position = int(inner.this)
                if not 1 <= position <= len(self.query.items):
                    raise QuestionError(f"ORDER BY {position}: the question selects {len(self.query.items)} things.")
                keys[str(place)] = full[self.query.items[position - 1].name]
            elif is_literal(inner):
                raise QuestionError(f"ORDER BY {literal(inner)!r} orders nothing: name a column of the result.")
            elif isinstance(inner, exp.Column) and not inner.table and inner.name in self._shown:
                keys[str(place)] = full[inner.name]  # by itself, a name is one of the result before it is a column's
            else:
                keys[str(place)] = self._computed(inner, full)
            if node.args.get("nulls_first"):
                keys[f"missing {place}"] = keys[str(place)].is_valid()
                orders.append((f"missing {place}", "ascending"))
            orders.append((str(place), "descending" if node.args.get("desc") else "ascending"))
        return np.asarray(pc.sort_indices(pa.table(keys), sort_keys=orders))


def _spread(made: Scalar, columns: Mapping[str, pa.Array | pa.ChunkedArray], rows: int) -> pa.Array:
    """A scalar over the rows of a result."""
    whole = {name: columns[name] for name in made.columns} or {"": pa.nulls(rows)}
    plain = {name: c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for name, c in whole.items()}
    return made.compute(plain)


def _rounded(column: Floats, decimals: int | None, towards: int) -> Floats:
    """A value to the nearest, halves away from 0 as in SQL, the ends of an interval outwards."""
    if decimals is None:
        return column
    scale = 10.0**decimals
    scaled = np.round(column * scale, 6)
    away = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
    whole = away if towards == 0 else np.floor(scaled) if towards < 0 else np.ceil(scaled)
    return np.asarray(whole / scale, np.float64)
