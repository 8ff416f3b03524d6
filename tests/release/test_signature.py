"""Signed releases: which keys sign, which keys are known by, and what save and overwrite make of a signature."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization as keys
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import deniable as dn

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key()
LINE = PUBLIC.public_bytes(keys.Encoding.OpenSSH, keys.PublicFormat.OpenSSH).decode()
PRINT = "SHA256:" + base64.b64encode(hashlib.sha256(base64.b64decode(LINE.split()[1])).digest()).decode().rstrip("=")
PEM, SSH = keys.PrivateFormat.PKCS8, keys.PrivateFormat.OpenSSH


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({"sex": rng.choice(["F", "M"], 300), "job": rng.choice(list("abcd"), 300)})


def publish(table: Any, **options: Any) -> dn.Release:
    return dn.publish(table, sensitive="job", privacy=dn.Privacy(rho2="2/3"), **{"mechanism": "uniform", **options})


def key_file(path: Path, form: keys.PrivateFormat = PEM, key: Any = KEY, password: bytes | None = None) -> Path:
    shut = keys.NoEncryption() if password is None else keys.BestAvailableEncryption(password)
    path.write_bytes(key.private_bytes(keys.Encoding.PEM, form, shut))
    path.chmod(0o600)
    return path


def locked_openssh_file(path: Path) -> Path:
    """What ``ssh-keygen -N secret`` writes, but for the bytes that only the passphrase opens."""

    def wire(*fields: bytes) -> bytes:
        return b"".join(len(field).to_bytes(4, "big") + field for field in fields)

    options = wire(bytes(16)) + (16).to_bytes(4, "big")
    head = b"openssh-key-v1\0" + wire(b"aes256-ctr", b"bcrypt", options) + (1).to_bytes(4, "big")
    body = base64.encodebytes(head + wire(base64.b64decode(LINE.split()[1]), bytes(144))).decode()
    path.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}-----END OPENSSH PRIVATE KEY-----\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("form", [PEM, SSH, None])
def test_a_key_signs_as_pem_as_openssh_writes_it_and_as_an_object(
    table: pa.Table, tmp_path: Path, form: keys.PrivateFormat | None
) -> None:
    sign = KEY if form is None else key_file(tmp_path / "key", form)
    release = publish(table, out=tmp_path / "r", sign=sign)
    (tmp_path / "key.pub").write_text(f"{LINE} me@here\n")
    pem = PUBLIC.public_bytes(keys.Encoding.PEM, keys.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pem").write_bytes(pem)
    for known in (LINE, f"{LINE} me@here", PRINT, PUBLIC, tmp_path / "key.pub", str(tmp_path / "key.pem")):
        assert release.verify(signed_by=known).holds
    assert f"signed by {PRINT}" in str(dn.verify(tmp_path / "r"))
    other = Ed25519PrivateKey.generate().public_key()
    with pytest.raises(dn.VerificationError, match=f"another key: {PRINT}".replace("+", r"\+")):
        release.verify(signed_by=other)


def test_keys_that_cannot_sign_are_refused_with_what_would_be_right(table: pa.Table, tmp_path: Path) -> None:
    open_to_all = key_file(tmp_path / "open")
    open_to_all.chmod(0o644)
    (tmp_path / "text").write_text("no key")
    (tmp_path / "text").chmod(0o600)
    refused: list[tuple[Any, str]] = [
        (key_file(tmp_path / "pem", PEM, password=b"secret"), "encrypted with a passphrase"),
        (locked_openssh_file(tmp_path / "ssh"), "encrypted with a passphrase"),
        (key_file(tmp_path / "rsa", PEM, rsa.generate_private_key(65537, 2048)), "algorithm RSA"),
        (open_to_all, "mode 644: others can read"),
        (tmp_path / "nothing", "cannot be read: No such file"),
        (tmp_path / "text", "no private key that can be read"),
        (b"key", "sign is a bytes"),
    ]
    for sign, words in refused:
        with pytest.raises(dn.DeniableError, match=words) as caught:
            publish(table, out=tmp_path / "r", sign=sign)
        assert "Fix:" in str(caught.value) or "cannot be read" in str(caught.value)
    assert not (tmp_path / "r").exists()


def test_keys_that_nobody_can_be_known_by_are_refused(table: pa.Table, tmp_path: Path) -> None:
    release = publish(table, out=tmp_path / "r", sign=KEY)
    many = tmp_path / "many.pub"
    many.write_text(f"{LINE}\n{LINE}\n")
    strange = rsa.generate_private_key(65537, 2048).public_key()
    (tmp_path / "rsa.pem").write_bytes(strange.public_bytes(keys.Encoding.PEM, keys.PublicFormat.SubjectPublicKeyInfo))
    (tmp_path / "rsa.pub").write_bytes(strange.public_bytes(keys.Encoding.OpenSSH, keys.PublicFormat.OpenSSH))
    refused: list[tuple[Any, str]] = [
        (key_file(tmp_path / "key"), "is a private key"),
        (many, "holds 2 public keys"),
        (tmp_path / "rsa.pem", "no Ed25519 public key"),
        (tmp_path / "rsa.pub", "no Ed25519 public key"),
        (tmp_path / "nothing", "cannot be read"),
        ("SHA256:AAAA", "no fingerprint"),
        (LINE[:40], "no Ed25519 public key"),
        (KEY, "signed_by is a"),
        (7, "signed_by is a int"),
    ]
    for known, words in refused:
        with pytest.raises(dn.DeniableError, match=words):
            release.verify(signed_by=known)


def test_a_release_in_memory_is_signed_when_it_is_saved(table: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(dn.DeniableError, match=r"save\(.., sign=\)"):
        publish(table, sign=KEY)
    release = publish(table)
    with pytest.raises(dn.VerificationError, match="in memory"):
        release.verify(signed_by=PUBLIC)
    saved = release.save(tmp_path / "r", sign=KEY, format="csv")
    assert saved.verify(signed_by=PUBLIC).holds
    copy = dn.open_release(tmp_path / "r").save(tmp_path / "copy")  # other files, which nobody signed
    assert copy.verify().holds
    with pytest.raises(dn.VerificationError, match=r"signature\.json is missing"):
        copy.verify(signed_by=PUBLIC)


def test_overwriting_leaves_no_signature_of_what_was_there(table: pa.Table, tmp_path: Path) -> None:
    out = tmp_path / "r"
    publish(table, out=out, sign=KEY)
    publish(table, out=out, overwrite=True)
    assert not (out / "signature.json").exists()
    publish(table, out=out, overwrite=True, sign=KEY)
    assert sorted(os.listdir(out)) == [
        "README.md",
        "data.parquet",
        "manifest.json",
        "signature.json",
        "weights.parquet",
    ]
    assert dn.verify(out, signed_by=PUBLIC).holds


def test_a_signing_key_never_lies_in_the_release(table: pa.Table, tmp_path: Path) -> None:
    out = tmp_path / "r"
    publish(table, out=out)
    key = key_file(out / "data.csv")  # even under a name that a release may replace
    with pytest.raises(dn.DeniableError, match="lies in the output"):
        publish(table, out=out, overwrite=True, sign=key)
    with pytest.raises(dn.DeniableError, match="lies in the output"):
        publish(table).save(out, overwrite=True, sign=key)
    assert key.exists()


def test_no_part_of_the_private_key_is_shown_or_written(table: pa.Table, tmp_path: Path) -> None:
    from deniable.release.sign import signer_of

    publish(table, out=tmp_path / "r", sign=KEY)
    secret = KEY.private_bytes_raw()
    for path in (tmp_path / "r").iterdir():
        content = path.read_bytes()
        assert not any(form in content for form in (secret, secret.hex().encode(), base64.b64encode(secret)[:-2]))
    assert repr(signer_of(KEY)) == f"<Signer {PRINT}>"


def test_the_page_checks_a_signature_without_deniable(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "sign-a-release.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    publish(table, out=tmp_path / "release", sign=KEY)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    (tmp_path / "release" / "README.md").write_text("Trust us.")
    with pytest.raises(InvalidSignature):
        exec(code, {})
