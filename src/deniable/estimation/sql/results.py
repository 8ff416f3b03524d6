"""Questions over results: UNION, windows, scalar subqueries, and SELECTs that count or join what others have counted.

What reads the release is answered as ever, with its intervals; what is computed from such results is computed by the
locked database, row by row of the results. A column that is taken over as it is keeps its interval; one that is
computed from estimates has none, and a note says so.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from deniable.core.errors import QuestionError, listing
from deniable.estimation.sql.database import run
from deniable.estimation.sql.grouping import groupings
from deniable.estimation.sql.literals import Node, shown
from deniable.estimation.sql.scope import TABLE
from deniable.estimation.sql.understood import require_over_results

ENDS = ("_low", "_high")
BESIDE = (*ENDS, "_hopeless")  # what may stand beside an estimate
RESULT = "\x1fresult"
MOST = 64  # SELECTs in one question
WINDOWS = (exp.Window, exp.Qualify)
Counted = Callable[[exp.Select], pa.Table]
IsColumn = Callable[[str], bool]


def is_over_results(statement: Node) -> bool:
    """Whether a question computes with results, as far as its form tells."""
    if statement.find(exp.SetOperation, *WINDOWS) is not None:
        return True
    return any(_is_scalar(inner) and _reads_release(inner) for inner in statement.find_all(exp.Subquery))


def _is_scalar(node: Node) -> bool:
    return isinstance(node, exp.Subquery) and not isinstance(
        node.parent, exp.From | exp.Join | exp.SetOperation | exp.In
    )


def _reads_release(node: Node) -> bool:
    """Whether it reads the release, or something that is named in WITH."""
    named = {one.alias.lower() for root in [node.root()] for one in root.find_all(exp.CTE)}
    return any(table.name.lower() in {TABLE, *named} for table in node.find_all(exp.Table))


def aggregated(select: exp.Select) -> bool:
    """Whether a SELECT counts; a window alone does not."""
    if any(select.args.get(clause) for clause in ("group", "having", "distinct")):
        return True
    every = [inner for item in select.expressions for inner in item.find_all(exp.AggFunc)]
    return any(not isinstance(inner.parent, exp.Window) for inner in every)


def items_of(table: pa.Table) -> list[list[str]]:
    """The columns of a result: each with the ends of its interval and why it is hopeless, where it has them."""
    names, items = table.column_names, []
    for name in names:
        if not any(name == f"{other}{end}" for other in names for end in BESIDE):
            items.append([name, *(f"{name}{end}" for end in BESIDE if f"{name}{end}" in names)])
    return items


def quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="duckdb")


@dataclass
class Results:
    """Answers one question over results.

    Attributes:
        counted: answers a SELECT that reads the release.
        is_column: whether the release has a column of this name.
    """

    counted: Counted
    is_column: IsColumn
    _selects: int = 0
    _computed: set[str] = field(default_factory=set)  # names of what is computed from estimates
    _notes: list[str] = field(default_factory=list)

    def answer(self, statement: Node) -> tuple[pa.Table, list[str]]:
        """The result, and what to know before believing it."""
        table = self._table(statement, {}, [])
        computed = [item[0] for item in items_of(table) if len(item) == 1 and item[0] in self._computed]
        if computed:
            self._notes.append(f"Computed from estimates, and so without an interval: {listing(computed)}.")
        return table, self._notes

    def _uncertain(self, table: pa.Table) -> bool:
        """Whether a result holds estimates."""
        items = items_of(table)
        known = all(table[item[1]].equals(table[item[2]]) for item in items if len(item) >= 3)
        return not known or any(item[0] in self._computed for item in items)

    # -- one SELECT after the other ------------------------------------------------------------------------------------

    def _table(self, node: Node, known: Mapping[str, pa.Table], rows: Sequence[exp.CTE]) -> pa.Table:
        """The result of a SELECT or of several; ``rows`` are parts of WITH that only reshape the release's rows."""
        self._selects += 1
        if self._selects > MOST:
            raise QuestionError(f"The question has more than {MOST} SELECTs. Fix: ask in parts.")
        while isinstance(node, exp.Subquery | exp.Paren):
            node = node.this
        node = node.copy()
        known, rows = self._named(node, known, rows)
        if isinstance(node, exp.SetOperation):
            return self._together(node, known, rows)
        if not isinstance(node, exp.Select):
            raise QuestionError(f"{shown(node)} is not a SELECT.")
        if self._of_results(node, known):
            return self._over(node, known, rows)
        return self._of_rows(node, known, rows)

    def _named(
        self, node: Node, known: Mapping[str, pa.Table], rows: Sequence[exp.CTE]
    ) -> tuple[Mapping[str, pa.Table], Sequence[exp.CTE]]:
        clause = node.args.pop("with_", None) or node.args.pop("with", None)
        for one in [] if clause is None else clause.expressions:
            if clause.args.get("recursive"):
                raise QuestionError("WITH RECURSIVE is not supported: ask one SELECT.")
            if self._is_result(one.this, known):
                table = self._table(one.this, known, rows)
                names = one.args["alias"].args.get("columns") or []
                if names:
                    given = dict(
                        zip([item[0] for item in items_of(table)], [name.name for name in names], strict=False)
                    )
                    table = table.rename_columns([_renamed(name, given) for name in table.column_names])
                known = {**known, one.alias.lower(): table}
            else:
                rows = [*rows, one]
        return known, rows

    def _is_result(self, node: Node, known: Mapping[str, pa.Table]) -> bool:
        inner = node.unnest() if isinstance(node, exp.Subquery) else node
        if isinstance(inner, exp.SetOperation):
            return True
        return isinstance(inner, exp.Select) and (aggregated(inner) or self._of_results(inner, known))

    def _of_results(self, select: exp.Select, known: Mapping[str, pa.Table]) -> bool:
        """Whether a SELECT reads results, and not the release's rows."""
        source = select.args.get("from_") or select.args.get("from")
        if source is None:
            return False
        if isinstance(source.this, exp.Table):
            return source.this.name.lower() in known
        return self._is_result(source.this, known)

    # -- several SELECTs together --------------------------------------------------------------------------------------

    def _together(self, node: exp.SetOperation, known: Mapping[str, pa.Table], rows: Sequence[exp.CTE]) -> pa.Table:
        parts = [self._table(part, known, rows) for part in (node.this, node.expression)]
        items = [items_of(part) for part in parts]
        if len(items[0]) != len(items[1]):
            raise QuestionError(
                f"One SELECT has {len(items[0])} columns, and the other {len(items[1])}: they need as many."
            )
        texts = []
        for number, own in enumerate(items):
            columns = []
            for first, mine, other in zip(items[0], own, items[1 - number], strict=True):
                columns.append(f"{quoted(mine[0])} AS {quoted(first[0])}")
                for end in BESIDE:
                    if f"{mine[0]}{end}" in mine:
                        columns.append(f"{quoted(f'{mine[0]}{end}')} AS {quoted(f'{first[0]}{end}')}")
                    elif f"{other[0]}{end}" in other:  # what is exact has an interval of one number
                        value = quoted(mine[0]) if end in ENDS else "CAST(NULL AS VARCHAR)"
                        columns.append(f"{value} AS {quoted(f'{first[0]}{end}')}")
            texts.append(f"SELECT {', '.join(columns)} FROM {quoted(f'{RESULT}{number}')}")
        kind = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}[type(node)]
        joined = f" {kind}{'' if node.args.get('distinct') else ' ALL'} ".join(texts)
        ends = _ends(node, [item[0] for item in items[0]])
        tables = {f"{RESULT}{number}": part for number, part in enumerate(parts)}
        return run(f"SELECT * FROM ({joined}) AS together{ends}", tables)

    # -- a SELECT that reads the release -------------------------------------------------------------------------------

    def _of_rows(self, select: exp.Select, known: Mapping[str, pa.Table], rows: Sequence[exp.CTE]) -> pa.Table:
        uncertain = self._with_scalars(select, known, rows)
        if not uncertain and select.find(*WINDOWS) is None:
            return self._asked_of_rows(select, rows)
        for made, subquery in uncertain:
            if made.find_ancestor(exp.AggFunc, exp.Filter, exp.Where, exp.Group, exp.Join) is not None:
                raise QuestionError(
                    f"{subquery} is an estimate, and rows are compared with it, so no interval would hold its error. "
                    f"Fix: ask for it, and write its number: {subquery}"
                )
        return self._split(select, rows, bool(uncertain))

    def _asked_of_rows(self, select: exp.Select, rows: Sequence[exp.CTE]) -> pa.Table:
        if rows:
            select.set("with_", exp.With(expressions=[one.copy() for one in rows]))
        return self.counted(select)

    def _with_scalars(
        self, node: Node, known: Mapping[str, pa.Table], rows: Sequence[exp.CTE]
    ) -> list[tuple[Node, str]]:
        """Put the values of scalar subqueries in their place; those that are estimates are returned."""
        uncertain: list[tuple[Node, str]] = []
        for inner in [one for one in node.find_all(exp.Subquery) if _is_scalar(one)]:
            tables = {table.name.lower() for table in inner.find_all(exp.Table)}
            if not tables & {TABLE, *known, *(one.alias.lower() for one in rows)}:
                continue  # of lookup tables: the database computes it
            table = self._table(inner.this, known, rows)
            (first, *ends), *others = items_of(table) or [[""]]
            if others or table.num_rows != 1:
                raise QuestionError(
                    f"{shown(inner)} is used as one value, and has {table.num_rows} rows of {1 + len(others)}."
                )
            value = table[first][0].as_py()
            made = _literal(value)
            if first in self._computed or any(table[end][0].as_py() != value for end in ends[:2]):
                made = exp.Paren(this=made)
                made.meta["estimate"] = True
                uncertain.append((made, inner.this.sql(dialect="duckdb")))
            inner.replace(made)
        return uncertain

    def _split(self, select: exp.Select, rows: Sequence[exp.CTE], uncertain: bool) -> pa.Table:
        """Count first, by group; windows and what else is computed from results follow."""
        if not aggregated(select):
            raise QuestionError(
                f"{shown(select.expressions[0])} needs single rows, whose sensitive values are perturbed; a window is "
                f"computed over counts. Fix: {self._advice(select)}"
            )
        grouped = groupings(select, self.is_column)
        if len(grouped) != 1:
            raise QuestionError("Windows over ROLLUP, CUBE and GROUPING SETS are not understood. Fix: one GROUP BY.")
        groups = {f"g{place}": node.copy() for place, node in enumerate(grouped[0])}
        of_text = {node.sql(dialect="duckdb"): name for name, node in groups.items()}
        aggregates: dict[str, Node] = {}
        outer = select.copy()
        named = {item.alias.lower() for item in outer.expressions if isinstance(item, exp.Alias)}
        plain: dict[str, str] = {}
        computed: list[str] = []
        for place, item in enumerate(outer.expressions):
            inner = item.this if isinstance(item, exp.Alias) else item
            name = item.alias_or_name or inner.sql(dialect="duckdb")
            made = _replaced(inner.copy(), of_text, aggregates)
            if isinstance(made, exp.Column) and made.name.startswith("a") and made.name[1:].isdigit():
                plain[name] = made.name
            elif _uses_aggregates(made) or any("estimate" in one.meta for one in made.find_all(exp.Paren)):
                computed.append(name)
            outer.expressions[place] = exp.alias_(made, name, quoted=True)
        for clause in ("having", "qualify", "order"):
            part = outer.args.get(clause)
            if part is not None:
                outer.set(clause, _replaced(part, of_text, aggregates, named))
        inner = select.copy()
        for clause in ("having", "qualify", "order", "limit", "offset", "distinct"):
            inner.set(clause, None)
        items = [exp.alias_(node.copy(), name) for name, node in {**groups, **aggregates}.items()]
        inner.set("expressions", items)
        inner.set("group", exp.Group(expressions=[node.copy() for node in groups.values()]) if groups else None)
        table = self._asked_of_rows(inner, rows)
        if uncertain or self._uncertain(table):
            self._computed |= set(computed)
        having = outer.args.get("having")
        whole = exp.select(*outer.expressions, dialect="duckdb").from_(exp.to_table(RESULT, dialect=None, quoted=True))
        for name, aggregate in plain.items():
            for end in BESIDE:
                if f"{aggregate}{end}" in table.column_names:
                    whole = whole.select(
                        exp.alias_(exp.column(f"{aggregate}{end}", quoted=True), f"{name}{end}", quoted=True)
                    )
        whole.args["from_" if "from_" in whole.args else "from"].set(
            "this", exp.Table(this=exp.to_identifier(RESULT, quoted=True))
        )
        if having is not None:
            whole.set("where", exp.Where(this=having.this))
        for clause in ("qualify", "order", "limit", "offset"):
            whole.set(clause, outer.args.get(clause))
        made = self._run(whole, {RESULT: table})
        return made.select([name for item in self._in_order(outer, made) for name in item])

    def _in_order(self, outer: exp.Select, made: pa.Table) -> list[list[str]]:
        known = {item[0]: item for item in items_of(made)}
        return [known[item.alias_or_name] for item in outer.expressions]

    def _advice(self, select: exp.Select) -> str:
        name = next((column.name for column in select.find_all(exp.Column) if self.is_column(column.name)), None)
        group = "" if name is None else f"{name}, "
        return f"SELECT {group}COUNT(*) AS n FROM {TABLE}" + (f" GROUP BY {name}" if name else "")

    # -- a SELECT that reads results -----------------------------------------------------------------------------------

    def _over(self, select: exp.Select, known: Mapping[str, pa.Table], rows: Sequence[exp.CTE]) -> pa.Table:
        self._with_scalars(select, known, rows)
        tables: dict[str, pa.Table] = {}
        sources: dict[str, pa.Table] = {}
        for source in [select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or [])]:
            inner = source.this
            alias = inner.alias_or_name.lower()
            if isinstance(inner, exp.Table) and inner.name.lower() in known:
                table = known[inner.name.lower()]
            elif isinstance(inner, exp.Subquery) and self._is_result(inner, known):
                table = self._table(inner.this, known, rows)
            else:
                raise QuestionError(
                    f"{shown(inner)} is joined with results. Fix: count it in a subquery of its own, "
                    f"SELECT COUNT(*) AS n FROM {TABLE}"
                )
            name = f"{RESULT}{len(tables)}"
            tables[name] = sources[alias] = table
            source.set(
                "this",
                exp.Table(
                    this=exp.to_identifier(name, quoted=True),
                    alias=exp.TableAlias(this=exp.to_identifier(alias or name, quoted=True)),
                ),
            )
        uncertain = any(map(self._uncertain, tables.values()))
        if not aggregated(select):
            for item in list(select.expressions):
                self._keep_interval(select, item, sources, uncertain)
        elif uncertain:
            self._computed |= {
                item.alias_or_name or item.sql(dialect="duckdb")
                for item in select.expressions
                if item.find(exp.AggFunc)
            }
        return self._run(select, tables)

    def _keep_interval(self, select: exp.Select, item: Node, sources: Mapping[str, pa.Table], uncertain: bool) -> None:
        """A column that is taken over takes the ends of its interval with it."""
        inner = item.this if isinstance(item, exp.Alias) else item
        if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
            return
        name = item.alias_or_name or inner.sql(dialect="duckdb")
        holding = [
            (alias, column)
            for alias, table in sources.items()
            for column in table.column_names
            if isinstance(inner, exp.Column)
            and inner.table.lower() in ("", alias)
            and column.lower() == inner.name.lower()
        ]
        if len(holding) == 1 and holding[0][1] in self._computed:
            self._computed.add(name)
        if len(holding) == 1 and f"{holding[0][1]}_low" in sources[holding[0][0]].column_names:
            alias, column = holding[0]
            at = select.expressions.index(item) + 1
            ends = [
                exp.alias_(exp.column(f"{column}{end}", table=alias, quoted=True), f"{name}{end}", quoted=True)
                for end in BESIDE
                if f"{column}{end}" in sources[alias].column_names
            ]
            select.set("expressions", [*select.expressions[:at], *ends, *select.expressions[at:]])
        elif uncertain and not isinstance(inner, exp.Column) and inner.find(exp.Column) is not None:
            self._computed.add(name)

    def _run(self, select: exp.Select, tables: Mapping[str, pa.Table]) -> pa.Table:
        require_over_results(select)
        return run(select.sql(dialect="duckdb"), tables)


def _renamed(name: str, given: Mapping[str, str]) -> str:
    for old, new in given.items():
        for end in ("", *BESIDE):
            if name == f"{old}{end}":
                return f"{new}{end}"
    return name


def _ends(node: Node, names: Sequence[str]) -> str:
    """ORDER BY, LIMIT and OFFSET of several SELECTs together; places are those of the columns that were written."""
    order = node.args.get("order")
    for ordered in [] if order is None else order.expressions:
        inner = ordered.this
        if isinstance(inner, exp.Literal) and inner.is_int:
            if not 1 <= int(inner.this) <= len(names):
                raise QuestionError(f"ORDER BY {inner.this}: the question selects {len(names)} things.")
            ordered.set("this", exp.column(names[int(inner.this) - 1], quoted=True))
    parts = [node.args.get(clause) for clause in ("order", "limit", "offset")]
    for part in parts:
        if part is not None:
            require_over_results(part)
    return "".join(f" {part.sql(dialect='duckdb').strip()}" for part in parts if part is not None)


def _replaced(
    node: Node, groups: Mapping[str, str], aggregates: dict[str, Node], named: Sequence[str] | set[str] = ()
) -> Node:
    """An expression in which groups and aggregates are columns of what was counted; ``aggregates`` gathers them."""
    if isinstance(node, exp.Window):
        for name in ("this", "partition_by", "order", "spec"):
            part = node.args.get(name)
            if name == "this":
                for child in [] if part is None else list(part.iter_expressions()):
                    child.replace(_replaced(child, groups, aggregates, named))
            elif isinstance(part, list):
                node.set(name, [_replaced(one, groups, aggregates, named) for one in part])
            elif part is not None:
                node.set(name, _replaced(part, groups, aggregates, named))
        return node
    text = node.sql(dialect="duckdb")
    if text in groups and not (isinstance(node, exp.Column) and not node.table and node.name.lower() in named):
        return exp.column(groups[text], quoted=True)
    if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup):
        same = next((own for own, known in aggregates.items() if known.sql(dialect="duckdb") == text), None)
        own = same or f"a{len(aggregates)}"
        aggregates.setdefault(own, node.copy())
        return exp.column(own, quoted=True)
    for child in list(node.iter_expressions()):
        made = _replaced(child, groups, aggregates, named)
        if made is not child:
            child.replace(made)
    return node


def _uses_aggregates(node: Node) -> bool:
    return any(column.name.startswith("a") and column.name[1:].isdigit() for column in node.find_all(exp.Column))


def _literal(value: Any) -> Node:
    if isinstance(value, datetime.date):
        return exp.cast(exp.Literal.string(str(value)), "TIMESTAMP" if isinstance(value, datetime.datetime) else "DATE")
    if value is None or isinstance(value, bool):
        return exp.Null() if value is None else exp.Boolean(this=value)
    if isinstance(value, int | float | Decimal):
        text = repr(float(value)) if isinstance(value, float | Decimal) else str(value)
        return (
            exp.Literal.number(text.lstrip("-"))
            if not text.startswith("-")
            else exp.Neg(this=exp.Literal.number(text[1:]))
        )
    return exp.Literal.string(str(value))
