"""Rows of a release as files of SPSS, Stata and SAS: codes and labels come back, and nothing is lost on the way."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

import deniable as dn
from deniable.core.errors import OutputError
from deniable.core.manifest import Manifest

READ = {
    ".sav": pyreadstat.read_sav,
    ".zsav": pyreadstat.read_sav,
    ".dta": pyreadstat.read_dta,
    ".xpt": pyreadstat.read_xport,
}
LABELS = {"sex": {1.0: "male", 2.0: "female"}, "ill": {1.0: "flu", 4.0: "cold", 7.0: "gout"}, "mood": {1.0: "bad"}}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = 400
    frame = pd.DataFrame(
        {
            "sex": [1.0, 2.0] * (rows // 2),
            "mood": [float(row % 5) for row in range(rows)],
            "job title": ["nurse", "", "baker", "cook"] * (rows // 4),
            "day": [dt.date(2024, 1, 1 + row % 28) for row in range(rows)],
            "ill": [1.0, 4.0, 7.0, None] * (rows // 4),
        }
    ).rename(columns={"job title": "job_title"})
    path = tmp_path_factory.mktemp("survey") / "survey.sav"
    pyreadstat.write_sav(frame, str(path), variable_value_labels=LABELS)
    return path


@pytest.fixture(scope="module")
def release(survey: Path) -> dn.Release:
    return dn.publish(survey, sensitive="ill", privacy="3/5", key=bytes(32), mechanism="uniform")


@pytest.mark.parametrize("suffix", READ)
def test_what_is_exported_is_what_is_published(release: dn.Release, tmp_path: Path, suffix: str) -> None:
    path = release.export(tmp_path / f"rows{suffix}")
    frame, about = READ[suffix](str(path))
    assert "changed at random" in about.column_names_to_labels["ill"]
    if suffix == ".xpt":  # no labels there: texts stay texts
        assert [text or None for text in frame["ill"]] == release.table["ill"].to_pylist()
        return
    assert about.variable_value_labels["sex"] == {1: "male", 2: "female"}
    assert about.variable_value_labels["ill"] == {1: "flu", 4: "cold", 7: "gout"}
    assert about.variable_value_labels["mood"] == {1: "bad"}
    assert set(frame["ill"].dropna()) == {1, 4, 7}
    again = dn.publish(path, sensitive="ill", privacy="3/5", shuffle=False, key=bytes(32), mechanism="uniform")
    for name in ("sex", "mood", "job_title", "day"):
        assert again.table[name].to_pylist() == release.table[name].to_pylist()
    assert again.manifest.labels == release.manifest.labels


def test_labels_are_kept_in_the_folder_and_left_out_with_their_column(survey: Path, tmp_path: Path) -> None:
    dn.publish(
        survey,
        sensitive="ill",
        privacy="3/5",
        drop=["sex"],
        recode={"mood": "bands:2"},
        out=tmp_path / "r",
        mechanism="uniform",
    )
    opened = dn.open_release(tmp_path / "r")
    assert opened.manifest.labels == {"ill": {1: "flu", 4: "cold", 7: "gout"}}
    assert dn.verify(tmp_path / "r")


def test_labels_of_columns_that_are_not_there_are_refused(release: dn.Release) -> None:
    raw = {**release.manifest.to_dict(), "labels": {"shoe": [[1, "small"]]}}
    with pytest.raises(dn.DeniableError, match="it labels a column that it does not publish"):
        Manifest.from_json(json.dumps(raw))


def test_names_that_the_programs_do_not_accept_are_changed(tmp_path: Path) -> None:
    columns = {
        "job title": ["a", "b"] * 50,
        "Job_Title": [1, 2] * 50,
        "to": [True, False] * 50,
        "2nd": [0.5, None] * 50,
    }
    table = pa.table({**columns, "ill": ["flu", "cold"] * 50})
    release = dn.publish(table, sensitive="ill", privacy="4/5", key=bytes(32), shuffle=False, mechanism="uniform")
    frame, about = pyreadstat.read_dta(str(release.export(tmp_path / "rows.dta")))
    assert list(frame.columns) == ["job_title", "Job_Title_2", "v_to", "v_2nd", "ill"]
    assert about.column_labels[:4] == list(columns)
    assert frame["v_to"].tolist() == [1, 0] * 50
    assert frame["v_2nd"].isna().sum() == 50


@pytest.mark.parametrize(
    ("name", "words"),
    [("rows.doc", "choose one of .sav, .zsav, .dta, .xpt"), ("rows", "choose one of"), ("rows.csv", "own folder")],
)
def test_other_files_are_refused(release: dn.Release, tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(OutputError, match=words):
        release.export(tmp_path / name)


def test_what_no_column_can_hold_is_refused(tmp_path: Path) -> None:
    table = pa.table({"note": ["x" * 3000, "y"] * 50, "ill": ["flu", "cold", "gout", "mumps"] * 25})
    long = dn.publish(table, sensitive="ill", privacy="1/2", key=bytes(32), mechanism="uniform")
    with pytest.raises(OutputError, match=r"'note' has a text of 3,000 bytes, and Stata holds 2,045"):
        long.export(tmp_path / "rows.dta")
    lineups = dn.publish(table, sensitive="ill", privacy="1/2", mechanism="lineup", key=bytes(32))
    with pytest.raises(OutputError, match="each row shows several values"):
        lineups.export(tmp_path / "rows.sav")
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_only_where_that_is_asked_for(release: dn.Release, tmp_path: Path) -> None:
    path = release.export(tmp_path / "rows.sav")
    before = path.stat().st_mtime_ns
    with pytest.raises(OutputError, match="exists already"):
        release.export(path)
    assert path.stat().st_mtime_ns == before
    release.export(path, overwrite=True)
