"""Signatures of release folders: Ed25519 (RFC 8032), checked with nothing but whole numbers.

What is signed names every other file of the folder with its SHA-256, in the order of their names. A file that was
changed, added or taken away makes another statement, which the signature is not of.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

from deniable_verify.checks import Check
from deniable_verify.reading import DamagedError, json_of

SIGNATURE, FORMAT = "signature.json", "deniable-signature-1"
FIELDS = {"format", "algorithm", "public_key", "files", "signature"}
LARGEST = 2**20
P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)

Point = tuple[int, int, int, int]  # X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z


def signature_check(content: bytes | None, digests: Mapping[str, str | None], trusted: str | None) -> list[Check]:
    """Whether a folder is signed, by the key that is trusted, and as it is now.

    Args:
        content: of signature.json; None where there is none.
        digests: every other entry of the folder: name -> SHA-256, None for what is no plain file.
        trusted: the fingerprint of a key; None where any is taken.
    """
    if content is None:
        missing = f"{SIGNATURE} is missing, or no file that a release has"
        return [] if trusted is None else [Check("signature", False, missing)]
    try:
        key, files, signature = _read(content)
    except DamagedError as damage:
        return [Check("signature", False, str(damage))]
    signer = fingerprint(key)
    problem = _problem(key, files, signature, digests)
    if trusted is not None and signer != trusted:
        problem = f"is of another key: {signer}, not {trusted}"
    if problem is not None:
        return [Check("signature", False, problem)]
    known = "who that is must be known from elsewhere" if trusted is None else "the key that is trusted"
    return [Check("signature", True, f"signed by {signer}{':' if trusted is None else ','} {known}")]


def fingerprint(public: bytes) -> str:
    """A public key's fingerprint, as ``ssh-keygen -l`` prints it."""
    wire = b"".join(len(field).to_bytes(4, "big") + field for field in (b"ssh-ed25519", public))
    return "SHA256:" + base64.b64encode(hashlib.sha256(wire).digest()).decode().rstrip("=")


def _read(content: bytes) -> tuple[bytes, dict[str, str], bytes]:
    """Key, files and signature; anything that is not understood is refused."""
    raw = json_of(content, SIGNATURE) if len(content) <= LARGEST else None
    if not isinstance(raw, dict) or set(raw) != FIELDS or raw["format"] != FORMAT or raw["algorithm"] != "ed25519":
        raise DamagedError(f"{SIGNATURE} is not of the format {FORMAT!r} with the algorithm 'ed25519'")
    files = raw["files"]
    if not isinstance(files, dict) or not all(map(_is_digest, files.values())):
        raise DamagedError(f"{SIGNATURE} is damaged: its files have no SHA-256")
    if any(not name.isprintable() or "/" in name or " " in name for name in files):
        raise DamagedError(f"{SIGNATURE} is damaged: it names a file that no release has")
    return _bytes(raw["public_key"], 32), files, _bytes(raw["signature"], 64)


def _is_digest(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")


def _bytes(text: Any, size: int) -> bytes:
    try:
        decoded = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        decoded = b""
    if len(decoded) != size or base64.b64encode(decoded).decode() != text:
        raise DamagedError(f"{SIGNATURE} is damaged: a key or a signature has the wrong length")
    return decoded


def _problem(key: bytes, files: Mapping[str, str], signature: bytes, digests: Mapping[str, str | None]) -> str | None:
    lines = [FORMAT, *(f"{name} {files[name]}" for name in sorted(files))]
    if not is_signed(key, ("\n".join(lines) + "\n").encode(), signature):
        return f"is forged, or {SIGNATURE} was changed: it is not the key's signature of these files"
    added, gone = sorted(digests.keys() - files.keys()), sorted(files.keys() - digests.keys())
    changed = sorted(name for name in files.keys() & digests.keys() if files[name] != digests[name])
    for names, what in ((changed, "was changed after signing"), (added, "was added"), (gone, "was taken away")):
        if names:
            return f"is not of this folder: {names[0]!r} {what}"
    return None


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether S B = R + h A, with h = SHA-512(R, A, message)."""
    try:
        at, r = _point(key), _point(signature[:32])
    except ValueError:
        return False
    s = int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    base = _point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
    left, right = _times(s, base), _sum(r, _times(h, at))
    same = all((left[i] * right[2] - right[i] * left[2]) % P == 0 for i in (0, 1))
    return s < ORDER and same and _times(8, at)[0] % P != 0  # a key of small order signs anything


def _point(encoded: bytes) -> Point:
    """The point of 32 bytes: y, and the lowest bit of x."""
    number = int.from_bytes(encoded, "little")
    odd, y = number >> 255, number & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * ROOT % P
    if y >= P or x * x % P != square or (x == 0 and odd):
        raise ValueError("no point")
    x = P - x if x & 1 != odd else x
    return x, y, 1, x * y % P


def _sum(one: Point, other: Point) -> Point:
    a, b = (one[1] - one[0]) * (other[1] - other[0]) % P, (one[1] + one[0]) * (other[1] + other[0]) % P
    c, d = 2 * one[3] * other[3] * D % P, 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(number: int, point: Point) -> Point:
    total: Point = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = _sum(total, point)
        point, number = _sum(point, point), number >> 1
    return total
