"""Attacks on rivals, played on a table in memory: what their groups show, and how often attackers are right.

A person's row of Anatomy is found where public values occur once; boxes are found by public values, and a row of
perturbed generalization by its box. Attackers of all releases (linking, homogeneity, corruption, the classifier) play
here, too; *de Finetti* and *foreground* were invented against groups (Kifer 2009; Wong et al. 2011; SPLU 3): a group
says which l values its rows have, and independence within the group is only what nobody has looked into. Which public
values go with which sensitive value is learnt from all groups together, and tells members of one group apart:

    Pr[v | row r of group g] ~ N_g[v] prod_c Pr[x_c | v],    Pr[x_c = k | v] from the rows, weighed by the left side

*Foreground* takes one step, from rows that are all alike in their group. *De Finetti* goes on to the fixed point, and
after every step lets the members of a group share out its values: each value of g is had by N_g[v] of its rows.

A person of a box of n rows of which one is shown knows that one of them was drawn, and nobody knows which. To who knows
how frequent values are (pi) a box says by what it shows, y,

    P'(y | x) = P(y | x) / n + (1 - 1/n) sum_k P(y | k) pi_k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.core.errors import OptionError
from deniable.core.privacy import Privacy
from deniable.core.values import Codes, Floats, Ints
from deniable.lab.anatomy import Anatomy
from deniable.lab.generalize import Boxed, Generalize
from deniable.lab.perturbed_generalization import PerturbedGeneralization, Sampled
from deniable.lab.rival import Rival
from deniable.owner.attacks import corruption, homogeneity, linking, repeated, sample_corruption
from deniable.owner.public import combined
from deniable.owner.scenes import KNOWN, RELEASES, Scene, known_of, learnt
from deniable.planning.attackers import AttackResult, Evidence, blind_guess, judged
from deniable.planning.informed import learnt_from
from deniable.planning.pools import CodedTable
from deniable.tables.keys import Keystream, Secret

SEED = 2010  # attackers toss coins too; the same groups give the same figures
ENTRIES = 2**25  # numbers in what all groups say of all values: beyond that nothing is played
AT_ONCE, FEWEST = 2**23, 1000  # numbers that ten regroupings may hold; people that are attacked at the least
ROUNDS = 20
SHARING = 3  # times that rows and values of a group are made to add up, in every round
SMOOTHING = 1.0


def attack(
    rival: Rival, table: CodedTable, stream: Keystream | None = None, *, privacy: Privacy | None = None
) -> tuple[AttackResult, ...]:
    """How often attackers are right who see what a rival shows of a table.

    Args:
        rival: with its options; ``Laplace`` shows no rows that could be attacked.
        table: the original, as codes: ``CodedTable.of(table, "disease")``.
        stream: decides which rows are grouped together; left out, always the same.
        privacy: the requirement, of a rival whose channel follows from one.

    >>> import pyarrow as pa
    >>> from deniable.lab import Anatomy, attack
    >>> from deniable.planning.pools import CodedTable
    >>> people = pa.table({"age": [20, 21, 22, 23, 24, 25], "disease": ["flu", "hiv", "cold"] * 2})
    >>> played = attack(Anatomy(3), CodedTable.of(people, "disease"))
    >>> [result.success for result in played if result.note.startswith("all")]
    [1.0]
    """
    stream = Keystream(Secret.from_key(SEED.to_bytes(32, "big")), "attack") if stream is None else stream
    rng = np.random.default_rng(SEED)
    if isinstance(rival, PerturbedGeneralization):
        return _on_samples(rival, table, stream, privacy, rng)
    if isinstance(rival, Anatomy):
        rival.guarantee(table.histogram, privacy)
        scene = _buckets(rival.group(table, stream.subkey("groups")).astype(np.int64), table)
        if len(scene.shares) * table.m > ENTRIES:
            return ()
        return (*_played(scene, rng), *_looked_into(scene), *_regrouped(rival, table, stream))
    if isinstance(rival, Generalize):
        rival.guarantee(table.histogram, privacy)
        kept, boxed = rival.group(table, stream)
        return () if boxed.number * table.m > ENTRIES else tuple(_played(_boxes(kept, boxed, table), rng))
    raise OptionError(
        f"mechanism {rival.name!r} shows no rows, so nothing can be attacked. Fix: Anatomy() or Generalize()."
    )


@dataclass(frozen=True, eq=False)
class GroupScene:
    """Groups of true values, as attackers see them.

    Attributes:
        seen: the rows and the people.
        groups, values: the group and the true value of every row, which groups show without saying whose is whose.
        located: the group in which each person is found for certain; -1 for who is not.
    """

    seen: Scene
    groups: Ints
    values: Ints
    located: Ints

    @property
    def shares(self) -> Floats:
        """Of each group the share of its rows that have each value, [groups, values]."""
        assert self.seen.weights is not None
        return self.seen.weights


def _shares(groups: Ints, values: Ints, m: int) -> tuple[Floats, Evidence]:
    """Each value's share of each group, and what finding someone's group says: Pr[group | value]."""
    rows = np.zeros((int(groups.max()) + 1, m))
    np.add.at(rows, (groups, values), 1.0)
    totals = rows.sum(0)
    return rows / np.maximum(rows.sum(1, keepdims=True), 1), Evidence(
        rows / np.maximum(totals, 1), totals / totals.sum()
    )


def _buckets(cells: Ints, table: CodedTable) -> GroupScene:
    """A row shows its group; whose row it is, is certain where public values occur once."""
    values, there = table.codes.astype(np.int64), np.flatnonzero(cells >= 0)
    shares, evidence = _shares(cells[there], values[there], table.m)
    public = combined([column.codes for column in table.columns.values()], table.rows)
    columns = [(own[there], own) for own in map(learnt_from, table.columns.values())]
    seen = Scene(public[there], cells[there], evidence, None, public, values, columns, shares)
    located = np.full(table.rows, -1)
    rows, alone = seen.alone()
    located[alone] = cells[there][rows]
    return GroupScene(seen, cells[there], values[there], located)


def _boxes(kept: Ints, boxed: Boxed, table: CodedTable) -> GroupScene:
    """A person's box is found by their public values; its rows show true values."""
    values, groups = table.codes[kept].astype(np.int64), boxed.groups
    looks = [boxed.box(name).looks()[groups] for name in boxed.axes]
    prior = np.maximum(np.bincount(values, minlength=table.m), 1e-9)
    columns = [(own, own) for own in looks]
    evidence, weights = Evidence.as_published(prior), np.eye(table.m)
    seen = Scene(groups, values, evidence, values, groups, values, columns, weights)
    return GroupScene(seen, groups, values, groups)


def _played(scene: GroupScene, rng: np.random.Generator) -> list[AttackResult]:
    """Every attack on groups of true values."""
    seen, located = scene.seen, np.flatnonzero(scene.located >= 0)
    return [
        linking(seen.public, seen.views, seen.evidence, seen.people, seen.original),
        homogeneity(scene.groups, scene.values, scene.located[located], seen.original[located]),
        *_group_corruption(scene, rng),
        *learnt(seen, rng),
    ]


def _group_corruption(scene: GroupScene, rng: np.random.Generator) -> list[AttackResult]:
    """One member of each group is attacked; of the others, whoever they are, some are known by their values."""
    group, value, original = scene.groups, scene.values, scene.seen.original
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


def _looked_into(scene: GroupScene) -> list[AttackResult]:
    """De Finetti and foreground, of people whose group is known; left out where rows x values are too many to hold."""
    seen, located = scene.seen, np.flatnonzero(scene.located >= 0)
    if not seen.columns or not len(located) or len(seen.views) * seen.m > ENTRIES:
        return []
    buckets = Buckets(seen.views, scene.shares, [ours for ours, _ in seen.columns])
    people = [theirs[located] for _, theirs in seen.columns]
    return [
        learner(buckets, people, scene.located[located], seen.original[located]) for learner in (foreground, de_finetti)
    ]


def _regrouped(rival: Anatomy, table: CodedTable, stream: Keystream) -> list[AttackResult]:
    """Repeated publication of Anatomy: the same rows in fresh groups, each of which leaves fewer values possible."""
    values, counts, m = table.codes.astype(np.int64), table.histogram.counts, table.m
    drawn = [rival.group(table, stream.subkey(f"groups {number}")) for number in range(RELEASES)]
    there = np.flatnonzero(np.logical_and.reduce([groups >= 0 for groups in drawn]))
    most = max(FEWEST, AT_ONCE // (RELEASES * m))
    people = there if len(there) <= most else np.random.default_rng(SEED).choice(there, most, replace=False)
    likelihood: list[Floats] = []
    views: list[Ints] = []
    for groups in drawn:
        looked_at, own = np.unique(groups[people], return_inverse=True)
        members = np.flatnonzero(np.isin(groups, looked_at))
        rows = np.zeros((len(looked_at), m))
        np.add.at(rows, (np.searchsorted(looked_at, groups[members]), values[members]), 1.0)
        views.append(own + sum(len(channel) for channel in likelihood))
        likelihood.append(rows / np.maximum(counts, 1))
    evidence = Evidence(np.concatenate(likelihood), counts / counts.sum())
    result = repeated(views, evidence, values[people])
    return [replace(result, note=f"if the rows were published {RELEASES} times, each time in fresh groups")]


def _on_samples(
    rival: PerturbedGeneralization,
    table: CodedTable,
    stream: Keystream,
    privacy: Privacy | None,
    rng: np.random.Generator,
) -> tuple[AttackResult, ...]:
    """Linking, homogeneity, corruption and the classifier; a view is a box and what it shows."""
    rival.guarantee(table.histogram, privacy)
    assert privacy is not None  # refused above
    made = Sampled.draw(table, rival.k, privacy, stream)
    shown, sizes, groups = made.sample.shown, made.sample.rows, made.boxed.groups
    if len(sizes) * table.m > ENTRIES:
        return ()
    prior, matrix = table.histogram.relative, made.sample.channel.matrix()
    own = matrix[shown] / sizes[:, None]  # of each box: that its row is the person's, and shows what it shows
    evidence = Evidence(own + ((1 - 1 / sizes) * (matrix[shown] @ prior))[:, None], prior)
    looks = [made.boxed.box(name).looks() for name in made.boxed.axes]
    order = rng.permutation(table.rows)
    order = order[np.argsort(groups[order], kind="stable")]
    values, boxes = table.codes.astype(np.int64), np.arange(len(sizes))
    weights = sizes[:, None] * np.linalg.inv(matrix)[:, shown].T
    columns = [(look, look[groups]) for look in looks]
    scene = Scene(boxes, boxes, evidence, shown, groups, values, columns, weights)
    channel, located = Evidence(matrix, prior), groups[order]
    corrupted = [
        replace(
            sample_corruption(located, shown, channel, values[order], known_of(located, share)),
            note=f"{name} of the others of the box are known",
        )
        for name, share in KNOWN.items()
    ]
    return (
        linking(boxes, boxes, evidence, groups, values),
        homogeneity(boxes, shown, groups, values),
        *corrupted,
        *learnt(scene, rng),
    )


# -- de Finetti --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Buckets:
    """Groups that show which values their rows have, and the public columns of every row.

    Attributes:
        groups: the group of each published row.
        shares: of each group the share of its rows that have each value, [groups, values].
        columns: the public columns of the published rows, coded 0, 1, ...
    """

    groups: Codes
    shares: Floats
    columns: Sequence[Codes]

    def learnt(self, rounds: int, *, sharing: bool) -> list[Floats]:
        """log Pr[category | value] of each public column, [values, categories]."""
        weights = self.shares[self.groups]
        tables = self._tables(weights)
        for _ in range(rounds - 1):
            weights = _normal(self.shares[self.groups] * _likely(tables, self.columns))
            for _ in range(SHARING if sharing else 0):
                weights = _normal(weights * self._missing(weights))
            tables = self._tables(weights)
        return tables

    def _missing(self, weights: Floats) -> Floats:
        """By how much each value of a group is had by too few or too many of its rows."""
        sums = np.zeros_like(self.shares)
        np.add.at(sums, self.groups, weights)
        sizes = np.bincount(self.groups, minlength=len(self.shares))[:, None]
        factor = np.divide(self.shares * sizes, sums, out=np.ones_like(sums), where=sums > 0)
        result: Floats = factor[self.groups]
        return result

    def _tables(self, weights: Floats) -> list[Floats]:
        tables = []
        for column in self.columns:
            counts = np.zeros((int(column.max(initial=0)) + 1, weights.shape[1]))
            np.add.at(counts, column, weights)
            overall = counts.sum(1, keepdims=True) / max(float(counts.sum()), 1.0)
            tables.append(np.log((counts + SMOOTHING * overall + 1e-12) / (counts.sum(0) + SMOOTHING)).T)
        return tables


def de_finetti(buckets: Buckets, people: Sequence[Codes], located: Codes, original: Codes) -> AttackResult:
    """Guess for each person the value of their group that fits their public values best, learnt to the fixed point.

    Args:
        buckets: the release.
        people: the public columns of the people, coded as in ``buckets``.
        located: the group of each person.
        original: for each person, their true value.
    """
    tables = buckets.learnt(ROUNDS, sharing=True)
    return _guessed("de Finetti", buckets, tables, people, located, original)


def foreground(buckets: Buckets, people: Sequence[Codes], located: Codes, original: Codes) -> AttackResult:
    """The same by one step: what all groups say about each public value, without looking into them again."""
    tables = buckets.learnt(1, sharing=False)
    return _guessed("foreground", buckets, tables, people, located, original)


def _guessed(
    name: str, buckets: Buckets, tables: list[Floats], people: Sequence[Codes], located: Codes, original: Codes
) -> AttackResult:
    guess = (buckets.shares[located] * _likely(tables, people)).argmax(1) if len(located) else np.zeros(0, np.int64)
    certain = "people whose group is known; which value of it is theirs is learnt from all groups"
    return judged(name, guess == original, blind_guess(original), certain)


def _likely(tables: Sequence[Floats], columns: Sequence[Codes]) -> Floats:
    """prod_c Pr[x_c | v], up to a factor for each row; a category that no row has says nothing."""
    score = np.zeros((len(columns[0]), len(tables[0])))
    for table, column in zip(tables, columns, strict=True):
        known = column < table.shape[1]
        score += np.where(known[:, None], table.T[np.where(known, column, 0)], 0.0)
    likely: Floats = np.exp(score - score.max(1, keepdims=True))
    return likely


def _normal(weights: Floats) -> Floats:
    total = weights.sum(1, keepdims=True)
    normal: Floats = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return normal
