"""Signatures of release folders, and the Ed25519 keys that make them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.core.errors import SecretError
from deniable.core.text import small_bytes
from deniable.release.commit import Commit

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# -- Ed25519 keys that sign releases: a private one to sign with, a public one to know a signer by ---------------------


ALGORITHM = "ed25519"
OPENSSH = "ssh-ed25519"
FINGERPRINT = "SHA256:"
HASH_BYTES, KEY_BYTES = 32, 32
LARGEST_FILE = 2**16
MAKE_ONE = "ssh-keygen -t ed25519 -N '' -f FILE"


@dataclass(frozen=True)
class Signer:
    """Who signs: a private key, never shown."""

    private: Ed25519PrivateKey

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self.private.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """The signature of a message, 64 bytes (RFC 8032)."""
        return self.private.sign(message)

    def __repr__(self) -> str:
        return f"<Signer {fingerprint(self.public)}>"


def fingerprint(public: bytes) -> str:
    """A public key's fingerprint, as ``ssh-keygen -l`` prints it."""
    digest = hashlib.sha256(_wire(OPENSSH.encode()) + _wire(public)).digest()
    return FINGERPRINT + base64.b64encode(digest).decode().rstrip("=")


def signer_of(given: Any) -> Signer:
    """Who signs, from what a caller gave: the path of a private key, or an object of ``cryptography``."""
    if isinstance(given, Signer):
        return given
    if isinstance(given, str | os.PathLike):
        return Signer(_private_key(Path(given)))
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if isinstance(given, Ed25519PrivateKey):
        return Signer(given)
    raise SecretError(
        f"sign is a {type(given).__name__}. Fix: the path of an Ed25519 private key ({MAKE_ONE}), or an "
        "Ed25519PrivateKey of the package cryptography."
    )


def files_of_key(given: Any) -> list[str]:
    """The file that a key is read from, which no release may take the place of; none where it is an object."""
    return [os.fspath(given)] if isinstance(given, str | os.PathLike) else []


def new_signing_key(path: Path) -> Path:
    """Make a key to sign with, in a new file that its owner alone can read; its public half is beside it, as .pub.

    Args:
        path: of the private key, as OpenSSH writes it.
    """
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = path.with_name(f"{path.name}.pub")
    for place in (path, public):
        if place.exists():
            raise SecretError(f"{str(place)!r} exists already, and a key is never overwritten. Fix: another name.")
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.OpenSSH, forms.NoEncryption())
    shown = key.public_key().public_bytes(forms.Encoding.OpenSSH, forms.PublicFormat.OpenSSH)
    with Commit() as commit:
        commit.write(path, private, private=True)
        commit.write(public, shown + b"\n")
    return public


def _private_key(path: Path) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

    content = _private_content(path)
    load = load_ssh_private_key if b"BEGIN OPENSSH PRIVATE KEY" in content else load_pem_private_key
    try:
        key = load(content, password=None)
    except TypeError:  # what cryptography raises for a key that needs a passphrase
        raise SecretError(
            f"The signing key {str(path)!r} is encrypted with a passphrase. Fix: a key without one ({MAKE_ONE}), or "
            "open it with the package cryptography and give the object."
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise SecretError(
            f"{str(path)!r} holds no private key that can be read. Fix: an Ed25519 key as PEM or as OpenSSH writes it: "
            f"{MAKE_ONE}."
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        kind = type(key).__name__.removeprefix("_").removesuffix("PrivateKey")
        raise SecretError(f"The signing key {str(path)!r} is of the algorithm {kind}. Fix: Ed25519: {MAKE_ONE}.")
    return key


def _private_content(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(LARGEST_FILE)
    except OSError as problem:
        raise SecretError(
            f"The signing key {str(path)!r} cannot be read: {problem.strerror}. Fix: check the name, or make one: "
            f"{MAKE_ONE}."
        ) from None
    if os.name == "posix" and mode & 0o077:
        raise SecretError(
            f"The signing key {str(path)!r} has mode {mode:03o}: others can read or change it. "
            f"Fix: chmod 600 {str(path)!r}, and make a new key if others may have read it."
        )
    return content


def known_fingerprint(given: Any) -> str:
    """The fingerprint of the key that a caller trusts.

    Args:
        given: a fingerprint (``SHA256:..``), a public key as OpenSSH writes it (``ssh-ed25519 AAAA..``), the path of a
            file with one, or with a PEM public key, or an ``Ed25519PublicKey`` of the package ``cryptography``.
    """
    if isinstance(given, str) and given.startswith(FINGERPRINT):
        return _checked_fingerprint(given.strip())
    if isinstance(given, str) and given.split(maxsplit=1)[:1] == [OPENSSH]:
        return fingerprint(_openssh_key(given, "signed_by"))
    if isinstance(given, str | os.PathLike):
        return fingerprint(_public_key(Path(given)))
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if isinstance(given, Ed25519PublicKey):
        return fingerprint(given.public_bytes_raw())
    raise SecretError(
        f"signed_by is a {type(given).__name__}. Fix: a public key ('{OPENSSH} AAAA..'), its file, its fingerprint "
        f"('{FINGERPRINT}..'), or an Ed25519PublicKey of the package cryptography."
    )


def _checked_fingerprint(text: str) -> str:
    try:
        digest = base64.b64decode(text.removeprefix(FINGERPRINT) + "=", validate=True)
    except binascii.Error:
        digest = b""
    if len(digest) != HASH_BYTES:
        raise SecretError(f"{text[:80]!r} is no fingerprint. Fix: what `ssh-keygen -lf FILE.pub` prints: SHA256:..")
    return FINGERPRINT + base64.b64encode(digest).decode().rstrip("=")


def _public_key(path: Path) -> bytes:
    try:
        content = small_bytes(path, LARGEST_FILE)
    except OSError as problem:
        raise SecretError(
            f"The public key {str(path)!r} cannot be read: {problem.strerror}. Fix: a file, '{OPENSSH} AAAA..' or "
            f"'{FINGERPRINT}..'."
        ) from None
    if b"PRIVATE KEY" in content:
        raise SecretError(
            f"{str(path)!r} is a private key, which only its owner should have. Fix: its public half, {path.name}.pub."
        )
    if b"BEGIN PUBLIC KEY" in content:
        return _pem_key(content, path)
    lines = [line for line in content.decode("utf-8", "replace").splitlines() if line.strip() and line[0] != "#"]
    if len(lines) != 1:
        raise SecretError(f"{str(path)!r} holds {len(lines)} public keys. Fix: a file with one.")
    return _openssh_key(lines[0], repr(str(path)))


def _pem_key(content: bytes, path: Path) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise SecretError(f"{str(path)!r} holds no Ed25519 public key. Fix: the public half of the signer's key.")
    return key.public_bytes_raw()


def _openssh_key(line: str, what: str) -> bytes:
    """The 32 bytes of ``ssh-ed25519 BASE64 comment``: a name and a key, each after its length (RFC 8709)."""
    words = line.split()
    head = _wire(OPENSSH.encode()) + KEY_BYTES.to_bytes(4, "big")
    try:
        blob = base64.b64decode(words[1] if len(words) > 1 else "", validate=True)
    except binascii.Error:
        blob = b""
    if words[0] != OPENSSH or not blob.startswith(head) or len(blob) != len(head) + KEY_BYTES:
        raise SecretError(f"{what} is no Ed25519 public key. Fix: a line '{OPENSSH} AAAA..', as ssh-keygen writes it.")
    return blob[len(head) :]


def _wire(field: bytes) -> bytes:
    return len(field).to_bytes(4, "big") + field


# -- Signatures of release folders: who published these files, and that they are still the ones that were published.
# The signed statement names every file of the folder with its SHA-256, in the order of their names:
#
#     deniable-signature-1
#     README.md fd61a0..
#     data.parquet 9f86d0..
#     manifest.json 60303a..
#
# A file that was changed, added or taken away makes another statement, which the signature is not of.


SIGNATURE = "signature.json"
FORMAT = "deniable-signature-1"  # the first line of what is signed, too


def statement(files: Mapping[str, str]) -> bytes:
    """What is signed: every file of a release with its SHA-256."""
    lines = [FORMAT, *(f"{name} {files[name]}" for name in sorted(files))]
    return ("\n".join(lines) + "\n").encode()


def sign_files(digests: Mapping[str, str], signer: Signer) -> str:
    """The signature.json of a folder with these files (name -> SHA-256)."""
    fields = {
        "format": FORMAT,
        "algorithm": ALGORITHM,
        "public_key": base64.b64encode(signer.public).decode(),
        "files": dict(digests),
        "signature": base64.b64encode(signer.sign(statement(digests))).decode(),
    }
    return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"
