"""From a requirement to the values it protects in a given histogram (mathematics 2, "Protected values")."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

import numpy as np

from deniable.core.arrays import Bools, Counts
from deniable.core.errors import (
    DeniableError,
    OptionError,
    RequirementError,
    TableError,
    did_you_mean,
    listing,
    option,
    shortened,
)
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.core.probability import percent, rounded
from deniable.core.promise import Frequency
from deniable.core.promise_numbers import Single
from deniable.core.singles import single_values

Required = TypeVar("Required", Privacy, Privacy | None)

# What holds for every release of this kind, whatever the mechanism.
PUBLIC_COLUMNS = "Public columns are published as they are: they can be linked to people, and they say who took part."
DOMAIN = "The list of values that occur in a sensitive column is published."
DISTRIBUTION = (
    "How values are distributed, in the table and in groups of rows, is what the release is for: a group that all but "
    "shares one value shows it."
)
REPEATED = (
    "Each further release of the same people, under another key, with other options or of a table that has changed, "
    "gives an attacker another draw: publish once."
)
SHARES = "How many rows hold each value, to about three digits: the stated requirements of most values are its share."
EVERY_RELEASE = (PUBLIC_COLUMNS, DOMAIN, DISTRIBUTION, REPEATED)


def check_histogram(histogram: Histogram, privacy: Privacy | None) -> None:
    """Refuse tables in which there is nothing to hide, or nothing to hide behind, and requirements that name values
    which the table does not have."""
    if histogram.rows == 0:
        raise TableError("The table has no rows: there is nothing to publish. Fix: a file with rows below its header.")
    if histogram.m < 2:
        raise TableError(
            "The sensitive column has one single value in all rows: no perturbation can make it deniable. Fix: choose "
            f"another sensitive column, or name the full list of values with {option('domain', '')}."
        )
    if privacy is not None:
        require_exempt(histogram, privacy)
        matched_requirements(histogram, privacy)


def require_values(
    role: str, named: Iterable[Hashable], known: Collection[Hashable], kind: type[DeniableError] = OptionError
) -> None:
    """Refuse an option that names something else than values of the sensitive column."""
    unknown = [value for value in named if value not in known]
    if unknown:
        raise kind(
            f"{role} names {listing(unknown)}, which is not a value of the sensitive column."
            + did_you_mean(unknown[0], known)
            + f" Fix: leave {shortened(unknown[0])} out, or name the full list of values with {option('domain', '')}."
        )


def require_exempt(histogram: Histogram, privacy: Privacy) -> None:
    """Refuse exempt values that are neither of the sensitive column nor of one of several."""
    singles = {value for column in single_values(histogram.domain) for value in column.values} if privacy.exempt else ()
    unknown = [value for value in privacy.exempt if value not in singles]
    require_values(option("exempt"), unknown, histogram, RequirementError)


def in_its_words(histogram: Histogram, privacy: Required) -> Required:
    """The same requirement by the table's own values: a manifest states it so, and is checked by it."""
    if privacy is None or not privacy.per_value:
        return privacy
    return replace(privacy, per_value=matched_requirements(histogram, privacy))


def matched_requirements(histogram: Histogram, privacy: Privacy) -> Mapping[Hashable, tuple[Fraction, Fraction]]:
    """Requirements by domain value; a name from a file also finds the number or date that prints as it, "" a missing
    value."""
    printed = {str(value): value for value in histogram.domain if not isinstance(value, str)}
    matched: dict[Hashable, tuple[Fraction, Fraction]] = {}
    unknown = []
    for value, pair in privacy.per_value.items():
        if value in histogram:
            matched[value] = pair
        elif isinstance(value, str) and value in printed:
            matched[printed[value]] = pair
        elif value == "" and None in histogram:
            matched[None] = pair
        else:
            unknown.append(value)
    require_values("per_value", unknown, histogram, RequirementError)
    return matched


def protected_values(histogram: Histogram, privacy: Privacy) -> Bools:
    """SA': the values that the requirement protects: those not exempt, with f_x / n <= rho1 where there is a rho1."""
    mask, most = named_values(histogram, privacy)
    return mask if most is None else mask & (histogram.counts <= most)


def named_values(histogram: Histogram, privacy: Privacy) -> tuple[Bools, Counts | None]:
    """The values that are not exempt; and, where there is a rho1 for all or for each, the most rows f / n <= rho1."""
    if not privacy.per_value:
        named = np.array([value not in privacy.exempt for value in histogram.domain])
        return named, None if privacy.rho1 is None else np.full(histogram.m, math.floor(privacy.rho1 * histogram.rows))
    pairs = [None if value in privacy.exempt else privacy.per_value.get(value) for value in histogram.domain]
    most = np.array([0 if pair is None else math.floor(pair[0] * histogram.rows) for pair in pairs])
    return np.array([pair is not None for pair in pairs]), most


def require_covered(histogram: Histogram, protected: Bools) -> None:
    """Refuse a requirement that covers no value that occurs: its sentence would promise something about nobody."""
    if not histogram.counts[protected].any():
        raise nothing_covered()


def nothing_covered() -> RequirementError:
    """The error for a requirement that covers no value."""
    return RequirementError(
        "No value is protected: every value of the table is exempt, or more frequent than rho1. Fix: name fewer values "
        f"in {option('exempt', '')}, raise rho1, or leave it out."
    )


def largest_protected_frequency(histogram: Histogram, protected: Bools) -> Fraction:
    """max f_x / n over protected values; 0 when none is protected."""
    if not protected.any():
        return Fraction(0)
    return Fraction(int(histogram.counts[protected].max()), histogram.rows)


def require_feasible(histogram: Histogram, privacy: Privacy, protected: Bools) -> None:
    """A value more frequent than rho2 is believed at more than rho2 before anything is published."""
    if privacy.rho2 is None:
        return
    in_the_way = protected & (histogram.counts >= math.ceil(privacy.rho2 * histogram.rows))  # f / n >= rho2, exactly
    if not in_the_way.any():
        return
    places = sorted(np.flatnonzero(in_the_way), key=lambda i: -int(histogram.counts[i]))
    values = [histogram.domain[i] for i in places]
    first = Fraction(int(histogram.counts[places[0]]), histogram.rows)
    smallest = Fraction(int(first * 1000) + 1, 1000)
    least = (
        f"; the smallest feasible rho2 is {float(smallest):g}, where next to nothing is kept. Fix: a rho2 well above"
    )
    raise RequirementError(
        f"rho2 = {privacy.rho2} cannot be met: {shortened(values[0])} alone is {percent(first)} of the rows"
        + (f" ({len(values)} values are at least as frequent as rho2: {listing(values)})" if len(values) > 1 else "")
        + (f"{least} that, or exempt" if smallest < 1 else "; no rho2 is feasible. Fix: exempt")
        + f" {listing(values)} with {option('exempt', '')}."
    )


def frequency_promise(
    histogram: Histogram, privacy: Privacy, above: tuple[int, ...] = (), loose: tuple[Single, ...] = ()
) -> Frequency:
    """The promise of posteriors that a requirement asks for, by positions in the domain; ``above`` and ``loose`` are
    not covered."""
    exempt = exempt_positions(histogram, privacy)
    return Frequency(privacy.rho1, privacy.rho2, exempt, own_limits(histogram, privacy.per_value), above, loose)


def exempt_positions(histogram: Histogram, privacy: Privacy) -> tuple[int, ...]:
    """Where exempt values stand in the domain; an exempt value of one of several columns stands nowhere."""
    return tuple(sorted(histogram.position(value) for value in privacy.exempt if value in histogram))


def own_limits(
    histogram: Histogram, requirements: Mapping[Hashable, tuple[Fraction, Fraction]]
) -> tuple[tuple[int, Fraction, Fraction], ...]:
    """Values' own requirements as a manifest states them: by position, in three digits, so that no count is told."""
    return tuple(
        (histogram.position(value), rounded(rho1, up=False), rounded(rho2, up=True))
        for value, (rho1, rho2) in requirements.items()
    )


def shares_told(histogram: Histogram, privacy: Privacy | None) -> tuple[str, ...]:
    """What own requirements give away that are values' shares of the rows, to less than a row, as the tolerance rule
    makes them of small tables."""
    if privacy is None or not privacy.per_value:
        return ()
    row = Fraction(1, histogram.rows)
    pairs = matched_requirements(histogram, privacy)
    telling = sum(0 <= rho1 - histogram.frequency(value) < row for value, (rho1, _) in pairs.items())
    return (SHARES,) if 2 * telling > len(pairs) else ()


def refuse_sums(privacy: Privacy | None) -> None:
    """What most mechanisms do with a requirement on sums: they promise nothing about them."""
    if privacy is not None and privacy.sums:
        raise RequirementError(
            f"Of what publishes rows, decoy groups alone promise something about sums ({option('small_sums')}, "
            f"{option('large_sums')}). Fix: {option('mechanism', 'decoys')}, or leave them out."
        )


def needs_rho1(privacy: Privacy) -> Fraction:
    """rho1, which adversary 'any-prior' cannot do without."""
    if privacy.rho1 is None:
        raise RequirementError(
            "adversary 'any-prior' needs rho1: the strongest belief beforehand that must be covered. Fix: give rho1, "
            f"for example {option('rho1', '1/13')}."
        )
    return privacy.rho1


def needs_values(privacy: Privacy | None, mechanism: str) -> Privacy:
    """The requirement of a mechanism that takes each value's own, or one rho2 for all."""
    refuse_sums(privacy)
    return privacy if privacy is not None and privacy.per_value else needs_rho2(privacy, mechanism)


def needs_rho2(privacy: Privacy | None, mechanism: str) -> Privacy:
    """The requirement, which this mechanism cannot do without."""
    if privacy is None:
        raise RequirementError(
            f"mechanism {mechanism!r} needs a requirement. Fix: {option('privacy', '1/6')}, how sure an attacker may "
            "become."
        )
    refuse_sums(privacy)
    if privacy.rho2 is None:
        raise RequirementError(
            f"mechanism {mechanism!r} needs one rho2 for the table; per-value requirements go with 'fine-grain'."
        )
    return privacy
