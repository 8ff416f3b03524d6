"""The tolerance rule: nobody becomes more than theta times as sure of anything (mathematics 5, THESIS 5.4.1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction

from deniable.core.errors import RequirementError, option, worded
from deniable.core.histogram import Histogram
from deniable.core.privacy import Adversary, Privacy, amplification_limit, worst_posterior
from deniable.core.probability import Probability, exact_number, rounded
from deniable.mechanisms.designed_coins import row_step
from deniable.mechanisms.requirement import check_histogram


def tolerance(
    histogram: Histogram | Mapping[Hashable, int],
    theta: Probability,
    *,
    adversary: Adversary = "frequency",
    exact: bool = False,
) -> Privacy:
    """Each value's own requirement by the rule of the thesis' experiments.

        rho1_i = f_i / n,   rho2_i = theta rho1_i  where rho1_i < 1/theta;   other values are exempt

    A manifest states these numbers, and f_i / n is an exact count. So the limit gamma_i, which grows with f_i, is that
    of a share rounded down to three digits and 8 rows (fewer in small tables), rho1_i is the share rounded up likewise,
    and rho2_i is what gamma_i makes of it: the rule still holds for f_i itself. ``exact`` is for experiments.
    Mechanisms that go by frequencies instead of gamma_i take theta times the share rounded down for the limit.

    Args:
        histogram: how many rows hold each value.
        theta: how many times as sure an attacker may become; a number above 1.
        adversary: who is held off, as for ``Privacy``.
        exact: state shares as they are.

    >>> from deniable.mechanisms import tolerance
    >>> tolerance({"flu": 9, "hiv": 1}, 5).per_value["hiv"]
    (Fraction(1, 10), Fraction(1, 2))
    """
    rows = Histogram.of(histogram)
    check_histogram(rows, None)
    factor = _factor(theta)
    step = row_step(rows)

    def pair(f: int) -> tuple[Fraction, Fraction]:
        share = Fraction(f, rows.rows)
        if exact:
            return share, factor * share
        low = share if step == 1 else rounded(Fraction(max(f // step * step, 1), rows.rows), up=False)
        gamma = amplification_limit(low, factor * low)
        high = min(rounded(Fraction(-(-f // step) * step, rows.rows), up=True), Fraction(999, 1000))
        return high, worst_posterior(high, gamma)

    per_value = {value: pair(f) for value, f in rows.items() if f and factor * Fraction(f, rows.rows) < 1}
    if not per_value:
        raise RequirementError(
            f"{option('theta')} = {theta} protects no value: every one is {float(1 / factor):.3g} of the rows or more. "
            f"Fix: {worded('lower theta', 'a lower --tolerance')}."
        )
    return Privacy(per_value=per_value, adversary=adversary, theta=factor)


def _factor(theta: Probability) -> Fraction:
    factor = exact_number(theta, "theta")
    if factor <= 1:
        raise RequirementError(
            f"{option('theta')} = {theta!r} must be a number above 1: how many times as sure an attacker may become. "
            f"Fix: {option('theta', 3)}."
        )
    return factor
