"""What releases of groups promise, in one sentence: computed from the promise, so that whoever verifies it can, too."""

from __future__ import annotations

from fractions import Fraction

from deniable.core.probability import percent
from deniable.core.promise import Groups, OneOfBox


def bucket_sentence(promise: Groups) -> str:
    """Of Anatomy's groups: their values, each once, without whose is whose."""
    return (
        "An attacker who knows how frequent each value is, and nothing more about a person, becomes at most "
        f"{percent(Fraction(1, promise.l))} sure of that person's value: a group has at least {promise.l} values, each "
        "once."
    )


def box_sentence(promise: Groups) -> str:
    """Of rows that look alike, with their true values."""
    alike = f"at least {promise.k} rows look alike in their public columns"
    if promise.l == 1:
        return f"Nothing is promised about values: {alike}, but they may all have the same value."
    sure = percent(Fraction(1, promise.l))
    return (
        f"An attacker who knows a person's public values and how frequent each sensitive value is, and nothing more, "
        f"becomes at most {sure} sure of that person's value: {alike}, and no value has more than {sure} of such a "
        "group."
    )


def sample_sentence(promise: OneOfBox) -> str:
    """Of one perturbed row for each box."""
    if promise.rho1 is None or promise.rho2 is None:
        return ""  # it promises no bound, and is refused for that
    return (
        f"No attacker who believed a value at up to {percent(promise.rho1)} beforehand becomes surer of it than "
        f"{percent(promise.rho2)}: of every {promise.k} rows or more that look alike one is published, and its value "
        "is perturbed."
    )
