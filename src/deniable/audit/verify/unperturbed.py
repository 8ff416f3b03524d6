"""Promises that are not about perturbed values: of groups, of answers, and of nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from deniable.audit.verify.checks import Check
from deniable.core.promise import Groups, NoisyAnswers, NoisySums, Nothing

CLOSE = 1e-9  # floating-point tails against exact limits
Json = Mapping[str, Any]


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


def by_nothing(promise: Nothing, part: Json, manifest: Json) -> list[Check]:
    """Nothing is promised of this part, and nothing may be stated."""
    return [Check("promise", True, f"{', '.join(part['columns'])}: none ({promise.why})")]
