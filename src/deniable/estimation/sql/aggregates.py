"""The aggregates of SQL as formulas over a question's rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from deniable.core.errors import QuestionError
from deniable.estimation.formula import (
    Constant,
    Correlation,
    Formula,
    Present,
    Product,
    Ratio,
    Spread,
    Widened,
    added,
    times,
)
from deniable.estimation.linear import Narrowed, Term
from deniable.estimation.mapped import Mapped, edges_of, plain
from deniable.estimation.ordered import Extreme, Quantile
from deniable.estimation.predicates import And, Predicate, complement
from deniable.estimation.sql.conditions import Conditions
from deniable.estimation.sql.literals import Node, is_literal, literal, shown
from deniable.estimation.sql.scope import Scope

SPREADS: dict[type, tuple[str, bool, bool]] = {  # name, whether of a sample, whether its root
    exp.Stddev: ("stddev", True, True),
    exp.StddevSamp: ("stddev", True, True),
    exp.StddevPop: ("stddev_pop", False, True),
    exp.Variance: ("variance", True, False),
    exp.VariancePop: ("var_pop", False, False),
}
ORDERED: dict[type, str] = {
    exp.Median: "median",
    exp.Quantile: "quantile",
    exp.PercentileCont: "quantile",
    exp.PercentileDisc: "quantile",
    exp.Min: "min",
    exp.Max: "max",
}
PAIRS: dict[type, str] = {  # of two expressions; in REGR_* the outcome comes first
    exp.Corr: "corr",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
    exp.RegrCount: "regr_count",
    exp.RegrAvgx: "regr_avgx",
    exp.RegrAvgy: "regr_avgy",
    exp.RegrSxx: "regr_sxx",
    exp.RegrSyy: "regr_syy",
    exp.RegrSxy: "regr_sxy",
}
AGGREGATES: dict[type, str] = {
    exp.Count: "count",
    exp.CountIf: "count_if",
    exp.Sum: "sum",
    exp.Avg: "avg",
    **{kind: name for kind, (name, _, _) in SPREADS.items()},
    **PAIRS,
}


@dataclass(frozen=True)
class Condition:
    """A condition as it reads, and as a predicate."""

    text: str
    predicate: Predicate


class Aggregates:
    """Reads the aggregates of one query; equal conditions are read once, so that they are counted once."""

    def __init__(self, scope: Scope, conditions: Conditions) -> None:
        self.scope, self.conditions = scope, conditions
        self._narrowed: dict[tuple[str, str], Narrowed] = {}

    def name(self, node: Node) -> str | None:
        """What the result of one plain aggregate is called: count, sum_age, min_age; None for anything else."""
        if isinstance(node, exp.Count) and _counts_rows(node):
            return "count"
        function = AGGREGATES.get(type(node)) or ORDERED.get(type(node))
        single = function is not None and type(node) not in PAIRS and isinstance(node.this, exp.Column)
        column = self.scope.plain(node.this) if single else None
        return None if column is None else f"{function}_{column}"

    def formula(self, node: Node, where: Node | None) -> Formula:
        """One aggregate of the question's rows, or of those that satisfy FILTER (WHERE ..)."""
        inside = [] if where is None else [self._condition(where)]
        if type(node) in PAIRS:
            return self._pair(node, inside)
        function, inner = AGGREGATES[type(node)], node.this
        if function == "count" and _counts_rows(node):
            return Term("rows", None, self.narrowed(inside))
        if isinstance(inner, exp.Distinct) or inner is None or node.expressions:
            raise QuestionError(f"{function.upper()} takes one column or expression, not {shown(node)}.")
        if function == "count_if":
            return Term("rows", None, self.narrowed([*inside, self._condition(inner)]))
        if isinstance(inner, exp.Case) and self._is_sensitive(inner):
            return self._case(function, inner, inside)
        if function == "count":
            return Term("rows", None, self.narrowed([*inside, self._present(inner)]))
        total, present = self._sum(inner, inside)
        if function == "sum":
            return Present(total, present)
        if function == "avg":
            return Ratio(total, present, (total,))
        _, sample, root = SPREADS[type(node)]
        once, squares = self._powers(inner, inside)
        return Spread(once, once, squares, present, sample, root)

    def _pair(self, node: Node, inside: list[Condition]) -> Formula:
        """How two expressions go together among the rows that have both: sums of each, of squares and of products."""
        outcome, regressor = node.this, node.expression
        inside = [*inside, self._present(outcome), self._present(regressor)]
        rows, kind = Term("rows", None, self.narrowed(inside)), PAIRS[type(node)]
        if kind == "regr_count":
            return rows
        (y, yy), (x, xx) = self._powers(outcome, inside), self._powers(regressor, inside)
        means = [
            added(Ratio(total, rows), Constant(self._middle(one))) for total, one in ((y, outcome), (x, regressor))
        ]
        if kind in ("regr_avgy", "regr_avgx"):
            return means[kind == "regr_avgx"]
        of_y, of_x = Spread(y, y, yy, rows), Spread(x, x, xx, rows)
        if kind in ("regr_syy", "regr_sxx"):
            return Product(of_y if kind == "regr_syy" else of_x, rows)
        xy = self._sum_of_products(outcome, regressor, inside)
        common = Spread(y, x, xy, rows, kind == "covar_samp")
        slope = Ratio(common, of_x)
        if kind in ("corr", "regr_r2"):
            return Correlation(common, of_y, of_x, kind == "regr_r2")
        if kind == "regr_sxy":
            return Product(common, rows)
        if kind == "regr_intercept":
            return added(means[0], times(-1.0, Product(slope, means[1])))
        return slope if kind == "regr_slope" else common

    # -- sums ----------------------------------------------------------------------------------------------------------

    def _sum(self, node: Node, inside: list[Condition]) -> tuple[Formula, Term]:
        """What an expression adds up to, and how many rows have a value of it."""
        made = self.scope.scalar(node)
        if not made.columns:
            number, rows = made.constant(), Term("rows", None, self.narrowed(inside))
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise QuestionError(f"{shown(node)} is no number: only numbers can be added up or averaged.")
            return times(float(number), rows), rows
        column = self.scope.column(node)
        if isinstance(column, str) and not self.scope.sensitive(column):
            narrowed = self.narrowed(inside)
            return Term("values", column, narrowed), Term("present", column, narrowed)
        present = Term("rows", None, self.narrowed([*inside, self._present(node)]))
        bins = self.scope.bins.get(column) if isinstance(column, str) else None
        if bins is not None and isinstance(column, str):
            lower, upper = (Term("rows", None, self.narrowed(inside, numbers)) for numbers in edges_of(column, bins))
            return Widened(lower, upper), present
        numbers = column if isinstance(column, Mapped) else plain(column)
        return Term("rows", None, self.narrowed(inside, numbers)), present

    def _powers(self, node: Node, inside: list[Condition]) -> tuple[Formula, Formula]:
        """What the numbers and their squares add up to, both from a middle: else large numbers would cancel."""
        moved = self._moved(node)
        return self._sum(moved, inside)[0], self._sum(_product(moved, moved), inside)[0]

    def _middle(self, node: Node) -> float:
        return self.scope.middle(self.scope.column(node))

    def _moved(self, node: Node) -> Node:
        """The numbers from their middle."""
        middle = exp.Literal.number(self._middle(node))
        return exp.Paren(this=exp.Sub(this=exp.Paren(this=node.copy()), expression=middle))

    def _sum_of_products(self, one: Node, other: Node, inside: list[Condition]) -> Formula:
        """What the products of two expressions, each from its middle, add up to."""
        moved = [self._moved(one), self._moved(other)]
        sensitive = [self._is_sensitive(node) for node in moved]
        columns = {column for node in moved for column in self.scope.scalar(node).columns}
        if not any(sensitive) or len(columns) == 1:
            return self._sum(_product(*moved), inside)[0]
        if all(sensitive):
            named = [repr(node.name or {"column": "value"}) for node in (one, other)]
            raise QuestionError(
                f"{shown(one)} and {shown(other)} are both perturbed: SQL adds up products with a public column. "
                "Python answers for columns and conditions, with where= for those of rows. "
                f"Fix: release.correlation({named[0]}, {named[1]})"
            )
        public, hidden = moved if sensitive[1] else reversed(moved)
        column, numbers = self.scope.column(public), self.scope.column(hidden)
        assert isinstance(column, str)
        assert isinstance(numbers, Mapped)
        return Term("values", column, self.narrowed(inside, numbers))

    def _case(self, function: str, case: Node, inside: list[Condition]) -> Formula:
        """CASE with conditions on sensitive columns: each branch is a further condition on the rows."""
        if function not in ("count", "sum", "avg"):
            raise QuestionError(
                f"{function.upper()} of {shown(case)}: ask for it with FILTER (WHERE ..) instead of CASE."
            )
        totals: list[Formula] = []
        averaged: list[Formula] = []
        counts: list[Formula] = []
        earlier: list[Condition] = []
        branches = [(when.this, when.args["true"]) for when in case.args["ifs"]]
        branches.append((None, case.args.get("default") or exp.Null()))
        for when, then in branches:
            here = [*inside, *earlier]
            if when is not None:
                condition = self._condition(when if case.this is None else exp.EQ(this=case.this, expression=when))
                here.append(condition)
                earlier.append(Condition(f"NOT TRUE {condition.text}", complement(condition.predicate)))
            if is_literal(then) and literal(then) is None:
                continue
            total, present = (
                (None, Term("rows", None, self.narrowed([*here])))
                if function == "count" and is_literal(then)
                else self._sum(then, here)
            )
            if total is not None:
                averaged.append(total)
                if not (isinstance(then, exp.Literal) and literal(then) == 0):
                    totals.append(total)
            counts.append(present)
        if not counts:
            raise QuestionError(f"{shown(case)} is always NULL.")
        every = all(is_literal(then) and literal(then) is not None for _, then in branches)
        rows = Term("rows", None, self.narrowed(inside)) if every else added(*counts)
        if function == "count":
            return rows
        total = added(*totals) if totals else Constant(0.0)
        return Present(total, rows) if function == "sum" else Ratio(total, rows, tuple(averaged))

    # -- order ---------------------------------------------------------------------------------------------------------

    def ordered(self, node: Node) -> Extreme | Quantile | None:
        """MIN, MAX, COUNT(DISTINCT ..), MEDIAN and quantiles; None for other aggregates."""
        inside: list[Condition] = []
        if isinstance(node, exp.Filter):
            inside, node = [self._condition(node.expression.this)], node.this
        share: Node | None = None
        if isinstance(node, exp.WithinGroup):
            inner, order = node.this, node.expression.expressions
            if not isinstance(inner, exp.PercentileCont | exp.PercentileDisc) or len(order) != 1:
                raise QuestionError(f"{shown(node)} is not understood: write QUANTILE_CONT(column, 0.9).")
            if order[0].args.get("desc"):
                raise QuestionError(f"{shown(node)} orders downwards: ask for 1 - the share, upwards.")
            return self._quantile(inner, order[0].this, inner.this, inside)
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            if len(node.this.expressions) != 1:
                raise QuestionError(f"{shown(node)}: COUNT(DISTINCT ..) takes one column.")
            return self._extreme("distinct", node.this.expressions[0], inside)
        if isinstance(node, exp.Min | exp.Max):
            if node.expressions:
                raise QuestionError(f"{shown(node)} takes one column.")
            return self._extreme("min" if isinstance(node, exp.Min) else "max", node.this, inside)
        if isinstance(node, exp.Median):
            share = exp.Literal.number("0.5")
        elif isinstance(node, exp.Quantile):
            share = node.args["quantile"]
        elif isinstance(node, exp.PercentileCont | exp.PercentileDisc):
            share = node.expression
        else:
            return None
        return self._quantile(node, node.this, share, inside)

    def _extreme(self, kind: str, inner: Node, inside: list[Condition]) -> Extreme:
        column = self.scope.column(inner)
        if isinstance(column, Mapped) or self.scope.sensitive(column):
            name = column.column if isinstance(column, Mapped) else column
            what = "how many different values there are" if kind == "distinct" else f"its {kind}imum"
            raise QuestionError(
                f"{name!r} is sensitive, and every value of it appears by chance: {what} hangs on single rows, which "
                f"are perturbed. Of numbers QUANTILE_CONT({name}, 0.99) is answered. Fix: SELECT {name}, COUNT(*) AS n "
                f"FROM release GROUP BY {name}"
            )
        return Extreme(kind, column, self.narrowed(inside))

    def _quantile(self, node: Node, inner: Node, share: Node | None, inside: list[Condition]) -> Quantile:
        value = literal(share) if share is not None and is_literal(share) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
            raise QuestionError(f"{shown(node)}: the share is a number above 0 and below 1, for example 0.9.")
        smooth = not isinstance(node, exp.PercentileDisc | exp.Quantile)
        return Quantile(float(value), self.scope.column(inner), smooth, self.narrowed(inside))

    # -- conditions ----------------------------------------------------------------------------------------------------

    def _is_sensitive(self, node: Node) -> bool:
        return any(
            self.scope.sensitive(column)
            for part in node.find_all(exp.Column)
            for column in self.scope.scalar(part).columns
        )

    def _condition(self, node: Node) -> Condition:
        return Condition(self.scope.text(node), self.conditions.predicate(node))

    def _present(self, node: Node) -> Condition:
        return self._condition(exp.Not(this=exp.Is(this=node.copy(), expression=exp.Null())))

    def narrowed(self, inside: list[Condition], numbers: Mapped | None = None) -> Narrowed | None:
        """Further conditions, and numbers of a sensitive column to add up, as one; the same ones are one object."""
        if not inside and numbers is None:
            return None
        key = (" AND ".join(sorted(f"({one.text})" for one in inside)), "" if numbers is None else numbers.name)
        if key not in self._narrowed:
            parts = tuple(one.predicate for one in inside)
            self._narrowed[key] = Narrowed(parts[0] if len(parts) == 1 else And(parts), numbers)
        return self._narrowed[key]


def _product(one: Node, other: Node) -> Node:
    return exp.Paren(this=exp.Mul(this=one.copy(), expression=other.copy()))


def _counts_rows(node: Node) -> bool:
    """COUNT(*), or COUNT of a value that is written out."""
    inner = node.this
    return inner is None or isinstance(inner, exp.Star) or (is_literal(inner) and literal(inner) is not None)
