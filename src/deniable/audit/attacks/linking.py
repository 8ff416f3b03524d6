"""Linking: a neighbour, an employer or a data broker who knows a person's public values.

They look up the published rows with these values, take what each says about its true value (Bayes' rule with the
manifest's channel), give every matching row the same chance of being the person's, and guess the likeliest value.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from deniable.audit.attacks.evidence import Evidence
from deniable.audit.attacks.result import AttackResult, blind_guess, judged
from deniable.core.arrays import Codes
from deniable.core.probability import percent

ENTRIES = 2**22  # beliefs at once, combinations x values


def linking(
    published_public: Codes, views: Codes, evidence: Evidence, people_public: Codes, original: Codes
) -> AttackResult:
    """Guess everyone's value from the rows with their public values.

    Args:
        published_public: for each published row, which combination of public values it has.
        views: for each published row, what it shows.
        evidence: what a view says.
        people_public: for each person, their combination, numbered as in ``published_public``.
        original: for each person, their true value, to judge the guesses.
    """
    groups = int(max(published_public.max(initial=-1), people_public.max(initial=-1))) + 1
    matching = np.bincount(published_public, minlength=groups)
    seen = sparse.csr_array((np.ones(len(views)), (published_public, views)), shape=(groups, len(evidence.likelihood)))
    step = max(1, ENTRIES // len(evidence.prior))
    guesses = [
        np.asarray(seen[first : first + step] @ evidence.posterior).argmax(1) for first in range(0, groups, step)
    ]
    likeliest = np.where(matching == 0, evidence.prior.argmax(), np.concatenate([np.zeros(0, np.int64), *guesses]))
    guess = likeliest[people_public]
    alone = float((matching[people_public] == 1).mean()) if len(people_public) else 0.0
    return judged(
        "linking", guess == original, blind_guess(original), f"{percent(alone)} of the people match a single row"
    )
