"""Decoy groups: rows of c different values lend each other their values (SPEC 7, SPLU-Gen).

Each row publishes a value drawn uniformly from its group of c values; the grouping is not published. A published value
y then speaks for no x with more than 1/c: a row that shows y is in some group with y, and each group has one row of
each of its c values, so with h_g groups of kind g

    Pr[x | y] = sum over g with x and y of h_g / (c f_y) <= 1/c,    with equality at x = y

for an attacker who knows the histogram, and with it all of the plan. The published count is Binomial(c f, 1/c).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from deniable.core.channel import Channel
from deniable.core.errors import OptionError, RequirementError, did_you_mean, shortened
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Counts, Histogram
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.core.sums import LargeSums, SmallSums
from deniable.mechanisms.decoys.grouping import balanced_groups, cut_to_fit, largest_size, mixed_groups, size_for
from deniable.mechanisms.requirement import EVERY_RELEASE, check_histogram, protected_values

Leftovers = Literal["refuse", "drop"]
Grouping = Literal["mixed", "balanced"]
DEFAULT_SIZE = 5
LARGEST_SIZE = 1000  # beyond, a binomial is Poisson's distribution, and c changes nothing about sums


@dataclass(frozen=True)
class Decoys:
    """Decoy groups of c rows with c different values.

    Attributes:
        c: the size of the groups. Left out: found from the requirement. rho2 and small sums ask for large groups, large
            sums for small ones; 5 where nothing is asked.
        leftovers: the n mod c rows that no group can take: ``"refuse"`` the table, or ``"drop"`` them.
        grouping: ``"mixed"``: every value meets all others, so that counts in parts of the table can be estimated;
            ``"balanced"``: few kinds of groups, as small-domain randomization makes them. The promises are the same.

    A plan of a table with n mod c rows too many has them in its last cell, ``options["dropped_cell"]``. That shows what
    the groups will be like; for publishing, these rows are drawn at random and left out *before* the plan is made
    (``decoy_columns``): which values the last cell has follows from the histogram, and would give its people away.

    >>> plan = Decoys(c=3, grouping="balanced").plan(Histogram.of({"flu": 4, "gout": 4, "hiv": 3, "tb": 1}), None)
    >>> [(cell.rows.domain, cell.size) for cell in plan.cells], plan.guarantee.worst
    ([(('flu', 'gout', 'hiv'), 9), (('flu', 'gout', 'tb'), 3)], Fraction(1, 3))
    """

    c: int | None = None
    leftovers: Leftovers = "refuse"
    grouping: Grouping = "mixed"
    name: ClassVar[str] = "decoys"

    def __post_init__(self) -> None:
        if self.c is not None and (isinstance(self.c, bool) or not isinstance(self.c, int) or self.c < 2):
            raise OptionError(f"c = {self.c!r} is not allowed: a decoy group has 2 rows or more. Fix: c=5.")
        for name, kind in (("leftovers", Leftovers), ("grouping", Grouping)):
            value, allowed = getattr(self, name), get_args(kind)
            if value not in allowed:
                known = " or ".join(map(repr, allowed))
                raise OptionError(f"{name} = {value!r} is not known: choose {known}.{did_you_mean(value, allowed)}")

    def plan(self, histogram: Histogram, privacy: Privacy | None) -> Plan:
        c = self.size(histogram, privacy)
        group = mixed_groups if self.grouping == "mixed" else balanced_groups
        groups, left = group(histogram.counts, c)
        if len(left) and self.leftovers == "refuse":
            raise _left_over(histogram, privacy, c, len(left))
        cells = [_cell(histogram, places, h) for places, h in groups]
        options: dict[str, Any] = {"c": c, "grouping": self.grouping, "leftovers": self.leftovers}
        if len(left):
            options["dropped_cell"] = len(cells)
            cells.append(_cell(histogram, left, 1))
        return Plan(
            mechanism=self.name,
            histogram=histogram,
            cells=tuple(cells),
            cells_published=False,
            privacy=privacy,
            guarantee=_guarantee(c, privacy),
            options=options,
        )

    def size(self, histogram: Histogram, privacy: Privacy | None) -> int:
        """c: as given, or found; refused where the table, the requirement or what is asked of sums does not allow it.

        The largest posterior is 1/c exactly, whatever the grouping, so rho2 needs c = ceil(1 / rho2).
        """
        check_histogram(histogram)
        limited = _smallest_size(histogram, privacy)
        needed = limited or 2
        largest = min(largest_size(histogram.counts), histogram.rows)
        c = self.c
        if c is None and (privacy is None or not privacy.sums):
            c = limited or DEFAULT_SIZE
        elif c is None:
            assert privacy is not None
            if needed > largest:
                raise _too_large(histogram, needed, largest)
            c = _found(range(needed, min(largest, LARGEST_SIZE) + 1), privacy)
        if c > largest:
            raise _too_large(histogram, c, largest)
        if c < needed:
            raise RequirementError(
                f"c = {c} lets an attacker become {percent(Fraction(1, c))} sure, more than rho2 allows. "
                f"Fix: c={needed}, or leave c out."
            )
        broken = _broken(privacy, c)
        if broken is not None:
            raise RequirementError(
                f"c = {c} does not keep this promise: {broken}. "
                "Fix: leave c out and the size is found, or ask for less."
            )
        return c


def replanned(public: Histogram, c: int, grouping: Grouping = "mixed") -> Plan:
    """Nearly the plan of a table, from its noisy histogram: all that an analyst needs of it, and nothing exact.

    Noise may lift a value above 1/c of the rows, which no table that was grouped had; it is cut to that.
    """
    counts = cut_to_fit(public.counts, c)
    return Decoys(c=c, leftovers="drop", grouping=grouping).plan(Histogram(public.domain, counts), None)


def _cell(histogram: Histogram, places: Counts, rows: int) -> Cell:
    """Some groups of the same values: no coin, and a replacement that is uniform over them."""
    values = tuple(histogram.domain[place] for place in places)
    return Cell(Histogram(values, np.full(len(values), rows, dtype=np.int64)), Channel.of(values, 0.0))


def _found(sizes: range, privacy: Privacy) -> int:
    """The smallest size that keeps small sums private, else the largest that keeps large sums accurate."""
    small, large = privacy.small_sums, privacy.large_sums
    if small is not None:
        c = size_for(sizes, small.holds, smallest=True)
    else:
        assert large is not None
        c = size_for(sizes, large.holds, smallest=False)
    if c is None or (large is not None and not large.holds(c)):
        raise _no_size(sizes, privacy, c)
    return c


def _no_size(sizes: range, privacy: Privacy, c: int | None) -> RequirementError:
    small, large = privacy.small_sums, privacy.large_sums
    asked = f"No group size from {sizes[0]} to {sizes[-1]} (what this table and rho2 allow) does: "
    if small is not None and c is None:
        return RequirementError(
            f"{asked}small sums are off with probability {float(small.reached(sizes[-1])):.3g}, "
            f"not {float(small.at_least):.3g}. Fix: lower at_least or error of small_sums."
        )
    assert large is not None
    smallest = sizes[0] if c is None else c
    also = "" if c is None else f" which small_sums needs (c >= {c}),"
    return RequirementError(
        f"{asked}at c = {smallest},{also} a sum of {large.above:,} rows is off with probability "
        f"{float(large.reached(smallest)):.3g}; from there on {float(large.at_most):.3g} is "
        "allowed. Fix: raise above, error or at_most of large_sums."
    )


def _broken(privacy: Privacy | None, c: int) -> SmallSums | LargeSums | None:
    """What is asked of sums and not kept at this size."""
    asked = () if privacy is None else privacy.sums
    return next((wanted for wanted in asked if not wanted.holds(c)), None)


def _left_over(histogram: Histogram, privacy: Privacy | None, c: int, left: int) -> RequirementError:
    sizes = range(_smallest_size(histogram, privacy) or 2, min(largest_size(histogram.counts), LARGEST_SIZE) + 1)
    even = sorted((size for size in sizes if histogram.rows % size == 0), key=lambda size: abs(size - c))
    fit = next((size for size in even if _broken(privacy, size) is None), None)
    return RequirementError(
        f"{left} row{'s' if left > 1 else ''} cannot be grouped: the number of rows is not a multiple of c = {c}. "
        "Fix: leftovers='drop'" + ("." if fit is None else f", or c={fit}, which leaves none.")
    )


def _guarantee(c: int, privacy: Privacy | None) -> Guarantee:
    sums = () if privacy is None else privacy.sums  # nobody else is promised any: a histogram may tell small ones
    shown = percent(Fraction(1, c))
    return Guarantee(
        adversary="frequency",
        rho1=None if privacy is None else privacy.rho1,
        rho2=None if privacy is None else privacy.rho2,
        worst=Fraction(1, c),
        gamma=None,
        also=tuple(wanted.sentence(c) for wanted in sums),
        not_protected=(
            *EVERY_RELEASE,
            f"A row's value is one of the {c} values of its group: whoever can rule some of them out, or knows the "
            f"values of others in the group, becomes surer than {shown}.",
            *(
                ("What is said about sums is about a value's rows in the whole table, not in parts of it.",)
                if sums
                else ()
            ),
        ),
        sentence=(
            f"An attacker who knows how frequent each value is, and nothing more about a person, becomes at most "
            f"{shown} sure of that person's value: {c} values are equally likely in every decoy group."
        ),
    )


def _smallest_size(histogram: Histogram, privacy: Privacy | None) -> int | None:
    """The smallest c with 1/c <= rho2 for every value that the requirement protects; None where it protects none."""
    if privacy is None:
        return None
    if privacy.adversary == "any-prior":
        raise RequirementError(
            "mechanism 'decoys' cannot withstand adversary 'any-prior': in a decoy group other values are impossible. "
            "Fix: adversary='frequency', or mechanism='uniform'."
        )
    limits = [] if privacy.rho2 is None or not protected_values(histogram, privacy).any() else [privacy.rho2]
    limits += [
        rho2 for value, (rho1, rho2) in privacy.per_value.items() if histogram.get(value, 0) <= rho1 * histogram.rows
    ]
    return max([2, *(-(-limit.denominator // limit.numerator) for limit in limits)]) if limits else None


def _too_large(histogram: Histogram, c: int, largest: int) -> RequirementError:
    if histogram.rows < c:
        return RequirementError(
            f"c = {c} is too large: the table has only {histogram.rows} rows."
            + (f" Fix: c={largest}, the largest size that works here." if largest >= 2 else "")
        )
    place = int(np.argmax(histogram.counts))
    share = percent(Fraction(int(histogram.counts[place]), histogram.rows))
    fix = (
        f"Fix: c={largest}, the largest size that works here."
        if largest >= 2
        else "No size works here. Fix: choose another mechanism, for example 'designed'."
    )
    return RequirementError(
        f"c = {c} is too large: {shortened(histogram.domain[place])} alone is {share} of the rows, and a group takes "
        f"one row of each value. {fix}"
    )
