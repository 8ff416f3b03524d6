"""Attacks: each plays one adversary against any mechanism, and says how often it is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from deniable.core.errors import OptionError
from deniable.core.values import Bools, Codes, Floats, percent
from deniable.planning.attackers import AttackResult, Evidence, blind_guess, classifier, judged, views_of

# -- Corruption: someone who knows the true values of some members of a person's group (SDR introduction, Tao et al.).
# They may have asked them, or be one of them. Anatomy publishes the true values of a group in unknown order, so every
# known member removes one value, and the last one is certain. Where each row is perturbed independently, the values of
# others say nothing about the person's own row. The attacker is given everything: the group, its published rows, the
# channel, the frequencies; and is a perfect Bayesian about which row belongs to whom:
#
#     Pr[x] ~ prior(x) sum_j Pr[view_j | x] * perm(L without row j),   L[i][j] = Pr[view_j | value of member i]
#
# where an unknown member's likelihood is averaged over the prior. The permanent sums over all ways to match the others.
# Where true values are published (Anatomy, generalization) this is how often x occurs in the group, known members taken
# away, and groups may be of any size. Where one row of a group is published, and nobody knows whose (perturbed
# generalization), the others only dilute it:
#
#     Pr[x] ~ prior(x) (Pr[view | x] + sum over known members i of Pr[view | value of i] + unknown others * Pr[view])


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


# -- Homogeneity: someone who knows which group a person is in, and needs nothing more where the group agrees ----------
# Invented against k-anonymity: in a group whose rows all show one value, everybody in it has that value. The attacker
# claims exactly these people, and nobody else.


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


# -- Reconstruction of decoy groups, and minimality: someone who knows the algorithm -----------------------------------
# Decoy groups protect only as long as nobody knows who lends whom a value. The first attack takes consecutive rows for
# a group, as a program would write them that forgot to shuffle. The second runs the published algorithm backwards (the
# minimality attack): from the published counts it rebuilds which values lend to which, and with them each row's
# posterior; it claims those people of whom it is surer than the scheme promises.


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


# -- Duplicates: someone who looks for the same record twice (THESIS 2.3, "duplicate attack") --------------------------
# The (alpha, beta) scheme inserts a fake record at most once, so of two equal published records one is real, and
# whoever knows the public values knows the sensitive one for certain. Where values are perturbed row by row, two equal
# rows are two draws, and equal by chance as often as any others.


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


# -- Linking: a neighbour, an employer or a data broker who knows a person's public values -----------------------------
# They look up the published rows with these values, take what each says about its true value (Bayes' rule with the
# manifest's channel), give every matching row the same chance of being the person's, and guess the likeliest value.


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


# -- Repeated publication: someone who collects every release of the same rows -----------------------------------------
# Each release under a fresh key is another draw of every value; Bayes' rule over all of them averages the noise away. A
# release under the same key repeats the same draws, and a repeat that is recognised as one is no new evidence.


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


# -- Attacks on releases: each plays one adversary against any mechanism, and says how often it is right ---------------


__all__ = [
    "AttackResult",
    "Evidence",
    "classifier",
    "corruption",
    "decoy_reconstruction",
    "duplicates",
    "homogeneity",
    "linking",
    "minimality",
    "repeated",
    "sample_corruption",
    "views_of",
]
