"""Corruption: someone who knows the true values of some members of a person's group (SDR introduction, Tao et al.).

They may have asked them, or be one of them. Anatomy publishes the true values of a group in unknown order, so every
known member removes one value, and the last one is certain. Where each row is perturbed independently, the values of
others say nothing about the person's own row. The attacker is given everything: the group, its published rows, the
channel, the frequencies; and is a perfect Bayesian about which row belongs to whom:

    Pr[x] ~ prior(x) sum_j Pr[view_j | x] * perm(L without row j),   L[i][j] = Pr[view_j | value of member i]

where an unknown member's likelihood is averaged over the prior. The permanent sums over all ways to match the others.
Where true values are published (Anatomy, generalization) this is how often x occurs in the group, known members taken
away, and groups may be of any size. Where one row of a group is published, and nobody knows whose (perturbed
generalization), the others only dilute it:

    Pr[x] ~ prior(x) (Pr[view | x] + sum over known members i of Pr[view | value of i] + unknown others * Pr[view])
"""

from __future__ import annotations

import numpy as np

from deniable.audit.attacks.evidence import Evidence
from deniable.audit.attacks.result import AttackResult, blind_guess, judged
from deniable.core.arrays import Bools, Codes, Floats
from deniable.core.errors import OptionError
from deniable.core.probability import percent

LARGEST_GROUP = 12


def corruption(groups: Codes, views: Codes, evidence: Evidence, original: Codes, known: Bools) -> AttackResult:
    """Attack one member of each group, knowing the true values of those marked as known.

    Args:
        groups: for each person, their group; row and person have the same number, but inside a group the attacker
            does not know which row is whose. Groups of one: the attacker found the person's own row.
        views: for each row, what it shows.
        evidence: what a view says.
        original: for each person, their true value.
        known: whom the attacker knows. The first unknown member of each group is attacked.
    """
    if evidence.exact or not len(groups):
        return _by_counting(groups, views, original, known)
    order = np.lexsort((known, groups))  # unknown members first, so the target is each group's first row
    starts = np.flatnonzero(np.r_[True, np.diff(groups[order]) != 0])
    sizes = np.diff(np.r_[starts, len(order)])
    if sizes.max(initial=0) > LARGEST_GROUP:
        raise OptionError(
            f"A group of {sizes.max()} members is too large for the corruption attack, which tries every matching: "
            f"at most {LARGEST_GROUP}. Fix: attack smaller groups, or single rows."
        )
    right: list[Bools] = []
    attacked: list[Codes] = []
    for size in np.unique(sizes):
        members = order[starts[sizes == size][:, None] + np.arange(size)]
        members = members[~known[members[:, 0]]]
        guess = _beliefs(views[members], original[members], known[members], evidence).argmax(1)
        attacked.append(original[members[:, 0]])
        right.append(guess == attacked[-1])
    return _judged(np.concatenate(right), np.concatenate(attacked), known)


def sample_corruption(groups: Codes, shown: Codes, evidence: Evidence, original: Codes, known: Bools) -> AttackResult:
    """Attack one member of each group of which a single row is published; ``shown`` is the view of each group's row.

    Groups are numbered 0, 1, ..; all else is as in ``corruption``.
    """
    target = _targets(groups, known)
    number = len(shown)
    likelihood = evidence.likelihood[shown]
    own = evidence.likelihood[shown[groups[known]], original[known]]
    from_known = np.bincount(groups[known], weights=own, minlength=number)
    others = np.bincount(groups[~known], minlength=number) - 1
    rest = from_known + others * (likelihood @ evidence.prior)
    belief = evidence.prior * (likelihood + rest[:, None])
    attacked = original[target]
    return _judged(belief[groups[target]].argmax(1) == attacked, attacked, known)


def _by_counting(groups: Codes, shown: Codes, original: Codes, known: Bools) -> AttackResult:
    """Values are published as they are: guess what is most frequent when the known members are taken away."""
    m = int(max(shown.max(initial=0), original.max(initial=0))) + 1
    keys = np.concatenate((groups * m + shown, groups[known] * m + original[known]))
    weights = np.concatenate((np.ones(len(groups)), -np.ones(int(known.sum()))))
    pairs, place = np.unique(keys, return_inverse=True)
    left = np.bincount(place, weights=weights)
    order = np.lexsort((pairs % m, -left, pairs // m))  # in each group the most frequent first, then the first value
    counted, first = np.unique(pairs[order] // m, return_index=True)
    target = _targets(groups, known)
    guess = (pairs[order] % m)[first][np.searchsorted(counted, groups[target])]
    return _judged(guess == original[target], original[target], known)


def _targets(groups: Codes, known: Bools) -> Codes:
    """The first unknown member of each group that has one."""
    unknown = np.flatnonzero(~known)
    return unknown[np.unique(groups[unknown], return_index=True)[1]]


def _judged(right: Bools, attacked: Codes, known: Bools) -> AttackResult:
    share = float(known.mean()) if len(known) else 0.0
    return judged("corruption", right, blind_guess(attacked), f"{percent(share)} of the people are known")


def _beliefs(views: Codes, values: Codes, known: Bools, evidence: Evidence) -> Floats:
    """What the attacker believes of the first member of each group; arrays are groups x members."""
    count, size = views.shape
    likelihood = evidence.likelihood[views]  # groups x rows x values
    average = likelihood @ evidence.prior
    others = np.empty((count, size, size))
    for member in range(1, size):
        own = np.take_along_axis(likelihood, values[:, [member], None].repeat(size, 1), axis=2)[:, :, 0]
        others[:, member] = np.where(known[:, [member]], own, average)
    left = _matchings(others)
    belief: Floats = evidence.prior * np.einsum("gj,gjx->gx", left, likelihood)
    return belief


def _matchings(others: Floats) -> Floats:
    """For each row j, the permanent of the other members' likelihoods over all rows but j, by subsets of rows."""
    count, size, _ = others.shape
    ways: dict[int, Floats] = {0: np.ones(count)}
    for member in range(1, size):
        more: dict[int, Floats] = {}
        for used, weight in ways.items():
            for row in range(size):
                if not used >> row & 1:
                    key = used | 1 << row
                    added = weight * others[:, member, row]
                    more[key] = more[key] + added if key in more else added
        ways = more
    full = (1 << size) - 1
    return np.stack([ways[full ^ 1 << row] for row in range(size)], axis=1)
