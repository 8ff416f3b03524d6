"""Homogeneity: someone who knows which group a person is in, and needs nothing more where the group agrees.

Invented against k-anonymity: in a group whose rows all show one value, everybody in it has that value. The attacker
claims exactly these people, and nobody else.
"""

from __future__ import annotations

import numpy as np

from deniable.audit.attacks.result import AttackResult, blind_guess, judged
from deniable.core.arrays import Codes
from deniable.core.probability import percent


def homogeneity(groups: Codes, published: Codes, people_groups: Codes, original: Codes) -> AttackResult:
    """Claim the common value of every group that has one.

    Args:
        groups: for each published row the group it shows: a generalized combination of public values, or a bucket.
        published: for each published row its sensitive value, as published.
        people_groups: for each person their group, numbered as in ``groups``.
        original: for each person, their true value.
    """
    count = int(max(groups.max(initial=-1), people_groups.max(initial=-1))) + 1
    low = np.full(count, np.iinfo(np.int64).max)
    high = np.full(count, -1)
    np.minimum.at(low, groups, published)
    np.maximum.at(high, groups, published)
    claimed = (low == high)[people_groups]
    guess = low[people_groups][claimed]
    share = float(claimed.mean()) if len(claimed) else 0.0
    return judged(
        "homogeneity",
        guess == original[claimed],
        blind_guess(original),
        f"{percent(share)} of the people are in groups whose rows agree, those of one row among them",
    )
