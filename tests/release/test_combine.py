"""Releases of several owners: the same columns of other people, other columns of the same people."""

import math

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.core.channels import Replace
from deniable.mechanisms.retention import Retention
from deniable.release.combine import join, pool

MECHANISM = {"age": Replace(coin=0.6, low=0, high=99), "job": Replace(coin=0.6)}
JOBS = {"job": list("abcd")}


def table(n, seed):
    rng = np.random.default_rng(seed)
    job = rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1])
    return pa.table({"id": np.arange(n) + 10_000 * seed, "age": rng.integers(0, 100, n), "job": job})


def publish(data, number, columns=MECHANISM, **options):
    options = {"drop": "id", "domain": JOBS, **options}
    return dn.publish(data, **{"mechanism": Retention(columns), "key": bytes([number]) * 32, **options})


def test_a_pool_answers_about_all_rows_with_the_accuracy_of_all():
    tables = [table(4000, seed) for seed in (1, 2, 3)]
    releases = [publish(data, number) for number, data in enumerate(tables)]
    together = pool(releases)
    assert together.manifest.rows == together.table.num_rows == 12_000
    where = {"age": dn.between(20, 60), "job": ["a", "b"]}
    found, each = together.count(where), [release.count(where) for release in releases]
    assert found.value == pytest.approx(sum(one.value for one in each))
    assert found.stderr == pytest.approx(math.hypot(*(one.stderr for one in each)))
    whole = pa.concat_tables(tables).to_pandas()
    true = (whole["age"].between(20, 60) & whole["job"].isin(["a", "b"])).sum()
    assert abs(found.value - true) < 5 * found.stderr
    assert together.verify().holds


def test_pools_of_one_sensitive_column_add_their_noisy_histograms(tmp_path):
    options = {"sensitive": "job", "privacy": dn.Privacy("1/4", "1/2"), "drop": "id", "domain": list("abcd")}
    releases = [
        dn.publish(table(3000, seed), key=bytes([seed]) * 32, **{"mechanism": "uniform", **options}) for seed in (1, 2)
    ]
    together = pool(releases)
    sums = np.sum([release.manifest.parts[0].marginal.counts for release in releases], axis=0)
    added = together.manifest.parts[0].marginal
    assert added.counts == tuple(sums)
    assert added.variance == pytest.approx(2 * releases[0].manifest.parts[0].marginal.variance)
    saved = together.save(tmp_path / "pool")
    assert saved.verify().holds
    assert abs(saved.count({"job": "a"}).value - 2400) < 5 * saved.count({"job": "a"}).stderr + 5 * math.sqrt(
        6000 * 0.24
    )


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: publish(table(500, 5), 5, {**MECHANISM, "job": Replace(coin=0.5)}), "other coins"),
        (lambda: publish(table(500, 5), 5, {**MECHANISM, "age": Replace(coin=0.6, low=0, high=100)}), "another range"),
        (lambda: publish(table(500, 5), 5, domain={"job": list("abcde")}), "other values"),
        (lambda: publish(table(500, 5), 5, drop=()), "the columns differ"),
    ],
)
def test_what_differs_is_named(other, words):
    with pytest.raises(dn.DeniableError, match=words):
        pool([publish(table(500, 4), 4), other()])


DISEASES = list("abcdef")
OTHERWISE = {"anatomy:l=2", "generalize:k=5,l=2", "perturbed-generalization", "decoys:c=2", "laplace"}


def diseases(n, weights, seed, **options):
    rng = np.random.default_rng(seed)
    data = pa.table(
        {"sex": rng.choice(["f", "m"], n), "ill": rng.choice(DISEASES, n, p=np.array(weights) / sum(weights))}
    )
    options = {"privacy": dn.Privacy("1/3", "1/2"), "mechanism": "uniform", "domain": DISEASES, **options}
    return dn.publish(data, sensitive="ill", key=bytes([seed]) * 32, **options)


def test_groups_of_the_rows_of_one_release_are_not_pooled():
    options = {"mechanism": "decoys:c=2", "privacy": None, "domain": None}
    releases = [diseases(600, [1, 1, 1, 1, 1, 1], seed, **options) for seed in (1, 2)]
    with pytest.raises(dn.DeniableError, match="publishes groups of its own rows"):
        pool(releases)


def test_the_same_rows_are_not_pooled_twice(tmp_path):
    one, other = (diseases(300, [1, 1, 1, 1, 1, 1], seed) for seed in (1, 2))
    one.save(tmp_path / "one")
    for twice in (one, dn.open_release(tmp_path / "one")):
        with pytest.raises(dn.DeniableError, match="Release 3 has the same rows as release 1"):
            pool([one, other, twice])


def test_a_pool_leaves_out_values_that_are_frequent_in_it_whichever_release_comes_first(tmp_path):
    even, uneven = diseases(3000, [1, 1, 1, 1, 1, 1], 1), diseases(3000, [15, 2, 2, 2, 2, 2], 2)
    assert "Not covered" not in even.manifest.guarantee["sentence"]
    for number, order in enumerate(([even, uneven], [uneven, even])):
        together = pool(order).save(tmp_path / str(number))
        assert together.manifest.parts[0].promise.above == (0,)
        assert "Not covered: 'a'" in together.manifest.guarantee["sentence"]
        assert any("among the rows of one release" in limit for limit in together.manifest.guarantee["not_protected"])
        assert together.verify().holds
    rare = pool([uneven, diseases(9000, [1, 1, 1, 1, 1, 1], 3)])  # a quarter of all rows
    assert rare.manifest.parts[0].promise.above == ()
    assert rare.verify().holds


def test_publications_of_one_series_are_not_pooled(tmp_path):
    """Their people are the same, and so are their draws: 84 % of the intervals of such pools held, not 95 %."""

    def published(home, rows):
        return publish(
            table(rows, 1), 0, key=None, drop=(), row_id="id", series=tmp_path / home, out=tmp_path / f"{home}{rows}"
        )

    north, later, south = published("north", 300), published("north", 301), published("south", 300)
    with pytest.raises(dn.DeniableError, match="Releases 1 and 3 are publications of one series"):
        pool([north, south, later])
    both = pool([north, south]).save(tmp_path / "both")
    assert both.verify().holds
    with pytest.raises(dn.DeniableError, match="Releases 1 and 2 are publications of one series"):
        pool([dn.open_release(tmp_path / "both"), later])
    assert "series" not in publish(table(300, 1), 0).manifest.to_dict()["randomness"]


def test_other_requirements_are_not_pooled():
    one, other = (diseases(900, [1] * 6, 1, privacy=dn.Privacy(*rho)) for rho in (("1/3", "1/2"), ("1/2", "2/3")))
    with pytest.raises(dn.DeniableError, match="is promised something else"):
        pool([one, other])


def test_a_pool_needs_several_releases():
    one = publish(table(500, 4), 4)
    for given in ([one], one):
        with pytest.raises(dn.DeniableError, match="two releases"):
            pool(given)
    with pytest.raises(dn.DeniableError, match=r"got str.*open_release"):
        pool([one, "release"])
    with pytest.raises(dn.DeniableError, match="got Table"):
        join(one, one.table, on="id")


# -- columns held by two owners ----------------------------------------------------------------------------------------


def owners(n=6000):
    rng = np.random.default_rng(9)
    age = rng.integers(0, 100, n)
    ill = np.where(rng.random(n) < age / 120, "yes", "no")
    return (
        pa.table({"id": np.arange(n), "age": age}),
        pa.table({"id": np.arange(500, n + 500), "ill": np.roll(ill, -500), "ward": rng.choice(["n", "s"], n)}),
        age,
        ill,
    )


def halves():
    left, right, age, ill = owners()
    one = dn.publish(left, mechanism=Retention({"age": Replace(coin=0.6, low=0, high=99)}), key=bytes(32))
    two = dn.publish(right, mechanism=Retention({"ill": Replace(coin=0.7)}), key=bytes([1]) * 32)
    return one, two, age, ill


def test_columns_of_two_owners_are_asked_about_together():
    one, two, age, ill = halves()
    together = join(one, two, on="id")
    assert together.manifest.rows == 5500
    found = together.count({"age": dn.between(60, 99), "ill": "yes"})
    true = ((age >= 60) & (ill == "yes"))[500:].sum()
    assert abs(found.value - true) < 5 * found.stderr
    assert together.manifest.guarantee["epsilon"] == pytest.approx(
        one.manifest.guarantee["epsilon"] + two.manifest.guarantee["epsilon"]
    )
    assert together.verify().holds
    assert any("correlated" in line for line in together.manifest.guarantee["not_protected"])


def test_requirements_of_the_owners_stay_in_the_joined_release_and_are_verified():
    left, right, *_ = owners()
    one = dn.publish(left, mechanism=Retention({"age": Replace(privacy=(10, 0.1, 0.9), low=0, high=99)}), key=bytes(32))
    required = dn.Privacy("1/3", "2/3", adversary="any-prior")
    declared = sorted(set(right["ill"].to_pylist()))
    two = dn.publish(
        right, sensitive="ill", privacy=required, domain=declared, key=bytes([1]) * 32, mechanism="uniform"
    )
    together = join(one, two, on="id")
    words = str(together.verify())
    assert "no breach in 'age': coin" in words
    assert "requirement of 'ill': rho1 = 1/3, rho2 = 2/3" in words
    assert any("'age'" in line and "as required" in line for line in together.manifest.guarantee["also"])


def test_a_joined_column_of_identity_promises_only_what_its_release_tells():
    left, right, *_ = owners()
    one = dn.publish(left, mechanism=Retention({"age": Replace(coin=0.6, low=0, high=99)}), key=bytes(32))
    own = dn.publish(right, mechanism=Retention({"ill": Replace(coin=0.5, replacing="identity")}), key=bytes([1]) * 32)
    other = dn.publish(
        right, sensitive="ill", mechanism="identity", privacy=dn.Privacy(rho2="4/5"), key=bytes([1]) * 32
    )
    for two in (own, other):
        together = join(one, two, on="id")
        assert not together.verify().failures
        said = next(line for line in together.manifest.guarantee["also"] if line.startswith("'ill'"))
        assert "Lemma 1" in said
    promise = join(one, other, on="id").manifest.parts[1].promise
    assert promise.like_column
    assert promise.s > 1


def test_swapped_columns_are_not_pooled():
    columns = {"job": Replace(coin=0.6, replacing="swapping")}
    same = [publish(table(500, 4), number, columns, drop=("id", "age")) for number in (1, 2)]
    with pytest.raises(dn.DeniableError, match="'job' is swapped among the rows of each release"):
        pool(same)


def test_releases_that_cannot_be_joined_say_why():
    one, two, *_ = halves()
    left, right, *_ = owners()
    with pytest.raises(dn.DeniableError, match="no public column 'person'"):
        join(one, two, on="person")
    with pytest.raises(dn.DeniableError, match="Both releases have the column 'age'"):
        join(one, one, on="id")
    twice = pa.table({"id": np.zeros(6000, int), "ill": right["ill"]})
    repeated = dn.publish(twice, mechanism=Retention({"ill": Replace(coin=0.7)}), key=bytes(32))
    with pytest.raises(dn.DeniableError, match="missing or repeated"):
        join(one, repeated, on="id")
    texts = left.set_column(0, "id", pa.array([str(i) for i in range(6000)]))
    other = dn.publish(texts, mechanism=Retention({"age": Replace(coin=0.6, low=0, high=99)}), key=bytes(32))
    with pytest.raises(dn.DeniableError, match="with one type"):
        join(other, two, on="id")
