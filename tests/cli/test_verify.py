"""`deniable verify`: 0 when a release holds, 1 and why when it does not, 2 when there is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


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


def test_a_signed_release_is_known_by_its_key(patients: Path, tmp_path: Path, run) -> None:
    for name in ("mine", "theirs"):
        key = Ed25519PrivateKey.generate()
        (tmp_path / name).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        (tmp_path / name).chmod(0o600)
        (tmp_path / f"{name}.pub").write_bytes(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    out = tmp_path / "signed"
    made = run(
        "publish",
        patients,
        "--drop",
        "name",
        "--sensitive",
        "disease",
        "--rho2",
        "1/2",
        "--out",
        out,
        "--sign",
        tmp_path / "mine",
    )
    assert made.returncode == 0, made.stderr
    assert "known from elsewhere" in run("verify", out).stdout
    assert run("verify", out, "--signed-by", tmp_path / "mine.pub").returncode == 0
    other = run("verify", out, "--signed-by", tmp_path / "theirs.pub")
    assert other.returncode == 1
    assert "another key" in other.stderr
    assert run("verify", out, "--signed-by", tmp_path / "no.pub").returncode == 2
