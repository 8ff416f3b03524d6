"""A noisy histogram against any prior: its epsilon is a part of what is required, and the rows have the rest
(mathematics 8).

    gamma = gamma_rows e^cost <= rho2 (1 - rho1) / (rho1 (1 - rho2))

Rows and histogram are drawn independently of each other, so what both tell multiplies. The histogram costs little, and
every answer is calibrated along it: where rows tell next to nothing, it is most of what is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from deniable.core.errors import RequirementError, option
from deniable.core.histogram import Histogram
from deniable.core.part import Marginal
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, amplification_limit, worst_posterior
from deniable.core.promise import Amplification, LineUps
from deniable.core.values import factor, percent, rounded
from deniable.learned.measuring import DIGIT, PIECES, epsilon_of, exp_minus, laplace_variance, noisy
from deniable.mechanisms.base import Need
from deniable.tables.keys import Keystream

SHARE = Fraction(1, 10)  # of epsilon


@dataclass(frozen=True)
class PaidHistogram:
    """What a noisy histogram costs, and what is left for the rows.

    Attributes:
        required: of both together.
        cost: epsilon of the whole histogram: half of it in each count, since one person moves two.
        rows: what the rows have to keep.
    """

    required: Privacy
    cost: Fraction
    rows: Privacy

    @classmethod
    def of(cls, required: Privacy, needs: Sequence[Need]) -> PaidHistogram:
        """A tenth of a requirement against any prior, for the only part of a release."""
        rho1, rho2 = required.rho1, required.rho2
        several = len(needs) > 1 or needs[0].noisy != "default" or needs[0].range is not None
        if several or required.per_value or required.sums or rho1 is None or rho2 is None:
            raise RequirementError(
                "marginals = True against any prior takes its part of one requirement, rho1 and rho2, of all values of "
                "one column, or of several that are perturbed as one. Fix: leave it out, or "
                f"{option('rho1', '1/20')} and {option('rho2', '1/6')}."
            )
        whole = amplification_limit(rho1, rho2)
        cost = Fraction(int(SHARE * epsilon_of(whole) * PIECES), PIECES)
        left = whole * Fraction(exp_minus(cost, DIGIT)[0], 2**DIGIT)
        rows = Privacy(rho1=rho1, rho2=worst_posterior(rho1, left), adversary="any-prior", exempt=required.exempt)
        return cls(required, cost, rows)

    def marginal(self, keys: Keystream, histogram: Histogram) -> Marginal:
        """The histogram with exact noise, fresh for every table."""
        source = keys.subkey("paid marginal", hashlib.sha256(histogram.counts.tobytes()).hexdigest())
        counts = noisy(source, histogram.counts, self.cost)
        return Marginal(tuple(counts.tolist()), float(self.cost / 2), laplace_variance(self.cost / 2))

    def promised(self, plan: Plan) -> Plan:
        """The plan of the rows, promising what rows and histogram keep together."""
        (promise,) = plan.guarantee.promises
        if not isinstance(promise, Amplification | LineUps) or promise.gamma is None:
            raise RequirementError(
                f"marginals = True against any prior goes with mechanisms that bound what a whole row tells, and "
                f"{plan.mechanism!r} promises otherwise. Fix: {option('mechanism', 'lineup')}, or leave "
                f"{option('marginals', '')} out."
            )
        rho1, rho2 = self.required.rho1, self.required.rho2
        assert rho1 is not None
        assert rho2 is not None
        whole = amplification_limit(rho1, rho2)
        promised = replace(
            plan.guarantee,
            promises=(replace(promise, rho1=rho1, rho2=rho2),),
            rho1=rho1,
            rho2=rho2,
            gamma=whole,
            worst=worst_posterior(rho1, whole),
            also=(
                f"A noisy histogram of the values is published, too, which is paid for: epsilon {float(self.cost):.3g} "
                "of what is required, and the rows have the rest.",
                "It holds for any statement about the value, upward and downward: no belief falls below "
                f"{percent(rounded(1 / whole, up=False))} of what it was, and no odds grow by more than "
                f"{factor(whole)}.",
            ),
        )
        return replace(plan, guarantee=promised, privacy=self.required)
