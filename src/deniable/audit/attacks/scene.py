"""All attacks that apply to a release, played by one hand: what attackers see of a column, and the people they attack.

Nothing here knows a mechanism: a release is what its rows show and what that says (``Evidence``). Choices among
people and among equally good rows are made by the generator that is handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.audit.attacks.classifier import classifier, seen_together
from deniable.audit.attacks.corruption import corruption
from deniable.audit.attacks.decoy_reconstruction import minimality
from deniable.audit.attacks.duplicates import duplicates
from deniable.audit.attacks.evidence import Evidence
from deniable.audit.attacks.homogeneity import homogeneity
from deniable.audit.attacks.informed import Informed, from_population, from_release
from deniable.audit.attacks.linking import linking
from deniable.audit.attacks.repeated import repeated
from deniable.audit.attacks.result import AttackResult
from deniable.audit.attacks.shown import Views
from deniable.core.arrays import Bools, Codes, Floats, Ints

ENTRIES = 2**23  # numbers that an attack may hold at once: people x values
INVERSE = 2**32  # steps that inverting a channel may take: views x values^2
RELEASES = 10
LARGEST = 6  # people with the same public values whose rows are matched in every way
KNOWN = {"none": 0.0, "half": 0.5, "all": 1.0}  # of the others


@dataclass(frozen=True, eq=False)
class Scene:
    """What attackers see of one sensitive column, and the truth that they are judged by.

    Attributes:
        public: of each published row its combination of public values.
        views, evidence: what each published row shows, and what that says.
        shown: the value that each published row shows, or speaks for most where it shows several; None where rows show
            none.
        people: of each person their combination, numbered as in ``public``.
        original: of each person their true value.
        columns: public columns, coded: of the published rows and of the people.
        weights: how much a view counts for each value, for the classifier; left out, the channel is inverted.
        seen: how often views and public columns go together in the whole release (``seen_together``), where the scene
            does not hold all of its rows.
    """

    public: Ints
    views: Ints
    evidence: Evidence
    shown: Ints | None
    people: Ints
    original: Ints
    columns: Sequence[tuple[Codes, Codes]]
    weights: Floats | None = None
    seen: Sequence[Floats] | None = None

    @property
    def m(self) -> int:
        return len(self.evidence.prior)

    def alone(self) -> tuple[Ints, Ints]:
        """Rows and people who belong together for certain: their public values occur once in release and table."""
        count = int(max(self.public.max(initial=-1), self.people.max(initial=-1))) + 1
        once = (np.bincount(self.public, minlength=count) == 1) & (np.bincount(self.people, minlength=count) == 1)
        rows, people = np.flatnonzero(once[self.public]), np.flatnonzero(once[self.people])
        return rows[np.argsort(self.public[rows])], people[np.argsort(self.people[people])]


def played_on_rows(scene: Scene, rng: np.random.Generator) -> list[AttackResult]:
    """Every attack on rows that show a perturbed value, or a line-up."""
    assert scene.shown is not None
    results = [
        linking(scene.public, scene.views, scene.evidence, scene.people, scene.original),
        homogeneity(scene.public, scene.shown, scene.people, scene.original),
        *_row_corruption(scene, rng),
        republished(scene, rng),
    ]
    results += learnt(scene, rng)
    m = scene.m
    return [*results, duplicates(scene.public * m + scene.shown, scene.people * m + scene.original, m)]


def learnt(scene: Scene, rng: np.random.Generator) -> list[AttackResult]:
    """The classifier: trained on half of the combinations of public values, it predicts people of the other half."""
    weights = _classifying(scene)
    if weights is None:
        return []
    count = int(max(scene.public.max(initial=-1), scene.people.max(initial=-1))) + 1
    first = rng.random(count) < 0.5
    rows, people = np.flatnonzero(first[scene.public]), np.flatnonzero(~first[scene.people])
    people = _some(people, scene.m, rng)
    if not len(rows) or not len(people):
        return []
    result = classifier(
        [column[rows] for column, _ in scene.columns],
        scene.views[rows],
        weights,
        scene.evidence.prior,
        [own[people] for _, own in scene.columns],
        scene.original[people],
    )
    note = f"{result.note}; trained on other people's rows: what it knows it would know without the person's row"
    return [replace(result, note=note)]


def informed(scene: Scene, rho2: float | None, rng: np.random.Generator) -> list[Informed]:
    """Attackers who have learnt which values go with which public columns, from other people and from the release."""
    evidence = scene.evidence
    own = [column for _, column in scene.columns]
    attackers = [from_population(own, scene.original, scene.m, rng)]
    weights = _classifying(scene)
    if weights is not None:
        seen = scene.seen
        if seen is None:
            seen = seen_together([column for column, _ in scene.columns], scene.views, len(weights), own)
        attackers.append(from_release(seen, weights, evidence.prior, own, scene.original, rng))
    return [attacker.against(Views(evidence.likelihood), rho2, rng) for attacker in attackers if attacker is not None]


def _classifying(scene: Scene) -> Floats | None:
    """How much a view counts for each value; None where there is nothing to learn from, or too much to invert."""
    if not scene.columns or scene.weights is not None:
        return scene.weights if scene.columns else None
    possible = int(scene.evidence.likelihood.any(axis=1).sum())
    return None if possible * scene.m**2 > INVERSE else scene.evidence.weights


def republished(scene: Scene, rng: np.random.Generator) -> AttackResult:
    """Repeated publication: what each person's row would show in releases under fresh keys, drawn from the channel."""
    people = _some(np.arange(len(scene.original)), scene.m, rng)
    original = scene.original[people]
    every = Views(scene.evidence.likelihood).draw(np.tile(original, RELEASES), rng)
    result = repeated(list(every.reshape(RELEASES, -1)), scene.evidence, original)
    return replace(result, note=f"if the rows were published {RELEASES} times, each time under a fresh key")


def rebuilt_decoys(scene: Scene, rebuilt: Evidence, promised: float) -> AttackResult:
    """Minimality, of people whose row is found for certain."""
    assert scene.shown is not None
    rows, people = scene.alone()
    return minimality(scene.shown[rows], rebuilt, scene.original[people], promised)


def _row_corruption(scene: Scene, rng: np.random.Generator) -> list[AttackResult]:
    """People who share all public values are a group: which of its rows is whose, nobody knows."""
    count = int(max(scene.public.max(initial=-1), scene.people.max(initial=-1))) + 1
    sizes = np.bincount(scene.public, minlength=count)
    fit = (sizes == np.bincount(scene.people, minlength=count)) & (sizes >= 2) & (sizes <= LARGEST)
    chosen = rng.permutation(np.flatnonzero(fit))[: max(1, ENTRIES // (LARGEST * scene.m))]
    fit = np.isin(np.arange(count), chosen)
    rows = np.flatnonzero(fit[scene.public])
    rows = rows[np.argsort(scene.public[rows], kind="stable")]
    people = rng.permutation(np.flatnonzero(fit[scene.people]))
    people = people[np.argsort(scene.people[people], kind="stable")]
    groups = scene.people[people]
    results = []
    for name, share in KNOWN.items():
        known = known_of(groups, share)
        result = corruption(groups, scene.views[rows], scene.evidence, scene.original[people], known)
        results.append(replace(result, note=f"{name} of the others with the same public values are known"))
    return results


def known_of(groups: Ints, share: float) -> Bools:
    """In each group, whose members stand together, all but the first are the others: the share that is known."""
    starts = np.flatnonzero(np.r_[True, np.diff(groups) != 0]) if len(groups) else np.zeros(0, np.int64)
    sizes = np.diff(np.r_[starts, len(groups)])
    seat = np.arange(len(groups)) - np.repeat(starts, sizes)
    others = np.repeat(sizes, sizes) - 1
    return seat > others - np.floor(share * others)


def _some(people: Ints, m: int, rng: np.random.Generator) -> Ints:
    """As many people as an attack can take on at once."""
    most = max(1, ENTRIES // m)
    return people if len(people) <= most else np.sort(rng.choice(people, most, replace=False))
