"""From a requirement to the values it protects, as a mechanism may know them (mathematics 2, 13.4)."""

from __future__ import annotations

import csv
import io
import math
import tomllib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from deniable.core.channels import Channel
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
from deniable.core.exact import SCALE, different, distinct
from deniable.core.histogram import Histogram
from deniable.core.privacy import Adversary, Privacy, amplification_limit, worst_posterior
from deniable.core.promise import Frequency, Single, single_values
from deniable.core.text import small_text
from deniable.core.values import Bools, Counts, Probability, percent, rounded

# -- From a requirement to the values it protects in a given histogram (mathematics 2, "Protected values") -------------


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
        "No value is protected: every value of the table is exempt, or may be more frequent than rho1. Fix: name fewer "
        f"values in {option('exempt', '')}, raise rho1, or leave it out."
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


# -- Per-value requirements from a file: who knows the diseases writes them down, who publishes reads them -------------


Pairs = dict[Hashable, tuple[Probability, Probability]]


def read_requirements(path: str | Path, *, adversary: Adversary = "frequency") -> Privacy:
    """Per-value requirements from a file.

    Values that the file does not name are exempt. Names are text; they also find numbers and dates that print so, and
    an empty name a missing value.

    Args:
        path: a CSV file with the columns value, rho1, rho2, or a TOML file with a table ``[values]``, whose lines are
            ``hiv = ["1/100", "1/50"]`` or ``hiv = { rho1 = "1/100", rho2 = "1/50" }``.
        adversary: who is held off, as for ``Privacy``.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from deniable.mechanisms import read_requirements
    >>> with tempfile.TemporaryDirectory() as home:
    ...     path = Path(home, "requirements.csv")
    ...     _ = path.write_text("value,rho1,rho2\\nhiv,1/100,1/50\\n")
    ...     read_requirements(path).per_value["hiv"]
    (Fraction(1, 100), Fraction(1, 50))
    """
    file = Path(path)
    readers = {".csv": _from_csv, ".toml": _from_toml}
    try:
        text = small_text(file)
    except FileNotFoundError:
        raise RequirementError(
            f"The requirements file {str(file)!r} cannot be read: there is none. Fix: check the name."
        ) from None
    except (OSError, UnicodeDecodeError):
        raise RequirementError(
            f"The requirements file {str(file)!r} cannot be read as text. Fix: a CSV or TOML file in UTF-8."
        ) from None
    if file.suffix.lower() not in readers:
        raise RequirementError(
            f"The requirements file {str(file)!r} has an unknown format. Fix: a name that ends in .csv or .toml."
        )
    pairs = readers[file.suffix.lower()](text, file.name)
    if not pairs:
        raise RequirementError(f"{file.name} holds no requirement. Fix: add a line such as hiv,1/100,1/50.")
    return Privacy(per_value=pairs, adversary=adversary)


def _from_csv(text: str, name: str) -> Pairs:
    lines = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    if not {"value", "rho1", "rho2"} <= set(lines.fieldnames or ()):
        raise RequirementError(f"{name} must have the columns value, rho1 and rho2. Fix: name them in its first line.")
    pairs: Pairs = {}
    for line in lines:
        value, rho1, rho2 = line["value"], line["rho1"], line["rho2"]
        if value is None or rho1 is None or rho2 is None:
            raise RequirementError(f"{name}, line {lines.line_num} is too short: give value, rho1 and rho2.")
        if None in line:
            raise RequirementError(
                f"{name}, line {lines.line_num} has more fields than the first line. "
                "Fix: put a value that holds a comma in double quotes."
            )
        if value in pairs:
            raise RequirementError(f"{name}, line {lines.line_num} names {shortened(value)} again: name it once.")
        pairs[value] = (rho1, rho2)
    return pairs


def _from_toml(text: str, name: str) -> Pairs:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise RequirementError(f"{name} is not valid TOML: {problem}. Fix: mend that line.") from None
    table = content.pop("values", None)
    if not isinstance(table, dict):
        raise RequirementError(f"{name} must have a table [values] with lines such as hiv = ['1/100', '1/50'].")
    if content:
        raise RequirementError(
            f"{name} says {listing(list(content))}, which means nothing here: it holds the table [values] alone. Fix: "
            f"leave it out; an adversary is given with {option('adversary', '')}."
        )
    return {value: _pair(value, entry, name) for value, entry in table.items()}


def _pair(value: str, entry: Any, name: str) -> tuple[Probability, Probability]:
    if isinstance(entry, dict) and set(entry) == {"rho1", "rho2"}:
        return entry["rho1"], entry["rho2"]
    if isinstance(entry, list) and len(entry) == 2:
        return entry[0], entry[1]
    raise RequirementError(f"{name}: write {value} = ['1/100', '1/50'], rho1 first; got {shortened(entry)}.")


# -- One requirement for attackers who know different things about people (THESIS 5.3.1) -------------------------------
# Whoever knows a person's public columns, Z = z, believes other things beforehand than whoever does not: each value
# then has a requirement (rho1, rho2) for every z. What a row shows is drawn without looking at public columns, so
#
#     Pr[x | y, z] / (1 - Pr[x | y, z]) <= gamma_x Pr[x | z] / (1 - Pr[x | z])
#
# and all of them are met by the smallest gamma_x = rho2 (1 - rho1) / (rho1 (1 - rho2)) over z.


def strictest(*requirements: Privacy) -> Privacy:
    """Each value's strictest requirement of several, to be met whatever was believed.

    Args:
        requirements: one for each thing that an attacker may know, with ``per_value``; of values that one of them does
            not name it requires nothing. ``tolerance`` makes them of the counts of groups.

    >>> from deniable import Privacy
    >>> from deniable.mechanisms import strictest
    >>> men = Privacy(per_value={"lung": ("1/2", "3/4"), "breast": ("1/50", "1/5")})
    >>> women = Privacy(per_value={"breast": ("1/10", "1/5")})
    >>> both = strictest(men, women)
    >>> both.per_value["breast"], both.per_value["lung"], both.adversary
    ((Fraction(1, 10), Fraction(1, 5)), (Fraction(1, 2), Fraction(3, 4)), 'any-prior')
    """
    if not requirements or not all(isinstance(one, Privacy) and one.per_value for one in requirements):
        raise RequirementError(
            "strictest takes requirements with per_value, one for each thing that an attacker may know. "
            "Fix: strictest(tolerance(counts_of_men, 3), tolerance(counts_of_women, 3))."
        )
    if any(one.rho1 is not None or one.rho2 is not None or one.sums for one in requirements):
        raise RequirementError(
            "strictest is about values' own requirements, and one of these has rho1, rho2 or sums. Fix: leave them out."
        )
    chosen: dict[Hashable, tuple[Fraction, Fraction]] = {}
    for one in requirements:
        for value, pair in one.per_value.items():
            if value not in chosen or amplification_limit(*pair) < amplification_limit(*chosen[value]):
                chosen[value] = pair
    return Privacy(per_value=chosen, adversary="any-prior")


# -- What plans are computed from: the noisy histogram of a release, never its exact counts (mathematics 13.4) ---------
# Every number of a release is a function of its noisy histogram and of the owner's options. The requirement is kept for
# the true counts all the same: a bound is the noisy count and a margin, the smallest of a short list that covers the
# true one. Which margin it was, and no more, is what such a check tells of the table. Where values are frequent one
# margin serves all of them; in sparse columns that would leave nothing to keep, and each value has its own, of a
# coarser list.
#
# Without a noisy histogram (an owner who plans, and publishes nothing) everything is computed from the true one.


Bound = Callable[[int], Sequence[Fraction]]  # each value's posterior at the most, with so many rows more than are shown

# Rows. Steps are coarse: whoever finds out which one was taken by brute force is left with six candidates or more.
COMMON_MARGINS = tuple(8 << 2 * k for k in range(19))  # for all values together
OWN_MARGINS = tuple(2 << 2 * k for k in range(20))  # for each value by itself
GRID, COARSE_BITS = 8, 8  # rows and significant bits, of counts that are rounded up
SPARSE = 512  # rows a value on average, below which each value has its own margin
CHECKED = (
    "How frequent values are, to within some rows: coins, and whatever else the release is made by, are computed from "
    "the histogram with noise, and lowered in steps where the exact counts would break the promise. Whoever computes "
    "them again sees where that histogram, made to add up to all rows, is too low, or for a value near its rho1 too "
    "high, by more than {} rows, and whether the promise would have been kept without a step."
)


def checks_tell(
    histogram: Histogram, public: Histogram | None, margins: Sequence[int] | None = None
) -> tuple[str, ...]:
    """What a release gives away whose plan is made from noisy counts and checked against the exact ones."""
    steps = ", ".join(map(str, (margins or margins_for(histogram))[:3]))
    return () if public is None else (CHECKED.format(f"{steps}, .."),)


def covered_values(histogram: Histogram, privacy: Privacy, public: Histogram | None) -> Bools:
    """The values that a plan protects: all that the requirement does, and perhaps some that noise makes look so.

    Refused where the requirement protects none, or one that is as frequent as it may be believed already.
    """
    true = protected_values(histogram, privacy)
    require_covered(histogram, true)
    require_feasible(histogram, privacy, true)
    return widened(histogram, privacy, public, true)


def widened(histogram: Histogram, privacy: Privacy, public: Histogram | None, true: Bools) -> Bools:
    """The values that are up to rho1 by noisy counts and a margin, the smallest at which the ``true`` ones are."""
    named, most = named_values(histogram, privacy)
    if public is None or most is None:
        return true
    masks = (named & (public.counts - margin <= most) for margin in margins_for(histogram))
    return next(mask for mask in masks if not (true & ~mask).any())


def upper_counts(histogram: Histogram, public: Histogram | None, which: Bools | None = None) -> Counts:
    """Counts that are never below the true ones of ``which`` values (left out: of all)."""
    if public is None:
        return histogram.counts
    # Bounds that add up to little more than all rows, whose number is known, would leave hardly any table.
    start = public.counts + max(-((public.rows - histogram.rows) // histogram.m), 0)
    short = np.where(True if which is None else which, histogram.counts - start, 0)
    if is_sparse(histogram):
        margins = np.array(OWN_MARGINS)
        own: Counts = start + margins[np.searchsorted(margins, short)]
        return own
    common: Counts = start + next(margin for margin in COMMON_MARGINS if margin >= short.max(initial=0))
    return common


def margins_for(histogram: Histogram) -> tuple[int, ...]:
    """The margins that bounds on single counts are tried with."""
    return OWN_MARGINS if is_sparse(histogram) else COMMON_MARGINS


def is_sparse(histogram: Histogram) -> bool:
    """Whether noise of a few rows matters to most values."""
    return histogram.rows < SPARSE * histogram.m


def coarse_counts(counts: Counts, step: int = GRID) -> Counts:
    """Above each count: the next multiple of ``step`` rows, then at most 8 significant bits, so rounded up by less than
    1 % where values are frequent. No exact count can be read from them (mathematics 11.6)."""
    multiples = (counts // step + 1) * step
    length = np.frexp(multiples.astype(np.float64))[1]
    unit = np.left_shift(np.int64(1), np.maximum(length - COARSE_BITS, 0).astype(np.int64))
    coarse: Counts = -(-multiples // unit) * unit
    return coarse


def strongest_belief(histogram: Histogram, privacy: Privacy, public: Histogram | None) -> Fraction:
    """What an attacker may believe beforehand: rho1 as required, or the largest share of a protected value."""
    assert privacy.rho2 is not None
    if privacy.adversary == "any-prior":
        return needs_rho1(privacy)
    protected = protected_values(histogram, privacy)
    require_covered(histogram, protected)
    if privacy.rho1 is not None:
        return privacy.rho1
    require_feasible(histogram, privacy, protected)
    return largest_share(histogram, public, protected, privacy.rho2)


def largest_share(histogram: Histogram, public: Histogram | None, protected: Bools, rho2: Fraction) -> Fraction:
    """A bound on the share of the most frequent protected value; refused where it leaves no room below rho2."""
    counts = upper_counts(histogram, public, protected)
    place = int(np.argmax(np.where(protected, counts, -1)))
    bound = Fraction(int(counts[place]), histogram.rows)
    if bound >= rho2:
        raise too_close(histogram.domain[place], rho2)
    return bound


def too_close(value: Hashable, rho2: Fraction) -> RequirementError:
    """What noise leaves no room for."""
    return RequirementError(
        f"rho2 = {rho2} is too close to the share of rows of {shortened(value)}: plans are made from a histogram with "
        "noise of a few rows, so that they give no count away, and that leaves no room. Fix: raise rho2, exempt that "
        f"value with {option('exempt', '')}, or publish more rows."
    )


def beyond_rho1(
    histogram: Histogram, privacy: Privacy, public: Histogram | None, sure: Sequence[Fraction], bound: Bound
) -> tuple[int, ...]:
    """Positions of values that are not covered, being more frequent than rho1; ``sure`` has each value's posterior.

    From the noisy histogram: those that a margin brings above rho1 and, by ``bound``, their posterior above rho2. The
    margin is the first of a short list with which no true posterior of the others is above it. Refused where that
    leaves no value.
    """
    beyond = _beyond(histogram, privacy, public, sure, bound)
    require_some_within(histogram, privacy, beyond)
    return beyond


def require_some_within(histogram: Histogram, privacy: Privacy, beyond: tuple[int, ...]) -> None:
    """Refuse a promise to whoever knows frequencies that margins leave to no value."""
    named, _ = named_values(histogram, privacy)
    if beyond and np.isin(np.flatnonzero(named), beyond).all():
        raise nothing_covered()


def _beyond(
    histogram: Histogram, privacy: Privacy, public: Histogram | None, sure: Sequence[Fraction], bound: Bound
) -> tuple[int, ...]:
    named, most = named_values(histogram, privacy)
    if most is None or privacy.rho2 is None:
        return ()
    if public is None:
        return tuple(np.flatnonzero(named & ~protected_values(histogram, privacy)).tolist())
    open_ended = named & _above(sure, privacy.rho2)
    margins = margins_for(histogram)

    def near(margin: int) -> Bools:
        above_rho1: Bools = named & (public.counts + margin > most)
        return above_rho1

    masks = chain((near(margin) & _above(bound(margin), privacy.rho2) for margin in margins), map(near, margins))
    return tuple(np.flatnonzero(next(mask for mask in masks if not (open_ended & ~mask).any())).tolist())


def _above(sure: Sequence[Fraction], rho2: Fraction) -> Bools:
    high = {id(posterior): posterior > rho2 for posterior in different(sure)}
    return np.array([high[id(posterior)] for posterior in sure])


def beyond_rho1_at(
    histogram: Histogram, privacy: Privacy, public: Histogram | None, gammas: Sequence[Fraction | None]
) -> tuple[int, ...]:
    """The same where posteriors are bounded by values' amplifications alone, which promise something to whoever
    believes less than a frequency, however few values are left; none against any prior."""
    if privacy.adversary == "any-prior":
        return ()

    def posteriors(counts: Counts) -> list[Fraction]:
        known: dict[tuple[int, int], Fraction] = {}
        pairs = [(min(f, histogram.rows), gamma) for f, gamma in zip(counts.tolist(), gammas, strict=True)]
        for f, gamma in pairs:
            if (f, id(gamma)) not in known:
                share = Fraction(f, histogram.rows)
                known[f, id(gamma)] = Fraction(1) if gamma is None else worst_posterior(share, gamma)
        return [known[f, id(gamma)] for f, gamma in pairs]

    def bound(margin: int) -> list[Fraction]:
        return posteriors(histogram.counts if public is None else public.counts + margin)

    return _beyond(histogram, privacy, public, posteriors(histogram.counts), bound)


def bound_by(channel: Channel, public: Histogram | None, rows: int) -> Bound:
    """Posteriors by noisy counts that are raised by a margin."""

    def bound(margin: int) -> list[Fraction]:
        return [] if public is None else surest_bound(channel, public.counts + margin, rows)

    return bound


def surest_bound(channel: Channel, counts: Counts, rows: int) -> list[Fraction]:
    """At least max_y Pr[x | y], for counts that are never below the true ones (mathematics 5).

        Pr[x | x] <= u_x (K_x S + (S-K_x) W_x) / (u_x K_x S + W_x T),    Pr[x | y] <= u_x (S-K_x) / T

    with upper counts u and T = n S - sum_k u_k K_k, which is never above sum_k f_k (S-K_k).
    """
    alike = distinct(counts, channel.keep, channel.replace)
    least = rows * SCALE - sum(times * u * k for (u, k, _), times in zip(alike.rows, alike.times, strict=True))
    if least <= 0:
        return [Fraction(1)] * channel.m
    bounds = []
    for u, k, w in alike.rows:
        mine, seen = u * (k * SCALE + (SCALE - k) * w), u * k * SCALE + w * least
        same = Fraction(mine, seen) if seen else Fraction(0)
        bounds.append(min(max(same, Fraction(u * (SCALE - k), least)), Fraction(1)))
    return alike.of_all(bounds)
