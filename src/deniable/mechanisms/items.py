"""Lists of items, such as the diagnoses of a person: every possible item is perturbed, under one budget for the row.

    Pr[yes | has the item] = a,    Pr[yes | has it not] = b,    one channel for all m items

Two lists of at most k items differ in at most k items of each (mathematics 15), so whatever was believed of a person's
list, its odds grow by at most gamma = (a / b)^k ((1 - b) / (1 - a))^k where m >= 2k. Among all a and b with this gamma
the ones are taken that make the variances of all m counts together the smallest, if everyone had k items:

    (k a (1 - a) + (m - k) b (1 - b)) / (a - b)^2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from deniable.core.channels import Channel
from deniable.core.errors import OptionError, RequirementError, option, worded
from deniable.core.exact import SCALE
from deniable.core.histogram import Histogram
from deniable.core.plan import Cell, Plan, PlannedPart
from deniable.core.privacy import Privacy
from deniable.core.promise import Guarantee, OneOfItems
from deniable.core.transforms import Beyond, Unfolding, differing, list_gamma
from deniable.core.values import percent
from deniable.mechanisms.base import Mechanism, Need, Scanned
from deniable.mechanisms.requirement import EVERY_RELEASE, refuse_sums

LARGEST_BUDGET = 50.0  # a row that may say more hides nothing
DIGITS = 9  # of a gamma that is promised; rounded up


@dataclass(frozen=True)
class Items(Mechanism):
    """A column of lists: every possible item is perturbed, and a row has one budget for all of them (mathematics 15).

    Attributes:
        budget: epsilon of a whole row, instead of a requirement (rho1, rho2).
        most: how many items of a list count. The budget is shared by 2 most of them, and not by all that there are:
            a smaller number makes answers more accurate.
        beyond: lists of more items are refused (``"refuse"``), or their first ``most`` items count (``"first"``).
        separator: what stands between the items where the column is of texts; left out: a text is a JSON array.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> from deniable.mechanisms import Items
    >>> patients = pa.table({"sex": ["F", "M"] * 500, "diagnoses": [["E11", "I10"], [], ["J45"], ["I10"]] * 250})
    >>> mechanism = Items(budget=4, most=2)
    >>> release = dn.publish(patients, sensitive="diagnoses", mechanism=mechanism, key=bytes(32))
    >>> release
    <Release of 1,000 rows, diagnoses (3 items) by items>
    >>> both = release.count({"diagnoses": dn.contains("E11", "I10")})
    >>> both.low < 250 < both.high
    True
    """

    budget: float | None = None
    most: int | None = None
    beyond: Beyond = "refuse"
    separator: str | None = None
    name: ClassVar[str] = "items"
    reveals: ClassVar[str] = "nothing beyond the columns; how many items a list may have"

    def __post_init__(self) -> None:
        self.unfolding  # noqa: B018  # refuses what is not allowed
        if self.budget is None:
            return
        number = isinstance(self.budget, int | float) and not isinstance(self.budget, bool)
        if not number or not 0 < self.budget <= LARGEST_BUDGET:
            raise OptionError(
                f"budget = {self.budget!r} is not allowed: the epsilon of a row, above 0 and at most "
                f"{LARGEST_BUDGET:g}."
            )

    @property
    def unfolding(self) -> Unfolding:
        return Unfolding(self.most, self.beyond, self.separator)

    def for_columns(self, names: tuple[str, ...], privacy: Privacy | None) -> Mechanism:
        refuse_sums(privacy)
        return self

    def layout(self, columns: tuple[str, ...]) -> tuple[Need, ...]:
        """Every item a part of its own, of yes and no."""
        return tuple(Need((column,), noisy="asked", yes_or_no=True) for column in columns)

    def plan(self, histogram: Histogram, privacy: Privacy | None, *, public: Histogram | None = None) -> Plan:
        raise OptionError(
            "mechanism 'items' perturbs the items of a column of lists, and a histogram of values has none. Fix: "
            f"publishing with {option('mechanism', 'items')} plans it from the table."
        )

    def plan_scanned(self, scans: Sequence[Scanned], privacy: Privacy | None, left_out: int = 0) -> Plan:
        """One channel for all items, and what they promise together."""
        limit, m = self._limit(privacy), len(scans)
        most = m if self.most is None else min(self.most, m)
        keep, weight = channel_of(limit, m, most)
        parts = tuple(_part(scan, keep, weight) for scan in scans)
        gamma = min(_rounded_up(list_gamma(*_chances(keep, weight), m, most)), limit)
        beliefs = (None, None) if privacy is None else (privacy.rho1, privacy.rho2)
        declared = all(scan.declared for scan in scans)
        promised = Guarantee(
            promises=(OneOfItems(gamma, most, *beliefs),) * m,
            adversary="any-prior" if declared else "frequency",
            rho1=beliefs[0],
            rho2=beliefs[1],
            worst=Fraction(1) if beliefs[1] is None else beliefs[1],
            gamma=gamma,
            also=_also(gamma, keep, weight, declared=declared),
            not_protected=(*EVERY_RELEASE, *self._limits(m, most)),
        )
        return Plan(self.name, parts, privacy, promised, self.options)

    def _limit(self, privacy: Privacy | None) -> Fraction:
        """The largest gamma that is allowed."""
        if (privacy is None) == (self.budget is None):
            raise OptionError(
                "mechanism 'items' needs one bound for a whole list: a requirement or a budget. Fix: "
                f"{worded('privacy=Privacy(rho1=.., rho2=..)', '--rho1 .. --rho2 ..')}, or "
                f"{worded('Items(budget=2), as text ', '')}'items:budget=2'."
            )
        if self.budget is not None:
            return Fraction(math.exp(self.budget) * (1 - 1e-12))
        assert privacy is not None
        if privacy.per_value or privacy.exempt:
            raise RequirementError(
                "mechanism 'items' has one bound for anything about a list: per_value and exempt name single values. "
                f"Fix: {worded('privacy=Privacy(rho1=.., rho2=..)', '--rho1 .. --rho2 ..')} alone."
            )
        if privacy.gamma is None:
            raise RequirementError(
                "mechanism 'items' needs rho1, too: items that go together speak for each other, so what holds is a "
                "bound for whatever was believed of the whole list, up to rho1. Fix: "
                f"{worded('privacy=Privacy(rho1=.., rho2=..)', '--rho1 .. --rho2 ..')}."
            )
        return privacy.gamma

    def _limits(self, m: int, most: int) -> list[str]:
        said = [
            "The bound is for all items of a row together. A single item's coin alone says less than that about a "
            "person, but items that go together, such as a disease and its complication, speak for each other: "
            "whoever knows how becomes surer of an item than its own answer allows, up to the bound of the row."
        ]
        if most < m and self.beyond == "refuse":
            said.append(f"That nobody has more than {most} of the items is made known: the bound rests on it.")
        if most < m and self.beyond == "first":
            said.append(
                f"Of a list only its first {most} items count, so counts are of those: an item that stands later in "
                "someone's list is counted as if they had it not."
            )
        return said


def _part(scan: Scanned, keep: int, weight: int) -> PlannedPart:
    channel = Channel(scan.values.domain, np.full(2, keep, dtype=np.int64), np.array([SCALE - weight, weight]))
    return PlannedPart(columns=scan.columns, histogram=scan.values, cells=(Cell(scan.values, channel),))


def _chances(keep: int, weight: int) -> tuple[Fraction, Fraction]:
    """The chance of a yes where an item is there, and where it is not: a = p + (1 - p) w, b = (1 - p) w."""
    absent = Fraction((SCALE - keep) * weight, SCALE * SCALE)
    return Fraction(keep, SCALE) + absent, absent


def channel_of(limit: Fraction, m: int, most: int) -> tuple[int, int]:
    """The coin and the weight of a yes, out of 2^32, with the smallest errors that the ``limit`` on gamma allows.

    >>> keep, weight = channel_of(Fraction(81), m=4, most=4)  # four items, any of which can differ: 81 = 3^4
    >>> round(keep / 2**32, 4), round(weight / 2**32, 4)
    (0.5, 0.5)
    """
    epsilon = math.log(limit)
    share = most / m

    def error(present: float) -> float:
        absent = _absent(present, epsilon, m, most)
        noise = share * present * (1 - present) + (1 - share) * absent * (1 - absent)
        return noise / (present - absent) ** 2

    alike = 1 / (1 + math.exp(-epsilon / sum(differing(m, most))))  # both ratios the same
    best = minimize_scalar(error, bounds=(min(0.5, alike), alike), method="bounded", options={"xatol": 1e-9}).x
    present = best if error(best) < error(alike) else alike
    absent = _absent(present, epsilon, m, most)
    keep = math.floor((present - absent) * SCALE)
    weight = min(max(round(absent / (1 - present + absent) * SCALE), 1), SCALE - 1)
    while keep > 0 and list_gamma(*_chances(keep, weight), m, most) > limit:
        keep -= max(keep >> 24, 1)  # integers are rounded: a step or two
    if keep <= 0:
        raise RequirementError(
            f"The bound allows {math.log(limit):.3g} for a row, which is nothing for each of {m} items. Fix: a smaller "
            f"most=, fewer items ({option('domain', '')}), or a weaker requirement."
        )
    return keep, weight


def _absent(present: float, epsilon: float, m: int, most: int) -> float:
    """The smallest chance b of a yes without the item that keeps a list within epsilon, by halving."""
    larger, smaller = differing(m, most)
    low, high = 0.0, present
    for _ in range(200):
        middle = (low + high) / 2
        ratios = (
            sorted([math.log(present / middle), math.log((1 - middle) / (1 - present))]) if middle > 0 else [0, 1e9]
        )
        low, high = (middle, high) if larger * ratios[1] + smaller * ratios[0] > epsilon else (low, middle)
        if high - low < 1e-15:
            break
    return high


def _rounded_up(gamma: Fraction) -> Fraction:
    """A ratio to a few digits: exact ones would fill a page for each item."""
    scale = Fraction(10) ** (DIGITS - math.ceil(math.log10(gamma)))
    return Fraction(math.ceil(gamma * scale)) / scale


def _also(gamma: Fraction, keep: int, weight: int, *, declared: bool) -> tuple[str, ...]:
    present, absent = _chances(keep, weight)
    read_off = "" if declared else "; the list of items, read off the table, apart"
    return (
        f"Each row satisfies epsilon-local differential privacy with epsilon = {math.log(gamma):.4g}, whatever an "
        f"attacker believed of the list and however its items go together{read_off}.",
        f"An item that a person has is published as yes with {percent(present)}, one that they have not with "
        f"{percent(absent)}.",
    )
