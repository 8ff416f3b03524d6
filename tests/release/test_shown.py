"""A release in one line, and as a small table of its columns; nothing is read from its folder for that."""

from __future__ import annotations

import pyarrow as pa
import pytest

import deniable as dn
from deniable.mechanisms import Retention

HOSTILE = "<script>alert(1)</script>"
COLUMN = "<b>disease</b>"


@pytest.fixture(scope="module")
def release() -> dn.Release:
    table = pa.table({"sex": ["F", "M", None] * 100, COLUMN: ["flu", HOSTILE, "hiv"] * 100})
    return dn.publish(table, sensitive=COLUMN, privacy=dn.Privacy(rho2="1/2"), mechanism="uniform")


def test_a_notebook_shows_the_promise_and_the_columns(release, notebook):
    page = notebook(release)
    warned = [f"Warning: {text}" for text in release.warnings]  # the sex tells the value, in this table
    assert page.paragraphs == [repr(release)[1:-1], *warned, release.manifest.guarantee["sentence"]]
    assert page.rows == [
        ["column", "type", "role", "values"],
        ["sex", "string", "public", ""],
        [COLUMN, "string", "sensitive", f"3: {HOSTILE[:19]}…, flu, hiv"],
    ]


def test_a_notebook_shows_its_owner_what_to_mind_and_nobody_else(notebook, tmp_path):
    table = pa.table({"<i>number</i>": [f"P{row}" for row in range(300)], COLUMN: ["flu", HOSTILE, "hiv"] * 100})
    out = tmp_path / "release"
    mine = dn.publish(table, sensitive=COLUMN, privacy=dn.Privacy(rho2="1/2"), mechanism="uniform", out=out)
    warned = [text for text in notebook(mine).paragraphs if text.startswith("Warning: ")]
    assert len(warned) == 1
    assert "'<i>number</i>' (it looks like an identifier" in warned[0]
    assert not any("Warning" in text for text in notebook(dn.open_release(out)).paragraphs)


def test_a_release_in_a_folder_is_shown_without_reading_its_rows(release, notebook, tmp_path):
    saved = release.save(tmp_path / "release")
    (tmp_path / "release" / "data.parquet").unlink()
    assert notebook(saved).text == notebook(release).text


def test_a_manifest_prints_in_one_line_too(release, notebook):
    assert repr(release.manifest) == f"<Manifest of 300 rows, {COLUMN} by uniform>"
    assert notebook(release.manifest).rows == notebook(release).rows


def test_ranges_are_shown(notebook):
    table = pa.table({"age": list(range(20, 70)) * 4, "disease": ["flu", "hiv"] * 100})
    ranged = dn.publish(table.select(["age"]), mechanism=Retention({"age": dn.Replace(coin=0.5, low=17, high=90)}))
    assert notebook(ranged).rows[1] == ["age", "int64", "sensitive", "17 to 90"]


def test_many_columns_are_not_all_shown(notebook):
    wide = pa.table({**{f"public {i}": [1, 2] * 50 for i in range(60)}, "disease": ["flu", "hiv"] * 50})
    page = notebook(dn.publish(wide, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), mechanism="uniform"))
    assert len(page.rows) == 31
    assert page.paragraphs[-1] == "31 more columns are not shown."


def test_many_long_values_do_not_fill_the_page():
    values = [f"{i} " + "x" * 10_000 for i in range(200)]
    release = dn.publish(
        pa.table({"disease": values * 2}), sensitive="disease", privacy=dn.Privacy(rho2="1/2"), mechanism="uniform"
    )
    assert len(release._repr_html_()) < 5_000
    assert len(repr(release)) < 200
