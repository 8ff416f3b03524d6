"""OptRR: an evolutionary search over matrices, what it promises, and how it is published and asked."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.audit.verify.rivals import by_matrix
from deniable.core.errors import OptionError, RequirementError, VerificationError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.core.promise import Matrix
from deniable.mechanisms import MECHANISMS, Designed, OptRR
from deniable.rivals.optrr.matrix import as_mixture, in_whole_numbers, of_mixture, surest
from deniable.rivals.optrr.search import Problem, searched

COUNTS = Histogram(tuple("abcdefgh"), np.array([2200, 2000, 1500, 1300, 1000, 1000, 600, 400]))
PRIVACY = Privacy(rho2="1/3")
QUICK = OptRR(population=12, generations=15)
N = 6000


def people() -> pa.Table:
    rng = np.random.default_rng(7)
    jobs = rng.choice(list("abcdefgh"), N, p=COUNTS.relative)
    return pa.table({"sex": rng.choice(["F", "M"], N), "job": jobs})


def published(table: pa.Table, **options: Any) -> dn.Release:
    given_ = {"sensitive": "job", "mechanism": QUICK, "privacy": PRIVACY, "key": bytes(32)}
    return dn.publish(table, **{**given_, **options})


def problem() -> Problem:
    return Problem(COUNTS.relative, np.full(8, 1 / 3))


def test_objectives_are_the_largest_posterior_and_the_variance_of_counts() -> None:
    """Against the definition, entry by entry, and against counts that are drawn."""
    rng = np.random.default_rng(2)
    matrix = 0.6 * np.eye(3) + 0.4 * rng.dirichlet(np.ones(3), 3).T
    shares, limits = np.array([0.5, 0.3, 0.2]), np.array([0.9, 0.8, np.inf])
    ((privacy, error),) = Problem(shares, limits).objectives(matrix[None])
    by_hand = max(
        shares[x] * matrix[y, x] / sum(shares[k] * matrix[y, k] for k in range(3)) / limits[x]
        for x in range(2)
        for y in range(3)
    )
    assert privacy == pytest.approx(by_hand)
    rows, draws = 1000, 4000
    counts = (rows * shares).astype(int)
    shown = np.array([[rng.multinomial(n, matrix[:, x]) for x, n in enumerate(counts)] for _ in range(draws)]).sum(1)
    squared = ((shown @ np.linalg.inv(matrix).T - counts) ** 2).mean()
    assert squared == pytest.approx(error * rows, rel=0.06)  # 12,000 squares of normal draws: 5 deviations are 0.065


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_matrices_are_brought_back_to_the_limits_and_no_further(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(5, 3.0))
    limits = np.where(rng.random(5) < 0.7, np.minimum(shares + rng.random(5) * 0.3 + 1e-3, 1.0), np.inf)
    own = Problem(shares, limits)
    matrices = rng.dirichlet(np.full(5, 0.5), (3, 5)).swapaxes(1, 2)
    back = own.returned(matrices)
    assert back.sum(1) == pytest.approx(np.ones((3, 5)))
    assert (own.posteriors(back) <= limits + 1e-9).all()
    beyond = (own.posteriors(matrices) > limits + 1e-9).any((1, 2))
    assert back[~beyond] == pytest.approx(matrices[~beyond])
    reached = (own.posteriors(back) / limits).max((1, 2))
    assert reached[beyond] == pytest.approx(np.ones(int(beyond.sum())), abs=1e-6)


def test_the_search_gets_better_and_is_the_same_every_time() -> None:
    own = problem()
    errors = [own.objectives(searched(own, np.random.default_rng(1), 20, n)[None])[0] for n in (1, 30, 120)]
    assert all(privacy <= 1 + 1e-9 for privacy, _ in errors)
    assert errors[2][1] < errors[1][1] < errors[0][1]
    once, again = (searched(own, np.random.default_rng(5), 20, 10) for _ in range(2))
    assert np.array_equal(once, again)


def test_a_short_search_comes_near_what_is_designed() -> None:
    own = problem()
    found, designed = (own.objectives(np.array(_matrix(mechanism))[None])[0][1] for mechanism in (OptRR(), Designed()))
    assert 0.8 * designed < found < 1.5 * designed


def _matrix(mechanism: Any) -> Any:
    plan = mechanism.plan(COUNTS, PRIVACY)
    part = plan.parts[0]
    return plan.cells[0].channel.matrix() if part.mixture is None else part.mixture


@pytest.mark.parametrize("noise", [None, 3, -3])
def test_the_certificate_holds_for_the_true_counts_in_whole_numbers(noise: int | None) -> None:
    public = None if noise is None else Histogram(COUNTS.domain, COUNTS.counts + noise)
    plan = QUICK.plan(COUNTS, PRIVACY, public=public)
    mixture = plan.parts[0].mixture
    assert mixture is not None
    exact = of_mixture(mixture)
    assert as_mixture(exact) == mixture, "published as the whole numbers that are used"
    assert [sum(column) for column in zip(*exact, strict=True)] == [2**32] * 8
    for place, cell in enumerate(plan.cells):
        assert cell.channel.replace.tolist() == [row[place] for row in exact]
        assert cell.rows.rows == COUNTS.counts[place]
    brute = max(
        Fraction(int(COUNTS.counts[x]) * row[x], sum(int(n) * e for n, e in zip(COUNTS.counts, row, strict=True)))
        for row in exact
        for x in range(8)
    )
    assert brute == max(surest(exact, COUNTS.counts, 0)) <= Fraction(1, 3)
    assert brute <= plan.guarantee.worst <= Fraction(1, 3)
    (promise,) = plan.guarantee.promises
    assert isinstance(promise, Matrix)


def test_rounding_keeps_columns_and_bounds_allow_for_spare_rows() -> None:
    exact = in_whole_numbers(np.array([[0.7, 0.1], [0.3, 0.9]]))
    assert [sum(column) for column in zip(*exact, strict=True)] == [2**32] * 2
    upper, true = np.array([60, 50]), np.array([55, 45])
    bound, real = surest(exact, upper, 10), surest(exact, true, 0)
    assert all(high >= low for high, low in zip(bound, real, strict=True))


def test_a_release_is_verified_and_asked_like_any_other(tmp_path: Path) -> None:
    table = people()
    release = published(table, out=tmp_path / "r")
    certificate = dn.verify(tmp_path / "r")
    assert {"matrix", "posterior", "published counts"} <= {check.what for check in certificate.checks}
    assert MECHANISMS["optrr"] is OptRR
    whole = release.count(where={"job": ["a", "b", "c"]})
    truth = sum(job in "abc" for job in table["job"].to_pylist())
    assert abs(whole.value - truth) < 6 * whole.stderr
    assert release.sql("SELECT sex, COUNT(*) AS n FROM release WHERE job = 'a' GROUP BY sex").num_rows == 2
    assert published(table).table.equals(release.table)
    report = dn.audit(table, release, attacks=True)
    assert not report.serious
    (part,) = report.parts
    assert part.worst_protected is not None
    assert any(attack.name == "linking" for attack in report.attacks)


def test_estimates_are_unbiased_over_keys() -> None:
    table = people()
    truth = sum(job == "c" for job in table["job"].to_pylist())
    answers = [published(table, key=bytes([k]) * 32).count(where={"job": "c"}, calibrate=False) for k in range(30)]
    values = np.array([answer.value for answer in answers])
    error = values.std(ddof=1) / np.sqrt(30)
    assert abs(values.mean() - truth) < 7 * error  # Student's t, 29 degrees: false alarm below 1e-6
    assert np.mean([answer.stderr for answer in answers]) == pytest.approx(values.std(ddof=1), rel=0.7)


def _sharper(raw: dict[str, Any]) -> None:
    """Every value kept half as often again: what is promised of it does not hold."""
    rows = raw["parts"][0]["mixture"]
    for x in range(len(rows)):
        more = min(round((1 - rows[x][x]) * 2**31), round(rows[x][x] * 2**31))
        for y in range(len(rows)):
            if y != x and rows[y][x] * 2**32 > more > 0:
                rows[y][x] -= more / 2**32
                rows[x][x] += more / 2**32
                break


def _not_whole(raw: dict[str, Any]) -> None:
    raw["parts"][0]["mixture"][0][0] += 1e-7


def _other_kind(raw: dict[str, Any]) -> None:
    raw["parts"][0]["promise"]["kind"] = "frequency"


@pytest.mark.parametrize("change", [_sharper, _not_whole, _other_kind])
def test_verify_finds_what_was_changed(tmp_path: Path, change: Any) -> None:
    published(people(), out=tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(VerificationError):
        dn.verify(tmp_path / "r")


def test_a_bound_five_per_cent_below_what_the_matrix_says_is_rejected() -> None:
    """By a table of a hundred times as many rows, in which noise hides nothing."""
    raw = published(people()).manifest.to_dict()
    part = raw["parts"][0]
    raw["rows"] *= 100
    part["marginal"]["counts"] = [100 * count for count in part["marginal"]["counts"]]
    worst = max(surest(of_mixture(part["mixture"]), np.array(part["marginal"]["counts"]), 0))
    for share, holds in ((Fraction(101, 100), True), (Fraction(95, 100), False)):
        checks = by_matrix(Matrix(None, worst * share), part, raw)
        assert all(check.holds for check in checks) == holds


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(OptionError, match="population = 2"):
        OptRR(population=2)
    many = Histogram(tuple(range(65)), np.full(65, 10))
    with pytest.raises(RequirementError, match="up to 64 values"):
        OptRR().plan(many, Privacy(rho2="1/2"))
    with pytest.raises(RequirementError, match="any-prior"):
        QUICK.plan(COUNTS, Privacy("1/4", "1/3", adversary="any-prior"))
    with pytest.raises(RequirementError, match="needs a requirement"):
        QUICK.plan(COUNTS, None)
    with pytest.raises(RequirementError, match="cannot be met"):
        QUICK.plan(COUNTS, Privacy(rho2="1/5"))
    with pytest.raises(OptionError, match="one sensitive column"):
        published(people(), sensitive=["sex", "job"])
    exempt = QUICK.plan(COUNTS, Privacy(rho2="1/5", exempt=["a", "b"]))
    assert exempt.guarantee.worst <= Fraction(1, 5)
