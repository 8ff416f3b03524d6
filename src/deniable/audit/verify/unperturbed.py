"""Promises that are not about perturbed values: of groups, of answers, and of nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deniable.audit.verify.checks import Check
from deniable.core.promise import Groups, NoisyAnswers, Nothing

Json = Mapping[str, Any]


def by_groups(promise: Groups, part: Json, manifest: Json) -> list[Check]:
    """The groups themselves are in the files, and are checked there."""
    sound = promise.l >= 1 and promise.k >= 1 and not part["cells"]
    return [Check("promise of groups", sound, f"groups of {promise.k} rows or more, no value above 1/{promise.l}")]


def by_answers(promise: NoisyAnswers, part: Json, manifest: Json) -> list[Check]:
    """Nothing is published: whoever asks trusts the owner to add the noise."""
    return [Check("answers", False, "answers cannot be verified: whoever asks trusts the owner to add the noise")]


def by_nothing(promise: Nothing, part: Json, manifest: Json) -> list[Check]:
    """Nothing is promised of this part, and nothing may be stated."""
    return [Check("promise", True, f"{', '.join(part['columns'])}: none ({promise.why})")]
