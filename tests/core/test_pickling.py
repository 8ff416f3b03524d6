"""Requirements and plans travel between processes."""

from __future__ import annotations

import pickle

import pytest

import deniable as dn

ROWS = {value: 40 + 7 * number for number, value in enumerate("abcdefghij")}


def test_a_requirement_comes_back_the_same() -> None:
    for privacy in (dn.Privacy("1/13", "1/6", exempt=["a"]), dn.Privacy(per_value={"a": ("1/9", "1/5")})):
        assert pickle.loads(pickle.dumps(privacy)) == privacy


@pytest.mark.parametrize("mechanism", ["uniform", "small-domain", "fine-grain", "designed", "lineup", "redraw"])
def test_a_plan_comes_back_with_the_same_channels(mechanism: str) -> None:
    plan = dn.plan(ROWS, dn.Privacy(rho2="1/3"), mechanism=mechanism)
    again = pickle.loads(pickle.dumps(plan))
    assert again.guarantee == plan.guarantee
    for cell, other in zip(plan.cells, again.cells, strict=True):
        assert cell.rows == other.rows
        assert cell.channel.keep.tolist() == other.channel.keep.tolist()
        assert cell.channel.replace.tolist() == other.channel.replace.tolist()
