"""The planner's choice for a table: it is published, so it may tell no more of the rows than the release says."""

from __future__ import annotations

import numpy as np

from deniable.core.histogram import Histogram
from deniable.core.manifest import ROW_ID, ROW_NUMBER
from deniable.engines.request import Request
from deniable.mechanisms import SmallDomain
from deniable.planning.comparison import Comparison
from deniable.planning.plan import planners_choice, require_something
from deniable.publishing import marginal
from deniable.publishing.known import attacker_on

MEASURED = (
    "The mechanism and its options were chosen by what was measured on the table, how well its public columns tell the "
    "sensitive value: which they are is a fact about the table as a whole."
)


def compared_for(request: Request) -> tuple[Comparison, bool]:
    """The planner chooses by all sensitive columns together, and by what the public ones teach; and whether it did.

    What it takes is published, so it is no more than noisy counts tell. Against any prior it looks at no row.
    """
    privacy = require_something(request.privacy)
    scan = request.scan(request.sensitive, request.domain)
    # Where an id decides the draws, the order of the rows decides nothing; neither may a sample of them.
    sampled = request.drawn_by == ROW_NUMBER and privacy.adversary == "frequency"
    sampled = (sampled or request.informed_limit is not None) and len(request.sensitive) == 1
    attacker = attacker_on(request, scan) if sampled else None
    without = (SmallDomain.name,) if request.drawn_by == ROW_ID else ()  # it deals rows to cells by their number
    known = _known_counts(request, scan.histogram)
    compared = planners_choice(known, privacy, attacker, request.informed_limit, without, noisy=True)
    return compared, attacker is not None


def _known_counts(request: Request, counts: Histogram) -> Histogram:
    """What the release tells of the counts: with the noise that it has, and of all values alike where it tells none."""
    privacy = request.privacy
    if privacy is not None and privacy.sums:
        return counts  # decoys alone promise sums: there is nothing to choose
    if marginal.is_wanted(None, privacy):
        known = marginal.public_histogram(counts, marginal.noisy(request.keys, counts))
        assert known is not None
        return known
    return Histogram(counts.domain, np.full(counts.m, max(counts.rows // max(counts.m, 1), 1), dtype=np.int64))
