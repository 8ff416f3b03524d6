"""Reconstruction of decoy groups, and minimality: someone who knows the algorithm.

Decoy groups protect only as long as nobody knows who lends whom a value. The first attack takes consecutive rows for a
group, as a program would write them that forgot to shuffle. The second runs the published algorithm backwards (the
minimality attack): from the published counts it rebuilds which values lend to which, and with them each row's
posterior; it claims those people of whom it is surer than the scheme promises.
"""

from __future__ import annotations

import numpy as np

from deniable.audit.attacks.evidence import Evidence
from deniable.audit.attacks.result import AttackResult, blind_guess, judged
from deniable.core.arrays import Codes
from deniable.core.probability import percent


def decoy_reconstruction(groups: Codes, c: int) -> AttackResult:
    """Claim that each block of c consecutive published rows is a group; a trial is a pair of neighbours in a block.

    Args:
        groups: for each published row, in published order, its true group, to judge the claims.
        c: the size of the groups.
    """
    blocks = np.arange(len(groups)) // c
    together = blocks[1:] == blocks[:-1]
    right = (groups[1:] == groups[:-1])[together]
    return judged("decoy reconstruction", right, (c - 1) / max(len(groups) - 1, 1), "pairs of rows, not values")


def minimality(views: Codes, rebuilt: Evidence, original: Codes, promised: float) -> AttackResult:
    """Claim the likeliest value of every row of which the rebuilt algorithm is surer than ``promised``.

    Args:
        views: what each row shows.
        rebuilt: the attacker's model of the algorithm: Pr[view | value], rebuilt from published counts.
        original: for each row, its true value.
        promised: how sure the scheme says that anyone can become, such as 1/c.
    """
    best = rebuilt.posterior.max(1)[views]
    claimed = best > promised * (1 + 1e-9)
    guess = rebuilt.posterior.argmax(1)[views]
    expected = float(best[claimed].mean()) if claimed.any() else 0.0
    note = f"claims {percent(claimed.mean())} of the people, {percent(expected)} sure of them on average"
    return judged("minimality", (guess == original)[claimed], blind_guess(original), note)
