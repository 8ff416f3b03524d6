"""The Spark engine: what tasks make is what one machine makes, and what they cannot make is refused."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deniable as dn
from deniable.cli.main import app
from deniable.tables import engine_named, engine_on
from tests.contract.cases import KEY, PRIVACY, people
from tests.spark_session import in_partitions, needs_spark, rows_of, session

pytestmark = [needs_spark, pytest.mark.long]


@pytest.fixture(scope="module")
def table():
    rng, rows = np.random.default_rng(1), people(3_000)
    scattered = pa.array(rng.permutation(3_000) * 7 - 9_000)
    weight = pa.array(np.where(rng.random(3_000) < 0.1, np.nan, rng.random(3_000).round(3)), from_pandas=True)
    return rows.append_column("id", scattered).append_column("weight", weight)


@pytest.fixture(scope="module")
def releases(table, tmp_path_factory):
    """One release from seven partitions and from one, in folders."""
    folder = tmp_path_factory.mktemp("releases")
    for number in (7, 1):
        dn.publish(in_partitions(table, number), **_options(), drop="id", out=folder / str(number))
    return folder


def _options(**more):
    return {"sensitive": "disease", "privacy": PRIVACY, "mechanism": "designed", "key": KEY, **more}


def test_a_folder_is_the_same_to_the_byte_however_rows_were_cut(releases):
    seven, one = (dn.open_release(releases / number) for number in "71")
    assert seven.manifest.to_json() == one.manifest.to_json()  # which holds the digest of the data
    assert (releases / "7" / "data.parquet" / "part-00000.parquet").is_file()
    assert sorted(path.name for path in (releases / "7").iterdir()) == [
        "README.md",
        "data.parquet",
        "manifest.json",
        "weights.parquet",
    ]


def test_a_table_is_known_again_to_the_ledger_of_a_key_on_either_engine(table, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    options = {**_options(), "key": None, "key_file": key, "drop": "id"}
    dn.publish(in_partitions(table, 3), **options)
    for again in (table, in_partitions(table.slice(1), 2)):
        with pytest.raises(dn.DeniableError, match="were published under this key before, as 'release'"):
            dn.publish(again, **options, name="another")


def test_both_engines_answer_alike(releases):
    here, there = (dn.open_release(releases / "7", engine=engine) for engine in ("local", "spark"))
    wheres = [{"sex": "F", "disease": ["a", "b"]}, {"age": dn.between(30, 40), "disease": "c"}, {"disease": "j"}, None]
    for where in wheres:
        assert there.count(where) == here.count(where)
    for question in (
        "SELECT sex, COUNT(*) AS n, AVG(weight) AS w, SUM(age) AS a FROM release WHERE disease = 'a' GROUP BY sex",
        "SELECT age / 10 AS decade, COUNT(*) AS n FROM release WHERE disease IN ('a', 'd') GROUP BY age / 10",
        "SELECT disease, COUNT(*) AS n FROM release WHERE sex = 'M' AND weight > 0.5 GROUP BY disease",
    ):
        one, other = (release.sql(question) for release in (here, there))
        assert one.schema == other.schema
        for mine, theirs in zip(rows_in_order(one), rows_in_order(other), strict=True):
            assert mine.keys() == theirs.keys()
            assert all(_close(mine[name], theirs[name]) for name in mine)


def rows_in_order(table):
    return sorted(table.to_pylist(), key=lambda row: str(next(iter(row.values()))))


def _close(one, other):
    return one == other or (isinstance(one, float) and abs(one - other) <= 1e-9 * max(1, abs(one)))


def test_a_release_of_one_file_is_counted_by_its_row_groups(table, tmp_path):
    from deniable.spark.rows import SparkCounter
    from deniable.tables.storage import StoredRows

    release = dn.publish(table, **_options(), drop="id", out=tmp_path / "r")
    pq.write_table(release.table, tmp_path / "cut.parquet", row_group_size=450)
    stored = StoredRows.at(tmp_path / "cut.parquet")
    counter = SparkCounter(session(), stored, release.manifest)
    counter._counting = counter._counting.__class__(tuple(stored.cut(900)), release.manifest, (), {})
    assert len(counter._counting.pieces) == 4
    (here,), (there,) = (
        list(one.tally(["sex"], [], np.zeros(1, np.int64), ["age"], states=True))
        for one in (release.counter(), counter)
    )
    order = [release.counter().distinct("sex").to_pylist().index(sex) for sex in counter.distinct("sex").to_pylist()]
    assert np.array_equal(here.counts[order], there.counts)
    assert np.array_equal(here.moments["age"].squares[order], there.moments["age"].squares)
    own, theirs = (one.coded(["age"], []) for one in (release.counter(), counter))
    values = [one.distinct("age").to_numpy() for one in (release.counter(), counter)]
    assert np.array_equal(values[0][own.keys[:, 0]], values[1][theirs.keys[:, 0]])


def test_rows_that_have_names_are_drawn_by_them_whatever_their_order(table):
    here = dn.publish(table, **_options(row_id="id"))
    for frame in (in_partitions(table, 7), in_partitions(table, 2).repartition(5)):
        there = dn.publish(frame, **_options(row_id="id"))
        assert rows_of(there.table) == rows_of(here.table)
        assert there.manifest.to_json() == here.manifest.to_json()


def test_rows_of_people_are_published_alike(table):
    people = table.set_column(3, "id", pa.array(np.arange(3_000) % 400))
    here, there = (dn.publish(rows, **_options(person="id")) for rows in (people, in_partitions(people, 7)))
    assert there.table.equals(here.table)
    assert there.manifest.to_json() == here.manifest.to_json()


def test_row_ids_must_be_there_and_name_one_row(table):
    ids = table["id"].to_numpy().copy()
    ids[2_999] = ids[0]
    twice = table.set_column(3, "id", pa.array(ids))
    with pytest.raises(dn.DeniableError, match=r"row_id = 'id' does not name rows"):
        dn.publish(in_partitions(twice, 7), **_options(row_id="id"))
    lost = table.set_column(3, "id", pa.array([None, *ids[1:].tolist()]))
    with pytest.raises(dn.DeniableError, match="A record id is missing"):
        dn.publish(in_partitions(lost, 7), **_options(row_id="id"))


def test_rows_that_come_in_another_order_the_next_time_are_refused(table, tmp_path):
    plain = in_partitions(table.select(["sex", "disease"]), 2)

    def stirred(batches):
        for batch in batches:
            yield batch.take(pa.array(np.random.default_rng().permutation(batch.num_rows)))

    frame = plain.mapInArrow(stirred, plain.schema)
    for given in ({}, {"key": None}):
        with pytest.raises(dn.DeniableError, match="came in another order, or were others"):
            dn.publish(frame, **_options(**given), out=tmp_path / "r")
    assert not list(tmp_path.iterdir())


def test_the_digest_is_that_of_one_machine_over_several_pieces():
    rng = np.random.default_rng(2)
    numbers = rng.integers(0, 1000, 700_000)
    table = pa.table({"n": pa.array(numbers, mask=numbers < 100), "t": pa.array(numbers % 7).cast(pa.string())})
    here = engine_named("local").open(table)
    for number in (1, 2, 7):
        frame = in_partitions(table, number)
        assert engine_named("spark").open(frame).digest() == here.digest()
    assert engine_named("spark").open(frame).digest(by="t") == here.digest(by="t")
    other = table.set_column(1, "t", pa.array([*table["t"].to_pylist()[:-1], "x"]))
    assert engine_named("spark").open(in_partitions(other, 7)).digest() != here.digest()


def test_bins_domains_and_missing_values_are_as_on_one_machine(table):
    weights = {
        "sensitive": "weight",
        "privacy": dn.Privacy(rho2="2/3"),
        "bins": {"weight": [0, 0.25, 0.5, 1]},
        "mechanism": "uniform",
        "key": KEY,
    }
    for more in ({}, {"missing": "exempt"}):
        here, there = (dn.publish(rows, **weights, **more, drop="id") for rows in (table, in_partitions(table, 7)))
        assert there.table.equals(here.table)
    with pytest.raises(dn.DeniableError, match=r"quantiles need all its numbers in one place.*Fix: give edges"):
        dn.publish(in_partitions(table, 2), **{**weights, "bins": {"weight": dn.Quantiles(4)}})
    with pytest.raises(dn.DeniableError, match="missing = 'refuse'"):
        dn.publish(in_partitions(table, 7), **_options(sensitive="weight", missing="refuse"))


def test_columns_are_recoded_as_on_one_machine(table):
    coarser = {"recode": {"age": "bands:10"}, "rare": {"age": 350}, "drop": ["id", "weight"]}
    here, there = (dn.publish(rows, **_options(**coarser)) for rows in (table, in_partitions(table, 7)))
    assert there.table.equals(here.table)
    assert there.manifest.to_json() == here.manifest.to_json()
    assert {"[20, 30)", "(rare)"} <= {*there.table["age"].to_pylist()}


def test_the_owner_is_warned_as_on_one_machine(table):
    ordered = table.sort_by("disease")
    options = _options(shuffle=False)
    here, there = (dn.publish(rows, **options) for rows in (ordered, in_partitions(ordered, 7)))
    assert any("sorted by it" in warning for warning in here.warnings)
    assert any("looks like an identifier" in warning for warning in here.warnings)
    assert there.warnings == here.warnings


def test_commands_publish_and_ask_on_spark(table, tmp_path):
    session()
    pq.write_table(table.drop_columns(["id"]), tmp_path / "t.parquet")
    out, words = str(tmp_path / "r"), ["--sensitive", "disease", "--rho1", "1/4", "--rho2", "1/3"]
    source = f"file:{tmp_path}/t.parquet"
    made = CliRunner().invoke(app, ["publish", source, *words, "--engine", "spark", "--out", out, "--json"])
    assert made.exit_code in (0, 3), made.output  # 3: something is to be decided first
    assert json.loads(made.stdout)["rows"] == 3_000
    for command in (
        ["verify", out],
        ["audit", str(tmp_path / "t.parquet"), out],
        ["report", out, "--out", f"{out}.html"],
    ):
        assert CliRunner().invoke(app, command).exit_code in (0, 3)
    question = "SELECT sex, COUNT(*) AS n FROM release WHERE disease = 'a' GROUP BY sex"
    answers = [
        CliRunner().invoke(app, ["query", out, question, "--json", "--engine", engine]) for engine in ("local", "spark")
    ]
    first, second = (sorted(map(str, json.loads(answer.stdout)["rows"])) for answer in answers)
    assert first == second


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "local", "--master", "yarn"], "goes with --engine spark"),
        (["--engine", "spork"], "Did you mean 'spark'"),
        (["--engine", "spark", "--master", "local[77]"], "a Spark session is running already"),
        (["--engine", "spark", "--pool", "sdr"], "asks the table on this machine"),
        (["--engine", "spark"], "PATH_NOT_FOUND"),
    ],
)
def test_commands_say_what_cannot_be(words, said, tmp_path):
    session()
    start = ["publish", f"{tmp_path}/none.parquet", "--sensitive", "d", "--rho2", "1/2", "--out", str(tmp_path / "r")]
    done = CliRunner().invoke(app, [*start, *words])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_an_address_is_no_output_folder(table):
    with pytest.raises(dn.DeniableError, match=r"'s3a:/bucket/r' is an address.*file system that all machines share"):
        dn.publish(in_partitions(table, 1), **_options(), out="s3a://bucket/r")


def test_tables_by_name_csv_and_frames_of_other_makes_are_read(table, tmp_path):
    spark, plain = engine_on("spark", None), table.select(["sex", "age", "disease"])
    in_partitions(plain, 2).createOrReplaceTempView("people")
    plain.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    local = engine_named("local").open(plain).digest()
    assert spark.open("people").digest() == local
    assert spark.open(plain.set_column(0, "sex", plain["sex"].dictionary_encode())).digest() == local
    assert spark.open(plain.to_pandas()).digest() == local
    assert spark.open(tmp_path / "t.csv").schema.types[:1] == [pa.string()]
    with pytest.raises(dn.DeniableError, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.open("nobody")
    with pytest.raises(dn.DeniableError, match="capital and small letters alike"):
        spark.open(session().sql("SELECT 1 AS a, 2 AS A"))


def test_killed_executors_and_tasks_that_run_twice_change_nothing(tmp_path):
    program, kills = Path(__file__).parent / "spark_cluster.py", 20
    run = subprocess.run(
        [sys.executable, str(program), str(tmp_path), str(kills)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    told = json.loads(run.stdout.splitlines()[-1])
    assert told["killed"] == kills
    assert told["speculative"] >= 1
    assert told["again"] >= 1
    assert {one["digest"] for one in told["disturbed"]} == {told["undisturbed"]}
