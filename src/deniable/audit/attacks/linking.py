"""Linking: a neighbour, an employer or a data broker who knows a person's public values.

They look up the published rows with these values, take what each says about its true value (Bayes' rule with the
manifest's channel), give every matching row the same chance of being the person's, and guess the likeliest value.
"""

from __future__ import annotations

import numpy as np

from deniable.audit.attacks.evidence import Evidence
from deniable.audit.attacks.result import AttackResult, Codes, blind_guess, judged


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
    belief = np.zeros((groups, len(evidence.prior)))
    np.add.at(belief, published_public, evidence.posterior[views])
    belief[matching == 0] = evidence.prior
    guess = belief.argmax(1)[people_public]
    alone = float((matching[people_public] == 1).mean()) if len(people_public) else 0.0
    return judged("linking", guess == original, blind_guess(original), f"{alone:.1%} of the people match a single row")
