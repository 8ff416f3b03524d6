"""The story of SDR's introduction as a table: Anatomy and generalization fall to corruption, randomization does not.

Everyone is protected to the same degree: groups with l = 6 say that nobody becomes surer than 1/6, and so do the
randomized releases with rho2 = 1/6. Then the attacker learns the values of 0, 1, .., 5 of every five other members of
a person's group and guesses that person's value. Anatomy's groups have six members, so these are the values of 0, 1,
.., 5 people; boxes are larger. Against a randomized release the attacker gets more than a group: the person's own row.
Perturbed generalization is attacked in its boxes, each of which shows one perturbed row.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.core.values import Bools
from deniable.estimation.model.lineups import LineUpStates
from deniable.lab.anatomy import anatomy_groups
from deniable.lab.draws import draw_release
from deniable.lab.generalize import Boxed
from deniable.lab.made_up import census
from deniable.lab.perturbed_generalization import Sampled
from deniable.mechanisms.base import Mechanism
from deniable.mechanisms.lineup import Lineup
from deniable.mechanisms.small_domain import SmallDomain
from deniable.mechanisms.uniform import Uniform
from deniable.owner.attacks import corruption, sample_corruption
from deniable.planning.attackers import AttackResult, Evidence, views_of
from deniable.planning.pools import CodedTable
from deniable.publishing.parts import public_histogram
from deniable.publishing.publish import publish
from deniable.tables.keys import Keystream, Secret

Codes = npt.NDArray[np.int64]
ROWS = 48_000
GROUP = 6
SENSITIVE = "occupation"
KEYS = ("known", "method", "success", "low", "high", "baseline", "trials", "promised")


def corruption_story(seed: int = 2010, rows: int = ROWS) -> list[dict[str, Any]]:
    """One line for each number of known members and each method: how often the attacker is right.

    Keys: ``known``, ``method``, ``success``, ``low``, ``high``, ``baseline``, ``trials``, ``promised``.
    """
    people = census(rows, seed=seed)
    table = CodedTable.of(people, SENSITIVE)
    values = table.codes.astype(np.int64)
    draws = Keystream(Secret.from_key(_key(seed, "anatomy")), "groups")
    groups = anatomy_groups(values, table.m, GROUP, draws).astype(np.int64)
    unknown = _unknown_left(groups)
    boxed = _Boxes.of(table, seed)
    methods: list[tuple[str, Codes, Codes, Evidence]] = [
        ("anatomy", groups, values, Evidence.as_published(table.histogram.counts))
    ]
    for mechanism in (Uniform(), SmallDomain()):
        views, evidence = _released(people, table.histogram, mechanism, seed)
        methods.append((mechanism.name, np.arange(len(values)), views, evidence))
    methods.append(("lineup", np.arange(len(values)), *_lined_up(table, seed)))
    lines = []
    for known in range(GROUP):
        corrupted = unknown > GROUP - known
        target = unknown == GROUP - known  # the same people are attacked in every release
        for name, groups_of, views, evidence in methods:
            seen = np.full(len(values), True) if name == "anatomy" else target
            attack = corruption(groups_of[seen], views[seen], evidence, values[seen], corrupted[seen])
            lines.append(_line(known, name, attack))
        lines += [_line(known, name, attack) for name, attack in boxed.attacked(known).items()]
    return lines


def _line(known: int, method: str, attack: AttackResult) -> dict[str, Any]:
    line = {"known": known, "method": method, "promised": 1 / GROUP, **attack.to_dict()}
    return {key: line[key] for key in KEYS}


@dataclass(frozen=True, eq=False)
class _Boxes:
    """The same people in boxes: with their true values, and with one perturbed row of each box."""

    table: CodedTable
    diverse: Boxed
    sampled: Sampled

    @classmethod
    def of(cls, table: CodedTable, seed: int) -> _Boxes:
        stream = Keystream(Secret.from_key(_key(seed, "perturbed generalization")), "sample")
        sampled = Sampled.draw(table, GROUP, Privacy(rho2=Fraction(1, GROUP)), stream)
        return cls(table, Boxed.of(table, np.arange(table.rows), GROUP, GROUP), sampled)

    def attacked(self, known: int) -> dict[str, AttackResult]:
        """Both attacked by someone who knows this many of every five others in a box."""
        values, counts = self.table.codes.astype(np.int64), self.table.histogram.counts
        true, drawn = self.diverse.groups, self.sampled.boxed.groups
        channel = Evidence.of_channels(counts, [self.sampled.sample.channel], [np.arange(len(counts))])
        return {
            "generalize": corruption(true, values, Evidence.as_published(counts), values, _corrupted(true, known)),
            "perturbed-generalization": sample_corruption(
                drawn, self.sampled.sample.shown, channel, values, _corrupted(drawn, known)
            ),
        }


def _corrupted(groups: Codes, known: int) -> Bools:
    """``known`` of every five others, rounded down, so that 0 is nobody and 5 is all but one."""
    sizes = np.bincount(groups)[groups]
    return sizes - _unknown_left(groups) < (sizes - 1) * known // (GROUP - 1)


def _released(people: pa.Table, histogram: Histogram, mechanism: Mechanism, seed: int) -> tuple[Codes, Evidence]:
    """What each row of the table shows in a release; not shuffled, so that guesses can be judged."""
    privacy = Privacy(rho2=Fraction(1, GROUP))
    key = _key(seed, mechanism.name)
    release = publish(people, sensitive=SENSITIVE, privacy=privacy, mechanism=mechanism, key=key, shuffle=False)
    plan = mechanism.plan(histogram, privacy, public=public_histogram(histogram, release.manifest.parts[0].marginal))
    shown = pc.index_in(release.table[SENSITIVE], pa.array(histogram.domain)).to_numpy().astype(np.int64)
    cells = release.table["cell"].to_numpy() if plan.cells_published else None
    evidence = Evidence.of_channels(
        histogram.counts,
        [cell.channel for cell in plan.cells],
        [plan.positions(cell) for cell in plan.cells],
        [cell.rows.counts for cell in plan.cells],
    )
    return np.asarray(views_of(shown, histogram.m, cells), dtype=np.int64), evidence


def _lined_up(table: CodedTable, seed: int) -> tuple[Codes, Evidence]:
    """Which set each row of the table shows in a release of line-ups, and how likely each set is for each value."""
    stream = Keystream(Secret.from_key(_key(seed, "lineup")), "draw")
    draw = draw_release(table, Lineup(), Privacy(rho2=Fraction(1, GROUP)), stream)
    design = draw.plan.parts[0].lineups
    assert design is not None
    likelihood = np.ascontiguousarray(LineUpStates(design).shown(np.eye(table.m)).T)
    return draw.states.astype(np.int64), Evidence(likelihood, table.histogram.relative)


def _key(seed: int, purpose: str) -> bytes:
    """A key for an experiment on made-up rows: whoever repeats it gets the same table."""
    return hashlib.sha256(f"corruption story {seed} {purpose}".encode()).digest()


def _unknown_left(groups: Codes) -> Codes:
    """Size, .., 2, 1 inside each group in row order: at k, row and those after it are the k that are not yet known."""
    order = np.argsort(groups, kind="stable")
    ends = np.r_[np.flatnonzero(np.diff(groups[order])) + 1, len(groups)]
    left = np.empty(len(groups), dtype=np.int64)
    left[order] = np.repeat(ends, np.diff(np.r_[0, ends])) - np.arange(len(groups))
    return left
