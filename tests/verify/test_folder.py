"""Folders as strangers may hand them over, and releases that have none."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
import deniable_verify
from deniable.learned.levels import level_codes
from deniable.learned.measuring import Levels, laplace_variance
from deniable.learned.model import Learner

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
