"""SPLU's promises about sums: Figures 4 and 5, and Theorem 4, by exact tails."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from deniable.core.privacy import SmallSums, chebyshev, miss
from deniable.planning.candidates import Chart, lines
from reproduction.criteria import limit
from reproduction.items import Item
from reproduction.splu_iteration import splu_iteration

ERROR = Fraction(3, 10)
GROUP = 5
TABLE, VALUE = 10_000, 100  # rows of the counterexample's table, and those with the value


def splu_lemma_1(f: int, c: int, error: Fraction) -> Fraction:
    """What SPLU Lemma 1 promises, 1 / (c e^2 f^2). It is wrong, and here to be compared with."""
    return 1 / (c * error * error * f * f)


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
        least >= limit("SPLU Figure 5 (Example 2)", "T_P"),
        f"The paper: c = 10 gives alpha = 3, e = .3, T_P = .6. Ours: {least:.4f}, the exact binomial tail.",
        Chart(
            "How likely a small sum is off by over 30 %",
            "rows of the sum",
            "probability",
            lines([f"c = {c}" for c in sizes], drawn),
        ),
    )


def chance_of_missing(f: int) -> float:
    """Pr[|f' - f| > .3 f] by SPLU's own estimate, for f rows of a predicate that all have the value.

    Each shows it with probability 1/c by itself; the estimate follows from how many do.
    """
    shown = np.arange(f + 1)
    states = [[TABLE - VALUE - (f - shown), VALUE - shown], [f - shown, shown]]
    observed = np.moveaxis(np.array(states, dtype=np.float64), 2, 0)
    estimates = splu_iteration(observed, [GROUP]).rows[:, 1, 1]
    chances = [math.comb(f, k) * (GROUP - 1) ** (f - k) / GROUP**f for k in range(f + 1)]
    off = np.abs(estimates - f) > float(ERROR) * f
    return float(np.dot(chances, off))


def theorem_4() -> Item:
    """Small sums of a predicate and a value: promised like those of a value alone, and not kept."""
    promised = {alpha: float(SmallSums(ERROR, alpha, "1/2").reached(GROUP)) for alpha in range(1, 7)}
    exact = {f: chance_of_missing(f) for f in promised}
    broken = [alpha for alpha in promised if min(exact[f] for f in range(1, alpha + 1)) < promised[alpha]]
    return Item(
        "SPLU Theorem 4 (Lemma 3)",
        f"A public predicate of f rows which all have s; {VALUE} of {TABLE:,} rows have s, c = {GROUP}. The "
        "probability that SPLU's own estimate of the f rows is off by over 30 %, exactly, beside what "
        "Theorem 4 promises for alpha = f.",
        ("f", "promised for alpha = f", "exactly at f"),
        tuple((str(f), f"{promised[f]:.3f}", f"{exact[f]:.3f}") for f in promised),
        not broken,
        f"Broken for alpha = {', '.join(map(str, broken))}. "
        * bool(broken)
        + "The proof treats the predicate's rows like a value's rows in the whole table. But how many rows a predicate "
        "has is public, and no estimate is above it: as soon as one of three rows shows s, three is the estimate, and "
        "right.",
    )
