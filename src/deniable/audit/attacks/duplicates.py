"""Duplicates: someone who looks for the same record twice (THESIS 2.3, "duplicate attack").

The (alpha, beta) scheme inserts a fake record at most once, so of two equal published records one is real, and whoever
knows the public values knows the sensitive one for certain. Where values are perturbed row by row, two equal rows are
two draws, and equal by chance as often as any others.
"""

from __future__ import annotations

import numpy as np

from deniable.audit.attacks.result import AttackResult, judged
from deniable.core.arrays import Codes


def duplicates(published: Codes, original: Codes, m: int) -> AttackResult:
    """Claim every record that is published more than once; right if somebody in the table has it.

    Args:
        published: for each published row the number of its record: public combination * m + sensitive value.
        original: the same for the rows of the table.
        m: the size of the sensitive domain.
    """
    records, copies = np.unique(published, return_counts=True)
    claimed = records[copies > 1]
    truth = np.unique(original)
    most_frequent = int(np.bincount(original % m, minlength=m).argmax())
    blind = np.isin(claimed // m * m + most_frequent, truth)
    baseline = float(blind.mean()) if len(claimed) else 0.0
    return judged("duplicates", np.isin(claimed, truth), baseline, f"{len(claimed):,} records appear twice or more")
