"""The planner's choice for a table: it is published, so it may tell no more of the rows than the release says."""

from __future__ import annotations

import numpy as np

from deniable.core.histogram import Histogram
from deniable.core.manifest import ROW_ID
from deniable.mechanisms import SmallDomain
from deniable.planning.comparison import Comparison
from deniable.planning.plan import planners_choice, require_something
from deniable.publishing import marginal
from deniable.publishing.request import Publication


def compared_for(publication: Publication) -> Comparison:
    """The planner chooses by all sensitive columns together. What it takes is published, so it is no more than noisy
    counts tell; it looks at no row."""
    privacy = require_something(publication.privacy)
    scan = publication.scan(publication.sensitive, publication.domain)
    drawn_by = publication.request.drawn_by
    without = (SmallDomain.name,) if drawn_by == ROW_ID else ()  # it deals rows to cells by their number
    return planners_choice(_known_counts(publication, scan.histogram), privacy, without=without, noisy=True)


def _known_counts(publication: Publication, counts: Histogram) -> Histogram:
    """What the release tells of the counts: with the noise that it has, and of all values alike where it tells none."""
    privacy = publication.privacy
    if privacy is not None and privacy.sums:
        return counts  # decoys alone promise sums: there is nothing to choose
    if marginal.is_wanted(None, privacy):
        known = marginal.public_histogram(counts, marginal.noisy_marginal(publication.keys, counts))
        assert known is not None
        return known
    return Histogram(counts.domain, np.full(counts.m, max(counts.rows // max(counts.m, 1), 1), dtype=np.int64))
