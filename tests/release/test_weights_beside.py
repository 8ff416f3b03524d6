"""The weights beside a release's rows count in any tool what deniable counts."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

import deniable as dn
from deniable.cli.main import app
from deniable.core.errors import QuestionError
from deniable.core.manifest import Manifest
from deniable.release import weights as chapter
from deniable.release.folder import read_manifest
from deniable.release.readme import analyst_readme
from deniable.release.weights import Weights
from deniable.tables.storage import digest_of, read_table, write_table
from deniable_verify import weights as verified
from tests.collection.serving import postgres
from tests.golden.cases import CASES
from tests.release.test_coded_lineups import BY_ARCS, BY_BLOCKS, published

duckdb = pytest.importorskip("duckdb")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


SHOWN = [
    "uniform", "small-domain", "fine-grain", "identity", "lineup, any prior", "lineup, codes", "decoys", "retention",
    "retention, dates and floats", "retention, swapped", "items", "two columns", "two columns, small-domain",
    "two columns, decoys", "missing, a value", "missing, exempt", "bins", "recoded",
]  # fmt: skip


def recipe(folder: Path) -> str:
    """The SQL of a release's README, to be run in its folder."""
    text = (folder / "README.md").read_text(encoding="utf-8").split("## Without deniable")[1]
    return "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))


def asked_in(folder: Path) -> dict[str, Any]:
    """What the same README asks for in Python."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    return eval(re.search(r"where=(\{.*\})\)", text).group(1), {"dn": dn})


def require_same(folder: Path, release: dn.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    n, stderr = duckdb.connect().execute(recipe(folder)).fetchone()
    answer = release.count(asked_in(folder), calibrate=False)
    assert n == pytest.approx(answer.value, rel=1e-9, abs=1e-6)
    if release.manifest.parts[0].swapped is None:
        assert stderr == pytest.approx(answer.stderr, rel=1e-9, abs=1e-6)
    else:  # rows that swapped are not independent, and the README says which way that goes
        assert stderr > answer.stderr
        assert "stderr is too large" in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("name", SHOWN)
def test_the_readme_counts_as_deniable_does(name, form, tmp_path, monkeypatch):
    release = CASES[name].publish(out=tmp_path / "r", format=form)
    assert release.manifest.weights.file == f"weights.{form}"
    require_same(tmp_path / "r", release, monkeypatch)
    assert not dn.verify(tmp_path / "r").failures


@pytest.mark.parametrize("name", ["uniform", "small-domain", "retention", "two columns, bound", "missing, a value"])
def test_where_values_are_many_the_table_is_compact(name, tmp_path, monkeypatch):
    whole = Weights.of(CASES[name].publish().manifest)
    for where in (chapter, verified):
        monkeypatch.setattr(where, "LISTED", 1)
    release = CASES[name].publish(out=tmp_path / "r")
    weights = Weights.of(release.manifest)
    assert (whole.form, weights.form) == ("values", "compact")
    assert weights.table().num_rows == sum(len(cell.places) for one in weights.parts for cell in one.cells)
    require_same(tmp_path / "r", release, monkeypatch)
    assert not dn.verify(tmp_path / "r").failures
    require_database(release, tmp_path / "x.duckdb")


@pytest.mark.parametrize(
    ("size", "privacy"), [(3, BY_BLOCKS), (20, BY_BLOCKS), (20, BY_ARCS)], ids=["lists", "blocks", "arcs"]
)
@pytest.mark.parametrize("missing", ["value", "exempt"])
def test_of_large_line_ups_members_have_weights(size, privacy, missing, tmp_path, monkeypatch):
    for where in (chapter, verified):
        monkeypatch.setattr(where, "LISTED_SETS", 1)
    release = published(size, missing, privacy, out=tmp_path / "r")
    assert Weights.of(release.manifest).form == "members"
    require_same(tmp_path / "r", release, monkeypatch)
    assert not dn.verify(tmp_path / "r").failures
    require_database(release, tmp_path / "x.duckdb")


def test_a_release_without_weights_says_how_else(tmp_path):
    for name in ("redraw", "decoys, sums"):
        release = CASES[name].publish(out=tmp_path / name)
        assert release.manifest.weights is None
        assert not (tmp_path / name / "weights.parquet").exists()
        assert "Solve P f = o" in (tmp_path / name / "README.md").read_text(encoding="utf-8")
        with pytest.raises(QuestionError, match="have no weights"):
            release.to_duckdb(tmp_path / "x.duckdb")


def test_where_no_table_of_a_size_that_is_read_can_be_made_there_is_none(monkeypatch):
    monkeypatch.setattr(chapter, "LISTED", 1)
    monkeypatch.setattr(chapter, "MOST_LISTED", 1)
    assert Weights.of(CASES["decoys"].publish().manifest) is None


COINS = ["uniform", "small-domain", "small-domain, variance and fine-grain", "fine-grain", "designed", "pram"]


def by_cell(release: dn.Release) -> Iterator[tuple[Any, np.ndarray]]:
    """Each cell's channel, and its listed weights [asked, shown]."""
    listed = Weights.of(release.manifest).table().to_pylist()
    for number, channel in enumerate(release.manifest.parts[0].channels):
        w = np.zeros((channel.m, channel.m))
        for line in listed:
            if line.get("cell", 0) == number:
                w[channel.values.index(line["value_disease"]), channel.values.index(line["shown_disease"])] = line["w"]
        yield channel, w


@pytest.mark.parametrize("name", COINS)
def test_weights_are_one_on_average_where_the_original_is_what_is_asked_for(name):
    """sum over y of P[y][x] w_v(y) = [x = v]."""
    for channel, w in by_cell(CASES[name].publish()):
        assert w @ channel.matrix() == pytest.approx(np.eye(channel.m), abs=1e-8)


def test_the_variance_is_that_of_the_draws():
    """20,000 draws of one table: counts of values and sets scatter as the mean of sum (w^2 - w) says. So many draws
    know a standard deviation to .5 %, and 5 % is ten of its errors."""
    ((channel, w),) = by_cell(CASES["designed"].publish())
    rng, people = np.random.default_rng(2), np.arange(20, 20 + 40 * channel.m, 40)
    shown = sum(rng.multinomial(n, column, 20_000) for n, column in zip(people, channel.matrix().T, strict=True))
    for chosen in ([0], [channel.m - 1], [0, 1], [2, 4, 7], list(range(channel.m - 1))):
        one = w[chosen].sum(axis=0)
        counts, stated = shown @ one, (shown @ (one**2 - one)).mean()
        assert counts.mean() == pytest.approx(people[chosen].sum(), abs=5.2 * np.sqrt(stated / 20_000))
        assert counts.std(ddof=1) == pytest.approx(np.sqrt(stated), rel=0.05)


def test_changed_weights_are_seen(tmp_path):
    CASES["small-domain"].publish(out=tmp_path / "r", format="csv")
    file = tmp_path / "r" / "weights.csv"
    text = file.read_text(encoding="utf-8")
    file.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(dn.VerificationError, match="was changed: other SHA-256"):
        dn.verify(tmp_path / "r")
    manifest = read_manifest(tmp_path / "r")
    types = {field.name: str(field.type) for field in Weights.of(manifest).table().schema}
    file.write_text(text, encoding="utf-8")
    table = read_table(file, "csv", types)
    forged = table.set_column(table.num_columns - 1, "w", pa.compute.multiply(table["w"], 1.001))
    write_table([forged], forged.schema, file, "csv")
    raw = manifest.to_dict()
    raw["weights"]["sha256"] = digest_of(file)
    written = Manifest.from_dict(raw)
    (tmp_path / "r" / "manifest.json").write_text(written.to_json(), encoding="utf-8")
    (tmp_path / "r" / "README.md").write_text(analyst_readme(written), encoding="utf-8")
    with pytest.raises(dn.VerificationError, match="say something else than the channels") as refused:
        dn.verify(tmp_path / "r")
    assert str(refused.value).count("\n") == 1


# -- a DuckDB file -----------------------------------------------------------------------------------------------------


def require_database(release: dn.Release, file: Path) -> None:
    release.to_duckdb(file)
    (part, *_), con = release.manifest.parts, duckdb.connect(str(file), read_only=True)
    column = part.columns[0]
    chosen = [value for value in release.manifest.column_domains[column] if value is not None][1:3]
    options = {"calibrate": False}
    sql = f"""SELECT sex, SUM(w), stderr(w), COUNT(*) FROM weighed("{column}_in" := $1) GROUP BY sex ORDER BY sex"""
    for sex, n, stderr, rows in con.execute(sql, [chosen]).fetchall():
        answer = release.count({column: chosen, "sex": sex}, **options)
        assert n == pytest.approx(answer.value, rel=1e-9, abs=1e-6)
        assert rows == release.count({"sex": sex}).value
        if part.swapped is None:
            assert stderr == pytest.approx(answer.stderr, rel=1e-9, abs=1e-6)
    if con.execute("SELECT COUNT(*) FROM duckdb_views() WHERE view_name LIKE 'by_%'").fetchone() != (0,):
        sql = f"""SELECT SUM(w), SQRT(SUM(v)) FROM "by_{column}" WHERE "value_{column}" = $1 AND sex = 'F'"""
        n, stderr = con.execute(sql, chosen[:1]).fetchone()
        answer = release.count({column: chosen[0], "sex": "F"}, **options)
        assert n == pytest.approx(answer.value, rel=1e-9, abs=1e-6)
        if part.swapped is None:
            assert stderr == pytest.approx(answer.stderr, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("name", [name for name in SHOWN if name != "retention, dates and floats"])
def test_a_duckdb_file_counts_as_deniable_does(name, tmp_path):
    require_database(CASES[name].publish(), tmp_path / "x.duckdb")


def test_several_conditions_weigh_by_their_product(tmp_path):
    for name in ("retention", "two columns", "two columns, decoys"):
        release = CASES[name].publish()
        con = duckdb.connect(str(release.to_duckdb(tmp_path / name)), read_only=True)
        jobs = ["nurse", "clerk"]
        sql = "SELECT SUM(w), stderr(w) FROM weighed(disease_in := ['flu'], job_in := $1)"
        n, stderr = con.execute(sql, [jobs]).fetchone()
        answer = release.count({"disease": "flu", "job": jobs}, calibrate=False)
        assert (n, stderr) == (pytest.approx(answer.value, abs=1e-6), pytest.approx(answer.stderr, abs=1e-6))


def test_missing_values_can_be_asked_for(tmp_path):
    release = CASES["missing, a value"].publish()
    release.to_duckdb(tmp_path / "x.duckdb")
    con = duckdb.connect(str(tmp_path / "x.duckdb"), read_only=True)
    for chosen in ([None], [None, "flu"]):
        n, stderr = con.execute("SELECT SUM(w), stderr(w) FROM weighed(ill_in := $1)", [chosen]).fetchone()
        answer = release.count({"ill": chosen}, calibrate=False)
        assert (n, stderr) == (pytest.approx(answer.value), pytest.approx(answer.stderr))


def test_a_learned_release_claims_no_error_by_its_rows(tmp_path):
    rng = np.random.default_rng(1)
    table = pa.table({"sex": rng.choice(["F", "M"], 2000), "disease": rng.choice(["flu", "cold", "hiv"], 2000)})
    release = dn.publish(table, sensitive="disease", privacy="3/4", mechanism="synthetic", key=bytes(32))
    assert set(Weights.of(release.manifest).table()["w"].to_pylist()) == {1.0}
    release.to_duckdb(tmp_path / "x.duckdb")
    con = duckdb.connect(str(tmp_path / "x.duckdb"), read_only=True)
    shown = release.table["disease"].to_pylist().count("flu")
    assert con.execute("SELECT SUM(w), stderr(w) FROM weighed(disease_in := ['flu'])").fetchone() == (shown, None)
    assert con.execute("SELECT SUM(v) FROM by_disease").fetchone() == (None,)


def test_the_command_writes_a_database_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CASES["small-domain"].publish(out="r")
    done = run("open", "r", "--duckdb", "x.duckdb")
    assert done.exit_code == 0, done.output
    assert 'weighed("disease_in" := [' in done.stderr
    again = run("open", "r", "--duckdb", "x.duckdb")
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    assert run("open", "r", "--duckdb", "x.duckdb", "--overwrite", "--json").exit_code == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("tmp")] == []


# -- other tools: a whole number is perturbed, in cells, and some of it is missing -------------------------------------

CHOSEN, _WHOLE = [2, 5], "integer"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release as CSV, which every tool reads."""
    rng = np.random.default_rng(4)
    wage = rng.choice(9, 3000, p=np.arange(1, 10) / 45)
    table = pa.table({"sex": rng.choice(["F", "M"], 3000), "wage": pa.array(wage, mask=rng.random(3000) < 0.1)})
    out = tmp_path_factory.mktemp("whole") / "r"
    how = {"privacy": dn.Privacy(rho1="1/4", rho2="1/2"), "mechanism": "small-domain", "key": bytes(32)}
    dn.publish(table, sensitive="wage", out=out, format="csv", **how)
    return out


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, tuple[float, float]]:
    release = dn.open_release(folder)
    answers = {sex: release.count({"wage": CHOSEN, "sex": sex}, calibrate=False) for sex in "FM"}
    return {sex: (one.value, one.stderr) for sex, one in answers.items()}


def require_equal(rows: Any, expected: dict[str, tuple[float, float]]) -> None:
    rows = {sex: (float(n), float(stderr)) for sex, n, stderr in rows}
    assert rows.keys() == expected.keys()
    for sex, numbers in expected.items():
        assert rows[sex] == pytest.approx(numbers, rel=1e-8)


def by_sex(folder: Path) -> str:
    """The README's SQL, with another list and a group."""
    text = re.sub(r"IN \(\d+\)", "IN (2, 5)", recipe(folder)).replace("SELECT SUM(w) AS n", "SELECT sex, SUM(w) AS n")
    return text.rstrip(";") + "\nGROUP BY sex;"


def test_the_readme_asks_for_whole_numbers_as_such(folder, monkeypatch):
    (question,) = re.findall(r'deniable query \. "(.*)"', (folder / "README.md").read_text(encoding="utf-8"))
    assert re.search(r"WHERE wage = \d+$", question)
    done = run("query", folder, question)
    assert done.exit_code == 0, done.output
    require_same(folder, dn.open_release(folder), monkeypatch)


def test_duckdb(folder, expected, monkeypatch):
    monkeypatch.chdir(folder)
    require_equal(duckdb.connect().execute(by_sex(folder)).fetchall(), expected)


def test_pandas(folder, expected):
    pd = pytest.importorskip("pandas")
    data, weights = pd.read_csv(folder / "data.csv"), pd.read_csv(folder / "weights.csv")
    keys = ["cell", "shown_wage"]
    asked = weights[weights.value_wage.isin(CHOSEN)].groupby(keys, as_index=False, dropna=False).w.sum()
    rows = data.merge(asked, left_on=["cell", "wage"], right_on=keys)
    rows["v"] = rows.w**2 - rows.w
    by = rows.groupby("sex")[["w", "v"]].sum()
    require_equal([(sex, one.w, one.v**0.5) for sex, one in by.iterrows()], expected)


def test_polars(folder, expected):
    pl = pytest.importorskip("polars")
    data, weights = pl.read_csv(folder / "data.csv"), pl.read_csv(folder / "weights.csv")
    asked = weights.filter(pl.col("value_wage").is_in(CHOSEN)).group_by("cell", "shown_wage").agg(pl.col("w").sum())
    rows = data.join(asked, left_on=["cell", "wage"], right_on=["cell", "shown_wage"], nulls_equal=True)
    n, stderr = pl.col("w").sum().alias("n"), (pl.col("w") ** 2 - pl.col("w")).sum().sqrt().alias("stderr")
    require_equal(rows.group_by("sex").agg(n, stderr).rows(), expected)


R = """
data <- read.csv("data.csv")
weights <- read.csv("weights.csv")
chosen <- weights[weights$value_wage %in% c(2, 5), ]
asked <- aggregate(w ~ cell + addNA(shown_wage), chosen, sum)
names(asked)[2] <- "wage"
data$wage <- factor(data$wage, levels = levels(asked$wage), exclude = NULL)
rows <- merge(data, asked)
for (sex in c("F", "M")) {
  w <- rows$w[rows$sex == sex]
  cat(sex, format(sum(w), digits = 15), format(sqrt(sum(w^2 - w)), digits = 15), "\\n")
}
"""


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="Rscript is missing: install r-base-core")
def test_r(folder, expected):
    done = subprocess.run(["Rscript", "-e", R], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    require_equal([line.split() for line in done.stdout.splitlines()], expected)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("initdb") is None, reason="needs PostgreSQL: no program 'initdb' is on the PATH")
def test_postgresql(folder, expected):
    psycopg = pytest.importorskip("psycopg")
    types = {"sex": "text", "w": "double precision"}
    with postgres() as address, psycopg.connect(address) as connection, connection.cursor() as cursor:
        for name in ("data", "weights"):
            text = (folder / f"{name}.csv").read_text(encoding="utf-8")
            columns = [column.strip('"') for column in text.splitlines()[0].split(",")]
            cursor.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {types.get(c, _WHOLE)}' for c in columns)})")
            with cursor.copy(f"COPY {name} FROM STDIN (FORMAT csv, HEADER true)") as copy:
                copy.write(text)
        statement = re.sub(r"CREATE VIEW.*\n", "", by_sex(folder))
        require_equal(cursor.execute(statement).fetchall(), expected)
