"""PRAM within strata: a channel for each combination of some public columns, and what the strata promise together.

A stratum is public, so an attacker's prior is the distribution of the row's own stratum, and the largest coin that
keeps a limit L of value x there is (W, K out of S = 2^32; mathematics 2)

    f (K S + (S-K) W) (1-L) <= L W (S-K) (n-f)   <=>   K <= S W (L n - f) / (f (1-L) (S-W) + L W (n-f))

What is published as another value speaks for x by at most f/n, which is below L already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.core.arrays import Counts
from deniable.core.channel import SCALE, Channel, coarsened, weights_of
from deniable.core.errors import RequirementError
from deniable.core.exact import distinct
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy
from deniable.core.promise import Strata
from deniable.mechanisms.one_cell import Limits, check_posteriors, limits_of, surest
from deniable.mechanisms.requirement import EVERY_RELEASE, check_histogram, in_its_words, protected_values, shares_told
from deniable.mechanisms.view import checks_tell, surest_bound, upper_counts, widened

ABSENT = (
    "A value that no row of a stratum holds is never published there: which values occur in each stratum can be read "
    "off the release."
)
EXACT_STRATA = "The replacing distributions give the exact count of every value in every stratum away."
NOISY_STRATA = (
    "The replacing distribution of a stratum is made from its histogram with noise, which can be read off it: the "
    "channels are invariant up to that noise."
)

MakeChannel = Callable[[Histogram, Counts, Fraction | None], Channel]


def largest_coin(counts: Counts, n: int, replace: Counts, limits: Limits) -> Fraction:
    """The largest single coin that keeps every posterior at its limit, exactly, for counts up to these of n rows.

    It depends on the data, so it is rounded down to ten bits (mathematics 11.6).

    >>> half = np.array([2**31, 2**31])
    >>> float(largest_coin(np.array([50, 50]), 100, half, [Fraction(3, 4)] * 2))
    0.5
    """
    keep = SCALE - 1
    # Limits by identity, since many values share one; values that are alike are looked at once.
    known = {id(limit): limit for limit in limits}
    shared = np.fromiter(map(id, limits), dtype=np.int64, count=len(limits))
    for f, w, key in distinct(counts, replace, shared).rows:
        limit = known[key]
        if limit is not None and f >= limit * n:
            keep = 0
        elif limit is not None and f > 0:
            room = SCALE * w * (limit * n - f) / (f * (1 - limit) * (SCALE - w) + limit * w * (n - f))
            keep = min(keep, max(int(room), 0))
    return Fraction(int(coarsened(keep)), SCALE)


def plan_of_strata(
    name: str,
    histograms: Sequence[Histogram],
    privacy: Privacy | None,
    channel: MakeChannel,
    *,
    domain: Sequence[Hashable] | None,
    public: Sequence[Histogram] | None,
    columns: Sequence[str],
    least: int,
    options: Mapping[str, Any],
) -> Plan:
    """A published cell for each stratum; refused when one is too small, or cannot meet the requirement."""
    whole = _whole(histograms, domain)
    check_histogram(whole, privacy)
    privacy = in_its_words(whole, privacy)
    _check_strata(histograms, least)
    if privacy is not None and privacy.adversary == "any-prior":
        raise RequirementError(
            "strata cannot be protected against adversary 'any-prior': which values occur in a stratum depends on the "
            "table, and is evidence. Fix: leave strata out, or adversary='frequency'."
        )
    limits = _limits(whole, histograms, privacy, public)
    cells, worst = [], Fraction(0)
    for number, (stratum, limit) in enumerate(zip(histograms, limits, strict=True)):
        counts = stratum.counts if public is None else np.maximum(public[number].counts, 1)
        upper = stratum.counts if public is None else upper_counts(stratum, public[number])
        weights = weights_of(counts.astype(float))
        largest = None if privacy is None else largest_coin(upper, stratum.rows, weights, limit)
        made = channel(stratum, counts, largest)
        sure = surest(made, stratum)
        check_posteriors(name, stratum, limit, sure, "Fix: leave coin out; each stratum then gets its largest.")
        if public is not None and privacy is None:  # what is said comes from public numbers: a bound, ..
            sure = surest_bound(made, upper, stratum.rows)
        elif public is not None:  # .. or the requirement's
            sure = [bound or Fraction(0) for bound in limit]
        protected = [x for x in range(stratum.m) if privacy is None or limit[x] is not None]
        worst = max([worst, *(sure[x] for x in protected)])
        cells.append(Cell(stratum, made))
    sparsest = min(histograms, key=lambda stratum: stratum.rows / stratum.m)
    not_hidden = (*shares_told(whole, privacy), *checks_tell(sparsest, None if public is None else whole))
    promised = _guarantee(privacy, _coarse(worst, limits), cells, columns, least, not_hidden, noisy=public is not None)
    return Plan.of_cells(
        name,
        whole,
        tuple(cells),
        promised,
        privacy=privacy,
        options=options,
        cells_published=True,
        strata=tuple(columns),
    )


def _whole(histograms: Sequence[Histogram], domain: Sequence[Hashable] | None) -> Histogram:
    """The histogram of all strata together, in the order of the domain."""
    values = dict.fromkeys(domain if domain is not None else (value for stratum in histograms for value in stratum), 0)
    for stratum in histograms:
        for value, rows in stratum.items():
            values[value] += rows
    return Histogram.of(values)


def _check_strata(histograms: Sequence[Histogram], least: int) -> None:
    """Refuse strata in which there is nothing to hide behind. How many rows they hold is not said."""
    small = sum(stratum.rows < least for stratum in histograms)
    if small:
        raise RequirementError(
            f"{small:,} of {len(histograms):,} strata hold fewer than min_rows = {least:,} rows. "
            "Fix: coarser strata (fewer columns, or wider classes), or a smaller min_rows."
        )
    single = sum(int((stratum.counts > 0).sum()) < 2 for stratum in histograms)
    if single:
        raise RequirementError(
            f"{single:,} of {len(histograms):,} strata hold one single sensitive value, which no perturbation within "
            "them can hide. Fix: coarser strata."
        )


def _limits(
    whole: Histogram, histograms: Sequence[Histogram], privacy: Privacy | None, public: Sequence[Histogram] | None
) -> list[Limits]:
    """Each value's limit in each stratum: protected if it is by its share of the table or by that of the stratum, both
    by noisy counts where there are such."""
    if privacy is None:
        return [[None] * stratum.m for stratum in histograms]
    shown = None if public is None else _whole(public, whole.domain)
    by_table = dict(zip(whole.domain, limits_of(whole, privacy, shown), strict=True))
    by_stratum = [
        _of_stratum(stratum, by_table, privacy, None if public is None else public[number])
        for number, stratum in enumerate(histograms)
    ]
    infeasible = sum(
        any(
            limit is not None and stratum.frequency(value) >= limit
            for value, limit in zip(stratum, limits, strict=True)
        )
        for stratum, limits in zip(histograms, by_stratum, strict=True)
    )
    if infeasible:
        raise RequirementError(
            f"The requirement cannot be met in {infeasible:,} of {len(histograms):,} strata: a protected value is so "
            "frequent there that whoever knows the stratum is surer of it than rho2 beforehand. "
            "Fix: coarser strata, a larger rho2, or exempt=."
        )
    return by_stratum


def _of_stratum(
    stratum: Histogram, by_table: Mapping[Hashable, Fraction | None], privacy: Privacy, public: Histogram | None
) -> Limits:
    covered = widened(stratum, privacy, public, protected_values(stratum, privacy))
    own = [privacy.own_limit(value) if value in privacy.per_value else privacy.rho2 for value in stratum]
    limits = zip(stratum, own, covered.tolist(), strict=True)
    return [limit if mine and by_table[value] is None else by_table[value] for value, limit, mine in limits]


def _coarse(worst: Fraction, limits: Sequence[Limits]) -> Fraction:
    """Whole per cent, to the safe side: an exact posterior would give exact counts away (mathematics 11.6)."""
    highest = max((limit for stratum in limits for limit in stratum if limit is not None), default=Fraction(1))
    return min(Fraction(math.ceil(100 * worst), 100), highest)


def _guarantee(
    privacy: Privacy | None,
    worst: Fraction,
    cells: Sequence[Cell],
    columns: Sequence[str],
    least: int,
    not_hidden: tuple[str, ...],
    *,
    noisy: bool,
) -> Guarantee:
    rho2 = None if privacy is None else privacy.rho2
    gammas = tuple(cell.channel.exact_gamma for cell in cells)
    partly = privacy is not None and (privacy.rho1 is not None or bool(privacy.exempt or privacy.per_value))
    return Guarantee(
        promises=(Strata(worst if rho2 is None else rho2, gammas, least, partly),),
        adversary="frequency",
        rho1=None if privacy is None else privacy.rho1,
        rho2=rho2,
        worst=worst,
        gamma=None,
        not_protected=(*EVERY_RELEASE, ABSENT, NOISY_STRATA if noisy else EXACT_STRATA, *not_hidden),
    )
