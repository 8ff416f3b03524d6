"""One-time codes against ballot stuffing: random, told once, kept as hashes, never tied to a response."""

from __future__ import annotations

import base64
import hashlib
import secrets

CODE_BYTES = 10  # 80 random bits


def new_codes(number: int) -> list[str]:
    """So many different codes such as ABCD-EFGH-IJKL-MNOP."""
    codes: set[str] = set()
    while len(codes) < number:
        text = base64.b32encode(secrets.token_bytes(CODE_BYTES)).decode()
        codes.add("-".join(text[start : start + 4] for start in range(0, len(text), 4)))
    return sorted(codes)


def hashed(secret: str) -> str:
    """Of a token or a one-time code: both have so many random bits that a plain hash cannot be undone."""
    return hashlib.sha256(secret.encode()).hexdigest()
