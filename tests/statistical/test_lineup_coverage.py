"""95 % intervals of counts from line-ups cover the truth 93 to 97 times in 100; intervals 15 % narrower do not.

Keys are fixed, so the figures are too.
"""

from __future__ import annotations

import numpy as np
import pytest

import deniable as dn
from deniable.lab.made_up import census

DRAWS = 30
CONDITIONS = [{}, {"gender": "Male"}, {"gender": "Female"}]
LARGE = 50  # rows; the truth of smaller counts is often below an interval that is cut at 0
KINDS = {
    "fair coin": (dn.mechanisms.Lineup(), dn.Privacy("1/10", "1/5")),
    "truth 1": (dn.mechanisms.Lineup(truth=1), dn.Privacy("1/10", "1/5")),
    "any prior": (dn.mechanisms.Lineup(), dn.Privacy("1/10", "1/5", adversary="any-prior")),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "calibrate"),
    [("fair coin", False), ("fair coin", True), ("truth 1", False), ("truth 1", True), ("any prior", False)],
)
def test_intervals_cover_as_often_as_they_say(kind: str, calibrate: bool) -> None:
    mechanism, privacy = KINDS[kind]
    table = census(20_000, seed=5)
    frame = table.to_pandas()
    domain = sorted(frame["occupation"].unique())
    asked = [frame if not where else frame[frame["gender"] == where["gender"]] for where in CONDITIONS]
    truth = np.array([rows["occupation"].value_counts().reindex(domain, fill_value=0) for rows in asked])
    large = truth > LARGE
    inside, narrower = [], []
    for draw in range(DRAWS):
        key = (draw + 1).to_bytes(32, "big")
        declared = {"domain": domain} if privacy.adversary == "any-prior" else {}
        release = dn.publish(table, sensitive="occupation", privacy=privacy, mechanism=mechanism, key=key, **declared)
        assert list(release.manifest.parts[0].domain) == domain
        found = release.count_many(CONDITIONS, every_value=True, calibrate=calibrate)
        inside.append(((found.low <= truth) & (truth <= found.high))[large])
        narrower.append((np.abs(found.value - truth) <= 0.85 * 1.96 * found.stderr)[large])
    assert np.size(inside) > 2000
    assert 0.93 <= np.mean(inside) <= 0.97
    assert np.mean(narrower) < 0.93
