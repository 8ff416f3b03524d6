"""What rivals promise, recomputed: of one perturbed row of a box, of a published matrix, of groups and of answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from deniable.audit.verify.checks import FULL, Check, belief_checks, part_amplification
from deniable.audit.verify.coverage import NOT_CHECKED, above_checks, noise_slack
from deniable.core.promise import Groups, Matrix, NoisyAnswers, NoisySums, OneOfBox

CLOSE = 1e-9  # floating-point tails against exact limits
Json = Mapping[str, Any]


def by_box(promise: OneOfBox, part: Json, manifest: Json) -> list[Check]:
    """One of k rows is drawn, so an amplification of g in the channel is 1 + (g - 1) / k of a person's value."""
    named = ", ".join(map(repr, part["columns"]))
    if promise.k < 1 or len(part["cells"]) != 1 or promise.rho1 is None or promise.rho2 is None:
        return [Check("part amplification", False, f"{named}: it is about one channel, boxes, and beliefs")]
    whole = part_amplification(part)
    if whole is None:
        return [Check("part amplification", False, f"{named}: gamma is unbounded")]
    gamma = 1 + (whole - 1) / promise.k
    stated = manifest["guarantee"]["gamma"]
    detail = f"{named}: gamma is {float(gamma):.6g} of one row in {promise.k}, promised {float(promise.gamma):.6g}"
    return [
        Check("part amplification", gamma <= promise.gamma, detail),
        *belief_checks(promise, named, gamma),
        Check("amplification", stated == str(promise.gamma), f"the release states a gamma of {str(stated)[:40]}"),
        *above_checks(promise, part, manifest),
    ]


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


def by_groups(promise: Groups, part: Json, manifest: Json) -> list[Check]:
    """The groups themselves are in the files, and are checked there."""
    sound = promise.l >= 1 and promise.k >= 1 and not part["cells"]
    return [Check("promise of groups", sound, f"groups of {promise.k} rows or more, no value above 1/{promise.l}")]


def by_answers(promise: NoisyAnswers, part: Json, manifest: Json) -> list[Check]:
    """Nothing is published: whoever asks trusts the owner to add the noise."""
    return [Check("answers", False, "answers cannot be verified: whoever asks trusts the owner to add the noise")]


def by_answers_and_sums(promise: NoisySums, part: Json, manifest: Json) -> list[Check]:
    """What noise of this epsilon does to sums, if the owner adds it: bounds and tails in floating-point numbers."""
    checks = by_answers(promise, part, manifest)
    epsilon, small, large = promise.epsilon, promise.small_sums, promise.large_sums
    if small is not None:
        widths = [int(small.error * f) for f in range(1, small.below + 1)]
        least = min(1 - math.tanh(epsilon * (2 * width + 1) / 2) for width in widths)
        detail = f"off with probability {least:.4g} at the least, from all answers; required {small.at_least}"
        checks.append(Check("small sums", least >= float(small.at_least) - CLOSE, detail))
    if large is not None:
        share, away = epsilon / promise.questions, -int(-large.error * large.above // 1)
        most = math.exp(-share * (away - 0.5)) / math.cosh(share / 2)
        detail = f"off with probability {most:.4g} at {large.above:,} rows, in each answer; allowed {large.at_most}"
        checks.append(Check("large sums", most <= float(large.at_most) + CLOSE, detail))
    return checks
