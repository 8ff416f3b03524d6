"""Decoy groups of a table's sensitive columns: each is grouped by itself, independently of the others (SPEC 7).

All columns have groups of one size c, so that one and the same n mod c rows can be left out of all of them. Any n mod c
rows will do: fmax <= n/c means fmax <= floor(n/c), and taking rows away makes no value more frequent than that. So they
are drawn at random, whatever their values, and every column is planned from the histogram of the rows that remain:
what decoy groups promise of one column (SPEC 7) then holds for each of them exactly, and who is missing tells nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from deniable.core.errors import DeniableError, OptionError, RequirementError, TableError, listing
from deniable.core.guarantee import Guarantee
from deniable.core.histogram import Histogram
from deniable.core.plan import Plan
from deniable.core.privacy import Privacy
from deniable.mechanisms.decoys.mechanism import Decoys

T = TypeVar("T")


def common_size(mechanism: Decoys, histograms: Mapping[str, Histogram], privacy: Privacy | None) -> int:
    """The size c for all columns: as given, or the largest that one of them needs.

    Where only large sums are asked for, each column's size is the largest that it allows, and the smallest decides.
    """
    if len(histograms) > 1 and privacy is not None and (privacy.per_value or privacy.exempt):
        raise RequirementError(
            f"Decoys: per_value and exempt name values of one column, and {listing(list(histograms))} are grouped "
            "each by itself. Fix: give rho2 (and rho1) only, or publish one sensitive column."
        )
    sizes = [_named(column, partial(mechanism.size, histogram, privacy)) for column, histogram in histograms.items()]
    only_large = privacy is not None and privacy.large_sums is not None and privacy.small_sums is None
    return min(sizes) if only_large else max(sizes)


def left_over(mechanism: Decoys, histograms: Mapping[str, Histogram], c: int, rows: int) -> int:
    """How many of the table's rows are to be left out before grouping; refused where some columns take fewer rows."""
    counts = {histogram.rows % c for histogram in histograms.values()}
    if mechanism.leftovers == "refuse" or counts == {0}:
        return 0
    if any(histogram.rows != rows for histogram in histograms.values()):
        raise OptionError(
            f"missing = 'exempt' leaves rows that are not in any group among those that would be left out to make the "
            f"number of rows a multiple of c = {c}. Fix: missing='value'."
        )
    return counts.pop()


def plans_of_columns(
    mechanism: Decoys, histograms: Mapping[str, Histogram], privacy: Privacy | None, c: int
) -> dict[str, Plan]:
    """The plan of every column; an error names the column that it is about."""
    sized = dataclasses.replace(mechanism, c=c)
    return {column: _named(column, partial(sized.plan, histogram, privacy)) for column, histogram in histograms.items()}


def guarantee_of_columns(plans: Mapping[str, Plan], rows_left_out: int) -> Guarantee:
    """What the columns promise together: each what it promises alone, against who knows nothing of their relation."""
    promised = next(iter(plans.values())).guarantee
    together = (
        f"{listing(list(plans))} are grouped independently of each other, and the promise is about each of them by "
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
        sentence=promised.sentence.replace("value:", "value in a sensitive column:" if several else "value:"),
        not_protected=(
            *promised.not_protected,
            *((together,) if several else ()),
            *(lost if rows_left_out else ()),
        ),
    )


def _named(column: str, work: Callable[[], T]) -> T:
    """Do something for one column; what is wrong with it is said with its name."""
    try:
        return work()
    except (RequirementError, TableError) as problem:
        kind: type[DeniableError] = type(problem)
        raise kind(f"Column {column!r}: {problem}") from None
