"""Perturbed generalization: what one perturbed row of a box says of a person, and how it answers."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pyarrow as pa
import pytest

from deniable.core.channels import Channel
from deniable.core.errors import OptionError, RequirementError, TableError
from deniable.core.histogram import Histogram
from deniable.core.privacy import Privacy
from deniable.lab import PerturbedGeneralization
from deniable.lab.draws import stream_of
from deniable.lab.perturbed_generalization import Sampled, SampledBoxes, SampleMoments, row_amplification
from deniable.planning.pools import CodedTable, sql_pool
from deniable.tables.keys import Keystream, Secret

COUNTS = Histogram(tuple("abcdefgh"), np.array([3001, 2003, 1499, 1201, 1009, 701, 411, 175]))
PRIVACY = Privacy("1/4", "1/2")
N = 3000


def people() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "age": rng.integers(20, 80, N),
            "sex": rng.choice(["F", "M"], N),
            "job": rng.choice(list("abcdef"), N, p=[0.25, 0.2, 0.2, 0.15, 0.1, 0.1]),
        }
    )


def test_a_box_of_k_rows_lets_the_channel_keep_more() -> None:
    # (1/5, 1/4) allows gamma = 4/3; one row of 6 is drawn, so the channel may have 1 + 6/3 = 3, and 3/(2+3) stay.
    few = Histogram(tuple("abc"), np.array([30, 40, 30]))
    channel = PerturbedGeneralization(k=6).channel(few, Privacy("1/5", "1/4", adversary="any-prior"))
    assert channel.diagonal == pytest.approx([0.6] * 3, abs=1e-8)
    assert row_amplification(channel, 6) <= Fraction(4, 3)
    assert row_amplification(channel, 6) > Fraction(4, 3) * (1 - Fraction(1, 10**7))
    assert PerturbedGeneralization().fitted(Privacy(rho2="1/20")) == PerturbedGeneralization(20)


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_whoever_knows_all_others_of_a_box_learns_no_more_than_is_promised(rows: int) -> None:
    """Brute force over all that the others can have: max P'(y | x) / P'(y | x') is 1 + (gamma - 1) / n exactly."""
    channel = Channel.uniform(tuple("abcd"), gamma=Fraction(7))
    scale = 2**32
    keep, replace = channel.keep.tolist(), channel.replace.tolist()
    exact = [[keep[x] * scale * (x == y) + (scale - keep[x]) * replace[y] for x in range(4)] for y in range(4)]
    worst = Fraction(0)
    for others in combinations_with_replacement(range(4), rows - 1):
        for row in exact:
            said = [own + sum(row[other] for other in others) for own in row]
            worst = max(worst, Fraction(max(said), min(said)))
    assert worst == row_amplification(channel, rows)


def test_the_bound_is_that_of_the_integers() -> None:
    mechanism = PerturbedGeneralization(k=4)
    guarantee = mechanism.guarantee(COUNTS, Privacy("1/5", "1/3"))
    assert guarantee.gamma == row_amplification(mechanism.channel(COUNTS, Privacy("1/5", "1/3")), 4)
    assert guarantee.worst <= Fraction(1, 3)
    every = mechanism.guarantee(COUNTS, Privacy(rho2="1/2"))
    assert every.rho1 is not None
    assert Fraction(3001, 10_000) - Fraction(1, 1000) < every.rho1 + Fraction(1, 100)
    assert every.worst <= Fraction(1, 2)


def test_one_row_of_each_box_is_shown_and_boxes_depend_on_public_columns_only() -> None:
    table = people()
    first, again, other = (
        Sampled.draw(CodedTable.of(table, "job"), 5, PRIVACY, stream(key)) for key in (bytes(32), bytes(32), b"1" * 32)
    )
    groups, sizes = first.boxed.groups, first.sample.rows
    assert sizes.min() >= 5
    assert np.array_equal(groups[first.member], np.arange(len(sizes)))
    assert np.array_equal(sizes, np.bincount(groups))
    assert np.array_equal(first.sample.shown, again.sample.shown)
    assert not np.array_equal(first.sample.shown, other.sample.shown)
    turned = table.set_column(2, "job", pa.array(table["job"].to_pylist()[::-1]))
    assert np.array_equal(
        Sampled.draw(CodedTable.of(turned, "job"), 5, PRIVACY, stream(bytes(32))).boxed.groups, groups
    )


def stream(key: bytes) -> Keystream:
    return Keystream(Secret.from_key(key), "test")


def test_answers_are_right_on_average_and_off_as_predicted() -> None:
    """Boxes as a table has them, 200 samples: the mean is within 5.5 standard errors of the truth."""
    table = CodedTable.of(people(), "job")
    pool = sql_pool(table, "SELECT COUNT(*) FROM release WHERE sex = 'F' AND job IN ('a', 'b')")
    made = Sampled.draw(table, 5, PRIVACY, stream(bytes(32)))
    (share,) = made.boxed.shares(pool)
    truth = float((share[made.boxed.groups] * np.isin(table.codes, [0, 1])).sum())
    setting = SampledBoxes(5, PRIVACY)
    values = [setting.run(pool, stream_of(1, number, "samples")).answers[""][0, 0] for number in range(200)]
    error = np.std(values, ddof=1) / np.sqrt(200)
    assert error < 0.02 * truth, "a bias of a tenth would be seen"
    assert abs(np.mean(values) - truth) < 5.5 * error
    bias, variance = SampleMoments(PerturbedGeneralization(5), PRIVACY).moments(pool)
    assert truth - pool.truth[0] == pytest.approx(bias[0, 0])
    assert np.var(values, ddof=1) == pytest.approx(variance[0, 0], rel=0.5)  # five deviations of 200 squares


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(OptionError, match="k = 0"):
        PerturbedGeneralization(k=0)
    with pytest.raises(TableError, match="k = 50000"):
        PerturbedGeneralization(k=50_000).guarantee(COUNTS, PRIVACY)
    with pytest.raises(RequirementError, match="needs a requirement"):
        PerturbedGeneralization().guarantee(COUNTS, None)
    with pytest.raises(RequirementError, match="fine-grain"):
        PerturbedGeneralization().guarantee(COUNTS, Privacy(per_value={"a": ("1/4", "1/2")}))
    with pytest.raises(RequirementError, match="cannot be met"):
        PerturbedGeneralization().guarantee(COUNTS, Privacy(rho2="1/6"))
