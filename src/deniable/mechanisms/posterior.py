"""What the frequency adversary concludes from a channel over the whole domain, exactly (mathematics 2, "Two
adversaries")."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from deniable.core import exact
from deniable.core.arrays import Floats
from deniable.core.channel import Channel
from deniable.core.errors import InternalError
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.core.promise_numbers import Single
from deniable.mechanisms.requirement import EVERY_RELEASE, frequency_promise, shares_told
from deniable.mechanisms.view import beyond_rho1, bound_by, checks_tell

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
