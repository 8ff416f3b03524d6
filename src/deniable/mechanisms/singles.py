"""Columns that are perturbed together: the bound holds for each column's own values, too (mathematics 13.6).

The prior of a single value is the sum over the tuples that hold it. A channel or cell that lets an attacker become too
sure of one keeps less: every coin is lowered by the same factor, the first of a short list that works.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np

from deniable.core.arrays import Bools, Counts
from deniable.core.channel import Channel, coarsened, weights_of
from deniable.core.exact import SCALE, posterior_of_sets
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.core.promise_numbers import Single
from deniable.core.singles import SingleValues, single_values
from deniable.mechanisms.requirement import protected_values
from deniable.mechanisms.view import margins_for, too_close

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
