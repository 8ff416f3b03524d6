"""The noisy histogram of a release: one rule for when it is published, how it is drawn, and what is said of it."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from typing import Literal

import numpy as np

from deniable.core.errors import RequirementError, option
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.part import COUNT_EPSILON, Marginal
from deniable.core.privacy import Privacy
from deniable.engines.noise import discrete_laplace, discrete_laplace_variance
from deniable.engines.randomness import Keystream

COST = 2 * COUNT_EPSILON  # of a whole histogram
NOT_WITH_ANY_PRIOR = (
    "marginals = True does not go with adversary 'any-prior': the noisy histogram would let the odds of any belief "
    f"grow by a further factor of e^{COST:g}, beyond rho2. Fix: leave marginals out."
)


def is_wanted(
    wish: bool | None, privacy: Privacy | None, rule: Literal["default", "always", "asked"] = "default"
) -> bool:
    """Whether a part publishes it; by default where the adversary knows the distribution anyway, and no small sum must
    stay uncertain."""
    if rule != "default":
        return rule == "always" or bool(wish)
    knows = privacy is None or privacy.adversary == "frequency"
    uncertain = privacy is not None and privacy.small_sums is not None
    if wish and not knows:
        raise RequirementError(NOT_WITH_ANY_PRIOR)
    if wish and uncertain:
        raise RequirementError(
            f"marginals = True does not go with {option('small_sums')}: the noisy histogram tells every count, small "
            "ones too, to within about two rows. Fix: leave marginals out."
        )
    return knows and not uncertain if wish is None else wish


def noisy_marginal(keys: Keystream, histogram: Histogram) -> Marginal:
    """The histogram with discrete Laplace noise; its draws depend on the counts, so a re-run repeats them and another
    table gets fresh ones."""
    stream = keys.subkey("marginal", hashlib.sha256(histogram.counts.tobytes()).hexdigest())
    counts = histogram.counts + discrete_laplace(stream, histogram.m, COUNT_EPSILON)
    return Marginal(tuple(counts.tolist()), COUNT_EPSILON, discrete_laplace_variance(COUNT_EPSILON))


def public_histogram(histogram: Histogram, marginal: Marginal | None) -> Histogram | None:
    """The noisy histogram with every count at least one."""
    if marginal is None:
        return None
    return Histogram(histogram.domain, np.maximum(np.array(marginal.counts, dtype=np.int64), 1))


def said_of(promised: Guarantee, marginals: list[Marginal]) -> Guarantee:
    """The frequency adversary knows the histogram anyway; to others the noisy one is evidence too, and we say so."""
    if not marginals:
        return promised
    columns, epsilon = len(marginals), marginals[0].cost
    which = "the sensitive column" if columns == 1 else "every sensitive column"
    sentence = (
        f"A noisy histogram of {which} is published. It adds nothing for an attacker who knows the "
        "distribution; the odds of any other belief can grow by a further factor of up to "
        f"{math.exp(columns * epsilon):.3g} (epsilon {epsilon:g} for the whole histogram"
        f"{' of a column' * (columns > 1)})."
    )
    return dataclasses.replace(promised, not_protected=(*promised.not_protected, sentence))


def said_of_unpublished(promised: Guarantee) -> Guarantee:
    """Coins that are computed from a noisy histogram tell of it, published or not."""
    sentence = (
        "Coins are computed from a histogram with noise, which is not published: they add nothing for an attacker who "
        f"knows the distribution, and as much as that histogram would to others (epsilon {COST:g})."
    )
    return dataclasses.replace(promised, not_protected=(*promised.not_protected, sentence))
