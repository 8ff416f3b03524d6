"""The budget that requirements on sums allow, and what they are told (``deniable.core.noisy_sums``)."""

from __future__ import annotations

import math

from deniable.core.errors import RequirementError, option
from deniable.core.noisy_sums import large_reached, largest_epsilon, small_reached, smallest_epsilon
from deniable.core.privacy import Privacy
from deniable.core.probability import percent

WHOLE_TABLE = "What is said about small sums is about a value's rows in the whole table, not in parts of it."


def not_declared(column: str) -> str:
    """What to tell whoever requires something of small sums and has not declared the values."""
    return (
        f"The values of {column} are not declared: {option('small_sums')} keeps small counts uncertain, and a value "
        "that is listed because someone holds it has one row at least. Fix: "
        f"{option('domain', '[..]', 'COLUMN=FILE')} with every value that the column may hold, whether or not the "
        "table shows it."
    )


def without_sums(privacy: Privacy | None) -> Privacy | None:
    """What a requirement says of beliefs; None where it is about sums alone."""
    if privacy is None or not privacy.sums:
        return privacy
    if privacy.rho2 is None and not privacy.per_value:
        return None
    return Privacy(
        privacy.rho1,
        privacy.rho2,
        adversary=privacy.adversary,
        per_value=dict(privacy.per_value),
        exempt=privacy.exempt,
        theta=privacy.theta,
    )


def most_for_sums(privacy: Privacy | None) -> float:
    """The largest budget that keeps small sums uncertain; without them there is no limit."""
    small = None if privacy is None else privacy.small_sums
    return math.inf if small is None else largest_epsilon(small)


def least_for_sums(privacy: Privacy | None, questions: int) -> float:
    """The smallest budget for so many questions that keeps large sums accurate."""
    large = None if privacy is None else privacy.large_sums
    return 0.0 if large is None else smallest_epsilon(large) * questions


def require_sums(privacy: Privacy | None, budget: float, questions: int) -> None:
    """Refuse a budget that breaks what is required of sums."""
    if privacy is None:
        return
    small, large = privacy.small_sums, privacy.large_sums
    if small is not None and (reached := small_reached(small, budget)) < small.at_least:
        raise RequirementError(
            f"epsilon = {budget:.4g} does not keep small sums uncertain: from all answers together they could be told "
            f"so that they are off with probability {float(reached):.3g} only; {float(small.at_least):.3g} is "
            f"required. Fix: epsilon={math.floor(1000 * largest_epsilon(small)) / 1000:g} or less, or leave it out."
        )
    if large is not None and (off := large_reached(large, budget / questions)) > large.at_most:
        fewer = int(budget / smallest_epsilon(large))
        raise RequirementError(
            f"epsilon = {budget:.4g} over {questions:,} questions does not keep large sums accurate: a count of "
            f"{large.above:,} rows is off by {percent(large.error)} with probability {float(off):.3g}; "
            f"{float(large.at_most):.3g} is allowed. Fix: "
            + (f"questions={fewer:,} or fewer, or " if fewer else "")
            + f"raise above, error or at_most of {option('large_sums')}."
        )


def sums_in_words(privacy: Privacy | None, budget: float, questions: int) -> tuple[str, ...]:
    """The promises as they are kept, with the figures of this budget."""
    if privacy is None:
        return ()
    said, small, large = [], privacy.small_sums, privacy.large_sums
    if small is not None:
        least = math.floor(1000 * small_reached(small, budget)) / 10
        said.append(
            f"Whatever whole number is estimated from all answers for a value that 1 to {small.below} rows have, by a "
            f"rule that prefers no count, is off by more than {percent(small.error)} with probability at least "
            f"{least:g} %."
        )
    if large is not None:
        most = math.ceil(10_000 * large_reached(large, budget / questions)) / 100
        said.append(
            f"An answer about {large.above:,} rows or more is off by {percent(large.error)} or more with probability "
            f"at most {percent(large.at_most)} (at {large.above:,} rows {most:g} %, the tail of the noise)."
        )
    return tuple(said)
