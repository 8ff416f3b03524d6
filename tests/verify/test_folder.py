"""Folders, files and documents as strangers may hand them over, and releases that have none."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
import deniable_verify
from deniable.learned.levels import level_codes
from deniable.learned.measuring import Levels, laplace_variance
from deniable.learned.model import Learner
from deniable_verify import (
    Certificate,
    Check,
    markdown,
)
from deniable_verify.checks import printable
from deniable_verify.reading import content_of, json_of, misfits
from deniable_verify.rows import fits

GOOD = Path(__file__).parents[2] / "docs" / "reference" / "vectors" / "good"
DISEASES = ["a", "b", "c", "d", "e"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOOD / "uniform", tmp_path / "r"))


def failures(folder: Path) -> list[str]:
    return [check.what for check in deniable_verify.verify(folder).failures]


@pytest.mark.parametrize("name", ["manifest.json", "data.parquet", "README.md", "weights.parquet", "notes"])
def test_a_pipe_hangs_nobody(copy: Path, name: str) -> None:
    (copy / name).unlink(missing_ok=True)
    os.mkfifo(copy / name)
    assert failures(copy)


@pytest.mark.parametrize("name", ["manifest.json", "data.parquet", "README.md", "notes"])
@pytest.mark.parametrize("target", ["/dev/zero", "/etc/hostname", "nowhere"])
def test_no_link_is_followed(copy: Path, name: str, target: str) -> None:
    (copy / name).unlink(missing_ok=True)
    (copy / name).symlink_to(target)
    assert failures(copy)


def test_a_folder_within_is_nothing_of_a_release(copy: Path) -> None:
    (copy / "old").mkdir()
    shutil.copy(copy / "data.parquet", copy / "old" / "part-00000.parquet")
    assert failures(copy) == ["folder"]


@pytest.mark.parametrize("name", ["manifest.json", "README.md"])
def test_a_folder_in_the_place_of_a_file_is_refused(copy: Path, name: str) -> None:
    (copy / name).unlink()
    (copy / name).mkdir()
    assert name.partition(".")[0] in failures(copy)


def test_a_manifest_without_end_is_not_read(copy: Path) -> None:
    with (copy / "manifest.json").open("wb") as file:
        file.truncate(2**30)
    assert failures(copy) == ["manifest"]


@pytest.mark.parametrize("change", ['{"a": 1, "a": 2}', "[" * 100_000, '{"a": NaN}', "[1]", "\xff"])
def test_what_is_no_manifest_is_refused(copy: Path, change: str) -> None:
    (copy / "manifest.json").write_text(change, encoding="latin-1")
    assert failures(copy) == ["manifest"]


@pytest.mark.parametrize("where", ["schema", "column"])
def test_metadata_of_a_schema_and_of_a_column_is_seen(copy: Path, where: str) -> None:
    table = pq.read_table(copy / "data.parquet")
    note = {"note": "row 7 is Ann"}
    fields = [field.with_metadata(note) if where == "column" else field for field in table.schema]
    pq.write_table(table.cast(pa.schema(fields, note if where == "schema" else None)), copy / "data.parquet")
    raw = json.loads((copy / "manifest.json").read_text())
    raw["data"]["sha256"] = deniable_verify.Folder.at(copy).digest("data.parquet")
    (copy / "manifest.json").write_text(json.dumps(raw))
    assert failures(copy) == ["metadata"]


def people(rows: int = 4_000) -> pa.Table:
    rng = np.random.default_rng(7)
    town = rng.integers(0, 6, rows)
    ill = (rng.integers(0, 5, rows) * (rng.random(rows) < 0.6) + town * 2) % 5
    return pa.table({"town": np.array(list("ABCDEF"))[town], "ill": np.array(DISEASES)[ill]})


@pytest.mark.parametrize("mechanism", ["uniform", "synthetic"])
def test_a_release_is_verified_in_memory_saved_and_opened(tmp_path: Path, mechanism: str) -> None:
    asked = {"sensitive": "ill", "domain": DISEASES, "mechanism": mechanism, "key": bytes(32)}
    release = dn.publish(people(), **asked, privacy=dn.Privacy("1/4", "1/2", adversary="any-prior"))
    assert dn.verify(release).holds
    assert any(check.what in ("published frequencies", "dealing") for check in dn.verify(release).checks)
    release.save(tmp_path / "r")
    assert dn.verify(dn.open_release(tmp_path / "r")).holds
    assert release.verify().holds


def test_rows_in_memory_that_are_not_the_channels_are_refused() -> None:
    release = dn.publish(people(), sensitive="ill", privacy=dn.Privacy("1/4", "1/2"), mechanism="uniform")
    forged = release.table.set_column(1, "ill", pa.array(["a"] * len(release.table)))
    certificate = deniable_verify.verify_tables(release.manifest.to_dict(), {"data": forged})
    assert "published counts" in [check.what for check in certificate.failures]


def test_parameters_that_were_learned_from_the_exact_tables_are_refused(tmp_path: Path) -> None:
    """The noisy tables stand beside a model that tells exact counts: what anyone would call a learned release."""
    table = people()
    asked = {"sensitive": "ill", "domain": DISEASES, "mechanism": "synthetic", "key": bytes(32)}
    release = dn.publish(table, **asked, privacy=dn.Privacy(epsilon="1/2"), out=tmp_path / "r")
    learned = release.manifest.parts[0].learned
    (coding,), (measured, *_) = learned.codings, learned.measured
    level = measured.places[level_codes(coding, table["town"])]
    exact = np.zeros((measured.size, 5), np.int64)
    np.add.at(exact, (level, [DISEASES.index(one) for one in table["ill"].to_pylist()]), 1)
    known, rows = np.unique(level, return_counts=True)
    levels = Levels("town", known, measured.size)
    fitted = Learner(rows, [levels], [exact], [laplace_variance(measured.epsilon / 2)]).fit()
    stored = pq.read_table(tmp_path / "r" / "tables.parquet")
    theta = stored["theta"].to_numpy().copy()
    theta[stored["table"].to_numpy() == 0] = np.round(fitted.theta * 2**16).astype(np.int64).ravel()
    pq.write_table(stored.set_column(4, "theta", pa.array(theta)), tmp_path / "r" / "tables.parquet")
    raw = json.loads((tmp_path / "r" / "manifest.json").read_text())
    raw["tables"]["sha256"] = deniable_verify.Folder.at(tmp_path / "r").digest("tables.parquet")
    (tmp_path / "r" / "manifest.json").write_text(json.dumps(raw))
    assert "learning" in failures(tmp_path / "r")
    with pytest.raises(dn.VerificationError, match="not those of the noisy tables"):
        dn.verify(tmp_path / "r")


@pytest.mark.parametrize(
    ("value", "wanted", "fits"),
    [
        (3, {"type": "integer"}, True),
        (True, {"type": "integer"}, False),
        (3.0, {"type": "integer"}, False),
        (3.5, {"type": ["null", "number"]}, True),
        ("3", {"type": ["null", "number"]}, False),
        (2, {"const": 2}, True),
        (3, {"const": 2}, False),
        ("b", {"enum": ["a", "b"]}, True),
        ("c", {"enum": ["a", "b"]}, False),
        (5, {"oneOf": [{"maximum": 5}, {"minimum": 6}]}, True),
        (5, {"oneOf": [{"maximum": 5}, {"minimum": 5}]}, False),
        (5, {"oneOf": [{"maximum": 4}, {"minimum": 6}]}, False),
        *[(number, {"minimum": 1, "maximum": 3}, 1 <= number <= 3) for number in (0, 1, 3, 4)],
        *[(number, {"exclusiveMinimum": 0}, number > 0) for number in (-1, 0, 0.1)],
        *[(text, {"minLength": 1, "maxLength": 2}, 1 <= len(text) <= 2) for text in ("", "a", "ab", "abc")],
        ("ab", {"pattern": "^[ab]+$"}, True),
        ("abc", {"pattern": "^[ab]+$"}, False),
        *[([0] * size, {"minItems": 1, "maxItems": 2}, 1 <= size <= 2) for size in range(4)],
        ([1, 2], {"uniqueItems": True}, True),
        ([1, 1], {"uniqueItems": True}, False),
        ([1, 1], {"uniqueItems": False}, True),
        (["a", 1], {"prefixItems": [{"type": "string"}, {"type": "integer"}]}, True),
        (["a", "b"], {"prefixItems": [{"type": "string"}, {"type": "integer"}]}, False),
        ([1, 2, 3], {"items": {"type": "integer", "minimum": 1, "maximum": 3}}, True),
        ([2, 4, 2], {"items": {"type": "integer", "minimum": 1, "maximum": 3}}, False),
        ([2, 0, 2], {"items": {"type": "integer", "minimum": 1, "maximum": 3}}, False),
        ([1, True], {"items": {"type": "integer"}}, False),
        ([1, 2], {"items": {"type": "string"}}, False),
        ([1, 5, 9], {"items": {"enum": [1, 9]}}, False),
        ({"a": 1}, {"required": ["a"]}, True),
        ({"b": 1}, {"required": ["a"]}, False),
        ({"a": 1}, {"properties": {"a": {"type": "string"}}}, False),
        ({"b": 1}, {"properties": {"a": {"type": "string"}}}, True),
        ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}, False),
        ({"a": 1}, {"properties": {"a": {}}, "additionalProperties": False}, True),
        ({"b": 1}, {"additionalProperties": {"type": "integer"}}, True),
        ({"b": "1"}, {"additionalProperties": {"type": "integer"}}, False),
    ],
)
def test_a_document_fits_its_schema_as_json_schema_says(value: object, wanted: dict[str, Any], fits: bool) -> None:
    assert (not list(misfits(value, wanted))) is fits
    assert jsonschema.Draft202012Validator(wanted).is_valid(value) is fits or value == 3.0  # to us no whole number


@pytest.mark.parametrize(
    ("written", "fits"),
    [
        ("[" * 32 + "1" + "]" * 32, True),
        ("[" * 33 + "1" + "]" * 33, False),
        ('{"a":' * 32 + "1" + "}" * 32, True),
        ('{"a":' * 33 + "1" + "}" * 33, False),
        (str(2**63 - 1), True),
        (str(2**63), False),
        (str(-(2**63)), True),
        (f"[1, {-(2**63) - 1}, 2]", False),
        (f"[1, {2**63}, 2]", False),
        ("1e308", True),
        ("1e309", False),
        ("[NaN]", False),
        (r'"\ud800"', False),
        (r'{"\ud800": 1}', False),
        ('[[], {}, "x", null, true, 1.5]', True),
        ('{"a": {"b": 1, "c": 1}}', True),
        ('{"a": {"b": 1, "b": 1}}', False),
    ],
)
def test_json_has_bounds(written: str, fits: bool) -> None:
    if fits:
        assert json_of(written.encode(), "x") == json.loads(written)
    else:
        with pytest.raises(deniable_verify.DamagedError, match="x is not JSON"):
            json_of(written.encode(), "x")


def test_a_file_is_read_up_to_a_size_and_no_link_of_it(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    assert content_of(tmp_path / "x", 5) == b"12345"
    for name, most in (("x", 4), ("link", 9), (".", 9), ("none", 9)):
        with pytest.raises(deniable_verify.DamagedError):
            content_of(tmp_path / name, most)


def change_of(copy: Path, name: str, content: bytes) -> None:
    """Another file, of which the manifest has the digest."""
    (copy / name).write_bytes(content)
    raw = json.loads((copy / "manifest.json").read_text())
    raw["data"]["sha256"] = deniable_verify.Folder.at(copy).digest(name)
    (copy / "manifest.json").write_text(json.dumps(raw))


@pytest.mark.parametrize("place", ["before", "after"])
def test_bytes_between_the_columns_and_the_footer_are_seen(copy: Path, place: str) -> None:
    data = (copy / "data.parquet").read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    change_of(copy, "data.parquet", data[:footer] + b"row 7 is Ann" + data[footer:])
    (check,) = deniable_verify.verify(copy).failures
    assert check.detail == "data.parquet has 12 bytes that belong to no column"


@pytest.mark.parametrize(("rows", "group"), [(1_500, 400), (1_500, 1)])
def test_groups_of_rows_lie_one_after_the_other(copy: Path, rows: int, group: int) -> None:
    table = pq.read_table(copy / "data.parquet")
    pq.write_table(table.slice(0, rows), copy / "data.parquet", row_group_size=group, use_dictionary=["sex"])
    change_of(copy, "data.parquet", (copy / "data.parquet").read_bytes())
    assert failures(copy) == []


def test_a_file_says_by_what_library_it_was_made_and_nothing_more(copy: Path) -> None:
    data = (copy / "data.parquet").read_bytes()
    assert data.count(b"parquet-cpp-arrow version ") == 1
    change_of(copy, "data.parquet", data.replace(b"parquet-cpp-arrow version ", b"row-seven-is-ann! version "))
    assert failures(copy) == ["metadata"]


STEPS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [  # a step, what it can give, and what it cannot
    ({"kind": "bands", "width": 10, "start": 0}, ["[0, 10)", "[-10, 0)", "[30, 40)"], ["[5, 15)", "[0, 20)", "0"]),
    ({"kind": "bands", "width": 10, "start": 5}, ["[5, 15)"], ["[0, 10)"]),
    ({"kind": "bands", "width": 0.5, "start": 0}, ["[0, 0.5)", "[1.5, 2)"], ["[0.25, 0.75)"]),
    ({"kind": "edges", "edges": [1, 2.5, 4]}, ["below 1", "[1, 2.5)", "[2.5, 4)", "4 and above"], ["[1, 4)"]),
    ({"kind": "prefix", "length": 2}, ["12", "1", ""], ["123"]),
    ({"kind": "top", "limit": 9}, [9, -3], [10]),
    ({"kind": "bottom", "limit": 9}, [9, 30], [8]),
    ({"kind": "snap", "grid": 5}, [0, 5, -10], [4, 5.001]),
    ({"kind": "snap", "grid": 0.1}, [0.3, 0.7], [0.35]),
    ({"kind": "hierarchy", "map": [["a", "X"], ["b", "Y"]], "other": "Z"}, ["X", "Y", "Z"], ["a"]),
    ({"kind": "calendar", "unit": "quarter"}, ["2024-Q1", "-0001-Q4"], ["2024-Q5", "2024-01", "2024"]),
    ({"kind": "calendar", "unit": "month"}, ["2024-01", "2024-12"], ["2024-13", "2024-00", "2024-Q1", "2024-01-01"]),
    ({"kind": "calendar", "unit": "year"}, [2024], ["2024"]),
    ({"kind": "rare", "below": 3, "into": "x"}, ["anything"], []),
]  # fmt: skip


@pytest.mark.parametrize(("step", "given", "never"), STEPS)
def test_a_recoded_column_holds_what_its_step_gives(step: dict[str, Any], given: list[Any], never: list[Any]) -> None:
    assert fits(pa.array(given), step)
    assert fits(pa.array(given[:1]), step)
    assert fits(pa.array([*given, None]), step)
    for value in never:
        assert not fits(pa.array([value]), step)


@pytest.mark.parametrize("name", ["data", "weights"])
def test_a_file_that_is_gone_is_named(copy: Path, name: str) -> None:
    (copy / f"{name}.parquet").unlink()
    (check,) = deniable_verify.verify(copy).failures
    assert (check.what, check.detail) == (name, f"{name}.parquet is missing, or no plain file")


def test_a_certificate_prints_what_fails_and_how_many_there_are() -> None:
    holds, unsure = Check("one", True, "fine"), Check("two", None, "no file\x1b[31m", required=False)
    fails = [Check(f"{'long ' * n}name", False, "<b>") for n in range(6)]
    assert repr(Certificate((holds,))) == "<Certificate: all 1 checks hold>"
    assert repr(Certificate((unsure, holds))) == "<Certificate: all 1 checks hold, 1 more cannot be made>"
    assert repr(Certificate((holds, *fails[:4]))) == (
        "<Certificate: 4 of 5 checks fail: name, long name, long long name, long long long name>"
    )
    assert repr(Certificate((*fails[:5],))).endswith(", long long long long…>")
    assert repr(Certificate((*fails,))).endswith("long…, ..>")
    assert repr(Certificate((*fails,))).count("…") == 1
    assert str(Certificate((unsure, holds, fails[0]))).splitlines() == [
        r"--   two: NOT CHECKED: no file\x1b[31m",
        "ok   one: fine",
        "FAIL name: <b>",
    ]
    assert [Certificate(some).exit_code for some in ((holds,), (unsure,), (holds, fails[0]))] == [0, 0, 1]
    assert Certificate((Check("two", None, ""),)).exit_code == 3
    page = Certificate((holds, unsure, fails[0]))._repr_html_()
    assert page.index("FAILS") < page.index("not checked") < page.index("holds</td>")
    assert "&lt;b&gt;" in page
    assert "more checks" not in page
    assert "<p>1 more checks are not shown.</p>" in Certificate((holds,) * 31)._repr_html_()
    assert "more checks" not in Certificate((holds,) * 30)._repr_html_()
    assert markdown("a\x1b<b> & *c*\n\u200b") == r"a\\x1b&lt;b&gt; &amp; \*c\*\\n\\u200b"
    assert printable("x" * 600) == "x" * 600
    assert printable("x" * 601) == "x" * 598 + ".."


def test_in_memory_a_manifest_that_does_not_fit_its_schema_does_not_hold() -> None:
    assert [check.what for check in deniable_verify.verify_tables({}, {}).failures] == ["manifest"]
