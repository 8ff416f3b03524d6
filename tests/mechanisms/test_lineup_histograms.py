"""A thousand histograms, tiny and large, with singletons, a dominant value or limits of single values: no line-up lets
anyone become surer than allowed, by an enumeration that shares no code with the planner."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.core import lineups as lineup_exact
from deniable.core.histogram import Histogram
from deniable.mechanisms import Lineup
from deniable_verify import lineups as recount

EXAMPLES = 1_000
FEWEST = EXAMPLES // 4  # that some line-up can be planned for: otherwise the test would show nothing


@st.composite
def counted(draw: st.DrawFn) -> list[int]:
    """Few rows, singletons, everyday counts, or one value that dominates."""
    kind = draw(st.sampled_from(["tiny", "singletons", "mixed", "dominant"]))
    m = draw(st.integers(3, 16))
    if kind == "tiny":
        return draw(st.lists(st.integers(0, 2), min_size=m, max_size=m))
    if kind == "singletons":
        return [draw(st.integers(1, 50)), *[1] * (m - 1)]
    everyday = draw(st.lists(st.integers(1, 2_000), min_size=m, max_size=m))
    return everyday if kind == "mixed" else [sum(everyday), *everyday[1:]]


@pytest.mark.long
def test_no_set_of_a_thousand_histograms_says_more_than_allowed() -> None:
    planned = []

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(counted(), st.fractions(Fraction(1, 12), Fraction(9, 10)), st.sampled_from([None, "1", "1/3"]), st.data())
    def keeps_its_promise(counts: list[int], rho2: Fraction, truth: str | None, data: st.DataObject) -> None:
        histogram = Histogram(tuple(range(len(counts))), np.array(counts))
        limits: list[Fraction | None] = [rho2] * len(counts)
        privacy = dn.Privacy(rho2=rho2)
        if data.draw(st.booleans(), label="limits of single values"):
            named = data.draw(st.dictionaries(st.sampled_from(histogram.domain), st.integers(13, 90), min_size=1))
            limits = [Fraction(named[x], 100) if x in named else None for x in histogram.domain]
            privacy = dn.Privacy(per_value={x: ("1/8", Fraction(high, 100)) for x, high in named.items()})
        try:
            design = Lineup(truth=truth).plan(histogram, privacy).parts[0].lineups
        except dn.DeniableError:
            return
        assert design is not None
        sure = recount.surest_at_least(design.integers(), counts, 0)
        for x, (belief, limit) in enumerate(zip(sure, limits, strict=True)):
            frequent = bool(privacy.per_value) and histogram.frequency(x) > Fraction(1, 8)
            assert limit is None or frequent or belief <= limit
        assert lineup_exact.surest_in_lineups(design, histogram.counts) == sure
        planned.append(design)

    keeps_its_promise()
    assert len(planned) > FEWEST
