"""What a row of items says of a person's list: for who knows how often every list of the table occurs.

With n_L people of list L, and a row y of answers,

    Pr[item | y] = sum over lists with the item of n_L P(y | L) / sum over all lists of n_L P(y | L)

where P(y | L) may depend on the first items of L only: those that count. Items that go together speak for each other,
so this is more than an item's own answer says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.audit.findings import Finding
from deniable.core.arrays import Bools, Floats
from deniable.core.probability import percent

ROWS = 1_000  # published rows that are looked at, at the most
AT_ONCE = 2**22  # numbers: rows x lists
SHOWN = 5


@dataclass(frozen=True)
class ItemBelief:
    """How sure someone becomes that a person has an item.

    Attributes:
        item: as text.
        prior: its share of the people.
        alone: when its own answer is yes, and nothing else is looked at.
        together: at most, over the rows that were looked at, by all answers of a row.
        allowed: rho2, where its share is not above rho1.
    """

    item: str
    prior: float
    alone: float
    together: float
    allowed: float | None

    @property
    def beyond(self) -> bool:
        return self.allowed is not None and self.together > self.allowed


@dataclass(frozen=True)
class ListAudit:
    """What is learnt about a column of lists.

    Attributes:
        column: of lists.
        most: how many items of a list count.
        lists: how many different ones the table has.
        looked_at: how many published rows were.
        gamma: by what the odds of any belief about a list can grow, at most.
        beliefs: of every item, those with the largest belief first.
    """

    column: str
    most: int
    lists: int
    looked_at: int
    gamma: Fraction
    beliefs: tuple[ItemBelief, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            **self.__dict__,
            "gamma": float(self.gamma),
            "epsilon": math.log(self.gamma),
            "beliefs": [belief.__dict__ for belief in self.beliefs],
        }

    def lines(self) -> list[str]:
        """For ``str`` of an audit."""
        return [
            f"{self.column}: lists of up to {self.most} of {len(self.beliefs):,} items, {self.lists:,} different ones",
            *(
                f"  {one.item}: {percent(one.prior)} before, up to {percent(one.alone)} by its own answer, up to "
                f"{percent(one.together)} by the whole row"
                for one in self.beliefs[:SHOWN]
            ),
            f"  epsilon: {math.log(self.gamma):.4g}",
        ]

    def findings(self) -> list[Finding]:
        """What to know about it."""
        worst = self.beliefs[0]
        broken = [one for one in self.beliefs if one.beyond]
        more = max(self.beliefs, key=lambda one: one.together - one.alone)
        looked = f"of {self.looked_at:,} rows, by someone who knows how often every list occurs"
        said = []
        if broken:
            said.append(
                Finding(
                    "serious",
                    "requirement",
                    f"{broken[0].item!r} is believed at {percent(broken[0].together)} after a row, allowed are "
                    f"{percent(broken[0].allowed or 1)} ({looked}).",
                    "Do not publish this release.",
                )
            )
        else:
            limit = "" if worst.allowed is None else f", allowed are {percent(worst.allowed)}"
            detail = f"an item is believed at {percent(worst.together)} at most ({worst.item!r}{limit}), {looked}."
            said.append(Finding("info", "lists", detail, ""))
        said.append(
            Finding(
                "info",
                "any belief",
                f"odds of anything about a list grow by at most the factor gamma (gamma {float(self.gamma):.4g}, "
                f"epsilon {math.log(self.gamma):.4g}), whatever was believed.",
                "",
            )
        )
        if more.together > more.alone:
            said.append(
                Finding(
                    "info",
                    "items that go together",
                    f"{more.item!r}: its own answer makes someone {percent(more.alone)} sure, all answers of a row up "
                    f"to {percent(more.together)}.",
                    "Read the bound of the row, not that of one item.",
                )
            )
        return said


def item_beliefs(
    held: Bools,
    shown: Bools,
    items: list[str],
    chances: tuple[float, float],
    limits: tuple[Fraction, Fraction] | None,
    whole: Bools | None = None,
) -> tuple[int, tuple[ItemBelief, ...]]:
    """How many different lists there are, and how sure a row makes someone of each item.

    Args:
        held: which people have which items, as far as they count.
        shown: what published rows say.
        items: their names.
        chances: a and b, of a yes with the item and without it.
        limits: rho1 and rho2, where they are required.
        whole: which people have which items, where only the first of longer lists count.
    """
    present, absent = chances
    whole = held if whole is None else whole
    lists, often = np.unique(np.concatenate([held, whole], axis=1), axis=0, return_counts=True)
    counting, every = np.split(lists.astype(np.float64), 2, axis=1)
    prior, counted = whole.mean(0), held.mean(0)
    yes = counted * present + (prior - counted) * absent
    alone = yes / (yes + (1 - prior) * absent)
    together = _by_rows(counting, every, often / often.sum(), shown.astype(np.float64), present, absent)
    beliefs = [
        ItemBelief(item, float(p), float(a), float(t), _allowed(float(p), limits))
        for item, p, a, t in zip(items, prior, alone, together, strict=True)
    ]
    return len(lists), tuple(sorted(beliefs, key=lambda one: (-one.together, one.item)))


def _by_rows(counting: Floats, every: Floats, shares: Floats, shown: Floats, present: float, absent: float) -> Floats:
    """The largest Pr[item | row] over some rows, of every item of a list. One that counts changes ln P(row) by
    ln(a / b) where the row says yes, and by ln((1 - a) / (1 - b)) where it says no; the others are the same for all."""
    yes, no = math.log(present / absent), math.log((1 - present) / (1 - absent))
    surest = np.zeros(every.shape[1])
    step = max(AT_ONCE // max(len(every), 1), 1)
    for start in range(0, len(shown), step):
        weights = (shown[start : start + step] * (yes - no) + no) @ counting.T + np.log(shares)
        weights = np.exp(weights - weights.max(1, keepdims=True))
        surest = np.maximum(surest, ((weights @ every) / weights.sum(1, keepdims=True)).max(0))
    return surest


def _allowed(prior: float, limits: tuple[Fraction, Fraction] | None) -> float | None:
    return None if limits is None or prior > limits[0] else float(limits[1])
