"""Decoy groups for several sensitive columns: each grouped by itself, from publishing to the audit."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import deniable as dn
from deniable.core.errors import OptionError, RequirementError, TableError
from deniable.mechanisms import Decoys

KEY = bytes(range(32))
AGES, JOBS = [f"age {i}" for i in range(8)], [f"job {i:02d}" for i in range(20)]


def people(n: int, seed: int = 1) -> pa.Table:
    """Two sensitive columns that are correlated with each other and with a public one."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 8, n)
    job = np.where(rng.random(n) < 0.5, age + 8, rng.integers(0, 20, n))
    sex = np.where(rng.random(n) < np.where(age < 4, 0.7, 0.3), "F", "M")
    return pa.table({"sex": sex, "age": np.array(AGES)[age], "job": np.array(JOBS)[job], "id": np.arange(n)})


def publish(table, c=5, **options):
    mechanism = options.pop("mechanism", Decoys(c=c, leftovers="drop"))
    return dn.publish(table, sensitive=["age", "job"], mechanism=mechanism, key=KEY, **options)


@pytest.fixture(scope="module")
def table():
    return people(20_003)


@pytest.fixture(scope="module")
def release(table):
    return publish(table)


def test_every_column_is_a_part_of_its_own(table, release):
    assert [part.columns for part in release.manifest.parts] == [("age",), ("job",)]
    assert [part.domain for part in release.manifest.parts] == [tuple(AGES), tuple(JOBS)]
    assert all(part.mixture is not None and not part.channels for part in release.manifest.parts)
    raw = json.loads(release.manifest.to_json())
    assert "left_out" not in json.dumps(raw)
    assert raw["mechanism"]["options"]["c"] == 5


def test_rows_left_over_are_left_out_whole_and_the_same_of_every_column(table, release):
    """20,003 = 5 * 4,000 + 3: three rows are missing, not three of each column."""
    assert release.manifest.rows == release.table.num_rows == 20_000
    assert len(set(table["id"].to_pylist()) - set(release.table["id"].to_pylist())) == 3
    assert any("3 rows drawn at random" in line for line in release.manifest.guarantee["not_protected"])


def test_values_are_published_by_as_many_rows_as_have_them_on_average(table, release):
    """f' ~ Binomial(c f, 1/c): within six standard deviations for every value of both columns."""
    kept = np.isin(table["id"].to_numpy(), release.table["id"].to_numpy())
    for name, values in (("age", AGES), ("job", JOBS)):
        true = np.array([(np.array(table[name])[kept] == value).sum() for value in values])
        shown = np.array([(np.array(release.table[name]) == value).sum() for value in values])
        assert (np.abs(shown - true) < 6 * np.sqrt(true * 0.8)).all()
        assert (shown != true).any()


def test_the_columns_are_grouped_independently(table, release):
    """Whether a row keeps its age tells nothing about whether it keeps its job: 2 x 2 table, false alarm 1e-6.

    Groups dealt by one keystream would agree in most rows; an excess of 5 % of the rows moves the statistic to 1e3.
    """
    order = np.argsort(release.table["id"].to_numpy())
    rows = release.table["id"].to_numpy()[order]
    kept = [np.array(release.table[n])[order] == np.array(table[n])[rows] for n in ("age", "job")]
    observed = np.array([[(kept[0] & kept[1]).sum(), (kept[0] & ~kept[1]).sum()],
                         [(~kept[0] & kept[1]).sum(), (~kept[0] & ~kept[1]).sum()]])  # fmt: skip
    assert stats.chi2_contingency(observed, correction=False).pvalue > 1e-6
    for share in (kept[0].mean(), kept[1].mean()):
        assert abs(share - 0.2) < 6 * np.sqrt(0.2 * 0.8 / len(rows))


def test_the_same_key_gives_the_same_release_whatever_threads_batches_and_files(table, release, tmp_path):
    assert publish(table, threads=3, batch_rows=777).table.equals(release.table)
    pq.write_table(table, tmp_path / "t.parquet")
    saved = publish(tmp_path / "t.parquet", out=tmp_path / "r")
    assert saved.table.equals(release.table)
    assert dn.verify(tmp_path / "r").holds
    assert "`weights.parquet` has them" in (tmp_path / "r" / "README.md").read_text()


def test_the_audit_finds_one_in_c_for_each_column_and_no_breach(table):
    made = publish(table, mechanism=Decoys(leftovers="drop"), privacy=dn.Privacy(rho2="1/4"))
    assert made.manifest.options["c"] == 4
    found = dn.audit(table, made)
    assert [part.columns for part in found.parts] == [("age",), ("job",)]
    assert [part.worst_protected for part in found.parts] == [Fraction(1, 4)] * 2
    assert not any(part.upward for part in found.parts)


def test_it_is_said_that_columns_together_tell_more(release):
    assert any("how these columns go together" in line for line in release.manifest.guarantee["not_protected"])
    assert any("7.39" in line for line in release.manifest.guarantee["not_protected"])  # e^2: two noisy histograms


def test_a_value_that_only_a_row_left_out_had_stays_in_the_domain():
    def with_pilot(row):
        jobs = people(103)["job"].to_pylist()
        jobs[row] = "the only pilot"
        table = people(103).set_column(2, "job", pa.array(jobs))
        return table, publish(table)

    # Which rows are left out follows from the content of the table: three or more of 103, each time others.
    tries = (with_pilot(row) for row in range(103))
    table, again = next(
        (table, made) for row, (table, made) in enumerate(tries) if row not in made.table["id"].to_pylist()
    )
    assert "the only pilot" in again.manifest.column_domains["job"]
    assert "the only pilot" not in again.table["job"].to_pylist()
    assert dn.audit(table, again).parts[1].domain[-1] == "the only pilot"
    assert again.count({"job": "the only pilot"}, method="four-state exact").value == 0


# -- sizes and bad input ----------------------------------------------------------------------------------------------


def test_the_size_of_all_columns_is_the_largest_that_one_needs():
    table = people(6000)
    assert publish(table, mechanism=Decoys(leftovers="drop")).manifest.options["c"] == 5
    asked = dn.Privacy(rho1="1/8", rho2="1/6")  # protects some ages, which are about 1/8 each, and every job
    assert publish(table, mechanism=Decoys(), privacy=asked).manifest.options["c"] == 6
    with pytest.raises(RequirementError, match="Column 'age': No value is protected"):
        publish(table, mechanism=Decoys(), privacy=dn.Privacy(rho1="1/10", rho2="1/6"))  # most jobs, and no age


def test_an_error_names_the_column_it_is_about():
    table = people(1000)
    with pytest.raises(RequirementError, match=r"Column 'age': c = 9 is too large: 'age \d' alone.*c=\d, the largest"):
        publish(table, c=9)
    one = table.set_column(2, "job", pa.array(["x"] * 1000))
    with pytest.raises(TableError, match=r"Column 'job': The sensitive column has one single value"):
        publish(one)
    with pytest.raises(RequirementError, match=r"Column 'age': c = 5 is too large: the table has only 4 rows"):
        publish(table.slice(0, 4))
    with pytest.raises(RequirementError, match=r"Column 'age': 1 row cannot be grouped.*leftovers='drop'"):
        publish(people(1001), mechanism=Decoys(c=5))


def test_requirements_of_single_values_are_refused_since_no_column_is_named():
    for privacy in (dn.Privacy(rho2="1/5", exempt=["age 1"]), dn.Privacy(per_value={"age 1": ("1/10", "1/5")})):
        with pytest.raises(RequirementError, match="grouped each by itself"):
            publish(people(1000), privacy=privacy)
    with pytest.raises(RequirementError, match=r"Column 'age'.*any-prior"):
        publish(people(1000), privacy=dn.Privacy("1/10", "1/5", adversary="any-prior"))


def test_exempt_missing_values_go_with_several_columns_only_where_no_row_is_left_over():
    table = people(1000)
    jobs = table["job"].to_pylist()
    some = [None if i < 5 else job for i, job in enumerate(jobs)]
    made = publish(table.set_column(2, "job", pa.array(some)), missing="exempt")
    assert made.table["job"].null_count == 5
    assert made.count({"job": None}).value == pytest.approx(5, abs=1e-6)
    odd = [None if i < 3 else job for i, job in enumerate(jobs)]
    with pytest.raises(OptionError, match="missing='value'"):
        publish(table.set_column(2, "job", pa.array(odd)), missing="exempt")


def test_rows_are_not_left_out_of_columns_that_miss_values_in_different_rows():
    """As many of each, so the numbers agree; a row that is exempt in one column would leave the other uneven."""
    table = people(1001)
    for place, name, gone in ((1, "age", range(5)), (2, "job", range(5, 10))):
        assert table.column_names[place] == name
        values = [None if i in gone else value for i, value in enumerate(table[name].to_pylist())]
        table = table.set_column(place, name, pa.array(values))
    with pytest.raises(OptionError, match="missing='value'"):
        publish(table, mechanism=Decoys(c=5, leftovers="drop"), missing="exempt")


@pytest.mark.long
def test_who_is_left_out_does_not_depend_on_the_values():
    """One of 101 rows is left out, 200 times. Each of the eight values is missing about as often as it is frequent; a
    grouping that chose would always miss the same one. 6 standard deviations: a false alarm in a hundred million.
    """
    values = np.repeat(list("abcefghi"), [13, 13, 13, 13, 13, 12, 12, 12])
    table = pa.table({"id": np.arange(101), "d": values})
    missing = []
    for number in range(200):
        release = dn.publish(
            table, sensitive="d", mechanism=Decoys(c=4, leftovers="drop"), key=bytes([number] * 32), marginals=False
        )
        (gone,) = set(range(101)) - set(release.table["id"].to_pylist())
        missing.append(values[gone])
    for value in set(values.tolist()):
        share = float((values == value).mean())
        assert abs(missing.count(value) - 200 * share) < 6 * np.sqrt(200 * share * (1 - share))
