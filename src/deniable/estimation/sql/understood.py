"""What of SQL is understood: every kind of node and every argument of it that a question may have.

A parser knows more than we answer. Whatever it hands over and we do not read would be ignored silently, so anything
that is not listed here is refused.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from deniable.core.errors import QuestionError
from deniable.estimation.sql.literals import shown

_BOTH = frozenset({"this", "expression"})
_THIS = frozenset({"this"})
UNDERSTOOD: dict[type, frozenset[str]] = {
    exp.Select: frozenset(
        {"expressions", "from", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct"}
        | {"with", "with_"}
    ),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind"}),
    exp.From: _THIS,
    exp.Table: frozenset({"this", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Star: frozenset(),
    exp.Count: frozenset({"this", "big_int"}),  # big_int: of the parser's own making, it says nothing
    exp.Sum: _THIS,
    exp.Avg: _THIS,
    exp.Filter: _BOTH,
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow), _BOTH),
    exp.CountIf: _THIS,
    **dict.fromkeys((exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop, exp.Median), _THIS),
    **dict.fromkeys((exp.Min, exp.Max), _THIS),
    exp.Quantile: frozenset({"this", "quantile"}),
    **dict.fromkeys((exp.PercentileCont, exp.PercentileDisc, exp.WithinGroup), _BOTH),
    exp.Distinct: frozenset({"expressions"}),
    # Functions of columns.
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.Abs, exp.Sqrt, exp.Ln, exp.Exp), _THIS),
    **dict.fromkeys((exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfWeek), _THIS),
    **dict.fromkeys((exp.Floor, exp.Ceil), _THIS),
    **dict.fromkeys((exp.Left, exp.Right, exp.StartsWith, exp.Contains, exp.Nullif, exp.Extract), _BOTH),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.DPipe: frozenset({"this", "expression", "safe"}),  # safe and coalesce: what DuckDB does anyway
    exp.Concat: frozenset({"expressions", "safe", "coalesce"}),
    exp.Replace: frozenset({"this", "expression", "replacement"}),
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc), frozenset({"this", "unit"})),
    exp.Var: _THIS,
    exp.Round: frozenset({"this", "decimals"}),
    exp.Coalesce: frozenset({"this", "expressions"}),
    **dict.fromkeys((exp.Greatest, exp.Least), frozenset({"this", "expressions", "ignore_nulls"})),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _BOTH),
    exp.Where: _THIS,
    exp.Having: _THIS,
    exp.Group: frozenset({"expressions", "all"}),
    **dict.fromkeys((exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple), frozenset({"expressions"})),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Paren: _THIS,
    exp.Not: _THIS,
    exp.And: _BOTH,
    exp.Or: _BOTH,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _BOTH),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Between: frozenset({"this", "low", "high", "symmetric"}),
    exp.Is: frozenset({"this", "expression", "negate"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.ILike: frozenset({"this", "expression", "negate"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: _THIS,
    exp.Null: frozenset(),
    exp.Neg: _THIS,
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to", "safe"}),  # safe: that it is a TRY_CAST
    exp.DataType: frozenset({"this", "nested"}),
}


def require_understood(tree: Any) -> None:
    """Refuse a node of a kind that is not listed, and any argument that would be passed over."""
    for node in tree.walk():
        known = UNDERSTOOD.get(type(node))
        if known is None:
            raise QuestionError(f"{shown(node)} is not understood, so the question is not answered.")
        for name, value in node.args.items():
            if name not in known and value is not None and value is not False and value != []:
                raise QuestionError(
                    f"{shown(node)} says {name.strip('_').replace('_', ' ').upper()}, which is not understood: the "
                    "question is not answered rather than answered without it."
                )
