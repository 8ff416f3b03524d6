"""An owner's questions as a profile for planning."""

from __future__ import annotations

import pytest

from deniable.core.errors import OptionError
from deniable.lab.made_up import census
from deniable.owner.risk import one_pool
from deniable.planning.pools import CodedTable


def test_a_pool_that_is_two_pools_is_refused() -> None:
    table = CodedTable.of(census(4_000, seed=3), "occupation")
    with pytest.raises(OptionError, match="2 pools"):
        one_pool(table, "splu")
    with pytest.raises(OptionError, match="Did you mean 'sdr'"):
        one_pool(table, "srd")
