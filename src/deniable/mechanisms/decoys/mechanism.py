"""Decoy groups: rows of c different values lend each other their values (mathematics 7, SPLU-Gen).

Each row publishes a value drawn uniformly from its group of c values; the grouping is not published. A published value
y then speaks for no x with more than 1/c: a row that shows y is in some group with y, and each group has one row of
each of its c values, so with h_g groups of kind g

    Pr[x | y] = sum over g with x and y of h_g / (c f_y) <= 1/c,    with equality at x = y

for an attacker who knows the histogram, and with it all of the plan. The published count is Binomial(c f, 1/c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, get_args

import numpy as np

from deniable.core import memory
from deniable.core.arrays import Counts
from deniable.core.channel import Channel
from deniable.core.errors import OptionError, RequirementError, did_you_mean, option, shortened
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.part import Grouping, GroupingKind
from deniable.core.plan import Cell, Plan
from deniable.core.privacy import Privacy
from deniable.core.probability import percent
from deniable.core.promise import DecoyGroups
from deniable.core.sums import LargeSums, SmallSums
from deniable.mechanisms.base import Mechanism, Need, Scanned
from deniable.mechanisms.decoys.columns import plan_of_columns, rows_left_over
from deniable.mechanisms.decoys.grouping import anatomy_groups, balanced_groups, largest_size, mixed_groups, size_for
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    check_histogram,
    in_its_words,
    protected_values,
    require_covered,
    shares_told,
)
from deniable.mechanisms.view import checks_tell, widened

Leftovers = Literal["refuse", "drop"]
DEFAULT_SIZE = 5
GROUPINGS = {"mixed": mixed_groups, "balanced": balanced_groups, "anatomy": anatomy_groups}
LARGEST_SIZE = 1000  # beyond, a binomial is Poisson's distribution, and c changes nothing about sums


@dataclass(frozen=True)
class Decoys(Mechanism):
    """Decoy groups of c rows with c different values, which lend each other their values (mathematics 7, SPLU-Gen).

        Pr[x | y] <= 1/c;    the published count of a value with f rows is Binomial(c f, 1/c)

    Attributes:
        c: the size of the groups. Left out: found from the requirement. rho2 and small sums ask for large groups, large
            sums for small ones; 5 where nothing is asked.
        leftovers: the n mod c rows that no group can take: ``"refuse"`` the table, or ``"drop"`` them.
        grouping: ``"mixed"``: every value meets all others, so that counts in parts of the table can be estimated;
            ``"balanced"``: few kinds of groups, as small-domain randomization makes them; ``"anatomy"``: always of the
            values with the most rows left, as SPLU forms them. The promises are the same.

    A plan of a table with n mod c rows too many has them in its last cell, ``left_out``. That shows what the groups
    will be like; for publishing, these rows are drawn at random and left out *before* the plan is made
    (``decoys.columns``): which values the last cell has follows from the histogram, and would give its people away.

    >>> import deniable as dn
    >>> from deniable.mechanisms import Decoys
    >>> rows = {"flu": 4, "gout": 4, "hiv": 3, "tb": 1}
    >>> plan = dn.plan(rows, mechanism=Decoys(c=3, grouping="balanced"))
    >>> [(cell.rows.domain, cell.size) for cell in plan.cells], plan.guarantee.worst
    ([(('flu', 'gout', 'hiv'), 9), (('flu', 'gout', 'tb'), 3)], Fraction(1, 3))
    """

    c: int | None = None
    leftovers: Leftovers = "refuse"
    grouping: GroupingKind = "mixed"
    name: ClassVar[str] = "decoys"
    reveals: ClassVar[str] = "nothing beyond the columns; counts of the whole column are almost exact"

    def __post_init__(self) -> None:
        if self.c is not None and (isinstance(self.c, bool) or not isinstance(self.c, int) or self.c < 2):
            raise OptionError(f"c = {self.c!r} is not allowed: a decoy group has 2 rows or more. Fix: c=5.")
        for name, kind in (("leftovers", Leftovers), ("grouping", GroupingKind)):
            value, allowed = getattr(self, name), get_args(kind)
            if value not in allowed:
                known = " or ".join(map(repr, allowed))
                raise OptionError(f"{name} = {value!r} is not known: choose {known}.{did_you_mean(value, allowed)}")

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        c = self.size(histogram, privacy, public)
        groups, left = GROUPINGS[self.grouping](histogram.counts, c)
        if len(left) and self.leftovers == "refuse":
            raise _left_over(histogram, privacy, public, c, len(left))
        _require_room(len(groups), histogram.m)
        own_limits = self.c is None and privacy is not None and bool(privacy.per_value)  # whose count decides about c
        not_hidden = (*shares_told(histogram, privacy), *(checks_tell(histogram, public) if own_limits else ()))
        cells = [_cell(histogram, places, h) for places, h in groups]
        if len(left):
            cells.append(_cell(histogram, left, 1))
        return Plan.of_cells(
            self.name,
            histogram,
            tuple(cells),
            _guarantee(c, privacy, not_hidden),
            privacy=privacy,
            options={"c": c, "grouping": self.grouping, "leftovers": self.leftovers},
            groups=Grouping(c, self.grouping),
            left_out=len(cells) - 1 if len(left) else None,
        )

    def layout(self, columns: tuple[str, ...]) -> tuple[Need, ...]:
        """Every column a part of its own, grouped independently of the others."""
        return tuple(Need((column,)) for column in columns)

    def left_over(self, scans: Sequence[Scanned], privacy: Privacy | None) -> int:
        return rows_left_over(self, scans, privacy)

    def plan_scanned(self, scans: Sequence[Scanned], privacy: Privacy | None, left_out: int = 0) -> Plan:
        return plan_of_columns(self, scans, privacy, left_out)

    def size(self, histogram: Histogram, privacy: Privacy | None, public: Histogram | None = None) -> int:
        """c: as given, or found; refused where the table, the requirement or what is asked of sums does not allow it.

        The largest posterior is 1/c exactly, whatever the grouping, so rho2 needs c = ceil(1 / rho2).

        Args:
            histogram: how many rows hold each value.
            privacy: the requirement; None where nothing is required.
            public: the noisy histogram, where there is one: it tells whose own limits count.
        """
        check_histogram(histogram, privacy)
        limited = _smallest_size(histogram, privacy, public)
        needed = limited or 2
        largest = min(largest_size(histogram.counts), histogram.rows)
        c = self.c
        if c is None and (privacy is None or not privacy.sums):
            c = limited or DEFAULT_SIZE
        elif c is None:
            assert privacy is not None
            if needed > largest:
                raise _too_large(histogram, needed, largest)
            c = _first_size(range(needed, min(largest, LARGEST_SIZE) + 1), privacy)
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


def _require_room(kinds: int, m: int) -> None:
    """Refuse what cannot be dealt: rows are dealt to groups by a table of kinds of groups x values."""
    needed = 8 * kinds * m
    if needed > memory.limit():
        raise RequirementError(
            f"mechanism 'decoys' needs {memory.in_words(needed)} here: {m:,} values make {kinds:,} kinds of groups, "
            f"and it holds a number for each kind and value. At most {memory.in_words(memory.limit())} are allowed. "
            f"Fix: merge rare values, or {option('mechanism', 'uniform')}, or a larger machine."
        )


def _cell(histogram: Histogram, places: Counts, rows: int) -> Cell:
    """Some groups of the same values: no coin, and a replacement that is uniform over them."""
    values = tuple(histogram.domain[place] for place in places)
    return Cell(Histogram(values, np.full(len(values), rows, dtype=np.int64)), Channel.of(values, 0.0))


def _first_size(sizes: range, privacy: Privacy) -> int:
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
    tried = f"No group size from {sizes[0]} to {sizes[-1]} (what this table and rho2 allow) does: "
    if small is not None and c is None:
        return RequirementError(
            f"{tried}small sums are off with probability {float(small.reached(sizes[-1])):.3g}, not "
            f"{float(small.at_least):.3g}. Fix: lower at_least or error of {option('small_sums')}."
        )
    assert large is not None
    smallest = sizes[0] if c is None else c
    also = "" if c is None else f" which {option('small_sums')} needs (c >= {c}),"
    return RequirementError(
        f"{tried}at c = {smallest},{also} a sum of {large.above:,} rows is off with probability "
        f"{float(large.reached(smallest)):.3g}; from there on {float(large.at_most):.3g} is allowed. Fix: raise above, "
        f"error or at_most of {option('large_sums')}."
    )


def _broken(privacy: Privacy | None, c: int) -> SmallSums | LargeSums | None:
    """What is asked of sums and not kept at this size."""
    sums = () if privacy is None else privacy.sums
    return next((wanted for wanted in sums if not wanted.holds(c)), None)


def _left_over(
    histogram: Histogram, privacy: Privacy | None, public: Histogram | None, c: int, left: int
) -> RequirementError:
    least = _smallest_size(histogram, privacy, public) or 2
    sizes = range(least, min(largest_size(histogram.counts), LARGEST_SIZE) + 1)
    even = sorted((size for size in sizes if histogram.rows % size == 0), key=lambda size: abs(size - c))
    fit = next((size for size in even if _broken(privacy, size) is None), None)
    return RequirementError(
        f"{left} row{'s' if left > 1 else ''} cannot be grouped: the number of rows is not a multiple of c = {c}. "
        f"Fix: Decoys(c={c}, leftovers='drop'), on the command line --mechanism decoys:c={c},leftovers=drop"
        + ("." if fit is None else f"; or c={fit}, which leaves none.")
    )


def _guarantee(c: int, privacy: Privacy | None, not_hidden: tuple[str, ...]) -> Guarantee:
    sums = () if privacy is None else privacy.sums  # nobody else is promised any: a histogram may tell small ones
    shown = percent(Fraction(1, c))
    every = privacy is not None and privacy.rho1 is None and not privacy.exempt  # else perhaps no value is protected
    promise = DecoyGroups(
        c,
        privacy.rho2 if privacy is not None and every else None,
        None if privacy is None else privacy.small_sums,
        None if privacy is None else privacy.large_sums,
    )
    return Guarantee(
        promises=(promise,),
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
            *not_hidden,
        ),
    )


def _smallest_size(histogram: Histogram, privacy: Privacy | None, public: Histogram | None) -> int | None:
    """The smallest c with 1/c <= rho2 for every value that the requirement protects; None where there is no rho2.

    A rho2 that protects no value of the table is refused; a value's own limit counts where the table's share of it is
    at most its rho1, by noisy counts where there are such.
    """
    if privacy is None:
        return None
    if privacy.adversary == "any-prior":
        raise RequirementError(
            "mechanism 'decoys' cannot withstand adversary 'any-prior': in a decoy group other values are impossible. "
            f"Fix: {option('adversary', 'frequency')}, or {option('mechanism', 'uniform')}."
        )
    limits = [] if privacy.rho2 is None else [privacy.rho2]
    if privacy.rho2 is not None:
        require_covered(histogram, protected_values(histogram, privacy))
    elif privacy.per_value:
        privacy = in_its_words(histogram, privacy)
        protected = protected_values(histogram, privacy)
        require_covered(histogram, protected)
        covered = widened(histogram, privacy, public, protected)
        limits = [privacy.own_limit(value) for value, own in zip(histogram, covered.tolist(), strict=True) if own]
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
