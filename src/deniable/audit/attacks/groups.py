"""Attacks on releases of groups that hold true values: Anatomy's buckets, generalized boxes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deniable.audit.attacks.corruption import corruption
from deniable.audit.attacks.evidence import Evidence
from deniable.audit.attacks.homogeneity import homogeneity
from deniable.audit.attacks.linking import linking
from deniable.audit.attacks.result import AttackResult, blind_guess
from deniable.audit.attacks.scene import KNOWN, Scene, known_of, learnt
from deniable.audit.grouped import GroupRows
from deniable.core.arrays import Ints


@dataclass(frozen=True, eq=False)
class GroupScene:
    """A release of groups, as attackers see it.

    Attributes:
        seen: its rows and the people.
        groups: its groups.
        located: the group in which each person is found for certain; -1 for who is not.
    """

    seen: Scene
    groups: GroupRows
    located: Ints


def played_on_groups(scene: GroupScene, rng: np.random.Generator) -> list[AttackResult]:
    """Every attack on groups of true values."""
    seen, groups = scene.seen, scene.groups
    located = np.flatnonzero(scene.located >= 0)
    return [
        linking(seen.public, seen.views, seen.evidence, seen.people, seen.original),
        homogeneity(groups.group, groups.value, scene.located[located], seen.original[located]),
        *_corruption(scene, rng),
        *learnt(seen, rng),
    ]


def _corruption(scene: GroupScene, rng: np.random.Generator) -> list[AttackResult]:
    """One member of each group is attacked; of the others, whoever they are, some are known by their values."""
    groups, original = scene.groups, scene.seen.original
    group, value = np.repeat(groups.group, groups.rows), np.repeat(groups.value, groups.rows)
    target = rng.permutation(np.flatnonzero(scene.located >= 0))
    target = target[np.unique(scene.located[target], return_index=True)[1]]
    m = scene.seen.m
    wanted = scene.located[target] * m + original[target]
    rows = np.flatnonzero(np.isin(group, scene.located[target]))
    keys = group[rows] * m + value[rows]
    kept, first = np.unique(keys, return_index=True)
    attacked = np.zeros(len(rows), bool)
    attacked[first[np.isin(kept, wanted)]] = True
    has_target = np.isin(group[rows], group[rows][attacked])  # a table that is another one may hold none of them
    rows, attacked = rows[has_target], attacked[has_target]
    order = np.lexsort((rng.random(len(rows)), ~attacked, group[rows]))
    members, values = group[rows][order], value[rows][order]
    # Which of several equally likely values is guessed must not depend on their codes: each pair gets a random one.
    _, pairs = np.unique(members * m + values, return_inverse=True)
    labels = rng.permutation(int(pairs.max(initial=-1)) + 1)[pairs]
    exact = Evidence.as_published(np.ones(1))
    results = []
    for name, share in KNOWN.items():
        played = corruption(members, labels, exact, labels, known_of(members, share))
        note = f"{name} of the other members of the group are known"
        results.append(replace(played, note=note, baseline=blind_guess(values[known_of(members, 1.0) == 0])))
    return results
