"""The recheck of the promise, for ``deniable_verify``: it imports nothing of ``deniable``, nor of the mechanism."""

from __future__ import annotations

from typing import Any

from deniable_verify.checks import Check
from deniable_verify.manifest import part_amplification
from deniable_verify.numbers import Json, fraction
from deniable_verify.promises import Kind


def recheck(promise: Any, part: Json, manifest: Json) -> list[Check]:
    """gamma, from the integers that the rows are drawn by."""
    gamma = part_amplification(part)
    holds = gamma is not None and gamma <= promise.gamma
    return [Check("fair coin", holds, f"gamma is {float(gamma or 0):.6g}, promised {float(promise.gamma):.6g}")]


def sentence(promise: Any, part: Json, adversary: str) -> str:
    """In words, as the release states it."""
    return (
        f"A fair coin decides whether a row of {part['columns'][0]} tells the truth: it multiplies the odds of any "
        f"statement about a person by at most {float(promise.gamma):.4g}."
    )


KIND = Kind(
    fields={"gamma": fraction},
    recheck=recheck,
    mechanisms=("fair-coin",),
    beliefs=lambda promise: [],
    any_prior=lambda promise: True,
    sentence=sentence,
)
