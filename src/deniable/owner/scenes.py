"""Attacks on a release of one's own: the joiner of release, table and the attackers of the audit room.

All rows of a small table are in the scene. Of a larger one, an attacker who learns from the release learns from all of
its rows, of which only counts are held; who is attacked is a sample.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from deniable.audit.attacks.evidence import Evidence, views_of
from deniable.audit.attacks.informed import Informed, classes_by_code
from deniable.audit.attacks.result import AttackResult
from deniable.audit.attacks.scene import Scene, informed, played_on_rows, rebuilt_decoys
from deniable.audit.attacks.shown import LineUpRows
from deniable.audit.audit import Audit
from deniable.audit.exposure import combined
from deniable.audit.part import PartAudit
from deniable.audit.posteriors import Posteriors
from deniable.core.arrays import Codes, Counts, Floats, Ints, Words
from deniable.core.errors import DeniableError
from deniable.core.histogram import Histogram
from deniable.engines.batch.tallies import spread
from deniable.estimation.model.lineups import LineUpStates
from deniable.mechanisms.decoys.mechanism import Decoys
from deniable.owner.beside import HELD, Beside, Look
from deniable.owner.looking import Looked, joined
from deniable.owner.scanning import Scanned

SEED = 2010  # attackers toss coins too; the same audit gives the same figures
ENTRIES = 2**25  # numbers in what all views say of all values: beyond that nothing is played
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
        if number * scan.part.lineups.m > ENTRIES:
            return None
        likelihood = LineUpRows(scan.part.lineups).likelihood(np.arange(number))
        return Evidence(likelihood, scan.counts / max(scan.counts.sum(), 1))
    # By the posteriors of the audit: the cells and the rows that each of them took.
    posteriors, m = part.posteriors, len(part.domain)
    assert isinstance(posteriors, Posteriors)
    apart = posteriors.shows_cell or len(posteriors.cells) == 1
    if (len(posteriors.cells) if apart else 1) * m * m > ENTRIES:
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
