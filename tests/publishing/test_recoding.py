"""Recoded columns: published, digested, asked, verified and audited as they are then; spelled alike everywhere."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.core.errors import ColumnError, DeniableError, OptionError, VerificationError
from deniable.publishing.recoding import Recoding, steps_spelled

KEY = bytes(range(32))
PRIVACY = dn.Privacy(rho2="3/4")
RARE_TOWNS = ("Ulm", "Ems")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    draw = np.random.default_rng(3)
    n = 3_000
    towns = [*["Bonn"] * 1500, *["Kiel"] * 1000, *["Trier"] * 485, *["Ulm"] * 9, *["Ems"] * 6]
    diseases = [*["flu"] * 1400, *["cold"] * 1000, *["gout"] * 592, *["scurvy"] * 8]
    return pa.table(
        {
            "age": draw.integers(18, 95, n),
            "town": draw.permutation(towns),
            "zip": pa.array(draw.integers(10_000, 99_999, n).astype(str)),
            "disease": draw.permutation(diseases),
        }
    )


def published(table: pa.Table, **options: object) -> dn.Release:
    chosen = {"sensitive": "disease", "privacy": PRIVACY, "key": KEY, "recode": {"age": dn.bands(10)}, **options}
    return dn.publish(table, **{"mechanism": "uniform", **chosen})


def test_the_recoded_column_is_what_is_published_and_asked(table: pa.Table) -> None:
    release = published(table, recode={"age": [dn.top(80), dn.bands(10)], "zip": dn.prefix(1)}, rare=20, suppress=20)
    assert set(release.table["age"].to_pylist()) == {f"[{low}, {low + 10})" for low in range(10, 90, 10)}
    assert set(release.table["zip"].to_pylist()) == set("123456789")
    assert Counter(release.table["town"].to_pylist())["(rare)"] == 500  # 15 rows alone are too few: Trier joins them
    assert release.manifest.parts[0].domain == ("cold", "flu", "gout", None)
    thirties = int(((np.asarray(table["age"]) >= 30) & (np.asarray(table["age"]) < 40)).sum())
    assert release.count({"age": "[30, 40)"}).value == thirties
    assert "scurvy" not in release.manifest.to_json()
    assert not any(town in release.manifest.to_json() for town in RARE_TOWNS)


def test_what_depends_on_other_rows_is_said(table: pa.Table) -> None:
    said = published(table, rare={"town": 20}, suppress=20).manifest.guarantee["not_protected"]
    assert any("'town'" in line and "depends on the table" in line for line in said)
    assert any("'disease'" in line and "are read as missing" in line for line in said)
    assert not any("depends on the table" in line for line in published(table).manifest.guarantee["not_protected"])


def test_the_manifest_comes_back_and_the_readme_says_it(table: pa.Table, tmp_path: Path) -> None:
    release = published(table, recode={"age": dn.bands(10), "zip": dn.prefix(2)}, out=tmp_path / "r")
    assert dn.open_release(tmp_path / "r").manifest.recoded == release.manifest.recoded
    text = (tmp_path / "r" / "README.md").read_text()
    assert "- `age`: in bands of 10" in text
    assert "- `zip`: its first 2 characters." in text
    assert any(check.what == "recoded" and check.holds for check in dn.verify(tmp_path / "r").checks)


FINER = [
    ("age", [{"kind": "bands", "width": 20, "start": 0}]),
    ("age", [{"kind": "edges", "edges": [50]}]),
    ("zip", [{"kind": "prefix", "length": 4, "pad": None}]),
    ("zip", [{"kind": "hierarchy", "map": [["1", "2"]], "other": None}]),
    ("zip", [{"kind": "calendar", "unit": "month"}]),
    ("zip", [{"kind": "top", "limit": 5}]),
]


@pytest.mark.parametrize(("column", "claimed"), FINER)
def test_a_release_that_is_finer_than_it_says_does_not_verify(
    table: pa.Table, tmp_path: Path, column: str, claimed: list
) -> None:
    published(table, out=tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    raw = json.loads(path.read_text())
    raw["recoded"] = {column: claimed}
    path.write_text(json.dumps(raw))
    with pytest.raises(VerificationError, match="finer than its recoding"):
        dn.verify(tmp_path / "r")


def test_draws_depend_on_the_recoding_and_on_the_recoded_column_only(table: pa.Table) -> None:
    first, again = published(table), published(table)
    assert first.table.equals(again.table)
    decade = np.asarray(table["age"]) // 10 * 10
    other = published(table.set_column(0, "age", pa.array(decade)))  # finer than a band nothing is looked at
    assert first.table.equals(other.table)
    plain = published(table, recode=None)
    wide = published(table, recode={"age": dn.bands(20)})
    sick = [release.table["disease"].to_pylist() for release in (first, plain, wide)]
    assert sick[0] != sick[1] != sick[2] != sick[0]


def test_files_are_read_in_batches_and_give_the_same_release(table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    options = {"recode": {"age": [dn.top(80), dn.bands(10)]}, "rare": 20, "suppress": 20}
    whole = published(table, **options)
    streamed = published(tmp_path / "t.parquet", out=tmp_path / "r", batch_rows=501, **options)
    assert whole.table.equals(streamed.table)


@pytest.mark.parametrize("mechanism", ["small-domain", "designed", "lineup", "auto"])
def test_every_form_of_release_records_it_and_is_audited_as_published(
    table: pa.Table, tmp_path: Path, mechanism: str
) -> None:
    privacy = dn.Privacy(rho2="3/5")
    release = published(table, mechanism=mechanism, privacy=privacy, drop="zip", rare=20, out=tmp_path / "r")
    assert set(release.manifest.recoded) == {"age", "town"}
    dn.verify(tmp_path / "r")
    report = dn.audit(table, tmp_path / "r")
    assert report.rows is None or report.rows.foreign == 0


def test_a_sensitive_column_can_be_recoded(table: pa.Table) -> None:
    chapters = dn.hierarchy({"flu": "infection", "cold": "infection", "gout": "joints", "scurvy": "diet"})
    release = published(table, recode={"disease": chapters}, privacy=dn.Privacy(rho2="9/10"))
    assert release.manifest.parts[0].domain == ("diet", "infection", "joints")
    assert dn.audit(table, release).parts[0].domain == release.manifest.parts[0].domain


def test_one_spelling_for_texts_files_and_python(tmp_path: Path) -> None:
    (tmp_path / "regions.csv").write_text("Bonn;west;D\nKiel;north;D\n", encoding="utf-8")
    (tmp_path / "r.toml").write_text(
        'rare = 20\nsuppress = 5\n[recode]\nage = "top:90+bands:10"\n'
        'town = "hierarchy:regions.csv:2"\nx = "bands:18,65"\n'
    )
    read = Recoding.of(tmp_path / "r.toml")
    assert (read.rare, read.suppress) == (20, 5)
    assert read.columns == {
        "age": (dn.top(90), dn.bands(10)),
        "town": (dn.hierarchy(tmp_path / "regions.csv", 2),),
        "x": (dn.bands([18, 65]),),
    }
    assert read.columns["town"][0].categories == ("D",)
    assert steps_spelled("bands:10:5+month") == (dn.bands(10, 5), dn.month)
    assert Recoding.of({"a": "prefix:3:5"}) == Recoding.of({"a": dn.prefix(3, 5)})


@pytest.mark.parametrize("text", ["", "bands", "bands:x", "band:3", "month:3", "top:", "bands:1:2:3", "hierarchy:"])
def test_texts_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="recode"):
        steps_spelled(text)


REFUSED = [
    ({"recode": {"nowhere": dn.month}}, "does not have"),
    ({"recode": {"age": 5}}, "not understood"),
    ({"recode": {"zip": dn.prefix(1)}, "drop": ["zip"]}, "not published"),
    ({"rare": {"disease": 20}}, "no public column"),
    ({"suppress": {"town": 20}}, "no sensitive column"),
    ({"suppress": 20, "missing": "exempt"}, "missing='value'"),
    ({"suppress": 20, "domain": ["flu"]}, "leave one out"),
    ({"rare": 1}, "whole number"),
    ({"bins": {"age": [1, 2, 3]}, "recode": None}, "bands"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_contradicts_itself_is_refused(table: pa.Table, options: dict, message: str) -> None:
    with pytest.raises(DeniableError, match=message):
        published(table, **options)


def test_files_that_say_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    for text, message in (("x = 1", "field 'x'"), ("[recode]\na = 3", "no.? a table|table of"), ("a b", "not TOML")):
        path.write_text(text)
        with pytest.raises(OptionError, match=message):
            Recoding.of(path)
    path.write_text("rare = 3")
    with pytest.raises(OptionError, match="once more"):
        Recoding.of(path, rare=4)
    (tmp_path / "h.csv").write_text("a,b\nc\n")
    with pytest.raises(OptionError, match="no level 1 in line 2"):
        dn.hierarchy(tmp_path / "h.csv")


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("Bonaire, Saba, Statia;Americas\nPeru;Americas\n", ["Bonaire, Saba, Statia", "Peru"]),
        ('"a; b";x\n"c";x\n', ["a; b", "c"]),
        ('"two\nlines",x\nc,x\n', ["two\nlines", "c"]),
        ("a\u2028b\tx\nc\tx\n", ["a\u2028b", "c"]),
        ("\ufeffa,x\r\n\r\nb,x\r\n", ["a", "b"]),
    ],
)
def test_hierarchies_are_read_whatever_their_values_hold(tmp_path: Path, text: str, leaves: list) -> None:
    (tmp_path / "h.csv").write_bytes(text.encode())
    assert [value for value, _ in dn.hierarchy(tmp_path / "h.csv").map] == leaves


def test_releases_are_pooled_only_if_they_are_equally_coarse(table: pa.Table) -> None:
    how = {"domain": ["cold", "flu", "gout", "scurvy"], "privacy": dn.Privacy(rho1="1/2", rho2="3/4")}
    one, other = published(table, **how), published(table, recode={"age": dn.bands(20)}, **how)
    assert dn.pool([one, published(table, name="two", **how)]).manifest.recoded == one.manifest.recoded
    with pytest.raises(OptionError, match="made coarser"):
        dn.pool([one, other])


def test_a_respondent_gives_public_columns_as_coarse_as_the_release(table: pa.Table) -> None:
    release = published(table, privacy=dn.Privacy(rho1="1/2", rho2="3/4"), drop=["zip"])
    row = {"age": "[30, 40)", "town": "Bonn", "disease": "flu"}
    assert dn.respond(row, release)["age"] == "[30, 40)"
    with pytest.raises(ColumnError, match="not as coarse"):
        dn.respond({**row, "age": "34"}, release)
    with pytest.raises(ColumnError, match="not as coarse"):
        dn.respond({**row, "age": 34}, release)
