"""How two columns go together, in SQL: CORR, COVAR_* and REGR_*."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import QuestionError
from deniable.estimation.formula import Correlation, Formula, Product, Ratio, Spread, evaluate, terms_of
from deniable.estimation.linear import Term

N, RELEASES = 1500, 300
RHO = dn.Privacy(rho1="1/5", rho2="3/5")
ROWS, X, Y, XX, YY, XY = (Term("values", name) for name in ("rows", "x", "y", "xx", "yy", "xy"))
SUMS = {ROWS: 100.0, X: 30.0, Y: -20.0, XX: 250.0, YY: 90.0, XY: 60.0}
COMMON, OF_X, OF_Y = Spread(Y, X, XY, ROWS, True), Spread(X, X, XX, ROWS), Spread(Y, Y, YY, ROWS)


def correlation(s: Mapping[Term, float]) -> float:
    n = s[ROWS]
    return (s[XY] / n - s[X] * s[Y] / n**2) / np.sqrt((s[XX] / n - (s[X] / n) ** 2) * (s[YY] / n - (s[Y] / n) ** 2))


FORMULAS: dict[str, tuple[Formula, Callable[[Mapping[Term, float]], float]]] = {
    "covariance": (COMMON, lambda s: (s[XY] - s[X] * s[Y] / s[ROWS]) / (s[ROWS] - 1)),
    "product": (Product(Ratio(X, ROWS), OF_Y), lambda s: s[X] / s[ROWS] * (s[YY] / s[ROWS] - (s[Y] / s[ROWS]) ** 2)),
    "correlation": (Correlation(Spread(Y, X, XY, ROWS), OF_Y, OF_X), correlation),
    "its square": (Correlation(Spread(Y, X, XY, ROWS), OF_Y, OF_X, squared=True), lambda s: correlation(s) ** 2),
}


class Sums:
    """Sums that are known, but one that has a variance: what is said of a formula is its derivative by that one."""

    def __init__(self, uncertain: Term, error: float) -> None:
        self.uncertain, self.error = uncertain, error
        self.rows = {None: np.zeros((1, 1))}

    def value(self, term: Term) -> np.ndarray:
        return np.full((1, 1), SUMS[term])

    def bounds(self, term: Term) -> tuple[np.ndarray, np.ndarray]:
        return np.full((1, 1), -np.inf), np.full((1, 1), np.inf)

    def variance(self, slopes: Mapping[Term, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        own = np.square(slopes.get(self.uncertain, np.zeros((1, 1))) * self.error)
        return own, own


@pytest.mark.parametrize("name", FORMULAS)
def test_errors_follow_the_derivatives(name: str) -> None:
    formula, exact = FORMULAS[name]
    for term in set(terms_of(formula)):
        error = 1e-6 * abs(SUMS[term])
        answer = evaluate(formula, Sums(term, error), 1.96, lambda _: (-1e9, 1e9))  # type: ignore[arg-type]
        assert answer.value[0, 0] == pytest.approx(exact(SUMS))
        ends = [exact(SUMS | {term: SUMS[term] + sign * error}) for sign in (1, -1)]
        assert np.sqrt(answer.variance[0, 0]) == pytest.approx(abs(ends[0] - ends[1]) / 2, rel=1e-3, abs=1e-15)


def people(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, N)
    grade = np.clip(age // 20 + rng.integers(-2, 3, N), 0, 5)
    return pa.table({"age": pa.array(age, mask=rng.random(N) < 0.05), "sex": rng.choice(["F", "M"], N), "grade": grade})


ASKED = (
    *("CORR(age, grade)", "REGR_SLOPE(grade, age)", "REGR_SLOPE(age, grade)", "REGR_INTERCEPT(grade, age)"),
    *("REGR_R2(age, grade)", "COVAR_SAMP(age, grade)", "REGR_SYY(grade, age)"),
)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["uniform", "lineup"])
def test_intervals_hold_the_truth(mechanism: str) -> None:
    """By 300 releases of one table: five standard errors of a share about .95."""
    table = people(1)
    question = f"SELECT {', '.join(f'{what} AS a{i}' for i, what in enumerate(ASKED))} FROM release WHERE sex = 'F'"
    with duckdb.connect() as connection:
        connection.register("release", table)
        truth = connection.execute(question).fetchall()[0]
    held = np.zeros(len(ASKED))
    for number in range(RELEASES):
        key = number.to_bytes(32, "big")
        release = dn.publish(table, sensitive="grade", privacy=RHO, mechanism=mechanism, key=key)
        (row,) = release.sql(question).to_pylist()
        held += [row[f"a{i}_low"] <= true <= row[f"a{i}_high"] for i, true in enumerate(truth)]
    assert (np.abs(held / RELEASES - 0.95) < 5 * np.sqrt(0.95 * 0.05 / RELEASES)).all(), dict(
        zip(ASKED, held, strict=True)
    )


def test_no_correlation_leaves_its_square_an_error() -> None:
    """The tangent of a square is flat at 0: an interval of width 0 was not meant."""
    rng = np.random.default_rng(3)
    table = pa.table({"x": rng.integers(0, 9, N), "y": rng.integers(0, 5, N)})
    release = dn.publish(table, sensitive="y", privacy=RHO, mechanism="uniform", key=bytes(32))
    (row,) = release.sql("SELECT REGR_R2(y, x) AS r2, CORR(y, x) AS r FROM release").to_pylist()
    assert row["r2_low"] == 0
    assert row["r2_high"] >= 0.99 * max(row["r_low"] ** 2, row["r_high"] ** 2)


def test_what_does_not_vary_has_none() -> None:
    table = pa.table({"x": [1] * 500, "y": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] * 50})
    release = dn.publish(table, sensitive="y", privacy=RHO, mechanism="uniform", key=bytes(32))
    (row,) = release.sql("SELECT CORR(y, x) AS r, REGR_SLOPE(y, x) AS b, COVAR_POP(y, x) AS c FROM release").to_pylist()
    assert (row["r"], row["b"], row["c"]) == (None, None, 0)


def test_two_perturbed_columns_are_for_python() -> None:
    table = pa.table({"x": [0, 1, 2, 3] * 50, "y": [0, 1, 1, 2] * 50})
    release = dn.publish(
        table, mechanism=dn.mechanisms.Retention({"x": dn.Replace(0.5), "y": dn.Replace(0.5)}), key=bytes(32)
    )
    with pytest.raises(QuestionError, match="both perturbed") as refused:
        release.sql("SELECT CORR(x, y) AS r FROM release")
    assert -1 <= eval(str(refused.value).split("Fix: ")[1], {"release": release}).value <= 1
