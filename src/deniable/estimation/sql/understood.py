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
# What DuckDB computes of values that are known: whatever it says is written out again, so nothing of it is passed over.
# Every one is a function of its arguments alone: no clock, no chance, no file, no setting.
COMPUTED: tuple[Any, ...] = (
    *(exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.Is, exp.Like, exp.ILike),
    *(
        exp.NullSafeEQ,
        exp.NullSafeNEQ,
        exp.RegexpLike,
        exp.SimilarTo,
        exp.RegexpFullMatch,
        exp.RegexpExtract,
        exp.RegexpReplace,
        exp.Glob,
    ),
    *(exp.Case, exp.If, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Coalesce, exp.Nullif),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.Neg, exp.Abs, exp.Sign, exp.Sqrt),
    *(exp.Cbrt, exp.Ln, exp.Log, exp.Exp, exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Greatest, exp.Least),
    *(exp.Lower, exp.Upper, exp.Initcap, exp.Length, exp.Trim, exp.Substring, exp.Left, exp.Right, exp.Pad),
    *(exp.Reverse, exp.Repeat, exp.DPipe, exp.Concat, exp.ConcatWs, exp.Replace, exp.Translate, exp.StrPosition),
    *(exp.SplitPart, exp.StartsWith, exp.EndsWith, exp.Contains, exp.Unicode, exp.Chr, exp.Levenshtein),
    *(exp.JarowinklerSimilarity, exp.IsNan, exp.IsInf),
    *(exp.Year, exp.Quarter, exp.Month, exp.Week, exp.WeekOfYear, exp.Day, exp.DayOfMonth, exp.DayOfWeek),
    *(exp.DayOfWeekIso, exp.DayOfYear, exp.Dayname, exp.Monthname, exp.Hour, exp.Minute, exp.Second, exp.LastDay),
    *(exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.DateDiff, exp.DateAdd, exp.DateSub, exp.TsOrDsToDate),
    *(exp.DateFromParts, exp.TimeToStr, exp.StrToTime, exp.TimeToUnix, exp.Interval, exp.IntervalSpan, exp.Var),
)
NAMED = frozenset(  # such functions that the parser has no kind of node for
    {"date_part", "datepart", "date_sub", "datesub", "century", "decade", "weekday", "yearweek"}
    | {"even", "isfinite", "prefix", "suffix", "ord", "bar", "strip_accents"}
    | {"hamming", "damerau_levenshtein"}
)
FUNCTIONS = (  # those that a refusal names
    "ABS, CEIL, CONCAT, CONTAINS, DATE_DIFF, DATE_TRUNC, DAY, DAYOFWEEK, EXTRACT, FLOOR, GREATEST, LEAST, LEFT, "
    "LENGTH, LN, LOWER, LPAD, MONTH, NULLIF, POWER, QUARTER, REGEXP_EXTRACT, REGEXP_MATCHES, REPLACE, RIGHT, ROUND, "
    "SPLIT_PART, SQRT, STARTS_WITH, STRFTIME, STRPTIME, SUBSTR, TRIM, TRY_CAST, UPPER, WEEK or YEAR"
)
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
    exp.CountIf: _THIS,
    **dict.fromkeys((exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop, exp.Median), _THIS),
    **dict.fromkeys((exp.Min, exp.Max), _THIS),
    **dict.fromkeys((exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2), _BOTH),
    **dict.fromkeys((exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy, exp.RegrSxx, exp.RegrSyy, exp.RegrSxy), _BOTH),
    exp.Quantile: frozenset({"this", "quantile"}),
    **dict.fromkeys((exp.PercentileCont, exp.PercentileDisc, exp.WithinGroup), _BOTH),
    exp.Distinct: frozenset({"expressions"}),
    exp.Where: _THIS,
    exp.Having: _THIS,
    exp.Group: frozenset({"expressions", "all"}),
    **dict.fromkeys((exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple), frozenset({"expressions"})),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Paren: _THIS,
    exp.And: _BOTH,
    exp.Or: _BOTH,
    exp.Exists: _THIS,
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: _THIS,
    exp.Null: frozenset(),
    **{kind: frozenset(kind.arg_types) for kind in COMPUTED},
}
# What is computed of results besides: windows over them, and what counts them.
OVER_RESULTS: tuple[Any, ...] = (
    *(exp.Window, exp.WindowSpec, exp.Qualify, exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist),
    *(exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Min, exp.Max, exp.Sum, exp.Avg),
    *(exp.Count, exp.CountIf, exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop, exp.Median),
    *(exp.Quantile, exp.Corr, exp.ArgMax, exp.ArgMin, exp.Select, exp.Subquery, exp.Join, exp.Table, exp.Ordered),
)

# What is not answered in SQL, and what is asked instead.
BY_VALUE = ("mode", "string_agg", "group_concat", "listagg", "array_agg", "list", "any_value", "histogram")


def advise(tree: Any) -> None:
    """Refuse aggregates that have another way to an answer, and name it."""
    for node in tree.find_all(exp.Func):
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
        columns = [column.name for column in node.find_all(exp.Column)]
        if name in BY_VALUE and columns:
            raise QuestionError(
                f"{shown(node)} needs the values of single rows, which are perturbed where they are sensitive. Fix: "
                f"SELECT {columns[0]}, COUNT(*) AS n FROM release GROUP BY {columns[0]} ORDER BY n DESC"
            )


def require_over_results(tree: Any) -> None:
    """The same of what is computed with results; whatever it says is written out again."""
    for node in tree.walk():
        named = isinstance(node, exp.Anonymous) and str(node.this).lower() in NAMED
        if type(node) not in UNDERSTOOD and not isinstance(node, OVER_RESULTS) and not named:
            raise QuestionError(f"{shown(node)} is not understood, so the question is not answered.")


def require_understood(tree: Any) -> None:
    """Refuse a node of a kind that is not listed, and any argument that would be passed over."""
    for node in tree.walk():
        if isinstance(node, exp.Anonymous) and str(node.this).lower() in NAMED:
            continue
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            raise QuestionError(f"A question reads the release itself: write FROM release, not {shown(node)}.")
        known = UNDERSTOOD.get(type(node))
        if known is None and isinstance(node, exp.Func):
            raise QuestionError(
                f"{shown(node)} is not a function that can be computed here. Fix: +, -, *, /, %, CASE, CAST, COALESCE, "
                f"comparisons, or {FUNCTIONS}."
            )
        if known is None:
            raise QuestionError(f"{shown(node)} is not understood, so the question is not answered.")
        for name, value in node.args.items():
            if name not in known and value is not None and value is not False and value != []:
                raise QuestionError(
                    f"{shown(node)} says {name.strip('_').replace('_', ' ').upper()}, which is not understood: the "
                    "question is not answered rather than answered without it."
                )
