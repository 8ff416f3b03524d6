"""What planning from noisy counts costs is measured against plans that really are made from the exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.core.histogram import SELECTIVITIES
from deniable.core.privacy import Privacy
from deniable.lab.experiments import run_experiment
from deniable.lab.made_up import census
from deniable.lab.settings import Perturbed
from deniable.mechanisms import Designed, Uniform
from deniable.planning.pools import CodedTable, sdr_pool
from deniable.tables.keys import Keystream, Secret
from reproduction.promises import FromExactCounts, compared

PRIVACY = Privacy("1/13", "1/6")


def test_plans_are_made_from_the_exact_histogram_and_answers_have_their_errors() -> None:
    pool = sdr_pool(CodedTable.of(census(20_000, seed=3), "occupation"), conditions=40)
    exact = FromExactCounts("exact", Uniform(), PRIVACY, ("calibrated",))
    result = run_experiment(pool, [exact, Perturbed("noisy", Uniform(), PRIVACY, ("calibrated",))], draws=6)
    before, now = (np.array(result.row(name, "calibrated").errors(SELECTIVITIES)) for name in ("exact", "noisy"))
    assert now == pytest.approx(before, rel=0.3)  # uniform coins are a matter of rho1 and rho2 alone
    counts = pool.table.histogram
    designed = FromExactCounts("designed", Designed(), PRIVACY, ("calibrated",)).plan_for(pool)
    assert np.array_equal(designed.cells[0].channel.keep, Designed().plan(counts, PRIVACY).cells[0].channel.keep)
    one = exact.run(pool, Keystream(Secret.from_key(bytes(32)), "draw"))
    assert one.answers["calibrated"].shape == (len(pool.condition_rows), len(pool.sets))


def test_the_comparison_has_every_mechanism_with_a_plan_of_its_own() -> None:
    assert [label for label, _ in compared()] == ["uniform", "small-domain", "fine-grain", "designed", "line-up"]
