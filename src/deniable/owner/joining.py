"""What a release says of the people of its table: public columns, several columns, lists, values that one asks
about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.core.errors import ColumnError, OptionError, QuestionError, did_you_mean, listing, shortened
from deniable.core.exact import joint_limit, joint_posterior, swapping_coin
from deniable.core.manifest import Manifest
from deniable.core.plan import Plan
from deniable.core.promise import OneOfItems
from deniable.core.transforms import ListItem, Unfolding
from deniable.core.values import Bools, Counts, Floats, Ints, Probability, percent, probability
from deniable.estimation.model.columns import PerturbedColumn
from deniable.estimation.model.conditions import perturbed_column
from deniable.estimation.predicates import Leaf, conjunction
from deniable.owner.advice import rows_of_points
from deniable.owner.assessment import Audit
from deniable.owner.findings import Finding, about_randomness, by_grade, namer
from deniable.owner.grounds import Grounds, Sensitive, decide
from deniable.owner.heaping import about_heap, heap_of
from deniable.owner.parts import PartAudit, about_numbers, of_column, surest_numbers
from deniable.owner.reading import Beside, Look, Looked, Scanned, combination_keys, require_original, scanned
from deniable.owner.together import (
    LIST_ROWS,
    ListAudit,
    about_joint,
    about_rows_together,
    item_beliefs,
    joint_beliefs,
    surest,
)
from deniable.planning.attackers import ChannelRows, LineUpRows, NothingShown, Shown
from deniable.planning.posteriors import Posteriors
from deniable.release.release import Release
from deniable.tables.base import Dataset, Progress, Unfolds
from deniable.tables.counting import Tally
from deniable.tables.ranges import RangeEncoder

# -- What rows of a release show, and numbers that pile up: findings from the table beside what was published ----------


def sensitive_of(scans: Sequence[Scanned], manifest: Manifest, figures: Audit) -> tuple[Sensitive, ...]:
    """The sensitive columns of a release beside what its rows show of them."""
    audited = {part.columns: part for part in figures.parts}
    made = []
    for scan in scans:
        part = audited[scan.part.columns]
        shown, hidden = _shown(scan, part)
        rho2 = None if part.rho2 is None else float(part.rho2)
        made.append(Sensitive(scan.part, scan.encoder, shown, rho2, hidden))
    return (*made, *learned_of(manifest))


def learned_of(manifest: Manifest) -> tuple[Sensitive, ...]:
    """The columns that were dealt from a model, of whose people rows show nothing."""
    rho2 = manifest.guarantee["rho2"]
    limit = None if rho2 is None else float(Fraction(rho2))
    learned = [part for part in manifest.parts if part.learned is not None]
    return tuple(Sensitive(part, None, NothingShown(part.m), limit) for part in learned)


def single_numbers(source: Dataset, manifest: Manifest, figures: Audit) -> list[Finding]:
    """Findings about numbers that pile up, and about each of them, at the points of their grids: intervals would hide
    them."""
    parts = {part.columns: part for part in figures.parts}
    findings = []
    for part in manifest.parts:
        if part.range is None:
            continue
        (column,) = part.columns
        encoder = RangeEncoder(column, source.schema.field(column).type, part.range, exempt=part.missing == "exempt")
        audited = parts.get(part.columns)
        rho2 = None if audited is None or audited.rho2 is None else float(audited.rho2)
        counts = rows_of_points(source, column, encoder, part.range)
        findings += about_heap(heap_of(column, counts[: part.range.grid], part.range), rho2)
        if len(part.domain) < part.range.points:
            findings += about_numbers(column, surest_numbers(counts, part.range, part.requirement))
    return findings


def _shown(scan: Scanned, part: PartAudit) -> tuple[Shown, int]:
    """What a row shows of a part, and how many cells it may come from without saying so."""
    if scan.part.lineups is not None:
        return LineUpRows(scan.part.lineups), 1
    posteriors = part.posteriors
    assert isinstance(posteriors, Posteriors)
    cells = posteriors.cells
    shown = ChannelRows.of(
        len(part.domain),
        [cell.channel for cell in cells],
        [np.array(cell.positions) for cell in cells],
        [np.maximum(np.array(cell.rows, dtype=np.float64), 1e-9) for cell in cells],
        cells_shown=posteriors.shows_cell,
    )
    return shown, 1 if posteriors.shows_cell else len(cells)


# -- What rows say together, and all columns of a row: findings from the original table and the published rows ---------


MOST_ROWS = 10**6  # of a table whose rows are weighed against each other
TOO_MANY = Finding(
    "info",
    "rows together",
    f"what someone concludes who knows every count and weighs all rows against each other is computed for up to "
    f"{MOST_ROWS:,} rows; it was not looked at here.",
    "Audit a release of a part of the table to see it.",
)
BY_PERSON = Finding(
    "info",
    "rows together",
    "what someone concludes who knows every count and weighs all rows against each other was not looked at: rows of "
    "one name are published alike, so that there are fewer draws than rows, and the release does not say how many.",
    "Audit a release of one row per person to see it.",
)


def combined_findings(beside: Beside, looked: Looked, plans: Sequence[Plan | None], figures: Audit) -> list[Finding]:
    """Findings about those who weigh rows against each other, and about those who combine columns.

    ``plans`` are those of the parts that have channels, which come first.
    """
    known = {part.columns: part for part in figures.parts}
    findings = []
    for scan, plan, shown in zip(beside.scans, plans, looked.shown, strict=False):
        part = scan.part
        if part.range is not None or part.swapped is not None or part.groups is not None:
            continue
        left_out = BY_PERSON if beside.by_person else TOO_MANY if beside.rows > MOST_ROWS else None
        if left_out is not None:
            findings.append(of_column(left_out, part) if len(plans) > 1 else left_out)
            continue
        cells = _counted(scan, plan, shown[:, :-1])
        if cells is None:
            continue
        said = about_rows_together(surest(part, known[part.columns].limits, cells), namer(part.domain))
        findings += [of_column(finding, part) for finding in said] if len(plans) > 1 else said
    return findings + _of_columns(beside, figures)


def _counted(scan: Scanned, plan: Plan | None, shown: Counts) -> list[tuple[Counts, Counts]] | None:
    """How many rows of each cell hold, and show, each of its values; None where only an estimate is known."""
    if len(scan.part.channels) == 1:
        return [(scan.counts, shown.sum(0))] if len(scan.part.cell_positions[0]) == scan.part.m else None
    if plan is None or not scan.part.cells_published:
        return None
    places = scan.part.cell_positions
    return [(cell.rows.counts, seen[at]) for cell, seen, at in zip(plan.cells, shown, places, strict=True)]


def _of_columns(beside: Beside, figures: Audit) -> list[Finding]:
    """Columns that are perturbed independently of each other, and whose rows show no cell."""
    several = [place for place, scan in enumerate(beside.scans) if scan.part.channels and not scan.part.cells_published]
    parts = [beside.scans[place].part for place in several]
    sizes = [part.m for part in parts]
    if len(several) < 2:
        return []
    known = {part.columns: part for part in figures.parts}
    held, shown = (_different(looks, several, sizes) for looks in (beside.original(), beside.published()))
    if not len(held[0]) or not len(shown[0]):
        return []
    alone = [np.zeros(part.m) for part in parts]
    for highest, part in zip(alone, parts, strict=True):
        for belief in known[part.columns].beliefs:
            highest[belief.position] = float(belief.highest)
    limits = [known[part.columns].limits for part in parts]
    channels = [posteriors for part in parts if isinstance(posteriors := known[part.columns].posteriors, Posteriors)]
    beliefs = joint_beliefs(channels, held, shown[0], limits, alone)
    return about_joint(beliefs, [part.columns[0] for part in parts], [namer(part.domain) for part in parts])


def _different(looks: Iterable[Look], places: Sequence[int], sizes: Sequence[int]) -> tuple[Ints, Ints]:
    """The different combinations of some parts' values, [combinations, parts], and the rows of each; not those with a
    value that is exempt."""
    names = [f"low{place}" for place in places]
    tally = Tally({"rows": "u4", **dict.fromkeys(names, "u4")})  # all rows of a combination have the same codes
    for look in looks:
        columns = [look.values[place] for place in places]
        there = np.logical_and.reduce([codes < size for codes, size in zip(columns, sizes, strict=True)])
        own = dict(zip(names, (codes[there] for codes in columns), strict=True))
        tally.add(combination_keys(list(own.values()), int(there.sum())), rows=1, **own)
    pieces = [*tally.ranges()]
    codes = np.stack([np.concatenate([records[name] for records in pieces]) for name in names], axis=1).astype(np.int64)
    order = np.lexsort(codes.T[::-1])
    return codes[order], np.concatenate([records["rows"] for records in pieces])[order].astype(np.int64)


# -- Audit a release of items against the lists that it was made from --------------------------------------------------


SEED = 2010  # which rows are looked at; the same audit gives the same figures
NOT_PLAYED_ON_LISTS = Finding(
    "caution",
    "attacks",
    "none was played: attackers guess one value of a person, and a list has several.",
    "Read what a row says of each item, which is what the best of them could use.",
)


def audit_of_lists(
    table: Dataset, source: Dataset, release: Release, item: ListItem, attacks: bool, progress: Progress
) -> Audit:
    """What someone becomes sure of who knows how often every list occurs, and sees a row; ``source`` is the table as it
    was published."""
    manifest = release.manifest
    columns, promise = list(manifest.sensitive_columns), manifest.parts[0].promise
    assert isinstance(promise, OneOfItems)
    original = _original(source, manifest, progress)
    held, shown = _truths(original, columns), _truths(release.table, columns)
    rows = np.random.default_rng(SEED).permutation(len(shown))[:LIST_ROWS]
    channel = manifest.parts[0].channels[0].matrix()
    limits = None if promise.rho1 is None or promise.rho2 is None else (promise.rho1, promise.rho2)
    names = [part.item.item for part in manifest.parts if part.item is not None]
    chances = channel[1, 1], channel[1, 0]
    different, beliefs = item_beliefs(held, shown[rows], names, chances, limits, _whole(table, item, names, columns))
    audited = ListAudit(item.list, item.most, different, len(rows), promise.gamma, beliefs)
    findings = [
        *about_randomness(manifest.randomness.source, manifest.randomness.seed),
        *audited.findings(),
        *([NOT_PLAYED_ON_LISTS] if attacks else []),
    ]
    serious = tuple(one for one in findings if one.grade == "serious")
    grounds = Grounds(source, manifest, _of_items(source, manifest, promise), broken=serious)
    figures = Audit(manifest.name, manifest.mechanism, (), None, by_grade(findings), lists=audited)
    return replace(figures, dependence=grounds.said, decision=decide(grounds))


def _of_items(source: Dataset, manifest: Manifest, promise: OneOfItems) -> tuple[Sensitive, ...]:
    """The items beside what a row shows of each."""
    rho2 = None if promise.rho2 is None else float(promise.rho2)
    made = []
    for part in manifest.parts:
        scan = scanned(source, part)
        shown = ChannelRows.of(2, part.channels, [np.arange(2)], [np.maximum(scan.counts, 1e-9)], cells_shown=False)
        made.append(Sensitive(part, scan.encoder, shown, rho2))
    return tuple(made)


def _whole(table: Dataset, item: ListItem, items: list[str], columns: list[str]) -> Bools | None:
    """Which people have which items, of lists that are longer than what counts; None where all of a list counts, or
    the table has no lists any more."""
    if item.beyond != "first" or item.list not in table.names or not isinstance(table, Unfolds):
        return None
    every = table.unfolded(item.list, Unfolding(separator=item.separator), items)
    return _truths(pa.Table.from_batches(every.batches(columns)), columns)


def _truths(table: pa.Table, columns: list[str]) -> Bools:
    return np.column_stack([table.column(name).to_numpy().astype(bool) for name in columns])


def _original(source: Dataset, manifest: Manifest, progress: Progress) -> pa.Table:
    """The columns of the table that the release speaks of."""
    sensitive = [name for part in manifest.parts for name in part.columns]
    needed = list(dict.fromkeys([*manifest.public_columns, *sensitive]))
    require_original(needed, source)
    batches, done = [], 0
    for batch in source.batches(needed):
        batches.append(batch)
        done += batch.num_rows
        progress(done, source.rows, "reading the table")
    return pa.Table.from_batches(batches, schema=pa.schema([source.schema.field(name) for name in needed]))


# -- What a release lets others believe about the values or ranges that one asks about (mathematics 2; OLAP Thm 4, 5,
# Lemma 1).
#
# For S = S_1 x..x S_k over perturbed columns with coins p_i and replacing masses m_i, a belief b in S becomes at most
#
#     U b / (U b + L (1 - b)),    U = prod ((1-p_i) m_i + p_i),    L = prod (1-p_i) m_i
#
# however the columns are correlated, to whoever is told that a row shows one of S. Whoever sees which one may be surer,
# where the belief lies on that one alone: then m_i is its own mass. Nothing of the rows is looked at: the manifest says
# it all.


@dataclass(frozen=True)
class SetGuarantee:
    """What is promised about a set of values, one condition for each column.

    Attributes:
        columns: the perturbed columns that are asked about.
        coins: their p; of swapped columns what swapping among their rows comes to (mathematics 6).
        masses: the share of each column's replacements that falls into its set.
        singles: the share of the rarest value of each set.
        rho1, rho2: the belief before, and the one that must not be reached afterwards.
        swapped: columns that are swapped among rows.
    """

    columns: tuple[str, ...]
    coins: tuple[float, ...]
    masses: tuple[float, ...]
    singles: tuple[float, ...]
    rho1: Fraction
    rho2: Fraction
    swapped: tuple[str, ...] = ()

    @property
    def posterior(self) -> float:
        """What a belief of rho1 becomes at most, on average over the values of the set that rows may show."""
        return float(joint_posterior(float(self.rho1), self.coins, self.masses))

    @property
    def seen(self) -> float:
        """What it becomes at most to whoever sees which of the values a row shows, wherever in the set it lay."""
        return float(joint_posterior(float(self.rho1), self.coins, self.singles))

    @property
    def holds(self) -> bool:
        """Whether rho2 is not reached from rho1, whichever of the values a row shows."""
        return self.seen < self.rho2

    @property
    def limit(self) -> float:
        """No (s, rho1, rho2)-breach for s below this: by so much the set may be likelier than its replacements (on
        average over the set, as OLAP Def. 5 has it)."""
        return float(joint_limit(self.coins, self.masses, float(self.rho1), float(self.rho2)))

    @property
    def covered(self) -> float:
        """Beliefs below this stay below rho2, whichever value is seen: rho2 L / (rho2 L + (1 - rho2) U)."""
        # The posterior's odds are U / L times the prior's, so those of the belief are rho2's times L / U.
        high = float(joint_posterior(0.5, self.coins, self.singles))
        rho2 = float(self.rho2)
        return rho2 * (1 - high) / (rho2 * (1 - high) + (1 - rho2) * high)

    def __str__(self) -> str:
        sets = " and ".join(
            f"{name!r} (coin {percent(coin)}, {percent(mass)} of the replacements)"
            for name, coin, mass in zip(self.columns, self.coins, self.masses, strict=True)
        )
        several = f", and {percent(self.posterior)} on average over them" if self.singles != self.masses else ""
        correlated = ", however these columns are correlated" if len(self.columns) > 1 else ""
        swapped = f" {listing(list(self.swapped))} is swapped: the coin is that of its rows." if self.swapped else ""
        return (
            f"Believed at {percent(self.rho1)} before, the values asked about of {sets} are believed at "
            f"{percent(self.seen)} at most afterwards, whichever of them is shown{several}{correlated}; beliefs below "
            f"{percent(self.covered)} stay below {percent(self.rho2)}. No (s, {float(self.rho1):g}, "
            f"{float(self.rho2):g})-breach for s below {self.limit:.4g} (OLAP Theorem 5).{swapped}"
        )


def breach(
    release: Release | Manifest,
    where: Mapping[str, Any],
    *,
    rho1: Probability = "1/10",
    rho2: Probability = "95/100",
) -> SetGuarantee:
    """What someone who believed the values of ``where`` at rho1 believes them at, at most, after seeing a row.

    Someone who takes a range for likely may mean one number of it, and sees it: ``seen`` covers them, ``posterior`` is
    what the paper bounds, on average over what a row may show of the range.

    Args:
        release: a release whose columns are perturbed one by one, or its manifest.
        where: perturbed column -> value, list of values, ``between`` or ``not_``, as for ``release.count``.
        rho1, rho2: the belief before, and the one that must not be reached.

    >>> import pyarrow as pa
    >>> import deniable as dn
    >>> table = pa.table({"job": ["cook", "nurse", "judge", "cook"] * 50})
    >>> release = dn.publish(table, mechanism=dn.mechanisms.Retention({"job": dn.Replace(coin=0.5)}))
    >>> about = dn.breach(release, {"job": "judge"}, rho1=0.1, rho2=0.5)
    >>> about.holds, round(about.posterior, 3)
    (True, 0.308)
    """
    manifest = release.manifest if isinstance(release, Release) else release
    if not isinstance(manifest, Manifest):
        raise OptionError(f"breach needs a release or its manifest; got {type(manifest).__name__}.")
    first, second = probability(rho1, "rho1"), probability(rho2, "rho2")
    if first >= second:
        raise OptionError(f"rho1 = {rho1} is not below rho2 = {rho2}. Fix: exchange them: a belief may grow.")
    leaves = [leaf for leaf in conjunction(where).parts if isinstance(leaf, Leaf)]
    if not leaves:
        raise QuestionError("where names no column. Fix: where={'job': 'nurse'}.")
    named = {leaf.column: (column := _column(manifest, leaf), _masses(column, leaf)) for leaf in leaves}
    swapped = {
        part.columns[0]: float(swapping_coin(int(part.channels[0].keep[0]), part.swapped))
        for part in manifest.parts
        if part.swapped is not None and part.columns[0] in named
    }
    coins = tuple(swapped.get(name, column.coin) for name, (column, _) in named.items())
    masses = tuple(float(inside.sum()) for _, inside in named.values())
    singles = tuple(float(inside.min()) for _, inside in named.values())
    return SetGuarantee(tuple(named), coins, masses, singles, first, second, tuple(swapped))


def _column(manifest: Manifest, leaf: Leaf) -> PerturbedColumn:
    name = leaf.column
    if name not in manifest.types:
        raise ColumnError(
            f"There is no column {shortened(name)}.{did_you_mean(name, manifest.types)} "
            f"Fix: one of {listing(manifest.sensitive_columns)}."
        )
    if name not in manifest.sensitive_columns:
        raise ColumnError(f"{name!r} is public: it is published as it is. Fix: leave it out.")
    column = perturbed_column(manifest, name)
    if column.hidden:
        raise ColumnError(f"{name!r} has no coin. Fix: read the guarantee, or `deniable audit` for its posteriors.")
    if column.exempt and leaf.missing:
        raise QuestionError(f"Missing values of {name!r} are exempt: they are published as they are.")
    column.require(leaf)
    return column


def _masses(column: PerturbedColumn, leaf: Leaf) -> Floats:
    inside = column.mask(leaf)
    if not inside.any() or inside.all():
        every = "every value" if inside.all() else "no value"
        raise QuestionError(f"The condition on {column.name!r} holds for {every}. Fix: ask about some of its values.")
    return column.masses[inside]
