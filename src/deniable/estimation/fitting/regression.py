"""A fitted model: coefficients, each an estimate with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deniable.core.errors import QuestionError, did_you_mean, listing
from deniable.core.text import table
from deniable.estimation.asking import Options
from deniable.estimation.estimate import Estimate, by_column
from deniable.estimation.fitting.design import Named, condition_atoms, numeric, said, values_of, variables
from deniable.estimation.fitting.model import Kind, Model
from deniable.estimation.predicates import Where
from deniable.estimation.published import Floats, Published

INTERCEPT = "intercept"


@dataclass(frozen=True, repr=False, eq=False)
class Regression(Mapping[str, Estimate]):
    """Coefficients by name, ``intercept`` first.

    Attributes:
        kind: ``"linear"`` or ``"logit"``.
        outcome: what is explained.
        names: of the coefficients.
        coefficients: their values, in the order of the names.
        covariance: of the coefficients [coefficients, coefficients].
        rows: how many rows the model is about, estimated where a perturbed column decides it.
        confidence: of the intervals.
        population: whether errors hold the sampling of people, too; else they hold the randomization alone.
    """

    kind: Kind
    outcome: str
    names: tuple[str, ...]
    coefficients: Floats
    covariance: Floats
    rows: float
    confidence: float
    population: bool

    def __getitem__(self, name: str) -> Estimate:
        if name not in self.names:
            raise QuestionError(
                f"There is no coefficient {name!r}.{did_you_mean(name, self.names)} The model has: "
                f"{listing(list(self.names), most=20)}."
            )
        place = self.names.index(name)
        error = float(np.sqrt(max(self.covariance[place, place], 0.0)))
        return Estimate(float(self.coefficients[place]), error, self.confidence, method=self.kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def table(self) -> pa.Table:
        """Coefficient, value, stderr, value_low and value_high, a row each."""
        return pa.table({"coefficient": list(self.names), **by_column(list(self.values()))})

    def __repr__(self) -> str:
        width = max(len(name) for name in self.names)
        meant = "the population" if self.population else "this table"
        lines = [f"<{self.kind} model of {self.outcome} in {meant}, {self.rows:,.0f} rows"]
        lines += [
            f"  {name:{width}}  {one if one.stderr > 0 else f'{one.value:.6g}, exactly'}" for name, one in self.items()
        ]
        return "\n".join(lines) + ">"

    def _repr_html_(self) -> str:
        """For notebooks."""
        columns = ["coefficient", "value", "stderr", "from", "to"]
        rows = [(name, *(f"{x:.4g}" for x in (e.value, e.stderr, e.low, e.high))) for name, e in self.items()]
        return table(columns, rows, total=len(rows))


def regression(
    published: Published,
    kind: Kind,
    outcome: Named,
    regressors: Sequence[Named],
    where: Where | None,
    population: bool,
    options: Options,
) -> Regression:
    """Fit a model to the originals behind a release's rows."""
    y, x = numeric(published, outcome), variables(published, regressors)
    if kind == "logit" and isinstance(outcome, str):
        _require_truth(published, outcome)
    names = (INTERCEPT, *(one.name for one in x))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise QuestionError(f"The regressor {twice!r} is given twice. Fix: name it once.")
    fit = Model.of(published, y, x, condition_atoms(published, where), kind).fitted(options.z, population)
    response = outcome if isinstance(outcome, str) else said(outcome)
    return Regression(kind, response, names, fit.coefficients, fit.covariance, fit.rows, options.confidence, population)


def _require_truth(published: Published, outcome: str) -> None:
    values = values_of(published, outcome).to_pylist()
    if any(value not in (0, 1) for value in values):
        raise QuestionError(
            f"A logistic model explains what holds or does not; column {outcome!r} has other values than 0 and 1. "
            f"Fix: give a condition, {{{outcome!r}: value}}, or ask for linear(..)."
        )
