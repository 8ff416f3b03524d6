"""A published matrix, rechecked: posteriors from its entries in whole numbers, and the noisy histogram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from deniable.audit.verify.checks import FULL, Check
from deniable.audit.verify.coverage import NOT_CHECKED, above_checks, noise_slack
from deniable.core.promise import Matrix

Json = Mapping[str, Any]


def by_matrix(promise: Matrix, part: Json, manifest: Json) -> list[Check]:
    """Pr[x | y] = f_x M[y][x] / sum_k f_k M[y][k], as far as the noisy histogram tells f.

    A promise fails here only when it fails for all counts as near to the noisy ones as noise allows.
    """
    if part["mixture"] is None or part["cells"] or part["groups"] is not None or promise.rho2 is None:
        return [Check("matrix", False, "it is about one matrix for all values, and a bound")]
    exact = _whole(part["mixture"])
    if exact is None:
        return [Check("matrix", False, "its columns are not whole numbers out of 2^32 that add up to it")]
    sound = Check("matrix", True, f"{len(exact)} columns of whole numbers out of 2^32, which add up to it")
    left_out = above_checks(promise, part, manifest)
    if part["marginal"] is None:
        return [sound, Check("posterior", True, NOT_CHECKED), *left_out]
    slack, noisy = noise_slack(part), part["marginal"]["counts"]
    least, most = [max(count - slack, 0) for count in noisy], [max(count + slack, 0) for count in noisy]
    covered = [x for x in range(len(noisy)) if x not in promise.exempt and x not in promise.above]
    sure = [max(_at_least(entries, least, most, x) for entries in exact) for x in covered]
    wrong, worst = sum(belief > promise.rho2 for belief in sure), max(sure, default=Fraction(0))
    allowed = f"at least {float(worst):.4g} of an allowed {float(promise.rho2):.4g}, by the noisy histogram"
    detail = f"{len(covered)} values, {allowed}"
    return [sound, Check("posterior", not wrong, f"{wrong} values exceed it: {detail}" if wrong else detail), *left_out]


def _whole(mixture: Sequence[Sequence[float]]) -> list[list[int]] | None:
    """The matrix in whole numbers; None where it has others, or a column does not add up."""
    exact = [[round(entry * FULL) for entry in entries] for entries in mixture]
    same = all(
        entry * FULL == whole
        for entries, own in zip(mixture, exact, strict=True)
        for entry, whole in zip(entries, own, strict=True)
    )
    adds_up = all(sum(column) == FULL and min(column) >= 0 for column in zip(*exact, strict=True))
    return exact if same and adds_up else None


def _at_least(entries: Sequence[int], least: Sequence[int], most: Sequence[int], x: int) -> Fraction:
    """Pr[x | y], with as few rows of x and as many of all others as noise allows."""
    mine = least[x] * entries[x]
    seen = mine + sum(n * entry for n, entry in zip(most, entries, strict=True)) - most[x] * entries[x]
    return Fraction(mine, seen) if seen else Fraction(0)
