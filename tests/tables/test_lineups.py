"""The sampler of line-ups: its probabilities are the certificate's, exactly; lists, CSV and counting."""

import json

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.designs import TURN, ArcDesign, BlockDesign
from deniable.core.errors import ManifestError
from deniable.core.exact import SCALE
from deniable.core.lineups import COIN, POINTS, TRUTH_STEP
from deniable.mechanisms import Lineup
from deniable.tables.keys import Keystream, Secret
from deniable.tables.lineups import LineUpKernel, states_of

DESIGN = ArcDesign(np.array([3000, 2000, 1500, 1000, 692]) * (SCALE // 4096), 5 * COIN // 8 * TRUTH_STEP, 8, 2)


def words(order, coin, r):
    """64-bit words from their three parts; orders of 8 take the highest three bits."""
    return (order << 61) | (coin << 40) | r


def test_every_first_and_last_draw_of_an_interval_gives_its_set_and_no_other():
    """So the number of draws that lead to a set is exactly the one that the certificate counts."""
    kernel, sets = LineUpKernel(DESIGN), DESIGN.sets
    for x in range(DESIGN.m):
        arc = int(DESIGN.arcs[x]) // (SCALE // TURN)
        counted = np.zeros(len(sets.lengths), dtype=np.int64)
        for order in range(DESIGN.orders):
            start = int(DESIGN.starts[order, x])
            own = [int(edge) % TURN for edge in DESIGN.edges if edge // TURN == order]
            offsets = sorted({0, *((point - start) % TURN for point in own if (point - start) % TURN < arc)})
            firsts = [-(-offset * POINTS // arc) for offset in offsets]
            ends = [*firsts[1:], POINTS]
            draws = np.array(
                [words(order, 0, r) for pair in zip(firsts, ends, strict=True) for r in (pair[0], pair[1] - 1)]
            )
            drawn = kernel.perturb(np.full(len(draws), x), draws.astype(np.uint64)).reshape(-1, 2)
            assert (drawn[:, 0] == drawn[:, 1]).all()
            np.add.at(counted, drawn[:, 0], np.array(ends) - np.array(firsts))
        expected = np.where(sets.members == x, sets.hits, 0).sum(axis=1)
        assert np.array_equal(counted, expected)


def test_without_looking_every_point_has_the_same_number_of_draws_whatever_the_value():
    kernel, sets = LineUpKernel(DESIGN), DESIGN.sets
    order, point = (DESIGN.edges // TURN).astype(object), (DESIGN.edges % TURN).astype(object)
    for shift in (0, 2**16 - 1):  # the first and the last r of a point
        draws = np.array(
            [words(k, DESIGN.coin, p * 2**16 + shift) for k, p in zip(order, point, strict=True)], np.uint64
        )
        for x in range(DESIGN.m):
            assert np.array_equal(kernel.perturb(np.full(len(draws), x), draws), sets.of_interval)


def test_the_coin_decides_by_the_truth_exactly():
    kernel = LineUpKernel(DESIGN)
    rs = np.arange(0, POINTS, POINTS // 997, dtype=np.uint64)
    for x in range(DESIGN.m):
        around = kernel.perturb(np.full(len(rs), x), rs | np.uint64((DESIGN.coin - 1) << 40))
        assert np.any(DESIGN.sets.members[around] == x, axis=1).all()
    blind = kernel.perturb(np.zeros(len(rs), np.int64), rs | np.uint64(DESIGN.coin << 40))
    assert not np.any(DESIGN.sets.members[blind] == 0, axis=1).all()


@pytest.mark.parametrize("broken", [None, 0.95, 1.05])
def test_the_sampler_draws_sets_with_their_probabilities_and_the_test_has_power(broken):
    """Inclusion counts of 400,000 rows within 5.2 standard errors; a truth that is 5 % off is noticed."""
    n, x = 400_000, 3
    coin = DESIGN.coin if broken is None else int(DESIGN.coin * broken)
    used = ArcDesign(DESIGN.arcs, coin * TRUTH_STEP, DESIGN.orders, DESIGN.seed)
    draws = Keystream(Secret.from_key(bytes(range(32))), "test").words(0, n)
    states = LineUpKernel(used).perturb(np.full(n, x, np.uint8), draws)
    seen = np.bincount(DESIGN.sets.members[states].ravel(), minlength=DESIGN.m) / n
    t, pi = DESIGN.share_true, DESIGN.inclusion
    expected = t * DESIGN.joint()[:, x] / pi[x] + (1 - t) * pi
    off = np.abs(seen - expected) / np.sqrt(np.maximum(expected * (1 - expected), 1e-12) / n)
    assert (off.max() < 5.2) == (broken is None)


@pytest.mark.parametrize(("m", "size", "truth"), [(50, 6, 0.5), (3000, 4, 0.5), (7, 3, 1.0), (300, 120, 0.25)])
def test_a_row_gets_the_set_that_the_three_parts_of_its_word_say(m, size, truth):
    """The same by the definition: order, coin and point, and a search for the interval; in whole numbers of Python."""
    design = ArcDesign.of(np.random.default_rng(m).random(m) ** 4 + 1e-6, size, truth)
    edges, arcs = design.edges, design.arcs // (SCALE // TURN)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, m, 3_000)
    words = rng.integers(0, 2**64, 3_000, dtype=np.uint64)
    expected = []
    for x, word in zip(codes.tolist(), words.tolist(), strict=True):
        order, coin, r = word >> 58 >> (6 - (design.orders.bit_length() - 1)), word >> 40 & COIN - 1, word & POINTS - 1
        around = coin < design.coin
        point = (int(design.starts[order, x]) + r * int(arcs[x]) // POINTS) % TURN if around else r >> 16
        expected.append(design.sets.of_interval[np.searchsorted(edges, order * TURN + point, "right") - 1])
    kernel = LineUpKernel(design)
    assert np.array_equal(kernel.perturb(codes, words), expected)
    stream = Keystream(Secret.from_key(bytes(32)), "rows")
    small = codes.astype(np.uint16)
    assert np.array_equal(kernel.perturb_rows(small, stream, 7), kernel.perturb(codes, stream.words(7, len(codes))))


@pytest.mark.parametrize("m", [50, 3000])
def test_points_beside_an_edge_fall_on_the_right_side_of_it(m):
    design = ArcDesign.of(np.random.default_rng(m).random(m) ** 4 + 1e-6, 4, 0.5)
    edges = design.edges
    beside = np.concatenate([edges, np.maximum(edges - 1, 0), np.minimum(edges + 1, design.orders * TURN - 1)])
    unused = 6 - (design.orders.bit_length() - 1)
    words = (beside // TURN << 58 + unused | (COIN - 1) << 40 | beside % TURN << 16).view(np.uint64)
    expected = design.sets.of_interval[np.searchsorted(edges, beside, "right") - 1]
    assert np.array_equal(LineUpKernel(design).perturb(np.zeros(len(beside), np.uint16), words), expected)


VALUES = ["a", "b", "c", "d", "e", "f", "g", "h", None]


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    places = rng.choice(9, n, p=np.array([20, 18, 15, 12, 10, 9, 8, 5, 3]) / 100)
    return pa.table({"sex": rng.choice(["F", "M"], n), "disease": [VALUES[place] for place in places]})


@pytest.mark.parametrize("missing", ["value", "exempt"])
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_published_lists_are_sets_in_the_order_of_the_domain_and_come_back(tmp_path, missing, form):
    release = dn.publish(
        table(), sensitive="disease", privacy=dn.Privacy(rho2="1/3"), mechanism=Lineup(size=3), missing=missing,
        key=bytes(32), out=tmp_path / "r", format=form,
    )  # fmt: skip
    part = release.manifest.parts[0]
    place = {value: number for number, value in enumerate(part.domain)}
    rows = release.table["disease"].to_pylist()
    assert sum(row is None for row in rows) == (table()["disease"].null_count if missing == "exempt" else 0)
    for row in rows:
        if row is not None:
            places = [place[value] for value in row]
            assert len(places) == 3
            assert places == sorted(set(places))
    assert dn.verify(tmp_path / "r").holds
    again = dn.open_release(tmp_path / "r")
    assert again.table.equals(release.table)
    if form == "csv":
        line = (tmp_path / "r" / "data.csv").read_text().splitlines()[1]
        assert json.loads(line.split(",", 1)[1].strip('"').replace('""', '"')) == rows[0]
    memory = dn.publish(
        table(), sensitive="disease", privacy=dn.Privacy(rho2="1/3"), mechanism=Lineup(size=3), missing=missing,
        key=bytes(32),
    )  # fmt: skip
    assert memory.table.equals(release.table)


def test_a_list_that_is_no_set_of_the_design_is_refused():
    known = pa.array(list("abcde"))
    kind = LineUpKernel(DESIGN).lists(np.zeros(1, np.int64), known).type
    good = [known[int(x)].as_py() for x in DESIGN.sets.members[3]]
    assert states_of(pa.chunked_array([pa.array([good[::-1]], kind)]), DESIGN, known).tolist() == [3]
    for wrong in ([good[0]], [*good[:-1], good[0]], [*good[:-1], "z"]):
        with pytest.raises(ManifestError):
            states_of(pa.chunked_array([pa.array([wrong], kind)]), DESIGN, known)


@pytest.mark.parametrize(("m", "size", "orders"), [(2, 1, 64), (7, 3, 1), (50, 14, 64), (300, 90, 16), (5000, 12, 2)])
def test_by_blocks_a_row_gets_the_set_that_the_three_parts_of_its_word_say(m, size, orders):
    """The same for shifted blocks, by their definition, in whole numbers of Python."""
    design = BlockDesign(m, size, 3 * COIN // 8 * TRUTH_STEP, orders, 4)
    rng = np.random.default_rng(m)
    codes, words = rng.integers(0, m, 3_000), rng.integers(0, 2**64, 3_000, dtype=np.uint64)
    words[:4] = [0, 2**64 - 1, POINTS - 1, (COIN << 40) - 1]
    states = LineUpKernel(design).perturb(codes, words)
    for x, word, state in zip(codes.tolist(), words.tolist(), states.tolist(), strict=True):
        order, coin, r = word >> 58 >> (6 - (orders.bit_length() - 1)), word >> 40 & COIN - 1, word & POINTS - 1
        block = sorted(design.order(order)[:size].tolist())
        shift = x - block[r * size >> 40] if coin < design.coin else r * m >> 40
        assert design.sets.members[state].tolist() == sorted((shift + place) % m for place in block)


@pytest.mark.parametrize("broken", [None, 0.95, 1.05])
def test_by_blocks_sets_are_drawn_with_their_probabilities_and_the_test_has_power(broken):
    """Inclusion counts of 400,000 rows within 5.2 standard errors; a truth that is 5 % off is noticed."""
    n, x, design = 400_000, 3, BlockDesign(9, 3, 5 * COIN // 8 * TRUTH_STEP, 8, 2)
    used = design if broken is None else design.with_coin(int(design.coin * broken))
    draws = Keystream(Secret.from_key(bytes(range(32))), "test").words(0, n)
    states = LineUpKernel(used).perturb(np.full(n, x, np.uint8), draws)
    seen = np.bincount(design.sets.members[states].ravel(), minlength=design.m) / n
    t, pi = design.share_true, design.inclusion
    expected = t * design.joint()[:, x] / pi[x] + (1 - t) * pi
    off = np.abs(seen - expected) / np.sqrt(expected * (1 - expected) / n)
    assert (off.max() < 5.2) == (broken is None)
