"""Single values, which need no m x m array, are answered as the value sets that they are."""

import tracemalloc
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.core.channels import Channel
from deniable.core.part import Part
from deniable.core.promise import Nothing
from deniable.core.tally import Block, Moments
from deniable.estimation.aggregates import Computed, Count, summed
from deniable.estimation.calibration import Control
from deniable.estimation.formula import Ratio
from deniable.estimation.linear import Linear
from deniable.estimation.model.one_part import SingleValues, ValueSets
from deniable.estimation.model.states import States
from deniable.estimation.model.weighed import Answers
from deniable.estimation.published import OnePart
from deniable.estimation.shrinkage import Shrinkage

VALUES = np.array([-3.0, 7.0])  # that the numeric column takes


def channel_of(rng, domain, positions, *, redrawn=False):
    coins = np.zeros(len(positions)) if redrawn else rng.uniform(0.3, 0.95, len(positions))
    return Channel.of([domain[i] for i in positions], coins, rng.dirichlet(np.full(len(positions), 3.0)))


def cells_of(rng, m):
    """Up to three cells that hold every value at least once; cells may share values, or hold one alone."""
    owner = np.append(rng.integers(0, 3, m), rng.integers(0, 3, 2))
    value = np.append(np.arange(m), rng.integers(0, m, 2))
    return [np.unique(value[owner == number]) for number in range(3) if (owner == number).any()]


def states_of(new_manifest, rng, kind, m, exempt):
    """The states of a release of one part, as its manifest gives them."""
    domain = tuple(f"v{i}" for i in range(m))
    cells = cells_of(rng, m) if kind == "cells" else [np.arange(m)]
    shown = {"channels": tuple(channel_of(rng, domain, positions, redrawn=kind == "redrawn") for positions in cells)}
    if kind == "mixture":
        matrix = rng.random((m, m)) + m * np.eye(m)
        shown, cells = {"mixture": tuple(map(tuple, (matrix / matrix.sum(0)).tolist()))}, []
    part = Part(
        columns=("x",),
        types=("string",),
        missing="exempt" if exempt else "value",
        promise=Nothing("a test"),
        domain=domain,
        cell_positions=tuple(cells),
        cells_published=len(cells) > 1,
        **shown,
    )
    return States.of(OnePart.of(new_manifest(pa.table({"x": ["v0"]}), part)))


def block_of(rng, groups, classes, states):
    """Rows by [group, class, state], two fifths of the tallies empty; most rows have a number."""
    counts = rng.poisson(6, (groups, classes, states)) * (rng.random((groups, classes, states)) < 0.6)
    low = rng.binomial(counts, 0.4)
    high = rng.binomial(counts - low, 0.8)
    sums, squares = (low * VALUES[0] ** power + high * VALUES[1] ** power for power in (1, 2))
    moments = Moments((low + high).astype(float), sums, squares)
    return Block(np.zeros((groups, 0), np.int64), counts.astype(float), {"pay": moments})


def control_of(rng, states, block, exempt):
    """The whole table holds the block's rows and others; its histogram is anything near, and exact where exempt."""
    total = block.counts.sum(axis=(0, 1)) + rng.poisson(8, states.count)
    noisy, counts = np.arange(states.m) < states.m - exempt, states.invert(total)
    published = np.where(noisy, np.maximum(counts + rng.normal(0, 3, states.m), 0.0), counts)
    return Control.of(total, published, rng.uniform(0.0, 4.0), noisy)


def assert_same(single: Answers, sets: Answers, rows):
    assert single.whole == sets.whole
    for name in ("value", "variance", "raw", "smallest", "largest"):
        np.testing.assert_allclose(getattr(single, name), getattr(sets, name), rtol=1e-6, atol=1e-9 * max(rows, 1))
    if single.cumulants is not None and sets.cumulants is not None:
        for one, other in zip(single.cumulants.numbers(), sets.cumulants.numbers(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9 * max(rows, 1))


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(["one channel", "cells", "mixture", "redrawn"]),
    m=st.integers(2, 6),
    exempt=st.booleans(),
    calibrated=st.booleans(),
    groups=st.integers(0, 4),
    classes=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_single_values_are_answered_as_sets_of_one_value(
    new_manifest, kind, m, exempt, calibrated, groups, classes, seed
):
    rng = np.random.default_rng(seed)
    states = states_of(new_manifest, rng, kind, m, exempt)
    assert states.m == m + exempt
    block = block_of(rng, groups, classes, states.count)
    control = control_of(rng, states, block, exempt) if calibrated and states.unbiased else None
    asked = rng.random((classes, states.m)) < 0.7
    chosen = np.flatnonzero(asked.any(axis=0))
    share, n = rng.dirichlet(np.ones(states.m)), int(block.counts.sum()) + 50
    shrinkage = Shrinkage(share, share / n, control is None, n, 0.3, 0.1, 0.2, rng.uniform(0, 1, states.m))
    often = [share[places] / share[places].sum() for places in states.positions]
    ask = SimpleNamespace(states=states, shrinkage=shrinkage, often=often, value_moments=states.value_moments(often))
    values = Linear({None: SingleValues(ask, block, asked, chosen, control)})
    member = np.eye(states.m, dtype=bool)[chosen][:, None, :]
    sets = Linear({None: ValueSets(ask, block, member & asked, control)})
    rows = block.counts.sum() * VALUES.max() ** 2
    for method in ("inverse", "mle", "shrunk"):
        single, other = (Count().estimate(one, method, 1.96, lambda _: (0.0, 0.0)) for one in (values, sets))
        assert single.value.shape == (groups, len(chosen))
        assert_same(single, other, rows)
    for bounds in ((-3.0, 7.0), (1.0, 7.0)):
        total, present = summed("pay", None)
        for aggregate in (Computed(total), Computed(Ratio(total, present, (total,)))):
            estimates = [
                aggregate.estimate(one, "inverse", 1.96, lambda _, ends=bounds: ends) for one in (values, sets)
            ]
            assert_same(*estimates, rows)


@pytest.mark.parametrize("marginal", [True, False])
def test_twenty_thousand_values_are_grouped_by_without_an_array_of_their_square(new_release, marginal):
    """m x m truths would be 400 MB, numbers 3.2 GB; a tally, its weights and the answers are a few MB."""
    rng = np.random.default_rng(3)
    m, n = 20_000, 60_000
    table = pa.table({"sex": rng.choice(["F", "M"], n), "age": rng.integers(18, 90, n)})
    domain = list(range(m))
    cells = [(Channel.uniform(domain, gamma=Fraction(40_000)), domain)]
    release = new_release(rng, table, rng.integers(0, m, n), domain, cells, marginal=marginal)
    release.count({"sex": "F", "disease": 7})  # columns are encoded once
    tracemalloc.start()
    by_value = release.group_by("disease", {"sex": "F"})
    by_both = release.sql("SELECT sex, disease, COUNT(*) AS n, SUM(age), AVG(age) FROM release GROUP BY sex, disease")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 2**20
    assert by_value.num_rows == m
    assert by_both.num_rows == 2 * m
    women = by_both.filter(pc.equal(by_both["sex"], "F"))
    for value in (0, 7, 19_999):
        one = release.count({"sex": "F", "disease": value})
        row = by_value.slice(value, 1).to_pylist()[0]
        assert row["disease"] == value
        assert row["value"] == pytest.approx(one.value)
        assert row["stderr"] == pytest.approx(one.stderr)
        assert women.slice(value, 1).to_pylist()[0]["n"] == pytest.approx(one.value)
