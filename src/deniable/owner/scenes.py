"""Attacks on a release of one's own: what attackers see of a column, and the people they attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from deniable.core.errors import DeniableError
from deniable.core.histogram import Histogram
from deniable.core.values import Bools, Codes, Counts, Floats, Ints, Words
from deniable.estimation.model.lineups import LineUpStates
from deniable.mechanisms.decoys import Decoys
from deniable.owner.assessment import Audit
from deniable.owner.attacks import corruption, duplicates, homogeneity, linking, minimality, repeated
from deniable.owner.parts import PartAudit
from deniable.owner.public import combined
from deniable.owner.reading import HELD, Beside, Look, Looked, Scanned, joined
from deniable.planning.attackers import AttackResult, Evidence, LineUpRows, Views, classifier, seen_together, views_of
from deniable.planning.informed import Informed, classes_by_code, from_population, from_release
from deniable.planning.posteriors import Posteriors
from deniable.tables.counting import spread

# -- All attacks that apply to a release, played by one hand: what attackers see of a column, and the people they
# attack. Nothing here knows a mechanism: a release is what its rows show and what that says (``Evidence``). Choices
# among people and among equally good rows are made by the generator that is handed in.


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


# -- Attacks on a release of one's own: the joiner of release, table and the attackers of the audit room ---------------
# All rows of a small table are in the scene. Of a larger one, an attacker who learns from the release learns from all
# of its rows, of which only counts are held; who is attacked is a sample.


SEED = 2010  # attackers toss coins too; the same audit gives the same figures
BELIEFS_AT_ONCE = 2**25  # numbers in what all views say of all values: beyond that nothing is played
LARGE = 10_000  # rows of one combination in release and table: of more, rows are drawn
MANY, CLASSES = 50, 20  # a public column of more values is learnt from in so many classes


class Staged(NamedTuple):
    """A sensitive column as attackers see it, the rho2 that is required of it, and how many rows show each value."""

    scan: Scanned
    scene: Scene
    rho2: float | None
    shown: Counts


class Stage:
    """Every sensitive column as attackers see it; columns of too many values are left out.

    Args:
        beside: release and table.
        looked: what was seen of both.
        figures: of the audit so far.
    """

    def __init__(self, beside: Beside, looked: Looked, figures: Audit) -> None:
        self._beside, self._looked = beside, looked
        parts = {part.columns: part for part in figures.parts}
        self._parts = [parts[scan.part.columns] for scan in beside.scans]
        self._evidence = [_evidence(part, scan) for part, scan in zip(self._parts, beside.scans, strict=True)]
        self._classes = {
            name: classes_by_code(one.rows, one.numbers, MANY, CLASSES)
            for name, one in beside.numberings.items()
            if len(one.rows) > MANY
        }

    @property
    def is_empty(self) -> bool:
        """Whether no column can be attacked."""
        return all(evidence is None for evidence in self._evidence)

    def informed(self) -> tuple[Informed, ...]:
        """The informed attackers on every sensitive column."""
        results: list[Informed] = []
        people = self._looked.people
        published = joined([*self._beside.published()]) if self._beside.is_held else None
        staged = self._staged(published, people)
        for scan, scene, rho2, _ in staged:
            about = f" ({', '.join(scan.part.columns)})" if len(staged) > 1 else ""
            known = informed(scene, rho2, np.random.default_rng(SEED))
            results += [replace(one, learnt_from=one.learnt_from + about) for one in known]
        return tuple(results)

    def attacks(self) -> tuple[AttackResult, ...]:
        """Every attack on every sensitive column; of a large table, on some of the combinations of public values."""
        results: list[AttackResult] = []
        if self._beside.is_held:
            published, people, note = joined([*self._beside.published()]), self._looked.people, ""
        else:
            published, people = self._sampled()
            note = f"on {len(people):,} of {self._beside.people:,} people, drawn with all who share their public values"
        staged = self._staged(published, people)
        for scan, scene, _, shown in staged:
            played = [*played_on_rows(scene, np.random.default_rng(SEED)), *_minimality(scene, scan, shown)]
            about = f" ({', '.join(scan.part.columns)})" if len(staged) > 1 else ""
            results += [
                replace(result, name=result.name + about, note="; ".join(filter(None, [result.note, note])))
                for result in played
            ]
        return tuple(results)

    def _staged(self, published: Look | None, people: Look) -> list[Staged]:
        """Without published rows, counts of all of them are in the scenes."""
        combinations = None if published is None else _together(published, people)
        staged = []
        for place, (scan, part, evidence) in enumerate(
            zip(self._beside.scans, self._parts, self._evidence, strict=True)
        ):
            if evidence is None:
                continue
            rho2 = None if part.rho2 is None else float(part.rho2)
            scene = self._scene(place, evidence, published, people, combinations)
            staged.append(Staged(scan, scene, rho2, self._looked.shown[place].sum(0)[:-1]))
        return staged

    def _scene(
        self,
        place: int,
        evidence: Evidence,
        published: Look | None,
        people: Look,
        combinations: tuple[Ints, Ints] | None,
    ) -> Scene:
        """Release and people without their exempt rows, which show that they are."""
        m, design = len(evidence.prior), self._beside.scans[place].part.lineups
        original = people.values[place]
        there = np.flatnonzero(original < m)
        own = [codes[there] for codes in self._learnt_from(people)]
        weights = None if design is None else LineUpStates(design).weights(np.eye(design.m, dtype=bool)).T
        nobody = np.zeros(0, np.int64)
        if published is None or combinations is None:
            seen = self._seen(place, len(evidence.likelihood))
            columns = [(nobody, codes) for codes in own]
            return Scene(
                nobody, nobody, evidence, None, nobody, original[there].astype(np.int64), columns, weights, seen
            )
        rows, views = self._views(place, published)
        ours = [codes[rows] for codes in self._learnt_from(published)]
        # Rows that show line-ups show the value that they speak for most.
        shown = published.values[place][rows] if design is None else evidence.posterior.argmax(1)[views]
        return Scene(
            combinations[0][rows],
            views,
            evidence,
            shown.astype(np.int64),
            combinations[1][there],
            original[there].astype(np.int64),
            list(zip(ours, own, strict=True)),
            weights,
        )

    def _views(self, place: int, published: Look) -> tuple[Ints, Ints]:
        """The rows that show something of a part, and what."""
        part = self._beside.scans[place].part
        shown = published.values[place]
        rows = np.flatnonzero(shown < self._looked.shown[place].shape[1] - 1)
        cells = published.cells[rows] if part.cells_published and published.cells is not None else None
        return rows, views_of(shown[rows].astype(np.int64), len(part.domain), cells).astype(np.int64)

    def _seen(self, place: int, number: int) -> list[Floats]:
        """How often views and public columns go together in all rows of the release."""
        sizes = [int(codes.max(initial=0)) + 1 for codes in self._code_classes()]
        seen = [np.zeros(number * size) for size in sizes]
        for look in self._beside.published():
            rows, views = self._views(place, look)
            for counts, size, codes in zip(seen, sizes, self._learnt_from(look), strict=True):
                counts += np.bincount(views * size + codes[rows], minlength=number * size)
        return [counts.reshape(number, size) for counts, size in zip(seen, sizes, strict=True)]

    def _code_classes(self) -> list[Codes]:
        """For each public column the class of each of its codes."""
        return [
            self._classes.get(name, np.arange(len(one.rows), dtype=np.int16))
            for name, one in self._beside.numberings.items()
        ]

    def _learnt_from(self, look: Look) -> list[Codes]:
        """Public columns as a classifier learns from them: numbers in classes, rare values as one."""
        return [classes[codes] for classes, codes in zip(self._code_classes(), look.public.values(), strict=True)]

    def _sampled(self) -> tuple[Look, Look]:
        """Rows and people of combinations drawn by chance, as many as are held; of a combination of very many rows,
        rows drawn by chance."""
        share = HELD / max(self._beside.rows, self._beside.people)
        large = [
            records["key"][records["published"].astype(np.int64) + records["people"] > LARGE]
            for records in self._looked.combinations.ranges()
        ]
        chance = _Chance(share, np.sort(np.concatenate([np.zeros(0, np.uint64), *large])))
        published = joined([look.take(chance.drawn(look, 1)) for look in self._beside.published()])
        return published, joined([look.take(chance.drawn(look, 2)) for look in self._beside.original()])


class _Chance(NamedTuple):
    """Which rows are drawn: a function of their combination, or of their number where it has very many rows."""

    share: float
    large: Words

    def drawn(self, look: Look, side: int) -> Ints:
        place = np.minimum(np.searchsorted(self.large, look.keys), max(len(self.large) - 1, 0))
        many = self.large[place] == look.keys if len(self.large) else np.zeros(len(look), dtype=bool)
        numbers = np.arange(look.start, look.start + len(look), dtype=np.uint64) * np.uint64(2) + np.uint64(side)
        words = spread(np.where(many, numbers, look.keys) + np.uint64(SEED))
        return np.flatnonzero(words < np.uint64(self.share * 2.0**63) * np.uint64(2))


def _together(published: Look, people: Look) -> tuple[Ints, Ints]:
    """The number of each row's combination of public values, in release and table."""
    both = [np.concatenate([codes, people.public[name]]) for name, codes in published.public.items()]
    numbers = combined(both, len(published) + len(people))
    return numbers[: len(published)], numbers[len(published) :]


def _evidence(part: PartAudit, scan: Scanned) -> Evidence | None:
    """What a row's view says; None where that is too much to hold."""
    if scan.part.lineups is not None:
        number = len(scan.part.lineups.sets.members)
        if number * scan.part.lineups.m > BELIEFS_AT_ONCE:
            return None
        likelihood = LineUpRows(scan.part.lineups).likelihood(np.arange(number))
        return Evidence(likelihood, scan.counts / max(scan.counts.sum(), 1))
    # By the posteriors of the audit: the cells and the rows that each of them took.
    posteriors, m = part.posteriors, len(part.domain)
    assert isinstance(posteriors, Posteriors)
    apart = posteriors.shows_cell or len(posteriors.cells) == 1
    if (len(posteriors.cells) if apart else 1) * m * m > BELIEFS_AT_ONCE:
        return None
    channels = [cell.channel for cell in posteriors.cells]
    places = [np.array(cell.positions) for cell in posteriors.cells]
    dealt = [np.array(cell.rows, dtype=np.float64) for cell in posteriors.cells]
    return Evidence.of_channels(np.maximum(scan.counts, 1e-9), channels, places, dealt, cells_shown=apart)


def _minimality(scene: Scene, scan: Scanned, published: Counts) -> list[AttackResult]:
    """Decoy groups, rebuilt from what is published by running the algorithm on the published counts."""
    if scan.part.groups is None:
        return []
    c = scan.part.groups.c
    try:
        plan = Decoys(c=c, leftovers="drop").plan(Histogram(scan.part.domain, published), None)
    except DeniableError:  # by chance a value is published too often to be grouped
        return []
    channels, places = [cell.channel for cell in plan.cells], [plan.positions(cell) for cell in plan.cells]
    dealt = [cell.rows.counts for cell in plan.cells]
    rebuilt = Evidence.of_channels(np.maximum(published, 1e-9), channels, places, dealt, cells_shown=False)
    return [rebuilt_decoys(scene, rebuilt, 1 / c)]
