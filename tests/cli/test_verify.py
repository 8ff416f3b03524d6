"""`deniable verify`: 0 when a release holds, 1 and why when it does not, 2 when there is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def copy(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "release"))


def test_a_good_release_holds(release: Path, run) -> None:
    done = run("verify", release)
    assert done.returncode == 0, done.stderr
    assert "FAIL" not in done.stdout
    result = json.loads(run("verify", release, "--json").stdout)
    assert result["holds"] is True
    assert result["checks"]


def test_changed_data_is_found(copy: Path, shell) -> None:
    data = copy / "data.parquet"
    data.write_bytes(data.read_bytes()[:-1] + b"x")
    done = shell("verify", copy, "--json")
    assert done.returncode == 1
    assert "data.parquet" in done.stderr
    assert json.loads(done.stdout)["error"]["type"] == "VerificationError"


def test_a_coin_that_was_raised_is_found(copy: Path, run) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["parts"][0]["cells"][0]["keep"][0] *= 2
    (copy / "manifest.json").write_text(json.dumps(manifest))
    done = run("verify", copy)
    assert done.returncode == 1
    assert "does not hold what it promises" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_manifest_is_found(copy: Path, run) -> None:
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text()[:100])
    done = run("verify", copy)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_a_folder_without_a_release_is_a_mistake(run, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        done = run("verify", folder)
        assert done.returncode == 2
        assert done.stderr.count("Error: ") == 1
        assert "Traceback" not in done.stderr
