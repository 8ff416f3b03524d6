"""All perturbed columns of a row together: what someone concludes who knows how often each combination of values occurs
(mathematics 13.8).

With N[x] rows of each combination x = (x_1 .. x_k), a row that shows y = (y_1 .. y_k) holds v in column c with

    sum over x with x_c = v of N[x] prod_j P_j[y_j][x_j]  /  sum over x of N[x] prod_j P_j[y_j][x_j]

exactly, since columns are perturbed independently. A column that is deniable by itself need not be so beside others
that go with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse

from deniable.audit.breaches import Limits, protects
from deniable.audit.findings import Finding, Name
from deniable.audit.posteriors import Posteriors
from deniable.core.arrays import Bools, Floats, Ints
from deniable.core.probability import percent

MOST = 3 * 10**8  # comparisons of a published row with a combination, in one column
NEVER = 1e-300  # rows that hidden groups made again from the table cannot have shown
CHUNK, ENTRIES = 256, 2**23  # published rows at a time; of many combinations fewer, so that not more is held


@dataclass(frozen=True)
class JointBelief:
    """The value of one column that all columns of a row give away most.

    Attributes:
        column: its place among the columns; ``columns`` says how many there are.
        position: which value, by its place in the domain.
        alone, together: how sure one becomes of it by its own column at most, and by all columns of some row.
        allowed: what is promised of the column alone; None where nothing is.
        rows, of: how many published rows were looked at, and how many there are.
    """

    column: int
    columns: int
    position: int
    alone: float
    together: float
    allowed: Fraction | None
    rows: int
    of: int


def joint_beliefs(
    channels: Sequence[Posteriors],
    held: tuple[Ints, Ints],
    shown: Ints,
    limits: Sequence[Limits],
    alone: Sequence[Floats],
) -> list[JointBelief]:
    """For each column the protected value (any, where nothing is required) of which a row's columns say most.

    Args:
        channels: of each column, what rows show of it.
        held: the different combinations of codes in original rows, [combinations, columns], and the rows of each.
        shown: the different combinations in published rows.
        limits: (rho1, rho2) of each value of each column.
        alone: for each column and value, how sure one becomes by this column alone, at most.
    """
    combinations, counts = held
    looked_at = _sample(shown, MOST // (len(combinations) * len(channels)))
    chunk = max(1, min(CHUNK, ENTRIES // len(combinations)))
    weights = [
        sparse.csr_matrix((counts.astype(float), (column, np.arange(len(counts)))), shape=(len(limit), len(counts)))
        for column, limit in zip(combinations.T, limits, strict=True)
    ]
    rows = [
        np.bincount(column, weights=counts, minlength=len(limit)).astype(np.int64)
        for column, limit in zip(combinations.T, limits, strict=True)
    ]
    covered = [_covered(one, of) for one, of in zip(limits, rows, strict=True)]
    best = [np.zeros(len(limit)) for limit in limits]
    for first in range(0, len(looked_at), chunk):
        likelihood = _likelihood(channels, combinations, looked_at[first : first + chunk])
        whole = np.maximum(likelihood @ counts, NEVER)
        for column, weight in enumerate(weights):
            beliefs = (weight @ likelihood.T) / whole
            best[column] = np.maximum(best[column], beliefs.max(axis=1))
    made = []
    for column, (posterior, inside) in enumerate(zip(best, covered, strict=True)):
        if not inside.any():
            continue
        place = int(np.argmax(np.where(inside, posterior, -1.0)))
        limit = limits[column][place]
        allowed = None if limit is None else limit[1]
        figures = float(posterior[place]), allowed, len(looked_at), len(shown)
        made.append(JointBelief(column, len(channels), place, float(alone[column][place]), *figures))
    return made


def _likelihood(channels: Sequence[Posteriors], combinations: Ints, rows: Ints) -> Floats:
    """prod_j P_j[y_j][x_j] for rows y and combinations x."""
    product = np.ones((len(rows), len(combinations)))
    for column, channel in enumerate(channels):
        product *= channel.chances(rows[:, column], combinations[:, column])
    return product


def _covered(limits: Limits, counts: Ints) -> Bools:
    if all(limit is None for limit in limits):
        return counts > 0
    rows = int(counts.sum())
    return np.array(
        [
            count > 0 and protects(limit, Fraction(count, rows))
            for limit, count in zip(limits, counts.tolist(), strict=True)
        ]
    )


def _sample(rows: Ints, most: int) -> Ints:
    """Rows at equal distances, as many as can be compared with all combinations."""
    if len(rows) <= max(most, 1):
        return rows
    return rows[np.linspace(0, len(rows) - 1, max(most, 1)).astype(np.int64)]


def about_joint(beliefs: Sequence[JointBelief], names: Sequence[str], values: Sequence[Name]) -> list[Finding]:
    """A finding for each column of which the others say more."""
    made = []
    for one in beliefs:
        beyond = one.allowed is not None and one.together > one.allowed
        if not beyond and one.together <= one.alone * (1 + 1e-9):
            continue
        promised = "" if one.allowed is None else f", and {percent(one.allowed)} are promised of this column"
        part = "" if one.rows == one.of else f" (of {one.rows:,} of {one.of:,} different rows)"
        detail = (
            f"whoever knows how often each combination of the {one.columns} perturbed columns occurs becomes up to "
            f"{percent(one.together)} sure of {values[one.column](one.position)} in {names[one.column]!r}{part}; by "
            f"that column alone it is {percent(one.alone)}{promised}."
        )
        advice = "Lower the coins, drop columns, or publish them as one column (mechanism 'uniform')." if beyond else ""
        made.append(Finding("caution" if beyond else "info", "all columns together", detail, advice))
    return made
