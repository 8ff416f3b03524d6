"""What is evidence although no row says it: lists of values, coins that follow the table, noisy histograms (13.2, 13.3,
13.12, 13.13)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.errors import DeniableError
from deniable.mechanisms import FineGrain, Pram, Redraw, Retention

ANY = dn.Privacy(rho1="1/13", rho2="1/6", adversary="any-prior")
VALUES = [f"v{i}" for i in range(20)]


def neighbours() -> tuple[pa.Table, pa.Table]:
    """Two tables that differ in one person, who is the only one to hold a value in the first."""
    ill = np.random.default_rng(1).choice(VALUES[:19], 500).tolist()
    return pa.table({"ill": ["v19", *ill]}), pa.table({"ill": ["v0", *ill]})


@pytest.mark.parametrize("mechanism", ["uniform", "fine-grain", "lineup"])
def test_against_any_prior_a_neighbouring_table_gives_the_same_manifest(mechanism: str) -> None:
    """An attacker compares manifests: with a declared domain not a number of them depends on a person."""
    one, other = (
        dn.publish(table, sensitive="ill", privacy=ANY, mechanism=mechanism, domain=VALUES).manifest.to_dict()["parts"]
        for table in neighbours()
    )
    assert one == other


@pytest.mark.parametrize("mechanism", ["uniform", "fine-grain", "lineup"])
def test_against_any_prior_a_list_of_values_that_the_table_shows_is_refused(mechanism: str) -> None:
    with pytest.raises(DeniableError, match="not declared"):
        dn.publish(neighbours()[0], sensitive="ill", privacy=ANY, mechanism=mechanism)


@pytest.mark.parametrize("mechanism", ["auto", "synthetic"])
def test_a_learned_list_of_values_names_none_that_few_people_hold(mechanism: str) -> None:
    """Such a list is paid for out of epsilon: the value that one person holds is in it under no key."""
    with pytest.raises(DeniableError, match="which values occur is evidence, too"):
        dn.publish(neighbours()[0], sensitive="ill", privacy=ANY, mechanism=mechanism)
    many = pa.table({"ill": ["v19", *np.repeat(VALUES[:3], 3_000).tolist()]})
    for number in range(8):
        made = dn.publish(many, sensitive="ill", privacy=ANY, mechanism=mechanism, key=bytes([number]) * 32)
        assert set(VALUES[:3]) <= set(made.manifest.parts[0].domain)
        assert "v19" not in made.manifest.parts[0].domain


def test_against_any_prior_every_column_is_declared_or_has_a_range() -> None:
    table = pa.table({"job": ["cook", "nurse"] * 50, "age": [20, 30] * 50})
    how = Retention({"job": dn.Replace(privacy=ANY), "age": dn.Replace(privacy=ANY, low=0, high=99)})
    with pytest.raises(DeniableError, match="The values of 'job' are not declared"):
        dn.publish(table, mechanism=how)
    release = dn.publish(table, mechanism=how, domain={"job": ["cook", "nurse", "smith"]})
    assert release.manifest.guarantee["adversary"] == "any-prior"
    coins = Retention({"job": dn.Replace(coin=0.5)})  # nothing is required, so nothing is refused, and less is said
    assert dn.publish(table, mechanism=coins).manifest.guarantee["adversary"] == "frequency"


@pytest.mark.parametrize("mechanism", [Pram(), Redraw()])
def test_replacements_that_follow_the_table_are_refused_against_any_prior(mechanism: object) -> None:
    with pytest.raises(DeniableError, match="that is evidence itself"):
        dn.publish(neighbours()[0], sensitive="ill", privacy=ANY, mechanism=mechanism, domain=VALUES)  # type: ignore[arg-type]


def test_against_any_prior_no_noisy_histogram_leaves_by_retention_either() -> None:
    """The published value and the histogram together: 59.6 % where 16.7 % was promised."""
    table = pa.table({"job": ["cook", "nurse"] * 500})
    how = Retention({"job": dn.Replace(privacy=ANY)})
    with pytest.raises(DeniableError, match="marginals = True does not go with adversary 'any-prior'"):
        dn.publish(table, mechanism=how, domain={"job": ["cook", "nurse"]}, marginals=True)


def test_coins_of_fine_grain_against_any_prior_do_not_follow_the_counts() -> None:
    one, other = ({"a": 900, "b": 50, "c": 50}, {"a": 10, "b": 900, "c": 90})
    required = dn.Privacy(per_value={"a": ("1/3", "1/2"), "b": ("1/10", "1/4")}, adversary="any-prior")
    coins = [FineGrain().plan(dn.Histogram.of(rows), required).cells[0].channel.keep.tolist() for rows in (one, other)]
    assert coins[0] == coins[1]


def test_small_sums_need_a_declared_list() -> None:
    table = pa.table({"ill": [value for value in "abcdefghij" for _ in range(40)]})
    required = dn.Privacy(small_sums=dn.SmallSums(error=0.3, below=3, at_least=0.5))
    with pytest.raises(DeniableError, match="small_sums keeps small counts uncertain"):
        dn.publish(table, sensitive="ill", privacy=required, mechanism="decoys")


def test_categories_that_no_row_holds_are_no_values() -> None:
    """A dictionary that came with the data lists values of other tables, or of people who were left out."""
    frame = pd.DataFrame({"ill": pd.Categorical(["a", "b"] * 100, categories=["a", "b", "hiv"])})
    release = dn.publish(frame, sensitive="ill", privacy=dn.Privacy(rho2="3/4"), mechanism="uniform")
    assert release.manifest.parts[0].domain == ("a", "b")
    batch = pa.table({"ill": pa.DictionaryArray.from_arrays([0, 1] * 100, ["a", "b", "hiv"])})
    release = dn.publish(batch, sensitive="ill", privacy=dn.Privacy(rho2="3/4"), mechanism="uniform")
    assert release.manifest.parts[0].domain == ("a", "b")
    assert "hiv" not in str(release.table["ill"].combine_chunks().to_pylist())


def test_the_noise_of_a_histogram_is_what_it_is_said_to_cost() -> None:
    """Two counts move when one person changes value: epsilon 1/2 in each is 1 for the whole."""
    (table, _) = neighbours()
    release = dn.publish(table, sensitive="ill", privacy=dn.Privacy(rho2="1/2"), key=bytes(32), mechanism="uniform")
    marginal = release.manifest.parts[0].marginal
    assert marginal is not None
    assert marginal.cost == pytest.approx(1.0)
    # Pr[noise = k, j] against Pr[k + 1, j - 1] of discrete Laplace noise a^|k| a^|j|
    near = range(-5, 5)
    ratios = [marginal.epsilon * (abs(k + 1) - abs(k) + abs(j - 1) - abs(j)) for k in near for j in near]
    assert max(ratios) == pytest.approx(marginal.cost)
    assert any("epsilon 1 for the whole histogram" in line for line in release.manifest.guarantee["not_protected"])
