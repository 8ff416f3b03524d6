"""l-diversity that bounds the posterior: no value has more than 1/l of a group's rows (mathematics 9).

What Anatomy and generalization share, since both publish the true values of a group without saying whose is whose:

    Pr[x | group] = (rows of x in the group) / |group| <= 1/l
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction

from deniable.core.arrays import Counts
from deniable.core.errors import RequirementError, listing, option
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.core.promise import Groups
from deniable.mechanisms.decoys.grouping import cut_to_fit
from deniable.mechanisms.requirement import check_histogram, in_its_words, refuse_sums


def group_size(privacy: Privacy) -> int:
    """1/rho2: the smallest group in which no value need be surer than rho2 allows."""
    limits = [privacy.own_limit(value) for value in privacy.per_value]
    return math.ceil(1 / min([*limits, *([privacy.rho2] if privacy.rho2 is not None else []), Fraction(1, 2)]))


def rows_to_suppress(histogram: Histogram, l: int) -> Counts:
    """How many rows of each value cannot be published: the fewest, of the most frequent values (SDR 6.3).

    Rows can be grouped exactly when fmax <= n/l.
    """
    check_histogram(histogram, None)
    counts = histogram.counts
    values = int((counts > 0).sum())
    if values < l:
        raise RequirementError(
            f"l = {l} is too large: the sensitive column has {values} different values. Fix: l={max(values, 2)}."
        )
    cut: Counts = counts - cut_to_fit(counts, l)
    return cut


def check_requirement(name: str, l: int, least: int, histogram: Histogram, privacy: Privacy | None) -> None:
    """Refuse what groups cannot promise: any prior, and a rho2 below 1/l; ``least`` is the smallest l there is."""
    refuse_sums(privacy)
    if privacy is None:
        return
    if privacy.adversary == "any-prior":
        raise RequirementError(
            f"mechanism {name!r} cannot withstand adversary 'any-prior': in a group other values are impossible. Fix: "
            f"{option('adversary', 'frequency')}, or {option('mechanism', 'uniform')}."
        )
    check_histogram(histogram, privacy)
    privacy = in_its_words(histogram, privacy)
    # A release states its rho2 whether or not a value of the table is covered by it, so groups must keep it.
    limits = [*([] if privacy.rho2 is None else [privacy.rho2]), *map(privacy.own_limit, privacy.per_value)]
    needed = max([least, *(-(-limit.denominator // limit.numerator) for limit in limits)])
    if l < needed:
        raise RequirementError(
            f"l = {l} lets an attacker become {percent(Fraction(1, l))} sure, more than rho2 allows. Fix: l={needed}."
        )
    lost = [value for value, rows in zip(histogram, rows_to_suppress(histogram, l).tolist(), strict=True) if rows]
    given_away = [value for value in lost if _protected(value, histogram, privacy)]
    if given_away:
        raise RequirementError(
            f"mechanism {name!r} with l = {l} leaves rows of {listing(given_away)} out, which the requirement "
            "protects: whoever is missing from the release is then known to have such a value. Fix: "
            f"{option('exempt', given_away[:1])}, a smaller l with a larger rho2, or {option('mechanism', 'designed')}."
        )


def _protected(value: Hashable, histogram: Histogram, privacy: Privacy) -> bool:
    if value in privacy.per_value:
        return histogram.frequency(value) <= privacy.per_value[value][0]
    if privacy.rho2 is None or value in privacy.exempt:
        return False
    return privacy.rho1 is None or histogram.frequency(value) <= privacy.rho1


def grouped_guarantee(
    privacy: Privacy | None, histogram: Histogram, promise: Groups, sentence: str, not_protected: list[str]
) -> Guarantee:
    """A guarantee of 1/l; says how many rows are left out, where some are."""
    lost = int(rows_to_suppress(histogram, promise.l).sum())
    limits = list(not_protected)
    if lost:
        share = percent(Fraction(lost, histogram.rows), 2)
        limits.append(
            f"{share} of the rows are left out; they have one of the most frequent values, so whoever is known to be "
            "missing from the release is known to have one of these."
        )
    return Guarantee(
        promises=(promise,),
        adversary="frequency",
        rho1=None if privacy is None else privacy.rho1,
        rho2=None if privacy is None else privacy.rho2,
        worst=Fraction(1, promise.l),
        gamma=None,
        not_protected=tuple(limits),
        sentence=sentence,
    )
