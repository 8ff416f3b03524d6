"""Forged and misused signatures: each is refused by whoever knows the publisher's key.

The forger has files, a key of their own, and every signature that the publisher ever made; statements are written here
anew, and nothing uses the code that signs or verifies.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

import deniable as dn

OWNER, FORGER = (Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2))
ORDER = 2**252 + 27742317777372353535851937790883648493  # of the curve's group


def publish(out: Path, rho2: str = "2/3", **options: Any) -> Path:
    rng = np.random.default_rng(3)
    table = pa.table({"sex": rng.choice(["F", "M"], 400), "job": rng.choice(list("abcd"), 400)})
    dn.publish(
        table,
        sensitive="job",
        privacy=dn.Privacy(rho2=rho2),
        out=out,
        sign=OWNER,
        **{"mechanism": "uniform", **options},
    )
    return out


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("signed")
    publish(home / "other", rho2="3/4")
    return publish(home / "release")


@pytest.fixture
def folder(genuine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(genuine, tmp_path / "r"))


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def statement(files: dict[str, str]) -> bytes:
    return b"deniable-signature-1\n" + b"".join(f"{name} {files[name]}\n".encode() for name in sorted(files))


def fields(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "signature.json").read_text())


def write(folder: Path, raw: Any) -> None:
    (folder / "signature.json").write_text(raw if isinstance(raw, str) else json.dumps(raw))


def altered(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    raw = fields(folder)
    change(raw)
    write(folder, raw)


def with_other_rows(folder: Path) -> None:
    """Rows in another order, and all digests made to fit."""
    pq.write_table(pq.read_table(folder / "data.parquet")[::-1], folder / "data.parquet")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["data"]["sha256"] = sha(folder / "data.parquet")
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def resigned(folder: Path, claimed: Ed25519PrivateKey) -> None:
    """Signed anew by the forger, under the public key of whoever is claimed."""
    files = {path.name: sha(path) for path in folder.iterdir() if path.name != "signature.json"}
    write(
        folder,
        {
            "format": "deniable-signature-1",
            "algorithm": "ed25519",
            "public_key": base64.b64encode(claimed.public_key().public_bytes_raw()).decode(),
            "files": files,
            "signature": base64.b64encode(FORGER.sign(statement(files))).decode(),
        },
    )


def fitting(folder: Path) -> None:
    """The owner's signature, beside digests that fit changed files."""
    altered(folder, lambda raw: raw.update(files={name: sha(folder / name) for name in raw["files"]}))


def two_lines_in_one_name(folder: Path) -> None:
    """The very bytes that were signed, read as one file fewer: the README is bound to nothing."""
    raw = fields(folder)
    files = raw["files"]
    joined = f"README.md {files.pop('README.md')}\ndata.parquet"
    raw["files"] = {joined: files.pop("data.parquet"), **files}
    write(folder, raw)


def another_number(change: Callable[[int], int]) -> Callable[[Path], None]:
    """A second signature of the same statement, without the key."""

    def forge(folder: Path) -> None:
        raw = fields(folder)
        signature = base64.b64decode(raw["signature"])
        s = change(int.from_bytes(signature[32:], "little"))
        raw["signature"] = base64.b64encode(signature[:32] + s.to_bytes(32, "little")).decode()
        write(folder, raw)

    return forge


def flipped(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        raw = fields(folder)
        content = bytearray(base64.b64decode(raw[name]))
        content[5] ^= 1
        raw[name] = base64.b64encode(bytes(content)).decode()
        write(folder, raw)

    return change


def key_of_order_one(folder: Path) -> None:
    """A public key for which a signature of zeros fits any statement in verifiers that do not look."""
    one = (1).to_bytes(32, "little")
    altered(
        folder,
        lambda raw: raw.update(
            public_key=base64.b64encode(one).decode(), signature=base64.b64encode(one + bytes(32)).decode()
        ),
    )


def file_added_and_listed(folder: Path) -> None:
    (folder / "x").write_text("x")
    altered(folder, lambda raw: raw["files"].update(x=sha(folder / "x")))


def data_as_a_link(folder: Path) -> None:
    elsewhere = folder.parent / "data"
    (folder / "data.parquet").rename(elsewhere)
    (folder / "data.parquet").symlink_to(elsewhere)


def twice(folder: Path) -> None:
    """A second list of files in one JSON object: which of the two was signed?"""
    raw = json.dumps(fields(folder))
    write(folder, raw[:-1] + ', "files": {}}')


FORGERIES: dict[str, Callable[[Path], Any]] = {
    "signature taken away": lambda f: (f / "signature.json").unlink(),
    "signed by the forger": lambda f: resigned(f, FORGER),
    "other rows, signed by the forger": lambda f: (with_other_rows(f), resigned(f, FORGER)),
    "signed by the forger as the owner": lambda f: resigned(f, OWNER),
    "other rows": with_other_rows,
    "other rows and digests that fit": lambda f: (with_other_rows(f), fitting(f)),
    "manifest with one space more": lambda f: (f / "manifest.json").write_text((f / "manifest.json").read_text() + " "),
    "readme rewritten": lambda f: (f / "README.md").write_text("Trust us."),
    "readme taken away": lambda f: (f / "README.md").unlink(),
    "readme taken off the list": lambda f: (altered(f, lambda raw: raw["files"].pop("README.md"))),
    "a file added": lambda f: (f / "notes.txt").write_text("x"),
    "a hidden file added": lambda f: (f / ".notes").write_text("x"),
    "a folder added": lambda f: (f / "more").mkdir(),
    "a file added, and listed": file_added_and_listed,
    "the data as a link": data_as_a_link,
    "two lines in one name": two_lines_in_one_name,
    "signature of a bit less": flipped("signature"),
    "public key of a bit less": flipped("public_key"),
    "malleable: S + L is the same number on the curve": another_number(lambda s: s + ORDER),
    "negated: a point of the same height": another_number(lambda s: ORDER - s),
    "a key of order one": key_of_order_one,
    "a signature of zeros": lambda f: altered(f, lambda raw: raw.update(signature="A" * 86 + "==")),
    "no algorithm": lambda f: altered(f, lambda raw: raw.update(algorithm="none")),
    "another format": lambda f: altered(f, lambda raw: raw.update(format="deniable-signature-0")),
    "a field more": lambda f: altered(f, lambda raw: raw.update(trusted=True)),
    "a field less": lambda f: altered(f, lambda raw: raw.pop("files")),
    "files twice": twice,
    "files as a list": lambda f: altered(f, lambda raw: raw.update(files=list(raw["files"]))),
    "digests of another kind": lambda f: altered(f, lambda raw: raw["files"].update({"README.md": None})),
    "key of another length": lambda f: altered(f, lambda raw: raw.update(public_key="AAAA")),
    "key as a number": lambda f: altered(f, lambda raw: raw.update(public_key=7)),
    "signature with a line break": lambda f: altered(f, lambda raw: raw.update(signature=raw["signature"] + "\n")),
    "no JSON": lambda f: write(f, "{"),
    "JSON, but no object": lambda f: write(f, "[]"),
    "very deep JSON": lambda f: write(f, "[" * 100_000),
    "no text": lambda f: (f / "signature.json").write_bytes(b"\xff\xfe\x00"),
    "a pipe that nobody writes to": lambda f: ((f / "signature.json").unlink(), os.mkfifo(f / "signature.json")),
    "a link to nothing": lambda f: ((f / "signature.json").unlink(), (f / "signature.json").symlink_to(f / "nothing")),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_signature_is_refused(folder: Path, name: str) -> None:
    trusted = OWNER.public_key()
    assert dn.verify(folder, signed_by=trusted).holds
    FORGERIES[name](folder)
    with pytest.raises(dn.VerificationError, match=r"signature|README"):
        dn.verify(folder, signed_by=trusted)


UNNOTICED = {"signature taken away", "signed by the forger", "other rows, signed by the forger", "a key of order one"}


@pytest.mark.parametrize("name", sorted(FORGERIES.keys() - UNNOTICED))
def test_whoever_knows_no_key_is_not_deceived_by_a_broken_signature(folder: Path, name: str) -> None:
    FORGERIES[name](folder)
    with pytest.raises(dn.VerificationError):
        dn.verify(folder)


def test_without_a_trusted_key_the_report_says_that_it_does_not_know_the_signer(folder: Path) -> None:
    resigned(folder, FORGER)
    (check,) = [check for check in dn.verify(folder).checks if check.what == "signature"]
    assert check.detail.endswith("who that is must be known from elsewhere")
    (folder / "signature.json").unlink()
    assert all(check.what != "signature" for check in dn.verify(folder).checks)


def test_the_owners_signature_of_another_release_is_refused(genuine: Path, folder: Path) -> None:
    shutil.copy(genuine.parent / "other" / "signature.json", folder)
    with pytest.raises(dn.VerificationError, match="changed after signing"):
        dn.verify(folder, signed_by=OWNER.public_key())


def test_a_signature_can_be_checked_by_anyone_with_the_statement_alone(genuine: Path) -> None:
    raw = fields(genuine)
    names = {path.name for path in genuine.iterdir()} - {"signature.json"}
    assert raw["files"] == {name: sha(genuine / name) for name in names}
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(raw["public_key"]))
    key.verify(base64.b64decode(raw["signature"]), statement(raw["files"]))  # raises where it does not hold
