"""What a release will say of itself: checked against the table, dated, with the errors to expect of typical counts; and
what it was made by, and why, for its owner alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deniable.core.about import About, today
from deniable.core.choice import Choice
from deniable.core.errors import ColumnError, OptionError, did_you_mean, listing, shortened
from deniable.core.histogram import Histogram
from deniable.core.part import Part
from deniable.core.plan import Plan
from deniable.core.sentence import not_covered
from deniable.planning.candidates import errors_of
from deniable.planning.profiles import BySelectivity
from deniable.publishing.parts import Prepared

TYPICAL = (0.001, 0.01, 0.1)  # of the rows, that a count may be about
FEW = 10  # rows; counts of fewer are nobody's typical question


def about_of(given: About | Mapping[str, Any] | None, names: Sequence[str], published: Sequence[str]) -> About:
    """What was given, with a date, and with descriptions of published columns alone.

    Args:
        given: as the owner has it.
        names: of all columns of the table: others are refused.
        published: those that whoever receives the release will see or ask about.
    """
    about = About() if given is None else given
    if isinstance(about, Mapping):
        unknown = [name for name in about if name not in ("publisher", "contact", "date", "columns")]
        if unknown:
            raise OptionError(
                f"about has the field {shortened(unknown[0])}. Fix: publisher, contact, date and columns are known."
            )
        about = About(**about)
    if not isinstance(about, About) or about.expected:
        raise OptionError(f"about = {shortened(given)} is not understood. Fix: dn.About(publisher='..', contact='..').")
    unknown = [name for name in about.columns if name not in names]
    if unknown:
        raise ColumnError(
            f"The data dictionary describes {listing(unknown)}, and the table has no such column."
            f"{did_you_mean(unknown[0], names)} Fix: leave it out of the dictionary, or correct its name."
        )
    described = {name: text for name, text in about.columns.items() if name in published}
    return replace(about, date=about.date or today(), columns=described)


def with_expected(about: About, ready: Prepared) -> About:
    """The same, with errors that follow from what is published: channels, and the noisy histogram for the counts."""
    noisy, plan = ready.marginals[0], ready.plan
    if len(plan.parts) != 1 or plan.parts[0].histogram is None or plan.parts[0].hidden or noisy is None:
        return about
    public = Histogram(plan.parts[0].histogram.domain, np.maximum(np.array(noisy.counts, dtype=np.int64), 0))
    errors = expected_errors(plan, True, public)
    return replace(about, expected=tuple((share, float(f"{error:.2g}")) for share, error in errors.items()))


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
    if len(plan.parts) != 1 or plan.parts[0].histogram is None:
        return {}
    rows = plan.histogram if counts is None else counts
    shares = tuple(share for share in TYPICAL if share * rows.rows >= FEW)
    profile = BySelectivity(rows, shares)
    try:
        errors = errors_of(plan, profile, calibrated=calibrated)
    except OptionError:  # a channel that has no inverse: no question is answered from it
        return {}
    return {share: error for share, error in zip(shares, errors, strict=True) if not math.isnan(error)}
