"""Against any prior no histogram is published: whoever shrinks towards independence must estimate it from the rows."""

from __future__ import annotations

import numpy as np

import deniable as dn
from deniable.core.values import Floats
from deniable.lab.draws import draw_release
from deniable.lab.made_up import census
from deniable.lab.rival import estimated
from deniable.mechanisms import Lineup
from deniable.planning.pools import CodedTable, sdr_pool
from deniable.planning.prediction import independence
from deniable.tables.keys import Keystream, Secret


def test_shrunk_answers_beat_independence_that_knows_no_more_than_the_release() -> None:
    """Independence with the true histogram knows what nobody is told; with the release's own it is what to beat."""
    table = CodedTable.of(census(20_000, seed=3), "occupation")
    pool = sdr_pool(table, conditions=60)
    privacy = dn.Privacy("1/10", "1/5", adversary="any-prior")
    draw = draw_release(table, Lineup(), privacy, Keystream(Secret.from_key(bytes(32)), "draw"))
    tally = pool.tally(draw.states, draw.asking.states.count)
    own = estimated(draw.asking, draw.asking.total[None, :], np.eye(table.m, dtype=bool), "inverse")[0]
    truth, large = pool.truth, pool.truth >= 0.005 * table.rows

    def off(answers: Floats) -> float:
        return float((np.abs(pool.pick(answers) - truth)[large] / truth[large]).mean())

    assert off(estimated(draw.asking, tally, pool.sets, "shrunk")) < off(
        independence(pool.condition_rows, own, pool.sets)
    )
    assert off(independence(pool.condition_rows, table.histogram.counts, pool.sets)) < off(
        independence(pool.condition_rows, own, pool.sets)
    )
