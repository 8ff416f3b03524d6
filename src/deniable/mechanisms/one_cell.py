"""One channel for the whole table: what it promises, exactly, of tuples and of single values, and the error it leaves
(mathematics 2, 8, 13.6).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.core import exact
from deniable.core.channels import Channel, coarsened, weights_of
from deniable.core.errors import InternalError, RequirementError, option, shortened, worded
from deniable.core.exact import SCALE, posterior_of_sets
from deniable.core.histogram import SELECTIVITIES, Histogram, QuestionProfile
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy, amplification_limit
from deniable.core.promise import Frequency, Guarantee, Promise, Single, SingleValues, single_values
from deniable.core.values import Bools, Counts, Floats, percent
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    beyond_rho1,
    bound_by,
    checks_tell,
    covered_values,
    frequency_promise,
    margins_for,
    needs_rho1,
    protected_values,
    refuse_sums,
    shares_told,
    surest_bound,
    too_close,
    upper_counts,
)

# -- The error that a channel leaves, in closed form: what mechanisms minimise (mathematics 8) -------------------------


def value_variances(p: Floats, r: Floats, counts: Floats) -> Floats:
    """The exact variance of each value's reconstructed count under one channel, O(m) for all values (mathematics 8).

    Var_x = sum_y o_y w_y^2 - f_x with o = P f and the weights w of the value set {x}.
    """
    s = (r / p) / (1 + (r * (1 - p) / p).sum())
    observed = counts * p + r * (counts * (1 - p)).sum()
    elsewhere = observed * ((1 - p) / p) ** 2
    variances: Floats = observed * ((1 - (1 - p) * s) / p) ** 2 + s**2 * (elsewhere.sum() - elsewhere) - counts
    return variances


def profile_error(p: Floats, r: Floats, counts: Floats, profile: Sequence[float]) -> float:
    """The predicted relative error of counts at the given selectivities, as a geometric mean over the selectivities.

    A question of selectivity a about x takes a/pi_x of the rows, so its variance is Var_x a/pi_x and its error
    sqrt(2/pi) sd / (a n), averaged over the values that are frequent enough to be asked about.
    """
    n = counts.sum()
    share = counts / n
    variances = np.maximum(value_variances(p, r, counts), 0.0)
    occurring = [a for a in profile if (share >= a).any()] or [float(np.median(share))]
    errors = [float(np.sqrt(2 / np.pi * variances / (share * a)).compress(share >= a).mean()) / n for a in occurring]
    return float(np.exp(np.mean(np.log(np.maximum(errors, 1e-300)))))


def pool_error(p: Floats, r: Floats, counts: Floats, profile: QuestionProfile) -> float:
    """The predicted relative error of a pool's own questions, calibrated to the histogram (mathematics 8).

    A row of value x adds p_x w_x^2 + (1-p_x) sum_y r_y w_y^2 - 1[x in S] to the variance of the count of S. The mean is
    taken over the questions of at least each selectivity, and these means geometrically, as in ``profile_error``.
    """
    s = (profile.sets @ (r / p) / (r / p).sum())[:, None]
    squares = ((profile.sets - (1 - p) * s) / p) ** 2
    per_row = p * squares + (1 - p) * (squares @ r)[:, None] - profile.sets
    of_rows, of_table = np.maximum(profile.by_value @ per_row.T, 0.0), np.maximum(per_row @ counts, 1e-300)
    left = of_rows * (1 - np.minimum(of_rows / of_table, 1.0))
    there = profile.truth > 0
    relative = np.sqrt(2 / np.pi * profile.pick(left)[there]) / profile.truth[there]
    limits = np.array(SELECTIVITIES) * counts.sum()
    large = [profile.truth[there] >= limit for limit in limits if (profile.truth >= limit).any()]
    means = [float(relative[some].mean()) for some in large or [np.ones(len(relative), bool)]]
    return float(np.exp(np.mean(np.log(np.maximum(means, 1e-300)))))


# -- What the frequency adversary concludes from a channel over the whole domain, exactly (mathematics 2, "Two ---------
# adversaries").


Limits = list[Fraction | None]  # each value's largest posterior; None: exempt


def keeps(histogram: Histogram, channel: Channel, limits: Limits) -> bool:
    """Whether no posterior exceeds its limit, exactly."""
    return not _above(exact.surest(channel.keep, channel.replace, histogram.counts), limits)


def posterior_curve(channel: Channel, value: Hashable, priors: npt.ArrayLike, among: Histogram | None = None) -> Floats:
    """How sure an attacker can become of a value, against how sure they were: the worst over what is published.

        b L / (1 - b + b L),   L = max_y P[y][x] / sum_{k != x} q_k P[y][k]

    q is what the attacker believed of the other values, in proportion: as in ``among``, or as replacements are drawn.
    """
    x = channel.values.index(value)
    base = channel.replacing.copy() if among is None else among.relative.copy()
    base[x] = 0.0
    base /= base.sum()
    otherwise = channel.apply(base)
    given = channel.replacing * (1 - channel.coins[x])
    given[x] = channel.diagonal[x]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.where(given > 0, given / otherwise, 0.0).max())
    b = np.asarray(priors, dtype=np.float64)
    curve: Floats = np.ones_like(b) if np.isinf(ratio) else b * ratio / (1 - b + b * ratio)
    return curve


def frequency_guarantee(
    histogram: Histogram,
    privacy: Privacy,
    limits: Limits,
    channel: Channel,
    public: Histogram | None,
    loose: tuple[Single, ...],
    not_hidden: Sequence[str] = (),
) -> Guarantee:
    """What one channel over the whole domain promises against the frequency adversary, from its integers.

    The promise is checked for the true counts; what is said of it comes from ``public``, where there is such.
    """
    sure = exact.surest(channel.keep, channel.replace, histogram.counts)
    protected = [x for x, limit in enumerate(limits) if limit is not None]
    if _above(sure, limits):
        raise InternalError("a designed channel exceeds the posterior that it was built for")
    surest = max(exact.different(sure[x] for x in protected))
    highest = max(exact.different(limit for limit in limits if limit is not None))
    shown = histogram if public is None else public
    not_protected = [
        *EVERY_RELEASE,
        *_stronger_attackers(shown, channel, protected),
        *shares_told(histogram, privacy),
        *checks_tell(histogram, public),
        *not_hidden,
    ]
    exempt = histogram.m - len(protected)
    if exempt:
        not_protected.append(f"{exempt:,} of {histogram.m:,} values are exempt: there is no promise for them.")
    above = beyond_rho1(histogram, privacy, public, sure, bound_by(channel, public, histogram.rows))
    return Guarantee(
        promises=(frequency_promise(histogram, privacy, above, loose),),
        adversary="frequency",
        rho1=privacy.rho1 if not privacy.per_value else None,
        rho2=privacy.rho2 if not privacy.per_value else None,
        # Four digits, to the safe side: an exact posterior would give exact counts away (mathematics 11.6).
        worst=highest if public is not None else min(rounded_up(surest), highest),
        gamma=channel.exact_gamma,
        not_protected=tuple(not_protected),
    )


def _stronger_attackers(histogram: Histogram, channel: Channel, protected: Sequence[int]) -> list[str]:
    """How far the promise falls short against someone who knows more than the distribution (mathematics 2)."""
    share = histogram.relative
    rarest = protected[int(np.argmin(share[protected]))]
    sure = float(posterior_curve(channel, channel.values[rarest], [0.1], histogram)[0])
    known = "An attacker who knows more about a person than how frequent each value is: "
    if channel.exact_gamma is None:
        return [known + "some published values rule others out."]
    factor = f"{int(float(f'{channel.gamma:.2g}')):,}" if channel.gamma >= 10 else f"{channel.gamma:.2g}"
    return [
        known + f"seeing a rare value can speak for it by a factor of up to {factor}. A belief of 10 % in the rarest "
        f"protected value can become {percent(sure, 2)}."
    ]


def rounded_up(posterior: Fraction) -> Fraction:
    """Four digits, to the safe side: exact posteriors would give exact counts away."""
    return Fraction(math.ceil(10_000 * posterior), 10_000)


def _above(posteriors: Sequence[Fraction], limits: Limits) -> bool:
    """Whether some posterior exceeds its limit; values that are alike share their fraction, and are compared once."""
    return any(limit is not None and sure > limit for sure, limit in exact.different_pairs(posteriors, limits))


# -- Columns that are perturbed together: the bound holds for each column's own values, too (mathematics 13.6) ---------
# The prior of a single value is the sum over the tuples that hold it. A channel or cell that lets an attacker become
# too sure of one keeps less: every coin is lowered by the same factor, the first of a short list that works.


STEPS = 12  # halvings of a coin: down to a 4,096th
Covered = list[tuple[SingleValues, Bools]]


def covered_singles(histogram: Histogram, privacy: Privacy | None, public: Histogram | None) -> Covered:
    """The single values of each column that a plan protects; none where columns are not perturbed together.

    With rho1 those up to rho1; without, all that are not as frequent as rho2 already. Exempt ones are not.
    """
    if privacy is None or privacy.rho2 is None or privacy.adversary != "frequency":
        return []
    line = float((privacy.rho1 or privacy.rho2) * histogram.rows)
    covered: Covered = []
    for column in single_values(histogram.domain):
        named = np.array([value not in privacy.exempt for value in column.values])
        true = named & _below(_counts(histogram, column), line, strictly=privacy.rho1 is None)
        mask = true
        if public is not None:
            noisy = _counts(public, column)
            mask = next(
                wide
                for margin in margins_for(histogram)
                if not (true & ~(wide := named & _below(noisy - margin, line, strictly=privacy.rho1 is None))).any()
            )
        covered.append((column, mask))
    return covered


def loose_singles(covered: Covered) -> tuple[Single, ...]:
    """The single values that are not protected, as a promise names them."""
    return tuple((column.column, int(place)) for column, mask in covered for place in np.flatnonzero(~mask))


def covered_by_promise(domain: Sequence[Hashable], loose: Sequence[Single]) -> Covered:
    """The single values of each column that a promise covers: all but the ``loose`` ones."""
    return [
        (column, np.array([(column.column, place) not in loose for place in range(len(column.values))]))
        for column in single_values(domain)
    ]


def keeps_singles(channel: Channel, counts: Counts, positions: Counts | None, covered: Covered, rho2: Fraction) -> bool:
    """Whether no attacker becomes surer than rho2 of a covered single value, exactly; see ``lowered_for_singles``."""
    for column, mask in covered:
        codes = column.codes if positions is None else column.codes[positions]
        present, sets = np.unique(codes, return_inverse=True)
        sure = posterior_of_sets(channel.keep, channel.replace, counts, sets)
        if any(belief > rho2 for belief, place in zip(sure, present.tolist(), strict=True) if mask[place]):
            return False
    return True


def lowered_for_singles(
    channel: Channel,
    counts: Counts,
    positions: Counts | None,
    covered: Covered,
    rho2: Fraction,
    invariant: Counts | None = None,
) -> Channel | None:
    """The channel, with coins lowered until no attacker becomes surer than rho2 of a covered single value.

    Args:
        channel: over the whole domain, or over the values at ``positions`` of it.
        counts: of the rows that it perturbs, in its order.
        positions: of its values in the domain; None: all.
        covered: as ``covered_singles`` says.
        rho2: how sure an attacker may become.
        invariant: counts that the channel leaves as they are, P f = f: replacements then follow the lowered coins.
    """
    for step in range(STEPS + 1):
        keep = channel.keep if step == 0 else coarsened((channel.keep * 2.0**-step).astype(np.int64))
        replace = channel.replace if step == 0 or invariant is None else weights_of((1 - keep / SCALE) * invariant)
        lowered = Channel(channel.values, keep, replace)
        if keeps_singles(lowered, counts, positions, covered, rho2):
            return lowered
    return None


def channel_for_singles(
    histogram: Histogram,
    channel: Channel,
    privacy: Privacy | None,
    public: Histogram | None,
    invariant: Counts | None = None,
) -> tuple[Channel, tuple[Single, ...]]:
    """The channel of a whole table that keeps single values, too, and which of them are not covered."""
    if privacy is None:  # the bound that is reached is one for values of all columns together
        return channel, loose_singles(
            [(one, np.zeros(len(one.values), bool)) for one in single_values(histogram.domain)]
        )
    covered = covered_singles(histogram, privacy, public)
    if not covered or privacy.rho2 is None:
        return channel, ()
    lowered = lowered_for_singles(channel, histogram.counts, None, covered, privacy.rho2, invariant)
    if lowered is None:
        raise too_close(most_frequent(histogram, protected_values(histogram, privacy), covered), privacy.rho2)
    return lowered, loose_singles(covered)


def most_frequent(histogram: Histogram, protected: Bools, covered: Covered) -> Hashable:
    """Of the values, and single values, that a plan protects, the one that comes nearest to rho2."""
    place = int(np.argmax(histogram.counts * protected))
    nearest: tuple[int, Hashable] = (int(histogram.counts[place] * protected[place]), histogram.domain[place])
    for column, mask in covered:
        counts = _counts(histogram, column) * mask
        if counts.max() > nearest[0]:
            nearest = int(counts.max()), column.values[int(np.argmax(counts))]
    return nearest[1]


def _counts(histogram: Histogram, column: SingleValues) -> Counts:
    counts = np.zeros(len(column.values), dtype=np.int64)
    np.add.at(counts, column.codes, histogram.counts)
    return counts


def _below(counts: Counts, line: float, *, strictly: bool) -> Bools:
    return counts < line if strictly else counts <= line


# -- One channel for the whole table, chosen by its user and not for a requirement: what it promises, exactly ----------


def plan_of_channel(
    name: str,
    histogram: Histogram,
    privacy: Privacy | None,
    channel: Channel,
    *,
    public: Histogram | None,
    fix: str,
    options: Mapping[str, Any],
    not_hidden: tuple[str, ...] = (),
    invariant: Counts | None = None,
) -> Plan:
    """A plan with this channel; refused, with the ``fix``, when it does not meet a requirement that is given.

    Where coins must be lowered, a channel that leaves ``invariant`` counts as they are still does.
    """
    limits = limits_of(histogram, privacy, public)
    channel, loose = channel_for_singles(histogram, channel, privacy, public, invariant)
    sure = surest(channel, histogram)
    check_posteriors(name, histogram, limits, sure, fix)
    bound = _reached(histogram, limits, channel, public, sure)
    guarantee = Guarantee(
        promises=(_promise(histogram, privacy, public, channel, sure, loose, bound),),
        adversary="frequency",
        rho1=None if privacy is None else privacy.rho1,
        rho2=None if privacy is None else privacy.rho2,
        worst=bound,
        gamma=channel.exact_gamma,
        not_protected=(
            *EVERY_RELEASE,
            *shares_told(histogram, privacy),
            *checks_tell(histogram, public),
            *not_hidden,
        ),
    )
    return Plan.of_channel(name, histogram, channel, guarantee, privacy=privacy, options=options)


def refuse_any_prior(name: str, privacy: Privacy | None) -> None:
    """Refuse what a replacing distribution that follows the table cannot promise (mathematics 13.3)."""
    refuse_sums(privacy)
    if privacy is not None and privacy.adversary == "any-prior":
        raise RequirementError(
            f"mechanism {name!r} does not withstand adversary 'any-prior': it replaces values by how frequent they are "
            "in the table, and that is evidence itself. Fix: mechanism 'uniform', 'fine-grain' or 'lineup', or "
            f"{option('adversary', 'frequency')}."
        )


def _reached(
    histogram: Histogram, limits: Limits, channel: Channel, public: Histogram | None, sure: list[Fraction]
) -> Fraction:
    """How sure an attacker becomes at most: as required; where nothing is, in whole per cent, from public numbers."""
    required = [limit for limit in exact.different(limits) if limit is not None]
    if required:
        if public is None:
            return max(belief for belief, limit in exact.different_pairs(sure, limits) if limit is not None)
        return max(required)
    if public is None:
        return max(exact.different(sure))
    bounds = surest_bound(channel, upper_counts(histogram, public), histogram.rows)
    return Fraction(math.ceil(100 * max(exact.different(bounds))), 100)


def _promise(
    histogram: Histogram,
    privacy: Privacy | None,
    public: Histogram | None,
    channel: Channel,
    sure: list[Fraction],
    loose: tuple[Single, ...],
    bound: Fraction,
) -> Promise:
    """What is required; where nothing is, the posterior that is reached, in whole per cent."""
    if privacy is None:
        return Frequency(None, Fraction(math.ceil(100 * bound), 100), loose=loose)
    above = beyond_rho1(histogram, privacy, public, sure, bound_by(channel, public, histogram.rows))
    return frequency_promise(histogram, privacy, above, loose)


def surest(channel: Channel, histogram: Histogram) -> list[Fraction]:
    """max over y of Pr[x | y] for each x, for an attacker whose prior is the histogram (mathematics 2)."""
    return exact.surest(channel.keep, channel.replace, histogram.counts)


def check_posteriors(name: str, histogram: Histogram, limits: Limits, sure: Sequence[Fraction], fix: str) -> None:
    """Refuse, with the ``fix``, what lets an attacker become surer of a value than its limit."""
    if not any(limit is not None and posterior > limit for limit, posterior in exact.different_pairs(limits, sure)):
        return
    for x, (limit, posterior) in enumerate(zip(limits, sure, strict=True)):
        if limit is not None and posterior > limit:
            raise RequirementError(
                f"mechanism {name!r} lets an attacker become {percent(posterior)} sure of "
                f"{shortened(histogram.domain[x])}; {percent(limit)} is required. {fix}"
            )


def limits_of(histogram: Histogram, privacy: Privacy | None, public: Histogram | None = None) -> Limits:
    """The largest posterior of each value that the requirement allows an attacker who knows the frequencies.

    By noisy counts where there are such: a value near its rho1 may then be protected that need not be.
    """
    refuse_sums(privacy)
    if privacy is None:
        return [None] * histogram.m
    covered = zip(histogram.domain, covered_values(histogram, privacy, public).tolist(), strict=True)
    if not privacy.per_value:
        return [privacy.rho2 if mine else None for _, mine in covered]
    return [_own_limit(value, histogram, privacy, public) if mine else None for value, mine in covered]


def _own_limit(value: Hashable, histogram: Histogram, privacy: Privacy, public: Histogram | None) -> Fraction:
    """As required; the tolerance rule is kept for the share of the rows itself where nothing is published."""
    share, limit = histogram.frequency(value), privacy.own_limit(value)
    if privacy.theta is not None and public is None:
        limit = min(privacy.per_value[value][1], privacy.theta * share)
    if share >= limit > 0:
        raise RequirementError(
            f"rho2 = {limit} of {shortened(value)} cannot be met: it is {percent(share)} of the rows. Fix: a higher "
            f"rho2 (or {option('theta')}) for it, or leave it out of per_value."
        )
    if privacy.theta is not None and share and limit > privacy.theta * share:
        raise RequirementError(
            f"{option('theta')} = {privacy.theta} is kept for the counts that the requirement was made of, and "
            f"{shortened(value)} is less frequent here. Fix: {worded('tolerance(counts, theta)', '--tolerance')} with "
            "the counts of this table."
        )
    return limit


def allowed_amplification(privacy: Privacy) -> Fraction:
    """The largest amplification that keeps every pair of a requirement against any prior."""
    return min(amplification_limit(rho1, rho2) for rho1, rho2 in pairs_of(privacy))


def pairs_of(privacy: Privacy) -> list[tuple[Fraction, Fraction]]:
    """Every (rho1, rho2) of a requirement against any prior, which needs rho1."""
    refuse_sums(privacy)
    pairs = [*privacy.per_value.values()]
    if privacy.rho2 is not None:
        pairs.append((needs_rho1(privacy), privacy.rho2))
    return pairs
