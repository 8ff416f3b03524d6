"""A key used twice: whoever has both releases learns nothing by comparing them row by row (mathematics 13.1).

The attack: where two releases shared a row's draw, published values that differ were both kept, and are both certain.
It is played on every pair of rows that could share one: by row number, and by record id.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import OptionError

N = 20_000
KEY = bytes(range(32))
RHO2 = 1 / 3


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(5)
    job = rng.choice(list("abcdefgh"), N, p=np.arange(8, 0, -1) / 36)
    return pa.table({"id": np.arange(N), "age": rng.integers(18, 90, N), "job": job})


def published(table: pa.Table, mechanism: str = "uniform", **options: Any) -> pa.Table:
    privacy = options.pop("privacy", dn.Privacy(rho1="1/4", rho2="1/3"))
    release = dn.publish(
        table, sensitive="job", privacy=privacy, mechanism=mechanism, key=KEY, shuffle=False, **options
    )
    return release.table


def certain(one: pa.Table, one_truth: np.ndarray, other: pa.Table, other_truth: np.ndarray) -> tuple[int, float]:
    """How many rows of two releases, paired by their place, differ, and how often both then tell the truth."""
    shown = [
        release["job"].to_numpy(zero_copy_only=False)[: min(len(one_truth), len(other_truth))]
        for release in (one, other)
    ]
    differ = shown[0] != shown[1]
    both = (shown[0] == one_truth[: len(differ)]) & (shown[1] == other_truth[: len(differ)])
    return int(differ.sum()), float(both[differ].mean())


def truth(table: pa.Table) -> np.ndarray:
    return table["job"].to_numpy(zero_copy_only=False)


@pytest.mark.parametrize("mechanism", ["uniform", "designed", "small-domain"])
@pytest.mark.parametrize("change", ["sorted", "a row deleted", "another rho2", "a column dropped", "a value changed"])
def test_a_changed_table_or_plan_shares_no_draw(table: pa.Table, mechanism: str, change: str) -> None:
    other, options = table, {}
    if change == "sorted":
        other = table.sort_by("age")
    elif change == "a row deleted":
        other = table.slice(1)
    elif change == "a value changed":
        other = table.set_column(2, "job", pa.array(["h", *truth(table)[1:]]))
    elif change == "another rho2":
        options = {"privacy": dn.Privacy(rho1="1/4", rho2="2/5")}
    else:
        options = {"drop": ["age"]}
    rows = (published(table, mechanism), truth(table), published(other, mechanism, **options), truth(other))
    differing, right = certain(*rows)
    # Kept by both coins independently: at most rho2^2, and far from certain; 6 standard errors.
    assert right < 0.2 + 6 * np.sqrt(0.25 / differing), (differing, right)


def test_the_attack_works_where_draws_are_shared(table: pa.Table) -> None:
    """Power: the same words for two orders of a table give every differing row away."""
    from deniable.tables.keys import Keystream, Secret
    from deniable.tables.sampler import Kernel

    plan = dn.plan(
        dict(zip(*np.unique(truth(table), return_counts=True), strict=True)),
        dn.Privacy("1/4", "1/3"),
        mechanism="uniform",
    )
    domain = np.array(plan.cells[0].channel.values)
    words = Keystream(Secret.from_key(KEY), "shared").words(0, N)
    kernel = Kernel([plan.cells[0].channel], [np.arange(len(domain))])
    made = []
    for ordered in (table, table.sort_by("age")):
        codes = np.searchsorted(domain, truth(ordered)).astype(np.uint8)
        made += [pa.table({"job": domain[kernel.perturb(codes, words)]}), truth(ordered)]
    differing, right = certain(*made)
    assert differing > 500
    assert right == 1.0


def test_the_same_table_and_choices_give_the_same_release(table: pa.Table) -> None:
    assert published(table).equals(published(table))
    chunked = pa.concat_tables([table.slice(0, 777), table.slice(777)])
    assert published(table).equals(published(chunked))


def test_a_row_id_decides_the_draw_whatever_the_order(table: pa.Table) -> None:
    def by_id(rows: pa.Table) -> dict[int, str]:
        with_id = rows.append_column("key", rows["id"])
        made = published(with_id, row_id="key")
        return dict(zip(made["id"].to_pylist(), made["job"].to_pylist(), strict=True))

    assert by_id(table) == by_id(table.sort_by("age"))


@pytest.mark.parametrize("mechanism", ["small-domain", "decoys:c=4"])
def test_a_row_id_is_refused_where_rows_are_dealt_by_their_order(table: pa.Table, mechanism: str) -> None:
    privacy = None if mechanism.startswith("decoys") else dn.Privacy(rho1="1/4", rho2="1/3")
    with pytest.raises(OptionError, match="row_id"):
        dn.publish(table, sensitive="job", privacy=privacy, mechanism=mechanism, key=KEY, row_id="id")
