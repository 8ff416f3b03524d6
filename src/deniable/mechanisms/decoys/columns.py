"""Decoy groups of a table's sensitive columns: each is grouped by itself, independently of the others (mathematics 7).

All columns have groups of one size c, so that one and the same n mod c rows can be left out of all of them. Any n mod c
rows will do: fmax <= n/c means fmax <= floor(n/c), and taking rows away makes no value more frequent than that. So they
are drawn at random, whatever their values, and every column is planned from the histogram of the rows that remain:
what decoy groups promise of one column then holds for each of them exactly, and who is missing tells nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from deniable.core.errors import DeniableError, OptionError, RequirementError, TableError, listing, option
from deniable.core.guarantee import Guarantee
from deniable.core.plan import Plan, PlannedPart
from deniable.core.privacy import Privacy
from deniable.mechanisms.base import Scanned
from deniable.mechanisms.decoys.mixture import mixture_of

if TYPE_CHECKING:
    from deniable.mechanisms.decoys.mechanism import Decoys

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
