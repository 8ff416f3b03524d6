"""SPLU (J. Biomedical Informatics 2014): decoy groups, small sums private and large sums accurate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.core.sums import chebyshev, miss, splu_lemma_1
from deniable.engines.base import Progress, no_progress
from deniable.estimation.decoys import Others, several_columns
from deniable.evaluation.answered import Setting
from deniable.evaluation.drawing import draw_plan, stream_of
from deniable.evaluation.rivals import Anatomized, DecoyGroups, Noisy, Redrawn
from deniable.evaluation.settings import Independent
from deniable.mechanisms.decoys.mechanism import Decoys
from deniable.planning.accuracy import Spread, mean_between, relative_error, spread
from deniable.planning.chart import INDEPENDENCE, Chart, level, line, lines
from deniable.planning.pools import QuestionPool, large_pool, small_pool
from deniable.planning.tables import CodedTable
from reproduction.items import Item, Reproduction, census_table, made, with_spread, yes

TITLE = "Small-sum privacy and large-sum utility (SPLU)"
SIZES = (2, 4, 5, 6, 8, 10)
BINS = ((0.005, 0.01), (0.01, 0.02), (0.02, 0.03), (0.03, 0.04), (0.04, 0.05))
DRAWS = 3
INTERVALS = 10
ERROR = Fraction(3, 10)
FOUR, EXACT, FULL = "decoys, four states", "decoys, exact a", "decoys, full channel"
DRAWN = {FOUR: FOUR, FULL: FULL, "anatomy": "Anatomy"}
SAME = {"ln 2": "Laplace, epsilon = ln 2", "ln 3": "Laplace, epsilon = ln 3"}
Errors = dict[str, list[Spread]]
Bins = tuple[tuple[float, float], ...]


def reproduce(
    data: str | Path | None = None, *, draws: int = DRAWS, workers: int = 1, progress: Progress = no_progress
) -> Reproduction:
    """All items that CENSUS and arithmetic allow; Figures 10 and 11 need CADRMP, which is not available."""
    census = census_table(data)
    table = CodedTable.of(census, "occupation")
    steps: list[Callable[[], Item | list[Item]]] = [
        figure_4,
        figure_5,
        lambda: figure_7(small_pool(table), draws),
        lambda: figure_8(large_pool(table), draws),
        lambda: figure_9(large_pool(table), draws),
        lambda: figure_12(census, draws),
    ]
    return Reproduction("splu", TITLE, made(steps, progress))


def figure_4() -> Item:
    """T_E against T_f: the paper's bound, the corrected one, and the truth."""
    rows, broken, drawn = [], 0, {}
    for f in (100, 200, 500, 1000, 2000):
        exact = miss(f, 5, Fraction(1, 10), strictly=False)
        lemma, right = splu_lemma_1(f, 5, Fraction(1, 10)), chebyshev(f, 5, Fraction(1, 10))
        broken += exact > lemma
        drawn[f] = (float(lemma), min(float(right), 1.0), float(exact))
        rows.append((str(f), f"{float(lemma):.4f}", f"{min(float(right), 1.0):.3f}", f"{float(exact):.4f}"))
    return Item(
        "SPLU Figure 4 (Theorem 3)",
        "The probability that a sum of f rows is off by 10 % or more, c = 5.",
        ("f", "the paper's bound", "Chebyshev's bound", "exactly"),
        tuple(rows),
        broken == 0,
        f"The paper's Lemma 1 divides by n twice; the truth exceeds its bound at {broken} of {len(rows)} sizes. The "
        "corrected bound, (1 - 1/c) / (e² f), holds; we promise the exact binomial tail.",
        Chart(
            "How likely a sum is off by 10 % or more",
            "rows of the sum",
            "probability",
            lines(("the paper's bound", "Chebyshev's bound", "exactly"), drawn),
            log_x=True,
            log_y=True,
        ),
    )


def figure_5() -> Item:
    """The probability that a small sum is off by 30 %."""
    sizes = (2, 5, 10)
    drawn = {f: [float(miss(f, c, ERROR, strictly=True)) for c in sizes] for f in range(1, 11)}
    rows = [(str(f), *(f"{share:.3f}" for share in shares)) for f, shares in drawn.items()]
    least = min(drawn[f][-1] for f in range(1, 4))
    return Item(
        "SPLU Figure 5 (Example 2)",
        "The probability that a sum of f rows is published with an error above 30 %.",
        ("f", *(f"c = {c}" for c in sizes)),
        tuple(rows),
        least >= 0.6,
        f"The paper: c = 10 gives alpha = 3, e = .3, T_P = .6. Ours: {least:.4f}, the exact binomial tail.",
        Chart(
            "How likely a small sum is off by over 30 %",
            "rows of the sum",
            "probability",
            lines([f"c = {c}" for c in sizes], drawn),
        ),
    )


def measured(pool: QuestionPool, settings: Sequence[Setting], bins: Bins, draws: int) -> Errors:
    """Mean relative error in bins of true rows, over draws, by setting and estimator."""
    drawn: dict[str, list[list[float]]] = {}
    for setting in settings:
        for draw in range(draws if setting.chance else 1):
            answered = setting.run(pool, stream_of(1, draw, setting.label))
            for estimator, answers in answered.answers.items():
                errors = relative_error(pool.pick(answers), pool.truth)
                by_bin = [mean_between(errors, pool.truth, *ends) for ends in bins]
                drawn.setdefault(f"{setting.label}, {estimator}".removesuffix(", "), []).append(by_bin)
    return {name: [spread(column) for column in zip(*rows, strict=True)] for name, rows in drawn.items()}


def _measured_by_size(pool: QuestionPool, bins: Bins, draws: int) -> dict[int, Errors]:
    """The same of decoy groups and Anatomy, for every group size."""
    return {c: measured(pool, [DecoyGroups(c), Anatomized(c)], bins, draws) for c in SIZES}


def _against_size(title: str, by_size: Mapping[int, Errors], same: Errors) -> Chart:
    """Errors against the group size c, with what does not depend on it as level lines."""
    return Chart(
        title,
        "group size c",
        "mean relative error",
        (
            *(line(shown, {c: errors[name][0] for c, errors in by_size.items()}) for name, shown in DRAWN.items()),
            *(level(SAME.get(name, name), errors[0], by_size) for name, errors in same.items()),
        ),
        log_y=True,
        percent=True,
    )


def figure_7(pool: QuestionPool, draws: int) -> Item:
    """Small counts: the error should be large."""
    small = ((1.0, 11.0),)
    by_size = _measured_by_size(pool, small, draws)
    four, anatomy = ([errors[name][0].mean for errors in by_size.values()] for name in (FOUR, "anatomy"))
    rivals = [Redrawn(), Noisy(math.log(2), "ln 2"), Noisy(math.log(3), "ln 3"), Independent()]
    same = measured(pool, rivals, small, draws)
    redraw, noisy = same["redraw"][0].mean, same["ln 3"][0].mean
    shown = "; ".join(f"{name} {with_spread(errors[0], 0)}" for name, errors in same.items())
    rises = all(first < second for first, second in pairwise(four))
    above = all(ours > other for c, ours, other in zip(SIZES, four, anatomy, strict=True) if c >= 5)
    return Item(
        "SPLU Figure 7",
        f"Mean relative error of {len(pool):,} questions with 1 to 10 true rows; OCC-100k, {draws} draws. Whatever c: "
        f"{shown} (ln 2, ln 3: Laplace's mechanism with this epsilon).",
        ("", "decoys, four states as published", "decoys, full channel", "Anatomy"),
        tuple((f"c = {c}", *(with_spread(errors[name][0], 0) for name in DRAWN)) for c, errors in by_size.items()),
        rises and above and noisy < min(four[2], redraw),
        f"The paper: the error of decoys grows with c ({yes(rises)}), is above Anatomy's for larger c ({yes(above)} "
        f"from c = 5), and Laplace's with epsilon = ln 3 is small beside them ({yes(noisy < min(four[2], redraw))}). "
        "Large errors are what small-sum privacy wants.",
        _against_size("Error of counts of 1 to 10 rows: large is private", by_size, same),
    )


def figure_8(pool: QuestionPool, draws: int) -> Item:
    """Large counts by selectivity, c = l = 5."""
    ends = tuple((low * pool.table.rows, high * pool.table.rows) for low, high in BINS)
    by_name = measured(pool, [DecoyGroups(5), Anatomized(5), Redrawn(), Independent()], ends, draws)
    four, anatomy = ([error.mean for error in by_name[name]] for name in (FOUR, "anatomy"))
    about = all(error <= 0.15 for error in four[2:])
    bounded = max(four) <= 0.2
    better = sum(ours < other for ours, other in zip(four, anatomy, strict=True))
    return Item(
        "SPLU Figure 8",
        f"Mean relative error of {len(pool):,} questions by selectivity, c = l = 5; OCC-100k, {draws} draws (the "
        "paper: 300k).",
        ("", *(f"{100 * low:g}-{100 * high:g} %" for low, high in BINS)),
        tuple((name, *map(with_spread, errors)) for name, errors in by_name.items()),
        about and bounded and better == len(four),
        f"The paper: about 10 % at selectivities of 2 to 5 % ({yes(about)}, read as at most 15 %), at most "
        f"20 % elsewhere ({yes(bounded)}), and below Anatomy (in {better} of {len(four)} ranges). The four states "
        "are biased where a public condition goes with the value, which more rows do not mend; the full "
        "channel is unbiased and noisier.",
        Chart(
            "Error of large counts by their size, c = 5",
            "rows counted, of all rows (middle of the range)",
            "mean relative error",
            tuple(
                line(name, {(low + high) / 2: error for (low, high), error in zip(BINS, errors, strict=True)})
                for name, errors in by_name.items()
            ),
            percent=True,
            percent_x=True,
        ),
    )


def figure_9(pool: QuestionPool, draws: int) -> Item:
    """Large counts by c."""
    whole = ((pool.truth.min(), np.inf),)
    by_size = _measured_by_size(pool, whole, draws)
    four, anatomy = ([errors[name][0].mean for errors in by_size.values()] for name in (FOUR, "anatomy"))
    names = (FOUR, EXACT, FULL, "anatomy")
    others = measured(pool, [Redrawn(), Independent()], whole, draws)
    shown = "; ".join(f"{name} {with_spread(errors[0])}" for name, errors in others.items())
    below = sum(ours < other for ours, other in zip(four, anatomy, strict=True))
    dbr = all(ours < others["redraw"][0].mean for ours in four)
    return Item(
        "SPLU Figure 9",
        f"Mean relative error of {len(pool):,} questions of selectivity 0.5 to 5 % against c; OCC-100k, {draws} draws. "
        f"Whatever c: {shown}.",
        ("", "decoys, four states as published", "decoys, four states, exact a", "decoys, full channel", "Anatomy"),
        tuple((f"c = {c}", *(with_spread(errors[name][0]) for name in names)) for c, errors in by_size.items()),
        below == len(four) and dbr,
        f"The paper: decoys below Anatomy (at {below} of {len(four)} sizes here) and below DBR ({yes(dbr)}).",
        _against_size("Error of counts of 0.5 to 5 % of the rows", by_size, others),
    )


def figure_12(census: pa.Table, draws: int) -> Item:
    """Two sensitive columns, grouped independently."""
    occupation = CodedTable.of(census, "occupation")
    age = _intervals(census["age"].to_numpy())
    ages = CodedTable.of(pa.table({"age": age}), "age")
    joint = _pairs(ages.codes, occupation.codes, occupation.m)
    low, high = 0.001 * occupation.rows, 0.007 * occupation.rows
    chosen = np.nonzero((joint >= low) & (joint < high))
    by_size = {}
    for c in (2, 4, 5, 6, 8):
        drawn = [_two_columns(ages, occupation, joint, chosen, c, draw) for draw in range(draws)]
        by_size[c] = [spread(column) for column in zip(*drawn, strict=True)]
    low_error = [published.mean <= 0.2 for published, _ in by_size.values()]
    independent = np.outer(ages.histogram.counts, occupation.histogram.counts) / occupation.rows
    zero = float(relative_error(independent[chosen], joint[chosen]).mean())
    kinds = ("a as published", "exact a")
    rows = [(str(c), *map(with_spread, errors)) for c, errors in by_size.items()]
    return Item(
        "SPLU Figure 12",
        f"Two sensitive columns, age in {INTERVALS} intervals of about equal size and occupation: mean relative "
        f"error of all {len(chosen[0])} pairs of selectivity 0.1 to 0.7 %; OCC-100k, {draws} draws, four states of "
        "each column to the fixed point.",
        ("c", *kinds),
        (*rows, ("independence", f"{100 * zero:.1f} %", "")),
        all(low_error),
        "The paper: the accuracy can match that with one sensitive column (read as at most 20 % with the a that it "
        f"publishes). That holds at {sum(low_error)} of {len(low_error)} sizes. Multiplying the two "
        f"published distributions, which needs no joint release, is off by {100 * zero:.1f} %.",
        Chart(
            "Two sensitive columns: error of pairs",
            "group size c",
            "mean relative error",
            (*lines(kinds, by_size), level(INDEPENDENCE, zero, by_size)),
            percent=True,
        ),
    )


def _two_columns(
    ages: CodedTable,
    occupation: CodedTable,
    joint: npt.NDArray[np.float64],
    chosen: tuple[npt.NDArray[np.int64], ...],
    c: int,
    draw: int,
) -> tuple[float, float]:
    stream, published = stream_of(1, draw, f"two columns, {c}"), []
    for table in (ages, occupation):
        plan = Decoys(c=c, leftovers="drop").plan(table.histogram, None)
        published.append(draw_plan(table, plan, stream.subkey(table.sensitive), None).published)
    both = _pairs(published[0], published[1], occupation.m)
    shown = both[chosen]
    first, second = both.sum(1)[chosen[0]], both.sum(0)[chosen[1]]
    states = np.stack([both.sum() - first - second + shown, second - shown, first - shown, shown], axis=1)
    observed = np.zeros((len(shown), 2, 2, 2))
    observed[:, 1] = states.reshape(-1, 2, 2)  # no public condition: every row is in Q
    kinds: tuple[Others, Others] = ("as published", "exact")
    first_kind, second_kind = (several_columns(observed, (c, c), others=kind)[:, 1, 1, 1] for kind in kinds)
    true = joint[chosen]
    return float(relative_error(first_kind, true).mean()), float(relative_error(second_kind, true).mean())


def _intervals(ages: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    edges = np.unique(np.quantile(ages, np.arange(1, INTERVALS) / INTERVALS))
    return np.searchsorted(edges, ages, side="right").astype(np.int64)


def _pairs(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], m: int) -> npt.NDArray[np.float64]:
    counts = np.bincount(first.astype(np.int64) * m + second)
    full = np.zeros((int(first.max()) + 1) * m)
    full[: len(counts)] = counts
    return full.reshape(-1, m)
