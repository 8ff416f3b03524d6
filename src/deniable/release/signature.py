"""Signatures of release folders: who published these files, and that they are still the ones that were published.

The signed statement names every file of the folder with its SHA-256, in the order of their names:

    deniable-signature-1
    README.md fd61a0..
    data.parquet 9f86d0..
    manifest.json 60303a..

A file that was changed, added or taken away makes another statement, which the signature is not of.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.audit.verify.checks import Check
from deniable.core.errors import ManifestError
from deniable.release.signing_key import ALGORITHM, KEY_BYTES, Signer, fingerprint

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
