"""A classifier as attacker: someone who learns from the whole release and predicts a person from public values alone.

Cormode's point: what a release teaches about the population it also teaches about everyone in it, protected or not.
The classifier is naive Bayes; its counts are reconstructed from the published rows with the channel's inverse weights.
It needs no row of the person. Where it succeeds the fault is not the mechanism's: that is what the data say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.audit.attacks.result import AttackResult, Codes, blind_guess, judged
from deniable.core.channel import Floats

SMOOTHING = 1.0


def classifier(
    published: Sequence[Codes],
    views: Codes,
    weights: Floats,
    prior: Floats,
    people: Sequence[Codes],
    original: Codes,
) -> AttackResult:
    """Train on the published rows, predict every person.

    Args:
        published: the public columns of the release, coded 0, 1, ...
        views: for each published row, what it shows.
        weights: views x values; how much a view counts for each value: ``Evidence.weights``, or for a group of Anatomy
            the shares of its values.
        prior: the frequencies.
        people: the public columns of the people, coded as in ``published``.
        original: for each person, their true value.
    """
    with np.errstate(divide="ignore"):
        score = np.tile(np.log(prior / prior.sum()), (len(original), 1))
    for column, own in zip(published, people, strict=True):
        size = int(max(column.max(initial=0), own.max(initial=0))) + 1
        seen = np.zeros((len(weights), size))
        np.add.at(seen, (views, column), 1.0)
        counts = np.maximum(weights.T @ seen, 0.0)  # values x categories
        share = seen.sum(0) / max(seen.sum(), 1.0)
        smooth = (counts + SMOOTHING * share) / (counts.sum(1, keepdims=True) + SMOOTHING)
        with np.errstate(divide="ignore"):
            score += np.log(np.maximum(smooth, 1e-300)).T[own]
    return judged("classifier", score.argmax(1) == original, blind_guess(original), f"{len(published)} public columns")
