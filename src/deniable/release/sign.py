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

from deniable.audit.verify.checks import Check
from deniable.core.errors import ManifestError, SecretError
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
FIELDS = {"format", "algorithm", "public_key", "files", "signature"}
FORMAT = "deniable-signature-1"  # the first line of what is signed, too
SIGNATURE_BYTES = 64
LARGEST = 2**20  # bytes of a signature.json
ELSEWHERE = "who that is must be known from elsewhere"


@dataclass(frozen=True)
class Signature:
    """What signature.json holds.

    Attributes:
        public_key: of the signer, 32 bytes.
        files: name -> SHA-256 of every other file of the folder.
        signature: of the statement about these files, 64 bytes.
    """

    public_key: bytes
    files: Mapping[str, str]
    signature: bytes

    @property
    def signer(self) -> str:
        """The fingerprint of the signer's key."""
        return fingerprint(self.public_key)

    def is_genuine(self) -> bool:
        """Whether the holder of the private key signed this statement."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public_key).verify(self.signature, statement(self.files))
        except (InvalidSignature, ValueError):
            return False
        return True

    def to_json(self) -> str:
        """As signature.json."""
        fields = {
            "format": FORMAT,
            "algorithm": ALGORITHM,
            "public_key": base64.b64encode(self.public_key).decode(),
            "files": dict(self.files),
            "signature": base64.b64encode(self.signature).decode(),
        }
        return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Signature:
        """From signature.json; anything that is not understood is refused."""
        raw = _json_object(text)
        if raw.keys() != FIELDS or raw["format"] != FORMAT or raw["algorithm"] != ALGORITHM:
            raise ManifestError(f"{SIGNATURE} is not of the format {FORMAT!r} with the algorithm {ALGORITHM!r}")
        files = raw["files"]
        if not isinstance(files, dict) or not all(_is_digest(digest) for digest in files.values()):
            raise ManifestError(f"{SIGNATURE} is damaged: its files have no SHA-256")
        if any(not name.isprintable() or "/" in name or " " in name for name in files):
            raise ManifestError(f"{SIGNATURE} is damaged: it names a file that no release has")
        key, signature = _bytes(raw["public_key"], KEY_BYTES), _bytes(raw["signature"], SIGNATURE_BYTES)
        return cls(key, files, signature)


def statement(files: Mapping[str, str]) -> bytes:
    """What is signed: every file of a release with its SHA-256."""
    lines = [FORMAT, *(f"{name} {files[name]}" for name in sorted(files))]
    return ("\n".join(lines) + "\n").encode()


def sign_files(digests: Mapping[str, str], signer: Signer) -> str:
    """The signature.json of a folder with these files (name -> SHA-256)."""
    return Signature(signer.public, digests, signer.sign(statement(digests))).to_json()


def signature_check(path: Path, digests: Mapping[str, str | None], trusted: str | None) -> Check:
    """Whether a folder is signed, by the key that is trusted, and as it is now.

    Args:
        path: of its signature.json.
        digests: every other entry of the folder: name -> SHA-256, None for what is no plain file.
        trusted: the fingerprint of a key; None where any is taken.
    """
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return Check("signature", False, f"{SIGNATURE} is missing, or no file that a release has")
        signature = Signature.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return Check("signature", False, f"{SIGNATURE} cannot be read")
    except ManifestError as damage:
        return Check("signature", False, str(damage))
    problem = _problem(signature, digests, trusted)
    if problem is not None:
        return Check("signature", False, problem)
    by_whom = f"signed by {signature.signer}"
    return Check(
        "signature", True, f"{by_whom}: {ELSEWHERE}" if trusted is None else f"{by_whom}, the key that is trusted"
    )


def _problem(signature: Signature, digests: Mapping[str, str | None], trusted: str | None) -> str | None:
    if trusted is not None and signature.signer != trusted:
        return f"is of another key: {signature.signer}, not {trusted}"
    if not signature.is_genuine():
        return f"is forged, or {SIGNATURE} was changed: it is not the key's signature of these files"
    added = sorted(digests.keys() - signature.files.keys())
    gone = sorted(signature.files.keys() - digests.keys())
    changed = sorted(name for name in signature.files.keys() & digests.keys() if signature.files[name] != digests[name])
    for names, what in ((changed, "was changed after signing"), (added, "was added"), (gone, "was taken away")):
        if names:
            return f"is not of this folder: {names[0]!r} {what}"
    return None


def _json_object(text: str) -> dict[str, Any]:
    """The one JSON object in a text."""
    try:
        raw = json.loads(text, object_pairs_hook=_no_field_twice)
    except (ValueError, RecursionError):
        raise ManifestError(f"{SIGNATURE} is damaged: it is not one JSON object with fields of its own") from None
    if not isinstance(raw, dict):
        raise ManifestError(f"{SIGNATURE} is damaged: it is not a JSON object")
    return raw


def _no_field_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a field stands there twice")
    return dict(pairs)


def _is_digest(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")


def _bytes(text: Any, size: int) -> bytes:
    try:
        decoded = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        decoded = b""
    if len(decoded) != size or base64.b64encode(decoded).decode() != text:
        raise ManifestError(f"{SIGNATURE} is damaged: a key or a signature has the wrong length")
    return decoded
