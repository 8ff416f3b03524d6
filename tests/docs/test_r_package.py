"""The R package gives what deniable gives: weights, counts, and a design of `survey` with the right standard errors."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.release import weights as chapter
from deniable_verify import weights as verified
from tests.golden.cases import CASES
from tests.release.test_coded_lineups import BY_ARCS, BY_BLOCKS, published

PACKAGE = Path(__file__).resolve().parents[2] / "r" / "deniable"


def has_r(*packages: str) -> bool:
    if shutil.which("Rscript") is None:
        return False
    loaded = "; ".join(f"library({name})" for name in packages)
    return subprocess.run(["Rscript", "-e", loaded], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    not has_r("jsonlite", "survey"),
    reason="R with jsonlite and survey is missing: install r-base-core r-cran-jsonlite r-cran-survey",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed."""
    home = tmp_path_factory.mktemp("library")
    subprocess.run(
        ["R", "CMD", "INSTALL", "--no-docs", "--no-test-load", f"--library={home}", str(PACKAGE)],
        check=True,
        capture_output=True,
    )
    return home


def ran(library: Path, program: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    text = f'suppressMessages(library(deniable, lib.loc = "{library}"))\noptions(digits = 15)\n{program}'
    return subprocess.run(["Rscript", "-e", text], capture_output=True, text=True, check=check)


def answered(library: Path, folder: Path, questions: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Counts of some conditions, written in R, by public columns or none."""
    lines = [f'release <- read_release("{folder}")', "answers <- list()"]
    for where, by in questions:
        lines.append(f"answers[[length(answers) + 1]] <- count(release, list({where}), by = {by})")
    lines.append('cat(jsonlite::toJSON(answers, digits = NA, na = "null"))')
    return json.loads(ran(library, "\n".join(lines)).stdout)


QUESTIONS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "disease": [
        ('disease = "flu"', {"disease": "flu"}),
        ('disease = c("hiv", "tb", "gout"), sex = "F"', {"disease": ["hiv", "tb", "gout"], "sex": "F"}),
        ('disease = "cold", age = between(30, 60), insured = TRUE',
         {"disease": "cold", "age": dn.between(30, 60), "insured": True}),
    ],
    "ill": [
        ('ill = "flu"', {"ill": "flu"}),
        ("ill = NA, sex = \"M\"", {"ill": None, "sex": "M"}),
        ('ill = c("hiv", NA)', {"ill": ["hiv", None]}),
    ],
    "numbers": [
        ('disease = "flu", job = c("cook", "clerk")', {"disease": "flu", "job": ["cook", "clerk"]}),
        ("salary = between(20000, 40000)", {"salary": dn.between(20_000, 40_000)}),
        ('salary = 25000, grade = c(1, 2), sex = "F"', {"salary": 25_000, "grade": [1, 2], "sex": "F"}),
    ],
    "two": [('disease = "flu", job = "nurse"', {"disease": "flu", "job": "nurse"})],
}  # fmt: skip
RELEASES = [
    ("uniform", "disease"), ("small-domain", "disease"), ("lineup", "disease"), ("lineup, codes", "disease"),
    ("decoys", "disease"), ("pram", "disease"), ("missing, a value", "ill"), ("missing, exempt", "ill"),
    ("retention", "numbers"), ("two columns, decoys", "two"), ("two columns, small-domain", "two"),
]  # fmt: skip


@pytest.mark.parametrize("listed", [None, 1], ids=["listed", "compact"])
def test_counts_are_those_of_deniable(listed: int | None, library: Path, tmp_path: Path, monkeypatch: Any) -> None:
    if listed is not None:
        for where in (chapter, verified):  # a release is verified before its first answer
            monkeypatch.setattr(where, "LISTED", listed)
            monkeypatch.setattr(where, "LISTED_SETS", listed)
    for name, kind in RELEASES if listed is None else [RELEASES[1], RELEASES[3], RELEASES[6], RELEASES[8]]:
        folder = tmp_path / name.replace(" ", "_")
        release = CASES[name].publish(out=folder, format="csv")
        questions = QUESTIONS[kind]
        got = answered(library, folder, [(where, "NULL") for where, _ in questions])
        for (_, where), (one,) in zip(questions, got, strict=True):
            wanted = release.count(where, calibrate=False)
            assert one["value"] == pytest.approx(wanted.value, rel=1e-9, abs=1e-6), (name, where)
            # Of several columns deniable has another estimate of the variance.
            alike = 1e-9 if len(release.manifest.parts) == 1 else 0.1
            assert one["stderr"] == pytest.approx(wanted.stderr, rel=alike, abs=1e-6), (name, where)


@pytest.mark.parametrize("privacy", [BY_BLOCKS, BY_ARCS], ids=["blocks", "arcs"])
def test_line_ups_that_are_shown_by_codes_are_read(
    privacy: Any, library: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    for where in (chapter, verified):
        monkeypatch.setattr(where, "LISTED_SETS", 1)
    release = published(20, "value", privacy, out=tmp_path / "r", format="csv")
    column = release.manifest.sensitive_columns[0]
    values = [value for value in release.manifest.parts[0].domain[:4] if value is not None]
    listed = ", ".join(json.dumps(value) for value in values)
    ((one,),) = answered(library, tmp_path / "r", [(f"{column} = c({listed})", "NULL")])
    wanted = release.count({column: values}, calibrate=False)
    assert [one["value"], one["stderr"]] == pytest.approx([wanted.value, wanted.stderr], rel=1e-9)


def test_groups_are_counted_apart(library: Path, tmp_path: Path) -> None:
    release = CASES["small-domain"].publish(out=tmp_path / "r", format="csv")
    (rows,) = answered(library, tmp_path / "r", [('disease = "flu", age = between(20, 50)', 'c("region", "sex")')])
    assert len(rows) == 8
    for row in rows:
        where = {"disease": "flu", "age": dn.between(20, 50), "region": row["region"], "sex": row["sex"]}
        wanted = release.count(where, calibrate=False)
        assert [row["value"], row["stderr"]] == pytest.approx([wanted.value, wanted.stderr], rel=1e-9, abs=1e-6)
        assert row["low"] <= row["value"] <= row["high"]


def test_what_cannot_be_counted_is_said(library: Path, tmp_path: Path) -> None:
    CASES["small-domain"].publish(out=tmp_path / "csv", format="csv")
    CASES["small-domain"].publish(out=tmp_path / "parquet")
    CASES["redraw"].publish(out=tmp_path / "none", format="csv")
    folder = f'release <- read_release("{tmp_path / "csv"}"); '
    for program, words in (
        (folder + 'count(release, list(diseas = "flu"))', "There is no column 'diseas'"),
        (folder + 'count(release, list(disease = "flew"))', "None of the values asked for occurs"),
        (folder + 'count(release, list(disease = "flu"), by = "disease")', "disease is sensitive"),
        (folder + 'survey_design(release, list(sex = list(disease = "flu")))', "a column 'sex' already"),
        (f'read_release("{tmp_path / "none"}")', "have no weights"),
    ):
        done = ran(library, program, check=False)
        assert done.returncode != 0, program
        assert words in done.stderr, done.stderr
    if not has_r("arrow"):
        assert (
            "Parquet needs the R package arrow"
            in ran(library, f'read_release("{tmp_path / "parquet"}")', check=False).stderr
        )


def test_means_and_models_of_a_design_have_the_right_standard_errors(library: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    n = 4000
    age, smoker = rng.integers(18, 80, n), rng.random(n) < 0.3
    ill = np.where(rng.random(n) < 0.15 + 0.2 * smoker, "flu", np.where(rng.random(n) < 0.5, "cold", "none"))
    table = pa.table({"age": age, "smoker": smoker, "stands": rng.uniform(1, 4, n), "ill": ill})
    privacy = dn.Privacy(rho1="3/5", rho2="4/5")
    release = dn.publish(
        table, sensitive="ill", privacy=privacy, mechanism="designed", marginals=False, key=bytes(32),
        out=tmp_path / "r", format="csv",
    )  # fmt: skip
    program = f"""
      library(survey); set.seed(1)
      release <- read_release("{tmp_path / "r"}")
      of <- function(object) list(value = as.numeric(coef(object)), stderr = as.numeric(SE(object)))
      flu <- list(flu = list(ill = "flu"))
      exact <- survey_design(release, flu, replicates = 0)
      drawn <- survey_design(release, flu, replicates = 400)
      people <- survey_design(release, flu, weights = "stands", replicates = 0)
      cat(jsonlite::toJSON(list(
        mean = of(svymean(~flu, exact)), replicated = of(svymean(~flu, drawn)), weighted = of(svymean(~flu, people)),
        model = of(svyglm(flu ~ age + smoker, exact)), replicated_model = of(svyglm(flu ~ age + smoker, drawn)),
        age = of(svyratio(~I(age * flu), ~flu, exact))), digits = NA))"""
    got = json.loads(ran(library, program).stdout)
    model = release.linear({"ill": "flu"}, ["age", "smoker"], population=True)
    share = release.survey("stands").share({"ill": "flu"})
    w = release.weights({"ill": "flu"})
    assert got["mean"]["value"] + got["mean"]["stderr"] == pytest.approx([w.mean(), w.std(ddof=1) / n**0.5], rel=1e-6)
    assert got["weighted"]["value"] + got["weighted"]["stderr"] == pytest.approx([share.value, share.stderr], rel=2e-2)
    assert got["model"]["value"] == pytest.approx([one.value for one in model.values()], rel=1e-6)
    assert got["model"]["stderr"] == pytest.approx([one.stderr for one in model.values()], rel=1e-3)
    # a standard error from 400 replicates is off by 3.5 % itself
    assert got["replicated"]["stderr"] == pytest.approx(got["mean"]["stderr"], rel=0.18)
    assert got["replicated_model"]["stderr"] == pytest.approx(got["model"]["stderr"], rel=0.18)
    average = release.mean("age", {"ill": "flu"})
    assert got["age"]["value"] == pytest.approx([average.value], rel=1e-6)
