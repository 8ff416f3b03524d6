"""What a release was made by, why, and how accurate typical answers will be: for its owner, no part of the release."""

from __future__ import annotations

import math
from collections.abc import Sequence

from deniable.core.choice import Choice
from deniable.core.errors import OptionError
from deniable.core.histogram import Histogram
from deniable.core.part import Part
from deniable.core.plan import Plan
from deniable.core.sentence import not_covered
from deniable.planning.candidates import errors_of
from deniable.planning.profiles import BySelectivity
from deniable.publishing.parts import Prepared

TYPICAL = (0.001, 0.01, 0.1)  # of the rows, that a count may be about
FEW = 10  # rows; counts of fewer are nobody's typical question


def choice_of(ready: Prepared, published: Sequence[Part]) -> Choice:
    """What was chosen, from a plan and what a release says of its parts."""
    uncovered = not_covered(published[0], ready.plan.guarantee.adversary) if len(published) == 1 else ""
    return Choice(
        mechanism=ready.plan.mechanism,
        chosen=ready.chosen,
        rows=ready.jobs[0].rows,
        expected=expected_errors(ready.plan, ready.marginals[0] is not None),
        not_covered=uncovered.strip(),
    )


def expected_errors(plan: Plan, calibrated: bool, counts: Histogram | None = None) -> dict[float, float]:
    """Of counts about typical shares of the rows, where they can be predicted; of other ``counts`` than planned."""
    if len(plan.parts) != 1 or plan.parts[0].histogram is None or plan.parts[0].strata:
        return {}
    rows = plan.histogram if counts is None else counts
    shares = tuple(share for share in TYPICAL if share * rows.rows >= FEW)
    profile = BySelectivity(rows, shares)
    try:
        errors = errors_of(plan, profile, calibrated=calibrated)
    except OptionError:  # a channel that has no inverse: no question is answered from it
        return {}
    return {share: error for share, error in zip(shares, errors, strict=True) if not math.isnan(error)}
