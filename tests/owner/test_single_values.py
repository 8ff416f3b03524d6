"""Columns that are perturbed together: what is learnt about each one's values, against a joint table made here."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Channel
from deniable.core.exact import SCALE
from deniable.owner import assessment as room
from deniable.planning.posteriors import Posteriors, cells_from

RHO2 = Fraction(1, 5)
PRIVACY = dn.Privacy("1/7", "1/5")


def people(n: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(3)
    ill = rng.choice(list("abcdefghij"), n, p=np.arange(14, 4, -1) / 95)
    return pa.table({"ill": ill, "job": rng.choice(list("uvwxyz"), n)})


def published(mechanism: str, table: pa.Table | None = None) -> Any:
    rows = people() if table is None else table
    return dn.publish(rows, sensitive=["ill", "job"], privacy=PRIVACY, mechanism=mechanism, key=bytes(32))


@pytest.mark.parametrize("mechanism", ["uniform", "designed", "fine-grain"])
def test_beliefs_in_single_values_are_those_of_the_joint_table(mechanism: str) -> None:
    table, release = people(), published(mechanism)
    (part,) = release.manifest.parts
    counts = dict.fromkeys(part.domain, 0)
    for value in zip(table["ill"].to_pylist(), table["job"].to_pylist(), strict=True):
        counts[value] += 1
    joint = part.channels[0].matrix() * np.array(list(counts.values()))  # published pair, true pair
    (audited,) = dn.audit(table, release).parts
    assert len(audited.singles) == 16
    for belief in audited.singles:
        column = part.columns.index(belief.column)
        holds = np.array([value[column] == belief.value for value in part.domain])
        assert float(belief.highest) == pytest.approx((joint[:, holds].sum(1) / joint.sum(1)).max(), rel=1e-9)
        assert belief.prior == Fraction(int(sum(n for v, n in counts.items() if v[column] == belief.value)), 20_000)
        assert not belief.covered or belief.highest <= RHO2
    left_out = {belief.value for belief in audited.singles if not belief.covered}
    assert set("uvwxyz") <= left_out <= set("uvwxyza"), "a job is 1/6, more than rho1; a is near it"


def test_cells_that_are_seen_and_cells_that_are_not() -> None:
    """Two cells of four pairs, brute force over every view."""
    rng = np.random.default_rng(5)
    sets = np.array([0, 0, 1, 1, 2, 2])
    channels = [
        Channel(tuple(range(4)), np.array(keep) * (SCALE // 16), np.array([4, 4, 4, 4]) * (SCALE // 16))
        for keep in ([3, 5, 2, 7], [9, 1, 4, 4])
    ]
    places = [np.array([0, 1, 2, 4]), np.array([1, 3, 4, 5])]
    rows = [rng.integers(1, 50, 4) for _ in channels]
    for shown in (True, False):
        views: dict[Any, np.ndarray[Any, Any]] = {}
        for number, (channel, place, held) in enumerate(zip(channels, places, rows, strict=True)):
            for y in range(4):
                weights = views.setdefault((number if shown else None, int(place[y])), np.zeros(6))
                weights[place] += channel.matrix()[y] * held
        sure = Posteriors(cells_from(channels, places, rows), published=shown).of_sets(sets)
        for number in range(3):
            expected = max(float(weights[sets == number].sum() / weights.sum()) for weights in views.values())
            assert float(sure[number]) == pytest.approx(expected, rel=1e-9)


def test_small_domain_cells_keep_single_values_and_verify_says_that_it_cannot_tell(tmp_path: Any) -> None:
    table = people()
    release = dn.publish(
        table, sensitive=["ill", "job"], privacy=PRIVACY, mechanism="small-domain", key=bytes(32), out=tmp_path / "r"
    )
    found = dn.audit(table, release)
    assert found.parts[0].singles
    assert all(belief.highest <= RHO2 for belief in found.parts[0].singles if belief.covered)
    assert not any(finding.what == "single values" and finding.grade == "serious" for finding in found.findings)
    (said,) = [check for check in dn.verify(tmp_path / "r").checks if check.what == "single values"]
    assert said.holds is None
    assert found.to_dict()["parts"][0]["single_values"][0]["column"] == "ill"


def test_coins_that_keep_pairs_but_not_their_entries_are_a_serious_finding() -> None:
    table = people()
    release = published("designed")
    (part,) = release.manifest.parts
    (channel,) = part.channels
    raised = Channel(channel.values, np.minimum(channel.keep * 2, SCALE - 1), channel.replace)
    forged = replace(release.manifest, parts=(replace(part, channels=(raised,)),))
    (whole,) = dn.audit(table, release).parts
    histogram = dn.Histogram(part.domain, np.array([whole.posteriors.totals[x] for x in range(part.m)]))
    serious = [finding for finding in room.audit(forged, [histogram]).findings if finding.grade == "serious"]
    assert "single values" in [finding.what for finding in serious]
    honest = room.audit(release.manifest, [histogram]).findings
    assert "single values" not in [finding.what for finding in honest if finding.grade == "serious"]
    assert "single values, not covered" in [finding.what for finding in honest if finding.grade == "caution"]


def test_sentences_say_which_single_values_are_not_covered() -> None:
    assert "of one column alone what is more frequent than 14.3 %" in str(published("uniform").manifest.guarantee)
    assert "of 'job' alone 'u'" in str(published("designed").manifest.guarantee)
    alone = dn.publish(people(), sensitive="ill", privacy=PRIVACY, mechanism="uniform", key=bytes(32))
    assert "alone" not in str(alone.manifest.guarantee)
