"""Decoy groups: rows of c different values lend each other their values (mathematics 7, SPLU-Gen)."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, Literal, TypeVar, get_args

import numpy as np

from deniable.core import memory
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
from deniable.core.histogram import Histogram
from deniable.core.part import Grouping, GroupingKind, Mixture
from deniable.core.plan import Cell, Plan, PlannedPart
from deniable.core.privacy import LargeSums, Privacy, SmallSums
from deniable.core.promise import DecoyGroups, Guarantee
from deniable.core.values import Counts, Floats, percent
from deniable.mechanisms.base import Mechanism, Need, Scanned
from deniable.mechanisms.requirement import (
    EVERY_RELEASE,
    check_histogram,
    checks_tell,
    in_its_words,
    protected_values,
    require_covered,
    shares_told,
    widened,
)

# -- Grouping rows into decoy groups, many at a time, from the histogram alone (mathematics 4, 7; SPLU 3.2) ------------
# Groups of c rows with c distinct values take all but n mod c rows exactly when fmax <= n/c.
#
# **Balanced.** With mu_k the k-th highest remaining count and n0 the remaining rows, the largest h for which h groups
# of the c most frequent values leave the remainder groupable is
#
#     h = min(mu_c, floor(n0/c) - mu_{c+1})
#
# (mathematics 4 with theta = c; its first condition, mu_1 <= n0/c, always holds here). When h = 0 the c + 1 most
# frequent values all have floor(n0/c) rows, which takes n0 < c^2: then one row of each of the c most frequent values
# forms a group, until fewer than c values are left. What is left then are n mod c rows of different values.
#
# **Mixed.** Let all rows stand in a line, sorted by value, values in any order, group j taking rows j, j + G, j + 2G,
# .. with G = n/c. No value has more than G rows, so a group's c values are distinct, and there are at most m + 1 kinds
# of groups. Done for a few shares of the rows, each with another order, it lets every value meet all others. Balancing
# lets each value meet few, always the same: then values cannot be told apart in the release
# (docs/explanation/decoys.md).
#
# **Apart.** The same with the rarest values side by side in every line, as many as have G rows together: rows less than
# G apart never share a group, so none of these values shares one with another. Two values of one row each that share
# a group have one and the same channel, and nothing can tell them apart; mixed groups of a long list of values have
# many such pairs.
#
# **Anatomy.** One row of each of the c values with the most rows left, group after group, as SPLU 6.1 does it. Let k
# values have more rows than the c-th largest count v, and T be those at v or v - 1, the ones at v first. Taking T's
# values round and round, c - k for each group, always takes the most frequent; after |T| / gcd(|T|, c - k) groups all
# of T have fallen alike, and may be gone round again, in the same order or another, until a value from above or below
# joins them. Orders change often enough for values to meet many others, and seldom enough for the kinds of groups to
# stay few.


Groups = list[tuple[Counts, int]]
CELLS = 2000  # kinds of groups that mixing may make, about
SHARES = 30  # beyond, more mixing changes little


def largest_size(counts: Counts) -> int:
    """The largest c with fmax <= n/c; 1 when all rows have the same value, 0 without rows."""
    most = int(counts.max(initial=0))
    return int(counts.sum()) // most if most else 0


def cut_to_fit(counts: Counts, c: int) -> Counts:
    """The counts with as few rows taken off the most frequent values as leave none with more than 1/c of the rows.

    Cutting every count to t does so when c t <= sum min(f, t); the largest such t is found by halving, since
    sum min(f, t) / t only falls.

    >>> cut_to_fit(np.array([9, 3, 2]), 2).tolist()
    [5, 3, 2]
    """
    low, high = 0, int(counts.max(initial=0)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = c * middle <= int(np.minimum(counts, middle).sum())
        low, high = (middle, high) if fits else (low, middle)
    cut: Counts = np.minimum(counts, low)
    return cut


def balanced_groups(counts: Counts, c: int) -> tuple[Groups, Counts]:
    """(positions of c values, number of groups) for all groups, and the positions of the rows that are left over.

    >>> groups, left = balanced_groups(np.array([4, 3, 2, 2]), 3)
    >>> [(places.tolist(), h) for places, h in groups], left.tolist()
    ([([0, 1, 2], 1), ([0, 1, 3], 1), ([0, 1, 2], 1)], [0, 3])
    """
    m = len(counts)
    present = np.flatnonzero(counts)
    keys = np.sort(present - counts[present] * m)  # most rows first, then the order of the domain
    groups: Groups = []
    while len(keys) >= c:
        h = max(_groups_at_once(keys, m, c), 1)
        groups.append((np.sort(keys[:c] % m), h))
        keys[:c] += h * m
        keys = keys[keys < 0]
        keys.sort(kind="stable")  # two sorted runs: merged in linear time
    return groups, np.sort(keys % m)


def _groups_at_once(keys: Counts, m: int, c: int) -> int:
    """h of the module's equation."""
    rows = -int(((keys - keys % m) // m).sum())
    last, following = (-int(key // m) if key < 0 else 0 for key in (keys[c - 1], keys[c] if len(keys) > c else 0))
    return min(last, rows // c - following)


def anatomy_groups(counts: Counts, c: int) -> tuple[Groups, Counts]:
    """The same as Anatomy forms its groups: always of the c values with the most rows left, ties in patternless order.

    >>> groups, left = anatomy_groups(np.array([4, 3, 2, 2]), 3)
    >>> sum(h for _, h in groups), len(left)
    (3, 2)
    """
    left = counts.astype(np.int64)
    wanted = int(left.sum()) // c
    kinds: Counter[tuple[int, ...]] = Counter()
    turn = 0
    while int((left > 0).sum()) >= c:
        level = int(np.partition(left, -c)[-c])
        high, tied = np.flatnonzero(left > level), np.flatnonzero((left == level) | (left == level - 1))
        times = _rounds_at_once(left, high, tied, level, c)
        times = max(min(times, -(-wanted // CELLS)), 1) if times else 0
        rank = np.argsort(_order(len(left), turn := turn + 1))
        tied = tied[np.lexsort((rank[tied], -left[tied]))]
        d = c - len(high)
        taken = len(tied) * d // math.gcd(len(tied), d) if times else d
        for places in (np.arange(taken) % len(tied)).reshape(-1, d):
            group = np.concatenate((high, tied[places]))
            kinds[tuple(sorted(group.tolist()))] += max(times, 1)
            left[group] -= max(times, 1)
    return [(np.array(places), h) for places, h in kinds.items()], np.flatnonzero(left)


def _rounds_at_once(left: Counts, high: Counts, tied: Counts, level: int, c: int) -> int:
    """How often all of T can be gone round before a value from above or below joins them; 0 where not once."""
    d = c - len(high)
    rounds, fall = len(tied) // math.gcd(len(tied), d), d // math.gcd(len(tied), d)
    bottom = int(left[tied].min())
    times = (bottom - int(left[left < bottom].max(initial=0))) // fall
    if len(high) and rounds > fall:
        times = min(times, (int(left[high].min()) - level) // (rounds - fall))
    return times


def mixed_groups(counts: Counts, c: int) -> tuple[Groups, Counts]:
    """The same by lines of rows. A share of G_k of the G groups takes about f_x G_k / G rows of x, rounded so that it
    adds up: never more than G_k, never so few that the rest is too many.

    >>> groups, left = mixed_groups(np.array([4, 3, 2, 2]), 3)
    >>> sum(h for _, h in groups), left.tolist()
    (3, [0, 1])
    """
    return _groups_by_lines(counts, c, lambda part, share: _order(len(part), share))


def apart_groups(counts: Counts, c: int) -> tuple[Groups, Counts]:
    """The same with the rarest values side by side in every line.

    >>> groups, left = apart_groups(np.array([4, 3, 2, 2, 1]), 3)
    >>> sum(h for _, h in groups), left.tolist()
    (4, [])
    """

    def order(part: Counts, share: int) -> Counts:
        mixed, rarest = _order(len(part), share), np.argsort(part, kind="stable")
        rare = np.zeros(len(part), bool)
        rare[rarest[np.cumsum(part[rarest]) <= int(part.sum()) // c]] = True
        return np.concatenate([mixed[rare[mixed]], mixed[~rare[mixed]]])

    return _groups_by_lines(counts, c, order)


def _groups_by_lines(counts: Counts, c: int, order: Callable[[Counts, int], Counts]) -> tuple[Groups, Counts]:
    """Share by share, its rows in a line of some order."""
    over = np.argsort(-counts, kind="stable")[: int(counts.sum()) % c]
    rest = counts.copy()
    rest[over] -= 1
    groups: Groups = []
    shares = min(max(CELLS // max(int((counts > 0).sum()), 1), 1), SHARES)
    for share in range(shares, 0, -1):
        total = int(rest.sum()) // c
        part = _rounded(rest, total // share, total)
        groups += _line(part, order(part, share), c)
        rest = rest - part
    return groups, np.sort(over)


def _rounded(rest: Counts, groups: int, total: int) -> Counts:
    """About rest * groups / total, in whole numbers that add up to c * groups: largest remainders first."""
    if groups == total:
        return rest
    whole, remainder = np.divmod(rest * groups, total)
    missing = int(remainder.sum()) // total
    whole[np.argsort(-remainder, kind="stable")[:missing]] += 1
    part: Counts = whole
    return part


def _line(rows: Counts, order: Counts, c: int) -> Groups:
    """Groups of rows that stand G apart in a line; they change only where a value ends, modulo G."""
    ends = np.cumsum(rows[order])
    apart = int(ends[-1]) // c
    cuts = np.unique(np.concatenate((ends % apart, [0, apart]))) if apart else np.zeros(1, dtype=np.int64)
    starts = cuts[:-1, None] + apart * np.arange(c)
    places = order[np.searchsorted(ends, starts, side="right")]
    return [(np.sort(group), int(h)) for group, h in zip(places, np.diff(cuts), strict=True)]


def _order(m: int, number: int) -> Counts:
    """A fixed, patternless order of 0..m-1: sorted by a hash (the finalizer of splitmix64)."""
    word = np.arange(m, dtype=np.uint64) + np.uint64(number * 2**32)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    order: Counts = np.argsort(word, kind="stable")
    return order


def size_for(sizes: range, wanted: Callable[[int], bool], *, smallest: bool) -> int | None:
    """The smallest or largest size that is wanted, by halving: what is wanted begins or ends somewhere and stays so.

    The answer itself is always checked; None when neither it nor the size at the safe end is wanted.
    """
    ordered = sizes if not smallest else sizes[::-1]  # from "wanted, if any is" to "not wanted, if any is not"
    low, high = 0, len(ordered)
    if not len(ordered) or not wanted(ordered[0]):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wanted(ordered[middle]) else (low, middle)
    return ordered[low]


# -- The channel of decoy groups as an analyst knows it: planned once more, from counts that are public (mathematics 7).
#     P[y][x] = sum over cells of (share of x's rows in the cell) P_cell[y][x]
#
# Who was in which group is not published. What an estimate needs of it, Pr[x is published as y] in the whole table,
# follows nearly from any histogram that is near the true one: the noisy one, where a release publishes it, or else the
# release's own published counts, which estimate the true ones without bias and are out already.


SINGULAR = 1e6  # a condition number beyond which rounding decides
LARGEST_MIXTURE = 1000  # values; a dense channel of more would not fit a manifest that people open


def mixture_of(public: Histogram, groups: Grouping) -> Mixture | None:
    """The channel of the whole table, by a public histogram; six digits. None where there are too many values."""
    if public.m > LARGEST_MIXTURE:
        return None
    matrix = full_channel(replanned(public, groups).parts[0]).round(6)
    empty = ~matrix.any(0)
    matrix[empty, empty] = 1.0
    return tuple(tuple(row) for row in matrix.tolist())


def _is_invertible(mixture: Mixture | None) -> bool:
    """Whether the channel of the whole table can be undone, as it is published, to six digits."""
    return mixture is not None and bool(np.linalg.cond(np.asarray(mixture), 1) < SINGULAR)


def replanned(public: Histogram, groups: Grouping) -> Plan:
    """Nearly the plan of a table, from its noisy histogram: all that an analyst needs of it, and nothing exact.

    Noise may lift a value above 1/c of the rows, which no table that was grouped had; it is cut to that.
    """

    counts = cut_to_fit(public.counts, groups.c)
    again = Decoys(c=groups.c, leftovers="drop", grouping=groups.kind)
    return again.plan(Histogram(public.domain, counts), None)


def full_channel(part: PlannedPart) -> Floats:
    """P, m x m, of the rows that are published; columns of values without rows are zero."""
    m = part.values.m
    joint, total = np.zeros((m, m)), np.zeros(m)
    for number, cell in enumerate(part.cells):
        if number != part.left_out:
            places = part.positions(cell)
            joint[np.ix_(places, places)] += cell.channel.matrix() * cell.rows.counts
            total[places] += cell.rows.counts
    matrix: Floats = np.divide(joint, total, out=np.zeros((m, m)), where=total > 0)
    return matrix


# -- Decoy groups of a table's sensitive columns: each is grouped by itself, independently of the others (mathematics
# 7). All columns have groups of one size c, so that one and the same n mod c rows can be left out of all of them. Any n
# mod c rows will do: fmax <= n/c means fmax <= floor(n/c), and taking rows away makes no value more frequent than that.
# So they are drawn at random, whatever their values, and every column is planned from the histogram of the rows that
# remain: what decoy groups promise of one column then holds for each of them exactly, and who is missing tells nothing.


T = TypeVar("T")


def rows_left_over(mechanism: Decoys, scans: Sequence[Scanned], privacy: Privacy | None) -> int:
    """How many of the table's rows are to be left out before grouping; refused where some columns take fewer rows."""
    histograms = {scan.columns[0]: scan.values for scan in scans}
    c = common_size(mechanism, scans, privacy)
    counts = {histogram.rows % c for histogram in histograms.values()}
    if mechanism.leftovers == "refuse" or counts == {0}:
        return 0
    if any(histogram.rows != scans[0].rows for histogram in histograms.values()):
        raise OptionError(
            "missing = 'exempt' leaves rows that are not in any group among those that would be left out to make the "
            f"number of rows a multiple of c = {c}. Fix: {option('missing', 'value')}."
        )
    return counts.pop()


def plan_of_columns(mechanism: Decoys, scans: Sequence[Scanned], privacy: Privacy | None, left_out: int) -> Plan:
    """The plan of every column, each a part; an error names the column that it is about."""
    c = common_size(mechanism, scans, privacy)
    if mechanism.leftovers == "drop" and any(scan.values.rows % c for scan in scans):
        raise RequirementError(
            f"The rows that remain, drawn at random, need groups of another size, c = {c}, and are no multiple of it: "
            f"a value is about as frequent as its rho1 in per_value. Fix: Decoys(c={c}, leftovers='drop')."
        )
    sized = dataclasses.replace(mechanism, c=c)
    plans = [named(scan.columns[0], partial(sized.plan, scan.values, privacy, public=scan.public)) for scan in scans]
    parts = tuple(_part(plan.parts[0], scan) for plan, scan in zip(plans, scans, strict=True))
    guarantee = guarantee_of_columns(plans, [scan.columns[0] for scan in scans], left_out)
    return Plan(mechanism.name, parts, privacy, guarantee, plans[0].options)


def _part(part: PlannedPart, scan: Scanned) -> PlannedPart:
    assert part.groups is not None
    mixture = None if scan.public is None else mixture_of(scan.public, part.groups)
    return dataclasses.replace(part, columns=scan.columns, mixture=mixture)


def common_size(mechanism: Decoys, scans: Sequence[Scanned], privacy: Privacy | None) -> int:
    """The size c for all columns: as given, or the largest that one of them needs.

    Where only large sums are asked for, each column's size is the largest that it allows, and the smallest decides.
    """
    columns = [scan.columns[0] for scan in scans]
    if len(columns) > 1 and privacy is not None and (privacy.per_value or privacy.exempt):
        raise RequirementError(
            f"Decoys: per_value and exempt name values of one column, and {listing(columns)} are grouped "
            "each by itself. Fix: give rho2 (and rho1) only, or publish one sensitive column."
        )
    sizes = [named(scan.columns[0], partial(mechanism.size, scan.values, privacy, scan.public)) for scan in scans]
    only_large = privacy is not None and privacy.large_sums is not None and privacy.small_sums is None
    return min(sizes) if only_large else max(sizes)


def guarantee_of_columns(plans: Sequence[Plan], columns: Sequence[str], rows_left_out: int) -> Guarantee:
    """What the columns promise together: each what it promises alone, against who knows nothing of their relation."""
    promised = plans[0].guarantee
    together = (
        f"{listing(columns)} are grouped independently of each other, and the promise is about each of them by "
        "itself: an attacker who knows how these columns go together can add up what a row shows in them, and become "
        "surer of each."
    )
    several = len(plans) > 1
    lost = (
        f"{rows_left_out} row{'s' if rows_left_out > 1 else ''} drawn at random, whatever the values, "
        f"{'were' if rows_left_out > 1 else 'was'} left out, so that the rows are a multiple of the group size.",
    )
    return dataclasses.replace(
        promised,
        promises=tuple(plan.guarantee.promises[0] for plan in plans),
        sentence="",  # computed again, for all of them
        not_protected=(
            *promised.not_protected,
            *((together,) if several else ()),
            *(lost if rows_left_out else ()),
        ),
    )


def named(column: str, work: Callable[[], T]) -> T:
    """Do something for one column; what is wrong with it is said with its name."""
    try:
        return work()
    except (RequirementError, TableError) as problem:
        kind: type[DeniableError] = type(problem)
        raise kind(f"Column {column!r}: {problem}") from None


# -- Decoy groups: rows of c different values lend each other their values (mathematics 7, SPLU-Gen) -------------------
# Each row publishes a value drawn uniformly from its group of c values; the grouping is not published. A published
# value y then speaks for no x with more than 1/c: a row that shows y is in some group with y, and each group has one
# row of each of its c values, so with h_g groups of kind g
#
#     Pr[x | y] = sum over g with x and y of h_g / (c f_y) <= 1/c,    with equality at x = y
#
# for an attacker who knows the histogram, and with it all of the plan. The published count is Binomial(c f, 1/c).


Leftovers = Literal["refuse", "drop"]
DEFAULT_SIZE = 5
GROUPINGS = {"mixed": mixed_groups, "apart": apart_groups, "balanced": balanced_groups, "anatomy": anatomy_groups}
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
            where the noisy histogram says that some could still not be told apart, as rare values of a long list, these
            are kept ``"apart"``, which may also be asked for; ``"balanced"``: few kinds of groups, as small-domain
            randomization makes them; ``"anatomy"``: always of the values with the most rows left, as SPLU forms them.
            The promises are the same.

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
        grouping = self._told_apart(public, c)
        groups, left = GROUPINGS[grouping](histogram.counts, c)
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
            options={"c": c, "grouping": grouping, "leftovers": self.leftovers},
            groups=Grouping(c, grouping),
            left_out=len(cells) - 1 if len(left) else None,
        )

    def _told_apart(self, public: Histogram | None, c: int) -> GroupingKind:
        """The grouping, by what is public alone: another than the mixed one where that leaves values that nothing
        tells apart, and the other does not."""
        if self.grouping != "mixed" or public is None or public.m > LARGEST_MIXTURE:
            return self.grouping
        kinds: tuple[GroupingKind, ...] = ("mixed", "apart")
        return next((kind for kind in kinds if _is_invertible(mixture_of(public, Grouping(c, kind)))), "mixed")

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
