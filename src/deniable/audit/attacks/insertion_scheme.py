"""The (alpha, beta) insertion scheme (Rastogi, Suciu and Hong), kept small: it is here to be attacked.

Every record of the table stays with probability alpha + beta; then every record that is possible at all is inserted
with probability beta, at most once (THESIS 2.3).
"""

from __future__ import annotations

import numpy as np

from deniable.audit.attacks.result import Codes


def insertion_scheme(records: Codes, possible: int, alpha: float, beta: float, rng: np.random.Generator) -> Codes:
    """The published records, shuffled.

    Args:
        records: the table: for each row the number of its record, public and sensitive values together.
        possible: how many records there can be; they are numbered from 0.
    """
    kept = records[rng.random(len(records)) < alpha + beta]
    inserted = np.flatnonzero(rng.random(possible) < beta)
    return rng.permutation(np.concatenate([kept, inserted]))
