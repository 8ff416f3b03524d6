"""Which values a learned release may hold: declared, listed by noise, bins, missing and exempt ones."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deniable as dn
from deniable.core.errors import OptionError, RequirementError, TableError
from deniable.learned import ledger as ledgers
from deniable.mechanisms import Synthetic
from deniable.tables.keys import Keystream, Secret

KEY = bytes(range(32))
ROWS = 8_000
EDGES = [0, 10_000, 20_000, 30_000, 60_000, 1_000_000, 2_000_000]  # nobody earns more than a million


def people() -> pa.Table:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, ROWS)
    ill = np.where(rng.random(ROWS) < 0.2 + 0.3 * (age > 50), "flu", rng.choice(["cold", "ok"], ROWS))
    drug = np.where(rng.random(ROWS) < 0.7, np.char.add("for ", ill.astype(str)), "none")
    drug[:3] = "rare"
    income = np.round(np.exp(rng.normal(10 + 0.004 * age, 0.4))).astype(np.int64)
    return pa.table({"sex": rng.choice(["F", "M"], ROWS), "age": age, "ill": ill, "drug": drug, "income": income})


TABLE = people()


def published(table: pa.Table = TABLE, sensitive: Any = "ill", **options: Any) -> dn.Release:
    kept = table.select(["sex", "age", *([sensitive] if isinstance(sensitive, str) else sensitive)])
    options = {"mechanism": "synthetic", "privacy": dn.Privacy(epsilon=2), "key": KEY, **options}
    return dn.publish(kept, sensitive=sensitive, **options)


def spent(release: dn.Release) -> list[str]:
    learned = release.manifest.parts[0].learned
    assert learned is not None
    assert learned.epsilon <= 2
    return [line.what for line in learned.spent]


def holes(column: str, share: float = 0.1) -> pa.Table:
    values = TABLE[column].combine_chunks()
    gone = pa.array(np.random.default_rng(3).random(ROWS) < share)
    place = TABLE.column_names.index(column)
    return TABLE.set_column(place, column, pc.if_else(gone, pa.scalar(None, values.type), values))


def test_bins_with_declared_edges_are_a_declared_list() -> None:
    """No budget goes into a list, and a bin in which nobody is stays among the values: that it is empty is not told."""
    release = published(sensitive="income", bins={"income": EDGES}, missing="refuse")
    part = release.manifest.parts[0]
    assert part.domain == dn.Bins(tuple(map(float, EDGES))).labels
    assert set(spent(release)) == {"table"}
    assert release.manifest.parts[0].promise.listed == "declared"
    off = abs(release.count({"income": "[20000, 30000)"}).value - np.sum((TABLE["income"].to_numpy() // 10_000) == 2))
    assert off < 0.1 * ROWS
    assert release.verify().holds


def test_a_missing_value_is_one_more_bin_unless_there_is_none() -> None:
    table = holes("income")
    assert published(table, "income", bins={"income": EDGES}).manifest.parts[0].domain[-1] is None
    exempt = published(table, "income", bins={"income": EDGES}, missing="exempt")
    assert None not in exempt.manifest.parts[0].domain
    assert exempt.table["income"].null_count == table["income"].null_count
    with pytest.raises(TableError, match="missing"):
        published(table, "income", bins={"income": EDGES}, missing="refuse")


def test_who_has_no_value_is_told_and_the_release_says_so() -> None:
    told = "such rows are published without one"
    exempt, as_value = (published(holes("ill"), missing=missing) for missing in ("exempt", "value"))
    assert any(told in line for line in exempt.manifest.guarantee["not_protected"])
    assert not any(told in line for line in as_value.manifest.guarantee["not_protected"])
    gone = pc.is_null(holes("ill")["ill"]).combine_chunks()
    in_order = published(holes("ill"), missing="exempt", shuffle=False).table
    assert pc.is_null(in_order["ill"]).combine_chunks() == gone
    lost = as_value.count({"ill": None})
    assert abs(lost.value - pc.sum(gone).as_py()) < 0.2 * pc.sum(gone).as_py()


def test_rows_without_a_value_may_be_alone_with_their_public_columns() -> None:
    """No value is dealt to them, and what no other row shares is not counted."""
    towns = (np.arange(1_000) // 20).astype(str)
    table = TABLE.slice(0, 1_000).select(["sex", "ill"]).append_column("age", pa.array(towns))
    gone = pa.array(np.arange(1_000) // 20 == 30)  # all rows of one level
    lonely = table.set_column(1, "ill", pc.if_else(gone, pa.scalar(None, pa.string()), table["ill"].combine_chunks()))
    release = published(lonely, missing="exempt", privacy=dn.Privacy(epsilon=8))
    assert release.table["ill"].null_count == 20
    assert release.count({"age": "30", "ill": "flu"}).value == 0
    assert release.verify().holds


def test_private_edges_are_near_the_quantiles_and_paid_for() -> None:
    release = published(sensitive="income", bins={"income": dn.Quantiles(5)}, missing="refuse")
    learned, part = release.manifest.parts[0].learned, release.manifest.parts[0]
    assert learned is not None
    (line,) = [line for line in learned.spent if line.what == "edges"]
    assert float(line.epsilon) == pytest.approx(0.2)
    assert learned.epsilon <= 2
    assert len(part.domain) == 5
    shares = np.diff([0, *(np.mean(TABLE["income"].to_numpy() < edge) for edge in part.bins["income"].edges[1:-1]), 1])
    assert np.abs(shares - 0.2).max() < 0.12  # a rank is off by some 2 / .05 x ln(1,000 round numbers) rows
    assert release.verify().holds
    assert not any("epsilon 1" in line for line in release.manifest.guarantee["not_protected"])  # what others pay


def test_edges_tell_of_one_row_no_more_than_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges have the stated probabilities, which for neighbours differ by e^epsilon at most, all edges together."""
    grid, cost, count, draws = np.arange(0.0, 12.0), Fraction(3, 2), 3, 4_000
    monkeypatch.setattr(ledgers, "round_numbers", lambda whole: grid)
    numbers = np.array([1, 1, 2, 3, 3, 4, 6, 7, 9, 10], dtype=float)
    neighbours = [np.append(numbers[:-1], other) for other in (0.0, 5.0, math.nan)]

    def chances(numbers: Any) -> Any:
        """Of every pair of edges: two exponential mechanisms, written out."""
        known = numbers[~np.isnan(numbers)]
        below = (known[:, None] < grid).sum(axis=0)
        single = [np.exp(-float(cost) / 2 / 2 / count * np.abs(count * below - k * len(known))) for k in (1, 2)]
        first, second = (one / one.sum() for one in single)
        return np.outer(first, second)

    for other in neighbours:
        ratio = chances(numbers) / chances(other)
        assert max(ratio.max(), 1 / ratio.min()) <= math.exp(cost)
    drawn = np.zeros((12, 12))
    for draw in range(draws):
        ledger = ledgers.Ledger(Keystream(Secret.from_key(draw.to_bytes(32, "big")), "edges"))
        edges = ledger.edges("n", numbers, count, cost, whole=True)
        drawn[int(edges[0]), int(edges[-1])] += 1
        assert ledger.epsilon == cost
    expected = chances(numbers)
    expected = (expected + expected.T - np.diag(np.diag(expected))) * np.triu(np.ones((12, 12))) * draws
    some = expected > 5
    assert ((drawn - expected)[some] ** 2 / expected[some]).sum() < some.sum() + 7 * math.sqrt(2 * some.sum())
    assert drawn[~some].sum() < expected[~some].sum() + 7 * math.sqrt(expected[~some].sum())


def test_what_would_tell_exact_counts_is_refused() -> None:
    with pytest.raises(OptionError, match="suppress leaves values of 'ill' out by their exact counts"):
        published(suppress=100)
    with pytest.raises(RequirementError, match=r"Fix: bins=\{'income': Quantiles\(10\)\}"):
        published(sensitive="income")
    published(sensitive="income", bins={"income": dn.Quantiles(10)}, missing="refuse")  # the fix


def test_a_list_that_is_declared_for_one_column_is_none_for_the_other() -> None:
    drugs = ["rare", "none", *(f"for {ill}" for ill in ("flu", "cold", "ok"))]
    release = published(sensitive=["ill", "drug"], domain={"ill": ["flu", "cold", "ok"]})
    assert spent(release).count("list") == 1
    assert "rare" not in release.manifest.column_domains["drug"]  # three rows have it
    assert "(other)" in release.manifest.column_domains["drug"]
    both = published(sensitive=["ill", "drug"], domain={"ill": ["flu", "cold", "ok"], "drug": drugs})
    assert set(spent(both)) == {"table"}
    as_it_is = published(
        sensitive=["ill", "drug"], domain={"ill": ["flu", "cold", "ok"]}, mechanism=Synthetic(listing="table")
    )
    assert as_it_is.manifest.parts[0].promise.listed == "table"
    assert "rare" in as_it_is.manifest.column_domains["drug"]
    for one in (release, both, as_it_is):
        assert one.verify().holds


def test_a_missing_value_of_one_of_several_columns_is_a_value() -> None:
    """Such a release did not pass its own verification."""
    release = published(holes("ill"), sensitive=["ill", "drug"])
    assert None in release.manifest.column_domains["ill"]
    assert release.verify().holds
    missing = pc.sum(pc.is_null(holes("ill")["ill"])).as_py()
    assert abs(release.count({"ill": None}).value - missing) < 0.02 * ROWS


def test_an_exempt_value_does_not_decide_what_is_most_frequent() -> None:
    values = np.array(["ok"] * 6_000 + ["flu", "cold", "hiv", "none"] * 500)
    table = pa.table({"sex": ["F", "M"] * (ROWS // 2), "age": np.arange(ROWS) % 50, "ill": values})
    with pytest.raises(RequirementError, match="cannot be promised for every value"):
        published(table, privacy=dn.Privacy(rho2="1/3"))
    release = published(table, privacy=dn.Privacy(rho2="1/3", exempt=["ok"]))
    assert Fraction(500, ROWS) < Fraction(release.manifest.guarantee["rho1"]) < Fraction(1, 8)
    with pytest.raises(RequirementError, match="No value is protected"):
        published(table, privacy=dn.Privacy(rho2="1/3", exempt=["ok", "flu", "cold", "hiv", "none"]))


@pytest.mark.parametrize("kind", ["text", "number"])
@pytest.mark.parametrize("listing", ["threshold", "table"])
def test_what_is_not_listed_stands_together(kind: str, listing: str) -> None:
    values = np.array(["rare", *["often"] * 4_000, *["also"] * 3_999])
    column = pa.array(values if kind == "text" else np.where(values == "often", 1, np.where(values == "also", 2, 3)))
    table = pa.table({"sex": ["F", "M"] * (ROWS // 2), "age": np.arange(ROWS) % 50, "ill": column})
    domain = set(published(table, mechanism=Synthetic(listing=listing)).manifest.parts[0].domain)
    rare, other = ("rare", "(other)") if kind == "text" else (3, None)
    assert (rare in domain, other in domain) == (listing == "table", listing == "threshold")


def test_warnings_are_said_where_public_columns_tell_of_values() -> None:
    """Public columns give values away where rows are perturbed; the model's promise covers them."""
    assert not any("give values away" in warning for warning in published().warnings)
