"""Repeated publication: someone who collects every release of the same rows.

Each release under a fresh key is another draw of every value; Bayes' rule over all of them averages the noise away. A
release under the same key repeats the same draws, and a repeat that is recognised as one is no new evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.audit.attacks.evidence import Evidence
from deniable.audit.attacks.result import AttackResult, blind_guess, judged
from deniable.core.arrays import Codes


def repeated(releases: Sequence[Codes], evidence: Evidence, original: Codes) -> AttackResult:
    """Guess every row's value from what it shows in each release.

    Args:
        releases: for each release, what each row shows; rows in the same order (linked by their public values).
        evidence: what a view says; the channel is the same in all of them.
        original: for each row, its true value.
    """
    different: list[Codes] = []
    for views in releases:
        if not any(np.array_equal(views, earlier) for earlier in different):
            different.append(views)
    with np.errstate(divide="ignore"):
        logs = np.log(evidence.likelihood)
        belief = np.log(evidence.prior) + sum((logs[views] for views in different), np.zeros(1))
    guess = belief.argmax(1)
    note = f"{len(releases)} releases, {len(different)} of them different"
    return judged("repeated publication", guess == original, blind_guess(original), note)
