"""A classifier as attacker: someone who learns from the whole release and predicts a person from public values alone.

Cormode's point: what a release teaches about the population it also teaches about everyone in it, protected or not.
The classifier is naive Bayes; its counts are reconstructed from the published rows with the channel's inverse weights,
and what they say about a value is shrunk by as much of it as is noise (James and Stein):

    Pr[k | x] = s_k + max(0, 1 - sum_k V_xk / sum_k (c_xk - c_x s_k)^2) (c_xk / c_x - s_k)

with c the counts, V their variance and s the shares of all rows. It needs no row of the person. Where it succeeds the
fault is not the mechanism's: that is what the data say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.audit.attacks.result import AttackResult, blind_guess, judged
from deniable.core.arrays import Codes, Floats

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
    seen = seen_together(published, views, len(weights), people)
    with np.errstate(divide="ignore"):
        score = np.log(prior / prior.sum()) + column_scores(seen, weights, prior, people)
    return judged("classifier", score.argmax(1) == original, blind_guess(original), f"{len(published)} public columns")


def seen_together(published: Sequence[Codes], views: Codes, number: int, people: Sequence[Codes] = ()) -> list[Floats]:
    """For each public column, in how many rows each of ``number`` views goes with each of its values: [views, values].

    Values that only people have are there too.
    """
    own = people or [column[:0] for column in published]
    sizes = [int(max(one.max(initial=0), other.max(initial=0))) + 1 for one, other in zip(published, own, strict=True)]
    return [
        np.bincount(views.astype(np.int64) * size + column, minlength=number * size).reshape(number, size).astype(float)
        for column, size in zip(published, sizes, strict=True)
    ]


def column_scores(seen: Sequence[Floats], weights: Floats, prior: Floats, people: Sequence[Codes]) -> Floats:
    """log Pr[public columns | value], each column by itself, of every person: [people, values].

    ``seen`` is what ``seen_together`` says of the rows that are learnt from.
    """
    score = np.zeros((len(people[0]) if people else 0, len(prior)))
    for rows, own in zip(seen, people, strict=True):
        share = rows.sum(0) / max(rows.sum(), 1.0)
        learnt = _conditional(weights.T @ rows, (weights**2).T @ rows, share, prior / prior.sum())
        score += np.log(learnt).T[own]
    return score


def _conditional(counts: Floats, variance: Floats, share: Floats, prior: Floats) -> Floats:
    """Pr[category | value], values x categories, from noisy counts; how frequent values are is known."""
    total = np.maximum(prior * share.sum() * counts.sum(), 1.0)[:, None]
    apart = counts - counts.sum(1, keepdims=True) * share
    signal, noise = (apart**2).sum(1, keepdims=True), variance.sum(1, keepdims=True)
    kept = np.divide(np.maximum(signal - noise, 0.0), signal, out=np.zeros_like(signal), where=signal > 0)
    fitted = np.maximum(share + kept * apart / total, 0.0)
    smooth: Floats = (total * fitted + SMOOTHING * (share + 1e-12)) / (total * fitted.sum(1, keepdims=True) + SMOOTHING)
    return smooth
