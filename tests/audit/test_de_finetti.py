"""De Finetti's attack tells members of a group apart where public columns go with the value, and only there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import deniable as dn
from deniable.audit.attacks import AttackResult, Buckets, de_finetti, foreground
from deniable.mechanisms import Anatomy

Codes = npt.NDArray[np.int64]
L, ROWS = 4, 8000


def grouped(strength: float, seed: int = 1) -> tuple[Buckets, list[Codes], Codes, Codes]:
    """Groups of l rows with l different values; two public columns that equal the value with some probability."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.permutation(8)[:L] for _ in range(ROWS // L)])
    groups = np.repeat(np.arange(ROWS // L), L)
    columns = [np.where(rng.random(ROWS) < strength, values, rng.integers(8, size=ROWS)) for _ in range(2)]
    shares = np.zeros((ROWS // L, 8))
    shares[groups, values] = 1 / L
    return Buckets(groups, shares, columns), columns, groups, values


def test_correlated_columns_break_the_promise_of_one_in_l() -> None:
    released = grouped(0.5)
    learnt, once = (attack(*released) for attack in (de_finetti, foreground))
    assert once.low > 1.5 / L, "one step is already well above what the group promises"
    assert learnt.success >= once.success - 0.02
    # An attacker who knew Pr[column | value] exactly: the group's values by how many of the columns equal each.
    buckets, columns, groups, values = released
    fits = sum((np.arange(8) == column[:, None]) * np.log(0.5625 / 0.0625) for column in columns)
    best = (np.where(buckets.shares[groups] > 0, fits, -np.inf)).argmax(1)
    assert learnt.success > (best == values).mean() - 0.05


def test_columns_that_tell_nothing_leave_one_in_l() -> None:
    for attack in (de_finetti, foreground):
        result = attack(*grouped(0.0, seed=2))
        sure = 5.5 * np.sqrt((1 / L) * (1 - 1 / L) / ROWS)
        assert abs(result.success - 1 / L) <= sure


def test_nobody_to_attack_is_no_result() -> None:
    buckets, columns, _, _ = grouped(0.5)
    nobody = np.zeros(0, np.int64)
    result = de_finetti(buckets, [column[:0] for column in columns], nobody, nobody)
    assert result.trials == 0


@pytest.mark.parametrize("attack", ["foreground", "de Finetti"])
def test_the_audit_of_anatomy_plays_it(attack: str) -> None:
    rng = np.random.default_rng(7)
    disease = rng.integers(6, size=1200)
    ward = np.where(rng.random(1200) < 0.7, disease, rng.integers(6, size=1200))
    table = pa.table({"id": np.arange(1200), "ward": ward, "disease": disease})
    release = dn.publish(table, sensitive="disease", mechanism=Anatomy(3))
    played: dict[str, AttackResult] = {result.name: result for result in dn.audit(table, release, attacks=True).attacks}
    assert played[attack].low > 1 / 3
