"""Findings: what an owner should know before publishing, how bad it is, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from scipy.special import chdtrc

from deniable.core.channels import Channel
from deniable.core.errors import option, shortened
from deniable.core.manifest import Randomness
from deniable.core.privacy import worst_posterior
from deniable.core.values import Codes, Counts, Floats, percent
from deniable.planning.posteriors import Breach, CellRows, CurvePoint, View, Views, surest_after

# -- The cells of a release: how many rows of each value each of them took, and what they reveal by themselves, before
# any value is seen (mathematics 4, last point; mathematics 11.5).


ROUNDS = 300
FINE = 2**16  # expected rows are fractions; kept as whole numbers of 1/65536 of a row


@dataclass(frozen=True)
class CellReport:
    """The cells of a release, as an attacker uses them.

    Attributes:
        count: how many there are.
        entropy: bits of uncertainty about a row's value before anything is seen.
        revealed: bits of it that the cell takes away, I(value; cell).
        smallest_domain: the fewest values that any cell holds.
        smallest_rows: the fewest rows that any cell holds.
        fewest_categories: the fewest categories that any cell holds, where categories were given.
        alike: rows in cells whose rows all have one value: the cell says it.
    """

    count: int
    entropy: float
    revealed: float
    smallest_domain: int
    smallest_rows: int
    fewest_categories: int | None
    alike: int = 0

    @property
    def share_revealed(self) -> float:
        return self.revealed / self.entropy if self.entropy else 0.0


def cell_report(
    cells: Sequence[CellRows],
    unit: int,
    domain: Sequence[Hashable],
    categories: Mapping[Hashable, Hashable] | None,
) -> CellReport:
    """Entropies of the cells; ``unit`` is how many units of ``CellRows.rows`` make a row."""
    used = [cell for cell in cells if cell.size]
    if not used:  # a table without rows
        return CellReport(0, 0.0, 0.0, 0, 0, None)
    totals: dict[int, int] = {}
    for cell in used:
        for place, rows in zip(cell.positions, cell.rows, strict=True):
            totals[place] = totals.get(place, 0) + rows
    n = sum(totals.values())
    entropy = _entropy(list(totals.values()))
    remaining = sum(cell.size / n * _entropy(list(cell.rows)) for cell in used)
    fewest = None
    if categories is not None:
        fewest = min(
            len({categories.get(domain[place], domain[place]) for place in cell.positions if cell.takes(place)})
            for cell in used
        )
    return CellReport(
        count=len(used),
        entropy=entropy,
        revealed=max(entropy - remaining, 0.0),
        smallest_domain=min(sum(1 for rows in cell.rows if rows) for cell in used),
        smallest_rows=min(cell.size for cell in used) // unit,
        fewest_categories=fewest,
        alike=sum(cell.size for cell in used if sum(1 for rows in cell.rows if rows) == 1) // unit,
    )


def _entropy(weights: Sequence[int]) -> float:
    total = sum(weights)
    return -sum(w / total * math.log2(w / total) for w in weights if w) if total else 0.0


def expected_rows(
    counts: Counts, channels: Sequence[Channel], positions: Sequence[Counts], observed: Sequence[Counts] | None
) -> list[Counts]:
    """The most likely rows of each value in each cell, in units of 1/65536 of a row: from the release and the table's
    histogram alone.

    Maximum likelihood given what each cell shows (the iterative Bayesian rule, mathematics 8), raked after every step
    so that the cells together hold the table's histogram. Without ``observed`` (cells not published) each value is
    spread over its cells as evenly as the histogram allows.

    Args:
        counts: the table's histogram.
        channels, positions: the cells, as in the manifest.
        observed: for each cell, how many rows show each value of the table's domain.
    """
    if len(channels) == 1:
        return [counts[positions[0]] * FINE]
    dealt = np.zeros((len(channels), len(counts)))
    for cell, place in enumerate(positions):
        dealt[cell, place] = 1.0
    if observed is not None:
        dealt *= np.array([shown.sum() for shown in observed], dtype=np.float64)[:, None]
    dealt = _raked(dealt, counts)
    for _ in range(0 if observed is None else ROUNDS):
        for cell, (channel, place) in enumerate(zip(channels, positions, strict=True)):
            assert observed is not None
            dealt[cell, place] = _bayesian_step(channel, dealt[cell, place], observed[cell][place])
        dealt = _raked(dealt, counts)
    return [np.rint(dealt[cell, place] * FINE).astype(np.int64) for cell, place in enumerate(positions)]


def _bayesian_step(channel: Channel, rows: Floats, shown: Counts) -> Floats:
    """x <- x * P^T (o / P x), in O(m): P^T v = p v + (1 - p) (r . v)."""
    expected = channel.apply(rows)
    share = np.divide(shown, expected, out=np.zeros_like(expected), where=expected > 0)
    result: Floats = rows * (channel.coins * share + (1 - channel.coins) * (channel.replacing @ share))
    return result


def _raked(dealt: Floats, counts: Counts) -> Floats:
    """Columns scaled so that the cells together hold every row of the histogram once."""
    totals = dealt.sum(0)
    scale = np.divide(counts, totals, out=np.zeros_like(totals), where=totals > 0)
    result: Floats = dealt * scale
    return result


# -- What the rows reveal beside their values: their order, rows that are alone in their public columns, repeated ones.


BLOCKS = 10
CHANCE = 1e-6  # how often a shuffled column may be called ordered
MOST_VALUES = 40
FEW = 5


@dataclass(frozen=True)
class Rows:
    """The rows of a release and of the table it was made from, as numbers.

    Attributes:
        columns: the published columns by name (public, sensitive, cell), coded, in the published order.
        public: for each published row, which combination of public values it has.
        original: for each row of the table, the position of its sensitive value; m where it is exempt.
        original_public: for each row of the table its combination, numbered as in ``public``. Both are empty where
            the release shows public values less exactly than the table does.
    """

    columns: Mapping[str, Codes]
    public: Codes
    original: Codes
    original_public: Codes


@dataclass(frozen=True)
class RowReport:
    """What the rows reveal.

    Attributes:
        rows: how many are published.
        unique: rows that are alone in their public columns.
        rare: rows that share them with fewer than 5 rows, themselves included.
        ordered: published columns whose values depend on where in the release a row stands.
        same_order: whether the published rows stand in the order of the table.
        repeated: the most rows with one and the same public combination and the same sensitive value throughout.
        repeated_rows: rows in such combinations of two rows or more.
        repeated_posterior: what an attacker who knows that one such combination is one person can become sure of.
        foreign: published rows with a public combination that the table has less often, or not at all.
    """

    rows: int
    unique: int
    rare: int
    ordered: tuple[str, ...]
    same_order: bool
    repeated: int
    repeated_rows: int
    repeated_posterior: float = 0.0
    foreign: int = 0


@dataclass(frozen=True, eq=False)
class Combinations:
    """Some combinations of public values: how many rows of release and table have each, and its least and greatest
    sensitive value in the table."""

    published: Codes
    people: Codes
    low: Codes
    high: Codes


@dataclass(frozen=True)
class RowCounts:
    """What a report on rows is made of.

    Attributes:
        report: all of it but ``repeated_posterior``.
        draws: for each sensitive value, the most rows of one combination that all hold it.
    """

    report: RowReport
    draws: Mapping[int, int]


def counted(
    combinations: Iterable[Combinations], ordered: Sequence[str], *, in_order: bool, with_table: bool
) -> RowCounts:
    """Counts of rows from all combinations, which may come in pieces.

    Args:
        combinations: every combination, in one piece.
        ordered: columns whose values depend on where a row stands.
        in_order: whether row i of the release has the public values of row i of the table, for all i.
        with_table: whether the table's rows were counted.
    """
    rows = unique = rare = foreign = different = repeated = repeated_rows = 0
    draws: dict[int, int] = {}
    for one in combinations:
        sizes = np.asarray(one.published, np.int64)
        rows, different = rows + int(sizes.sum()), different + int((sizes > 0).sum())
        unique, rare = unique + int((sizes == 1).sum()), rare + int(sizes[sizes < FEW].sum())
        people = np.asarray(one.people, np.int64)
        foreign += int(np.maximum(sizes - people, 0).sum()) if with_table else 0
        agree = (one.low == one.high) & (people >= 2)
        repeated, repeated_rows = (
            max(repeated, int(people[agree].max(initial=0))),
            repeated_rows + int(people[agree].sum()),
        )
        for value in np.unique(one.low[agree]).tolist():
            draws[value] = max(draws.get(value, 0), int(people[agree & (one.low == value)].max()))
    same_order = in_order and different >= 2
    report = RowReport(
        rows, unique, rare, tuple(ordered), same_order, repeated, repeated_rows=repeated_rows, foreign=foreign
    )
    return RowCounts(report, draws)


def counts_of(rows: Rows) -> RowCounts:
    """The counts of rows that are all in memory."""
    groups = int(max(rows.public.max(initial=-1), rows.original_public.max(initial=-1))) + 1
    low, high = np.full(groups, np.iinfo(np.int64).max), np.full(groups, -1)
    np.minimum.at(low, rows.original_public, rows.original)
    np.maximum.at(high, rows.original_public, rows.original)
    published, people = (np.bincount(of, minlength=groups) for of in (rows.public, rows.original_public))
    return counted(
        [Combinations(published, people, low, high)],
        [name for name, codes in rows.columns.items() if depends_on_order(codes)],
        in_order=bool(np.array_equal(rows.public, rows.original_public)),
        with_table=bool(len(rows.original_public)),
    )


def row_report(rows: RowCounts, views: Views) -> RowReport:
    """What the rows reveal. The table's own values are used: this is for the owner's eyes."""
    # Combinations whose rows all have one value: as many draws of it, if they are one person.
    return replace(rows.report, repeated_posterior=surest_after(views, rows.draws))


def depends_on_order(codes: Codes) -> bool:
    """Whether ten consecutive blocks of rows differ in their values more than chance allows (chi-squared, 1e-6)."""
    _, coded = np.unique(codes, return_inverse=True)
    classes = order_classes(np.bincount(coded))
    return is_ordered(blocks_of(classes[coded], 0, len(codes), int(classes.max(initial=0)) + 1))


def order_classes(rows: Counts) -> Codes:
    """Values in classes, by the rows of each: values too rare for ten in a block are one, for counts are needed."""
    rank = np.empty(len(rows), dtype=np.int64)
    rank[np.argsort(-rows, kind="stable")] = np.arange(len(rows))
    pooled = np.where((rows >= 10 * BLOCKS) & (rank < MOST_VALUES), rank + 1, 0)
    used = np.zeros(MOST_VALUES + 1, dtype=bool)
    used[pooled[rows > 0]] = True
    return (np.cumsum(used) - 1).clip(0).astype(np.int8)[pooled]


def blocks_of(classes: Codes, start: int, rows: int, number: int) -> Counts:
    """Of consecutive rows, from ``start`` of so many, how many of each block are in each class, [blocks, classes]."""
    block = (start + np.arange(len(classes))) * BLOCKS // max(rows, 1)
    return np.bincount(block * number + classes, minlength=BLOCKS * number).reshape(BLOCKS, number)


def is_ordered(table: Counts) -> bool:
    """Whether the blocks of ``blocks_of`` differ by more than chance."""
    if table.shape[1] < 2:
        return False
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    enough = expected.min(0) >= 5
    if enough.sum() < 2:
        return False
    statistic = float((((table - expected) ** 2 / expected)[:, enough]).sum())
    degrees = (BLOCKS - 1) * (int(enough.sum()) - 1 + int(not enough.all()))
    return bool(chdtrc(degrees, statistic) < CHANCE)


# -- Findings: what an owner should know before publishing, how bad it is, and what to do about it ---------------------


Grade = Literal["info", "caution", "serious"]
GRADES: tuple[Grade, ...] = ("serious", "caution", "info")
MUCH_REVEALED = 0.25  # a quarter of the uncertainty about a value gone before it is seen
SURE = Fraction(1, 2)
OFTEN_UNIQUE = 0.05
SHOWN = 6  # values of a line-up
FREQUENCIES = "the frequencies"


@dataclass(frozen=True)
class Finding:
    """One thing to know.

    Attributes:
        grade: ``"serious"`` means do not publish this, ``"caution"`` means decide, ``"info"`` means know.
        what: in a word or two.
        detail: in a sentence, with the figures.
        advice: what to do; empty where there is nothing to do.
    """

    grade: Grade
    what: str
    detail: str
    advice: str

    def to_dict(self) -> dict[str, str]:
        """As JSON has it."""
        return {"grade": self.grade, "what": self.what, "detail": self.detail, "advice": self.advice}

    def __str__(self) -> str:
        return f"[{self.grade}] {self.what}: {self.detail}" + (f" What to do: {self.advice}" if self.advice else "")


Name = Callable[[int], str]


def namer(domain: Sequence[Hashable]) -> Name:
    """Values for messages, by position."""
    return lambda position: shortened(domain[position], 40)


def view_in_words(view: View, name: Name) -> str:
    cell, y = view
    if y is None:
        return f"the row is in group {cell}"
    if isinstance(y, tuple):
        return f"the line-up {', '.join(map(name, y[:SHOWN]))}{', ..' if len(y) > SHOWN else ''} is published"
    return f"{name(y)} is published" + ("" if cell is None else f" in cell {cell}")


def about_breaches(
    up: Sequence[Breach], down: Sequence[Breach], worst: Fraction, required: bool, name: Name, known: str = FREQUENCIES
) -> list[Finding]:
    """The stated requirement, upward and downward, against the frequency adversary; ``known`` is what they know."""
    findings = []
    if not required:
        findings.append(
            Finding("info", "requirement", "the release states none.", "Publish with rho2, or use it to compare with.")
        )
    elif up:
        first = up[0]
        findings.append(
            Finding(
                "serious",
                "upward breach",
                f"{_values(len(up))} can be believed above the bound. Worst: {name(first.position)}, "
                f"{percent(first.prior)} before, {percent(first.posterior)} when {view_in_words(first.view, name)}; "
                f"allowed are {percent(first.allowed)}.",
                "Do not publish this release. Check it with `deniable verify`, and publish the table anew.",
            )
        )
    else:
        findings.append(
            Finding(
                "info",
                "requirement",
                f"holds: nobody who knows {known} becomes surer of a protected value than {percent(worst)}.",
                "",
            )
        )
    if down:
        first = down[0]
        findings.append(
            Finding(
                "caution",
                "downward breach",
                f"{_values(len(down))} believed above rho2 can be believed below rho1 afterwards. Worst: "
                f"{name(first.position)}, {percent(first.prior)} before, {percent(first.posterior)} when "
                f"{view_in_words(first.view, name)}.",
                "If it matters that a frequent value can be ruled out, use a mechanism without published cells.",
            )
        )
    return findings


def about_any_prior(gamma: Fraction | None, privacy: Mapping[str, Any] | None, noise_epsilon: float) -> list[Finding]:
    """Amplification: what someone with any belief up to rho1 can become sure of."""
    named = privacy is not None and privacy["adversary"] == "any-prior"
    if gamma is None:
        return [
            Finding(
                "serious" if named else "caution",
                "any belief",
                "the amplification is unbounded: some published rows rule some values out, whatever was believed."
                + (" The requirement names the adversary 'any-prior', so it is broken." if named else ""),
                "Against attackers who know more than the frequencies, publish with "
                f"{option('adversary', 'any-prior')}.",
            )
        ]
    epsilon = f"gamma {float(gamma):.4g}, epsilon {math.log(gamma):.4g}"
    noise = f" The noisy histogram adds {noise_epsilon:g} to epsilon." if noise_epsilon else ""
    if privacy is None or privacy["rho1"] is None or privacy["rho2"] is None:
        detail = f"odds of any value grow by at most the factor gamma ({epsilon}), whatever was believed.{noise}"
        return [Finding("info", "any belief", detail, "")]
    rho1, rho2 = Fraction(privacy["rho1"]), Fraction(privacy["rho2"])
    posterior = worst_posterior(rho1, gamma)
    detail = f"a belief of {percent(rho1)} in any value grows to at most {percent(posterior)} ({epsilon}).{noise}"
    if named and posterior > rho2:
        return [
            Finding("serious", "any belief", f"{detail} Allowed are {percent(rho2)}.", "Do not publish this release.")
        ]
    return [Finding("info", "any belief", detail, "")]


def about_stronger(points: Sequence[CurvePoint], name: Name) -> list[Finding]:
    """Attackers who believe more than the frequency (mathematics 2: report the posterior for priors above it)."""
    tenth = next((point for point in points if point.label == "10 %"), None)
    if tenth is None:
        return []
    strong = tenth.posterior > SURE
    detail = (
        f"whoever believes {name(tenth.position)} at {percent(tenth.prior)} beforehand, and all else by the "
        f"frequencies, can become {percent(tenth.posterior)} sure, the worst of all values."
    )
    advice = (
        f"Lower rho2, or publish with {option('adversary', 'any-prior')}, if such attackers are likely."
        if strong
        else ""
    )
    return [Finding("caution" if strong else "info", "stronger beliefs", detail, advice)]


def about_cells(report: CellReport | None) -> list[Finding]:
    """What cells say by themselves."""
    if report is None or report.count < 2:
        return []
    narrow = report.smallest_domain < 3
    one_kind = report.fewest_categories == 1
    much = report.share_revealed > MUCH_REVEALED
    detail = (
        f"a row's cell takes away {report.revealed:.2f} of {report.entropy:.2f} bits of uncertainty; "
        f"the smallest cell holds {report.smallest_domain} values"
        + ("." if report.fewest_categories is None else f", the narrowest {report.fewest_categories} categories.")
    )
    advice = (
        "Merge cells: min_rows, keep_apart or categories with min_categories." if narrow or one_kind or much else ""
    )
    grade: Grade = "serious" if one_kind else "caution" if narrow or much else "info"
    return [Finding(grade, "cells", detail, advice)]


def about_rows(report: RowReport, rho2: Fraction | None, drawn: Randomness, sensitive: Sequence[str]) -> list[Finding]:
    """Rows of another table, order, rare combinations, repeated rows."""
    findings = []
    if report.foreign:
        detail = (
            f"{percent(report.foreign / max(report.rows, 1))} of the published rows have public values that the table "
            "does not have, or has less often: the release was made from another table, or this one has changed since. "
            "The figures here are of the table that was given."
        )
        findings.append(Finding("serious", "another table", detail, "Audit with the table that was published."))
    telling = [name for name in report.ordered if name in (*sensitive, "cell")]
    if telling:
        detail = f"{', '.join(map(repr, telling))} depends on where in the release a row stands."
        findings.append(Finding("serious", "row order", detail, "Publish with shuffling (leave --no-shuffle away)."))
    elif report.ordered or report.same_order or not drawn.shuffled:
        detail = (
            "the rows stand in the order of the table." if report.same_order else "the rows are not in random order."
        )
        findings.append(
            Finding("caution", "row order", detail, "Publish with shuffling, or be sure the order says nothing.")
        )
    else:
        findings.append(Finding("info", "row order", "random, as far as a test can tell.", ""))
    share = report.unique / max(report.rows, 1)
    if report.rare:
        findings.append(
            Finding(
                "caution" if share >= OFTEN_UNIQUE else "info",
                "rare public combinations",
                f"{percent(share)} of the rows are alone in their public columns, "
                f"{percent(report.rare / report.rows)} share them with fewer than {FEW}: whoever knows these columns "
                f"finds the person's row. Its value stays deniable.",
                "Drop or coarsen public columns if taking part must stay secret." if share >= OFTEN_UNIQUE else "",
            )
        )
    if report.repeated >= 2:
        bad = rho2 is not None and report.repeated_posterior > rho2 and not drawn.by_person
        person = (
            "Those of one name are published alike, which is one draw; if others of them are one person"
            if drawn.by_person
            else "If they are one person"
        )
        findings.append(
            Finding(
                "caution" if bad else "info",
                "repeated rows",
                f"up to {report.repeated} rows share all public columns and the sensitive value. {person}, that is as "
                f"many draws: up to {percent(report.repeated_posterior)} sure.",
                "Publish one row per person." if bad else "",
            )
        )
    return findings


def about_randomness(source: str, seed: int | None) -> list[Finding]:
    """Where the draws came from."""
    if seed is None:
        return []
    return [
        Finding(
            "serious",
            "seed",
            f"the draws come from a {source} that the manifest shows; whoever has it can undo the release.",
            f"Publish without {option('seed', '')}. A seed is for experiments on tables that hold no secrets.",
        )
    ]


def by_grade(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The serious ones first."""
    return tuple(sorted(findings, key=lambda finding: GRADES.index(finding.grade)))


def _values(count: int) -> str:
    return f"{count:,} value{'s' * (count != 1)}"
