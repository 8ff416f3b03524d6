"""Estimating from line-ups: weights, squares, likelihood and intervals, against brute force and real releases."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.designs import ArcDesign, BlockDesign
from deniable.core.errors import QuestionError
from deniable.estimation.model import lineup_algebra
from deniable.estimation.model.lineup_algebra import ByBlocks, BySets
from deniable.estimation.model.lineups import LineUpStates
from deniable.mechanisms import Lineup

WEIGHTS = np.array([9.0, 7, 6, 5, 4, 3, 2, 1])
DESIGN = ArcDesign.of(WEIGHTS, 3, 0.5, largest=0.75)


def chances(design):
    """P(S | x), [sets, m]."""
    inside = (design.sets.members[:, :, None] == np.arange(design.m)).any(axis=1)
    d, t = design.distribution[:, None], design.share_true
    return t * d * inside / design.inclusion + (1 - t) * d


BLOCKS = BlockDesign(values=10, block=4, truth=2**31, orders=8, seed=3)


@pytest.mark.parametrize(
    "design", [DESIGN, BLOCKS, ArcDesign.of(np.ones(6), 2, 1.0), ArcDesign.of(np.ones(9), 1, 0.25)]
)
def test_weights_are_unbiased_for_every_value_and_set(design):
    states = LineUpStates(design)
    sets = np.array([[bool(number >> x & 1) for x in range(design.m)] for number in range(2**design.m)])
    expected = states.weights(sets) @ chances(design)
    assert np.abs(expected - sets).max() < 1e-9
    assert (states.weights(sets[:1]) == 0).all()
    assert (states.weights(sets[-1:]) == 1).all()


def test_weights_are_those_of_the_matrix_b():
    pi, t = DESIGN.inclusion, DESIGN.share_true
    b = t * DESIGN.joint() / pi + (1 - t) * pi[:, None]
    asked = np.array([1, 0, 0, 1, 0, 0, 0, 1], bool)
    scores = np.linalg.solve(b.T, asked.astype(float))
    by_hand = scores[DESIGN.sets.members].sum(axis=1)
    assert np.allclose(LineUpStates(DESIGN).weights(asked), by_hand, atol=1e-9)


def test_counts_and_squares_by_value_are_those_of_the_weights():
    states = LineUpStates(DESIGN)
    counts = np.random.default_rng(0).integers(0, 50, (3, states.count)).astype(float)
    single = states.weights(np.eye(DESIGN.m, dtype=bool))
    assert np.allclose(states.invert(counts), counts @ single.T)
    assert np.allclose(states.squares(counts), counts @ (single**2).T)


def test_squares_are_the_same_kept_by_pairs_and_some_sets_at_a_time(monkeypatch):
    design = ArcDesign.of(np.linspace(1, 9, 40), 4, 0.3)
    states = LineUpStates(design)
    counts = np.random.default_rng(3).integers(0, 50, (lineup_algebra.FORMS + 1, states.count)).astype(float)
    kept = states.squares(counts)
    monkeypatch.setattr(lineup_algebra, "BLOCK", 40 * 7)  # seven sets at a time
    assert np.allclose(LineUpStates(design).squares(counts), kept, rtol=1e-12)
    assert np.allclose(LineUpStates(design).squares(counts[:2]), kept[:2], rtol=1e-10)


def test_the_inverse_of_few_values_gives_what_solving_gives(monkeypatch):
    design = ArcDesign.of(np.linspace(1, 5, 60), 5, 0.5)
    asked = np.random.default_rng(1).random((4, 60)) < 0.2
    by_inverse = LineUpStates(design).weights(asked)
    monkeypatch.setattr(lineup_algebra, "FEW", 10)
    assert np.allclose(LineUpStates(design).weights(asked), by_inverse, atol=1e-9)


def test_gradients_that_do_not_arrive_are_refused(monkeypatch):
    monkeypatch.setattr(lineup_algebra, "DENSE", 10)
    monkeypatch.setattr(lineup_algebra, "STEPS", 3)
    with pytest.raises(QuestionError, match="hardly be told apart"):
        LineUpStates(ArcDesign.of(np.linspace(1, 5, 60), 5, 0.5)).weights(np.arange(60) < 7)


def test_without_a_matrix_the_same_comes_out(monkeypatch):
    design = ArcDesign.of(np.linspace(1, 5, 60), 5, 0.5)
    asked = np.random.default_rng(1).random((4, 60)) < 0.2
    dense = LineUpStates(design).weights(asked)
    counts = np.random.default_rng(2).integers(0, 9, (2, dense.shape[1])).astype(float)
    inverted = LineUpStates(design).invert(counts)
    monkeypatch.setattr(lineup_algebra, "DENSE", 10)
    sparse = LineUpStates(design)
    assert np.allclose(sparse.weights(asked), dense, atol=1e-8)
    assert np.allclose(sparse.invert(counts), inverted, atol=1e-6)
    with pytest.raises(QuestionError, match="Fix:"):
        sparse.squares(counts)


@pytest.mark.parametrize(
    "design",
    [
        BLOCKS,
        BlockDesign(values=3, block=1, truth=2**32, orders=1),
        BlockDesign(values=6, block=2, truth=2**30, orders=64),  # fewer sets than blocks times shifts
        BlockDesign(values=41, block=13, truth=2**31, orders=4, seed=9),
    ],
)
def test_by_blocks_fourier_transforms_give_what_the_sets_give(design):
    """Every operation beside the same one on a matrix of zeros and ones, which knows nothing of circles."""
    waves, sets = ByBlocks(design), BySets(design)
    rng = np.random.default_rng(5)
    scores, counts = rng.normal(size=(3, design.m)), rng.integers(0, 9, (3, len(design.sets.lengths))).astype(float)
    assert waves.invertible
    assert sets.invertible
    assert np.allclose(waves.added(scores), sets.added(scores), atol=1e-10)
    assert np.allclose(waves.holding(counts), sets.holding(counts), atol=1e-9)
    assert np.allclose(waves.solved(scores), sets.solved(scores), atol=1e-6)
    states = LineUpStates(design)
    one, other = (algebra.squares(counts, states.scores) for algebra in (waves, sets))
    assert np.allclose(one, other, rtol=1e-6)


def test_blocks_that_cannot_be_told_apart_are_no_more_invertible_by_waves_than_by_sets():
    alike = BlockDesign(values=4, block=2, truth=2**31, orders=1)
    assert not ByBlocks(alike).invertible
    assert not BySets(alike).invertible


def test_exempt_missing_values_are_counted_as_they_are():
    states = LineUpStates(DESIGN, exempt=True)
    counts = np.append(np.ones(states.count - 1), 17.0)
    assert states.invert(counts)[-1] == 17
    assert states.squares(counts)[-1] == 17
    asked = np.zeros((1, 9), bool)
    asked[0, -1] = True
    assert states.weights(asked)[0].tolist() == [0.0] * (states.count - 1) + [1.0]
    assert states.likely(counts[None, :])[0, -1] == 17


def test_the_likeliest_counts_are_a_fixed_point_and_never_negative():
    states, p = LineUpStates(DESIGN), chances(DESIGN)
    truth = np.array([100.0, 0, 50, 0, 25, 10, 0, 0])
    exact = states.likely((p @ truth)[None, :])[0]
    assert np.allclose(exact, truth, atol=0.5)
    noisy = np.random.default_rng(3).multinomial(185, p @ truth / truth.sum()).astype(float)
    fitted = states.likely(noisy[None, :])[0]
    assert fitted.min() >= 0
    assert fitted.sum() == pytest.approx(185)
    gradient = p.T @ (noisy / (p @ fitted))
    assert (gradient <= 1 + 1e-3).all()
    assert np.allclose(gradient[fitted > 1], 1, atol=1e-3)


def test_a_design_in_which_a_value_is_always_there_cannot_be_estimated_from():
    always = ArcDesign.of([100.0, 1, 1, 1, 1], 2, 0.5)
    assert always.inclusion[0] == 1
    assert not LineUpStates(always).unbiased


def table(n, seed):
    rng = np.random.default_rng(seed)
    disease = rng.choice(list("abcdefghijkl"), n, p=np.arange(16, 4, -1) / np.arange(16, 4, -1).sum())
    sex = np.where(rng.random(n) < np.where(disease < "e", 0.7, 0.4), "F", "M")
    return pa.table({"sex": sex, "age": rng.integers(18, 90, n), "disease": disease})


@pytest.mark.parametrize(
    "options", [{"calibrate": False}, {"calibrate": True}, {"method": "shrunk"}, {"method": "mle"}]
)
def test_intervals_cover_and_every_method_answers(options):
    rows = table(4000, 0)
    sex, disease = (rows[name].to_numpy(zero_copy_only=False) for name in ("sex", "disease"))
    asked = [(s, d) for s in "FM" for d in "abcdefghijkl"]
    truth = np.array([((sex == s) & (disease == d)).sum() for s, d in asked])
    covered, draws = [], 20
    for draw in range(draws):
        release = dn.publish(
            rows, sensitive="disease", privacy=dn.Privacy(rho2="1/5"), mechanism=Lineup(), key=bytes([draw] * 32)
        )
        answers = release.count_many([{"sex": s, "disease": d} for s, d in asked], **options)
        covered.append((answers.low <= truth) & (truth <= answers.high))
        assert np.abs(answers.value - truth).max() < 400
    if options.get("method") != "mle":
        # 480 intervals of 95 %, those of one draw dependent: at least 90 % and, where nothing is shrunk, at most 99 %.
        assert 0.90 <= np.mean(covered) <= (1.0 if "method" in options else 0.99)
    total = release.sql("SELECT disease, COUNT(*) AS n, AVG(age) AS a FROM release GROUP BY disease")
    assert total.num_rows == 12
    assert abs(sum(total["n"].to_pylist()) - 4000) < 200
    assert all(18 < value < 90 for value in total["a"].to_pylist())
