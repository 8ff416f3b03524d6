"""Columns of lists: each possible item becomes a column of yes and no, and a row has one budget for all of them.

An item that a person has is published as yes with probability a, one that they have not with b. Two lists of at most k
of the m items differ in at most k items of the one and k of the other, and items are perturbed independently, so

    P(row | list) / P(row | list') <= (a / b)^i ((1 - b) / (1 - a))^j,    i, j <= k,  i + j <= m    (mathematics 14)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from deniable.core.errors import OptionError, shortened
from deniable.core.probability import factor, percent
from deniable.core.promise import OneOfItems

Beyond = Literal["refuse", "first"]
MOST_ITEMS = 1_000


@dataclass(frozen=True)
class Unfolding:
    """How a column of lists is read.

    Attributes:
        most: how many items of a list count; None: all of them.
        beyond: what is done with a list of more: it is refused, or its first ``most`` items count.
        separator: what stands between the items of a text; None: a text is a JSON array.
    """

    most: int | None = None
    beyond: Beyond = "refuse"
    separator: str | None = None

    def __post_init__(self) -> None:
        if self.most is not None and (not isinstance(self.most, int) or isinstance(self.most, bool) or self.most < 1):
            raise OptionError(f"most = {self.most!r} is not allowed: how many items of a list count, 1 or more.")
        if self.beyond not in get_args(Beyond):
            raise OptionError(f"beyond = {self.beyond!r} is not known: choose one of {', '.join(get_args(Beyond))}.")
        if self.beyond == "first" and self.most is None:
            raise OptionError("beyond = 'first' says what to do with lists of more than most items. Fix: most=3.")
        if self.separator is not None and (not isinstance(self.separator, str) or not self.separator):
            raise OptionError(
                f"separator = {shortened(self.separator)} is not allowed: a text such as ';', or nothing for JSON."
            )


@dataclass(frozen=True)
class ListItem:
    """One item of a column of lists, which is published as a column of yes and no.

    Attributes:
        list: the column of lists.
        item: as text.
        most, beyond, separator: as for ``Unfolding``; ``most`` is at most the number of items.
    """

    list: str
    item: str
    most: int
    beyond: Beyond
    separator: str | None

    @property
    def column(self) -> str:
        """Its column in the release."""
        return item_column(self.list, self.item)

    @property
    def unfolding(self) -> Unfolding:
        """How its list was read."""
        return Unfolding(self.most, self.beyond, self.separator)


def item_column(column: str, item: str) -> str:
    """What the column of an item is called.

    >>> item_column("diagnoses", "E11")
    'diagnoses=E11'
    """
    return f"{column}={item}"


def differing(m: int, most: int) -> tuple[int, int]:
    """How many items two lists can differ in: the most of one kind, and what is then left for the other.

    >>> differing(50, 3), differing(5, 3), differing(5, 5)
    ((3, 3), (3, 2), (5, 0))
    """
    one = min(most, m)
    return one, min(most, m - one)


def list_gamma(present: Fraction, absent: Fraction, m: int, most: int) -> Fraction:
    """The amplification of a whole list, from the chance a of a yes where an item is ``present``, and b where it is
    ``absent``.

    >>> list_gamma(Fraction(3, 4), Fraction(1, 4), m=50, most=2)
    Fraction(81, 1)
    """
    ratios = sorted([present / absent, (1 - absent) / (1 - present)], reverse=True)
    larger, smaller = differing(m, most)
    return ratios[0] ** larger * ratios[1] ** smaller


def list_sentence(promise: OneOfItems, item: ListItem | None) -> str:
    """What is promised of a list, for people."""
    which = "a person's list" if item is None else f"a person's list of {item.list!r}"
    if promise.rho1 is not None and promise.rho2 is not None:
        return (
            f"Nobody who believed something about {which} at up to {percent(promise.rho1)} beforehand, of one item or "
            f"of several together, becomes surer of it than {percent(promise.rho2)}."
        )
    return (
        f"A row's answers about all items together can multiply the odds of any belief about {which} by at most "
        f"{factor(promise.gamma)} (epsilon {math.log(promise.gamma):.4g})."
    )
