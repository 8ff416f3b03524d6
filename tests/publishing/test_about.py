"""The README of a release says who published it and when, what columns mean, how accurate it is and how to cite it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deniable as dn
from deniable import report
from deniable.core.about import FIELDS, today
from deniable.core.errors import ColumnError, ManifestError, OptionError
from deniable.lab.made_up import census
from deniable.mechanisms import Items

TABLE = census(5_000, seed=4)
ABOUT = dn.About(
    publisher="Office of <b>Statistics</b>",
    contact="data@office.example",
    date="2026-11-16",
    columns={"age": "Age in | years", "occupation": "Title", "country": "Of birth"},
)


def published(folder: Path, **options: Any) -> tuple[str, dn.Release]:
    stated = {"sensitive": "occupation", "privacy": "1/3", "mechanism": "uniform", "drop": "country", **options}
    release = dn.publish(TABLE, privacy=dn.Privacy("1/13", stated.pop("privacy")), out=folder, key=bytes(32), **stated)
    return (folder / "README.md").read_text(), release


def test_the_readme_has_everything_that_was_said(tmp_path: Path) -> None:
    text, release = published(tmp_path / "r", about=ABOUT)
    assert (
        "Published on 2026-11-16 by Office of &lt;b&gt;Statistics&lt;/b&gt;. Questions go to data@office.example."
        in text
    )
    assert "| age | public | int64 | Age in \\| years |" in text
    assert "| occupation | sensitive | string | Title |" in text
    assert "| gender | public | string | not described |" in text
    assert "Of birth" not in text, "the column was dropped"
    data = release.manifest.data
    assert data is not None
    assert "## How to cite" in text
    assert "(2026). release: 5,000 rows with deniable values. Published on\n> 2026-11-16" in text
    assert data.sha256[:16] in text
    assert dn.verify(tmp_path / "r").holds


def test_the_analyst_s_page_says_it_too(tmp_path: Path) -> None:
    published(tmp_path / "r", about=ABOUT)
    text = report.render(report.document(tmp_path / "r"), "md")
    assert "Published on 2026-11-16 by Office of &lt;b&gt;Statistics&lt;/b&gt;. Questions go to" in text
    assert "Age in \\| years" in text
    assert "not described" in text


def test_a_changed_publisher_no_longer_verifies(tmp_path: Path) -> None:
    text, _ = published(tmp_path / "r", about=ABOUT)
    (tmp_path / "r" / "README.md").write_text(text.replace("data@office.example", "data@thief.example"))
    with pytest.raises(dn.VerificationError, match="README"):
        dn.verify(tmp_path / "r")


def test_expected_errors_come_from_what_is_published_and_are_those_that_the_owner_was_told(tmp_path: Path) -> None:
    text, release = published(tmp_path / "r", mechanism="small-domain")
    about, choice = release.manifest.about, release.choice
    assert about is not None
    assert choice is not None
    assert [share for share, _ in about.expected] == list(choice.expected) == [0.01, 0.1][: len(choice.expected)]
    for share, error in about.expected:
        assert error == pytest.approx(choice.expected[share], rel=0.1)
        assert f"a count of {round(share * 5_000):,} people" in text
    silent, release = published(tmp_path / "s", marginals=False)
    assert release.manifest.about is not None
    assert release.manifest.about.expected == (), "without a published histogram they would tell of the exact one"
    assert "`deniable report .` shows errors" in silent


def test_what_is_said_changes_no_draw(tmp_path: Path) -> None:
    _, first = published(tmp_path / "a", about=ABOUT)
    _, second = published(tmp_path / "b", about={"publisher": "another"})
    assert first.table.equals(second.table)
    assert second.manifest.about is not None
    assert second.manifest.about.date == today()


def test_the_date_may_be_told_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert today() == "1970-01-02"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(OptionError, match="SOURCE_DATE_EPOCH = 'soon'"):
        today()


@pytest.mark.parametrize("mechanism", ["lineup", "decoys:c=4,leftovers=drop"])
def test_releases_of_every_form_say_it(tmp_path: Path, mechanism: str) -> None:
    text = published(tmp_path / "r", mechanism=mechanism, about=ABOUT)[0] if mechanism == "lineup" else ""
    if not text:
        dn.publish(TABLE, sensitive="occupation", mechanism=mechanism, about=ABOUT, out=tmp_path / "r")
        text = (tmp_path / "r" / "README.md").read_text()
    for words in ("Published on 2026-11-16", "## How accurate", "| age | public |", "## How to cite"):
        assert words in text
    assert dn.verify(tmp_path / "r").holds


def test_lists_are_described_by_their_own_name(tmp_path: Path) -> None:
    table = pa.table({"sex": ["F", "M"] * 200, "ills": [["flu"], ["flu", "gout"], [], ["gout"]] * 100})
    about = {"columns": {"ills": "Diagnoses of the year"}}
    release = dn.publish(
        table, sensitive="ills", privacy=dn.Privacy(rho1="1/10", rho2="1/2", adversary="any-prior"),
        mechanism=Items(most=2), domain=["flu", "gout"], about=about, out=tmp_path / "r",
    )  # fmt: skip
    text = (tmp_path / "r" / "README.md").read_text()
    assert "| ills | sensitive | list | Diagnoses of the year |" in text
    assert release.manifest.about is not None
    assert dn.verify(tmp_path / "r").holds


def test_unknown_columns_and_fields_are_refused() -> None:
    with pytest.raises(ColumnError, match=r"describes 'agee', and the table has no such column\. Did you mean 'age'"):
        dn.publish(TABLE, sensitive="occupation", privacy="1/2", about=dn.About(columns={"agee": "x"}))
    with pytest.raises(OptionError, match="about has the field 'publishers'"):
        dn.publish(TABLE, sensitive="occupation", privacy="1/2", about={"publishers": "x"})
    with pytest.raises(OptionError, match="about = 'me' is not understood"):
        dn.publish(TABLE, sensitive="occupation", privacy="1/2", about="me")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"publisher": " "}, "publisher = ' ' is no text"),
        ({"contact": 3}, "contact = 3 is no text"),
        ({"date": "16.11.2026"}, "date = '16.11.2026' is no date"),
        ({"date": "2026-02-30"}, "is no date"),
        ({"columns": ["age"]}, "does not map columns"),
        ({"columns": {"age": ""}}, "the description of 'age' = '' is no text"),
        ({"publisher": "x" * 2001}, "is no text of 1 to 2,000"),
    ],
)
def test_what_is_no_statement_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        dn.About(**wrong)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("column,description,unit\nage,x,years\n", "has the field 'unit'"),
        ("column,descripton\nage,x\n", "Did you mean 'description'"),
        ("column\nage\n", "first line is column,description"),
        ("", "the fields none"),
        ("column,description\nage,a,b\n", "line 2 has 3 fields"),
        ("column,description\nage,a\nage,b\n", "describes the column 'age' twice"),
        ('column,description\nage,"open\n', "is no CSV"),
    ],
)
def test_dictionaries_are_read_strictly(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "columns.csv"
    path.write_text(text)
    with pytest.raises(OptionError, match=words):
        dn.dictionary(path)


def test_a_dictionary_may_have_its_fields_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "columns.csv"
    path.write_bytes('\ufeffdescription,column\r\n"Age, in years",age\r\n\r\n'.encode())
    assert dn.dictionary(path) == {"age": "Age, in years"}
    path.write_bytes("column,description\nage,\xc4lter\n".encode("latin-1"))
    with pytest.raises(OptionError, match="UTF-8"):
        dn.dictionary(path)
    assert FIELDS == ("column", "description")


def test_a_manifest_that_describes_what_it_does_not_publish_is_refused(tmp_path: Path) -> None:
    published(tmp_path / "r", about=ABOUT)
    place = tmp_path / "r" / "manifest.json"
    for change in ({"columns": {"salary": "x"}}, {"date": "2026-02-30"}, {"publisher": ""}, {"more": 1}):
        raw = json.loads(place.read_text())
        raw["about"] |= change
        (tmp_path / "changed.json").write_text(json.dumps(raw))
        with pytest.raises(ManifestError):
            dn.open_release(_copy(tmp_path, raw))


def _copy(home: Path, raw: dict[str, Any]) -> Path:
    folder = home / "copy"
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(raw))
    return folder
