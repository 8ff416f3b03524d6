"""Line-ups from people themselves: `respond` draws what `publish` draws, budgets count, `collect` refuses originals."""

import math

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.mechanisms import Lineup
from deniable.tables.lineups import LineUpKernel, Publisher, states_shown

VALUES = [f"illness {number:02d}" for number in range(40)]
ANY_PRIOR = dn.Privacy(rho1="1/13", rho2="1/6", adversary="any-prior")


def pilot(size: int | None = None, privacy: dn.Privacy = ANY_PRIOR, **given):
    rng = np.random.default_rng(2)
    table = pa.table({"town": rng.choice(["Ulm", "Bonn"], 400), "illness": rng.choice(VALUES, 400)})
    return dn.publish(
        table, sensitive="illness", privacy=privacy, mechanism=Lineup(size=size, **given), domain=VALUES, key=bytes(32)
    )


@pytest.mark.parametrize("size", [5, 20])
def test_an_answer_is_what_publish_makes_of_the_same_word(size):
    asked = pilot(size)
    design = asked.manifest.parts[0].lineups
    known = pa.array(VALUES)
    kernel = LineUpKernel(design)
    words = np.random.default_rng(0).integers(0, 2**64, 300, dtype=np.uint64)
    codes = np.random.default_rng(1).integers(0, 40, 300)
    expected = Publisher(kernel, known).column(kernel.perturb(codes, words).astype(np.int64)).to_pylist()
    found = [
        dn.respond({"town": "Ulm", "illness": VALUES[code]}, asked, draw=lambda word=word: int(word))
        for code, word in zip(codes, words, strict=True)
    ]
    assert [answer["illness"] for answer in found] == expected
    assert all(isinstance(answer["illness"], list if size == 5 else int) for answer in found)


@pytest.mark.parametrize("size", [5, 20])
def test_what_people_answered_is_counted(size):
    """4,000 people, 30 % with one illness: within 5.2 standard errors, and the release verifies."""
    asked = pilot(size)
    rng = np.random.default_rng(4)
    words = iter(rng.integers(0, 2**64, 4000, dtype=np.uint64).tolist())
    own = rng.choice(40, 4000, p=[0.3, *[0.7 / 39] * 39])
    rows = [dn.respond({"town": "Ulm", "illness": VALUES[x]}, asked, draw=lambda: next(words)) for x in own]
    release = dn.collect(rows, asked)
    estimate = release.count({"illness": VALUES[0]})
    assert release.manifest.rows == 4000
    assert estimate.value == pytest.approx((own == 0).sum(), abs=5.2 * estimate.stderr)
    assert estimate.stderr < 300
    assert release.verify().holds


def test_the_answer_costs_ln_gamma_and_is_refused_beyond_the_limit(tmp_path):
    asked, row = pilot(5), {"town": "Ulm", "illness": VALUES[7]}
    gamma = asked.manifest.parts[0].promise.gamma
    with pytest.raises(dn.DeniableError, match=f"epsilon {math.log(gamma):.4g}"):
        dn.respond(row, asked, limit=0.99 * math.log(gamma))
    answers = [dn.respond(row, asked, limit=1.01 * math.log(gamma), memory=tmp_path / "memory") for _ in range(5)]
    assert all(answer == answers[0] for answer in answers)
    with pytest.raises(dn.DeniableError, match="all answers"):
        dn.respond({**row, "illness": VALUES[8]}, asked, limit=1.01 * math.log(gamma), memory=tmp_path / "memory")


def test_line_ups_that_rule_values_out_have_no_epsilon():
    asked = pilot(10, dn.Privacy(rho2="1/3"), truth=1)
    with pytest.raises(dn.DeniableError, match="rules values out"):
        dn.respond({"town": "Ulm", "illness": VALUES[7]}, asked, limit=5)


def test_what_no_answer_can_be_is_refused_and_not_repeated():
    asked = pilot(5)
    with pytest.raises(dn.DeniableError, match="not in the domain") as refusal:
        dn.respond({"town": "Ulm", "illness": "plague"}, asked)
    assert "plague" not in str(refusal.value)
    answer = dn.respond({"town": "Ulm", "illness": VALUES[7]}, asked)
    for wrong in (["plague", *answer["illness"][1:]], VALUES[:5], answer["illness"][:4]):
        with pytest.raises(dn.DeniableError, match="after `respond`"):
            dn.collect([answer, {**answer, "illness": wrong}], asked)
    with pytest.raises(dn.DeniableError, match="missing values"):
        dn.collect([answer, {**answer, "illness": None}], asked)
    large = pilot(20)
    with pytest.raises(dn.DeniableError, match="after `respond`"):
        dn.collect([{"town": "Ulm", "illness": 10**6}], large)


def test_line_ups_by_the_frequencies_of_a_pilot_are_not_collected():
    asked = pilot(10, dn.Privacy(rho2="1/3"))
    answer = dn.respond({"town": "Ulm", "illness": VALUES[7]}, asked)
    with pytest.raises(dn.DeniableError, match="any-prior"):
        dn.collect([answer], asked)


def test_states_come_back_from_codes_and_missing_ones_stay_missing():
    design = pilot(20).manifest.parts[0].lineups
    states = np.array([3, -1, 0, len(design.sets.members) - 1])
    column = Publisher(LineUpKernel(design), pa.array(VALUES)).column(states)
    assert states_shown(pa.chunked_array([column]), design, pa.array(VALUES)).tolist() == states.tolist()
